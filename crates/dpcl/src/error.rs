//! The one error type of the library. A variant names what the reader can fix; `hint` says how.

mod lists;

use std::path::{Path, PathBuf};

use lists::{count_images, list_paths, listed};

use crate::checkpoint::Flaw;

/// Everything that can go wrong while reading data, building a run or learning.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be opened, read or written.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was attempted: "read", "write", "open", …
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },

    /// A data file is there but is not what it should be.
    #[error("{}: {problem}", path.display())]
    BadData {
        /// The offending file or folder.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
        /// What to do about it.
        hint: String,
    },

    /// An image that was there when the data were opened cannot be read when its turn comes.
    #[error("{what} cannot be read")]
    BadImage {
        /// Which one: its place in the stream or in the test set.
        what: String,
        /// Why, with the file's path.
        source: Box<Error>,
    },

    /// Images of a data set that cannot be read; all that are known of.
    #[error("{} cannot be read:{}", count_images(problems.len()), listed(problems))]
    BadImages {
        /// Each with its path and what is wrong.
        problems: Vec<String>,
    },

    /// A data set that is in none of the places where it was looked for.
    #[error("no {name} data found; looked for {}", list_paths(looked))]
    NoData {
        /// The data set's name.
        name: String,
        /// Every file or folder that would have done, in the order tried.
        looked: Vec<PathBuf>,
        /// How to get the data.
        hint: String,
    },

    /// A download that did not arrive whole.
    #[error("{url}: {problem}")]
    Download {
        /// The address asked.
        url: String,
        /// What went wrong.
        problem: String,
        /// How to go on.
        hint: String,
    },

    /// A configuration key has a value that cannot be run.
    #[error("configuration key `{key}`: {problem}")]
    BadKey {
        /// The key, dotted as in a configuration file.
        key: String,
        /// What is wrong with its value.
        problem: String,
    },

    /// A configuration key that takes one of several names has another.
    #[error("configuration key `{key}`: must be one of {}, not \"{name}\"", known.join(", "))]
    UnknownValue {
        /// The key, dotted as in a configuration file.
        key: String,
        /// The name that was given.
        name: String,
        /// The names that it takes.
        known: Vec<String>,
    },

    /// A configuration that is not TOML.
    #[error("configuration: {problem}")]
    BadConfig {
        /// What the reader of the configuration said.
        problem: String,
    },

    /// A key that no configuration has.
    #[error("unknown configuration key `{key}`")]
    UnknownKey {
        /// The key, dotted as in a configuration file.
        key: String,
        /// The keys that its table may have, dotted.
        known: Vec<String>,
    },

    /// A name that no registered thing has.
    #[error("there is no {kind} called `{name}`")]
    UnknownName {
        /// What kind of thing was asked for: "method", "dataset", …
        kind: &'static str,
        /// The name that was given.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },

    /// A saved state lacks an entry or holds one of another form.
    #[error("saved state: entry `{key}` {problem}")]
    BadState {
        /// The entry's full name.
        key: String,
        /// What is wrong with it.
        problem: String,
    },

    /// A file that cannot be taken up as a checkpoint.
    #[error("{} {flaw}", path.display())]
    BadCheckpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        flaw: Flaw,
    },

    /// An image of another shape than the learner was made for.
    #[error("an image of {found} was given to a learner of {expected}")]
    WrongShape {
        /// The learner's shape.
        expected: String,
        /// The image's shape.
        found: String,
    },

    /// A run folder that belongs to another configuration.
    #[error("{} holds a run of another configuration: key `{key}` differs", path.display())]
    OtherConfig {
        /// The run's folder.
        path: PathBuf,
        /// The first key that differs, dotted.
        key: String,
    },

    /// The run was stopped from outside.
    #[error("interrupted")]
    Interrupted,

    /// `DPCL_ISA` asks for an instruction set that does not exist or that this processor lacks.
    #[error("environment variable {}", dpcl_kernels::ISA_VARIABLE)]
    BadInstructionSet(#[from] dpcl_kernels::IsaError),

    /// Training ran away.
    #[error("the loss became {loss} at learning rate {rate} on a batch of classes {labels:?}")]
    LossNotFinite {
        /// The loss.
        loss: f64,
        /// The rate of the step.
        rate: f64,
        /// Classes of the batch, numbered in order of first arrival.
        labels: Vec<usize>,
        /// Steps taken before it on the same stream samples.
        step: usize,
    },

    /// Training of something beside the network ran away.
    #[error("the loss of {part} became {loss} at learning rate {rate}")]
    PartNotFinite {
        /// What was trained.
        part: &'static str,
        /// The loss.
        loss: f64,
        /// The rate of the step.
        rate: f64,
        /// The key of that rate.
        key: &'static str,
    },

    /// What training left behind is no longer made of numbers.
    #[error("{what} is not finite: training ran away")]
    NotFinite {
        /// Which weight, statistic or answer.
        what: String,
    },

    /// The same in a run.
    #[error(
        "{what} is not finite after sample {samples} of the stream and training step {updates}: training ran away"
    )]
    Diverged {
        /// Which weight, statistic or answer.
        what: String,
        /// Stream samples learned.
        samples: u64,
        /// Training steps taken when it was noticed: at the latest at the next evaluation or checkpoint.
        updates: u64,
        /// The last checkpoint before it.
        checkpoint: Option<PathBuf>,
    },

    /// Training of a run ran away.
    #[error(
        "the loss became {loss} at sample {samples} of the stream, training step {updates}, at learning rate {rate} on \
         a batch of {}", classes.join(", ")
    )]
    RanAway {
        /// The loss.
        loss: f64,
        /// The rate of the step.
        rate: f64,
        /// The stream sample at which it happened, from 1.
        samples: u64,
        /// The training step, from 1.
        updates: u64,
        /// Names of the classes of the batch, row by row.
        classes: Vec<String>,
        /// The last checkpoint before it.
        checkpoint: Option<PathBuf>,
    },

    /// A checkpoint could not be written.
    #[error("cannot write the checkpoint {}", path.display())]
    CheckpointNotWritten {
        /// The file.
        path: PathBuf,
        /// The checkpoint before it, if there is one.
        earlier: Option<PathBuf>,
        /// What the system said.
        source: std::io::Error,
    },

    /// An event could not be written down.
    #[error("cannot write the event log {}", path.display())]
    LogNotWritten {
        /// The file.
        path: PathBuf,
        /// The last checkpoint, if there is one.
        earlier: Option<PathBuf>,
        /// What the system said.
        source: std::io::Error,
    },

    /// Another process holds a run's folder.
    #[error("another process is making this run: {}", path.display())]
    Claimed {
        /// The run's folder.
        path: PathBuf,
    },

    /// A sample without its task, given to a method that learns by tasks.
    #[error("`{method}` must be told the task of every sample")]
    NoTask {
        /// The method.
        method: String,
    },

    /// A learner taken further with a method that learns by tasks.
    #[error(
        "configuration key `from`: `{method}` is told task ids, and those of the new stream begin at 0 again"
    )]
    FromWithTasks {
        /// The method.
        method: String,
    },

    /// A learner that is to begin with weights from elsewhere, and has begun already.
    #[error("weights to begin with were given to a learner that has learned {samples} samples")]
    AlreadyLearning {
        /// Samples it has taken in.
        samples: u64,
    },

    /// A prediction was asked for before any class was met.
    #[error("nothing has been learned yet, so there is no class to answer with")]
    NoClassYet,
}

/// The library's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// The same error, knowing which training step of a sample failed, from 0.
    #[must_use]
    pub fn at_step(mut self, number: usize) -> Self {
        if let Self::LossNotFinite { step, .. } = &mut self {
            *step = number;
        }
        self
    }

    /// Wraps an input/output error with what was attempted and where.
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io { action, path: path.into(), source }
    }

    /// A data file that is not what it should be, with a way out.
    pub fn bad_data(path: impl Into<PathBuf>, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::BadData { path: path.into(), problem: problem.into(), hint: hint.into() }
    }

    /// A file that cannot be taken up as a checkpoint.
    pub fn bad_checkpoint(path: impl Into<PathBuf>, flaw: Flaw) -> Self {
        Self::BadCheckpoint { path: path.into(), flaw }
    }

    /// A checkpoint that is whole but makes no learner.
    pub(crate) fn misfit(path: &Path, error: &Self) -> Self {
        Self::bad_checkpoint(path, Flaw::Misfit(error.to_string()))
    }

    /// A configuration value that cannot be run.
    pub fn bad_key(key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::BadKey { key: key.into(), problem: problem.into() }
    }

    /// What the reader can do about it, where we know.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::BadData { hint, .. } | Self::NoData { hint, .. } | Self::Download { hint, .. } => {
                Some(hint.clone())
            }
            Self::BadImage { source, .. } => {
                let first = source.hint().unwrap_or_else(|| "put the file back".into());
                Some(format!("{first}; or go on without such images with `--on-bad-image skip`"))
            }
            Self::BadImages { .. } => Some(
                "replace the files with whole images, or remove them; or go on without such images with \
                 `--on-bad-image skip`"
                    .into(),
            ),
            Self::BadCheckpoint { flaw, .. } => Some(flaw.hint()),
            Self::UnknownKey { known, .. } => Some(format!("valid keys: {}", known.join(", "))),
            Self::UnknownName { known, .. } => Some(format!("known names: {}", known.join(", "))),
            Self::OtherConfig { .. } => {
                Some("give another `--name` or `--out`; records are never overwritten".into())
            }
            Self::BadInstructionSet(_) => {
                Some(format!("unset {} to use the widest set there is", dpcl_kernels::ISA_VARIABLE))
            }
            Self::RanAway { checkpoint, .. } | Self::Diverged { checkpoint, .. } => Some(match checkpoint {
                Some(path) => format!(
                    "lower `lr`, or look for damaged images; the last good checkpoint is {}",
                    path.display()
                ),
                None => "lower `lr`, or look for damaged images; no checkpoint had been written".into(),
            }),
            Self::CheckpointNotWritten { earlier, .. } | Self::LogNotWritten { earlier, .. } => {
                Some(match earlier {
                    Some(path) => format!(
                        "free some room or set permissions right and give the command again: {} is intact and the run goes on \
                     from there",
                        path.display()
                    ),
                    None => "free some room or set permissions right and give the command again".into(),
                })
            }
            Self::Claimed { .. } => Some("wait for it, or stop it".into()),
            Self::LossNotFinite { .. } | Self::NotFinite { .. } => {
                Some("lower `lr`, or look for damaged images".into())
            }
            Self::PartNotFinite { key, .. } => Some(format!("lower `{key}`, or look for damaged images")),
            Self::NoTask { .. } => {
                Some("say it with `Learner::observe_in`, or use a method that needs no task ids".into())
            }
            Self::FromWithTasks { .. } => {
                Some("begin without `--from`, or take it further with a method that needs no task ids".into())
            }
            Self::AlreadyLearning { .. } => Some("give them to a new learner".into()),
            Self::NoClassYet => Some("call `observe` with at least one labelled image first".into()),
            Self::WrongShape { .. } => Some("resize the image, or make a learner of that shape".into()),
            Self::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                Some("check who owns the file and its permissions".into())
            }
            _ => None,
        }
    }
}
