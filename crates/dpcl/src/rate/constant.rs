//! The same rate from first step to last.

use super::Rate;
use crate::{
    error::Result,
    state::{Persist, State},
};

/// A rate that never changes.
#[derive(Clone, Copy, Debug)]
pub struct Constant {
    rate: f64,
}

impl Constant {
    /// Always `rate`.
    pub fn new(rate: f64) -> Self {
        Self { rate }
    }
}

impl Rate for Constant {
    fn rate(&self) -> f64 {
        self.rate
    }
}

impl Persist for Constant {
    fn save(&self, state: &mut State) {
        state.put("rate", &self.rate);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.rate = state.get("rate")?;
        Ok(())
    }
}
