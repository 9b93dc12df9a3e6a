//! Keys of the branched stochastic classifiers.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Which weights answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Predict {
    /// Draws from the heads' distribution.
    #[default]
    Posterior,
    /// The mean of the heads' distribution.
    Mean,
    /// The heads as they are.
    Current,
}

/// Size of the distributions, and when they are looked after and asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct BscConfig {
    /// Number of heads (N), at least 1.
    pub heads: usize,
    /// Training steps between snapshots of the heads (P), at least 1.
    pub period: u64,
    /// Deviation columns kept of each class (A), 0 or at least 2.
    pub rank: usize,
    /// Draws a prediction averages over (R), at least 1.
    pub draws: usize,
    /// Snapshots the distributions count, the last so many; 0 counts all.
    #[serde(rename = "bsc_window")]
    pub window: usize,
    /// Which weights answer.
    pub predict: Predict,
}

impl Default for BscConfig {
    fn default() -> Self {
        Self { heads: 5, period: 100, rank: 20, draws: 5, window: 0, predict: Predict::default() }
    }
}

impl BscConfig {
    /// Refuses values that cannot be run.
    ///
    /// # Errors
    /// When there would be no head, no draw, no step between snapshots, or a covariance of one column.
    pub fn check(&self) -> Result<()> {
        let bad = |key: &str, problem: &str| Err(Error::bad_key(key, problem));
        if self.heads == 0 {
            return bad("heads", "must be at least 1");
        }
        if self.period == 0 {
            return bad("period", "must be at least 1");
        }
        if self.draws == 0 {
            return bad("draws", "must be at least 1");
        }
        if self.rank == 1 {
            return bad("rank", "must be 0 or at least 2: one column has no covariance");
        }
        Ok(())
    }
}
