//! The checkpoints of a run's folder: `checkpoint/<samples>.ckpt`, the last two kept. Those taken while a method does
//! what it has put off, when samples stand still, are `<samples>-<training steps>.ckpt`. Writing happens on a second
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
    /// After that many samples; while a method does what it has put off, after that many training steps.
    Samples(u64),
    /// After so much time, at the next sample or the next few steps of what was put off.
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
    let mut found: Vec<((u64, u64), PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.path();
            entry.file_type().ok().filter(fs::FileType::is_file)?;
            let place = place_of(path.file_stem()?.to_str()?)?;
            (path.extension()? == "ckpt").then_some((place, path))
        })
        .collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

/// Samples, and training steps where the name has them.
fn place_of(stem: &str) -> Option<(u64, u64)> {
    let (samples, updates) = stem.split_once('-').unwrap_or((stem, "0"));
    Some((samples.parse().ok()?, updates.parse().ok()?))
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
    kept: Kept,
    /// The last samples that a checkpoint was offered at, and the training steps when they were new.
    offered: (u64, u64),
    newest: Option<PathBuf>,
    writing: Option<JoinHandle<Result<PathBuf>>>,
}

/// The last checkpoint taken.
struct Kept {
    at: Instant,
    samples: u64,
    updates: u64,
    /// Its name without the ending.
    stem: String,
}

impl Kept {
    /// What a checkpoint is called that is taken later: it must come after this one, and replaces it only if nothing was
    /// learned in between.
    fn next_stem(&self, samples: u64, updates: u64) -> String {
        if self.stem.is_empty() || samples != self.samples {
            return samples.to_string();
        }
        if updates == self.updates { self.stem.clone() } else { format!("{samples}-{updates}") }
    }
}

impl Keeper {
    /// For the run in a folder whose event log is `log`, going on from `newest` if there is one.
    pub(crate) fn new(run: &Path, every: Every, log: File, newest: Option<(PathBuf, u64, u64)>) -> Self {
        let (newest, samples, updates) =
            newest.map_or((None, 0, 0), |(path, samples, updates)| (Some(path), samples, updates));
        let stem = newest.as_deref().and_then(Path::file_stem).unwrap_or_default();
        let stem = stem.to_string_lossy().into_owned();
        let kept = Kept { at: Instant::now(), samples, updates, stem };
        Self { run: run.to_owned(), every, log, kept, offered: (samples, updates), newest, writing: None }
    }

    /// Takes a checkpoint if one is due. Only copying the learner's state holds the caller up, and the rest of an
    /// earlier file if that is still being written.
    ///
    /// # Errors
    /// When this or an earlier file could not be written; the one before is intact.
    pub fn keep(&mut self, moment: Moment, updates: u64, snapshot: &dyn Fn() -> Checkpoint) -> Result<()> {
        let (Moment::Sample(samples) | Moment::Stopping(samples) | Moment::End(samples)) = moment;
        if samples != self.offered.0 {
            self.offered = (samples, updates);
        }
        if matches!(moment, Moment::Sample(_)) && !self.is_due(samples, updates) {
            return Ok(());
        }
        self.wait()?;
        let checkpoint = snapshot();
        let (run, log) = (self.run.clone(), self.log.try_clone());
        let stem = self.kept.next_stem(samples, updates);
        let path = run.join(CHECKPOINT_FOLDER).join(format!("{stem}.ckpt"));
        let log = log.map_err(|source| Error::io("write", &path, source))?;
        self.writing = Some(std::thread::spawn(move || {
            let written = write(&run, &path, &checkpoint, &log);
            written.map(|()| path).map_err(|error| diverged(error, samples, updates))
        }));
        self.kept = Kept { at: Instant::now(), samples, updates, stem };
        match moment {
            Moment::Sample(_) => Ok(()),
            Moment::Stopping(_) | Moment::End(_) => self.wait(),
        }
    }

    /// Whether a checkpoint between others is due. Steps of what was put off count as samples: these stand still then.
    fn is_due(&self, samples: u64, updates: u64) -> bool {
        let Kept { at, samples: last, updates: taken, .. } = &self.kept;
        match self.every {
            Every::Samples(every) => {
                let put_off = updates.saturating_sub(self.offered.1.max(*taken));
                samples.saturating_sub(*last) + put_off >= every
            }
            Every::Time(every) => (samples, updates) != (*last, *taken) && at.elapsed() >= every,
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

/// A checkpoint that is not finite, with the place in the run where it was taken.
fn diverged(error: Error, samples: u64, updates: u64) -> Error {
    match error {
        Error::NotFinite { what } => Error::Diverged { what, samples, updates, checkpoint: None },
        error => error,
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

    /// A learner that learned nothing stands for every moment: only when it is taken matters here.
    fn kept(every: Every, offers: &[(u64, u64)]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let log = File::create(folder.path().join("events.jsonl")).unwrap();
        let mut keeper = Keeper::new(folder.path(), every, log, None);
        let config = crate::Config::from_toml("model = 'slim'\nwidth = 1").unwrap();
        let learner =
            crate::Learner::new(&config, crate::Shape { channels: 3, height: 8, width: 8 }).unwrap();
        let mut names = Vec::new();
        for &(samples, updates) in offers {
            keeper.keep(Moment::Sample(samples), updates, &|| Checkpoint::of(&learner)).unwrap();
            keeper.wait().unwrap();
            let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
            let newest = keeper.newest().map(name);
            let first = list(folder.path()).first().map(|path| name(path));
            assert_eq!(newest, first, "the newest sorts first");
            if names.last() != newest.as_ref() {
                names.extend(newest);
            }
        }
        names
    }

    #[test]
    fn what_is_put_off_is_kept_though_samples_stand_still() {
        let stalled: Vec<(u64, u64)> = (0..=10).map(|slice| (64, slice * 8)).collect();
        let offers = [&[(10, 0), (60, 0)], &stalled[..]].concat();
        assert_eq!(kept(Every::Samples(30), &offers), ["60.ckpt", "64.ckpt", "64-64.ckpt"]);
        let every_time = kept(Every::Time(Duration::ZERO), &offers);
        assert_eq!(every_time.len(), 3 + 10, "{every_time:?}");
        assert_eq!(every_time[2..4], ["64.ckpt", "64-8.ckpt"]);
    }

    #[test]
    fn steps_that_come_with_samples_do_not_count_as_samples() {
        let offers: Vec<(u64, u64)> = (1..=20).map(|samples| (samples, samples * 100)).collect();
        assert_eq!(kept(Every::Samples(8), &offers), ["8.ckpt", "16.ckpt"]);
        // The end of a task is offered again, and nothing was learned since.
        assert_eq!(kept(Every::Samples(8), &[(8, 800), (8, 800)]), ["8.ckpt"]);
    }

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
