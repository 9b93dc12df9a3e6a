//! What cannot be taken has its status and a JSON problem, and the server goes on.

use std::io::{Read, Write};

use crate::place::{Place, picture};

#[test]
fn what_is_no_image_is_refused() {
    let place = Place::new();
    let asked = place.start();
    let png = picture(0);
    for bad in [&b"not an image"[..], &png[..40], &png[..png.len() - 30]] {
        let detail = asked.client.post("/observe?label=a", "image/png", bad).problem(422, "not-an-image");
        assert!(detail.starts_with("image 1 "), "{detail}");
        asked.client.post("/predict", "image/png", bad).problem(422, "not-an-image");
    }
    asked.client.post("/observe?label=a", "image/png", b"").problem(422, "not-an-image");
    assert_eq!(asked.client.get("/status").expect(200)["accepted"], 0);
}

/// A PNG that says it has 60,000 × 60,000 pixels, all of them black: a few bytes a row.
fn bomb() -> Vec<u8> {
    let chunk = |kind: &[u8], content: &[u8]| {
        let mut bytes = (content.len() as u32).to_be_bytes().to_vec();
        bytes.extend([kind, content].concat());
        bytes.extend(crc32fast::hash(&[kind, content].concat()).to_be_bytes());
        bytes
    };
    let side = 60_000_u32.to_be_bytes();
    let header = [&side[..], &side, &[8, 2, 0, 0, 0]].concat();
    let mut bytes = b"\x89PNG\r\n\x1a\n".to_vec();
    bytes.extend(chunk(b"IHDR", &header));
    bytes.extend(chunk(b"IDAT", &[0x78, 0x9c, 0x63, 0, 0]));
    bytes.extend(chunk(b"IEND", b""));
    bytes
}

#[test]
fn a_bomb_is_refused_before_it_is_unpacked() {
    let place = Place::new();
    let asked = place.start();
    let detail = asked.client.post("/observe?label=a", "image/png", &bomb()).problem(413, "image-too-large");
    assert!(detail.contains("60000 × 60000"), "{detail}");
    asked.client.post("/predict", "image/png", &bomb()).problem(413, "image-too-large");
}

#[test]
fn labels_have_limits() {
    let place = Place::new();
    let asked = place.start_with(|options| options.limits.classes = 2);
    let json = |label: &str| {
        use base64::Engine;
        let image = base64::engine::general_purpose::STANDARD.encode(picture(0));
        serde_json::json!({ "label": label, "image": image }).to_string()
    };
    let huge = json(&"x".repeat(10 << 20));
    let detail = asked.client.post("/observe", "application/json", huge.as_bytes()).problem(422, "bad-label");
    assert!(detail.contains("10485760 bytes"), "{detail}");
    asked.client.post("/observe", "image/png", &picture(0)).problem(422, "bad-label");
    asked.client.post("/observe?label=%20", "image/png", &picture(0)).problem(422, "bad-label");
    for label in ["one", "two"] {
        asked.client.post("/observe", "application/json", json(label).as_bytes()).expect(202);
    }
    asked
        .client
        .post("/observe", "application/json", json("three").as_bytes())
        .problem(422, "too-many-classes");
    asked.client.post("/observe", "application/json", json("two").as_bytes()).expect(202);
}

#[test]
fn what_cannot_be_read_is_refused() {
    let place = Place::new();
    let asked = place.start();
    let client = &asked.client;
    let detail = client.post("/observe", "application/json", br#"{"samples": [{"#).problem(400, "malformed");
    assert!(detail.contains("JSON"), "{detail}");
    client.post("/observe", "application/json", b"[1, 2]").problem(400, "malformed");
    client.post("/observe?labl=a", "image/png", &picture(0)).problem(400, "malformed");
    client.post("/observe?label=a", "text/csv", &picture(0)).problem(415, "unsupported");
    client.post("/observe", "multipart/form-data; boundary=B", b"--B\r\nbroken").problem(400, "malformed");
    client.get("/nowhere").problem(404, "not-found");
    client.get("/observe").problem(405, "method-not-allowed");
    client.post("/status", "", b"").problem(405, "method-not-allowed");
    let deep = "[".repeat(100_000);
    client.post("/predict", "application/json", deep.as_bytes()).problem(400, "malformed");
}

#[test]
fn one_bad_image_among_many_takes_the_request_with_it() {
    let place = Place::new();
    let asked = place.start();
    use base64::Engine;
    let encoded = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let samples = serde_json::json!({ "samples": [
        { "label": "a", "image": encoded(&picture(0)) },
        { "label": "a", "image": encoded(b"no image") },
    ] });
    let answer = asked.client.post("/observe", "application/json", samples.to_string().as_bytes());
    assert!(answer.problem(422, "not-an-image").starts_with("image 2 "));
    let status = asked.client.get("/status").expect(200);
    assert_eq!((&status["accepted"], &status["classes"]), (&0.into(), &serde_json::json!([])));
}

#[test]
fn what_is_no_http_is_cut_off() {
    let place = Place::new();
    let asked = place.start();
    let mut stream = std::net::TcpStream::connect(asked.server.address()).unwrap();
    stream.write_all(b"\x16\x03\x01 this is no HTTP\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 400"), "{text}");
    asked.client.get("/status").expect(200);
}
