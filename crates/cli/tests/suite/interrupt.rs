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

/// Waits until nobody holds a run's lock; says how long that took.
fn freed(place: &Place, run: &str) -> Duration {
    let begun = Instant::now();
    loop {
        let lock = std::fs::File::open(place.path().join(run).join("lock")).unwrap();
        if lock.try_lock().is_ok() {
            return begun.elapsed();
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the run goes on without a watcher");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_same_command_waits_for_a_run_whose_watcher_was_killed_and_goes_on_from_its_checkpoint() {
    let place = Place::new();
    // Two runs at once; much to evaluate, so that the watcher dies in the middle of it.
    let command = "run --method er --seeds 1..2 --name orphans --updates 1 --width 4 --per-class 12 --eval-period 2 \
                   --memory 20 --checkpoint-every 1000000 --threads 1 --jobs 2";
    let mut child = place.program().args(command.split_whitespace()).stderr(Stdio::null()).spawn().unwrap();
    let log = |seed: u32| format!("runs/orphans/er-seed{seed}/events.jsonl");
    let learned = |seed: u32| place.has(&log(seed)) && place.read(&log(seed)).contains("evaluation");
    let begun = Instant::now();
    while !(learned(1) && learned(2)) {
        assert!(begun.elapsed() < Duration::from_secs(60), "nothing was evaluated");
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let answer = place.say(command).done();
    let waited = answer.talk().contains("another process holds");
    for seed in 1..=2 {
        let run = format!("runs/orphans/er-seed{seed}");
        assert!(
            !place.has(&format!("{run}/events.interrupted-1.jsonl")),
            "it went on where the orphan stopped"
        );
        assert!(freed(&place, &run) < Duration::from_secs(1));
    }
    let whole = command.replace("orphans", "whole");
    place.say(&whole).done();
    for seed in 1..=2 {
        let whole = place.read(&format!("runs/whole/er-seed{seed}/events.jsonl"));
        assert_eq!(place.read(&log(seed)), whole, "seed {seed}, waited: {waited}");
    }
}

#[test]
fn a_folder_that_stays_taken_is_refused_after_a_while() {
    let place = Place::new();
    let run = "runs/taken/er-seed1";
    std::fs::create_dir_all(place.path().join(run)).unwrap();
    let lock = std::fs::File::create(place.path().join(run).join("lock")).unwrap();
    lock.lock().unwrap();
    let begun = Instant::now();
    let answer = place.say("run --method er --name taken --width 4 --per-class 12 --updates 1");
    assert_eq!(answer.code, 1, "{}", answer.whole());
    assert!(begun.elapsed() > Duration::from_secs(5));
    assert!(answer.talk().contains("waiting up to 10 s for it to end"), "{}", answer.stderr);
    assert!(answer.talk().contains("another process is making this run"), "{}", answer.stderr);
}

#[test]
fn a_run_whose_watcher_dies_stops_by_itself_and_can_be_started_again() {
    let place = Place::new();
    let mut child = place.program().args(LONG.split_whitespace()).stderr(Stdio::null()).spawn().unwrap();
    wait_for(&place, "runs/long/er-seed1/events.jsonl", &mut child);
    child.kill().unwrap();
    child.wait().unwrap();
    // The orphan holds the record until it has seen that nobody listens.
    let quick = "run --method er --name long --updates 40 --width 4 --per-class 50 --set memory=7";
    let refused = place.say(quick);
    assert_eq!(refused.code, 2, "{}", refused.whole());
    freed(&place, "runs/long/er-seed1");
    assert!(!place.has("runs/long/er-seed1/result.json"));
}
