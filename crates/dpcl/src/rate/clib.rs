//! The rate of CLIB: two neighbouring rates take turns, and the pair moves towards the one that lowers the losses of
//! stored samples faster.
//!
//! Paper: Online Continual Learning on Class Incremental Blurry Task Configuration with Anytime Inference (ICLR 2022,
//! arXiv 2110.10031).
//!
//! Every `period` measurements of the memory's losses the gain (mean loss before − after, over samples that stayed) is
//! credited to the rate in use and the other takes over. Once both have `window` gains, Welch's test asks whether those
//! of the low rate are higher: p < `significance` moves the pair down by `step`, p > 1 − `significance` up.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Rate, welch::Welch};
use crate::{
    config::keys,
    error::Result,
    state::{Persist, State},
};

keys! {
    /// How fast the pair of rates moves.
    #[derive(Copy)]
    pub struct ClibConfig {
        /// The low rate as a share of the high one.
        step: f64 = 0.95, named("lr_step"), above(0), below(1);
        /// Measurements of the memory's losses between two turns.
        period: u64 = 10, named("lr_period"), at_least(1);
        /// How many gains of each rate, the last ones, are compared: one has no variance.
        window: usize = 10, named("lr_window"), at_least(2), capped(1_000_000, "no machine has the memory for more");
        /// Error probability below which one rate counts as the better one.
        significance: f64 = 0.05, named("lr_significance"), above(0), below(0.5);
    }
}

/// A pair of rates that moves towards the better one.
#[derive(Clone, Debug)]
pub struct Clib {
    config: ClibConfig,
    moving: Moving,
}

/// What changes from measurement to measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Moving {
    high: f64,
    low: f64,
    is_high: bool,
    measurements: u64,
    /// Losses at the last turn, by slot.
    losses: Option<Vec<f64>>,
    /// Slots filled since the last turn.
    dropped: BTreeSet<usize>,
    gains_high: Vec<f64>,
    gains_low: Vec<f64>,
    ups: u64,
    downs: u64,
}

impl Clib {
    /// Starts with the high rate at `initial`; the configuration has passed its check.
    pub fn new(initial: f64, config: ClibConfig) -> Self {
        let moving = Moving {
            high: initial,
            low: config.step * initial,
            is_high: true,
            measurements: 0,
            losses: None,
            dropped: BTreeSet::new(),
            gains_high: Vec::new(),
            gains_low: Vec::new(),
            ups: 0,
            downs: 0,
        };
        Self { config, moving }
    }

    /// Credits the gain since the last turn to the rate in use.
    fn credit(&mut self, losses: &[f64]) {
        let Moving { measurements, losses: before, dropped, gains_high, gains_low, is_high, .. } =
            &mut self.moving;
        let Some(before) = before else { return };
        // The first full turn of each rate belongs to the start of training.
        if *measurements <= 2 * self.config.period {
            return;
        }
        let stayed = before.iter().zip(losses).enumerate().filter(|(slot, _)| !dropped.contains(slot));
        let gains: Vec<f64> = stayed.map(|(_, (before, after))| before - after).collect();
        if gains.is_empty() {
            return;
        }
        let list = if *is_high { gains_high } else { gains_low };
        list.push(gains.iter().sum::<f64>() / gains.len() as f64);
        if list.len() > self.config.window {
            list.remove(0);
        }
    }

    /// Moves the pair if one rate is clearly the better one.
    fn compare(&mut self) {
        let ClibConfig { step, window, significance, .. } = self.config;
        let moving = &mut self.moving;
        if moving.gains_high.len() != moving.gains_low.len() || moving.gains_low.len() < window {
            return;
        }
        let Some(Welch { p, .. }) = Welch::above(&moving.gains_low, &moving.gains_high) else { return };
        if p < significance {
            (moving.high, moving.low) = (moving.low, step * moving.low);
            moving.downs += 1;
        } else if p > 1.0 - significance {
            (moving.high, moving.low) = (moving.high / step, moving.high);
            moving.ups += 1;
        } else {
            return;
        }
        moving.gains_high.clear();
        moving.gains_low.clear();
        moving.is_high = !moving.is_high;
    }
}

impl Rate for Clib {
    fn rate(&self) -> f64 {
        if self.moving.is_high { self.moving.high } else { self.moving.low }
    }

    fn needs_losses(&self) -> bool {
        true
    }

    fn refreshed(&mut self, losses: &[f64], changed: &BTreeSet<usize>) {
        self.moving.dropped.extend(changed);
        self.moving.measurements += 1;
        if !self.moving.measurements.is_multiple_of(self.config.period) {
            return;
        }
        self.credit(losses);
        self.moving.losses = Some(losses.to_vec());
        self.moving.is_high = !self.moving.is_high;
        self.moving.dropped.clear();
        self.compare();
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("rate_ups", self.moving.ups), ("rate_downs", self.moving.downs)]
    }
}

impl Persist for Clib {
    fn save(&self, state: &mut State) {
        state.put("moving", &self.moving);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.moving = state.get_counted("moving")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Measurements whose loss falls by `high` a turn under the high rate and by `low` under the low one, with a
    /// little variance.
    fn run(turns: usize, high: f64, low: f64) -> Clib {
        let mut rate = Clib::new(3e-4, ClibConfig::default());
        let mut loss = 100.0;
        for turn in 0..turns {
            let gain = if rate.moving.is_high { high } else { low };
            loss -= gain * (1.0 + 0.1 * (turn % 3) as f64);
            (0..10).for_each(|_| rate.refreshed(&[loss], &BTreeSet::new()));
        }
        rate
    }

    #[test]
    fn the_two_rates_take_turns() {
        let mut rate = Clib::new(3e-4, ClibConfig::default());
        (0..9).for_each(|_| rate.refreshed(&[1.0], &BTreeSet::new()));
        assert_eq!(rate.rate(), 3e-4);
        rate.refreshed(&[1.0], &BTreeSet::new());
        assert_eq!(rate.rate(), 0.95 * 3e-4);
    }

    #[test]
    fn the_pair_moves_towards_the_better_rate() {
        let (down, up) = (run(23, 0.1, 0.3), run(23, 0.3, 0.1));
        assert_eq!(down.counters(), [("rate_ups", 0), ("rate_downs", 1)]);
        assert_eq!((down.moving.high, down.moving.low), (0.95 * 3e-4, 0.95 * (0.95 * 3e-4)));
        assert_eq!(up.counters(), [("rate_ups", 1), ("rate_downs", 0)]);
        assert_eq!((up.moving.high, up.moving.low), (3e-4 / 0.95, 3e-4));
        assert_eq!(run(23, 0.2, 0.2).counters(), [("rate_ups", 0), ("rate_downs", 0)]);
    }

    #[test]
    fn where_nothing_varies_nothing_moves() {
        let mut rate = Clib::new(3e-4, ClibConfig::default());
        (0..400).for_each(|_| rate.refreshed(&[1.0, 2.0], &BTreeSet::new()));
        assert_eq!(rate.counters(), [("rate_ups", 0), ("rate_downs", 0)]);
    }
}
