//! The curves of one run over the samples it has seen.

use crate::metrics::accuracy;
use crate::record::Event;
use crate::statistics::Curve;

/// Accuracy on the classes met so far, at every evaluation. Where the evaluation period falls on a task end the
/// later evaluation, the task end's, stands.
pub fn any_time(events: &[Event]) -> Curve {
    let mut curve = Curve::new();
    for event in events {
        let Event::Evaluation { samples, classes, .. } = event else { continue };
        let Some(accuracy) = accuracy(classes) else { continue };
        let point = (*samples as f64, accuracy);
        match curve.last_mut() {
            Some(last) if last.0 == point.0 => *last = point,
            _ => curve.push(point),
        }
    }
    curve
}

/// Training loss.
pub fn loss(events: &[Event]) -> Curve {
    progress(events, |loss, _| loss)
}

/// Learning rate.
pub fn rate(events: &[Event]) -> Curve {
    progress(events, |_, rate| rate)
}

fn progress(events: &[Event], value: fn(f64, f64) -> f64) -> Curve {
    events
        .iter()
        .filter_map(|event| match *event {
            Event::Progress { samples, loss, rate, .. } => Some((samples as f64, value(loss, rate))),
            _ => None,
        })
        .collect()
}

/// Samples seen at the end of each task, the dashed lines of a figure; the end of the stream is no border.
pub fn task_borders(task_samples: &[usize]) -> Vec<f64> {
    let ends = task_samples.iter().scan(0.0, |sum, &samples| {
        *sum += samples as f64;
        Some(*sum)
    });
    ends.take(task_samples.len().saturating_sub(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{ClassCount, EvaluationKind};

    fn evaluation(samples: u64, kind: EvaluationKind, correct: u64) -> Event {
        let classes = vec![ClassCount { class: 0, correct, total: 10 }];
        Event::Evaluation { samples, updates: 0, kind, classes }
    }

    #[test]
    fn of_two_evaluations_at_one_sample_the_later_stands() {
        let events = [
            evaluation(500, EvaluationKind::Period, 5),
            evaluation(1000, EvaluationKind::Period, 6),
            evaluation(1000, EvaluationKind::TaskEnd(0), 7),
        ];
        assert_eq!(any_time(&events), [(500.0, 0.5), (1000.0, 0.7)]);
    }

    #[test]
    fn borders_lie_between_tasks() {
        assert_eq!(task_borders(&[10, 20, 30]), [10.0, 30.0]);
        assert!(task_borders(&[10]).is_empty());
        assert!(task_borders(&[]).is_empty());
    }
}
