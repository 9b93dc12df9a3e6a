//! Tables in documents, from made-up records.

use std::path::Path;

use crate::made_up::{Plan, write};
use dpcl_report::reproduce::fill;

/// Two seeds of `er`, three of `bic`, one of another stream, one that did not finish, and folders of readings.
fn records(root: &Path) {
    let er = Plan::small("er", 0.9, 0.5);
    let bic = Plan { knowledge: "task-ends", ..Plan::small("bic", 0.8, 0.6) };
    let blurry = Plan { scenario: "blurry", ..Plan::small("blurry", 0.8, 0.6) };
    for seed in [1, 2] {
        write(&er.record(seed), root);
        write(&er.record(seed), &root.join("screen/first"));
    }
    for seed in [2, 3, 5] {
        write(&bic.record(seed), root);
    }
    write(&blurry.record(1), root);
    write(&Plan::small("broken", 0.8, 0.6).cut_record(1, 6, None), root);
    write(&Plan { memory: 6, ..er }.record(3), &root.join("screen/second"));
    let mut early = Plan::small("early", 0.9, 0.5).record(2);
    early.events.retain(|event| !matches!(event, dpcl_report::record::Event::Uncertainty(_)));
    early.result.as_mut().unwrap().metrics = dpcl_report::metrics::metrics(&early.events);
    write(&Plan::small("early", 0.9, 0.5).record(1), root);
    write(&early, root);
}

/// What a text becomes, or the error and its hint.
fn filled(text: &str) -> String {
    let root = tempfile::tempdir().unwrap();
    records(root.path());
    match fill(Path::new("page.in.md"), text, root.path()) {
        Ok(text) => text,
        Err(error) => format!("{error} ({})", error.hint().unwrap()),
    }
}

#[test]
fn each_seed_has_a_line_and_text_around_stays() {
    let text =
        "# Title\n\n<!-- a comment -->\n<!-- table demo columns=acc,updates,isa rows=er,bic -->\n\nEnd.\n";
    insta::assert_snapshot!(filled(text));
}

#[test]
fn means_are_below_their_seeds_and_sorted() {
    let text = "<!-- table demo columns=folder,acc,ece,after_2,end_1 seeds=both sort=fm name=what\n\
                bic: **BiC**, with a teacher\n\
                er: ER\n\
                -->\n";
    insta::assert_snapshot!(filled(text));
}

#[test]
fn differences_are_over_common_seeds() {
    let text = "<!-- table demo columns=acc,fm,isa seeds=mean against=er rows=bic,er -->\n";
    insta::assert_snapshot!(filled(text));
}

#[test]
fn folders_below_are_rows_too() {
    let text = "<!-- table screen columns=acc only=2,3 rows=first/demo,second/demo -->\n";
    insta::assert_snapshot!(filled(text));
}

#[test]
fn a_mean_over_fewer_seeds_says_so() {
    let text = filled("<!-- table demo columns=ece,acc seeds=mean rows=early -->\n");
    let line = text.lines().last().unwrap();
    assert!(line.contains("(1 seed) |"), "{line}");
    assert_eq!(line.matches("seed").count(), 1, "{line}");
}

#[test]
fn a_block_is_replaced_in_place_and_stays_so() {
    let text = "before\n<!-- begin table demo columns=acc only=1 rows=er -->\nstale\n<!-- end -->\nafter\n";
    let once = filled(text);
    insta::assert_snapshot!(once);
    assert_eq!(filled(&once), once);
}

#[test]
fn what_cannot_be_made_is_an_error_that_names_the_line() {
    let rows = |option: &str, rows: &str| filled(&format!("\n<!-- table demo {option} rows={rows} -->\n"));
    let unfinished = rows("columns=acc", "broken");
    assert!(unfinished.starts_with("page.in.md, line 2: "), "{unfinished}");
    assert!(unfinished.contains("broken-seed1 has no result"), "{unfinished}");
    let found = [
        filled("<!-- table nowhere columns=acc rows=er -->"),
        filled("<!-- table demo columns=speed rows=er -->"),
        filled("<!-- table demo columns=acc rows=er"),
        filled("<!-- begin table demo columns=acc rows=er -->"),
        rows("columns=acc", "er,mine"),
        rows("columns=acc only=9", "er"),
        rows("columns=acc", "er,blurry"),
        rows("columns=after_4", "er"),
        rows("columns=count_moves", "er"),
        rows("columns=acc against=mine", "er"),
        rows("columns=acc against=early only=1,3", "bic"),
    ];
    insta::assert_snapshot!(found.join("\n"));
}

#[test]
fn a_row_is_one_configuration() {
    let root = tempfile::tempdir().unwrap();
    records(root.path());
    write(&Plan { memory: 6, ..Plan::small("er", 0.9, 0.5) }.record(3), root.path());
    let text = "<!-- table demo columns=acc rows=er -->";
    let error = fill(Path::new("page.in.md"), text, root.path()).unwrap_err().to_string();
    assert_eq!(error, "page.in.md, line 1: `er` is more than one thing: er (memory 6); er (memory 12)");
}
