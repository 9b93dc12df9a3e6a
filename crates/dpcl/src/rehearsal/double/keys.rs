//! The keys of the double perturbation, for every method that can have it.

use crate::{
    config::keys,
    perturb::{BscConfig, PfiConfig},
    rate::PimaConfig,
};

keys! {
    /// Which perturbations a method has. The parts' defaults are the paper's values; a method may start from others.
    pub struct DoubleKeys {
        /// Whether training activations are perturbed and mixed, which takes the place of CutMix.
        pfi: bool = false;
        /// How they are perturbed and mixed.
        interpolation: PfiConfig = PfiConfig::default();
        /// Whether there are several heads with distributions; otherwise one plain head.
        bsc: bool = false;
        /// How many heads, and how their distributions are followed.
        classifiers: BscConfig = BscConfig::default();
        /// How disagreement is remembered, and how the rate `pima` follows it.
        pima: PimaConfig = PimaConfig::default();
    }
}

impl DoubleKeys {
    /// Whether, with a method's own keys, activations are mixed: images are then not.
    pub fn mixes(own: &toml::Table) -> bool {
        own.get("pfi").and_then(toml::Value::as_bool) == Some(true)
    }
}
