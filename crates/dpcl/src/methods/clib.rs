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

use serde::{Deserialize, Serialize};

use super::{Method, MethodInfo, REHEARSAL, own_keys, read_keys};
use crate::{
    batch::Batch,
    config::Config,
    error::{Error, Result},
    memory::{self, Memory},
    perturb::{BscConfig, PfiConfig},
    rate::{self, PimaConfig, Rate},
    rehearsal::{
        Rehearsal, Rehearse, Replay, Training,
        double::DoublePerturbation,
        replay::{rate_name, scheme_name},
    },
    state::{Persist, State},
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "clib",
    about: "trains on memory alone; keeps the samples that lower the loss on all the others",
    section: "clib",
    memory_scheme: "clib",
    rate: "clib",
    keep_adam: true,
    check: |section| own_keys(section, ClibConfig::check),
    build: Clib::build,
    ..REHEARSAL
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

    /// Whether training activations are perturbed and mixed, which takes the place of CutMix.
    pfi: bool,
    /// How they are perturbed and mixed.
    #[serde(flatten)]
    interpolation: PfiConfig,
    /// Whether there are several heads with distributions; otherwise one plain head.
    bsc: bool,
    /// How many heads, and how their distributions are followed.
    #[serde(flatten)]
    classifiers: BscConfig,
    /// How the rate `pima` follows the disagreement of these heads.
    #[serde(flatten)]
    pima: PimaConfig,
}

impl Default for ClibConfig {
    fn default() -> Self {
        Self {
            ema_keep: memory::Clib::KEEP,
            rate: rate::ClibConfig::default(),
            pfi: false,
            interpolation: PfiConfig::default(),
            bsc: false,
            classifiers: BscConfig::default(),
            pima: PimaConfig::default(),
        }
    }
}

impl ClibConfig {
    fn check(&self) -> Result<()> {
        if !(0.0..1.0).contains(&self.ema_keep) {
            let problem = format!("must be at least 0 and below 1, not {}", self.ema_keep);
            return Err(Error::bad_key("ema_keep", problem));
        }
        self.interpolation.check()?;
        self.classifiers.check()?;
        self.pima.check()?;
        self.rate.check()
    }
}

/// Training on memory alone.
pub struct Clib {
    double: DoublePerturbation,
}

impl Clib {
    fn build(config: &Config) -> Result<Box<dyn Method>> {
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
        let (pfi, bsc) = (own.pfi.then_some(own.interpolation), own.bsc.then_some(own.classifiers));
        let double = DoublePerturbation::new(config, INFO.section, pfi, bsc, own.pima.gamma)?;
        let rate: Box<dyn Rate> = match (double.pima(config, &memory, &own.pima)?, rate_name(config)?) {
            (Some(pima), _) => Box::new(pima),
            (None, "clib") => Box::new(rate::Clib::new(settings.lr, own.rate)),
            (None, other) => rate::build(other, settings)?,
        };
        Ok(Rehearsal::boxed(Replay::memory_alone(config, memory, rate)?, Self { double }))
    }
}

impl Rehearse for Clib {
    fn step(&mut self, training: &mut Training<'_>, batch: Batch) -> Result<f64> {
        let mut pass = training.model.pass();
        let forward = self.double.forward(&mut pass, &batch);

        let loss = training.step(pass, &forward.losses.mean(), &batch)?;

        self.double.learned(training, &batch, forward);
        Ok(loss)
    }

    fn double(&self) -> Option<&DoublePerturbation> {
        Some(&self.double)
    }
}

impl Persist for Clib {
    fn save(&self, state: &mut State) {
        state.save_part("perturbed", &self.double);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        state.load_part("perturbed", &mut self.double)
    }
}
