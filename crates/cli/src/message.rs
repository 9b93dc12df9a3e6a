//! What the process that watches and the processes that learn say to each other: one JSON object a line.
//!
//! The watcher writes one [`Order`] to the learner's stdin and keeps it open; closing it, or dying, asks the learner
//! to stop. The learner writes [`Message`]s to its stdout.

use std::path::PathBuf;

use dpcl::Progress;
use dpcl_report::record::RunResult;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;

/// A run to be made.
#[derive(Debug, Serialize, Deserialize)]
pub struct Order {
    /// Its configuration, in TOML.
    pub config: String,
    /// The record's folder.
    pub folder: PathBuf,
    /// The command a person gave, kept in the record.
    pub command: String,
    /// How often a checkpoint is written, as on the command line.
    pub every: String,
}

/// News of a run. The last one tells of its end.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Message {
    /// It goes on.
    Progress(Progress),
    /// Something worth knowing about how it is taken up again.
    Notice(String),
    /// It came to its end.
    Finished(Box<RunResult>),
    /// Its folder already held the end.
    Kept(Box<RunResult>),
    /// It was stopped.
    Interrupted,
    /// It could not go on.
    Failed(Failure),
}
