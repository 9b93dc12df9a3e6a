//! A learner that never stops.
//!
//! dpcl learns image classes from a stream it sees once, with no task information, inside a small fixed memory, and
//! answers at any time.
//!
//! | to … | there is |
//! |---|---|
//! | learn from labelled images and ask for answers | [`Learner`], below |
//! | say how | [`Config`], the keys as written; [`Setup`], all of them, checked |
//! | put a learner away and take it up again | [`Learner::save`], [`Learner::load`], [`checkpoint`] |
//! | open images | [`data`] |
//! | lay out a stream of tasks | [`stream`] |
//! | learn a whole stream and evaluate on the way | [`Run`], with [`Watch`] or in a [`folder`] |
//! | see what can be named | [`methods::all`], [`data::list`], [`names`]: networks, memories, rates |
//! | write a method of one's own | [`method`], [`methods::register`], [`contract`] |
//! | measure speed | [`mod@bench`] |
//!
//! # Example
//!
//! ```
//! use dpcl::{Config, Image, Learner, Shape};
//!
//! # fn main() -> dpcl::Result<()> {
//! let mut config = Config::default();
//! config.settings.width = Some(4);
//! config.settings.memory = Some(50);
//! let mut learner = Learner::new(&config, Shape { channels: 3, height: 16, width: 16 })?;
//!
//! let dark = Image { height: 16, width: 16, pixels: vec![20; 16 * 16 * 3].into() };
//! let bright = Image { height: 16, width: 16, pixels: vec![230; 16 * 16 * 3].into() };
//! for _ in 0..8 {
//!     learner.observe(&dark, "night")?;
//!     learner.observe(&bright, "day")?;
//! }
//!
//! let answer = learner.predict(&bright)?;
//! assert_eq!(answer.probabilities.len(), 2);
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("sky.ckpt");
//! learner.save(&path)?; // everything: weights, optimiser, memory, generators
//! let mut again = Learner::load(&path)?; // goes on bit for bit
//! again.observe(&dark, "night")?;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod answers;
mod augment;
mod batch;
pub mod bench;
mod cache;
pub mod checkpoint;
pub mod config;
pub mod contract;
pub mod data;
pub mod device;
mod disk;
pub mod error;
mod eval;
mod finite;
pub mod folder;
#[cfg(test)]
#[path = "../tests/inner/mod.rs"]
mod inner;
pub mod learner;
mod memory;
pub mod method;
pub mod methods;
mod model;
pub mod names;
mod perturb;
mod process;
mod random;
mod rate;
mod rehearsal;
pub mod run;
mod state;
pub mod stream;
mod weights_file;

pub use checkpoint::Checkpoint;
pub use config::{Config, Settings, Setup};
pub use data::Image;
pub use error::{Error, Result};
pub use learner::{Label, Learner, Observation, Prediction, Shape};
pub use random::Random;
pub use run::{Progress, Run, Watch};
