//! What a stranger's names, files and numbers do to the command line: nothing.

use std::fs;

use crate::support::Place;

const TINY: &str =
    "run --method finetune --classes 4 --tasks 2 --per-class 8 --width 4 --updates 1 --threads 1";

#[test]
fn a_name_that_no_line_can_hold_is_refused_before_anything_is_learned() {
    let place = Place::new();
    for name in ["k\u{7f}", "a\nb", "\u{1b}[31m", "c\u{9b}"] {
        let given = TINY.split(' ').chain(["--name", name]);
        let answer = place.call(given);
        assert_eq!(answer.code, 2, "{}", answer.whole());
        assert!(answer.talk().contains("must be a plain name"), "{}", answer.stderr);
        let label = format!(
            "label=\"{}\"",
            name.escape_unicode().to_string().replace("\\u{", "\\U000000").replace('}', "")
        );
        let answer = place.call(TINY.split(' ').chain(["--set", &label]));
        assert_eq!(answer.code, 2, "{}", answer.whole());
    }
    assert!(!place.has("runs"));
}

#[test]
fn a_control_character_elsewhere_in_the_command_leaves_a_record_that_reads() {
    let place = Place::new();
    let out = "o\u{7f}\u{1b}[2J";
    place.call(TINY.split(' ').chain(["--out", out, "--name", "odd"])).done();
    let config = place.read(&format!("{out}/odd/finetune-seed1/config.toml"));
    assert!(config.lines().next().unwrap().contains(r"$'o\x7f\x1b[2J'"), "{config}");
    let again = place.call(TINY.split(' ').chain(["--out", out, "--name", "odd"])).done();
    assert!(again.talk().contains("finished earlier and kept"), "{}", again.stderr);
    assert!(!again.stderr.contains('\u{1b}') && again.stderr.contains(r"\u{1b}[2J"), "{}", again.stderr);
}

#[test]
fn orders_to_a_terminal_in_names_of_classes_are_shown_and_not_given() {
    let place = Place::new();
    let class = "\u{1b}]0;owned\u{7}\u{1b}[31mred";
    fs::create_dir_all(place.path().join("photos/train").join(class)).unwrap();
    fs::create_dir_all(place.path().join("photos/test/other")).unwrap();
    let answer = place.say("run --dataset folder --data-dir photos --name photos");
    assert_ne!(answer.code, 0);
    assert!(answer.stderr.contains("red") || answer.stderr.contains("photos"), "{}", answer.stderr);
    assert!(!answer.stderr.contains('\u{1b}') && !answer.stderr.contains('\u{7}'), "{:?}", answer.stderr);
}

#[test]
fn csv_tells_of_an_altered_record_as_the_other_formats_do() {
    let place = Place::new();
    place.say(&format!("{TINY} --name tiny")).done();
    let column = |place: &Place| {
        let csv = place.say("report runs/tiny --format csv").done().stdout;
        // The first field is quoted because of a comma and a space.
        let csv = csv.replace(", ", " ");
        let mut lines = csv.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        let (head, row) = (lines.next().unwrap(), lines.next().unwrap());
        row[head.iter().position(|name| name == "altered").unwrap()].clone()
    };
    assert_eq!(column(&place), "0");
    let result = place.read("runs/tiny/finetune-seed1/result.json");
    place
        .write("runs/tiny/finetune-seed1/result.json", &result.replace("\"updates\": 32", "\"updates\": 33"));
    assert_eq!(column(&place), "1", "{result}");
}

#[test]
fn training_that_runs_away_is_a_failure_that_names_its_step() {
    let place = Place::new();
    let answer = place.say(&format!("{TINY} --name away --set lr=1e10"));
    assert_eq!(answer.code, 1, "{}", answer.whole());
    assert!(answer.talk().contains("training step"), "{}", answer.stderr);
    assert!(answer.talk().contains("lower `lr`"), "{}", answer.stderr);
    assert!(!place.has("runs/away/finetune-seed1/result.json"));
    assert!(place.read("runs/away/finetune-seed1/error.txt").contains("training step"));
}

#[test]
fn a_configuration_of_megabytes_is_refused_without_reading_it() {
    let place = Place::new();
    place.write("long.toml", &"a = [[[[[[[[]]]]]]]]\n".repeat(200_000));
    let answer = place.say("run long.toml");
    assert_eq!(answer.code, 2, "{}", answer.whole());
    assert!(answer.talk().contains("more than 1048576 bytes are no configuration"), "{}", answer.stderr);
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_waited_for() {
    let place = Place::new();
    place.say(&format!("{TINY} --name tiny")).done();
    let pipe = place.path().join("pipe.png");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let checkpoint = "runs/tiny/finetune-seed1/checkpoint/32.ckpt";
    let answer = place.say(&format!("predict --checkpoint {checkpoint} pipe.png"));
    assert_eq!(answer.code, 1, "{}", answer.whole());
    assert!(answer.talk().contains("is no ordinary file"), "{}", answer.stderr);
}
