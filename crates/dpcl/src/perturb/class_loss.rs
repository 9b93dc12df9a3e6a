//! A running average of the training loss of each class: how hard a class is at present.
//!
//! A batch's loss of class c is the weighted mean of the losses that rows have against c; a mixed row counts for two
//! classes. Then l̄ ← l̂ at the first time, else (1 − κ) l̄ + κ l̂.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    error::Result,
    state::{Persist, State},
};

/// A row's loss against one class, and how much of the row belongs to that class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Term {
    /// The class.
    pub class: usize,
    /// The row's share in it, 0..1.
    pub weight: f64,
    /// Cross-entropy of the row against it.
    pub loss: f64,
}

/// Classes with less weight in a batch than this are passed over.
const LEAST_WEIGHT: f64 = 1e-8;

/// Running loss of every class met in training.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassLosses {
    rate: f64,
    averages: Vec<Option<f64>>,
}

impl ClassLosses {
    /// No class met yet; `rate` (κ) is the share of each new batch.
    pub fn new(rate: f64) -> Self {
        Self { rate, averages: Vec::new() }
    }

    /// Running loss of a class, if it has been trained on.
    pub fn average(&self, class: usize) -> Option<f64> {
        self.averages.get(class).copied().flatten()
    }

    /// How many of the classes in `labels` have never been trained on.
    pub fn unmet(&self, labels: &[usize]) -> usize {
        let unmet = labels.iter().filter(|&&class| self.average(class).is_none());
        unmet.collect::<BTreeSet<_>>().len()
    }

    /// Noise factor ν of each label: 1 for a class in its first batch, else arctan of its running loss.
    pub fn factors(&self, labels: &[usize]) -> Vec<f64> {
        labels.iter().map(|&class| self.average(class).map_or(1.0, f64::atan)).collect()
    }

    /// Moves the averages of the classes in a batch, each once.
    pub fn absorb(&mut self, terms: impl IntoIterator<Item = Term>) {
        for (class, (_, loss)) in class_means(terms) {
            if self.averages.len() <= class {
                self.averages.resize(class + 1, None);
            }
            let average = &mut self.averages[class];
            *average = Some(average.map_or(loss, |old| (1.0 - self.rate) * old + self.rate * loss));
        }
    }
}

/// Total weight and weighted mean loss of each class in a batch.
pub fn class_means(terms: impl IntoIterator<Item = Term>) -> BTreeMap<usize, (f64, f64)> {
    let mut sums: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for Term { class, weight, loss } in terms {
        let sum = sums.entry(class).or_default();
        *sum = (sum.0 + weight, sum.1 + weight * loss);
    }
    sums.retain(|_, (weight, _)| *weight >= LEAST_WEIGHT);
    sums.into_iter().map(|(class, (weight, total))| (class, (weight, total / weight))).collect()
}

impl Persist for ClassLosses {
    fn save(&self, state: &mut State) {
        state.put("averages", &self.averages);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.averages = state.get("averages")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_batch_of_a_class_counts_as_one_radian() {
        let mut losses = ClassLosses::new(0.1);
        losses.absorb([Term { class: 1, weight: 1.0, loss: 2.0 }]);
        let factors = losses.factors(&[0, 1, 5]);
        assert_eq!((factors[0], factors[2]), (1.0, 1.0));
        assert!((factors[1] - 1.107_148_72).abs() < 1e-8);
        // The loss that has the same factor as a first batch: tan 1.
        losses.absorb([Term { class: 0, weight: 1.0, loss: 1.557_407_7 }]);
        assert!((losses.factors(&[0])[0] - 1.0).abs() < 1e-7);
    }

    proptest! {
        #[test]
        fn averages_stay_within_their_inputs_and_decompose_the_loss(
            rows in prop::collection::vec((0_usize..4, 0_usize..4, 0.0_f64..6.0, 0.0_f64..6.0), 1..20),
            coefficient in 0.0_f64..1.0, rate in 0.01_f64..1.0,
        ) {
            let terms: Vec<Term> = rows
                .iter()
                .flat_map(|&(class, partner, loss, other)| [
                    Term { class, weight: coefficient, loss },
                    Term { class: partner, weight: 1.0 - coefficient, loss: other },
                ])
                .collect();
            let whole: f64 = terms.iter().map(|term| term.weight * term.loss).sum();
            let parts: f64 = class_means(terms.clone()).values().map(|(weight, mean)| weight * mean).sum();
            prop_assert!((whole - parts).abs() < 1e-9 * (1.0 + whole));

            let mut losses = ClassLosses::new(rate);
            for term in terms {
                losses.absorb([term]);
            }
            for class in 0..4 {
                let average = losses.average(class);
                prop_assert!(average.is_none_or(|average| (0.0..=6.0).contains(&average)));
                let factor = losses.factors(&[class])[0];
                prop_assert!((0.0..std::f64::consts::FRAC_PI_2).contains(&factor));
            }
        }
    }
}
