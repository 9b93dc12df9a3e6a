//! Experience replay: every training batch is half stream, half memory.
//!
//! Loss: mean cross-entropy over the batch, in CutMix form half of the time.
//! Memory: reservoir. Rate: exponential decay that starts over at every new class.

use super::{MethodInfo, REHEARSAL};
use crate::{
    batch::Batch,
    error::Result,
    rehearsal::{Rehearsal, Rehearse, Replay, Training, forward},
    state::Persist,
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "er",
    about: "experience replay: rehearse a reservoir of past samples beside the stream",
    section: "er",
    build: |setup| Ok(Rehearsal::boxed(Replay::new(setup)?, Er)),
    ..REHEARSAL
};

/// Experience replay; it remembers nothing but its memory.
pub struct Er;

impl Rehearse for Er {
    fn step(&mut self, training: &mut Training<'_>, batch: Batch) -> Result<f64> {
        let mut pass = training.model.pass();
        let logits = forward(&mut pass, &batch);
        let loss = training.loss(logits, &batch);

        training.step(pass, &loss, &batch)
    }
}

impl Persist for Er {}
