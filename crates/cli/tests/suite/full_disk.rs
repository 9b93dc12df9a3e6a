//! Disks that are really full: a file system of a few hundred kilobytes, and a limit on the length of files. What is told
//! names the file and what is safe, and with room again the run goes on to the same record.

#![cfg(unix)]

use std::{path::Path, process::Command, sync::atomic::AtomicBool};

use dpcl::{
    Config, Error, Run,
    folder::{Every, RunFolder},
    run::Recording,
};

use crate::support::{Answer, Place};

const KEYS: &str = "--method finetune --classes 4 --tasks 2 --per-class 24 --width 4 --updates 1 --eval-period 2 --threads 1";

/// Calls the program in a shell, after what is to hold for it.
fn after(place: &Place, before: &str, arguments: &str) -> Answer {
    let program = place.program();
    let mut shell = Command::new("bash");
    for (name, value) in program.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    let script = format!("{before}; exec {} {arguments}", env!("CARGO_BIN_EXE_dpcl"));
    Answer::of(&shell.current_dir(place.path()).args(["-c", &script]).output().unwrap())
}

/// Stops a begun run after some samples, which leaves a checkpoint.
fn stopped(folder: &Path, at: u64) {
    let config = std::fs::read_to_string(folder.join("config.toml")).unwrap();
    let run = Run::open(&Config::from_toml(&config).unwrap()).unwrap();
    for file in ["result.json", "events.jsonl"] {
        std::fs::remove_file(folder.join(file)).unwrap();
    }
    std::fs::remove_dir_all(folder.join("checkpoint")).unwrap();
    let stop = AtomicBool::new(false);
    let folder = RunFolder::at(folder);
    let outcome = run.record(Recording {
        folder: &folder,
        claim: &folder.claim().unwrap(),
        command: None,
        every: Every::default(),
        progress: &mut |progress| stop.store(progress.samples >= at, std::sync::atomic::Ordering::Relaxed),
        notice: &mut |_| {},
        stop: &stop,
    });
    assert!(matches!(outcome, Err(Error::Interrupted)));
}

#[test]
fn a_log_that_may_not_grow_ends_the_run_and_names_the_checkpoint_before_it() {
    let place = Place::new();
    place.say(&format!("run {KEYS} --name limited")).done();
    let run = "runs/limited/finetune-seed1";
    let whole = place.read(&format!("{run}/events.jsonl"));
    stopped(&place.path().join(run), 40);
    let kilobytes = place.read(&format!("{run}/events.jsonl")).len() / 1024 + 2;
    assert!(whole.len() > (kilobytes + 1) * 1024, "the log goes on beyond the limit");
    let limit = format!("trap '' XFSZ; ulimit -f {kilobytes}");
    let answer = after(&place, &limit, "run --resume runs/limited");
    assert_eq!(answer.code, 1, "{}", answer.whole());
    let talk = answer.talk();
    assert!(talk.contains("cannot write the event log") && talk.contains("events.jsonl"), "{talk}");
    assert!(talk.contains("checkpoint/40.ckpt is intact and the run goes on from there"), "{talk}");
    place.say("run --resume runs/limited").done();
    assert_eq!(place.read(&format!("{run}/events.jsonl")), whole);
}

#[test]
fn few_files_and_little_memory_end_a_run_with_an_error_and_no_damage() {
    let place = Place::new();
    place.say(&format!("run {KEYS} --name whole")).done();
    let whole = place.read("runs/whole/finetune-seed1/events.jsonl");
    for (number, limit) in ["ulimit -n 8", "ulimit -n 12", "ulimit -n 16"].iter().enumerate() {
        let answer = after(&place, limit, &format!("run {KEYS} --name few-{number}"));
        assert!([0, 1].contains(&answer.code), "{limit}: {}", answer.whole());
        assert!(!answer.stderr.contains("panicked"), "{limit}: {}", answer.stderr);
        place.say(&format!("run {KEYS} --name few-{number}")).done();
        assert_eq!(place.read(&format!("runs/few-{number}/finetune-seed1/events.jsonl")), whole);
    }
}

#[test]
#[ignore = "mounts file systems; `make faults` runs it"]
fn a_run_on_a_file_system_that_is_full_goes_on_elsewhere() {
    let place = Place::new();
    place.say(&format!("run {KEYS} --name whole")).done();
    let whole = place.read("runs/whole/finetune-seed1/events.jsonl");
    let (mut full, mut took) = (0, 0);
    for kilobytes in (4..=6000).step_by(150) {
        let own = format!("rescued-{kilobytes}");
        // The file system is gone with the shell: what is on it is copied out first.
        let script = format!(
            "mkdir disk {own}; mount -t tmpfs -o size={kilobytes}k tmpfs disk || exit 77; {} run {KEYS} --out disk --name r \
             --checkpoint-every 20; code=$?; cp -a disk/. {own}/; exit $code",
            env!("CARGO_BIN_EXE_dpcl")
        );
        let mut shell = Command::new("unshare");
        let output = shell.current_dir(place.path()).args(["-rm", "bash", "-c", &script]).output().unwrap();
        std::fs::remove_dir(place.path().join("disk")).unwrap();
        let answer = Answer::of(&output);
        assert!([0, 1].contains(&answer.code), "{kilobytes} kB: {}", answer.whole());
        assert!(!answer.stderr.contains("panicked"), "{kilobytes} kB: {}", answer.stderr);
        if answer.code == 0 {
            took += 1;
        } else {
            full += 1;
            assert!(answer.talk().contains("No space left on device"), "{kilobytes} kB: {}", answer.whole());
            assert!(answer.talk().contains("disk/"), "{kilobytes} kB: {}", answer.whole());
        }
        // The same command where there is room.
        place.say(&format!("run {KEYS} --out {own} --name r")).done();
        assert_eq!(place.read(&format!("{own}/r/finetune-seed1/events.jsonl")), whole, "{kilobytes} kB");
    }
    assert!(full > 10 && took > 0, "{full} full, {took} with room enough");
}
