//! Stopping from outside: records stay whole, a checkpoint is left, the exit code says so, and the same command goes on.

#![cfg(unix)]

use std::{
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::support::{Answer, Place};

const LONG: &str = "run --method er --name long --updates 40 --width 4 --per-class 50";

fn wait_for(place: &Place, file: &str, child: &mut Child) {
    let begun = Instant::now();
    while !place.has(file) {
        assert!(child.try_wait().unwrap().is_none(), "the program ended early");
        assert!(begun.elapsed() < Duration::from_secs(60), "{file} never came");
        thread::sleep(Duration::from_millis(20));
    }
}

fn stopped_by(signal: &str) -> (Place, Answer) {
    let place = Place::new();
    let mut child = place
        .program()
        .args(LONG.split_whitespace())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for(&place, "runs/long/er-seed1/events.jsonl", &mut child);
    let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let answer = Answer::of(&child.wait_with_output().unwrap());
    (place, answer)
}

#[test]
fn a_signal_ends_the_grid_with_130_and_advice() {
    for signal in ["-INT", "-TERM"] {
        let (place, answer) = stopped_by(signal);
        assert_eq!(answer.code, 130, "{}", answer.whole());
        assert!(answer.talk().contains("the same command keeps finished runs"), "{}", answer.stderr);
        assert!(!place.has("runs/long/er-seed1/result.json"));
        assert!(!place.has("runs/long/er-seed1/error.txt"));
        let left = std::fs::read_dir(place.path().join("runs/long/er-seed1/checkpoint")).unwrap().count();
        assert_eq!(left, 1, "a stopped run leaves a checkpoint");
    }
}

#[test]
fn a_run_whose_watcher_dies_stops_by_itself_and_can_be_started_again() {
    let place = Place::new();
    let mut child = place.program().args(LONG.split_whitespace()).stderr(Stdio::null()).spawn().unwrap();
    wait_for(&place, "runs/long/er-seed1/events.jsonl", &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    let begun = Instant::now();
    // The orphan holds the record until it has seen that nobody listens.
    let quick = "run --method er --name long --updates 40 --width 4 --per-class 50 --set memory=7";
    let refused = place.say(quick);
    assert_eq!(refused.code, 2, "{}", refused.whole());
    loop {
        let lock = std::fs::File::open(place.path().join("runs/long/er-seed1/lock")).unwrap();
        if lock.try_lock().is_ok() {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the run goes on without a watcher");
        thread::sleep(Duration::from_millis(50));
    }
    assert!(!place.has("runs/long/er-seed1/result.json"));
}
