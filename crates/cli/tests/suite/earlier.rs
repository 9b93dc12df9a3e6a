//! What earlier versions of the program did: every method still learns the same, byte for byte, and runs and learners
//! that an earlier version left behind are taken up.
//!
//! The records were made with the portable kernels, which every machine has. Another C library may round `exp` or `ln`
//! otherwise; then all digests differ at once.

use std::fs;

use dpcl::Learner;
use md5::{Digest, Md5};

use crate::support::Place;

/// MD5 of `events.jsonl` of each method, as the program of November 2026 wrote it.
const DIGESTS: [(&str, &str); 12] = [
    ("bic", "f26942fd0e58621aa928bfa935c84dd0"),
    ("clib", "fae014720b632d8c05e39799f1474809"),
    ("der++", "0548737bf59cba4322293f84f2db1360"),
    ("dpcl", "7fd3f68fd8b58ee74f2a157b021df5fe"),
    ("dpcl-literal", "f56803a37567422813aef2964cd9eda9"),
    ("er", "a925bfef68d7544eb4f86031eabf73c6"),
    ("er-cpr", "3884d2dff688342b169239fdb6cc7bc9"),
    ("ewc++", "694519957d4e135d09b8e917734546a7"),
    ("finetune", "bb9a886a2fbb0f65929ca69f5b033d89"),
    ("gdumb", "2a610eab631167477ae038b9a4d8d4aa"),
    ("joint", "a901aefa7c916d43ec27e26ab0ae0800"),
    ("mir", "0914c169b1fe4644ca01ebcb5fc6aebe"),
];

/// Runs an earlier version was cut off in, with all the events it would have written.
const EARLIER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/earlier");

#[test]
fn every_method_learns_what_it_always_learned() {
    let place = Place::new();
    let methods = DIGESTS.map(|(method, _)| method).join(",");
    let arguments = "run --first-tasks 2 --per-class 10 --set width=4 --seeds 3 --name all --method";
    let mut program = place.program();
    program.env("DPCL_ISA", "portable").args(arguments.split(' ')).arg(methods);
    let output = program.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let digest = |method: &str| {
        let events = fs::read(place.path().join(format!("runs/all/{method}-seed3/events.jsonl"))).unwrap();
        Md5::digest(events).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let found = DIGESTS.map(|(method, _)| (method, digest(method)));
    assert_eq!(found, DIGESTS.map(|(method, digest)| (method, digest.to_owned())));
}

#[test]
fn runs_of_an_earlier_version_go_on_where_they_were() {
    for run in ["bic-seed3", "dpcl-literal-seed3"] {
        let (place, earlier) = (Place::new(), format!("{EARLIER}/{run}"));
        let folder = place.path().join("runs").join(run);
        fs::create_dir_all(folder.join("checkpoint")).unwrap();
        for file in ["config.toml", "events.jsonl", "checkpoint/25.ckpt"] {
            fs::copy(format!("{earlier}/{file}"), folder.join(file)).unwrap();
        }
        let output = place.program().env("DPCL_ISA", "portable").args(["run", "--resume", "runs"]).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{run}: {}", String::from_utf8_lossy(&output.stderr));
        let events = |path: &std::path::Path| fs::read_to_string(path).unwrap();
        let expected = events(format!("{earlier}/events.jsonl").as_ref());
        assert_eq!(events(&folder.join("events.jsonl")), expected, "{run}");
    }
}

#[test]
fn learners_of_an_earlier_version_are_read() {
    for run in ["bic-seed3", "dpcl-literal-seed3"] {
        let learner = Learner::load(format!("{EARLIER}/{run}/checkpoint/25.ckpt")).unwrap();
        assert_eq!((learner.samples(), learner.labels().len()), (25, 4), "{run}");
        assert_eq!(learner.memory().unwrap().slots().len(), learner.memory().unwrap().capacity(), "{run}");
    }
}
