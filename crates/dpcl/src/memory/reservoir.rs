//! Reservoir sampling (Vitter 1985): after n offers each offered sample is stored with probability min(1, m/n).

use super::{Chance, Offer, Place, Scheme, View};
use crate::{
    error::Result,
    state::{Persist, State},
};

/// Counts the offers.
#[derive(Clone, Debug, Default)]
pub struct Reservoir {
    seen: u64,
}

impl Scheme for Reservoir {
    fn place(&mut self, view: View<'_>, _offer: Offer, chance: &mut dyn Chance) -> Place {
        self.seen += 1;
        if view.classes.len() < view.capacity {
            return Place::Append;
        }
        let position = chance.below(self.seen as usize);
        if position < view.capacity { Place::Replace(position) } else { Place::Refuse }
    }
}

impl Persist for Reservoir {
    fn save(&self, state: &mut State) {
        state.put("seen", &self.seen);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.seen = state.get_counted("seen")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn every_sample_is_kept_equally_often() {
        let (capacity, offers, rounds) = (3, 10, 20_000);
        let mut kept = vec![0_usize; offers];
        let mut random = Random::named(11, "reservoir");
        for _ in 0..rounds {
            let mut scheme = Reservoir::default();
            let mut stored: Vec<usize> = Vec::new();
            for sample in 0..offers {
                let offer = Offer { class: 0, disagreement: 0.0 };
                let (classes, history) = (vec![0; stored.len()], vec![0.0; stored.len()]);
                let view = View { classes: &classes, history: &history, capacity };
                match scheme.place(view, offer, &mut random) {
                    Place::Append => stored.push(sample),
                    Place::Replace(slot) => stored[slot] = sample,
                    Place::Refuse => {}
                }
            }
            stored.iter().for_each(|&sample| kept[sample] += 1);
        }
        let expected = (rounds * capacity / offers) as f64;
        // Chi-square with 9 degrees of freedom stays below 27.9 in 999 of 1,000 samplings.
        let chi: f64 = kept.iter().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
        assert!(chi < 27.9, "{kept:?}");
    }
}
