//! What tables say of methods that are told more than others or do not answer at any time.

#![allow(clippy::unwrap_used, reason = "a record that cannot be made should fail the test")]

mod made_up;

use dpcl_report::{Report, record::RunResult};
use made_up::Plan;

fn markdown(knowledge: &'static str, answers: &str) -> String {
    let mut record = Plan { knowledge, ..Plan::small("some", 0.8, 0.6) }.record(1);
    record.result.as_mut().unwrap().answers = answers.to_owned();
    Report::new(vec![record]).markdown()
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
