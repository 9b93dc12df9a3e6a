//! Exponential decay that starts over whenever a new class arrives: η ← g·η after each step, η ← η₀ at a new class.

use super::Rate;
use crate::{
    error::Result,
    state::{Persist, State},
};

/// Exponential decay with reset.
#[derive(Clone, Copy, Debug)]
pub struct ExpReset {
    initial: f64,
    decay: f64,
    reset: bool,
    rate: f64,
}

impl ExpReset {
    /// Starts at `initial`, shrinks by `decay` a step; `reset` says whether new classes start it over.
    pub fn new(initial: f64, decay: f64, reset: bool) -> Self {
        Self { initial, decay, reset, rate: initial }
    }
}

impl Rate for ExpReset {
    fn rate(&self) -> f64 {
        self.rate
    }

    fn new_class(&mut self) {
        if self.reset {
            self.rate = self.initial;
        }
    }

    fn stepped(&mut self) {
        self.rate *= self.decay;
    }
}

impl Persist for ExpReset {
    fn save(&self, state: &mut State) {
        state.put("rate", &self.rate);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.rate = state.get("rate")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_class_starts_the_decay_over() {
        let mut rate = ExpReset::new(3e-4, 0.9999, true);
        (0..10).for_each(|_| rate.stepped());
        rate.new_class();
        rate.stepped();
        assert_eq!(rate.rate(), 3e-4 * 0.9999);
    }

    #[test]
    fn long_streams_without_news_collapse_the_rate() {
        let mut rate = ExpReset::new(3e-4, 0.9999, true);
        (0..24).for_each(|_| rate.stepped());
        assert!((rate.rate() - 2.99281e-4).abs() < 1e-9);
        (24..120_000).for_each(|_| rate.stepped());
        assert!((rate.rate() - 1.84216e-9).abs() < 1e-14);
    }
}
