//! The checkpoints of a run's folder: `checkpoint/<samples>.ckpt`, the last two kept. Writing happens on a second
//! thread, one file at a time, while learning goes on.

use std::{
    fmt,
    fs::{self, File},
    path::{Path, PathBuf},
    str::FromStr,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crate::{
    checkpoint::{Checkpoint, Moment},
    disk::sync_folder_of,
    error::{Error, Result},
};

/// Folder of the checkpoints in a run's folder.
pub const CHECKPOINT_FOLDER: &str = "checkpoint";

/// How many are kept: the newest, and one in case it turns out damaged.
const KEPT: usize = 2;

/// How often a run writes a checkpoint, beside those when it is stopped and at its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Every {
    /// After that many samples.
    Samples(u64),
    /// After so much time, at the next sample.
    Time(Duration),
}

impl Default for Every {
    /// A minute: what a crash costs at most, against a few hundred milliseconds of copying.
    fn default() -> Self {
        Self::Time(Duration::from_secs(60))
    }
}

impl fmt::Display for Every {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Samples(samples) => samples.fmt(formatter),
            Self::Time(time) => write!(formatter, "{}s", time.as_secs_f64()),
        }
    }
}

impl FromStr for Every {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("`{text}` is neither a number of samples, as 500, nor of seconds, as 60s");
        if let Some(seconds) = text.strip_suffix('s') {
            let seconds = seconds.trim().parse().map_err(|_| wrong())?;
            return Duration::try_from_secs_f64(seconds).map(Self::Time).map_err(|_| wrong());
        }
        match text.parse() {
            Ok(samples) if samples > 0 => Ok(Self::Samples(samples)),
            _ => Err(wrong()),
        }
    }
}

/// The checkpoint files of a run, newest first.
pub(super) fn list(run: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(run.join(CHECKPOINT_FOLDER)).into_iter().flatten().flatten();
    let mut found: Vec<(u64, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.path();
            entry.file_type().ok().filter(fs::FileType::is_file)?;
            let samples = path.file_stem()?.to_str()?.parse().ok()?;
            (path.extension()? == "ckpt").then_some((samples, path))
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

/// Removes what a process that was killed while writing left behind.
pub(super) fn remove_unfinished(run: &Path) {
    for entry in fs::read_dir(run.join(CHECKPOINT_FOLDER)).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "partial") {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Writes the checkpoints of one run.
pub struct Keeper {
    run: PathBuf,
    every: Every,
    log: File,
    kept: (Instant, u64),
    newest: Option<PathBuf>,
    writing: Option<JoinHandle<Result<PathBuf>>>,
}

impl Keeper {
    /// For the run in a folder whose event log is `log`, going on from `newest` if there is one.
    pub(crate) fn new(run: &Path, every: Every, log: File, newest: Option<(PathBuf, u64)>) -> Self {
        let (newest, samples) = newest.map_or((None, 0), |(path, samples)| (Some(path), samples));
        Self { run: run.to_owned(), every, log, kept: (Instant::now(), samples), newest, writing: None }
    }

    /// Takes a checkpoint if one is due. Only copying the learner's state holds the caller up, and the rest of an
    /// earlier file if that is still being written.
    ///
    /// # Errors
    /// When this or an earlier file could not be written; the one before is intact.
    pub fn keep(&mut self, moment: Moment, snapshot: &dyn Fn() -> Checkpoint) -> Result<()> {
        let (Moment::Sample(samples) | Moment::Stopping(samples) | Moment::End(samples)) = moment;
        let (last, last_samples) = self.kept;
        let due = match (moment, self.every) {
            (Moment::Sample(_), Every::Samples(every)) => samples.saturating_sub(last_samples) >= every,
            (Moment::Sample(_), Every::Time(every)) => last.elapsed() >= every && samples > last_samples,
            (Moment::Stopping(_) | Moment::End(_), _) => true,
        };
        if !due {
            return Ok(());
        }
        self.wait()?;
        let checkpoint = snapshot();
        let (run, log) = (self.run.clone(), self.log.try_clone());
        let path = run.join(CHECKPOINT_FOLDER).join(format!("{samples}.ckpt"));
        let log = log.map_err(|source| Error::io("write", &path, source))?;
        self.writing = Some(std::thread::spawn(move || write(&run, &path, &checkpoint, &log).map(|()| path)));
        self.kept = (Instant::now(), samples);
        match moment {
            Moment::Sample(_) => Ok(()),
            Moment::Stopping(_) | Moment::End(_) => self.wait(),
        }
    }

    /// Waits for a file that is being written.
    ///
    /// # Errors
    /// When it could not be written.
    pub fn wait(&mut self) -> Result<()> {
        if let Some(writing) = self.writing.take() {
            let written = writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            self.newest = Some(written.map_err(|error| self.unwritten(error))?);
        }
        Ok(())
    }

    /// The last checkpoint that is safe on disk.
    pub fn newest(&self) -> Option<&Path> {
        self.newest.as_deref()
    }

    fn unwritten(&self, error: Error) -> Error {
        match error {
            Error::Io { path, source, .. } => {
                Error::CheckpointNotWritten { path, earlier: self.newest.clone(), source }
            }
            other => other,
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // A run that failed for another reason has that to tell.
        let _ = self.writing.take().map(JoinHandle::join);
    }
}

/// The log first: a checkpoint must never speak of events that a loss of power took away.
fn write(run: &Path, path: &Path, checkpoint: &Checkpoint, log: &File) -> Result<()> {
    let folder = run.join(CHECKPOINT_FOLDER);
    if !folder.exists() {
        fs::create_dir_all(&folder).map_err(|source| Error::io("write", path, source))?;
        sync_folder_of(&folder);
    }
    log.sync_data().map_err(|source| Error::io("write", path, source))?;
    checkpoint.write(path)?;
    for old in list(run).into_iter().skip(KEPT) {
        // One too many does no harm.
        let _ = fs::remove_file(old);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cadences_are_read_and_written() {
        assert_eq!("500".parse(), Ok(Every::Samples(500)));
        assert_eq!("60s".parse(), Ok(Every::default()));
        assert_eq!("0.5s".parse(), Ok(Every::Time(Duration::from_millis(500))));
        for wrong in ["", "0", "-1", "s", "-1s", "nans", "1e300s", "five"] {
            assert!(wrong.parse::<Every>().is_err(), "{wrong}");
        }
        for every in [Every::Samples(7), Every::default(), Every::Time(Duration::from_millis(1500))] {
            assert_eq!(every.to_string().parse(), Ok(every));
        }
    }
}
