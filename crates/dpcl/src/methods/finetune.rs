//! Training on the stream alone, without memory: the floor that every method must beat.
//!
//! It is experience replay whose memory keeps nothing, so batches hold the stream half only.

use super::{Answers, Knowledge, MethodInfo, er::Er, replay::Replay};
use crate::{config::OwnKeys, error::Error};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "finetune",
    about: "the stream alone, no memory: the floor",
    departures: &[],
    knowledge: Knowledge::None,
    answers: Answers::AnyTime,
    section: "finetune",
    memory_scheme: "none",
    rate: "exp-reset",
    keep_adam: false,
    cutmix: 0.5,
    keys: OwnKeys::NONE,
    build: |setup| {
        if setup.memory_scheme != INFO.memory_scheme {
            return Err(Error::bad_key("memory_scheme", "finetune keeps nothing; use `er` for a memory"));
        }
        Ok(Box::new(Er { replay: Replay::new(setup)? }))
    },
};
