//! Grids over values of keys, and a grid whose folder holds another one.

use crate::support::{Answer, Place};

/// A run of about a second.
const TINY: &str = "--classes 4 --tasks 2 --per-class 8 --width 4 --updates 1 --eval-period 0";

fn titles(answer: &Answer) -> Vec<String> {
    let heading = |line: &str| line.strip_prefix("# ").map(str::to_owned);
    answer.stdout.lines().filter_map(heading).collect()
}

#[test]
fn values_with_commas_make_a_grid_whose_labels_tell_them_apart() {
    let place = Place::new();
    let check = |rest: &str| place.say(&format!("check --method er {rest}")).done();
    let shown = check("--memory 50,100 --set lr=0.01,0.001");
    let expected = [
        "er-memory=50-lr=0.01-seed1",
        "er-memory=50-lr=0.001-seed1",
        "er-memory=100-lr=0.01-seed1",
        "er-memory=100-lr=0.001-seed1",
    ];
    assert_eq!(titles(&shown), expected);
    let configs: Vec<toml::Table> = shown
        .stdout
        .split("# ")
        .filter(|text| !text.is_empty())
        .map(|text| text.split_once('\n').unwrap().1.parse().unwrap())
        .collect();
    let told: Vec<(i64, f64)> = configs
        .iter()
        .map(|config| (config["memory"].as_integer().unwrap(), config["lr"].as_float().unwrap()))
        .collect();
    assert_eq!(told, [(50, 0.01), (50, 0.001), (100, 0.01), (100, 0.001)]);
    assert!(shown.talk().contains("in all runs 4 updates"), "{}", shown.stderr);
    assert_eq!(
        titles(&check("--memory 50,100 --set memory=30")),
        ["er-seed1"],
        "an assignment has the last word"
    );
    assert_eq!(titles(&check("--n 0,50 --m 10")), ["er-n=0-seed1", "er-n=50-seed1"]);
    assert_eq!(
        titles(&check("--scenario blurry,disjoint")),
        ["er-scenario=blurry-seed1", "er-scenario=disjoint-seed1"]
    );
}

#[test]
fn lists_are_no_sweeps_and_methods_that_a_value_does_not_touch_run_once() {
    let place = Place::new();
    let shown = place.say("check --method er,dpcl --set dpcl.layers=[0,1]").done();
    assert_eq!(titles(&shown), ["er-seed1", "dpcl-seed1"]);
    let shown = place.say("check --method finetune,er,dpcl --memory 50,100 --set dpcl.heads=2,3").done();
    let dpcl = ["50-heads=2", "50-heads=3", "100-heads=2", "100-heads=3"]
        .map(|rest| format!("dpcl-memory={rest}-seed1"));
    let others = ["finetune-seed1", "er-memory=50-seed1", "er-memory=100-seed1"].map(str::to_owned);
    assert_eq!(titles(&shown), [&others[..], &dpcl].concat());
    for (wrong, words) in [
        ("--memory 50,50", "memory=50 is given twice"),
        ("--memory 50,x", "must be a whole number"),
        ("--set lr=0.1,-1", "`lr`: must be above 0"),
    ] {
        let refused = place.say(&format!("check --method er {wrong}"));
        assert_eq!(refused.code, 2, "{}", refused.whole());
        assert!(refused.talk().contains(words), "{wrong}: {}", refused.stderr);
    }
    let refused = place.say("split export --out splits --classes 4,6");
    assert_eq!(refused.code, 2, "{}", refused.whole());
    assert!(!place.has("splits"));
}

#[test]
fn a_sweep_is_run_recorded_and_shown_row_by_row() {
    let place = Place::new();
    let answer = place.say(&format!("run {TINY} --method er --memory 10,20 --name swept")).done();
    for memory in [10, 20] {
        assert!(place.has(&format!("runs/swept/er-memory={memory}-seed1/result.json")), "{}", answer.stderr);
        assert!(answer.stdout.contains(&format!("er-memory={memory} ")), "{}", answer.stdout);
    }
}

#[test]
fn a_second_experiment_is_told_what_differs_and_what_to_type() {
    let place = Place::new();
    place.say(&format!("run {TINY} --method er --memory 10 --threads 1")).done();
    let second = place.say(&format!("run {TINY} --method er --memory 20 --set lr=0.001 --threads 1"));
    assert_eq!(second.code, 2, "{}", second.whole());
    let talk = second.talk();
    for words in [
        "runs/default holds a run of another configuration (er-seed1)",
        "`memory` is 10 there and 20 here",
        "`lr` is 0.0003 there and 0.001 here",
        "--name lr-0.001-memory-20",
    ] {
        assert!(talk.contains(words), "{words}: {talk}");
    }
    let command = second.stderr.lines().find_map(|line| line.trim_start().strip_prefix("dpcl run ")).unwrap();
    assert!(command.contains("--threads 1 --name lr-0.001"), "a command is one line: {command}");
    place.say(&format!("run {command}")).done();
    assert!(place.has("runs/lr-0.001-memory-20/er-seed1/result.json"));
    let checked = place.say(&format!("check {TINY} --method er --memory 30")).done();
    assert!(checked.talk().contains("`memory` is 10 there and 30 here"), "{}", checked.stderr);
    assert!(
        checked.talk().contains("dpcl run ") && checked.talk().contains("--name memory-30"),
        "{}",
        checked.stderr
    );
}

#[test]
fn time_and_updates_are_told_before_anything_starts() {
    let place = Place::new();
    let flags =
        format!("{TINY} --method finetune,er --seeds 1..2 --jobs 1 --threads 1 --out records --name timed");
    let checked = place.say(&format!("check {flags}")).done().talk();
    // 32 samples in buffers of eight, a step a sample: 32 updates a run.
    for words in ["runs 4 updates 128 ", "time about ", "with 1 at a time", "records records/timed"] {
        assert!(checked.contains(words), "{words}: {checked}");
    }
    assert!(!place.has("records"), "a check leaves nothing behind");
    let run = place.say(&format!("run {flags}")).done().talk();
    assert!(run.contains("128 updates to make, about "), "{run}");
    let again = place.say(&format!("run {flags}")).done().talk();
    assert!(!again.contains("updates to make"), "nothing is left to make: {again}");
    let resumed = place.say("check --resume records/timed").done().talk();
    assert!(resumed.contains("runs 0, 4 more on record already"), "{resumed}");
}

#[test]
fn a_check_takes_every_flag_of_a_run() {
    let place = Place::new();
    let flags = |command: &str| -> Vec<String> {
        let help = place.say(&format!("{command} --help")).done().stdout;
        let (_, options) = help.split_once("Options:").unwrap();
        let words = options.split_whitespace().filter(|word| word.starts_with("--") && word.len() > 2);
        let mut flags: Vec<String> = words.map(|word| word.trim_end_matches(',').to_owned()).collect();
        flags.sort();
        flags.dedup();
        flags
    };
    let checked = flags("check");
    for flag in flags("run") {
        assert!(checked.contains(&flag) || flag.ends_with("=K"), "{flag}: {checked:?}");
    }
}

#[test]
fn other_mistakes_are_told_before_a_folder_that_is_taken() {
    let place = Place::new();
    place.say(&format!("run {TINY} --method er --memory 10 --threads 1")).done();
    for (wrong, words) in [
        ("--dataset cifar10", "no cifar10 data found"),
        ("--classes 4 --tasks 5", "configuration key `tasks`"),
        ("--split nowhere", "there is no such split file"),
    ] {
        let refused = place.say(&format!("run --method er {wrong}"));
        assert_ne!(refused.code, 0);
        assert!(refused.talk().contains(words), "{wrong}: {}", refused.stderr);
        assert!(!refused.talk().contains("another configuration"), "{wrong}: {}", refused.stderr);
    }
}
