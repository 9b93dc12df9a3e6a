//! Class-balanced random memory, the online form of Rainbow Memory: every newcomer is let in, at the cost of a random
//! sample of the class that would hold most slots with it.

use super::{Chance, Offer, Place, Scheme, View, largest_class};
use crate::{
    error::Result,
    state::{Persist, State},
};

/// Keeps the classes' shares equal; remembers nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Balanced;

impl Scheme for Balanced {
    fn place(&mut self, view: View<'_>, offer: Offer, chance: &mut dyn Chance) -> Place {
        if view.classes.len() < view.capacity {
            return Place::Append;
        }
        let Some(largest) = largest_class(view.classes, Some(offer.class)) else { return Place::Refuse };
        let candidates: Vec<usize> =
            (0..view.classes.len()).filter(|&slot| view.classes[slot] == largest).collect();
        Place::Replace(candidates[chance.below(candidates.len())])
    }
}

impl Persist for Balanced {
    fn save(&self, _state: &mut State) {}

    fn load(&mut self, _state: &State) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn classes_offered_often_enough_end_up_with_equal_shares(seed in 0_u64..50, capacity in 3_usize..20) {
            let mut random = Random::named(seed, "balanced");
            let mut classes: Vec<usize> = Vec::new();
            for round in 0..300 {
                // The first class comes three times as often.
                let class = [0, 1, 0, 2, 0][round % 5];
                let history = vec![0.0; classes.len()];
                let view = View { classes: &classes, history: &history, capacity };
                match Balanced.place(view, Offer { class, disagreement: 0.0 }, &mut random) {
                    Place::Append => classes.push(class),
                    Place::Replace(slot) => classes[slot] = class,
                    Place::Refuse => prop_assert!(false, "nothing is refused"),
                }
            }
            let counts = [0, 1, 2].map(|class| classes.iter().filter(|&&stored| stored == class).count());
            let spread = counts.iter().max().unwrap() - counts.iter().min().unwrap();
            prop_assert!(spread <= 1, "{counts:?}");
        }
    }
}
