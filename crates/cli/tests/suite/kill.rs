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

/// Kills a command again and again, lets it finish, and compares its runs with those of the same command undisturbed.
/// Both end with `--name` and a name. Says how many kills met a living process.
fn survives(place: &Place, command: &str, last: Option<&str>, runs: &[String], kills: usize) -> usize {
    place.say(&format!("{command} --name undisturbed")).done();
    let killing = format!("{command} --name killed --checkpoint-every 1");
    let met = delays().take(kills).filter(|&delay| {
        let alive = killed(place, &killing, delay);
        all_whole(place);
        alive
    });
    let met = met.count();
    assert!(met > 0, "{command}");
    place.say(last.unwrap_or(&killing)).done();
    for run in runs {
        let log = |name: &str| place.read(&format!("runs/{name}/{run}/events.jsonl"));
        assert_eq!(log("killed"), log("undisturbed"), "{run}");
        let result = |name: &str| -> serde_json::Value {
            let text = place.read(&format!("runs/{name}/{run}/result.json"));
            let mut result: serde_json::Value = serde_json::from_str(&text).unwrap();
            // The checksum covers the others, and the command in the configuration's first line.
            for key in ["train_seconds", "eval_seconds", "peak_memory_bytes", "checksum"] {
                result[key] = 0.into();
            }
            result
        };
        assert_eq!(result("killed"), result("undisturbed"), "{run}");
    }
    met
}

#[test]
fn a_run_killed_at_random_moments_leaves_the_record_of_an_undisturbed_one() {
    for (method, resumed) in [("er", true), ("dpcl", false)] {
        let place = Place::new();
        // Both ways to go on are the same.
        let last = resumed.then_some("run --resume runs/killed --checkpoint-every 5");
        let runs = [1, 2].map(|seed| format!("{method}-seed{seed}"));
        survives(&place, &format!("{TINY} --method {method}"), last, &runs, KILLS);
    }
}

#[test]
fn several_runs_at_once_on_a_folder_of_images_are_killed_together() {
    let place = Place::new();
    let set = dpcl::data::open("fashion-mini", None, None).unwrap();
    for (position, &label) in set.train.labels.iter().enumerate().filter(|(_, label)| **label < 3).step_by(9)
    {
        for half in ["train", "test"] {
            let folder = place.path().join(format!("photos/{half}/class{label}"));
            std::fs::create_dir_all(&folder).unwrap();
            let image = dpcl::data::png(&set.train.images.image(position).unwrap());
            std::fs::write(folder.join(format!("{position}.png")), image).unwrap();
        }
    }
    let command = "run --dataset folder --data-dir photos --size 16 --tasks 3 --width 4 --updates 1 --memory 10 \
                   --eval-period 7 --method er,finetune,der++ --jobs 3 --threads 1";
    let runs = ["er", "finetune", "der++"].map(|method| format!("{method}-seed1"));
    survives(&place, command, None, &runs, 12);
}

#[test]
fn a_learner_that_is_taken_further_is_killed() {
    let place = Place::new();
    place.say(&format!("{TINY} --method er --name first")).done();
    let command = "run --from runs/first/er-seed1/checkpoint/96.ckpt --classes 6 --tasks 2 --per-class 24 --eval-period 8 \
                   --seeds 3..4";
    let runs = [3, 4].map(|seed| format!("er-seed{seed}"));
    survives(&place, command, None, &runs, 12);
}

/// Checkpoint files of a run by name.
fn checkpoints(place: &Place, run: &str) -> Vec<String> {
    let files = std::fs::read_dir(place.path().join(run).join("checkpoint")).into_iter().flatten().flatten();
    files.map(|file| file.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn a_method_that_puts_its_learning_off_is_killed_in_it_and_does_not_learn_all_of_it_again() {
    let place = Place::new();
    let run = "run --method joint --classes 2 --tasks 1 --per-class 8 --width 4 --updates 60 --eval-period 0 --threads 1";
    place.say(&format!("{run} --name undisturbed")).done();
    let command = format!("{run} --name killed --checkpoint-every 0.05s");
    let folder = "runs/killed/joint-seed1";
    let put_off = |name: &String| name.ends_with(".ckpt") && name.contains('-');
    let mut met = 0;
    let mut steps_before = 0;
    for delay in delays().take(40) {
        killed(&place, &command, Duration::from_millis(300) + delay);
        all_whole(&place);
        let steps = checkpoints(&place, folder)
            .into_iter()
            .filter(put_off)
            .filter_map(|name| name.trim_end_matches(".ckpt").split_once('-')?.1.parse::<u64>().ok());
        let steps = steps.max().unwrap_or(0);
        assert!(steps >= steps_before, "what was learned is never learned again from the start");
        met += usize::from(steps > steps_before);
        steps_before = steps;
        if place.has(&format!("{folder}/result.json")) {
            break;
        }
    }
    assert!(met > 0, "no kill met the training that is put off");
    place.say(&command).done();
    let log = |name: &str| place.read(&format!("runs/{name}/joint-seed1/events.jsonl"));
    assert_eq!(log("killed"), log("undisturbed"));
}
