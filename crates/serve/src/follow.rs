//! A replica: it looks for newer checkpoints of a server that learns and answers from the newest it has. When the other is
//! gone it goes on answering, and says how old its answers are.

use std::{
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use dpcl::{Checkpoint, Snapshot};
use serde::Deserialize;
use serde_json::json;

use crate::{
    error::{Error, Result},
    keeper::{self, chain, lock},
    options::{Journal, Source},
    published::Published,
};

/// Time for connecting, and for each answer to begin.
const PATIENCE: Duration = Duration::from_secs(10);

/// Time for a whole checkpoint.
const TRANSFER: Duration = Duration::from_secs(300);

/// No checkpoint is larger.
const LARGEST: u64 = 4 << 30;

/// How a replica stands to the other.
pub struct Standing {
    source: Source,
    fresh: Mutex<Instant>,
    learned: AtomicU64,
    problem: Mutex<Option<String>>,
    /// Whether to end.
    pub stop: AtomicBool,
}

impl Standing {
    /// Whom it follows.
    pub fn source(&self) -> String {
        match &self.source {
            Source::Url(url) => url.clone(),
            Source::Folder(folder) => folder.display().to_string(),
        }
    }

    /// Time since it last knew that it has the newest checkpoint.
    pub fn stale(&self) -> Duration {
        lock(&self.fresh).elapsed()
    }

    /// Samples that the other had learned when last asked, beyond these.
    pub fn behind(&self, version: u64) -> Option<u64> {
        let learned = self.learned.load(Ordering::Relaxed);
        (learned > 0).then(|| learned.saturating_sub(version))
    }

    /// Why the last look failed.
    pub fn problem(&self) -> Option<String> {
        lock(&self.problem).clone()
    }
}

/// Asks for checkpoints.
pub struct Follower {
    source: Source,
    token: Option<String>,
    agent: ureq::Agent,
    known: Option<u64>,
}

#[derive(Deserialize)]
struct Learned {
    learned: Option<u64>,
}

impl Follower {
    /// A follower that knows nothing yet.
    pub fn new(source: &Source, token: Option<&str>) -> Self {
        let agent = ureq::Agent::config_builder()
            .timeout_connect(Some(PATIENCE))
            .timeout_recv_response(Some(PATIENCE))
            .timeout_global(Some(TRANSFER))
            .http_status_as_error(false)
            .build();
        Self { source: source.clone(), token: token.map(str::to_owned), agent: agent.into(), known: None }
    }

    /// Looks once; a snapshot if there is a newer checkpoint than the last one.
    ///
    /// # Errors
    /// When there is none, or it cannot be had.
    pub fn look(&mut self) -> Result<Option<Snapshot>> {
        let checkpoint = match self.source.clone() {
            Source::Folder(folder) => self.read(&folder)?,
            Source::Url(url) => self.fetch(&url)?,
        };
        let Some(checkpoint) = checkpoint else { return Ok(None) };
        let learner = checkpoint.learner()?;
        self.known = Some(learner.samples());
        Ok(Some(Snapshot::from(learner)))
    }

    fn read(&self, folder: &Path) -> Result<Option<Checkpoint>> {
        // A file can go while a newer one is written: the newer one is then there.
        for attempt in 0.. {
            let newest = keeper::list(folder)?.into_iter().next();
            let Some(safe) = newest else { return Err(self.problem("it has no checkpoint yet")) };
            if self.known == Some(safe.learned) {
                return Ok(None);
            }
            match Checkpoint::read(&safe.path) {
                Ok(checkpoint) => return Ok(Some(checkpoint)),
                Err(error) if attempt == 2 => return Err(error.into()),
                Err(_) => {}
            }
        }
        Ok(None)
    }

    fn fetch(&self, url: &str) -> Result<Option<Checkpoint>> {
        let mut request = self.agent.get(format!("{url}/checkpoint"));
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        if let Some(known) = self.known {
            request = request.header("If-None-Match", format!("\"{known}\""));
        }
        let mut response = request.call().map_err(|error| self.problem(&error.to_string()))?;
        match response.status().as_u16() {
            200 => {
                let bytes = response.body_mut().with_config().limit(LARGEST).read_to_vec();
                let bytes = bytes.map_err(|error| self.problem(&error.to_string()))?;
                Ok(Some(Checkpoint::from_bytes(&bytes, Path::new(url))?))
            }
            304 => Ok(None),
            status => Err(self.problem(&format!("it answers with status {status}"))),
        }
    }

    /// Samples that the other has learned, where it can be asked.
    fn learned(&self) -> Option<u64> {
        let Source::Url(url) = &self.source else { return None };
        let mut request = self.agent.get(format!("{url}/status"));
        if let Some(token) = &self.token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let text = request.call().ok()?.body_mut().read_to_string().ok()?;
        serde_json::from_str::<Learned>(&text).ok()?.learned
    }

    fn problem(&self, problem: &str) -> Error {
        let source_name = match &self.source {
            Source::Url(url) => url.clone(),
            Source::Folder(folder) => folder.display().to_string(),
        };
        Error::Follow { source_name, problem: problem.to_owned() }
    }

    /// How the replica stands at its beginning.
    pub fn standing(&self) -> Arc<Standing> {
        Arc::new(Standing {
            source: self.source.clone(),
            fresh: Mutex::new(Instant::now()),
            learned: AtomicU64::new(0),
            problem: Mutex::default(),
            stop: AtomicBool::new(false),
        })
    }

    /// Looks again and again and publishes what is newer.
    pub fn run(mut self, every: Duration, standing: &Standing, published: &Published, journal: &Journal) {
        while !standing.stop.load(Ordering::Acquire) {
            let asked = Instant::now();
            match self.look() {
                Ok(newer) => {
                    if let Some(snapshot) = newer {
                        journal(
                            &json!({ "level": "info", "event": "followed", "version": snapshot.samples() }),
                        );
                        published.swap(snapshot);
                    }
                    *lock(&standing.fresh) = asked;
                    *lock(&standing.problem) = None;
                    if let Some(learned) = self.learned() {
                        standing.learned.store(learned, Ordering::Relaxed);
                    }
                }
                Err(error) => {
                    let problem = chain(&error);
                    let before = lock(&standing.problem).replace(problem.clone());
                    if before.as_ref() != Some(&problem) {
                        journal(&json!({ "level": "warning", "event": "not-followed", "problem": problem }));
                    }
                }
            }
            std::thread::park_timeout(every);
        }
    }
}
