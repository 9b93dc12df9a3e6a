//! What keeps a server from starting or going on.

use std::path::{Path, PathBuf};

/// Everything that can go wrong beside single requests.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The library reports it.
    #[error(transparent)]
    Library(#[from] dpcl::Error),

    /// A file or folder could not be opened, read or written.
    #[error("cannot {action} {}", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },

    /// Accepted samples that cannot be read again.
    #[error("{}, byte {place}: {problem}", path.display())]
    DamagedLog {
        /// The segment.
        path: PathBuf,
        /// Where in it.
        place: u64,
        /// What is wrong.
        problem: String,
    },

    /// Checkpoint and log do not meet.
    #[error("{}: the log begins at sample {first}, and the last good checkpoint has learned {learned}", path.display())]
    Gap {
        /// The server's folder.
        path: PathBuf,
        /// First sample of the log.
        first: u64,
        /// Samples that the checkpoint has learned.
        learned: u64,
    },

    /// The checkpoint has learned what the log does not know.
    #[error("{}: the log ends at sample {last}, and the checkpoint has learned {learned}", path.display())]
    ShortLog {
        /// The server's folder.
        path: PathBuf,
        /// Last sample of the log.
        last: u64,
        /// Samples that the checkpoint has learned.
        learned: u64,
    },

    /// A folder in which every checkpoint is damaged.
    #[error("{}: none of its checkpoints can be used", path.display())]
    NoGoodCheckpoint {
        /// The server's folder.
        path: PathBuf,
    },

    /// Two servers on one folder.
    #[error("another server has the folder {}", path.display())]
    Claimed {
        /// The folder.
        path: PathBuf,
    },

    /// A method that does not answer at any time or has to be told tasks.
    #[error("method `{method}` cannot be served: it {problem}")]
    Unservable {
        /// The method.
        method: String,
        /// Why.
        problem: &'static str,
    },

    /// The world would be let in without a token.
    #[error("listening on {address} would let others in without a token")]
    Open {
        /// The address.
        address: std::net::SocketAddr,
    },

    /// A learner that cannot be followed.
    #[error("cannot follow {source_name}: {problem}")]
    Follow {
        /// Its address or folder.
        source_name: String,
        /// What went wrong.
        problem: String,
    },
}

/// The crate's result type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Wraps what the system said with what was attempted and where.
    pub fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }

    /// What the reader can do about it, where we know.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Library(error) => return error.hint(),
            Self::Io { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => {
                "choose another address with `--listen`".into()
            }
            Self::Io { .. } => return None,
            Self::DamagedLog { .. }
            | Self::Gap { .. }
            | Self::ShortLog { .. }
            | Self::NoGoodCheckpoint { .. } => {
                "put the folder back from a copy; a new folder with `--from` and the last good checkpoint goes on \
                 without what was accepted since"
                    .into()
            }
            Self::Claimed { .. } => "stop it, or give another `--dir`; replicas take `--follow`".into(),
            Self::Unservable { .. } => "choose another method with `--set method=…`, as `er` or `dpcl`".into(),
            Self::Open { .. } => {
                "give `--token-file FILE` or the environment variable DPCL_TOKEN, or listen on 127.0.0.1".into()
            }
            Self::Follow { .. } => "give the address of a server, or the folder of one on this machine".into(),
        })
    }
}
