//! Reading whole, cut-off, damaged and newer records.

use std::fs;

use proptest::prelude::*;

use super::*;
use crate::metrics::metrics;

const START: &str =
    r#"{"event":"start","format":1,"classes":["a","b"],"task_classes":[[0],[1]],"task_samples":[5,5]}"#;
const EVALUATION: &str = r#"{"event":"evaluation","samples":5,"updates":15,"kind":{"task_end":0},"classes":[{"class":0,"correct":3,"total":4}]}"#;
const UNCERTAINTY: &str = r#"{"event":"uncertainty","samples":5,"calibration":[{"count":1,"confidence":0.4,"correct":0},{"count":3,"confidence":2.4,"correct":3}],"by_confidence":[{"kept":3,"correct":3},{"kept":4,"correct":3}],"by_entropy":[{"kept":4,"correct":3}],"by_disagreement":[{"kept":4,"correct":3}]}"#;
/// Without what later versions of the program added.
const RESULT: &str = r#"{"format":1,"method":"er","label":"er","dataset":"toy","scenario":"disjoint","model":"slim","seed":1,"metrics":{"acc":0.75,"fm":null,"fm_signed":null,"fm_max":null,"a_auc":null,"a_avg":null,"a_last":null,"f_last":null,"online_acc":null},"updates":15,"samples":5,"train_seconds":1.0,"eval_seconds":0.5,"peak_memory_bytes":1000,"isa":"avx2","threads":1,"knowledge":"none","version":"0.1.0"}"#;

fn parse(text: &str) -> Result<Vec<Event>> {
    parse_events(Path::new("events.jsonl"), text.as_bytes())
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

fn run_folder(parent: &Path, name: &str) -> PathBuf {
    let folder = parent.join(name);
    fs::create_dir_all(folder.join("checkpoint")).unwrap();
    fs::write(folder.join(CONFIG_FILE), "seed = 1\n").unwrap();
    fs::write(folder.join(EVENTS_FILE), format!("{START}\n{EVALUATION}\n")).unwrap();
    folder
}

#[test]
fn a_whole_file_is_read_line_by_line() {
    let events = parse(&format!("{START}\n{EVALUATION}\n")).unwrap();
    assert_eq!(events.len(), 2);
    assert_eq!(metrics(&events).acc, Some(0.75));
}

#[test]
fn a_last_line_cut_off_anywhere_is_dropped() {
    for length in 0..EVALUATION.len() {
        let events = parse(&format!("{START}\n{}", &EVALUATION[..length])).unwrap();
        assert_eq!(events.len(), 1, "cut after {length} bytes");
    }
    assert_eq!(parse(&format!("{START}\n{EVALUATION}")).unwrap().len(), 2);
}

#[test]
fn zeros_left_by_a_crash_are_dropped() {
    let mut bytes = format!("{START}\n").into_bytes();
    bytes.extend([0; 64]);
    assert_eq!(parse_events(Path::new("events.jsonl"), &bytes).unwrap().len(), 1);
}

#[test]
fn a_bad_line_elsewhere_is_refused_with_its_number() {
    let found = parse(&format!("{START}\n{{\n{EVALUATION}\n")).unwrap_err();
    assert!(found.to_string().starts_with("events.jsonl, line 2: is not an event of a record"), "{found}");
    assert!(found.hint().unwrap().contains("remove this line"));
    assert!(error(&format!("{START}\n{{\n")).contains("line 2"), "a finished last line counts as written");
}

#[test]
fn events_must_refer_to_what_the_start_announced() {
    let after_start = |line: &str| error(&format!("{START}\n{line}\n"));
    assert_eq!(
        after_start(r#"{"event":"new_class","samples":1,"class":2}"#),
        "events.jsonl, line 2: speaks of class 2 of a data set with 2"
    );
    assert_eq!(
        after_start(r#"{"event":"task_end","task":2,"samples":5}"#),
        "events.jsonl, line 2: speaks of task 2 of a stream with 2"
    );
    assert_eq!(
        after_start(&EVALUATION.replace("\"correct\":3", "\"correct\":5")),
        "events.jsonl, line 2: counts 5 right answers to 4 images"
    );
    assert_eq!(after_start(START), "events.jsonl, line 2: begins a second run in one record");
    assert_eq!(error(&format!("{EVALUATION}\n")), "events.jsonl, line 1: comes before the start of the run");
    assert_eq!(
        after_start(&format!("{EVALUATION}\n{}", EVALUATION.replace("\"samples\":5", "\"samples\":4"))),
        "events.jsonl, line 3: goes back from sample 5 to 4"
    );
}

#[test]
fn how_sure_the_answers_were_is_read_and_judged() {
    let events = parse(&format!("{START}\n{EVALUATION}\n{UNCERTAINTY}\n")).unwrap();
    let found = metrics(&events);
    // (|0 − 0.4| + |3 − 2.4|) / 4; a risk of 0 up to 3/4, then rising to 1/4.
    assert!((found.ece.unwrap() - 0.25).abs() < 1e-12);
    assert_eq!(found.aurc_confidence, Some(0.25 * 0.125));
    assert_eq!(found.aurc_disagreement, None, "all heads agree");

    let broken = |from: &str, to: &str| error(&format!("{START}\n{}\n", UNCERTAINTY.replacen(from, to, 1)));
    assert_eq!(
        broken("\"correct\":0", "\"correct\":2"),
        "events.jsonl, line 2: counts 2 right answers to 1 images"
    );
    assert_eq!(
        broken("\"kept\":3", "\"kept\":4"),
        "events.jsonl, line 2: keeps fewer answers at a lower threshold"
    );
    assert_eq!(
        broken("\"count\":1", "\"count\":2"),
        "events.jsonl, line 2: does not keep all of 5 answers at the lowest threshold"
    );
}

#[test]
fn a_newer_format_is_refused_whatever_else_changed() {
    let found = parse("{\"event\":\"start\",\"format\":2,\"anything\":[]}\n").unwrap_err();
    assert_eq!(
        found.to_string(),
        "events.jsonl: record format 2 is newer than 1, the newest this program reads"
    );
    assert!(found.hint().unwrap().contains("update"));
    let found = parse_result(Path::new("result.json"), br#"{"format":3}"#).unwrap_err();
    assert!(matches!(found, Error::NewerFormat { found: 3, .. }));
}

#[test]
fn numbers_that_were_none_read_back() {
    let counters = [("accepts".to_owned(), f64::NAN), ("ups".to_owned(), 2.0)].into();
    let written = Event::Progress { samples: 5, updates: 15, loss: f64::NAN, rate: f64::INFINITY, counters };
    let line = serde_json::to_string(&written).unwrap();
    let events = parse(&format!("{START}\n{line}\n")).unwrap();
    let Event::Progress { loss, rate, counters, .. } = &events[1] else { panic!("{:?}", events[1]) };
    assert!(
        loss.is_nan() && rate.is_nan() && counters["accepts"].is_nan(),
        "{line} {loss} {rate} {counters:?}"
    );
    assert_eq!(counters["ups"], 2.0);
}

#[test]
fn records_are_found_at_any_depth_once_and_in_order() {
    let out = tempfile::tempdir().unwrap();
    for name in ["small/er-seed2", "small/er-seed1", "other/deep/dpcl-seed1"] {
        run_folder(out.path(), name);
    }
    fs::write(out.path().join("small").join(CONFIG_FILE), "a grid's own = 'broken, and none of our business")
        .unwrap();
    // Never began: known by its name.
    let early = out.path().join("small/mir-seed3");
    fs::create_dir(&early).unwrap();
    fs::write(early.join(CONFIG_FILE), "").unwrap();

    let both = [out.path().to_owned(), out.path().join("small")];
    let found: Vec<String> =
        find(&both).unwrap().iter().map(|record| name_and_seed(&record.path).0).collect();
    assert_eq!(found, ["dpcl", "er", "er", "mir"]);
}

#[test]
fn a_finished_run_has_its_result_and_an_unfinished_one_has_none() {
    let out = tempfile::tempdir().unwrap();
    let folder = run_folder(out.path(), "er-seed1");
    assert_eq!(read(&folder).unwrap().result, None);
    fs::write(folder.join(RESULT_FILE), RESULT).unwrap();
    let result = read(&folder).unwrap().result.unwrap();
    assert_eq!((result.metrics.acc, result.metrics.ece, result.parameters), (Some(0.75), None, None));
    fs::write(folder.join(ERROR_FILE), "out of memory\n").unwrap();
    assert_eq!(read(&folder).unwrap().failure.as_deref(), Some("out of memory"));
}

#[test]
fn errors_name_the_file_and_a_way_out() {
    let out = tempfile::tempdir().unwrap();
    let nothing = find(&[out.path().to_owned()]).unwrap_err();
    assert!(nothing.to_string().starts_with("no run was recorded in "));
    assert!(nothing.hint().unwrap().contains("--out"));

    let missing = find(&[out.path().join("absent")]).unwrap_err();
    assert!(missing.to_string().ends_with("absent"));
    assert_eq!(missing.hint().unwrap(), "check the path's spelling");

    let folder = run_folder(out.path(), "er-seed1");
    fs::write(folder.join(RESULT_FILE), "{\"format\":1}").unwrap();
    assert!(
        read(&folder).unwrap_err().to_string().contains("result.json, line 1: is not the result of a run")
    );
    fs::write(folder.join(RESULT_FILE), RESULT).unwrap();
    fs::write(folder.join(EVENTS_FILE), "").unwrap();
    assert!(read(&folder).unwrap_err().to_string().contains("has no events although result.json"));
    fs::write(folder.join(CONFIG_FILE), "seed = 1\nmemory = = 2\n").unwrap();
    assert!(read(&folder).unwrap_err().to_string().contains("config.toml, line 2: "));
    fs::write(folder.join(CONFIG_FILE), [0xff, 0xfe]).unwrap();
    assert!(read(&folder).unwrap_err().to_string().contains("config.toml: is not UTF-8 text"));
}

#[test]
fn folders_are_named_by_label_and_seed() {
    let parts = |name: &str| name_and_seed(Path::new(name));
    assert_eq!(parts("out/er-seed12"), ("er".into(), Some(12)));
    assert_eq!(parts("a-seed1-seed2"), ("a-seed1".into(), Some(2)));
    assert_eq!(parts("notes"), ("notes".into(), None));
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = parse_events(Path::new("events.jsonl"), &bytes).map(|events| metrics(&events));
    }

    #[test]
    fn no_damaged_line_makes_reader_or_metrics_panic(
        at in any::<prop::sample::Index>(),
        replacement in prop::collection::vec(any::<u8>(), 0..4),
        digits in "[0-9]{1,25}",
        number in any::<bool>(),
    ) {
        let text = format!("{START}\n{EVALUATION}\n{EVALUATION}\n");
        let mut bytes = text.into_bytes();
        let at = at.index(bytes.len());
        let with = if number { digits.into_bytes() } else { replacement };
        bytes.splice(at..at + 1, with);
        let _ = parse_events(Path::new("events.jsonl"), &bytes).map(|events| metrics(&events));
    }
}
