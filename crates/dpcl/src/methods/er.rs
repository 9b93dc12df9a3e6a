//! Experience replay: every training batch is half stream, half memory.
//!
//! Loss: mean cross-entropy over the batch, in CutMix form half of the time.
//! Memory: reservoir. Rate: exponential decay that starts over at every new class.

use super::{Answers, Core, Knowledge, Method, MethodInfo, Step, batch_loss, forward, replay::Replay};
use crate::{
    config::OwnKeys,
    error::Result,
    memory::{Memory, Sample},
    model::Model,
    state::{Persist, State},
    stream::Full,
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "er",
    about: "experience replay: rehearse a reservoir of past samples beside the stream",
    departures: &[],
    knowledge: Knowledge::None,
    answers: Answers::AnyTime,
    section: "er",
    memory_scheme: "reservoir",
    rate: "exp-reset",
    keep_adam: false,
    cutmix: 0.5,
    keys: OwnKeys::NONE,
    build: |setup| Ok(Box::new(Er { replay: Replay::new(setup)? })),
};

/// Experience replay.
pub struct Er {
    pub(super) replay: Replay,
}

impl Er {
    fn learn(&mut self, core: &mut Core, full: &Full<Sample>) -> Result<Vec<Step>> {
        let size = core.batcher.size();
        let steps = self.replay.iterate(core, full, |model: &mut Model, batch, rate| {
            let mut pass = model.pass();
            let logits = forward(model, &mut pass, batch, size);
            let loss = batch_loss(logits, batch);

            let outcome = pass.backward(&loss);
            let loss = outcome.loss;
            model.update(outcome, rate);
            loss
        })?;
        self.replay.remember(full);
        Ok(steps)
    }
}

impl Method for Er {
    fn observe(&mut self, core: &mut Core, sample: Sample) -> Result<Vec<Step>> {
        match self.replay.arrive(core, sample) {
            Some(full) => self.learn(core, &full),
            None => Ok(Vec::new()),
        }
    }

    fn flush(&mut self, core: &mut Core) -> Result<Vec<Step>> {
        match self.replay.flush() {
            Some(full) => self.learn(core, &full),
            None => Ok(Vec::new()),
        }
    }

    fn memory(&self) -> Option<&Memory> {
        Some(&self.replay.memory)
    }
}

impl Persist for Er {
    fn save(&self, state: &mut State) {
        self.replay.save(state);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.replay.load(state)
    }
}
