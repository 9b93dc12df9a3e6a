//! The metrics against numbers computed by an independent implementation.

use std::path::PathBuf;

use dpcl_report::metrics::metrics;
use dpcl_report::record::{ClassCount, EvaluationKind, Event, FORMAT, Metrics};
use dpcl_report::statistics::Estimate;
use serde_json::Value;

/// The fixtures' accuracies have four decimals, so this many images express each of them exactly.
const IMAGES: u64 = 10_000;

fn cases(prefix: &str) -> Vec<Value> {
    let folder = std::env::var_os("DPCL_REFERENCE").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/reference")),
        PathBuf::from,
    );
    let text = std::fs::read_to_string(folder.join("metrics.json")).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let cases: Vec<Value> = file["cases"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|case| case["name"].as_str().unwrap().starts_with(prefix))
        .cloned()
        .collect();
    assert!(!cases.is_empty(), "no case begins with {prefix}");
    cases
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

fn start(tasks: usize) -> Event {
    Event::Start {
        format: FORMAT,
        classes: (0..tasks).map(|class| class.to_string()).collect(),
        task_classes: (0..tasks).map(|class| vec![class]).collect(),
        task_samples: vec![1; tasks],
    }
}

fn evaluation(kind: EvaluationKind, classes: Vec<ClassCount>) -> Event {
    Event::Evaluation { samples: 0, updates: 0, kind, classes }
}

fn count(class: usize, accuracy: f64) -> ClassCount {
    ClassCount { class, correct: (accuracy * IMAGES as f64).round() as u64, total: IMAGES }
}

fn check(case: &Value, metric: &str, found: Option<f64>) {
    let expected = case["expected"][metric].as_f64().unwrap();
    let tolerance = case["tolerance"].as_f64().unwrap();
    let found = found.unwrap_or(f64::NAN);
    assert!((found - expected).abs() <= tolerance, "{}: {metric} {found}, expected {expected}", case["name"]);
}

#[test]
fn golden_accuracy_matrices() {
    for case in cases("matrix") {
        let rows: Vec<Vec<f64>> = case["input"]["a"].as_array().unwrap().iter().map(numbers).collect();
        let mut events = vec![start(rows.len())];
        events.extend(rows.iter().enumerate().map(|(task, row)| {
            let counts = row.iter().enumerate().map(|(class, &accuracy)| count(class, accuracy)).collect();
            evaluation(EvaluationKind::TaskEnd(task), counts)
        }));
        let Metrics { acc, fm, fm_signed, fm_max, .. } = metrics(&events);
        check(&case, "ACC", acc);
        if rows.len() == 1 {
            // Where nothing could be forgotten the reference has 0.
            assert_eq!((fm, fm_signed, fm_max), (None, None, None));
            continue;
        }
        check(&case, "FM", fm);
        check(&case, "FM_signed", fm_signed);
        check(&case, "FM_max", fm_max);
    }
}

#[test]
fn golden_any_time_averages() {
    for case in cases("anytime") {
        let accuracies = |key: &str| -> Vec<f64> {
            case["input"][key].as_array().unwrap().iter().map(|point| numbers(point)[1]).collect()
        };
        let ends = accuracies("task_end_points");
        let mut events = vec![start(ends.len())];
        for accuracy in accuracies("periodic_points") {
            events.push(evaluation(EvaluationKind::Period, vec![count(0, accuracy)]));
        }
        for (task, &accuracy) in ends.iter().enumerate() {
            events.push(evaluation(EvaluationKind::TaskEnd(task), vec![count(0, accuracy)]));
        }
        let found = metrics(&events);
        check(&case, "A_AUC", found.a_auc);
        check(&case, "A_avg", found.a_avg);
        check(&case, "A_last", found.a_last);
    }
}

#[test]
fn golden_forgetting_per_class() {
    for case in cases("F_last") {
        let totals = numbers(&case["input"]["total_per_class"]);
        let ends = case["input"]["correct_per_class_at_task_ends"].as_array().unwrap();
        let mut events = vec![start(totals.len())];
        for (task, correct) in ends.iter().enumerate() {
            let counts = numbers(correct)
                .iter()
                .zip(&totals)
                .enumerate()
                .map(|(class, (&correct, &total))| ClassCount {
                    class,
                    correct: correct as u64,
                    total: total as u64,
                })
                .collect();
            events.push(evaluation(EvaluationKind::TaskEnd(task), counts));
        }
        check(&case, "F_last", metrics(&events).f_last);
    }
}

#[test]
fn golden_mean_and_sample_deviation() {
    for case in cases("mean_and_sample_deviation") {
        let found = Estimate::of(&numbers(&case["input"]["values"])).unwrap();
        check(&case, "mean", Some(found.mean));
        check(&case, "std", found.deviation);
    }
}
