//! Where a run stands between two samples: with the learner's own state, all that it needs to go on.

use std::path::Path;

use dpcl_report::{read, record::Event};
use serde::{Deserialize, Serialize};

use crate::{
    checkpoint::{Checkpoint, Flaw},
    data,
    error::{Error, Result},
    folder::{Mark, Trail},
    method::Step,
};

/// The run's own part of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Standing {
    /// Stream samples learned.
    pub samples: u64,
    /// Tasks ended.
    pub tasks: usize,
    /// How far the end of the task after those has come.
    #[serde(default)]
    pub ending: Ending,
    /// Whether an evaluation between task ends was due and has not been made.
    #[serde(default)]
    pub unjudged: bool,
    /// How far the event log went.
    pub log: Mark,
    /// What told its data from others.
    #[serde(default)]
    pub data: Option<data::Print>,
    /// Steps since the last progress event.
    pub unreported: Vec<Step>,
    /// Stream samples predicted before they were learned, and how many rightly.
    pub online: (u64, u64),
    /// Accuracy at the last evaluation.
    pub accuracy: Option<f64>,
    /// Samples and training steps that the learner had behind it when the run began.
    pub before: (u64, u64),
    /// Wall-clock seconds spent so far, evaluation included.
    pub seconds: f64,
    /// Wall-clock seconds of them spent evaluating.
    pub evaluating: f64,
    /// Peak resident memory of the processes that made the run so far.
    pub peak_memory_bytes: u64,
}

/// What a method has been told of the end of a task and has not caught up with yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// Nothing.
    #[default]
    NotYet,
    /// That the task has ended.
    Task,
    /// That the stream has ended too, if it has.
    Stream,
    /// All of it, and it has caught up: the evaluation is still to be made.
    Evaluation,
}

impl Standing {
    /// Where the run of a checkpoint stood.
    ///
    /// # Errors
    /// When the checkpoint, read from `path`, is not one of a run.
    pub fn of(checkpoint: &Checkpoint, path: &Path) -> Result<Self> {
        let misfit = |problem: String| Error::bad_checkpoint(path, Flaw::Misfit(problem));
        let Some(run) = &checkpoint.run else {
            return Err(misfit("it holds a learner, but not where a run stood".into()));
        };
        Self::deserialize(run).map_err(|error| misfit(format!("where its run stood: {error}")))
    }

    /// The events before the mark, out of the whole text of an event log; `None` if the log does not begin with what
    /// was written before the mark.
    pub(super) fn events(&self, log: &[u8]) -> Option<(Vec<Event>, Trail)> {
        let before = log.get(..usize::try_from(self.log.bytes).ok()?)?;
        let mut trail = Trail::default();
        trail.add(before);
        if trail.mark() != self.log {
            return None;
        }
        Some((read::parse_events(Path::new(""), before).ok()?, trail))
    }
}
