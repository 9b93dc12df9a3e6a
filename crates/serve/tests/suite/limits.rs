//! Who is let in, how much is taken, and how slow clients may be.

use std::{
    io::{Read, Write},
    net::TcpStream,
    time::Duration,
};

use dpcl_serve::{Error, Server};

use crate::place::{Client, Place, picture};

#[test]
fn a_token_opens_everything_but_the_page() {
    let place = Place::new();
    let asked = place.start_with(|options| options.token = Some("s3cret".into()));
    asked.client.teach(0).expect(202);
    for stranger in [None, Some("s3cres"), Some("")] {
        let client = Client::new(&asked.client.address, stranger);
        for path in ["/status", "/metrics", "/memory", "/checkpoint"] {
            let answer = client.get(path);
            assert_eq!(answer.headers["www-authenticate"], "Bearer");
            answer.problem(401, "unauthorized");
        }
        client.teach(1).problem(401, "unauthorized");
        client.post("/predict", "image/png", &picture(0)).problem(401, "unauthorized");
        assert_eq!(client.get("/").status, 200);
        client.get("/openapi.json").expect(200);
    }
    let lines = place.lines().iter().map(ToString::to_string).collect::<String>();
    assert!(!lines.contains("s3cre"), "tokens stay out of the log");
}

#[test]
fn without_a_token_it_listens_on_this_machine_only() {
    let place = Place::new();
    let mut options = place.options();
    options.listen = "0.0.0.0:0".parse().unwrap();
    let refused = Server::start(options).err().unwrap();
    assert!(matches!(refused, Error::Open { .. }), "{refused}");
    assert!(refused.hint().unwrap().contains("--token-file"));
}

#[test]
fn pages_of_other_sites_are_kept_out() {
    let place = Place::new();
    let asked = place.start();
    let foreign = [("Content-Type", "image/png"), ("Origin", "http://evil.example")];
    asked.client.post_with("/observe?label=a", &foreign, &picture(0)).problem(403, "foreign");
    asked.client.get_with("/status", &[("Host", "evil.example")]).problem(403, "foreign");
    let own = format!("http://{}", asked.client.address);
    let own = [("Content-Type", "image/png"), ("Origin", own.as_str())];
    asked.client.post_with("/observe?label=a", &own, &picture(0)).expect(202);
}

#[test]
fn a_repeated_request_teaches_once() {
    let place = Place::new();
    let headers = [("Content-Type", "image/png"), ("Idempotency-Key", "first")];
    let again = |client: &Client| {
        let answer = client.post_with("/observe?label=a", &headers, &picture(0));
        assert_eq!(answer.headers["idempotency-replayed"], "true");
        assert_eq!(answer.expect(202)["accepted"], 1);
    };
    let asked = place.start();
    asked.client.post_with("/observe?label=a", &headers, &picture(0)).expect(202);
    again(&asked.client);
    asked.client.post_with("/observe?label=a", &headers, &picture(1)).problem(422, "key-reused");
    asked.client.post_with("/observe?label=b", &headers, &picture(0)).problem(422, "key-reused");
    asked.server.stop();
    // Across a restart, and behind checkpoints.
    let asked = place.start();
    again(&asked.client);
    for _ in 0..2 {
        asked.client.post("/checkpoint", "", b"").expect(200);
        again(&asked.client);
    }
    assert_eq!(asked.client.get("/status").expect(200)["accepted"], 1);
    for wrong in ["", "x".repeat(300).as_str()] {
        let headers = [("Content-Type", "image/png"), ("Idempotency-Key", wrong)];
        asked.client.post_with("/observe?label=a", &headers, &picture(0)).problem(400, "malformed");
    }
}

#[test]
fn too_many_waiting_samples_are_turned_away_and_none_is_lost() {
    let place = Place::new();
    let asked = place.start_with(|options| options.limits.waiting = 3);
    let (mut accepted, mut turned_away) = (0, 0);
    while turned_away == 0 {
        // More at a time than may wait.
        let answers: Vec<_> = std::thread::scope(|scope| {
            let teach = |number| {
                let client = asked.client.clone();
                scope.spawn(move || client.teach(number))
            };
            let teaching: Vec<_> = (0..8).map(teach).collect();
            teaching.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for answer in answers {
            if answer.status == 202 {
                accepted += 1;
                continue;
            }
            let seconds: u64 = answer.headers["retry-after"].to_str().unwrap().parse().unwrap();
            assert!((1..=60).contains(&seconds));
            answer.problem(429, "behind");
            turned_away += 1;
        }
    }
    assert_eq!(asked.client.settle()["learned"], accepted);
}

#[test]
fn bodies_have_limits() {
    let place = Place::new();
    let asked = place.start_with(|options| {
        options.limits.body_bytes = 2000;
        options.limits.images = 2;
        options.limits.pixels = 100;
    });
    asked.client.post("/observe?label=a", "image/png", &[0; 3000]).problem(413, "too-large");
    asked.client.post("/observe?label=a", "image/png", &picture(0)).problem(413, "image-too-large");
    let three = br#"{"samples": [{"image": ""}, {"image": ""}, {"image": ""}]}"#;
    asked.client.post("/predict", "application/json", three).problem(413, "too-large");
    // A body that does not say how long it is.
    let mut stream = TcpStream::connect(asked.server.address()).unwrap();
    let head = "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/png\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let chunk = format!("{:x}\r\n{}\r\n", 3000, "x".repeat(3000));
    stream.write_all(chunk.as_bytes()).unwrap();
    let mut start = [0; 12];
    stream.read_exact(&mut start).unwrap();
    assert_eq!(&start, b"HTTP/1.1 413");
}

#[test]
fn slow_clients_are_cut_off() {
    let place = Place::new();
    let asked = place.start_with(|options| options.limits.patience = Duration::from_millis(150));
    let said = |text: &str| {
        let mut stream = TcpStream::connect(asked.server.address()).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    // A head that never ends, and a body that never comes.
    let head = said("GET /status HTTP/1.1\r\nHost: localhost\r\nX: ");
    assert!(head.is_empty() || head.starts_with("HTTP/1.1 408"), "{head}");
    let body =
        "POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: image/png\r\nContent-Length: 100\r\n\r\n";
    let body = said(body);
    assert!(body.starts_with("HTTP/1.1 408") && body.contains("/problems#slow"), "{body}");
    asked.client.get("/status").expect(200);
}

#[test]
fn log_lines_hold_neither_labels_nor_images() {
    let place = Place::new();
    let asked = place.start();
    asked.client.post("/observe?label=patient-17", "image/png", &picture(0)).expect(202);
    asked.client.get("/made-up/path");
    asked.client.settle();
    asked.server.stop();
    let lines = place.lines();
    let events: Vec<&str> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
    for event in ["listening", "request", "stopping", "stopped"] {
        assert!(events.contains(&event), "{event} is not in {events:?}");
    }
    let request = lines.iter().find(|line| line["place"] == "/observe").unwrap();
    assert_eq!((&request["status"], &request["method"]), (&202.into(), &"POST".into()));
    let all = lines.iter().map(ToString::to_string).collect::<String>();
    assert!(!all.contains("patient-17") && !all.contains("made-up"), "{all}");
}
