//! The one error type of this crate. A variant names the file and what is wrong with it; `hint` says what to do.

use std::path::PathBuf;

/// Everything that can go wrong while reading records and making tables of them.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file or folder could not be read.
    #[error("cannot read {}", path.display())]
    Io {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },

    /// A file of a record is there but does not say what a record says.
    #[error("{}{}: {problem}", path.display(), line.map(|line| format!(", line {line}")).unwrap_or_default())]
    BadRecord {
        /// The offending file.
        path: PathBuf,
        /// The offending line, from 1, where the file has lines.
        line: Option<usize>,
        /// What is wrong there.
        problem: String,
        /// What to do about it.
        hint: String,
    },

    /// A record written by a later version of the program.
    #[error("{}: record format {found} is newer than {known}, the newest this program reads", path.display())]
    NewerFormat {
        /// The file that says so.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest format known here.
        known: u32,
    },

    /// No record lies anywhere under the given folders.
    #[error("no run was recorded in {}", list(folders))]
    NoRecords {
        /// The folders that were searched.
        folders: Vec<PathBuf>,
    },

    /// A row or a metric is asked for by a name that nothing has.
    #[error("there is no {kind} called `{name}`")]
    UnknownName {
        /// What it should be the name of.
        kind: &'static str,
        /// The name.
        name: String,
        /// What there is.
        known: Vec<String>,
    },

    /// A row is asked for by what several names begin with.
    #[error("several rows begin with `{name}`")]
    Ambiguous {
        /// What they begin with.
        name: String,
        /// Their names.
        found: Vec<String>,
    },

    /// A document asks for a table that cannot be made.
    #[error("{}, line {line}: {problem}", path.display())]
    Directive {
        /// The document's template.
        path: PathBuf,
        /// Where the directive starts, from 1.
        line: usize,
        /// What is wrong with it.
        problem: String,
        /// What to do about it.
        hint: String,
    },
}

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// What the reader can do about it, where we know.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Io { source, .. } => match source.kind() {
                std::io::ErrorKind::NotFound => Some("check the path's spelling".into()),
                std::io::ErrorKind::PermissionDenied => {
                    Some("check who owns the file and its permissions".into())
                }
                _ => None,
            },
            Self::BadRecord { hint, .. } | Self::Directive { hint, .. } => Some(hint.clone()),
            // The names of rows may hold commas.
            Self::UnknownName { kind, known, .. } if known.is_empty() => {
                Some(format!("there is no {kind} at all: no run has finished"))
            }
            Self::UnknownName { kind, known, .. } => Some(format!("known {kind}s: {}", known.join("; "))),
            Self::Ambiguous { found, .. } => Some(format!("give the whole name: {}", found.join("; "))),
            Self::NewerFormat { .. } => Some("update the program, or use the version that wrote it".into()),
            Self::NoRecords { .. } => {
                Some("give the folder a run was told to write to (`--out`), or one inside it".into())
            }
        }
    }
}

fn list(folders: &[PathBuf]) -> String {
    folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(", ")
}
