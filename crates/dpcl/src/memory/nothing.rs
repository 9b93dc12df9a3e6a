//! Keeps nothing: what learning without a memory looks like to a method that has one.

use super::{Chance, Offer, Place, Scheme, View};
use crate::{
    error::Result,
    state::{Persist, State},
};

/// Refuses every offer.
#[derive(Clone, Copy, Debug)]
pub struct Nothing;

impl Scheme for Nothing {
    fn place(&mut self, _view: View<'_>, _offer: Offer, _chance: &mut dyn Chance) -> Place {
        Place::Refuse
    }
}

impl Persist for Nothing {
    fn save(&self, _state: &mut State) {}

    fn load(&mut self, _state: &State) -> Result<()> {
        Ok(())
    }
}
