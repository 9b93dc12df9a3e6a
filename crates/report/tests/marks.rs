//! What tables and exports say of methods that are told more than others, do not answer at any time or seldom
//! measure their memory.

#![allow(clippy::unwrap_used, reason = "a record that cannot be made should fail the test")]

mod made_up;

use dpcl_report::{Report, read::Record, record::RunResult};
use made_up::Plan;

fn report(knowledge: &'static str, answers: &str) -> Report {
    let mut record = Plan { knowledge, ..Plan::small("some", 0.8, 0.6) }.record(1);
    record.result.as_mut().unwrap().answers = answers.to_owned();
    Report::new(vec![record])
}

fn markdown(knowledge: &'static str, answers: &str) -> String {
    report(knowledge, answers).markdown()
}

/// A run that measures its memory after every so many updates.
fn measuring(label: &'static str, period: i64) -> Record {
    let mut record = Plan::small(label, 0.8, 0.6).record(1);
    record.config.insert("imp_period".into(), period.into());
    record
}

/// Every form that has footnotes.
fn forms(records: Vec<Record>) -> [String; 4] {
    let report = Report::new(records);
    [report.terminal(80, false), report.markdown(), report.latex(), report.html()]
}

#[test]
fn methods_that_do_not_answer_at_any_time_are_marked() {
    let note = "§ does not answer at any time";
    assert!(!markdown("task-ends", "any-time").contains('§'));
    let gdumb = markdown("task-ends", "task-ends");
    assert!(gdumb.contains("some†§") && gdumb.contains("† is told") && gdumb.contains(note), "{gdumb}");
    let joint = markdown("none", "end");
    assert!(joint.contains("some§") && joint.contains(note) && !joint.contains('†'), "{joint}");
}

#[test]
fn a_record_without_the_entry_answers_at_any_time() {
    let result = Plan::small("some", 0.8, 0.6).record(1).result.unwrap();
    let text = serde_json::to_string(&result).unwrap();
    assert!(!text.contains("answers"));
    assert_eq!(serde_json::from_str::<RunResult>(&text).unwrap(), result);
}

#[test]
fn exports_say_when_a_method_answers() {
    for answers in ["any-time", "task-ends", "end"] {
        let report = report("none", answers);
        let csv = report.csv();
        assert!(csv.starts_with("setting,dataset,scenario,model,label,name,method,knowledge,answers,seeds,"));
        assert!(csv.contains(&format!(",some,none,{answers},1,")), "{csv}");
        let json: serde_json::Value = serde_json::from_str(&report.json()).unwrap();
        assert_eq!(json["settings"][0]["groups"][0]["answers"], answers);
    }
}

#[test]
fn a_memory_that_is_not_measured_at_every_update_is_told_of() {
    let er = || Plan::small("er", 0.9, 0.5).record(1);
    for text in forms(vec![er(), measuring("clib", 10)]) {
        assert!(text.contains("clib measures its memory every 10 updates"), "{text}");
    }
    for text in forms(vec![er(), measuring("clib", 1)]) {
        assert!(!text.contains("measures its memory"), "{text}");
    }
}

#[test]
fn methods_that_measure_equally_often_share_a_note() {
    let records = vec![measuring("slow", 20), measuring("clib_a", 10), measuring("clib_b", 10)];
    let [terminal, markdown, ..] = forms(records);
    let notes: Vec<&str> = terminal.lines().filter(|line| line.contains(" every ")).collect();
    assert_eq!(
        notes,
        ["clib_a, clib_b measure their memory every 10 updates", "slow measures its memory every 20 updates"]
    );
    assert!(markdown.contains("clib\\_a, clib\\_b measure"), "{markdown}");
}
