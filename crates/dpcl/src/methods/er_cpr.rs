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

use super::{
    Answers, Core, Knowledge, Method, MethodInfo, Step, batch_loss, forward, own_keys, read_keys,
    replay::Replay,
};
use crate::{
    config::Config,
    error::{Error, Result},
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
    check: |section| own_keys(section, ErCprConfig::check),
    build: |config| Ok(Box::new(ErCpr::new(config)?)),
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
    replay: Replay,
}

impl ErCpr {
    fn new(config: &Config) -> Result<Self> {
        let section = config.sections.get(INFO.section).cloned().unwrap_or_default();
        Ok(Self { config: read_keys(section)?, replay: Replay::new(config)? })
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
