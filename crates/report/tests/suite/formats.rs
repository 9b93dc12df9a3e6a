//! Every format of one small set of records, as people and scripts get it.

use crate::made_up::{Plan, write};
use dpcl_report::{Report, load};

fn plans() -> [Plan; 2] {
    [
        Plan { online: true, ..Plan::small("er", 0.9, 0.5) },
        Plan { knowledge: "task-ends", heads: 3, slowness: 3.0, ..Plan::small("bic_100%", 0.8, 0.6) },
    ]
}

/// Two methods with two seeds each, one cut-off and one failed run.
fn report() -> Report {
    let mut records = Vec::new();
    for plan in plans() {
        records.extend([1, 2].map(|seed| plan.record(seed)));
    }
    records.push(plans()[0].cut_record(3, 6, None));
    records.push(plans()[1].cut_record(4, 0, Some("no space left on the device\nwhile saving")));
    Report::new(records)
}

#[test]
fn terminal() {
    insta::assert_snapshot!(report().terminal(80, false));
}

#[test]
fn terminal_narrow_with_styles() {
    insta::assert_snapshot!(report().terminal(46, true).replace('\x1b', "^"));
}

#[test]
fn markdown() {
    insta::assert_snapshot!(report().markdown());
}

#[test]
fn a_line_of_csv_can_be_an_evaluation() {
    let report = report();
    let text = report.evaluations();
    let runs = report.settings.iter().flat_map(|setting| &setting.groups).flat_map(|group| &group.runs);
    let evaluations: usize = runs
        .map(|run| {
            let events = &run.record.events;
            events
                .iter()
                .filter(|event| matches!(event, dpcl_report::record::Event::Evaluation { .. }))
                .count()
        })
        .sum();
    assert!(evaluations > 8);
    assert_eq!(text.lines().count(), evaluations + 1);
    let heading: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    assert_eq!(
        &heading[7..],
        ["seed", "samples", "updates", "kind", "task", "classes", "images", "accuracy"]
    );
    assert!(text.contains(",task-end,0,") && text.contains(",period,,"), "{text}");
}

#[test]
fn every_run_has_a_file_for_tensorboard() {
    let files = report().tensorboard();
    assert_eq!(files.len(), 4);
    assert!(files.iter().any(|(path, _)| path.ends_with("er-seed1/events.out.tfevents.0.dpcl")), "{files:?}");
    for (_, bytes) in &files {
        let tag = b"accuracy/any-time";
        assert!(bytes.windows(tag.len()).any(|window| window == tag));
        // The first record: its length in eight bytes, and the version of the format.
        assert_eq!(u64::from_le_bytes(bytes[..8].try_into().unwrap()), 26);
        assert!(
            bytes[12..].windows(13).next().is_some()
                && bytes.windows(13).any(|window| window == b"brain.Event:2")
        );
    }
}

#[test]
fn latex() {
    insta::assert_snapshot!(report().latex());
}

#[test]
fn csv() {
    insta::assert_snapshot!(report().csv());
}

#[test]
fn json() {
    insta::assert_snapshot!(report().json());
}

#[test]
fn html() {
    let style = include_str!("../../src/html/style.css");
    let glimpse = include_str!("made_up/glimpse.base64");
    insta::assert_snapshot!(report().html().replace(style, "(style)").replace(glimpse, "(glimpse)"));
}

#[test]
fn one_seed_shows_no_spread() {
    let report = Report::new(vec![plans()[0].record(1)]);
    for text in [report.terminal(80, false), report.markdown(), report.html()] {
        let numbers = text.split("±").count() - 1;
        assert_eq!(numbers, 0, "{text}");
    }
    assert!(!report.latex().contains("\\pm"));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut records = vec![Plan::small("a-preset-with-a-remarkably-long-name", 0.7, 0.4).record(1)];
    for plan in plans() {
        records.extend([1, 2].map(|seed| plan.record(seed)));
    }
    records.push(plans()[0].cut_record(
        3,
        6,
        Some("a-word-without-any-space-that-is-longer-than-many-a-line"),
    ));
    let report = Report::new(records);
    for width in 30..140 {
        for line in report.terminal(width, false).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn styles_change_nothing_but_styles() {
    let mut styled = report().terminal(80, true);
    for style in ["\x1b[0m", "\x1b[1m", "\x1b[2m"] {
        styled = styled.replace(style, "");
    }
    assert_eq!(styled, report().terminal(80, false));
}

#[test]
fn every_csv_line_has_as_many_fields_as_the_first() {
    let text = report().csv();
    // Fields of these records hold commas only inside the quoted first one.
    let counts: Vec<usize> = text.lines().map(|line| line.replace(", ", "").split(',').count()).collect();
    assert_eq!(counts.len(), 3);
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
}

#[test]
fn what_is_written_is_what_is_loaded() {
    let out = tempfile::tempdir().unwrap();
    for plan in plans() {
        for seed in [1, 2] {
            write(&plan.record(seed), out.path());
        }
    }
    write(&plans()[0].cut_record(3, 6, None), out.path());
    write(&plans()[1].cut_record(4, 0, Some("no space left on the device\nwhile saving")), out.path());
    let loaded = load(&[out.path().to_owned()]).unwrap();
    assert_eq!(loaded.csv(), report().csv());
    assert_eq!(loaded.terminal(80, false), report().terminal(80, false));
}

#[test]
fn only_what_noise_does_not_explain_is_bold() {
    let bold = |kept: [f64; 2], seeds: std::ops::RangeInclusive<u64>| {
        let plans = [Plan::small("a", 0.9, kept[0]), Plan::small("b", 0.9, kept[1])];
        let records = seeds.flat_map(|seed| plans.each_ref().map(|plan| plan.record(seed))).collect();
        let text = Report::new(records).markdown();
        (text.contains("**"), text.contains("bold: better than every other row"))
    };
    assert_eq!(bold([0.9, 0.1], 1..=3), (true, true));
    assert_eq!(bold([0.9, 0.1], 1..=1), (false, false), "one seed tells nothing about noise");
    assert_eq!(bold([0.5, 0.5], 1..=3), (false, false), "equal rows are both best, and neither is better");
}
