//! What can be named in a configuration and is neither a method, a data set nor a scenario: networks, memory schemes and
//! learning-rate rules.

pub use crate::{
    memory::{SCHEMES, SchemeInfo},
    model::{MODELS, ModelInfo},
    rate::{RATES, RateInfo},
};
