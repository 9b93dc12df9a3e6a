//! Hand-worked numbers and properties of the metrics.

use proptest::prelude::*;

use super::*;
use crate::record::FORMAT;

fn start(task_classes: Vec<Vec<usize>>) -> Event {
    let classes = task_classes.iter().flatten().map(|class| format!("class {class}")).collect();
    let task_samples = vec![10; task_classes.len()];
    Event::Start { format: FORMAT, classes, task_classes, task_samples }
}

fn evaluation(kind: EvaluationKind, counts: &[(usize, u64, u64)]) -> Event {
    let classes =
        counts.iter().map(|&(class, correct, total)| ClassCount { class, correct, total }).collect();
    Event::Evaluation { samples: 0, updates: 0, kind, classes }
}

fn task_end(task: usize, counts: &[(usize, u64, u64)]) -> Event {
    evaluation(EvaluationKind::TaskEnd(task), counts)
}

fn near(found: Option<f64>, expected: f64) -> bool {
    found.is_some_and(|found| (found - expected).abs() < 1e-9)
}

#[test]
fn nothing_recorded_is_nothing_measured() {
    assert_eq!(metrics(&[]), Metrics::default());
    assert_eq!(metrics(&[start(vec![vec![0], vec![1]])]), Metrics::default());
}

#[test]
fn the_sheets_matrix_by_hand() {
    let events = [
        start(vec![vec![0], vec![1], vec![2]]),
        task_end(0, &[(0, 16, 20)]),
        task_end(1, &[(0, 12, 20), (1, 14, 20)]),
        task_end(2, &[(0, 10, 20), (1, 15, 20), (2, 12, 20)]),
    ];
    let found = metrics(&events);
    assert!(near(found.acc, 1.85 / 3.0));
    assert!(near(found.fm, 0.175));
    assert!(near(found.fm_signed, 0.125));
    assert!(near(found.fm_max, 0.125));
    assert!(near(found.a_avg, (0.8 + 0.65 + 1.85 / 3.0) / 3.0));
    assert!(near(found.a_last, 1.85 / 3.0));
    assert_eq!(found.a_auc, None);
    assert_eq!(found.online_acc, None);
}

#[test]
fn one_task_forgets_nothing_and_has_no_earlier_best() {
    let found = metrics(&[start(vec![vec![0, 1]]), task_end(0, &[(0, 3, 10), (1, 5, 10)])]);
    assert!(near(found.acc, 0.4));
    assert_eq!((found.fm, found.fm_signed, found.fm_max), (None, None, None));
    assert_eq!(found.f_last, None);
}

#[test]
fn task_accuracy_weighs_images_and_acc_weighs_tasks() {
    let events = [
        start(vec![vec![0, 1], vec![2]]),
        task_end(0, &[(0, 10, 10), (1, 10, 30)]),
        task_end(1, &[(0, 10, 10), (1, 10, 30), (2, 1, 10)]),
    ];
    let found = metrics(&events);
    assert!(near(found.acc, (0.5 + 0.1) / 2.0));
    assert!(near(found.a_last, 21.0 / 50.0));
}

#[test]
fn an_unmet_class_is_not_scored_and_an_unmet_task_enters_no_mean() {
    let events = [
        start(vec![vec![0, 1], vec![2], vec![3]]),
        task_end(0, &[(0, 8, 10)]),
        task_end(1, &[(0, 6, 10)]),
        task_end(2, &[(0, 4, 10), (1, 2, 10), (3, 9, 10)]),
    ];
    let matrix = AccuracyMatrix::of(&events);
    assert_eq!(matrix.rows[0], [Some(0.8)]);
    assert_eq!(matrix.rows[1], [Some(0.6), None]);
    assert_eq!(matrix.rows[2], [Some(0.3), None, Some(0.9)]);
    let found = metrics(&events);
    assert!(near(found.acc, 0.6));
    assert!(near(found.fm, 0.5), "task 1 was never met, so only task 0 counts");
}

#[test]
fn classes_of_later_tasks_met_early_count_in_any_time_accuracy_only() {
    // Blurry: class 1, major in task 1, already occurs in task 0.
    let events = [
        start(vec![vec![0], vec![1]]),
        task_end(0, &[(0, 9, 10), (1, 1, 10)]),
        task_end(1, &[(0, 5, 10), (1, 7, 10)]),
    ];
    assert_eq!(AccuracyMatrix::of(&events).rows, [vec![Some(0.9)], vec![Some(0.5), Some(0.7)]]);
    let found = metrics(&events);
    assert!(near(found.a_avg, (0.5 + 0.6) / 2.0));
    assert!(near(found.fm, 0.4));
}

#[test]
fn a_stream_cut_after_two_of_three_tasks_is_judged_on_two() {
    let events = [
        start(vec![vec![0], vec![1], vec![2]]),
        task_end(0, &[(0, 10, 10)]),
        evaluation(EvaluationKind::Period, &[(0, 6, 10), (1, 6, 10)]),
        task_end(1, &[(0, 4, 10), (1, 8, 10), (2, 3, 10)]),
        evaluation(EvaluationKind::Period, &[(0, 2, 10), (1, 2, 10)]),
    ];
    let found = metrics(&events);
    assert!(near(found.acc, 0.6));
    assert!(near(found.fm, 0.6));
    assert!(near(found.a_auc, 0.4));
    assert!(near(found.a_last, 0.5));
}

#[test]
fn a_missing_task_end_leaves_its_row_unmeasured() {
    let events = [start(vec![vec![0], vec![1]]), task_end(1, &[(0, 4, 10), (1, 8, 10)])];
    assert_eq!(AccuracyMatrix::of(&events).rows, [vec![None], vec![Some(0.4), Some(0.8)]]);
    let found = metrics(&events);
    assert!(near(found.acc, 0.6));
    assert_eq!(found.fm, None);
    assert_eq!(found.a_avg, None, "one of two task ends is no mean over task ends");
}

#[test]
fn task_ends_beyond_the_announced_tasks_are_ignored_by_the_matrix() {
    let events = [start(vec![vec![0]]), task_end(7, &[(0, 4, 10)])];
    assert_eq!(AccuracyMatrix::of(&events).rows, [vec![None]]);
}

#[test]
fn online_accuracy_is_the_last_count() {
    let events = [Event::Online { samples: 10, correct: 1 }, Event::Online { samples: 40, correct: 10 }];
    assert_eq!(metrics(&events).online_acc, Some(0.25));
    assert_eq!(metrics(&[Event::Online { samples: 0, correct: 0 }]).online_acc, None);
}

/// Three tasks of two classes; each test image's class and whether it was answered right.
fn predictions() -> impl Strategy<Value = Vec<(usize, bool)>> {
    prop::collection::vec((0_usize..6, any::<bool>()), 1..200)
}

fn share_right<'a>(predictions: impl Iterator<Item = &'a (usize, bool)>) -> Option<f64> {
    let right: Vec<bool> = predictions.map(|(_, right)| *right).collect();
    mean(right.into_iter().map(f64::from))
}

proptest! {
    #[test]
    fn acc_from_counts_is_acc_from_predictions(predictions in predictions()) {
        let tasks = vec![vec![0, 1], vec![2, 3], vec![4, 5]];
        let per_task = tasks.iter().filter_map(|classes| {
            share_right(predictions.iter().filter(|(class, _)| classes.contains(class)))
        });
        let expected = mean(per_task).unwrap();

        let counts: Vec<_> = (0..6_usize)
            .map(|class| {
                let right = |right: bool| {
                    predictions.iter().filter(|&&prediction| prediction == (class, right)).count() as u64
                };
                (class, right(true), right(true) + right(false))
            })
            .collect();
        let found = metrics(&[start(tasks), task_end(2, &counts)]);

        prop_assert!(near(found.acc, expected));
        prop_assert!(near(found.a_last, share_right(predictions.iter()).unwrap()));
    }

    #[test]
    fn with_equal_task_sizes_acc_is_plain_accuracy(correct in prop::collection::vec(0_u64..=20, 6)) {
        let counts: Vec<_> = correct.iter().enumerate().map(|(class, &correct)| (class, correct, 20)).collect();
        let found = metrics(&[start(vec![vec![0, 1], vec![2, 3], vec![4, 5]]), task_end(2, &counts)]);
        prop_assert!((found.acc.unwrap() - found.a_last.unwrap()).abs() < 1e-12);
    }

    #[test]
    fn the_three_forgettings_are_ordered(correct in prop::collection::vec(0_u64..=20, 6)) {
        let count = |class: usize, at: usize| (class, correct[at], 20);
        let found = metrics(&[
            start(vec![vec![0], vec![1], vec![2]]),
            task_end(0, &[count(0, 0)]),
            task_end(1, &[count(0, 1), count(1, 2)]),
            task_end(2, &[count(0, 3), count(1, 4), count(2, 5)]),
        ]);
        prop_assert!(found.fm_signed <= found.fm);
        prop_assert!(found.fm_signed <= found.fm_max);
    }
}
