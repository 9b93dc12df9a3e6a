//! How fast to learn: rules that set the learning rate from what happens in the stream.
//!
//! A rule hears of new classes, of finished training steps and, where it asks for them, of changing disagreement or of
//! the losses of stored samples; it never sees a tensor.

mod clib;
mod constant;
mod exp_reset;
mod pima;
mod welch;

pub(crate) use clib::{Clib, ClibConfig};
pub(crate) use constant::Constant;
pub(crate) use exp_reset::ExpReset;
#[cfg(test)]
pub(crate) use pima::{Lag, Rule};
pub(crate) use pima::{Pima, PimaConfig};
#[cfg(test)]
pub(crate) use welch::{Welch, student_upper_tail};

use std::collections::BTreeSet;

use crate::{
    config::Setup,
    error::{Error, Result},
    state::Persist,
};

/// A learning-rate rule.
pub trait Rate: Persist + Send + Sync {
    /// The rate for the next training step.
    fn rate(&self) -> f64;

    /// A class was met for the first time.
    fn new_class(&mut self) {}

    /// A training step was taken.
    fn stepped(&mut self) {}

    /// Stored samples were rehearsed; `change` sums new disagreement minus history over them, none if there were none.
    fn rehearsed(&mut self, _change: Option<f64>) {}

    /// A snapshot of the heads was taken.
    fn collected(&mut self) {}

    /// Whether it needs to hear of disagreement, which not every method measures.
    fn needs_disagreement(&self) -> bool {
        false
    }

    /// Whether it needs to hear of the losses of all stored samples, which cost a pass over the memory.
    fn needs_losses(&self) -> bool {
        false
    }

    /// The training steps of one arrival are over, and the losses of all stored samples were measured among them:
    /// the latest ones, by slot, and the slots that were `changed` since this was called last.
    fn refreshed(&mut self, _losses: &[f64], _changed: &BTreeSet<usize>) {}

    /// Counts worth recording, cumulative.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}

/// A rule that can be named in a configuration.
pub struct RateInfo {
    /// Name in configurations.
    pub name: &'static str,
    /// What it does.
    pub about: &'static str,
    build: fn(&Setup) -> Box<dyn Rate>,
}

/// Every rule that can be named.
pub const RATES: &[RateInfo] = &[
    RateInfo {
        name: "exp-reset",
        about: "decays by a constant factor at every step, starts over at every new class",
        build: |setup| Box::new(ExpReset::new(setup.lr, setup.lr_decay, setup.lr_reset_on_new_class)),
    },
    RateInfo { name: "constant", about: "never changes", build: |setup| Box::new(Constant::new(setup.lr)) },
    RateInfo {
        name: "clib",
        about: "two neighbouring rates take turns; the pair moves towards the one stored samples gain more from",
        build: |setup| Box::new(Clib::new(setup.lr, ClibConfig::default())),
    },
    RateInfo {
        name: "pima",
        about: "rises and falls with the heads' disagreement on rehearsed samples (dpcl; bic and clib with `bsc`)",
        build: |setup| Box::new(PimaConfig::default().start(setup.lr)),
    },
];

/// The rule that a setup names.
///
/// # Errors
/// When no rule has that name.
pub fn build(setup: &Setup) -> Result<Box<dyn Rate>> {
    let info = RATES.iter().find(|info| info.name == setup.rate).ok_or_else(|| Error::UnknownName {
        kind: "rate",
        name: setup.rate.clone(),
        known: RATES.iter().map(|info| info.name.to_owned()).collect(),
    })?;
    Ok((info.build)(setup))
}
