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

use super::{Method, MethodInfo, REHEARSAL};
use crate::{
    batch::Batch,
    config::{OwnKeys, Setup, keys},
    error::{Error, Result},
    memory::{self, Memory},
    rate::{self, Rate},
    rehearsal::{
        Rehearsal, Rehearse, Replay, Training,
        double::{DoubleKeys, DoublePerturbation},
    },
    state::Persist,
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "clib",
    about: "trains on memory alone; keeps the samples that lower the loss on all the others",
    section: "clib",
    memory_scheme: "clib",
    rate: "clib",
    keep_adam: true,
    keys: OwnKeys::of::<ClibKeys>().mixing(DoubleKeys::mixes),
    build: Clib::build,
    ..REHEARSAL
};

keys! {
    /// Own keys of `clib`; the defaults are the paper's.
    struct ClibKeys {
        /// Share of its old score that a stored sample keeps when scores are refreshed.
        ema_keep: f64 = memory::Clib::KEEP, at_least(0), below(1);
        /// How fast the rate moves.
        rate: rate::ClibConfig = rate::ClibConfig::default();
        /// Perturbed activations and heads.
        double: DoubleKeys = DoubleKeys::default();
    }
}

/// Training on memory alone.
pub struct Clib {
    double: DoublePerturbation,
}

impl Clib {
    fn build(setup: &Setup) -> Result<Box<dyn Method>> {
        let own: ClibKeys = setup.own();
        if setup.memory == 0 {
            return Err(Error::bad_key("memory", "must be at least 1: clib trains on memory alone"));
        }
        let memory = match setup.memory_scheme.as_str() {
            "clib" => Memory::under(Box::new(memory::Clib::new(own.ema_keep)), setup.memory, setup.seed),
            other => Memory::new(other, setup.memory, setup.seed)?,
        };
        let double = DoublePerturbation::new(setup, &own.double)?;
        let rate: Box<dyn Rate> = match (double.pima(setup, &memory, &own.double.pima)?, setup.rate.as_str())
        {
            (Some(pima), _) => Box::new(pima),
            (None, "clib") => Box::new(rate::Clib::new(setup.lr, own.rate)),
            (None, _) => rate::build(setup)?,
        };
        Ok(Rehearsal::boxed(Replay::memory_alone(setup, memory, rate)?, Self { double }))
    }
}

impl Rehearse for Clib {
    fn step(&mut self, training: &mut Training<'_>, batch: Batch) -> Result<f64> {
        self.double.step(training, &batch)
    }

    fn double(&self) -> Option<&DoublePerturbation> {
        Some(&self.double)
    }

    fn double_mut(&mut self) -> Option<&mut DoublePerturbation> {
        Some(&mut self.double)
    }
}

/// It remembers nothing beyond what all methods share.
impl Persist for Clib {}
