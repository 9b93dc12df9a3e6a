//! What methods cost beside plain replay.

use crate::made_up::Plan;
use dpcl_report::record::Parameters;
use dpcl_report::{Report, costs};

/// ResNet34 on 100 classes: encoder and one head, five heads, and the sizes of the distributions over them.
const ONE_HEAD: u64 = 21_328_292;
const HEAD: u64 = 513 * 100;

fn report(parameters: &[(&'static str, Parameters)]) -> Report {
    let record = |&(label, parameters): &(&'static str, Parameters)| {
        let mut record = Plan::small(label, 0.9, 0.5).record(1);
        let result = record.result.as_mut().unwrap();
        result.parameters = Some(parameters);
        result.updates = 1000;
        result.train_seconds = if label == "er" { 12.0 } else { 17.0 };
        result.eval_seconds = 8.0;
        result.peak_memory_bytes = if label == "er" { 100 << 20 } else { 106 << 20 };
        record
    };
    Report::new(parameters.iter().map(record).collect())
}

fn row(report: &Report, name: &str) -> Vec<String> {
    let table = costs::table(&report.settings[0]);
    let row = table.rows.into_iter().find(|row| row.name == name).unwrap();
    row.cells.into_iter().map(|cell| cell.mean).collect()
}

fn plain() -> (&'static str, Parameters) {
    ("er", Parameters { network: ONE_HEAD, ..Parameters::default() })
}

#[test]
fn the_papers_model_sizes_by_hand() {
    let heads = ONE_HEAD + 4 * HEAD;
    let size = |state, history| {
        let dpcl = ("dpcl", Parameters { network: heads, state, history });
        row(&report(&[plain(), dpcl]), "dpcl")
    };
    // Heads, means and squares; two deviation columns of each head beside them.
    assert_eq!(
        size(10 * HEAD, 10 * HEAD),
        ["17.0 ms", "1.42", "25.0 s", "1.25", "22,046,492", "1.03", "22,559,492", "1.06", "106 MiB", "1.06"]
    );
    let report = report(&[plain(), ("dpcl", Parameters { network: heads, state: 10 * HEAD, history: 0 })]);
    let setting = &report.settings[0];
    let ratio = |group: &dpcl_report::group::Group| {
        let cost = costs::COSTS.iter().find(|cost| cost.key == "model_parameters").unwrap();
        cost.ratio(group, costs::reference(setting).unwrap()).unwrap()
    };
    let dpcl = setting.groups.iter().find(|group| group.name == "dpcl").unwrap();
    assert!((ratio(dpcl) - 1.0337).abs() < 5e-5);
}

#[test]
fn without_plain_replay_there_are_amounts_only() {
    let report = report(&[("dpcl", plain().1)]);
    assert_eq!(row(&report, "dpcl"), ["17.0 ms", "25.0 s", "21,328,292", "21,328,292", "106 MiB"]);
    let table = costs::table(&report.settings[0]);
    assert!(table.footnotes.iter().all(|note| !note.contains('×')), "{:?}", table.footnotes);
    assert!(report.json().contains("\"reference\": null"));
}

#[test]
fn times_of_different_machines_are_said_not_to_compare() {
    let mut records = [Plan::small("er", 0.9, 0.5).record(1), Plan::small("dpcl", 0.9, 0.5).record(1)];
    let note = |records: &[dpcl_report::read::Record]| {
        let report = Report::new(records.to_vec());
        costs::table(&report.settings[0]).footnotes.iter().any(|note| note.contains("do not compare"))
    };
    assert!(!note(&records));
    records[1].result.as_mut().unwrap().threads = 1;
    assert!(note(&records));
}
