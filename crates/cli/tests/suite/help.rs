//! What `--help` says, at 80 columns.

use crate::support::Place;

#[test]
fn help_of_every_command_fits_80_columns() {
    let place = Place::new();
    for command in [
        "",
        "run",
        "report",
        "predict",
        "inspect",
        "list",
        "check",
        "bench",
        "bench step",
        "bench cost",
        "data",
        "data fetch",
        "data inspect",
        "split",
        "split export",
        "split check",
        "presets",
        "presets show",
        "presets copy",
        "completions",
    ] {
        let answer = place.say(&format!("{command} --help")).done();
        for line in answer.stdout.lines() {
            assert!(line.chars().count() <= 80, "{command}: {line}");
        }
        let name = if command.is_empty() { "dpcl".to_owned() } else { command.replace(' ', "-") };
        insta::assert_snapshot!(format!("help-{name}"), answer.stdout);
    }
}

#[test]
fn no_command_shows_the_help_and_is_wrong_usage() {
    let answer = Place::new().say("");
    assert_eq!(answer.code, 2);
    assert_eq!(answer.stdout, "");
    assert!(answer.stderr.contains("Usage: dpcl"), "{}", answer.stderr);
}

#[test]
fn completions_know_every_command_and_the_names_of_methods() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.say(&format!("completions {shell}")).done().stdout;
        for word in ["run", "report", "memory-scheme", "finetune"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
}
