//! Class-balancing reservoir sampling (Chrysakis & Moens 2020): classes that were never the largest take slots from
//! the largest; a class that once was keeps a reservoir of its own samples.

use std::collections::BTreeSet;

use super::{Chance, Offer, Place, Scheme, View};
use crate::{
    error::Result,
    state::{Persist, State},
};

/// Counts the offers of each class and remembers which were ever the largest.
#[derive(Clone, Debug, Default)]
pub struct Cbrs {
    /// Offers of each class; index = class.
    seen: Vec<u64>,
    /// Classes that were the largest of a full memory at some time.
    full: BTreeSet<usize>,
}

impl Cbrs {
    fn choose(&self, view: View<'_>, counts: &[usize], class: usize, chance: &mut dyn Chance) -> Place {
        if view.classes.len() < view.capacity {
            return Place::Append;
        }
        let most = counts.iter().copied().max().unwrap_or(0);
        let slots: Vec<usize> = if self.full.contains(&class) {
            if chance.uniform() > counts[class] as f64 / self.seen[class] as f64 {
                return Place::Refuse;
            }
            (0..view.classes.len()).filter(|&slot| view.classes[slot] == class).collect()
        } else {
            (0..view.classes.len()).filter(|&slot| counts[view.classes[slot]] == most).collect()
        };
        if slots.is_empty() { Place::Refuse } else { Place::Replace(slots[chance.below(slots.len())]) }
    }
}

impl Scheme for Cbrs {
    fn place(&mut self, view: View<'_>, offer: Offer, chance: &mut dyn Chance) -> Place {
        let classes = view.classes.iter().chain([&offer.class]).max().map_or(0, |class| class + 1);
        if self.seen.len() < classes {
            self.seen.resize(classes, 0);
        }
        self.seen[offer.class] += 1;
        let mut counts = vec![0; self.seen.len()];
        view.classes.iter().for_each(|&class| counts[class] += 1);

        let place = self.choose(view, &counts, offer.class, chance);
        match place {
            Place::Append => counts[offer.class] += 1,
            Place::Replace(slot) => {
                counts[view.classes[slot]] -= 1;
                counts[offer.class] += 1;
            }
            Place::Refuse => {}
        }
        let stored: usize = counts.iter().sum();
        if stored > 0 && stored == view.capacity {
            let most = counts.iter().copied().max().unwrap_or(0);
            self.full.extend((0..counts.len()).filter(|&class| counts[class] == most));
        }
        place
    }
}

impl Persist for Cbrs {
    fn save(&self, state: &mut State) {
        state.put("seen", &self.seen);
        state.put("full", &self.full);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.seen = state.get_counted("seen")?;
        self.full = state.get("full")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    impl Cbrs {
        /// Classes that were the largest of a full memory at some time.
        pub fn full_classes(&self) -> &BTreeSet<usize> {
            &self.full
        }
    }

    /// Offers the classes in order and returns what is stored in the end.
    fn store(capacity: usize, offers: impl Iterator<Item = usize>) -> Vec<usize> {
        let (mut scheme, mut random) = (Cbrs::default(), Random::named(3, "cbrs"));
        let mut classes: Vec<usize> = Vec::new();
        for class in offers {
            let history = vec![0.0; classes.len()];
            let view = View { classes: &classes, history: &history, capacity };
            match scheme.place(view, Offer { class, disagreement: 0.0 }, &mut random) {
                Place::Append => classes.push(class),
                Place::Replace(slot) => classes[slot] = class,
                Place::Refuse => {}
            }
        }
        classes
    }

    #[test]
    fn a_rare_class_gets_its_half_once_it_has_supplied_it() {
        // One sample in a hundred is of class 1; after 1,000 it has come ten times.
        let classes = store(20, (0..1_000).map(|index| usize::from(index % 100 == 50)));
        assert_eq!(classes.iter().filter(|&&class| class == 1).count(), 10);
        let classes = store(20, (0..700).map(|index| usize::from(index % 100 == 50)));
        assert_eq!(classes.iter().filter(|&&class| class == 1).count(), 7);
    }

    #[test]
    fn no_slots_at_all_refuse_everything() {
        assert!(store(0, [0, 1, 0].into_iter()).is_empty());
    }

    #[test]
    fn a_full_class_is_a_reservoir_of_its_own() {
        let (capacity, offers, rounds) = (3, 9, 20_000);
        let mut kept = vec![0_usize; offers];
        let mut random = Random::named(11, "cbrs");
        for _ in 0..rounds {
            let mut scheme = Cbrs::default();
            let mut stored: Vec<usize> = Vec::new();
            for sample in 0..offers {
                let (classes, history) = (vec![0; stored.len()], vec![0.0; stored.len()]);
                let view = View { classes: &classes, history: &history, capacity };
                match scheme.place(view, Offer { class: 0, disagreement: 0.0 }, &mut random) {
                    Place::Append => stored.push(sample),
                    Place::Replace(slot) => stored[slot] = sample,
                    Place::Refuse => {}
                }
            }
            stored.iter().for_each(|&sample| kept[sample] += 1);
        }
        let expected = (rounds * capacity / offers) as f64;
        // Chi-square with 8 degrees of freedom stays below 26.1 in 999 of 1,000 samplings.
        let chi: f64 = kept.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
        assert!(chi < 26.1, "{kept:?}");
    }
}
