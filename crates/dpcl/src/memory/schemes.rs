//! Every scheme that can be named.

use super::{Balanced, Cbrs, Clib, First, Nothing, Pim, Reservoir, Ring, Scheme};
use crate::error::{Error, Result};

/// A scheme that can be named in a configuration.
pub struct SchemeInfo {
    /// Name in configurations.
    pub name: &'static str,
    /// What it keeps.
    pub about: &'static str,
    build: fn() -> Box<dyn Scheme>,
}

/// Every scheme that can be named.
pub const SCHEMES: &[SchemeInfo] = &[
    SchemeInfo {
        name: "reservoir",
        about: "every sample of the stream is equally likely to be kept",
        build: || Box::new(Reservoir::default()),
    },
    SchemeInfo {
        name: "balanced",
        about: "equal shares for all classes; a newcomer replaces a random sample",
        build: || Box::new(Balanced),
    },
    SchemeInfo {
        name: "cbrs",
        about: "small classes take slots from the largest; a class that was the largest keeps a reservoir of its own",
        build: || Box::new(Cbrs::default()),
    },
    SchemeInfo {
        name: "pim",
        about: "equal shares for all classes; a newcomer replaces a sample the heads disagree on less (dpcl)",
        build: || Box::new(Pim::default()),
    },
    SchemeInfo {
        name: "clib",
        about: "equal shares for all classes; a newcomer replaces the sample that training gained least from",
        build: || Box::<Clib>::default(),
    },
    SchemeInfo {
        name: "ring",
        about: "the newest samples: each takes the place of the oldest (ctn: one ring for each task and purpose)",
        build: || Box::<Ring>::default(),
    },
    SchemeInfo {
        name: "first",
        about: "the first samples of the stream; `oddl` chooses among them and later ones itself",
        build: || Box::new(First),
    },
    SchemeInfo { name: "none", about: "nothing is kept", build: || Box::new(Nothing) },
];

/// The named scheme.
///
/// # Errors
/// When there is none.
pub fn build(name: &str) -> Result<Box<dyn Scheme>> {
    let info = SCHEMES.iter().find(|info| info.name == name).ok_or_else(|| Error::UnknownName {
        kind: "memory scheme",
        name: name.to_owned(),
        known: SCHEMES.iter().map(|info| info.name.to_owned()).collect(),
    })?;
    Ok((info.build)())
}
