//! How a server is to be run.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use dpcl::{Config, folder::Every};
use serde_json::Value;

/// Where structured log lines go: one JSON object each. Images, labels and tokens are never in them.
pub type Journal = Arc<dyn Fn(&Value) + Send + Sync>;

/// How a server is to be run.
#[derive(Clone)]
pub struct Options {
    /// Where it listens; port 0 takes a free one.
    pub listen: SocketAddr,
    /// What clients must send as `Authorization: Bearer …`.
    pub token: Option<String>,
    /// What is taken from clients, and how much of it.
    pub limits: Limits,
    /// Where log lines go.
    pub journal: Journal,
    /// What it does.
    pub role: Role,
}

/// What a server does.
#[derive(Clone, Debug)]
pub enum Role {
    /// Learns and answers.
    Learner(Learning),
    /// Answers from another's checkpoints.
    Replica(Following),
}

/// A server that learns.
#[derive(Clone, Debug)]
pub struct Learning {
    /// Where it keeps everything.
    pub folder: PathBuf,
    /// What it begins with, if the folder is empty.
    pub begin: Begin,
    /// How often it writes a checkpoint while it learns.
    pub checkpoint_every: Every,
    /// Threads of the learner; 0 leaves one core to predictions where there are several.
    pub threads: usize,
}

/// What a server that finds its folder empty begins with.
#[derive(Clone, Debug)]
pub enum Begin {
    /// A learner that knows nothing. A folder with a learner of another configuration is refused.
    Config(Box<Config>),
    /// The learner of a checkpoint.
    Checkpoint(PathBuf),
    /// A configuration of which nothing was said: whatever is in the folder goes on.
    Anything(Box<Config>),
}

/// A server that follows another.
#[derive(Clone, Debug)]
pub struct Following {
    /// Whom.
    pub source: Source,
    /// How often it looks for a newer checkpoint.
    pub every: Duration,
}

/// Whom a replica follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// A server at an address.
    Url(String),
    /// The folder of a server on this machine or on a shared disk.
    Folder(PathBuf),
}

/// What is taken from clients.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Bytes of all bodies that are being read or worked on.
    pub bodies_bytes: usize,
    /// Images in a request.
    pub images: usize,
    /// Pixels of an image as sent.
    pub pixels: u64,
    /// Bytes of a label.
    pub label_bytes: usize,
    /// Classes in all.
    pub classes: usize,
    /// Accepted samples that wait to be learned.
    pub waiting: u64,
    /// Open connections.
    pub connections: usize,
    /// Time in which a request's head, and then its body, has to arrive, and in which a client has to take some of an answer.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 16 << 20,
            bodies_bytes: 128 << 20,
            images: 256,
            pixels: 16 << 20,
            label_bytes: 256,
            classes: 1000,
            waiting: 4096,
            connections: 256,
            patience: Duration::from_secs(20),
        }
    }
}
