//! Killing for real: SIGKILL to the program and the processes it started, at random moments, checkpoint writing included.
//! What comes out in the end is, byte for byte, what comes out undisturbed.

#![cfg(unix)]

use std::{
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use crate::support::Place;

const TINY: &str = "run --classes 4 --tasks 2 --per-class 24 --width 4 --updates 1 --memory 20 --eval-period 16 --seeds 1..2 --online";

/// Kills a run of each method at most so often before it is left to finish.
const KILLS: usize = 25;

/// Milliseconds from 10 to 600, spread evenly and the same every time.
fn delays() -> impl Iterator<Item = Duration> {
    let mut state = 12345_u64;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis(10 + (state >> 33) % 590)
    })
}

/// Starts the program and kills it and all it started after a while; says whether it was still there to be killed.
fn killed(place: &Place, arguments: &str, delay: Duration) -> bool {
    let mut program = place.program();
    program.args(arguments.split_whitespace()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = program.process_group(0).spawn().unwrap();
    thread::sleep(delay);
    let alive = child.try_wait().unwrap().is_none();
    Command::new("kill")
        .args(["-KILL", "--", &format!("-{}", child.id())])
        .stderr(Stdio::null())
        .status()
        .unwrap();
    child.wait().unwrap();
    alive
}

/// Every checkpoint under its final name is whole, whenever the process died.
fn all_whole(place: &Place) {
    for run in std::fs::read_dir(place.path().join("runs/killed")).into_iter().flatten().flatten() {
        for file in std::fs::read_dir(run.path().join("checkpoint")).into_iter().flatten().flatten() {
            if file.path().extension().is_some_and(|extension| extension == "ckpt") {
                dpcl::Checkpoint::read(&file.path()).unwrap();
            }
        }
    }
}

#[test]
fn a_run_killed_at_random_moments_leaves_the_record_of_an_undisturbed_one() {
    let place = Place::new();
    for (method, resumed) in [("er", true), ("dpcl", false)] {
        let undisturbed = format!("{TINY} --method {method} --name undisturbed");
        let command = format!("{TINY} --method {method} --name killed --checkpoint-every 1");
        place.say(&undisturbed).done();
        let kills = delays().take(KILLS).filter(|&delay| {
            let alive = killed(&place, &command, delay);
            all_whole(&place);
            alive
        });
        assert!(kills.count() > 0);
        // Both ways to go on are the same.
        let last = if resumed { "run --resume runs/killed --checkpoint-every 5" } else { command.as_str() };
        place.say(last).done();
        for seed in 1..=2 {
            let log = |name: &str| place.read(&format!("runs/{name}/{method}-seed{seed}/events.jsonl"));
            assert_eq!(log("killed"), log("undisturbed"), "{method}-seed{seed}");
            let result = |name: &str| -> serde_json::Value {
                let text = place.read(&format!("runs/{name}/{method}-seed{seed}/result.json"));
                let mut result: serde_json::Value = serde_json::from_str(&text).unwrap();
                // The checksum covers the others, and the command in the configuration's first line.
                for key in ["train_seconds", "eval_seconds", "peak_memory_bytes", "checksum"] {
                    result[key] = 0.into();
                }
                result
            };
            assert_eq!(result("killed"), result("undisturbed"), "{method}-seed{seed}");
        }
    }
}
