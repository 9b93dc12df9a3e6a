//! What `--help` says, at 80 columns.

use crate::support::Place;

#[test]
fn help_of_every_command_fits_80_columns() {
    let place = Place::new();
    for command in [
        "",
        "run",
        "report",
        "reproduce",
        "predict",
        "serve",
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

/// What a shell offers for the last of some words.
fn offered(place: &Place, words: &[&str]) -> Vec<String> {
    let mut program = place.program();
    program
        .env("DPCL_COMPLETE", "bash")
        .env("_CLAP_COMPLETE_INDEX", words.len().to_string())
        .env("_CLAP_IFS", "\n");
    let output = program.arg("--").arg("dpcl").args(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn completions_know_names_and_the_next_one_after_a_comma() {
    let place = Place::new();
    place.write("mine.toml", "");
    for (words, offers) in [
        (&["pres"][..], &["presets"][..]),
        (&["run", "--method", "finet"], &["finetune"]),
        (&["run", "--method", "er,finet"], &["er,finetune"]),
        (&["run", "--method=er,dpcl-l"], &["--method=er,dpcl-literal"]),
        (&["check", "--scenario", "i-"], &["i-blurry"]),
        (&["run", "--scenario", "i-blurry,sup"], &["i-blurry,superclass"]),
        (&["run", "--memory-scheme", "reserv"], &["reservoir"]),
        (&["run", "small-"], &["small-iblurry"]),
        (&["run", "mi"], &["mid", "mine.toml"]),
        (&["presets", "show", "dpcl-l"], &["dpcl-literal"]),
        (&["data", "fetch", "cifar100"], &["cifar100"]),
        (&["list", "scen"], &["scenarios"]),
    ] {
        assert_eq!(offered(&place, words), offers, "{words:?}");
    }
    assert!(offered(&place, &["run", "--method", ""]).len() > 15);
}

#[test]
fn a_script_for_each_shell_asks_the_program() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = place.say(&format!("completions {shell}")).done().stdout;
        assert!(script.contains("DPCL_COMPLETE") && script.contains("dpcl"), "{shell}: {script}");
    }
}
