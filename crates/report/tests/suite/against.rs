//! Rows compared with one of them, seed by seed, in every format.

use crate::made_up::Plan;
use crate::page::check_well_formed;
use dpcl_report::against::{Asked, Outcome};
use dpcl_report::read::Record;
use dpcl_report::{Error, Report};

fn er() -> Plan {
    Plan::small("er", 0.9, 0.5)
}

/// Another instruction set than that of the other records.
fn elsewhere(mut record: Record) -> Record {
    record.result.as_mut().unwrap().isa = "avx512".into();
    record
}

/// `er` with three seeds, one that is worse, one that is about the same and told task ends, one with one seed in common
/// and one made elsewhere, one with none.
fn records() -> Vec<Record> {
    let worse = Plan::small("worse", 0.6, 0.5);
    let alike = Plan { knowledge: "task-ends", ..Plan::small("alike_1%", 0.9, 0.52) };
    let further = Plan::small("further", 0.9, 0.6);
    let mut records = Vec::new();
    for plan in [er(), worse, alike] {
        records.extend([1, 2, 3].map(|seed| plan.record(seed)));
    }
    records.extend([elsewhere(further.record(3)), further.record(4)]);
    records.push(Plan::small("apart", 0.9, 0.3).record(5));
    records
}

fn asked(against: &str) -> Asked {
    Asked { against: against.into(), metrics: Vec::new(), margin: 3.0 }
}

fn compared(records: Vec<Record>) -> Report {
    let mut report = Report::new(records);
    report.compare(&asked("er")).unwrap();
    report
}

#[test]
fn terminal() {
    insta::assert_snapshot!(compared(records()).terminal(80, false));
}

#[test]
fn markdown() {
    insta::assert_snapshot!(compared(records()).markdown());
}

#[test]
fn latex() {
    insta::assert_snapshot!(compared(records()).latex());
}

#[test]
fn csv() {
    insta::assert_snapshot!(compared(records()).csv());
}

#[test]
fn json() {
    let json: serde_json::Value = serde_json::from_str(&compared(records()).json()).unwrap();
    insta::assert_snapshot!(format!("{:#}", json["settings"][0]["comparison"]));
}

#[test]
fn html() {
    let page = compared(records()).html();
    assert_eq!(check_well_formed(&page), Ok(()));
    let figure = page.split("<figure ").find(|figure| figure.contains("<h3>Compared with er</h3>"));
    insta::assert_snapshot!(figure.unwrap());
}

#[test]
fn nothing_is_shown_that_was_not_asked_for() {
    let plain = Report::new(records());
    let mut report = plain.clone();
    report.compare(&asked("er")).unwrap();
    let texts = [plain.terminal(80, false), plain.markdown(), plain.latex(), plain.csv(), plain.json()];
    for text in texts.iter().chain([&plain.html()]) {
        assert!(!text.contains("Compared with") && !text.contains("undecided"), "{text}");
    }
    assert!(plain.html().len() < report.html().len());
    assert!(report.terminal(80, false).starts_with(&plain.terminal(80, false)));
}

#[test]
fn differences_are_of_runs_of_one_seed() {
    let report = compared(records());
    let setting = &report.settings[0];
    let group = |name: &str| setting.groups.iter().find(|group| group.name == name).unwrap();
    let comparison = report.comparison(setting).unwrap();
    assert_eq!(comparison.metrics, ["acc", "fm", "a_auc", "ece"]);
    let rival = |name: &str| comparison.rivals.iter().find(|rival| rival.group.name == name).unwrap();
    let (own, other) = (&group("further").runs[0].metrics, &group("er").runs[2].metrics);
    let further = rival("further");
    assert_eq!(further.differences[0].estimate.unwrap().mean, own.acc.unwrap() - other.acc.unwrap());
    assert_eq!(
        (&further.lacking[..], &further.further[..], &further.other_sets[..]),
        (&[1, 2][..], &[4][..], &[3][..])
    );
    assert_eq!(rival("apart").differences[0].pairs(), 0);
    // Less accuracy and more error are both behind.
    let worse: Vec<Outcome> = rival("worse").differences.iter().map(|found| found.outcome).collect();
    assert_eq!((worse[0], worse[2]), (Outcome::Behind, Outcome::Behind));
    assert!(comparison.rivals.iter().all(|rival| rival.group.name != "er"));
}

#[test]
fn the_other_side_says_the_opposite() {
    let outcome = |against: &str, name: &str| {
        let mut report = Report::new(records());
        report.compare(&asked(against)).unwrap();
        let comparison = report.comparison(&report.settings[0]).unwrap();
        let rival = comparison.rivals.iter().find(|rival| rival.group.name == name).unwrap();
        (rival.differences[0].outcome, rival.differences[0].estimate.unwrap().mean)
    };
    let (forth, back) = (outcome("er", "worse"), outcome("worse", "er"));
    assert_eq!((forth.0, back.0), (Outcome::Behind, Outcome::Ahead));
    assert_eq!(forth.1, -back.1);
}

#[test]
fn a_row_is_named_in_full_or_by_how_only_it_begins() {
    let resolved = |against: &str| {
        let mut report = Report::new(records());
        report.compare(&asked(against))?;
        Ok(report.comparison(&report.settings[0]).unwrap().opponent.name.clone())
    };
    assert_eq!(resolved("er").unwrap(), "er");
    assert_eq!(resolved("al").unwrap(), "alike_1%");
    let ambiguous: Error = resolved("a").unwrap_err();
    assert_eq!(ambiguous.to_string(), "several rows begin with `a`");
    assert_eq!(ambiguous.hint().unwrap(), "give the whole name: alike_1%; apart");
    let unknown = resolved("ER").unwrap_err();
    assert_eq!(unknown.to_string(), "there is no row called `ER`");
    assert!(
        unknown.hint().unwrap().starts_with("known rows: ") && unknown.hint().unwrap().contains("alike_1%")
    );
    let nothing = Report::new(vec![er().cut_record(1, 3, None)]).compare(&asked("er")).unwrap_err();
    assert_eq!(nothing.hint().unwrap(), "there is no row at all: no run has finished");
}

#[test]
fn metrics_can_be_chosen() {
    let choose = |names: &[&str]| {
        let mut report = Report::new(records());
        let metrics = names.iter().map(|name| (*name).to_owned()).collect();
        report.compare(&Asked { metrics, margin: 0.5, ..asked("er") }).map(|()| report)
    };
    let report = choose(&["a_last", "online_acc"]).unwrap();
    let text = report.terminal(80, false);
    let headings: Vec<&str> = text.lines().filter(|line| line.contains("interval ")).collect();
    assert!(headings[0].contains(" a_last "), "{text}");
    assert!(!headings[0].contains("acc") && text.contains("true difference of 0.5 points"), "{text}");
    assert_eq!(report.notes, ["no pair of runs has online_acc"]);
    let unknown = choose(&["speed"]).unwrap_err();
    assert_eq!(unknown.to_string(), "there is no metric called `speed`");
    assert!(unknown.hint().unwrap().starts_with("known metrics: acc; fm;"));
}

#[test]
fn a_setting_without_the_row_says_so() {
    let elsewhere = Plan { scenario: "blurry", ..Plan::small("worse", 0.6, 0.5) };
    let alone = Plan { scenario: "split", ..er() };
    let report = compared([records(), vec![elsewhere.record(1), alone.record(1)]].concat());
    assert_eq!(
        report.notes,
        ["cifar100, blurry: nothing to compare with er", "cifar100, split: nothing to compare with er"]
    );
    let found: Vec<bool> =
        report.settings.iter().map(|setting| report.comparison(setting).is_some()).collect();
    assert_eq!(found, [false, true, false]);
    assert_eq!(report.html().matches("<h3>Compared with er</h3>").count(), 1);
}

fn without_style(page: &str) -> String {
    page.split("</style>").last().unwrap().to_owned()
}

#[test]
fn runs_without_a_common_seed_are_only_told_of() {
    let report = compared(vec![er().record(1), Plan::small("other", 0.8, 0.5).record(2)]);
    for text in [report.terminal(80, false), report.markdown(), report.latex(), without_style(&report.html())]
    {
        assert!(text.contains("other lacks seed 1 of er"), "{text}");
        assert!(text.contains("er lacks seed 2 of other") && !text.contains("interval"), "{text}");
    }
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let mut records = records();
    let long = Plan::small("a-preset-with-a-remarkably-long-name", 0.7, 0.4);
    records.extend([1, 2].map(|seed| long.record(seed)));
    let report = compared(records);
    for width in 30..140 {
        for line in report.terminal(width, false).lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn numbers_of_a_damaged_record_are_no_pair() {
    let mut record = Plan::small("other", 0.8, 0.5).record(1);
    for event in &mut record.events {
        if let dpcl_report::record::Event::Uncertainty(uncertainty) = event {
            uncertainty.calibration[0].confidence = f64::INFINITY;
            uncertainty.calibration[0].count = 1;
        }
    }
    let report = compared(vec![er().record(1), record]);
    let comparison = report.comparison(&report.settings[0]).unwrap();
    assert!(!comparison.metrics.contains(&"ece"));
}
