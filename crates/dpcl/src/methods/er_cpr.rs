//! Experience replay with a classifier-projection regulariser: answers are kept from becoming too sure, which leaves
//! room for classes to come.
//!
//! Paper: CPR: Classifier-Projection Regularization for Continual Learning (ICLR 2021).
//!
//! Loss: CE − w·(1/B) Σᵢ H[softmax(zᵢ)], H the entropy; the cross-entropy is in CutMix form where the batch was mixed.
//! Memory and rate: as experience replay.
//!
//! Departure from the paper: it adds the term to five other methods and never to replay; `weight` is the middle of
//! its values for CIFAR-100.

use serde::{Deserialize, Serialize};

use super::{MethodInfo, REHEARSAL, own_keys, read_keys};
use crate::{
    batch::Batch,
    config::Config,
    error::{Error, Result},
    model::mean_entropy,
    rehearsal::{Rehearsal, Rehearse, Replay, Training, batch_loss, forward},
    state::Persist,
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "er-cpr",
    about: "experience replay whose answers are pulled towards doubt",
    departures: &["the paper adds its term to five other methods, never to replay"],
    section: "cpr",
    check: |section| own_keys(section, ErCprConfig::check),
    build: |config| Ok(Rehearsal::boxed(Replay::new(config)?, ErCpr::new(config)?)),
    ..REHEARSAL
};

/// Own keys of `er-cpr`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ErCprConfig {
    /// Weight of the entropy (w), at least 0; 0 is experience replay.
    pub weight: f64,
}

impl Default for ErCprConfig {
    fn default() -> Self {
        Self { weight: 0.5 }
    }
}

impl ErCprConfig {
    fn check(&self) -> Result<()> {
        if !(self.weight >= 0.0 && self.weight.is_finite()) {
            return Err(Error::bad_key("weight", format!("must be at least 0, not {}", self.weight)));
        }
        Ok(())
    }
}

/// Experience replay that rewards doubt.
pub struct ErCpr {
    config: ErCprConfig,
}

impl ErCpr {
    fn new(config: &Config) -> Result<Self> {
        let section = config.sections.get(INFO.section).cloned().unwrap_or_default();
        Ok(Self { config: read_keys(section)? })
    }
}

impl Rehearse for ErCpr {
    fn step(&mut self, training: &mut Training<'_>, batch: Batch) -> Result<f64> {
        let mut pass = training.model.pass();
        let logits = forward(&mut pass, &batch);
        let doubt = mean_entropy(logits.clone()).mul_scalar(self.config.weight);
        let loss = batch_loss(logits, &batch) - doubt;

        training.step(pass, &loss, &batch)
    }
}

impl Persist for ErCpr {}
