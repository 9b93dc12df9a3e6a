//! Sample-wise importance (CLIB): a sample is worth keeping if training on it lowers the loss on everything stored.
//!
//! Paper: Online Continual Learning on Class Incremental Blurry Task Configuration with Anytime Inference (ICLR 2022,
//! arXiv 2110.10031).
//!
//! Every newcomer is let in, at the cost of the least important sample of the class that would hold most slots with
//! it, and starts with the mean score of its class. At each refresh, with Δ the mean change of the losses of samples
//! that stayed, and D the slots trained on since the refresh before: e = Δ − mean_{j∈D}(sⱼ)/|D|, sⱼ ← sⱼ − (1 − keep)·e
//! for j in D.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Chance, Offer, Place, Scheme, View, largest_class};
use crate::{
    error::{Error, Result},
    state::{Persist, State},
};

/// Scores stored samples by what training on them does to the losses of all.
#[derive(Clone, Debug)]
pub struct Clib {
    keep: f64,
    moving: Moving,
}

/// What changes from event to event; index = slot.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Moving {
    scores: Vec<f64>,
    /// Losses at the last refresh, of the slots that were filled by then.
    losses: Vec<f64>,
    /// Slots trained on since the last refresh.
    drawn: BTreeSet<usize>,
}

impl Clib {
    /// Share of its old score that a sample keeps at a refresh, unless configured.
    pub const KEEP: f64 = 0.9;

    /// Nothing stored yet; `keep` is the share of its old score that a sample keeps at a refresh, 0..1.
    pub fn new(keep: f64) -> Self {
        Self { keep, moving: Moving::default() }
    }

    /// The slot a newcomer to a full memory takes: the least important one of the class with most slots.
    fn weakest(&self, view: View<'_>, class: usize) -> Option<usize> {
        let largest = largest_class(view.classes, Some(class))?;
        let rivals = (0..view.classes.len()).filter(|&slot| view.classes[slot] == largest);
        // `min_by` returns the first of equal slots.
        rivals.min_by(|&a, &b| self.moving.scores[a].total_cmp(&self.moving.scores[b]))
    }

    /// Mean score of the stored samples of a class, the one that leaves not counted.
    fn class_mean(&self, view: View<'_>, class: usize, leaving: Option<usize>) -> Option<f64> {
        let others =
            (0..view.classes.len()).filter(|&slot| view.classes[slot] == class && Some(slot) != leaving);
        mean(others.map(|slot| self.moving.scores[slot]))
    }
}

impl Default for Clib {
    fn default() -> Self {
        Self::new(Self::KEEP)
    }
}

impl Scheme for Clib {
    fn place(&mut self, view: View<'_>, offer: Offer, _chance: &mut dyn Chance) -> Place {
        if view.classes.len() < view.capacity {
            let score = self.class_mean(view, offer.class, None).unwrap_or(0.0);
            self.moving.scores.push(score);
            return Place::Append;
        }
        let Some(weakest) = self.weakest(view, offer.class) else { return Place::Refuse };
        let own = self.class_mean(view, offer.class, Some(weakest));
        let score = own.or_else(|| mean(self.moving.scores.iter().copied())).unwrap_or(0.0);
        self.moving.scores[weakest] = score;
        Place::Replace(weakest)
    }

    fn needs_losses(&self) -> bool {
        true
    }

    fn trained(&mut self, slots: &[usize]) {
        self.moving.drawn.extend(slots);
    }

    fn check_loaded(&self, filled: usize) -> Result<()> {
        let Moving { scores, losses, drawn } = &self.moving;
        let inside = losses.len() <= filled && drawn.iter().all(|&slot| slot < filled);
        if scores.len() == filled && inside {
            return Ok(());
        }
        let problem = format!("does not go with {filled} filled slots");
        Err(Error::BadState { key: "scheme.moving".into(), problem })
    }

    fn refreshed(&mut self, losses: &[f64], changed: &BTreeSet<usize>) {
        let Moving { scores, losses: old, drawn } = &mut self.moving;
        let stayed = old.iter().zip(losses).enumerate().filter(|(slot, _)| !changed.contains(slot));
        let change = mean(stayed.map(|(_, (old, new))| new - old)).unwrap_or(0.0);
        if let Some(expected) = mean(drawn.iter().map(|&slot| scores[slot])) {
            let error = change - expected / drawn.len() as f64;
            drawn.iter().for_each(|&slot| scores[slot] -= (1.0 - self.keep) * error);
        }
        *old = losses.to_vec();
        drawn.clear();
    }
}

impl Persist for Clib {
    fn save(&self, state: &mut State) {
        state.put("moving", &self.moving);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.moving = state.get("moving")?;
        Ok(())
    }
}

fn mean(numbers: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = numbers.fold((0.0, 0_usize), |(sum, count), number| (sum + number, count + 1));
    (count > 0).then(|| sum / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    impl Clib {
        /// Importance of the sample in each filled slot.
        pub fn scores(&self) -> &[f64] {
            &self.moving.scores
        }
    }

    fn offer(scheme: &mut Clib, classes: &mut Vec<usize>, capacity: usize, class: usize) -> Place {
        let history = vec![0.0; classes.len()];
        let view = View { classes, history: &history, capacity };
        let chance = &mut Random::named(1, "unused");
        let place = scheme.place(view, Offer { class, disagreement: 0.0 }, chance);
        match place {
            Place::Append => classes.push(class),
            Place::Replace(slot) => classes[slot] = class,
            Place::Refuse => {}
        }
        place
    }

    #[test]
    fn samples_that_lowered_the_losses_gain_importance() {
        let (scores, losses) = (vec![0.0, 0.0, 0.1], vec![1.0, 2.0, 0.5]);
        let moving = Moving { scores, losses, drawn: BTreeSet::from([0, 2]) };
        let mut scheme = Clib { moving, ..Clib::default() };
        scheme.refreshed(&[0.8, 1.9, 0.7], &BTreeSet::new());
        for (score, expected) in scheme.scores().iter().zip([0.005_833_33, 0.0, 0.105_833_33]) {
            assert!((score - expected).abs() < 1e-8, "{:?}", scheme.scores());
        }
        assert!(scheme.moving.drawn.is_empty());
    }

    #[test]
    fn samples_that_came_or_changed_since_the_refresh_before_do_not_count() {
        let moving = Moving { scores: vec![0.0; 3], losses: vec![1.0, 2.0], drawn: BTreeSet::from([0]) };
        let mut scheme = Clib { moving, ..Clib::default() };
        scheme.refreshed(&[0.5, 9.0, 9.0], &BTreeSet::from([1]));
        assert!((scheme.scores()[0] - 0.05).abs() < 1e-12, "only slot 0 stayed: a tenth of its gain of 0.5");
    }

    #[test]
    fn a_newcomer_of_the_largest_class_replaces_its_own_kind() {
        let mut scheme = Clib::default();
        let mut classes = Vec::new();
        for class in [0, 0, 1] {
            assert_eq!(offer(&mut scheme, &mut classes, 3, class), Place::Append);
        }
        scheme.moving.scores = vec![0.3, 0.1, 0.2];
        assert_eq!(offer(&mut scheme, &mut classes, 3, 0), Place::Replace(1));
        assert_eq!(scheme.scores(), [0.3, 0.3, 0.2], "the mean of its class, the evicted one not counted");
        assert_eq!(offer(&mut scheme, &mut classes, 3, 2), Place::Replace(0));
        assert!((scheme.scores()[0] - 0.8 / 3.0).abs() < 1e-12, "the first of a class: the mean of all");
    }

    proptest! {
        #[test]
        fn every_newcomer_is_let_in_and_shares_become_equal(capacity in 3_usize..20) {
            let mut scheme = Clib::default();
            let mut classes = Vec::new();
            for round in 0..300 {
                // The first class comes three times as often.
                let class = [0, 1, 0, 2, 0][round % 5];
                prop_assert_ne!(offer(&mut scheme, &mut classes, capacity, class), Place::Refuse);
                scheme.trained(&[round % classes.len()]);
                let losses: Vec<f64> = (0..classes.len()).map(|slot| ((round * 7 + slot) % 5) as f64).collect();
                scheme.refreshed(&losses, &BTreeSet::new());
            }
            let counts = [0, 1, 2].map(|class| classes.iter().filter(|&&stored| stored == class).count());
            let spread = counts.iter().max().unwrap() - counts.iter().min().unwrap();
            prop_assert!(spread <= 1, "{:?}", counts);
        }
    }
}
