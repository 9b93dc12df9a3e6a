//! Perturbation-induced memory (DPCL): keeps what the heads disagree on, class by class.
//!
//! A newcomer competes with the least disputed sample of the class that holds most slots (the newcomer not counted) and
//! takes its place if it is more disputed. `keep = low` turns the comparison round.

use super::{Chance, Offer, Place, Scheme, View, largest_class};
use crate::{
    config::choices,
    error::Result,
    state::{Persist, State},
};

/// Which samples are worth keeping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Those the heads disagree on.
    #[default]
    High,
    /// Those the heads agree on.
    Low,
}

choices!(Keep: High = "high", Low = "low");

/// Compares a newcomer's disagreement with the history of stored samples.
#[derive(Clone, Copy, Debug)]
pub struct Pim {
    keep: Keep,
    admit_new_class: bool,
}

impl Pim {
    /// `admit_new_class` lets in any sample of a class that has no slot at all.
    pub fn new(keep: Keep, admit_new_class: bool) -> Self {
        Self { keep, admit_new_class }
    }
}

impl Default for Pim {
    fn default() -> Self {
        Self::new(Keep::High, true)
    }
}

impl Scheme for Pim {
    fn place(&mut self, view: View<'_>, offer: Offer, _chance: &mut dyn Chance) -> Place {
        if view.classes.len() < view.capacity {
            return Place::Append;
        }
        let sign = match self.keep {
            Keep::High => 1.0,
            Keep::Low => -1.0,
        };
        let Some(largest) = largest_class(view.classes, None) else { return Place::Refuse };
        let rivals = (0..view.classes.len()).filter(|&slot| view.classes[slot] == largest);
        // `min_by` returns the first of equal slots.
        let weakest = rivals.min_by(|&a, &b| (sign * view.history[a]).total_cmp(&(sign * view.history[b])));
        let Some(weakest) = weakest else { return Place::Refuse };
        let unseen = self.admit_new_class && !view.classes.contains(&offer.class);
        if unseen || sign * offer.disagreement > sign * view.history[weakest] {
            Place::Replace(weakest)
        } else {
            Place::Refuse
        }
    }

    fn needs_disagreement(&self) -> bool {
        true
    }
}

impl Persist for Pim {
    fn save(&self, _state: &mut State) {}

    fn load(&mut self, _state: &State) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn low_keeps_what_the_heads_agree_on() {
        let view = View { classes: &[0, 0, 1], history: &[0.1, 0.3, 0.05], capacity: 3 };
        let place = |keep, disagreement| {
            let offer = Offer { class: 1, disagreement };
            Pim::new(keep, true).place(view, offer, &mut Random::named(1, "unused"))
        };
        assert_eq!(place(Keep::High, 0.2), Place::Replace(0));
        assert_eq!(place(Keep::High, 0.05), Place::Refuse);
        assert_eq!(place(Keep::Low, 0.2), Place::Replace(1));
        assert_eq!(place(Keep::Low, 0.3), Place::Refuse);
    }

    #[test]
    fn no_slots_at_all_refuse_everything() {
        let view = View { classes: &[], history: &[], capacity: 0 };
        let offer = Offer { class: 0, disagreement: 1.0 };
        assert_eq!(Pim::default().place(view, offer, &mut Random::named(1, "unused")), Place::Refuse);
    }
}
