//! Going on with what is on record, and taking a learner further, as a person would ask for it.

#![cfg(unix)]

use crate::support::Place;

const TINY: &str = "--classes 4 --tasks 2 --per-class 16 --width 4 --updates 1 --memory 20 --eval-period 16";

/// Makes a finished run into one that was cut off at its last checkpoint.
fn unfinish(place: &Place, run: &str) {
    std::fs::remove_file(place.path().join(run).join("result.json")).unwrap();
}

#[test]
fn a_grid_goes_on_from_its_record_alone() {
    let place = Place::new();
    place.say(&format!("run {TINY} --method er,finetune --name grid")).done();
    let events = place.read("runs/grid/er-seed1/events.jsonl");
    unfinish(&place, "runs/grid/er-seed1");
    let answer = place.say("run --resume runs/grid").done();
    assert!(
        answer.talk().contains("finetune-seed1: ACC") && answer.talk().contains("kept"),
        "{}",
        answer.stderr
    );
    assert_eq!(place.read("runs/grid/er-seed1/events.jsonl"), events);
    assert!(place.has("runs/grid/er-seed1/result.json"));

    // One run that cannot go on does not stop the other.
    unfinish(&place, "runs/grid/er-seed1");
    unfinish(&place, "runs/grid/finetune-seed1");
    let config = place.read("runs/grid/finetune-seed1/config.toml");
    place.write("runs/grid/finetune-seed1/config.toml", &config.replace("seed = 1", "seed = 2"));
    let answer = place.say("run --resume runs/grid");
    assert_eq!(answer.code, 1, "{}", answer.whole());
    assert!(answer.talk().contains("key `seed` differs"), "{}", answer.stderr);
    assert!(place.has("runs/grid/er-seed1/result.json"));

    unfinish(&place, "runs/grid/er-seed1");
    place.say("run --resume runs/grid/er-seed1 --threads 1 --checkpoint-every 8").done();
    assert_eq!(place.read("runs/grid/er-seed1/events.jsonl"), events);
}

#[test]
fn what_cannot_be_resumed_is_told() {
    let place = Place::new();
    std::fs::create_dir(place.path().join("empty")).unwrap();
    let answer = place.say("run --resume empty");
    assert_ne!(answer.code, 0);
    assert!(answer.talk().contains("empty"), "{}", answer.stderr);
    let answer = place.say("run --resume empty --memory 3");
    assert_eq!(answer.code, 2);
    assert!(answer.talk().contains("`memory` cannot be given with `--resume`"), "{}", answer.stderr);
    let answer = place.say("run --checkpoint-every soon");
    assert_eq!(answer.code, 2);
    assert!(answer.talk().contains("neither a number of samples"), "{}", answer.stderr);
    place.write("no.ckpt", "not a checkpoint, but a text that is long enough to be taken for one");
    let answer = place.say("run --from no.ckpt");
    assert_eq!(answer.code, 1);
    assert!(answer.talk().contains("no.ckpt is not a checkpoint"), "{}", answer.stderr);
    assert!(answer.talk().contains("hint: "), "{}", answer.stderr);
}

#[test]
fn a_checkpoint_is_taken_further() {
    let place = Place::new();
    place.say(&format!("run {TINY} --method er --name first")).done();
    let from = "runs/first/er-seed1/checkpoint/64.ckpt";
    assert!(place.has(from));
    let command = format!("run --from {from} --classes 6 --tasks 1 --per-class 16 --name second");
    place.say(&command).done();
    let config = place.read("runs/second/er-seed1/config.toml");
    assert!(
        config.contains(&format!("from = \"{from}\"")) && config.contains("from_checksum = "),
        "{config}"
    );
    assert!(config.contains("memory = 20") && config.contains("width = 4"), "{config}");
    let kept = place.say(&command).done();
    assert!(kept.talk().contains("finished earlier and kept"), "{}", kept.stderr);
}
