//! How fast to learn: rules that set the learning rate from what happens in the stream.
//!
//! A rule hears of new classes and of finished training steps; it never sees a tensor.

mod constant;
mod exp_reset;

pub use constant::Constant;
pub use exp_reset::ExpReset;

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
