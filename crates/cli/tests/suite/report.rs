//! `dpcl report`: what it compares, on real records.

use std::path::{Path, PathBuf};

use crate::support::{Answer, Place};

/// Folders of runs of the small protocol.
fn runs(names: &[&str]) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results/small");
    names.iter().map(|name| root.join(name)).collect()
}

fn report(names: &[&str], options: &str) -> Answer {
    let mut arguments: Vec<String> = vec!["report".into()];
    arguments.extend(runs(names).iter().map(|path| path.to_str().unwrap().to_owned()));
    arguments.extend(options.split_whitespace().map(str::to_owned));
    Place::new().call(arguments)
}

const BOTH: [&str; 6] =
    ["er-seed1", "er-seed2", "er-seed3", "dpcl-pfi-seed1", "dpcl-pfi-seed2", "dpcl-pfi-seed3"];

#[test]
fn rows_are_compared_seed_by_seed() {
    let answer = report(&BOTH, "--format table --against er --margin 2 --metric acc,ece").done();
    assert!(answer.stdout.lines().all(|line| line.chars().count() <= 80), "{}", answer.stdout);
    insta::assert_snapshot!("report-against", answer.stdout);
}

#[test]
fn seeds_that_one_side_lacks_are_named() {
    let few = ["er-seed1", "er-seed2", "dpcl-pfi-seed2", "dpcl-pfi-seed3"];
    let answer = report(&few, "--format markdown --against er").done();
    for note in [
        "dpcl-pfi lacks seed 1 of er",
        "er lacks seed 3 of dpcl-pfi",
        "instruction sets, which round differently",
    ] {
        assert!(answer.stdout.contains(note), "{note}: {}", answer.stdout);
    }
    assert!(answer.stdout.contains("| 1 | undecided | – |"), "{}", answer.stdout);
}

#[test]
fn nothing_new_is_shown_without_being_asked_for() {
    let answer = report(&BOTH, "--format markdown").done();
    assert!(!answer.stdout.contains("Compared"), "{}", answer.stdout);
    let both = report(&BOTH, "--format markdown --unaveraged").done();
    assert_eq!(both.stdout, answer.stdout);
    assert!(both.stderr.contains("no average answers in these runs"), "{}", both.stderr);
}

#[test]
fn a_page_of_several_folders_leaves_each_its_own() {
    let place = Place::new();
    let copy = |from: &str, to: &str| {
        let to = place.path().join(to);
        std::fs::create_dir_all(&to).unwrap();
        for file in std::fs::read_dir(&runs(&[from])[0]).unwrap().map(|entry| entry.unwrap().path()) {
            if file.is_file() {
                std::fs::copy(&file, to.join(file.file_name().unwrap())).unwrap();
            }
        }
    };
    copy("er-seed1", "all/a/er-seed1");
    copy("dpcl-pfi-seed1", "all/b/dpcl-pfi-seed1");
    place.say("report all/a").done();
    let own = place.read("all/a/report.html");
    let both = place.say("report all/a all/b").done();
    assert!(both.talk().contains("all/report-a-b.html"), "{}", both.stderr);
    assert_eq!(place.read("all/a/report.html"), own);
    assert!(!place.has("all/b/report.html"));
    assert!(place.read("all/report-a-b.html").contains("dpcl-pfi"));
}

#[test]
fn a_file_with_an_ending_that_says_nothing_is_refused() {
    let place = Place::new();
    let folder = runs(&["er-seed1"])[0].display().to_string();
    for name in ["table", "table.pdf", "table.xlsx"] {
        let refused = place.call(["report", &folder, "--output", name]);
        assert_eq!(refused.code, 2, "{}", refused.whole());
        assert!(refused.talk().contains("endings: .md, .tex"), "{}", refused.stderr);
        assert!(!place.has(name));
    }
    place.call(["report", &folder, "--output", "table", "--format", "csv"]).done();
    assert!(place.read("table").contains("acc"));
}

#[test]
fn names_are_never_cut_when_piped() {
    let place = Place::new();
    let long = "a-label-that-is-much-longer-than-a-third-of-the-width-lr=0.001";
    let to = place.path().join("er-seed1");
    std::fs::create_dir_all(&to).unwrap();
    for file in ["config.toml", "events.jsonl", "result.json"] {
        let text = std::fs::read_to_string(runs(&["er-seed1"])[0].join(file)).unwrap();
        std::fs::write(to.join(file), text.replace("\"er\"", &format!("\"{long}\""))).unwrap();
    }
    let table = place.say("report .").done().stdout;
    assert!(table.contains(long), "{table}");
}

#[test]
fn wrong_names_are_wrong_usage_and_answered_with_the_right_ones() {
    for (options, words) in [
        (
            "--against err",
            &["error: there is no row called `err`", "hint: did you mean `er`? known rows: er; dpcl-pfi"][..],
        ),
        (
            "--against er --metric speed",
            &["error: there is no metric called `speed`", "hint: known metrics: acc;"],
        ),
        ("--against er --margin 0", &["must be a number above 0"]),
        ("--margin 2", &["--against <ROW>"]),
        ("--metric acc", &["--against <ROW>"]),
    ] {
        let answer = report(&BOTH, options);
        assert_eq!((answer.code, answer.stdout.as_str()), (2, ""), "{options}: {}", answer.stderr);
        for word in words {
            assert!(answer.talk().contains(word), "{options}: {word}: {}", answer.stderr);
        }
    }
    let answer = report(&[&BOTH[..], &["dpcl-rm-memory-seed1"]].concat(), "--against d");
    assert_eq!(answer.code, 2);
    assert!(
        answer.talk().contains("hint: give the whole name: dpcl-pfi; dpcl-rm-memory"),
        "{}",
        answer.stderr
    );
}
