//! Training on the stream alone, without memory: the floor that every method must beat.
//!
//! It is experience replay whose memory keeps nothing, so batches hold the stream half only.

use super::{MethodInfo, REHEARSAL, er::Er};
use crate::{
    error::Error,
    rehearsal::{Rehearsal, Replay},
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "finetune",
    about: "the stream alone, no memory: the floor",
    section: "finetune",
    memory_scheme: "none",
    build: |setup| {
        if setup.memory_scheme != INFO.memory_scheme {
            return Err(Error::bad_key("memory_scheme", "finetune keeps nothing; use `er` for a memory"));
        }
        Ok(Rehearsal::boxed(Replay::new(setup)?, Er))
    },
    ..REHEARSAL
};
