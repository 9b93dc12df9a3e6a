//! One server learns, others answer from its checkpoints.

use std::time::Duration;

use dpcl_serve::{Following, Options, Role, Server, Source};

use crate::{
    place::{Client, Place, picture},
    process::Process,
};

fn replica(place: &Place, source: Source) -> (Server, Client) {
    let role = Role::Replica(Following { source, every: Duration::from_millis(10) });
    let server = Server::start(Options { role, ..place.options() }).unwrap();
    let client = Client::new(&server.address().to_string(), None);
    (server, client)
}

fn wait_for_version(client: &Client, version: u64) -> serde_json::Value {
    loop {
        let status = client.get("/status").expect(200);
        if status["version"] == version {
            return status;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn replicas_answer_as_the_learner_and_outlive_it() {
    let place = Place::new();
    let learner = Process::start(&place.path(), 1_000_000, None);
    for number in 0..20 {
        learner.client.teach(number).expect(202);
    }
    learner.client.settle();
    learner.client.post("/checkpoint", "", b"").expect(200);
    let address = format!("http://{}", learner.client.address);
    let (_first, by_address) = replica(&place, Source::Url(address));
    let (_second, by_folder) = replica(&place, Source::Folder(place.path()));
    let answer = |client: &Client| client.post("/predict", "image/png", &picture(4)).expect(200);
    let expected = answer(&learner.client);
    for client in [&by_address, &by_folder] {
        let found = answer(client);
        assert_eq!((&found["version"], &found["answers"]), (&expected["version"], &expected["answers"]));
        assert!(found["stale_seconds"].is_number(), "{found}");
    }
    // They follow what is learned on.
    for number in 20..35 {
        learner.client.teach(number).expect(202);
    }
    learner.client.settle();
    learner.client.post("/checkpoint", "", b"").expect(200);
    let expected = answer(&learner.client);
    for client in [&by_address, &by_folder] {
        let status = wait_for_version(client, 35);
        assert_eq!(status["role"], "replica");
        assert_eq!(answer(client)["answers"], expected["answers"]);
    }
    learner.kill();
    // They go on answering, and say how old that is.
    let stale = by_address.get("/status").expect(200)["stale_seconds"].as_f64().unwrap();
    let status = loop {
        let status = by_address.get("/status").expect(200);
        if status["problem"].is_string() && status["stale_seconds"].as_f64().unwrap() > stale {
            break status;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(status["version"], 35, "{status}");
    assert_eq!(answer(&by_address)["answers"], expected["answers"]);
    let metrics = String::from_utf8(by_address.get("/metrics").bytes).unwrap();
    assert!(metrics.contains("\ndpcl_stale_seconds "), "{metrics}");
}

#[test]
fn a_replica_takes_no_samples() {
    let place = Place::new();
    let asked = place.start();
    asked.client.teach(0).expect(202);
    asked.client.settle();
    let (_server, client) = replica(&place, Source::Url(format!("http://{}", asked.client.address)));
    client.teach(1).problem(403, "replica");
    client.post("/checkpoint", "", b"").problem(403, "replica");
    client.get("/checkpoint").problem(403, "replica");
    assert_eq!(client.get("/memory").status, 200);
}

#[test]
fn nobody_to_follow_is_said_at_once() {
    let place = Place::new();
    let role =
        Role::Replica(Following { source: Source::Folder(place.path()), every: Duration::from_millis(10) });
    let refused = Server::start(Options { role, ..place.options() }).err().unwrap();
    assert!(refused.to_string().contains("no checkpoint yet"), "{refused}");
}
