//! What was acknowledged is learned, whatever happens to the process, and what was learned does not depend on it.

use std::{path::Path, process::Command};

use crate::{
    place::{Client, Place, picture},
    process::Process,
};

fn teach(client: &Client, numbers: std::ops::Range<usize>) {
    for number in numbers {
        client.teach(number).expect(202);
    }
}

#[test]
fn a_killed_server_goes_on_bit_for_bit() {
    let (killed, undisturbed) = (Place::new(), Place::new());
    let mut taught = 0;
    // A checkpoint after every seven samples, so that kills come before, between and behind checkpoints.
    for more in [5, 17, 1, 12, 8] {
        let process = Process::start(&killed.path(), 7, None);
        teach(&process.client, taught..taught + more);
        taught += more;
        process.kill();
    }
    let process = Process::start(&killed.path(), 7, None);
    let status = process.client.settle();
    assert_eq!((&status["accepted"], &status["learned"]), (&taught.into(), &taught.into()));
    let state = process.client.state();
    process.stop();

    let server = undisturbed.start();
    teach(&server.client, 0..taught);
    server.client.settle();
    let undisturbed = server.client.state();
    assert!(state == undisturbed, "the checkpoints differ");
}

#[test]
fn kills_during_load_lose_nothing_that_was_acknowledged() {
    let rounds = std::env::var("DPCL_SERVE_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(4);
    let (killed, undisturbed) = (Place::new(), Place::new());
    let mut acknowledged: Vec<usize> = Vec::new();
    let mut unanswered = 0;
    let mut next = 0;
    for round in 0..rounds {
        let process = Process::start(&killed.path(), 11, None);
        // Killed by another thread while this one teaches as fast as it can.
        let client = process.client.clone();
        let patience = std::time::Duration::from_micros(3_000 + 1_777 * (round % 23));
        let killer = std::thread::spawn(move || {
            std::thread::sleep(patience);
            process.kill();
        });
        loop {
            let key = next.to_string();
            let headers = [("Content-Type", "image/png"), ("Idempotency-Key", key.as_str())];
            let label = ["night", "day", "dusk"][next % 3];
            let path = format!("/observe?label={label}");
            match client.try_post(&path, &headers, &picture(next)) {
                Some(answer) => {
                    answer.expect(202);
                    acknowledged.push(next);
                    next += 1;
                }
                // Sent again to the next process, with the same key.
                None => break,
            }
        }
        unanswered += 1;
        killer.join().unwrap();
    }
    let process = Process::start(&killed.path(), 11, None);
    let status = process.client.settle();
    let accepted = usize::try_from(status["accepted"].as_u64().unwrap()).unwrap();
    // Everything acknowledged, once; the one in flight at the end may be there without an answer.
    assert!(accepted == next || accepted == next + 1, "{accepted} of {next}");
    let state = process.client.state();
    process.stop();
    assert_eq!((acknowledged.len(), unanswered), (next, rounds));

    let server = undisturbed.start();
    teach(&server.client, 0..accepted);
    server.client.settle();
    assert!(
        state == server.client.state(),
        "the checkpoints differ after {rounds} kills and {accepted} samples"
    );
    if std::env::var_os("DPCL_SERVE_KILLS").is_some() {
        let line = format!("{rounds} kills, {next} samples acknowledged, {accepted} learned, none lost\n");
        std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("kills.txt"), line).unwrap();
    }
}

#[test]
fn a_stopped_server_keeps_what_waits() {
    let (stopped, undisturbed) = (Place::new(), Place::new());
    let asked = stopped.start();
    teach(&asked.client, 0..30);
    // Stopped while samples wait, then again when nothing does.
    asked.server.stop();
    let asked = stopped.start();
    asked.client.settle();
    asked.server.stop();
    let asked = stopped.start();
    let status = asked.client.settle();
    assert_eq!(status["learned"], 30);
    let other = undisturbed.start();
    teach(&other.client, 0..30);
    other.client.settle();
    assert!(asked.client.state() == other.client.state(), "the checkpoints differ");
}

#[test]
fn checkpoints_keep_the_log_short() {
    let place = Place::new();
    let asked = place.start();
    let body = serde_json::json!({ "samples": (0..120).map(|number| serde_json::json!({
        "label": format!("class {}", number % 4), "image": base64(&picture(number))
    })).collect::<Vec<_>>() });
    asked.client.post("/observe", "application/json", body.to_string().as_bytes()).expect(202);
    asked.client.settle();
    let before = asked.client.get("/status").expect(200)["log_bytes"].as_u64().unwrap();
    assert!(before > 90_000, "{before}");
    // A segment goes when the older of two checkpoints has learned all of it, and a moment after that checkpoint.
    let shorter = (0..20).any(|number| {
        asked.client.teach(number).expect(202);
        asked.client.settle();
        asked.client.post("/checkpoint", "", b"").expect(200);
        asked.client.get("/status").expect(200)["log_bytes"].as_u64().unwrap() < before / 4
    });
    assert!(shorter, "{before} bytes, and not a quarter of it after twenty checkpoints");
    asked.client.settle();
    let state = asked.client.state();
    asked.server.stop();
    let asked = place.start();
    asked.client.settle();
    assert!(state == asked.client.state(), "the checkpoints differ");
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[test]
fn a_damaged_checkpoint_gives_way_to_the_one_before() {
    let place = Place::new();
    let asked = place.start();
    teach(&asked.client, 0..9);
    asked.client.settle();
    asked.client.post("/checkpoint", "", b"").expect(200);
    teach(&asked.client, 9..14);
    asked.client.settle();
    let state = asked.client.state();
    asked.server.stop();
    let newest = place.path().join("checkpoint/14.ckpt");
    let mut bytes = std::fs::read(&newest).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&newest, bytes).unwrap();
    let asked = place.start();
    asked.client.settle();
    assert!(asked.client.state() == state, "the checkpoints differ");
    assert!(place.path().join("checkpoint/14.aside").exists());
}

#[test]
fn a_full_disk_refuses_samples_whole_and_answers_go_on() {
    let place = Place::new();
    // The first checkpoint needs more room than the log is to have.
    place.start().server.stop();
    // No file may have more than 256 blocks: the log reaches that in the middle of a record.
    let process = Process::start(&place.path(), 1_000_000, Some(256));
    let client = process.client.clone();
    let mut accepted = 0;
    let detail = loop {
        let answer = client.teach(accepted);
        if answer.status != 202 {
            break answer.problem(507, "full");
        }
        accepted += 1;
    };
    assert!(detail.to_lowercase().contains("large"), "{detail}");
    client.teach(accepted).problem(507, "full");
    let answer = client.post("/predict", "image/png", &picture(0)).expect(200);
    assert_eq!(answer["answers"].as_array().unwrap().len(), 1);
    client.settle();
    process.kill();
    // With room again it goes on where it stood: nothing half-written, nothing acknowledged lost.
    let asked = place.start();
    assert_eq!(asked.client.settle()["learned"], accepted);
    let line = |event: &str| place.lines().iter().any(|line| line["event"] == event);
    assert!(!line("torn-end-cut-off"), "the failed writes were taken back");
    asked.client.teach(accepted).expect(202);
}

#[test]
fn two_servers_on_one_folder_are_one_too_many() {
    let place = Place::new();
    let _asked = place.start();
    let refused = dpcl_serve::Server::start(place.options()).err().unwrap();
    assert!(matches!(refused, dpcl_serve::Error::Claimed { .. }), "{refused}");
    assert!(refused.hint().unwrap().contains("--follow"));
}

#[test]
fn another_configuration_is_refused() {
    let place = Place::new();
    place.start().server.stop();
    let mut options = place.options();
    let mut learning = crate::place::learning(&place.path());
    let text = crate::place::SMALL.replace("width = 4", "width = 6");
    learning.begin = dpcl_serve::Begin::Config(Box::new(dpcl::Config::from_toml(&text).unwrap()));
    options.role = dpcl_serve::Role::Learner(learning);
    let refused = dpcl_serve::Server::start(options).err().unwrap().to_string();
    assert!(refused.contains("`width`"), "{refused}");
}

#[test]
fn the_checkpoint_is_one_that_python_reads() {
    let place = Place::new();
    let asked = place.start();
    teach(&asked.client, 0..9);
    asked.client.settle();
    let bytes = asked.client.state();
    let checkpoint = dpcl::Checkpoint::from_bytes(&bytes, Path::new("served")).unwrap();
    let learner = checkpoint.learner().unwrap();
    let labels: Vec<String> = learner.labels().iter().map(ToString::to_string).collect();
    assert_eq!((labels, learner.samples()), (vec!["night".into(), "day".into(), "dusk".into()], 9));
    let path = place.path().join("got.ckpt");
    std::fs::write(&path, &bytes).unwrap();
    // The header is plain JSON behind its length, as safetensors has it.
    let script = "import json,sys\nb=open(sys.argv[1],'rb').read()\nn=int.from_bytes(b[:8],'little')\n\
                  h=json.loads(b[8:8+n])\nprint(h['core.model.encoder.stem.conv.weight']['shape'])";
    if let Ok(output) = Command::new("python3").args(["-c", script]).arg(&path).output() {
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "[4, 3, 3, 3]");
    }
}
