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

use super::{Answers, Core, Knowledge, Method, MethodInfo, Step, batch_loss, forward, replay::Replay};
use crate::{
    config::{OwnKeys, Setup, keys},
    error::Result,
    memory::{Memory, Sample},
    model::{Model, mean_entropy},
    state::{Persist, State},
    stream::Full,
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "er-cpr",
    about: "experience replay whose answers are pulled towards doubt",
    departures: &["the paper adds its term to five other methods, never to replay"],
    knowledge: Knowledge::None,
    answers: Answers::AnyTime,
    section: "cpr",
    memory_scheme: "reservoir",
    rate: "exp-reset",
    keep_adam: false,
    cutmix: 0.5,
    keys: OwnKeys::of::<ErCprKeys>(),
    build: |setup| Ok(Box::new(ErCpr::new(setup)?)),
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
    config: ErCprKeys,
    replay: Replay,
}

impl ErCpr {
    fn new(setup: &Setup) -> Result<Self> {
        Ok(Self { config: setup.own(), replay: Replay::new(setup)? })
    }

    fn learn(&mut self, core: &mut Core, full: &Full<Sample>) -> Result<Vec<Step>> {
        let size = core.batcher.size();
        let weight = self.config.weight;
        let steps = self.replay.iterate(core, full, |model: &mut Model, batch, rate| {
            let mut pass = model.pass();
            let logits = forward(model, &mut pass, batch, size);
            let doubt = mean_entropy(logits.clone()).mul_scalar(weight);
            let loss = batch_loss(logits, batch) - doubt;

            let outcome = pass.backward(&loss);
            let loss = outcome.loss;
            model.update(outcome, rate);
            loss
        })?;
        self.replay.remember(full);
        Ok(steps)
    }
}

impl Method for ErCpr {
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

impl Persist for ErCpr {
    fn save(&self, state: &mut State) {
        self.replay.save(state);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.replay.load(state)
    }
}
