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

use super::{MethodInfo, REHEARSAL};
use crate::{
    batch::Batch,
    config::{OwnKeys, keys},
    error::Result,
    model::mean_entropy,
    rehearsal::{Rehearsal, Rehearse, Replay, Training, forward},
    state::Persist,
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "er-cpr",
    about: "experience replay whose answers are pulled towards doubt",
    departures: &["the paper adds its term to five other methods, never to replay"],
    section: "cpr",
    keys: OwnKeys::of::<ErCprKeys>(),
    build: |setup| Ok(Rehearsal::boxed(Replay::new(setup)?, ErCpr { keys: setup.own() })),
    ..REHEARSAL
};

keys! {
    /// Own keys of `er-cpr`.
    #[derive(Copy)]
    pub struct ErCprKeys {
        /// Weight of the entropy (w); 0 is experience replay.
        weight: f64 = 0.5, at_least(0);
    }
}

/// Experience replay that rewards doubt.
pub struct ErCpr {
    keys: ErCprKeys,
}

impl Rehearse for ErCpr {
    fn step(&mut self, training: &mut Training<'_>, batch: Batch) -> Result<f64> {
        let mut pass = training.model.pass();
        let logits = forward(&mut pass, &batch);
        let doubt = mean_entropy(logits.clone()).mul_scalar(self.keys.weight);
        let loss = training.loss(logits, &batch) - doubt;

        training.step(pass, &loss, &batch)
    }
}

impl Persist for ErCpr {}
