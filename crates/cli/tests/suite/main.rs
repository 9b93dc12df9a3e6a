//! The `dpcl` command as people meet it, in one program.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod attacks;
mod bench;
mod earlier;
mod errors;
mod faults;
mod full_disk;
mod grid;
mod help;
mod interrupt;
mod kill;
mod learner;
mod names;
mod own_method;
mod photos;
mod report;
mod reproduce;
mod resume;
#[cfg(feature = "serve")]
mod serve;
mod support;
mod sweeps;
mod systems;
