//! CLIB: training on memory alone, with a memory that keeps what training gains most from and a rate that feels its
//! way.
//!
//! Paper: Online Continual Learning on Class Incremental Blurry Task Configuration with Anytime Inference (ICLR 2022,
//! arXiv 2110.10031).
//!
//! Loss: mean cross-entropy over a batch drawn from memory, in CutMix form half of the time. Every sample goes into the
//! memory the moment it arrives and is trained on only from there. Memory: `clib`. Rate: `clib`; new classes do not
//! reset it.
//!
//! Departures from the paper: none in the defaults. Measuring the loss of every stored sample after each step is most
//! of the cost; `imp_period` makes it rarer.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{
    Core, Knowledge, Method, MethodInfo, Step, batch_loss, forward, own_keys, read_keys,
    replay::{Replay, rate_name, refuse_disagreement, scheme_name},
};
use crate::{
    config::Config,
    error::{Error, Result},
    memory::{self, Memory, Sample},
    model::Model,
    rate::{self, Rate},
    state::{Persist, State},
    stream::Full,
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "clib",
    about: "trains on memory alone; keeps the samples that lower the loss on all the others",
    knowledge: Knowledge::None,
    section: "clib",
    memory_scheme: "clib",
    rate: "clib",
    keep_adam: true,
    cutmix: 0.5,
    check: |section| own_keys(section, ClibConfig::check),
    build: |config| Ok(Box::new(Clib::new(config)?)),
};

/// Own keys of `clib`; the defaults are the paper's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ClibConfig {
    /// Share of its old score that a stored sample keeps when scores are refreshed, at least 0 and below 1.
    ema_keep: f64,
    /// How fast the rate moves.
    #[serde(flatten)]
    rate: rate::ClibConfig,
}

impl Default for ClibConfig {
    fn default() -> Self {
        Self { ema_keep: memory::Clib::KEEP, rate: rate::ClibConfig::default() }
    }
}

impl ClibConfig {
    fn check(&self) -> Result<()> {
        if !(0.0..1.0).contains(&self.ema_keep) {
            let problem = format!("must be at least 0 and below 1, not {}", self.ema_keep);
            return Err(Error::bad_key("ema_keep", problem));
        }
        self.rate.check()
    }
}

/// Training on memory alone.
pub struct Clib {
    replay: Replay,
}

impl Clib {
    fn new(config: &Config) -> Result<Self> {
        let own: ClibConfig = read_keys(config.sections.get(INFO.section).cloned().unwrap_or_default())?;
        let settings = &config.settings;
        let slots = settings.memory.unwrap_or(0);
        if slots == 0 {
            return Err(Error::bad_key("memory", "must be at least 1: clib trains on memory alone"));
        }
        let memory = match scheme_name(config)? {
            "clib" => Memory::under(Box::new(memory::Clib::new(own.ema_keep)), slots, settings.seed),
            other => Memory::new(other, slots, settings.seed)?,
        };
        let rate: Box<dyn Rate> = match rate_name(config)? {
            "clib" => Box::new(rate::Clib::new(settings.lr, own.rate)),
            other => rate::build(other, settings)?,
        };
        refuse_disagreement(config, &memory, &*rate)?;
        let rows = [1, settings.batch.unwrap_or(0)];
        Ok(Self { replay: Replay::with_rows(config, memory, rate, rows)? })
    }

    fn learn(&mut self, core: &mut Core, arrived: &Full<Sample>) -> Result<Vec<Step>> {
        self.replay.remember(arrived);

        let size = core.batcher.size();
        let memory_alone = Full { items: Vec::new(), updates: arrived.updates };
        self.replay.iterate(core, &memory_alone, |model: &mut Model, batch, rate| {
            let mut pass = model.pass();
            let logits = forward(model, &mut pass, batch, size);
            let loss = batch_loss(logits, batch);

            let outcome = pass.backward(&loss);
            let loss = outcome.loss;
            model.update(outcome, rate);
            loss
        })
    }
}

impl Method for Clib {
    fn observe(&mut self, core: &mut Core, sample: Sample) -> Result<Vec<Step>> {
        match self.replay.arrive(core, sample) {
            Some(arrived) => self.learn(core, &arrived),
            None => Ok(Vec::new()),
        }
    }

    fn flush(&mut self, _core: &mut Core) -> Result<Vec<Step>> {
        // No sample waits: each is in memory before the next arrives.
        Ok(Vec::new())
    }

    fn memory(&self) -> Option<&Memory> {
        Some(&self.replay.memory)
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        let counters = self.replay.rate.counters().into_iter();
        counters.map(|(name, count)| (name.to_owned(), count as f64)).collect()
    }
}

impl Persist for Clib {
    fn save(&self, state: &mut State) {
        self.replay.save(state);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.replay.load(state)
    }
}
