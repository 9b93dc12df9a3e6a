//! CLIB: training on memory alone, with a memory that keeps what training gains most from and a rate that feels its
//! way.
//!
//! Paper: Online Continual Learning on Class Incremental Blurry Task Configuration with Anytime Inference (ICLR 2022,
//! arXiv 2110.10031).
//!
//! Loss: mean cross-entropy over a batch drawn from memory, in CutMix form half of the time. Every sample goes into the
//! memory the moment it arrives and is trained on only from there. Memory: `clib`. Rate: `clib`; new classes do not
//! reset it. With `pfi` and `bsc` activations and heads are perturbed as in the paper of DPCL; stored samples are then
//! measured by the mean loss of the present heads, and the rate may be `pima`.
//!
//! Departures from the paper: none in the defaults. Measuring the loss of every stored sample after each step is most
//! of the cost; `imp_period` makes it rarer.

use std::collections::BTreeMap;

use dpcl_report::record::Parameters;

use super::{
    Answers, Core, Knowledge, Method, MethodInfo, Scores, Step, perturbed::Perturbed, replay::Replay,
};
use crate::{
    config::{OwnKeys, Setup, keys},
    data::Image,
    error::{Error, Result},
    memory::{self, Memory, Sample},
    model::Model,
    perturb::{BscConfig, PfiConfig},
    rate::{self, PimaConfig, Rate},
    state::{Persist, State},
    stream::Full,
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "clib",
    about: "trains on memory alone; keeps the samples that lower the loss on all the others",
    departures: &[],
    knowledge: Knowledge::None,
    answers: Answers::AnyTime,
    section: "clib",
    memory_scheme: "clib",
    rate: "clib",
    keep_adam: true,
    cutmix: 0.5,
    keys: OwnKeys::of::<ClibKeys>().mixing(|own| own.get("pfi") == Some(&true.into())),
    build: |setup| Ok(Box::new(Clib::new(setup)?)),
};

keys! {
    /// Own keys of `clib`; the defaults are the paper's.
    struct ClibKeys {
        /// Share of its old score that a stored sample keeps when scores are refreshed.
        ema_keep: f64 = memory::Clib::KEEP, at_least(0), below(1);
        /// How fast the rate moves.
        rate: rate::ClibConfig = rate::ClibConfig::default();

        /// Whether training activations are perturbed and mixed, which takes the place of CutMix.
        pfi: bool = false;
        /// How they are perturbed and mixed.
        interpolation: PfiConfig = PfiConfig::default();
        /// Whether there are several heads with distributions; otherwise one plain head.
        bsc: bool = false;
        /// How many heads, and how their distributions are followed.
        classifiers: BscConfig = BscConfig::default();
        /// How the rate `pima` follows the disagreement of these heads.
        pima: PimaConfig = PimaConfig::default();
    }
}

/// Training on memory alone.
pub struct Clib {
    replay: Replay,
    perturbed: Perturbed,
}

impl Clib {
    fn new(setup: &Setup) -> Result<Self> {
        let own: ClibKeys = setup.own();
        let slots = setup.memory;
        if slots == 0 {
            return Err(Error::bad_key("memory", "must be at least 1: clib trains on memory alone"));
        }
        let memory = match setup.memory_scheme.as_str() {
            "clib" => Memory::under(Box::new(memory::Clib::new(own.ema_keep)), slots, setup.seed),
            other => Memory::new(other, slots, setup.seed)?,
        };
        let (pfi, bsc) = (own.pfi.then_some(own.interpolation), own.bsc.then_some(own.classifiers));
        let perturbed = Perturbed::new(setup, pfi, bsc, own.pima.gamma)?;
        let rate: Box<dyn Rate> = match (perturbed.pima(setup, &memory, &own.pima)?, setup.rate.as_str()) {
            (Some(pima), _) => Box::new(pima),
            (None, "clib") => Box::new(rate::Clib::new(setup.lr, own.rate)),
            (None, _) => rate::build(setup)?,
        };
        let replay = Replay::with_rows(setup, memory, rate, [1, setup.batch])?;
        Ok(Self { replay, perturbed })
    }

    fn learn(&mut self, core: &mut Core, arrived: &Full<Sample>) -> Result<Vec<Step>> {
        let Self { replay, perturbed } = self;
        replay.remember(arrived);

        let size = core.batcher.size();
        let memory_alone = Full { items: Vec::new(), updates: arrived.updates };
        replay.iterate_with(core, &memory_alone, |model: &mut Model, batch, memory, rate| {
            let mut pass = model.pass();
            let forward = perturbed.forward(model, &mut pass, batch, size);

            let outcome = pass.backward(&forward.losses.mean());
            let loss = outcome.loss;
            model.update(outcome, rate.rate());
            perturbed.learned(model, batch, forward, loss, memory, rate);
            loss
        })
    }
}

impl Method for Clib {
    fn observe(&mut self, core: &mut Core, sample: Sample) -> Result<Vec<Step>> {
        self.perturbed.learning();
        match self.replay.arrive(core, sample) {
            Some(arrived) => self.learn(core, &arrived),
            None => Ok(Vec::new()),
        }
    }

    fn flush(&mut self, _core: &mut Core) -> Result<Vec<Step>> {
        // No sample waits: each is in memory before the next arrives.
        Ok(Vec::new())
    }

    fn predict(&self, core: &Core, images: &[Image]) -> Result<Vec<Scores>> {
        Ok(self.perturbed.answer(core, images))
    }

    fn heads(&self) -> usize {
        self.perturbed.heads()
    }

    fn memory(&self) -> Option<&Memory> {
        Some(&self.replay.memory)
    }

    fn fit(&self, core: &Core) -> Result<()> {
        self.perturbed.fit(&core.model.heads)
    }

    fn extra_parameters(&self) -> Parameters {
        self.perturbed.parameters()
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        let rate = self.replay.rate.counters().into_iter().map(|(name, count)| (name.to_owned(), count));
        rate.chain(self.perturbed.counters()).map(|(name, count)| (name, count as f64)).collect()
    }
}

impl Persist for Clib {
    fn save(&self, state: &mut State) {
        self.replay.save(state);
        state.save_part("perturbed", &self.perturbed);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.replay.load(state)?;
        state.load_part("perturbed", &mut self.perturbed)
    }
}
