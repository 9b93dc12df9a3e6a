//! How much a stored sample's history tells of what the heads disagree on.
//!
//! Histories are gathered from disturbed training rows over many steps. Here they are held against the disagreement that
//! the same samples meet when they are asked about clean, and that again against itself with other draws: what two such
//! measurements do not share is chance, and no history can tell more. Ranks are compared, since ranks are what a memory
//! goes by; it compares within a class, so that is told apart.

use burn::tensor::Tensor;
use serde::Serialize;

use super::StochasticHeads;
use crate::{
    answers::{Between, Scores},
    memory::{Memory, Sample},
    method::Core,
};

/// Stored samples that go through the network at once.
const ROWS: usize = 128;

/// Histories beside disagreement on a clean pass.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HistoryCheck {
    /// Stored samples that have a history.
    pub samples: usize,
    /// Their mean history, in nats.
    pub history: f64,
    /// Standard deviation of a logit between the draws of one head, on average.
    pub logit_deviation: f64,
    /// Every way to take disagreement.
    pub ways: Vec<Way>,
}

/// One way to take disagreement on a clean pass.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Way {
    /// Between whose answers.
    pub between: &'static str,
    /// Its mean, in nats.
    pub mean: f64,
    /// How histories go with it.
    pub history: Correlation,
    /// How the same with other draws goes with it; none where nothing is drawn.
    pub repeated: Option<Correlation>,
}

/// Spearman's rank correlation of two measurements; none where one of them does not vary.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Correlation {
    /// Over all samples.
    pub all: Option<f64>,
    /// Within classes, averaged by their samples.
    pub within_classes: Option<f64>,
}

impl StochasticHeads {
    /// Holds the histories of stored samples against a clean pass after that many training steps.
    pub(super) fn check_histories(&self, core: &Core, memory: &Memory, steps: u64) -> Option<HistoryCheck> {
        let stored = || memory.slots().iter().enumerate().filter(|(slot, _)| memory.is_measured(*slot));
        let samples: Vec<&Sample> = stored().map(|(_, sample)| sample).collect();
        if samples.is_empty() {
            return None;
        }
        let history: Vec<f64> = stored().map(|(slot, _)| memory.history()[slot]).collect();
        let classes: Vec<usize> = samples.iter().map(|sample| sample.class).collect();
        let asked = self.asked(&core.model, &features(core, &samples), steps)?;

        let compare = |one: &[f64], other: &[f64]| Correlation::of(one, other, &classes);
        let drawn = |name, between| {
            let [first, again] =
                asked.drawn.each_ref().map(|votes| disagreement(votes.scores_between(between)));
            let repeated = Some(compare(&first, &again));
            Way { between: name, mean: mean(&first), history: compare(&history, &first), repeated }
        };
        let means = disagreement(asked.mean.scores());
        let of_means = Way {
            between: "means of heads",
            mean: mean(&means),
            history: compare(&history, &means),
            repeated: None,
        };
        Some(HistoryCheck {
            samples: samples.len(),
            history: mean(&history),
            logit_deviation: asked.deviation,
            ways: vec![drawn("heads", Between::Heads), drawn("draws", Between::Draws), of_means],
        })
    }
}

/// Features that answers on stored samples come from, [rows, features].
fn features(core: &Core, samples: &[&Sample]) -> Tensor<2> {
    let part = |samples: &[&Sample]| {
        let floats = core.batcher.stored(samples.iter().copied());
        core.model.answering().features(core.model.images(floats, core.batcher.size()))
    };
    Tensor::cat(samples.chunks(ROWS).map(part).collect(), 0)
}

fn disagreement(answers: Vec<Scores>) -> Vec<f64> {
    answers.into_iter().map(|answer| answer.disagreement).collect()
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

impl Correlation {
    /// Of two measurements on the same samples, which have these classes.
    fn of(one: &[f64], other: &[f64], classes: &[usize]) -> Self {
        let (mut sum, mut samples) = (0.0, 0);
        for class in 0..=classes.iter().copied().max().unwrap_or(0) {
            let pick = |numbers: &[f64]| -> Vec<f64> {
                let own = numbers.iter().zip(classes).filter(|&(_, &of)| of == class);
                own.map(|(&number, _)| number).collect()
            };
            let (one, other) = (pick(one), pick(other));
            if let Some(found) = rank_correlation(&one, &other) {
                sum += found * one.len() as f64;
                samples += one.len();
            }
        }
        let within_classes = (samples > 0).then(|| sum / samples as f64);
        Self { all: rank_correlation(one, other), within_classes }
    }
}

/// Spearman's rank correlation; equal numbers share the mean of their ranks.
fn rank_correlation(one: &[f64], other: &[f64]) -> Option<f64> {
    let (one, other) = (ranks(one), ranks(other));
    let middle = (one.len() as f64 - 1.0) / 2.0;
    let product =
        |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| (a - middle) * (b - middle)).sum() };
    let scale = (product(&one, &one) * product(&other, &other)).sqrt();
    (scale > 0.0).then(|| product(&one, &other) / scale)
}

/// The rank of each number, from 0.
fn ranks(numbers: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by(|&a, &b| numbers[a].total_cmp(&numbers[b]));
    let mut ranks = vec![0.0; numbers.len()];
    let mut first = 0;
    for equal in order.chunk_by(|&a, &b| numbers[a] == numbers[b]) {
        let shared = first as f64 + (equal.len() as f64 - 1.0) / 2.0;
        equal.iter().for_each(|&index| ranks[index] = shared);
        first += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hand_worked_rank_correlations() {
        assert_eq!(ranks(&[0.3, 0.1, 0.3, 0.9]), [1.5, 0.0, 1.5, 3.0]);
        // Differences of ranks 1, 1, 1, 1, 0: 1 − 6 · 4 / (5 · 24).
        let found = rank_correlation(&[1.0, 2.0, 3.0, 4.0, 5.0], &[20.0, 10.0, 40.0, 30.0, 99.0]).unwrap();
        assert!((found - 0.8).abs() < 1e-12, "{found}");
        assert_eq!(rank_correlation(&[1.0, 2.0], &[7.0, 3.0]), Some(-1.0));
        assert_eq!(rank_correlation(&[1.0, 2.0], &[3.0, 3.0]), None, "nothing to rank");
        assert_eq!(rank_correlation(&[1.0], &[3.0]), None);
        assert_eq!(rank_correlation(&[], &[]), None);
    }

    #[test]
    fn classes_that_differ_are_not_samples_that_differ() {
        // Turned round within both classes, which lie far apart.
        let found = Correlation::of(&[1.0, 2.0, 11.0, 12.0], &[6.0, 5.0, 8.0, 7.0], &[0, 0, 3, 3]);
        assert_eq!(found.within_classes, Some(-1.0));
        // Differences of ranks all 1: 1 − 6 · 4 / (4 · 15).
        assert!((found.all.unwrap() - 0.6).abs() < 1e-12);
        // A class of one sample says nothing of itself; of the others one agrees and one, of three, does not.
        let classes = [0, 1, 1, 2, 2, 2];
        let one = [9.0, 1.0, 2.0, 1.0, 2.0, 3.0];
        let found = Correlation::of(&one, &[1.0, 3.0, 4.0, 3.0, 2.0, 1.0], &classes);
        assert!((found.within_classes.unwrap() - (2.0 - 3.0) / 5.0).abs() < 1e-12);
    }
}
