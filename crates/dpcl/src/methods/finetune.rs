//! Training on the stream alone, without memory: the floor that every method must beat.
//!
//! It is experience replay whose memory keeps nothing, so batches hold the stream half only.

use super::{Answers, Knowledge, MethodInfo, er::Er, no_keys, replay::Replay};
use crate::error::Error;

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
    check: no_keys,
    build: |config| {
        if config.settings.memory_scheme.as_deref() != Some(INFO.memory_scheme) {
            return Err(Error::bad_key("memory_scheme", "finetune keeps nothing; use `er` for a memory"));
        }
        Ok(Box::new(Er { replay: Replay::new(config)? }))
    },
};
