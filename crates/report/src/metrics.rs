//! The numbers a run is judged by, computed from its events alone.
//!
//! Knows the counts of right answers per class and which classes make up each task's test set; knows nothing of
//! files, seeds or presentation. Classes that were not met when an evaluation was made have no logit and are not
//! scored: a task's accuracy is that of its met classes, and a task with none has no accuracy and enters no mean.

use std::collections::BTreeMap;

use crate::record::{ClassCount, EvaluationKind, Event, Metrics};
use crate::uncertainty::{self, aurc, calibration_error};

/// Keeps the accuracy of a class without test images finite, as the i-Blurry evaluation does.
const NO_IMAGES_GUARD: f64 = 1e-5;

/// Accuracy on each task's test set after each finished task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccuracyMatrix {
    /// Row t, column i ≤ t: accuracy on task i after task t; `None` where no class of task i was met, a whole row of
    /// it where no evaluation was recorded at that task's end.
    pub rows: Vec<Vec<Option<f64>>>,
}

impl AccuracyMatrix {
    /// Builds the matrix up to the last recorded task end; of two evaluations at one task end the later counts.
    pub fn of(events: &[Event]) -> Self {
        Self::from_ends(task_classes(events), &task_ends(events))
    }

    /// The same of answers that were told the task of every image; without rows where none were.
    pub fn with_task_ids(events: &[Event]) -> Self {
        let end = |event| match event {
            &Event::TaskAware { kind: EvaluationKind::TaskEnd(task), ref classes, .. } => {
                Some((task, classes.as_slice()))
            }
            _ => None,
        };
        Self::from_ends(task_classes(events), &events.iter().filter_map(end).collect())
    }

    fn from_ends(tasks: &[Vec<usize>], ends: &BTreeMap<usize, &[ClassCount]>) -> Self {
        let finished = ends.keys().next_back().map_or(0, |last| last + 1).min(tasks.len());
        let row = |after: usize| {
            let counts = ends.get(&after).copied().unwrap_or_default();
            tasks[..=after].iter().map(|classes| accuracy_of(counts, classes)).collect()
        };
        Self { rows: (0..finished).map(row).collect() }
    }

    /// Accuracy on task `task` after task `after`.
    pub fn get(&self, after: usize, task: usize) -> Option<f64> {
        *self.rows.get(after)?.get(task)?
    }

    /// Mean over tasks of the last row (A_T).
    pub fn final_accuracy(&self) -> Option<f64> {
        mean(self.rows.last()?.iter().flatten().copied())
    }

    /// For each task but the last, accuracy right after learning it minus accuracy at the end.
    pub fn forgetting(&self) -> Vec<Option<f64>> {
        let Some(last) = self.rows.len().checked_sub(1) else { return Vec::new() };
        (0..last).map(|task| Some(self.get(task, task)? - self.get(last, task)?)).collect()
    }

    /// For each task but the last, its best accuracy before the end minus accuracy at the end.
    pub fn forgetting_from_best(&self) -> Vec<Option<f64>> {
        let Some(last) = self.rows.len().checked_sub(1) else { return Vec::new() };
        let best = |task: usize| (task..last).filter_map(|after| self.get(after, task)).reduce(f64::max);
        (0..last).map(|task| Some(best(task)? - self.get(last, task)?)).collect()
    }
}

/// All metrics of a run. Those over tasks cover the tasks that ended, so a cut or unfinished stream of T tasks is
/// judged as a stream of T tasks. With one task nothing can be forgotten, and the three forms of FM are none.
pub fn metrics(events: &[Event]) -> Metrics {
    let matrix = AccuracyMatrix::of(events);
    let ends = task_ends(events);
    let end_accuracies: Vec<f64> = ends.values().filter_map(|counts| accuracy(counts)).collect();
    let drops = matrix.forgetting();
    let uncertainty = uncertainty::last(events);
    let told = AccuracyMatrix::with_task_ids(events);
    let plain = unaveraged(events).map(|events| metrics(&events)).unwrap_or_default();
    let mean_drop =
        |matrix: &AccuracyMatrix, drops: &[Option<f64>], of: fn(f64) -> f64| match matrix.rows.len() {
            0 | 1 => None,
            _ => mean(drops.iter().flatten().copied().map(of)),
        };
    Metrics {
        acc: matrix.final_accuracy(),
        fm: mean_drop(&matrix, &drops, f64::abs),
        fm_signed: mean_drop(&matrix, &drops, |drop| drop),
        fm_max: mean_drop(&matrix, &matrix.forgetting_from_best(), |drop| drop),
        a_auc: mean(periodic(events).filter_map(accuracy)),
        // Of a method that answers at the end only there is nothing to average.
        a_avg: if ends.len() == matrix.rows.len() { mean(end_accuracies.iter().copied()) } else { None },
        a_last: ends.values().next_back().and_then(|counts| accuracy(counts)),
        f_last: last_forgetting(&ends),
        online_acc: online_accuracy(events),
        acc_task_ids: told.final_accuracy(),
        fm_task_ids: mean_drop(&told, &told.forgetting(), f64::abs),
        acc_unaveraged: plain.acc,
        fm_unaveraged: plain.fm,
        a_auc_unaveraged: plain.a_auc,
        ece_unaveraged: plain.ece,
        ece: uncertainty.and_then(|last| calibration_error(&last.calibration)),
        aurc_confidence: uncertainty.and_then(|last| aurc(&last.by_confidence)),
        aurc_disagreement: uncertainty
            .filter(|last| uncertainty::ranks(&last.by_disagreement))
            .and_then(|last| aurc(&last.by_disagreement)),
    }
}

/// The events as they would be if the weights that learn answered instead of their average; `None` where they answer
/// anyway. Answers that only the average gave (told task ids, or before a sample was learned) are left out.
pub fn unaveraged(events: &[Event]) -> Option<Vec<Event>> {
    if !events.iter().any(|event| matches!(event, Event::Unaveraged { .. })) {
        return None;
    }
    let mut plain = Vec::with_capacity(events.len());
    for event in events {
        match event.clone() {
            Event::Evaluation { .. }
            | Event::Uncertainty(_)
            | Event::TaskAware { .. }
            | Event::Online { .. } => {}
            Event::Unaveraged { samples, updates, kind, classes, uncertainty } => {
                plain.push(Event::Evaluation { samples, updates, kind, classes });
                plain.extend(uncertainty.map(Event::Uncertainty));
            }
            other => plain.push(other),
        }
    }
    Some(plain)
}

/// Right answers over test images, all given classes together; `None` without images.
pub fn accuracy(counts: &[ClassCount]) -> Option<f64> {
    // Sums in f64: exact for any real test set, and no overflow on the numbers of a damaged record.
    let total: f64 = counts.iter().map(|count| count.total as f64).sum();
    let correct: f64 = counts.iter().map(|count| count.correct as f64).sum();
    (total > 0.0).then(|| correct / total)
}

/// The per-class counts of the last task end, what a finished run knows at its end.
pub fn final_counts(events: &[Event]) -> &[ClassCount] {
    task_ends(events).values().next_back().copied().unwrap_or_default()
}

/// For each task, the classes of its test set.
pub fn task_classes(events: &[Event]) -> &[Vec<usize>] {
    events
        .iter()
        .find_map(|event| match event {
            Event::Start { task_classes, .. } => Some(task_classes.as_slice()),
            _ => None,
        })
        .unwrap_or_default()
}

fn task_ends(events: &[Event]) -> BTreeMap<usize, &[ClassCount]> {
    let end = |event| match event {
        &Event::Evaluation { kind: EvaluationKind::TaskEnd(task), ref classes, .. } => {
            Some((task, classes.as_slice()))
        }
        _ => None,
    };
    events.iter().filter_map(end).collect()
}

fn periodic(events: &[Event]) -> impl Iterator<Item = &[ClassCount]> {
    events.iter().filter_map(|event| match event {
        Event::Evaluation { kind: EvaluationKind::Period, classes, .. } => Some(classes.as_slice()),
        _ => None,
    })
}

fn accuracy_of(counts: &[ClassCount], classes: &[usize]) -> Option<f64> {
    let of_task: Vec<ClassCount> =
        counts.iter().filter(|count| classes.contains(&count.class)).copied().collect();
    accuracy(&of_task)
}

/// Mean over classes that were right at least once at an earlier task end; `None` if there is no such class.
fn last_forgetting(ends: &BTreeMap<usize, &[ClassCount]>) -> Option<f64> {
    let by_class = |counts: &[ClassCount]| -> BTreeMap<usize, f64> {
        let accuracy = |count: &ClassCount| count.correct as f64 / (count.total as f64 + NO_IMAGES_GUARD);
        counts.iter().map(|count| (count.class, accuracy(count))).collect()
    };
    let mut ends: Vec<_> = ends.values().map(|counts| by_class(counts)).collect();
    let last = ends.pop()?;
    let drop = |(class, end): (&usize, &f64)| {
        let best = ends.iter().filter_map(|earlier| earlier.get(class)).copied().reduce(f64::max)?;
        (best > 0.0).then_some(best - end)
    };
    mean(last.iter().filter_map(drop))
}

fn online_accuracy(events: &[Event]) -> Option<f64> {
    events.iter().rev().find_map(|event| match *event {
        Event::Online { samples, correct } if samples > 0 => Some(correct as f64 / samples as f64),
        _ => None,
    })
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_usize), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / count as f64)
}

#[cfg(test)]
#[path = "metrics_tests.rs"]
mod tests;
