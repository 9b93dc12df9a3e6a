//! Keys of the branched stochastic classifiers.

use crate::{
    answers::Between,
    config::{choices, keys},
    error::{Error, Result},
};

/// Which weights answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Predict {
    /// Draws from the heads' distribution.
    #[default]
    Posterior,
    /// The mean of the heads' distribution.
    Mean,
    /// The heads as they are.
    Current,
}

choices!(Predict: Posterior = "posterior", Mean = "mean", Current = "current");

keys! {
    /// Size of the distributions, and when they are looked after and asked.
    #[derive(Copy, Eq)]
    pub struct BscConfig {
        /// Number of heads (N).
        heads: usize = 5, at_least(1), capped(1024, "no machine has the memory for more");
        /// Training steps between snapshots of the heads (P).
        period: u64 = 100, at_least(1);
        /// Deviation columns kept of each class (A); 1 would have no covariance.
        rank: usize = 20, capped(1024, "no machine has the memory for more");
        /// Draws a prediction averages over (R).
        draws: usize = 5, at_least(1), capped(1024, "no machine has the memory for more");
        /// How many snapshots, the last ones, the distributions count; 0 counts all.
        window: usize = 0, named("bsc_window"), capped(1_000_000, "no machine has the memory for more");
        /// Which weights answer.
        predict: Predict = Predict::Posterior;
        /// Whether disagreement is between heads, each the mean of its draws, or between all draws of all heads.
        between: Between = Between::Heads, named("disagreement_between"), absent_as("heads");
        /// Draws of each head when disagreement is measured for memory and rate; 0 for as many as answer.
        measuring_draws: usize = 0, named("disagreement_draws"), absent_as(0),
            capped(1024, "no machine has the memory for more");
    }
    also refuse_one_column;
}

impl BscConfig {
    /// Draws of each head when disagreement is measured.
    pub fn draws_to_measure(&self) -> usize {
        if self.measuring_draws == 0 { self.draws } else { self.measuring_draws }
    }
}

fn refuse_one_column(keys: &BscConfig) -> Result<()> {
    if keys.rank == 1 {
        return Err(Error::bad_key("rank", "must be 0 or at least 2: one column has no covariance"));
    }
    Ok(())
}
