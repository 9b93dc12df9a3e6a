//! The first samples that come; nothing gives way to later ones. For methods that choose among stored samples themselves.

use super::{Chance, Offer, Place, Scheme, View};
use crate::state::Persist;

/// Fills free slots.
pub struct First;

impl Scheme for First {
    fn place(&mut self, view: View<'_>, _offer: Offer, _chance: &mut dyn Chance) -> Place {
        if view.classes.len() < view.capacity { Place::Append } else { Place::Refuse }
    }
}

impl Persist for First {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn free_slots_are_filled_and_then_nothing_changes() {
        let place = |classes: &[usize]| {
            let view = View { classes, history: &vec![0.0; classes.len()], capacity: 2 };
            First.place(view, Offer { class: 1, disagreement: 0.0 }, &mut Random::named(1, "first"))
        };
        assert_eq!([place(&[]), place(&[0]), place(&[0, 0])], [Place::Append, Place::Append, Place::Refuse]);
    }
}
