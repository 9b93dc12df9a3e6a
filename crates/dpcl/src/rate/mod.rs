//! How fast to learn: rules that set the learning rate from what happens in the stream.
//!
//! A rule hears of new classes, of finished training steps and, where it asks for them, of changing disagreement or of
//! the losses of stored samples; it never sees a tensor.

mod clib;
mod constant;
mod exp_reset;
mod pima;
mod welch;

pub use clib::{Clib, ClibConfig};
pub use constant::Constant;
pub use exp_reset::ExpReset;
pub use pima::{Lag, Pima, PimaConfig, Rule};
pub use welch::{Welch, student_upper_tail};

use std::collections::BTreeSet;

use crate::{
    config::Settings,
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
    build: fn(&Settings) -> Box<dyn Rate>,
}

/// Every rule that can be named.
pub const RATES: &[RateInfo] = &[
    RateInfo {
        name: "exp-reset",
        about: "decays by a constant factor at every step, starts over at every new class",
        build: |settings| {
            Box::new(ExpReset::new(settings.lr, settings.lr_decay, settings.lr_reset_on_new_class))
        },
    },
    RateInfo {
        name: "constant",
        about: "never changes",
        build: |settings| Box::new(Constant::new(settings.lr)),
    },
    RateInfo {
        name: "clib",
        about: "two neighbouring rates take turns; the pair moves towards the one stored samples gain more from",
        build: |settings| Box::new(Clib::new(settings.lr, ClibConfig::default())),
    },
    RateInfo {
        name: "pima",
        about: "rises and falls with the heads' disagreement on rehearsed samples (dpcl; bic and clib with `bsc`)",
        build: |settings| Box::new(PimaConfig::default().start(settings.lr)),
    },
];

/// The named rule, set up from the configuration.
///
/// # Errors
/// When no rule has that name.
pub fn build(name: &str, settings: &Settings) -> Result<Box<dyn Rate>> {
    let info = RATES.iter().find(|info| info.name == name).ok_or_else(|| Error::UnknownName {
        kind: "rate",
        name: name.to_owned(),
        known: RATES.iter().map(|info| info.name.to_owned()).collect(),
    })?;
    Ok((info.build)(settings))
}
