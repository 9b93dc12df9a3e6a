//! Checkpoints in the server's folder: `DIR/checkpoint/<samples learned>.ckpt`, the last two kept. Taking one copies the
//! state on the learning thread; writing happens on another, one file at a time.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
    time::Instant,
};

use dpcl::{Checkpoint, folder::Every};
use serde_json::json;
use tokio::sync::oneshot;

use crate::{
    error::{Error, Result},
    options::Journal,
    queue::Written,
    writer::Writer,
};

/// Folder of the checkpoints in the server's folder.
pub const FOLDER: &str = "checkpoint";

/// How many are kept: the newest, and one in case it turns out damaged.
const KEPT: usize = 2;

/// A checkpoint that is safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Safe {
    /// Samples it has learned.
    pub learned: u64,
    /// Its file.
    pub path: PathBuf,
}

/// The newest checkpoint that is safe, for whoever wants to read it.
pub type Newest = Arc<Mutex<Option<Safe>>>;

/// The checkpoints in a server's folder, newest first.
///
/// # Errors
/// When the folder cannot be read.
pub fn list(server: &Path) -> Result<Vec<Safe>> {
    let folder = server.join(FOLDER);
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::io("read", &folder, source)),
    };
    let safe = |path: PathBuf| {
        let learned = path.file_stem()?.to_str()?.parse().ok()?;
        (path.extension()? == "ckpt").then_some(Safe { learned, path })
    };
    let mut found: Vec<Safe> = entries.flatten().filter_map(|entry| safe(entry.path())).collect();
    found.sort_by_key(|safe| std::cmp::Reverse(safe.learned));
    Ok(found)
}

/// The newest checkpoint that can be used. Damaged ones are set aside under another name and told of.
///
/// # Errors
/// When there are checkpoints and none can be used.
pub fn newest_good(server: &Path, journal: &Journal) -> Result<Option<(Safe, Checkpoint)>> {
    let found = list(server)?;
    let any = !found.is_empty();
    for safe in found {
        match Checkpoint::read(&safe.path) {
            Ok(checkpoint) => return Ok(Some((safe, checkpoint))),
            Err(problem) => {
                let aside = safe.path.with_extension("aside");
                let event = json!({
                    "level": "error", "event": "checkpoint-set-aside", "file": aside, "problem": problem.to_string()
                });
                journal(&event);
                fs::rename(&safe.path, &aside).map_err(|source| Error::io("rename", &safe.path, source))?;
            }
        }
    }
    if any { Err(Error::NoGoodCheckpoint { path: server.to_owned() }) } else { Ok(None) }
}

/// Writes a checkpoint that is there whole or not at all.
///
/// # Errors
/// When the disk does not take it.
pub fn write(server: &Path, learned: u64, checkpoint: &Checkpoint) -> Result<Safe> {
    let folder = server.join(FOLDER);
    fs::create_dir_all(&folder).map_err(|source| Error::io("create", &folder, source))?;
    let path = folder.join(format!("{learned}.ckpt"));
    checkpoint.write(&path)?;
    Ok(Safe { learned, path })
}

/// Writes the checkpoints of one server.
pub struct Keeper {
    server: PathBuf,
    every: Every,
    last: (Instant, u64),
    newest: Newest,
    writer: Writer,
    journal: Journal,
    writing: Option<JoinHandle<()>>,
}

impl Keeper {
    /// For the server in a folder whose newest checkpoint is `newest`.
    pub fn new(server: &Path, every: Every, newest: Newest, writer: Writer, journal: Journal) -> Self {
        let learned = lock(&newest).as_ref().map_or(0, |safe| safe.learned);
        let last = (Instant::now(), learned);
        Self { server: server.to_owned(), every, last, newest, writer, journal, writing: None }
    }

    /// Whether one is to be written, with so many samples learned. Never while another is being written: learning does
    /// not wait for the disk.
    pub fn is_due(&self, learned: u64) -> bool {
        let (since, before) = self.last;
        let due = match self.every {
            Every::Samples(every) => learned.saturating_sub(before) >= every,
            Every::Time(every) => learned > before && since.elapsed() >= every,
        };
        due && self.writing.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Writes one on another thread and tells whoever waits.
    pub fn keep(&mut self, learned: u64, checkpoint: Checkpoint, tell: Vec<oneshot::Sender<Written>>) {
        self.wait();
        self.last = (Instant::now(), learned);
        let (server, newest) = (self.server.clone(), Arc::clone(&self.newest));
        let (writer, journal) = (self.writer.clone(), Arc::clone(&self.journal));
        let write = move || {
            let written = keep(&server, learned, &checkpoint, &newest, &writer);
            if let Err(problem) = &written {
                journal(&json!({ "level": "error", "event": "checkpoint-not-written", "problem": problem }));
            }
            for tell in tell {
                // Whoever asked may have gone.
                let _ = tell.send(written.clone());
            }
        };
        match std::thread::Builder::new().name("dpcl-checkpoint".into()).spawn(write) {
            Ok(writing) => self.writing = Some(writing),
            Err(error) => {
                let problem = error.to_string();
                (self.journal)(
                    &json!({ "level": "error", "event": "checkpoint-not-written", "problem": problem }),
                );
            }
        }
    }

    /// Waits for a file that is being written.
    pub fn wait(&mut self) {
        if let Some(writing) = self.writing.take() {
            // A panic has been told on stderr; the file before is intact.
            let _ = writing.join();
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.wait();
    }
}

fn keep(server: &Path, learned: u64, checkpoint: &Checkpoint, newest: &Newest, writer: &Writer) -> Written {
    let safe = write(server, learned, checkpoint).map_err(|error| chain(&error))?;
    *lock(newest) = Some(safe);
    let found = list(server).map_err(|error| chain(&error))?;
    for old in found.iter().skip(KEPT) {
        // One too many does no harm.
        let _ = fs::remove_file(&old.path);
    }
    if let Some(older) = found.get(KEPT - 1) {
        writer.compact(older.learned);
    }
    Ok(learned)
}

/// An error with its causes in one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| {
        let cause = cause.to_string();
        if text.ends_with(&cause) { text } else { format!("{text}: {cause}") }
    })
}

/// What is behind the mutex, whoever panicked with it.
pub fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
