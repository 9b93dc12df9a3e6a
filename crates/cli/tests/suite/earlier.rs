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
    ("dpcl-pfi", "7fd3f68fd8b58ee74f2a157b021df5fe"),
    ("dpcl-literal", "f56803a37567422813aef2964cd9eda9"),
    ("er", "a925bfef68d7544eb4f86031eabf73c6"),
    ("er-cpr", "3884d2dff688342b169239fdb6cc7bc9"),
    ("ewc++", "694519957d4e135d09b8e917734546a7"),
    ("finetune", "bb9a886a2fbb0f65929ca69f5b033d89"),
    ("gdumb", "2a610eab631167477ae038b9a4d8d4aa"),
    ("joint", "a901aefa7c916d43ec27e26ab0ae0800"),
    ("mir", "0914c169b1fe4644ca01ebcb5fc6aebe"),
];

/// The same of longer runs of a wider network with the AVX2 kernels: `--first-tasks 3 --per-class 40 --seeds 3`.
const AVX2_DIGESTS: [(&str, &str); 12] = [
    ("bic", "1848fc3085f51c8be8926a829aa685ec"),
    ("clib", "16e0ecd397157b9bb0d6e9c4453fbbcc"),
    ("der++", "6c3821c5f09c1c0f42280aea83a922c4"),
    ("dpcl-pfi", "d5dbb9d59f11bdda9ccf3c95fc1c36e4"),
    ("dpcl-literal", "a1034d3a2e09abeb6fbd2021bce8942b"),
    ("er", "795a4f17934a780bbc24f6806c2c9b3a"),
    ("er-cpr", "a7bf377431705e4257a6e13f4725e9c1"),
    ("ewc++", "9f41f101ca58d1852cd317cc93386c7b"),
    ("finetune", "1269a998eaa59f27dd2524b2eec9b41d"),
    ("gdumb", "02fb5c38b70e07a9e0ec729833f01725"),
    ("joint", "124b0c69b2a799929b5fad5d72acdbbf"),
    ("mir", "988b32d0053450c4c55c36f0999188f4"),
];

/// Runs an earlier version was cut off in, with all the events it would have written.
const RUNS: [&str; 7] = [
    "bic-seed3",
    "clib-seed3",
    "der++-seed3",
    "dpcl-literal-seed3",
    "ewc++-seed3",
    "gdumb-seed3",
    "joint-seed3",
];

/// Where they lie.
const EARLIER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/earlier");

/// Runs the methods of a table and compares their events with it.
fn compare(digests: [(&str, &str); 12], isa: &str, arguments: &str) {
    let place = Place::new();
    let methods = digests.map(|(method, _)| method).join(",");
    let mut program = place.program();
    program.env("DPCL_ISA", isa).args(["run", "--seeds", "3", "--name", "all", "--method", &methods]);
    let output = program.args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let digest = |method: &str| {
        let events = fs::read(place.path().join(format!("runs/all/{method}-seed3/events.jsonl"))).unwrap();
        Md5::digest(events).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let found = digests.map(|(method, _)| (method, digest(method)));
    assert_eq!(found, digests.map(|(method, digest)| (method, digest.to_owned())));
}

#[test]
fn every_method_learns_what_it_always_learned() {
    compare(DIGESTS, "portable", "--first-tasks 2 --per-class 10 --set width=4");
}

#[test]
#[ignore = "takes minutes and needs AVX2: `make digests`"]
fn every_method_learns_what_it_always_learned_with_avx2() {
    compare(AVX2_DIGESTS, "avx2", "--first-tasks 3 --per-class 40");
}

#[test]
fn runs_of_an_earlier_version_go_on_where_they_were() {
    for run in RUNS {
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
    for run in RUNS {
        let learner = Learner::load(format!("{EARLIER}/{run}/checkpoint/25.ckpt")).unwrap();
        assert_eq!((learner.samples(), learner.labels().len()), (25, 4), "{run}");
        let full = learner.memory().is_none_or(|memory| memory.slots().len() == memory.capacity());
        assert!(full, "{run}");
    }
}
