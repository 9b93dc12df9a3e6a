//! What is compared with what, and what is averaged.

use std::collections::BTreeMap;

use crate::made_up::Plan;
use dpcl_report::Report;
use dpcl_report::read::Record;

/// A record whose configuration has one value more, or another one.
fn with(mut record: Record, key: &str, value: impl Into<toml::Value>) -> Record {
    record.config.insert(key.into(), value.into());
    record
}

fn er(seed: u64) -> Record {
    Plan::small("er", 0.9, 0.5).record(seed)
}

fn names(report: &Report) -> Vec<Vec<&str>> {
    report
        .settings
        .iter()
        .map(|setting| setting.groups.iter().map(|group| group.name.as_str()).collect())
        .collect()
}

#[test]
fn seeds_are_averaged_and_incidental_keys_do_not_matter() {
    let report = Report::new(vec![
        with(er(3), "threads", 2),
        with(er(1), "data_dir", "/elsewhere"),
        with(er(2), "online", true),
    ]);
    assert_eq!(names(&report), [["er"]]);
    let seeds: Vec<u64> = report.settings[0].groups[0].runs.iter().map(|run| run.result.seed).collect();
    assert_eq!(seeds, [1, 2, 3]);
}

#[test]
fn different_configurations_are_never_averaged_and_are_named_apart() {
    let report = Report::new(vec![er(1), with(er(1), "memory", 200), with(er(2), "memory", 200)]);
    assert_eq!(names(&report), [["er (memory 12)", "er (memory 200)"]]);
    assert_eq!(report.settings[0].seeds(), None);
    assert!(report.terminal(80, false).contains("seeds"), "unequal numbers of seeds have a column");
}

/// A run of a method whose own keys are these.
fn with_own(method: &'static str, seed: u64, own: &str) -> Record {
    let record = Plan::small(method, 0.9, 0.5).record(seed);
    with(record, method, own.parse::<toml::Table>().unwrap())
}

#[test]
fn records_from_before_a_key_are_averaged_with_those_that_have_its_default() {
    let published = "alpha = 1.0\nlayers = [\n    0,\n    1,\n]\n";
    let later = format!(
        "{published}gamma = 0.1\nlr_clamp = [\n    0.05,\n    2.0,\n]\nlr_lag = \"iteration\"\nlr_rule = \"text\"\n\
         omega = 1.0526315789473684\n"
    );
    for method in ["bic", "clib"] {
        let report = Report::new(vec![with_own(method, 1, published), with_own(method, 2, &later)]);
        assert_eq!(names(&report), [[method]]);
        assert_eq!(report.settings[0].seeds(), Some(2));

        let other = later.replace("gamma = 0.1", "gamma = 0.5");
        let report = Report::new(vec![with_own(method, 1, published), with_own(method, 2, &other)]);
        assert_eq!(
            names(&report),
            [[format!("{method} ({method}.gamma 0.1)"), format!("{method} ({method}.gamma 0.5)")]]
        );
    }
}

#[test]
fn different_streams_are_different_settings() {
    let report = Report::new(vec![er(1), with(er(1), "tasks", 5), with(er(1), "per_class", 20)]);
    let settings: Vec<&str> = report.settings.iter().map(|setting| setting.name.as_str()).collect();
    assert_eq!(
        settings,
        [
            "cifar100, disjoint (per_class 20, tasks 3)",
            "cifar100, disjoint (per_class unset, tasks 3)",
            "cifar100, disjoint (per_class unset, tasks 5)",
        ]
    );
}

#[test]
fn a_seed_counts_once() {
    let mut copy = er(1);
    copy.path = "elsewhere/er-seed1".into();
    let report = Report::new(vec![er(1), copy]);
    assert_eq!(report.settings[0].groups[0].runs.len(), 1);
    assert_eq!(report.notes, ["elsewhere/er-seed1 repeats seed 1 of out/demo/er-seed1 and is left out"]);
}

#[test]
fn the_best_comes_first_and_a_name_keeps_its_colour() {
    let plan = |label, kept, scenario| Plan { scenario, ..Plan::small(label, 0.9, kept) };
    let report = Report::new(vec![
        plan("a", 0.1, "disjoint").record(1),
        plan("b", 0.9, "disjoint").record(1),
        plan("b", 0.9, "blurry").record(1),
    ]);
    assert_eq!(names(&report), [vec!["b"], vec!["b", "a"]]);
    assert_eq!(report.settings[0].groups[0].colour, report.settings[1].groups[0].colour);
    assert_ne!(report.settings[1].groups[0].colour, report.settings[1].groups[1].colour);
}

#[test]
fn a_result_that_disagrees_with_its_events_is_called_out() {
    let mut record = er(1);
    record.result.as_mut().unwrap().metrics.acc = Some(0.99);
    let report = Report::new(vec![record]);
    assert_eq!(
        report.notes,
        ["out/demo/er-seed1: result.json disagrees with events.jsonl on acc; the events count"]
    );
}

#[test]
fn unfinished_runs_say_how_far_they_came() {
    let plan = Plan::small("er", 0.9, 0.5);
    let report = Report::new(vec![
        plan.cut_record(1, 0, None),
        plan.cut_record(2, 6, Some("disk full")),
        plan.cut_record(3, 6, None),
    ]);
    let states: Vec<String> =
        report.unfinished.iter().map(|run| format!("{}: {}", run.name(), run.state())).collect();
    assert_eq!(
        states,
        [
            "er seed 1: unfinished, before its first event",
            "er seed 2: failed at sample 15 of 60: disk full",
            "er seed 3: unfinished, at sample 15 of 60",
        ]
    );
    assert!(report.html().contains("No run has finished yet"));
}

/// The record as it would be written today: it says by itself which setting and group it belongs to.
fn todays(mut record: Record) -> Record {
    let (mut setting, mut group) = (BTreeMap::new(), BTreeMap::new());
    for (key, value) in dpcl_report::record::dotted(&record.config) {
        match key.as_str() {
            "dataset" | "scenario" | "tasks" | "on_bad_image" => setting.insert(key, value),
            "seed" => None,
            _ => group.insert(key, value),
        };
    }
    setting.entry("on_bad_image".into()).or_insert("fail".into());
    let result = record.result.as_mut().unwrap();
    (result.setting, result.group) = (setting, group);
    // What it says counts, not what stands in its configuration.
    record.config.clear();
    record
}

#[test]
fn old_and_new_records_of_one_configuration_are_averaged() {
    let report = Report::new(vec![er(1), todays(er(2))]);
    assert_eq!(names(&report), [["er"]]);
    assert_eq!(report.settings[0].seeds(), Some(2));
    let report = Report::new(vec![with_own("bic", 1, "alpha = 1.0"), {
        let later = "alpha = 1.0\ngamma = 0.1\nlr_clamp = [0.05, 2.0]\nlr_lag = 'iteration'\nlr_rule = 'text'\n\
                     omega = 1.0526315789473684";
        todays(with_own("bic", 2, later))
    }]);
    assert_eq!(names(&report), [["bic"]]);
}

#[test]
fn what_had_another_name_is_the_same_today() {
    let old = |seed| {
        let record = with_own("dpcl", seed, "mi_pass = 'train'\nmi_heads = 'current'");
        with(with(record, "memory_scheme", "rm"), "rm_rebuild", true)
    };
    let new = |seed| {
        let record = with_own("dpcl", seed, "disagreement_pass = 'train'\ndisagreement_heads = 'current'");
        todays(with(with(record, "memory_scheme", "balanced"), "rebuild", true))
    };
    assert_eq!(names(&Report::new(vec![old(1), new(2)])), [["dpcl"]]);

    // Old records among themselves are told apart in their own words.
    let other = with_own("dpcl", 1, "mi_pass = 'clean'\nmi_heads = 'current'");
    let other = with(with(other, "memory_scheme", "rm"), "rm_rebuild", true);
    let expected = [["dpcl (dpcl.mi_pass clean)", "dpcl (dpcl.mi_pass train)"]];
    assert_eq!(names(&Report::new(vec![old(1), other])), expected);
}

/// A record of today with a key that is new, and what records without it stand for.
fn with_later(mut record: Record, key: &str, value: &str, absent: &str) -> Record {
    let result = record.result.as_mut().unwrap();
    let keys = if key.starts_with("stream") { &mut result.setting } else { &mut result.group };
    keys.insert(key.into(), value.into());
    result.absent.insert(key.into(), absent.into());
    record
}

#[test]
fn a_record_says_what_those_stand_for_that_lack_a_key_of_it() {
    for key in ["smoothing", "er.smoothing", "stream_seed"] {
        let later = |seed, value| with_later(todays(er(seed)), key, value, "off");
        let report = Report::new(vec![er(1), todays(er(2)), later(3, "off")]);
        assert_eq!(names(&report), [["er"]], "{key}");
        assert_eq!(report.settings[0].seeds(), Some(3), "{key}");
    }

    let later = |seed, value| with_later(todays(er(seed)), "smoothing", value, "off");
    let report = Report::new(vec![er(1), later(1, "on")]);
    assert_eq!(names(&report), [["er (smoothing off)", "er (smoothing on)"]]);
    let report = Report::new(vec![er(1), with_later(todays(er(2)), "stream_seed", "7", "1")]);
    let settings: Vec<&str> = report.settings.iter().map(|setting| setting.name.as_str()).collect();
    assert_eq!(settings, ["cifar100, disjoint (stream_seed 1)", "cifar100, disjoint (stream_seed 7)"]);
}

#[test]
fn a_methods_later_key_says_nothing_of_other_methods() {
    let other = |seed| todays(with_own("bic", seed, "alpha = 1.0"));
    let report = Report::new(vec![other(1), with_later(todays(er(1)), "er.smoothing", "off", "off")]);
    let bic = report.settings[0].groups.iter().find(|group| group.name == "bic").unwrap();
    assert!(!bic.first().result.group.contains_key("er.smoothing"));
}

#[test]
fn a_later_key_that_is_not_recorded_sets_nothing_apart() {
    let mut record = todays(er(2));
    record.result.as_mut().unwrap().absent.insert("silent".into(), "on".into());
    assert_eq!(names(&Report::new(vec![er(1), record])), [["er"]]);
}
