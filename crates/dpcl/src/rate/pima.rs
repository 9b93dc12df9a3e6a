//! The rate of DPCL: up when the heads disagree more on what is rehearsed, down when they do not.
//!
//! At each snapshot of the heads, with Δ the change of the memory's disagreement history through rehearsal:
//! η ← ωη if Δ > 0, else η/ω (rule `text`); the supplement's algorithm has it the other way round (`alg3`). No change
//! where nothing was rehearsed. η stays between two bounds.

use serde::{Deserialize, Serialize};

use super::Rate;
use crate::{
    config::{choices, keys},
    error::{Error, Result},
    state::{Persist, State},
};

/// Which way the rate goes when disagreement rises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// Up, as the paper's text has it.
    #[default]
    Text,
    /// Down, as its third algorithm has it.
    Alg3,
}

/// Which change of disagreement counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lag {
    /// That of the step of the snapshot itself.
    #[default]
    Iteration,
    /// All since the snapshot before.
    Collection,
}

choices!(Rule: Text = "text", Alg3 = "alg3");
choices!(Lag: Iteration = "iteration", Collection = "collection");

keys! {
    /// How disagreement is remembered, and how the rate follows it.
    #[derive(Copy)]
    pub struct PimaConfig {
        /// Share of a new measurement in a stored sample's history (γ).
        gamma: f64 = 0.1, above(0), at_most(1);
        /// Factor of one move of the rate `pima` (ω).
        omega: f64 = 1.0 / 0.95, above(1);
        /// Whether `pima` moves up or down when disagreement rises.
        lr_rule: Rule = Rule::Text;
        /// Which change of disagreement `pima` looks at.
        lr_lag: Lag = Lag::Iteration;
        /// Lowest and highest rate of `pima`, as multiples of `lr`.
        lr_clamp: [f64; 2] = [0.05, 2.0], above(0);
    }
    also refuse_bounds_without_the_first_rate;
}

fn refuse_bounds_without_the_first_rate(keys: &PimaConfig) -> Result<()> {
    let [low, high] = keys.lr_clamp;
    if low > 1.0 || high < 1.0 {
        let problem = format!("must be a multiple of `lr` up to 1 and one from 1 on, not {low} and {high}");
        return Err(Error::bad_key("lr_clamp", problem));
    }
    Ok(())
}

impl PimaConfig {
    /// The rule at its first rate.
    pub fn start(&self, initial: f64) -> Pima {
        let [low, high] = self.lr_clamp;
        Pima::new(initial, self.omega, (low * initial, high * initial), self.lr_rule, self.lr_lag)
    }
}

/// A rate that follows the heads' disagreement.
#[derive(Clone, Copy, Debug)]
pub struct Pima {
    rule: Rule,
    lag: Lag,
    omega: f64,
    bounds: (f64, f64),
    moving: Moving,
}

/// What changes from step to step.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Moving {
    rate: f64,
    /// Change so far; none where nothing was rehearsed.
    change: Option<f64>,
    ups: u64,
    downs: u64,
}

impl Pima {
    /// Starts at `initial`; `omega` above 1 is the factor of one move and `bounds` are the lowest and highest rate.
    pub fn new(initial: f64, omega: f64, bounds: (f64, f64), rule: Rule, lag: Lag) -> Self {
        Self { rule, lag, omega, bounds, moving: Moving { rate: initial, change: None, ups: 0, downs: 0 } }
    }
}

impl Rate for Pima {
    fn rate(&self) -> f64 {
        self.moving.rate
    }

    fn rehearsed(&mut self, change: Option<f64>) {
        self.moving.change = match (self.lag, self.moving.change, change) {
            (Lag::Collection, Some(before), Some(change)) => Some(before + change),
            (Lag::Collection, before, None) => before,
            _ => change,
        };
    }

    fn collected(&mut self) {
        let Some(change) = self.moving.change.take() else { return };
        let up = match self.rule {
            Rule::Text => change > 0.0,
            Rule::Alg3 => change < 0.0,
        };
        let moving = &mut self.moving;
        let moved = if up { moving.rate * self.omega } else { moving.rate / self.omega };
        moving.rate = moved.clamp(self.bounds.0, self.bounds.1);
        *(if up { &mut moving.ups } else { &mut moving.downs }) += 1;
    }

    fn needs_disagreement(&self) -> bool {
        true
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("rate_ups", self.moving.ups), ("rate_downs", self.moving.downs)]
    }
}

impl Persist for Pima {
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

    fn rule(lag: Lag) -> Pima {
        Pima::new(3e-4, 1.0 / 0.95, (1.5e-5, 6e-4), Rule::Text, lag)
    }

    fn moved(pima: &mut Pima, change: Option<f64>) -> f64 {
        pima.rehearsed(change);
        pima.collected();
        pima.rate()
    }

    #[test]
    fn fifty_nine_downs_reach_the_floor() {
        let mut pima = rule(Lag::Iteration);
        (0..58).for_each(|_| {
            moved(&mut pima, Some(-0.1));
        });
        assert!((pima.rate() / 3e-4 - 0.0510).abs() < 1e-4);
        assert_eq!(moved(&mut pima, Some(-0.1)), 1.5e-5);
        assert_eq!(moved(&mut pima, Some(0.0)), 1.5e-5, "no change counts as down");
        assert_eq!(pima.counters(), [("rate_ups", 0), ("rate_downs", 60)]);
    }

    #[test]
    fn up_and_down_cancel_and_nothing_rehearsed_changes_nothing() {
        let mut pima = rule(Lag::Iteration);
        moved(&mut pima, Some(0.2));
        assert!((moved(&mut pima, Some(-0.2)) - 3e-4).abs() < 1e-12);
        let before = pima.rate();
        assert_eq!(moved(&mut pima, None), before);
    }

    #[test]
    fn the_lag_says_which_changes_count() {
        for (lag, expected) in [(Lag::Iteration, 3e-4 * 0.95), (Lag::Collection, 3e-4 / 0.95)] {
            let mut pima = rule(lag);
            pima.rehearsed(Some(0.5));
            pima.rehearsed(None);
            assert!((moved(&mut pima, Some(-0.1)) - expected).abs() < 1e-12, "{lag:?}");
        }
    }
}
