//! What tables and exports say of methods that are told more than others, do not answer at any time or seldom
//! measure their memory.

use crate::made_up::Plan;
use dpcl_report::{
    Report, costs,
    read::Record,
    record::{Remark, RunResult},
};

fn record(label: &'static str, knowledge: &'static str, answers: &str) -> Record {
    let mut record = Plan { knowledge, ..Plan::small(label, 0.8, 0.6) }.record(1);
    record.result.as_mut().unwrap().answers = answers.to_owned();
    record
}

fn report(knowledge: &'static str, answers: &str) -> Report {
    Report::new(vec![record("some", knowledge, answers)])
}

fn markdown(knowledge: &'static str, answers: &str) -> String {
    report(knowledge, answers).markdown()
}

/// A run that measures its memory once in `period` updates.
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

/// The texts of the drawings of one class on a page.
fn drawn<'a>(page: &'a str, class: &str) -> Vec<&'a str> {
    let drawings = page.split("<svg ").skip(1).filter_map(|rest| rest.split("</svg>").next());
    drawings
        .filter(|drawing| {
            let tag = drawing.split('>').next().unwrap();
            tag.contains(&format!("class=\"{class}\""))
        })
        .flat_map(|drawing| drawing.split("</text>"))
        .filter_map(|before| before.rsplit('>').next())
        .collect()
}

#[test]
fn a_name_too_long_for_its_place_keeps_its_mark() {
    let long = "a-preset-with-a-remarkably-long-name";
    let report = Report::new(vec![record(long, "task-ends", "end"), record("er", "none", "any-time")]);
    for width in [24, 46, 80] {
        let terminal = report.terminal(width, false);
        let name = terminal.lines().find_map(|line| line.split_whitespace().find(|word| word.contains('…')));
        let name = name.unwrap();
        assert!(name.starts_with("a-") && name.ends_with("†§"), "{terminal}");
        assert!(name.chars().count() <= width / 3, "{name}");
    }
    let page = report.html();
    for class in ["lines", "cost"] {
        let cut: Vec<&str> = drawn(&page, class).into_iter().filter(|text| text.contains('…')).collect();
        assert!(!cut.is_empty(), "{class}");
        assert!(cut.iter().all(|name| name.starts_with("a-") && name.ends_with("†§")), "{cut:?}");
    }
}

#[test]
fn a_short_name_is_not_cut_for_its_mark() {
    let page = report("task-ends", "end").html();
    for class in ["lines", "cost"] {
        assert!(drawn(&page, class).contains(&"some†§"), "{class}");
    }
}

#[test]
fn single_runs_are_marked() {
    let page = report("task-ends", "end").html();
    assert!(page.contains("<th scope=\"row\">some†§ seed 1</th>"));
    assert!(report("none", "any-time").html().contains("<th scope=\"row\">some seed 1</th>"));
}

#[test]
fn the_table_of_costs_says_what_the_summary_says_of_methods() {
    let notes = |records: Vec<Record>| costs::table(&Report::new(records).settings[0]).footnotes;
    let er = || record("er", "none", "any-time");
    let told = notes(vec![er(), record("gdumb", "task-ends", "task-ends"), measuring("clib", 10)]);
    for note in [
        "† is told where tasks end",
        "§ does not answer at any time: it learns at task ends or at the end of the stream",
        "clib measures its memory every 10 updates",
    ] {
        assert!(told.iter().any(|found| found == note), "{note}: {told:?}");
    }
    let plain = notes(vec![er()]);
    assert!(plain.iter().all(|note| !note.contains(['†', '§']) && !note.contains("every")), "{plain:?}");
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
fn what_befell_one_seed_is_told_of_once() {
    let seed = |seed: u64, met: bool| {
        let mut record = Plan::small("oddl", 0.8, 0.6).record(seed);
        let result = record.result.as_mut().unwrap();
        result.group.insert("method".into(), "oddl".into());
        let remark = Remark { one: "met its limit".into(), several: "met their limits".into() };
        result.remarks.extend(met.then_some(remark));
        record
    };
    for text in forms(vec![seed(1, false), seed(2, true), seed(3, true)]) {
        // Below the results and below the costs.
        let parts = text.replace("<table", "\n\n");
        let told: Vec<usize> =
            parts.split("\n\n").map(|part| part.matches("oddl met its limit").count()).collect();
        assert_eq!(told.iter().max(), Some(&1), "{text}");
    }
    for text in forms(vec![seed(1, false), seed(2, false)]) {
        assert!(!text.contains("limit"), "{text}");
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
