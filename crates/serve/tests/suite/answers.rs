//! What is answered: predictions, status, metrics, memory, the document, the page.

use serde_json::json;

use crate::place::{Place, picture};

fn taught(count: usize) -> (Place, crate::place::Asked) {
    let place = Place::new();
    let asked = place.start();
    for number in 0..count {
        asked.client.teach(number).expect(202);
    }
    asked.client.settle();
    (place, asked)
}

#[test]
fn two_classes_are_taught_and_told_apart() {
    let place = Place::new();
    let asked = place.start();
    asked.client.post("/predict", "image/png", &picture(0)).problem(409, "nothing-learned");
    for number in (0..120).filter(|number| number % 3 != 2) {
        asked.client.teach(number).expect(202);
    }
    let status = asked.client.settle();
    assert!(status["late_accuracy"].as_f64().unwrap() > 0.7, "{status}");
    for (number, label) in [(300, "night"), (301, "day")] {
        let answer = asked.client.post("/predict", "image/png", &picture(number)).expect(200);
        assert_eq!(
            (&answer["version"], &answer["answers"][0]["label"]),
            (&json!(80), &json!(label)),
            "{answer}"
        );
    }
}

#[test]
fn many_images_are_answered_at_once_in_every_form() {
    let (_place, asked) = taught(12);
    use base64::Engine;
    let encoded = |number| base64::engine::general_purpose::STANDARD.encode(picture(number));
    let body = json!({ "samples": [{ "image": encoded(0) }, { "image": encoded(1) }] }).to_string();
    let answers = asked.client.post("/predict", "application/json", body.as_bytes()).expect(200);
    let mut form = Vec::new();
    for number in 0..2 {
        let head = "--B\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a.png\"\r\n\r\n";
        form.extend(head.as_bytes());
        form.extend(picture(number));
        form.extend(b"\r\n");
    }
    form.extend(b"--B--\r\n");
    let formed = asked.client.post("/predict", "multipart/form-data; boundary=B", &form).expect(200);
    assert_eq!(formed, answers);
    let one = asked.client.post("/predict", "image/png", &picture(1)).expect(200);
    // One image goes through the network as it does among others.
    assert_eq!(one["answers"][0]["label"], answers["answers"][1]["label"]);
    let probabilities = one["answers"][0]["probabilities"].as_object().unwrap();
    let sum: f64 = probabilities.values().map(|share| share.as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-4 && probabilities.len() == 3, "{one}");
    for key in ["disagreement", "entropy", "probability"] {
        assert!(one["answers"][0][key].is_number(), "{one}");
    }
}

#[test]
fn an_answer_abstains_below_the_threshold() {
    let (_place, asked) = taught(12);
    let abstains = |threshold: &str| {
        let answer = asked.client.post(&format!("/predict{threshold}"), "image/png", &picture(1)).expect(200);
        answer["answers"][0]["abstain"].as_bool().unwrap()
    };
    assert_eq!([abstains(""), abstains("?threshold=0"), abstains("?threshold=1")], [false, false, true]);
    for wrong in ["?threshold=2", "?threshold=x", "?threshold=NaN", "?treshold=0.5"] {
        asked.client.post(&format!("/predict{wrong}"), "image/png", &picture(1)).problem(400, "malformed");
    }
}

#[test]
fn several_questions_share_a_pass() {
    let (_place, asked) = taught(12);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for number in 0..25 {
                    asked.client.post("/predict", "image/png", &picture(number)).expect(200);
                }
            });
        }
    });
    let metrics = String::from_utf8(asked.client.get("/metrics").bytes).unwrap();
    let value = |name: &str| -> u64 {
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().parse().unwrap()
    };
    let (passes, images) = (value("dpcl_prediction_passes_total"), value("dpcl_predicted_images_total"));
    assert!(images == 200 && passes < images, "{passes} passes for {images} images");
}

#[test]
fn status_and_metrics_say_how_far_it_is() {
    let (_place, asked) = taught(30);
    let status = asked.client.get("/status").expect(200);
    for (key, value) in [
        ("role", json!("learner")),
        ("accepted", json!(30)),
        ("learned", json!(30)),
        ("waiting", json!(0)),
        ("version", json!(30)),
        ("size", json!(16)),
        ("stored", json!(20)),
        ("updates", json!(28)),
        ("checkpoint", json!(0)),
    ] {
        assert_eq!(status[key], value, "{key} in {status}");
    }
    assert_eq!(status["classes"].as_array().unwrap().len(), 3);
    assert_eq!(status["classes"][0]["label"], "night");
    assert_eq!(status["classes"][0]["learned"], 10);
    assert_eq!(status["curve"].as_array().unwrap().len(), 30);
    let bars = status["disagreement"]["bars"].as_array().unwrap();
    assert_eq!(bars.iter().map(|bar| bar.as_u64().unwrap()).sum::<u64>(), 29);
    let metrics = asked.client.get("/metrics");
    assert_eq!(metrics.kind, "text/plain; version=0.0.4; charset=utf-8");
    let metrics = String::from_utf8(metrics.bytes).unwrap();
    for line in [
        "dpcl_accepted_total 30",
        "dpcl_learned_total 30",
        "dpcl_waiting 0",
        "dpcl_version 30",
        "dpcl_class_learned_total{class=\"day\"} 10",
        "dpcl_requests_total{route=\"/observe\",status=\"202\"} 30",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is not in\n{metrics}");
    }
}

#[test]
fn the_memory_is_a_picture() {
    let (_place, asked) = taught(30);
    let sheet = asked.client.get("/memory");
    assert_eq!((sheet.status, sheet.kind.as_str()), (200, "image/png"));
    // 16 images of 16 pixels and gaps of 2 in a row, three classes.
    let size = |bytes: &[u8], at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!((size(&sheet.bytes, 16), size(&sheet.bytes, 20)), (16 * 18 + 2, 3 * 18 + 2));
    let row = asked.client.get("/memory?class=day");
    assert_eq!((size(&row.bytes, 16), size(&row.bytes, 20)), (16 * 18 + 2, 18 + 2));
    asked.client.get("/memory?class=dawn").problem(404, "not-found");
}

#[test]
fn class_names_cannot_break_out_of_what_shows_them() {
    let place = Place::new();
    let asked = place.start();
    let name = "\"><script>alert(1)</script>\n\\";
    let label: String = name.bytes().map(|byte| format!("%{byte:02x}")).collect();
    for _ in 0..2 {
        asked.client.post(&format!("/observe?label={label}"), "image/png", &picture(0)).expect(202);
    }
    let status = asked.client.settle();
    assert_eq!(status["classes"][0]["label"], name);
    let metrics = String::from_utf8(asked.client.get("/metrics").bytes).unwrap();
    assert!(metrics.contains("class=\"\\\"><script>alert(1)</script>\\n\\\\\"}"), "{metrics}");
    // The page holds no name, and nothing without its number is run.
    let page = asked.client.get("/");
    let policy = page.headers["content-security-policy"].to_str().unwrap().to_owned();
    let text = String::from_utf8(page.bytes).unwrap();
    assert!(!text.contains("alert(1)") && !text.contains("{{nonce}}"));
    assert!(policy.starts_with("default-src 'none'; script-src 'nonce-"), "{policy}");
    let again = asked.client.get("/").headers["content-security-policy"].to_str().unwrap().to_owned();
    assert_ne!(policy, again);
    for tag in text.split('<').filter(|tag| tag.starts_with("script") || tag.starts_with("style")) {
        assert!(tag.contains("nonce=\""), "{tag}");
    }
    assert!(!text.contains("innerHTML") && !text.contains("https://"));
}

#[test]
fn the_document_describes_every_place() {
    let (_place, asked) = taught(1);
    let document = asked.client.get("/openapi.json").expect(200);
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    for (path, method) in [
        ("/", "get"),
        ("/observe", "post"),
        ("/predict", "post"),
        ("/status", "get"),
        ("/metrics", "get"),
        ("/memory", "get"),
        ("/checkpoint", "get"),
        ("/checkpoint", "post"),
        ("/openapi.json", "get"),
    ] {
        assert!(document["paths"][path][method]["responses"].is_object(), "{method} {path}");
    }
}

#[test]
fn a_known_checkpoint_is_not_sent_again() {
    let (_place, asked) = taught(3);
    asked.client.post("/checkpoint", "", b"").expect(200);
    let first = asked.client.get("/checkpoint");
    let tag = first.headers["etag"].to_str().unwrap();
    assert_eq!(tag, "\"3\"");
    let again = asked.client.get_with("/checkpoint", &[("If-None-Match", tag)]);
    assert_eq!((again.status, again.bytes.len()), (304, 0));
}
