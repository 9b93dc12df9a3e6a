//! Rows of the weights that learn, beside those of runs whose average answered.

use std::path::Path;

use crate::made_up::{Plan, averaged, write};
use dpcl_report::group::Group;
use dpcl_report::read::Record;
use dpcl_report::record::Event;
use dpcl_report::reproduce::fill;
use dpcl_report::{Report, costs};

/// Two seeds whose average answered, twelve images of a hundred better, and one run without an average.
fn records() -> Vec<Record> {
    let er = Plan { online: true, ..Plan::small("er", 0.7, 0.5) };
    vec![averaged(er.record(1), 12), averaged(er.record(2), 12), Plan::small("finetune", 0.9, 0.0).record(1)]
}

fn group<'a>(report: &'a Report, name: &str) -> &'a Group {
    report.settings[0].groups.iter().find(|group| group.name == name).unwrap()
}

#[test]
fn there_is_a_row_more_only_where_asked_for() {
    let names = |report: &Report| -> Vec<String> {
        report.settings[0].groups.iter().map(|group| group.name.clone()).collect()
    };
    assert_eq!(names(&Report::new(records())), ["er", "finetune"]);
    let report = Report::with_unaveraged(records());
    assert_eq!(names(&report), ["er", "er, unaveraged", "finetune"]);
    assert_eq!(report.notes, Vec::<String>::new());
    assert_eq!(report.html().matches("er, unaveraged seed ").count(), 2);
}

#[test]
fn it_has_its_own_answers_and_the_same_seeds_and_costs() {
    let report = Report::with_unaveraged(records());
    let (average, plain) = (group(&report, "er"), group(&report, "er, unaveraged"));
    for (average, plain) in average.runs.iter().zip(&plain.runs) {
        assert_eq!(average.result.seed, plain.result.seed);
        assert_eq!(average.result.setting, plain.result.setting);
        assert_eq!((average.is_unaveraged, plain.is_unaveraged), (false, true));
        assert_eq!(plain.metrics.acc, average.metrics.acc_unaveraged);
        assert_eq!(plain.metrics.fm, average.metrics.fm_unaveraged);
        assert!((average.metrics.acc.unwrap() - plain.metrics.acc.unwrap() - 0.12).abs() < 1e-12);
        // Only the average was asked before a sample was learned.
        assert!(average.metrics.online_acc.is_some() && plain.metrics.online_acc.is_none());
        assert_eq!(plain.metrics.acc_unaveraged, None);
    }
    for cost in &costs::COSTS {
        assert_eq!(cost.mean(average), cost.mean(plain));
    }
}

#[test]
fn answers_of_the_average_alone_are_left_out() {
    let mut record = averaged(Plan::small("ctn", 0.9, 0.5).record(1), 5);
    let told = record.events.iter().find_map(|event| match event {
        Event::Evaluation { samples, kind, classes, .. } => {
            Some(Event::TaskAware { samples: *samples, kind: *kind, classes: classes.clone() })
        }
        _ => None,
    });
    record.events.extend(told);
    let plain = dpcl_report::metrics::unaveraged(&record.events).unwrap();
    assert!(!plain.iter().any(|event| matches!(event, Event::TaskAware { .. } | Event::Unaveraged { .. })));
}

#[test]
fn a_repeated_seed_is_told_of_once() {
    let mut copy = records().remove(0);
    copy.path = "elsewhere/er-seed1".into();
    let report = Report::with_unaveraged([records(), vec![copy]].concat());
    assert_eq!(report.notes, ["elsewhere/er-seed1 repeats seed 1 of out/demo/er-seed1 and is left out"]);
    assert_eq!(group(&report, "er, unaveraged").runs.len(), 2);
}

/// What a directive becomes, or the error and its hint.
fn filled(text: &str) -> String {
    let root = tempfile::tempdir().unwrap();
    for record in records() {
        write(&record, root.path());
    }
    match fill(Path::new("page.in.md"), text, root.path()) {
        Ok(text) => text,
        Err(error) => format!("{error} ({})", error.hint().unwrap()),
    }
}

#[test]
fn documents_can_name_it() {
    insta::assert_snapshot!(filled(
        "<!-- table demo columns=folder,acc seeds=both rows=er,er@unaveraged -->\n\n\
         <!-- table demo columns=acc,isa seeds=mean against=er@unaveraged\n\
         er: `er`, averaged\n\
         er@unaveraged: itself\n\
         -->\n"
    ));
    assert_eq!(
        filled("<!-- table demo columns=acc rows=finetune@unaveraged -->"),
        "page.in.md, line 1: no record of `finetune@unaveraged` (only runs whose average answers have such a row; check its \
         spelling)"
    );
}
