//! Record folders to [`Record`] values.
//!
//! Tolerates exactly one flaw, the one a crash leaves behind: an events file whose last line was not written to its
//! end. Everything else that is not a record is refused with the file, the line and a way out. Knows the layout of
//! a record and what its events may refer to; knows nothing of what the numbers mean.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::{Error, Result, plain_words};
use crate::record::{
    CONFIG_FILE, ClassCount, ERROR_FILE, EVENTS_FILE, EvaluationKind, Event, FORMAT, RESULT_FILE, RunResult,
    Uncertainty,
};
use crate::seal;

const MOVE_AWAY: &str = "restore the file, or move the run's folder elsewhere and run it again";

/// Bytes of a configuration at most: reading one takes fifty times its length, and the longest has some thousand.
const LONGEST_CONFIG: u64 = 1 << 20;

/// What one run left on disk.
#[derive(Clone, Debug)]
pub struct Record {
    /// The run's folder.
    pub path: PathBuf,
    /// `config.toml` as written.
    pub config_text: String,
    /// The same, parsed.
    pub config: toml::Table,
    /// The events, without a last line that a crash cut off. Empty if the run never began.
    pub events: Vec<Event>,
    /// `None` if the run did not finish.
    pub result: Option<RunResult>,
    /// Why the run failed, if it said so.
    pub failure: Option<String>,
    /// Whether a finished run's files are other than the run left them, going by their checksum.
    pub altered: bool,
}

/// Every record in the given folders or below them, each once, in the order of the arguments and then of the paths.
/// Symbolic links inside them are not followed; checkpoints are not searched.
pub fn find(folders: &[PathBuf]) -> Result<Vec<Record>> {
    find_paths(folders)?.iter().map(|path| read(path)).collect()
}

/// Where those records are, without reading them.
pub fn find_paths(folders: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for folder in folders {
        collect(folder, &mut paths)?;
    }
    let mut seen = std::collections::BTreeSet::new();
    paths.retain(|path| seen.insert(path.canonicalize().unwrap_or_else(|_| path.clone())));
    if paths.is_empty() {
        return Err(Error::NoRecords { folders: folders.to_vec() });
    }
    Ok(paths)
}

/// Reads one record folder.
pub fn read(folder: &Path) -> Result<Record> {
    let config_path = folder.join(CONFIG_FILE);
    let config_text = text(&config_path, LONGEST_CONFIG)?;
    let config = config_text.parse().map_err(|error: toml::de::Error| Error::BadRecord {
        path: config_path.clone(),
        line: error.span().and_then(|span| Some(config_text.get(..span.start)?.matches('\n').count() + 1)),
        problem: error.message().to_owned(),
        hint: MOVE_AWAY.into(),
    })?;
    let result_path = folder.join(RESULT_FILE);
    let result_bytes = optional(&result_path)?;
    let result = result_bytes.as_deref().map(|bytes| parse_result(&result_path, bytes)).transpose()?;
    let events_path = folder.join(EVENTS_FILE);
    let events_bytes = optional(&events_path)?.unwrap_or_default();
    let events = parse_events(&events_path, &events_bytes)?;
    if result.is_some() && events.is_empty() {
        let problem = format!("has no events although {RESULT_FILE} says that the run finished");
        return Err(bad(&events_path, None, problem, MOVE_AWAY));
    }
    let failure =
        optional(&folder.join(ERROR_FILE))?.map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
    let altered = result
        .as_ref()
        .zip(result_bytes.as_deref())
        .is_some_and(|(result, text)| !seal::is_whole(result, text, config_text.as_bytes(), &events_bytes));
    Ok(Record { path: folder.to_owned(), config_text, config, events, result, failure, altered })
}

/// The events in the bytes of an events file; `path` is for error texts only.
pub fn parse_events(path: &Path, bytes: &[u8]) -> Result<Vec<Event>> {
    let mut events = Vec::new();
    let mut check = Check::default();
    let mut lines = bytes.split_inclusive(|&byte| byte == b'\n').enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let cut_off = lines.peek().is_none() && !line.ends_with(b"\n");
        let number = index + 1;
        match parse_event(path, number, line) {
            Ok(event) => {
                check.accept(&event).map_err(|problem| bad(path, Some(number), problem, MOVE_AWAY))?;
                events.push(event);
            }
            Err(Error::BadRecord { .. }) if cut_off => {}
            Err(error) => return Err(error),
        }
    }
    Ok(events)
}

fn parse_event(path: &Path, number: usize, line: &[u8]) -> Result<Event> {
    // The format first: a newer layout must be called newer, not malformed.
    if number == 1 {
        refuse_newer(path, line)?;
    }
    serde_json::from_slice(line).map_err(|error| {
        let problem = format!("is not an event of a record ({})", plain_words(&error));
        bad(
            path,
            Some(number),
            problem,
            "remove this line and all after it to keep what came before, or run again",
        )
    })
}

fn parse_result(path: &Path, bytes: &[u8]) -> Result<RunResult> {
    refuse_newer(path, bytes)?;
    serde_json::from_slice(bytes).map_err(|error| {
        let problem = format!("is not the result of a run ({})", plain_words(&error));
        bad(path, Some(error.line()), problem, MOVE_AWAY)
    })
}

fn refuse_newer(path: &Path, json: &[u8]) -> Result<()> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    match serde_json::from_slice::<Version>(json) {
        Ok(Version { format }) if format > FORMAT => {
            Err(Error::NewerFormat { path: path.to_owned(), found: format, known: FORMAT })
        }
        _ => Ok(()),
    }
}

/// What later events may refer to, known from earlier ones.
#[derive(Default)]
struct Check {
    started: bool,
    classes: usize,
    tasks: usize,
    samples: u64,
}

impl Check {
    fn accept(&mut self, event: &Event) -> Result<(), String> {
        match event {
            Event::Start { classes, task_classes, task_samples, .. } => {
                if self.started {
                    return Err("begins a second run in one record".into());
                }
                *self = Self { started: true, classes: classes.len(), tasks: task_classes.len(), samples: 0 };
                if task_samples.len() != task_classes.len() {
                    return Err("gives classes and sizes for different numbers of tasks".into());
                }
                task_classes.iter().flatten().try_for_each(|&class| self.class(class))
            }
            _ if !self.started => Err("comes before the start of the run".into()),
            Event::NewClass { samples, class } => {
                self.class(*class)?;
                self.advance(*samples)
            }
            Event::Progress { samples, .. } | Event::BadImage { samples, .. } => self.advance(*samples),
            Event::Evaluation { samples, kind, classes, .. }
            | Event::TaskAware { samples, kind, classes } => self.evaluated(*samples, *kind, classes),
            Event::Unaveraged { samples, kind, classes, uncertainty, .. } => {
                self.evaluated(*samples, *kind, classes)?;
                uncertainty.as_ref().map_or(Ok(()), check_uncertainty)
            }
            Event::TaskEnd { task, samples } => {
                self.task(*task)?;
                self.advance(*samples)
            }
            Event::Memory { samples, slots } => {
                slots.iter().try_for_each(|&(class, _)| self.class(class))?;
                self.advance(*samples)
            }
            Event::Online { samples, correct } if correct > samples => {
                Err(format!("counts {correct} right predictions of {samples}"))
            }
            Event::Uncertainty(uncertainty) => {
                check_uncertainty(uncertainty)?;
                self.advance(uncertainty.samples)
            }
            Event::Online { .. } | Event::Glimpse { .. } => Ok(()),
        }
    }

    fn evaluated(
        &mut self,
        samples: u64,
        kind: EvaluationKind,
        classes: &[ClassCount],
    ) -> Result<(), String> {
        if let EvaluationKind::TaskEnd(task) = kind {
            self.task(task)?;
        }
        classes.iter().try_for_each(|count| self.count(count))?;
        self.advance(samples)
    }

    fn class(&self, class: usize) -> Result<(), String> {
        let known = self.classes;
        if class < known {
            Ok(())
        } else {
            Err(format!("speaks of class {class} of a data set with {known}"))
        }
    }

    fn task(&self, task: usize) -> Result<(), String> {
        let known = self.tasks;
        if task < known { Ok(()) } else { Err(format!("speaks of task {task} of a stream with {known}")) }
    }

    fn count(&self, count: &ClassCount) -> Result<(), String> {
        self.class(count.class)?;
        if count.correct > count.total {
            return Err(format!("counts {} right answers to {} images", count.correct, count.total));
        }
        Ok(())
    }

    fn advance(&mut self, samples: u64) -> Result<(), String> {
        let before = std::mem::replace(&mut self.samples, samples);
        if samples < before { Err(format!("goes back from sample {before} to {samples}")) } else { Ok(()) }
    }
}

/// Each threshold keeps what the ones before it kept, and the last keeps every image that calibration counts.
fn check_uncertainty(uncertainty: &Uncertainty) -> Result<(), String> {
    let mut images = 0_u64;
    for bin in &uncertainty.calibration {
        if bin.correct > bin.count {
            return Err(format!("counts {} right answers to {} images", bin.correct, bin.count));
        }
        images = images.saturating_add(bin.count);
    }
    for kept in [&uncertainty.by_confidence, &uncertainty.by_entropy, &uncertainty.by_disagreement] {
        if let Some(kept) = kept.iter().find(|kept| kept.correct > kept.kept) {
            return Err(format!("counts {} right answers to {} images", kept.correct, kept.kept));
        }
        if kept.windows(2).any(|pair| pair[0].kept >= pair[1].kept || pair[0].correct > pair[1].correct) {
            return Err("keeps fewer answers at a lower threshold".into());
        }
        if kept.last().map_or(0, |all| all.kept) != images {
            return Err(format!("does not keep all of {images} answers at the lowest threshold"));
        }
    }
    Ok(())
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    if is_record(folder) {
        found.push(folder.to_owned());
        return Ok(());
    }
    let io = |source| Error::Io { path: folder.to_owned(), source };
    let mut below = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        if entry.file_type().map_err(io)?.is_dir() {
            below.push(entry.path());
        }
    }
    below.sort();
    below.iter().try_for_each(|folder| collect(folder, found))
}

/// A run that stopped before its first event is known by its configuration and its name; a configuration alone may
/// be that of a whole grid.
fn is_record(folder: &Path) -> bool {
    folder.join(EVENTS_FILE).is_file()
        || folder.join(RESULT_FILE).is_file()
        || (folder.join(CONFIG_FILE).is_file() && name_and_seed(folder).1.is_some())
}

/// The label and the seed a run's folder is named by, `<label>-seed<k>`.
pub fn name_and_seed(folder: &Path) -> (String, Option<u64>) {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let parsed =
        name.rsplit_once("-seed").and_then(|(label, seed)| Some((label.to_owned(), seed.parse().ok()?)));
    parsed.map_or((name, None), |(label, seed)| (label, Some(seed)))
}

fn text(path: &Path, longest: u64) -> Result<String> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let mut bytes = Vec::new();
    File::open(path).map_err(io)?.take(longest + 1).read_to_end(&mut bytes).map_err(io)?;
    if bytes.len() as u64 > longest {
        return Err(bad(path, None, format!("has more than {longest} bytes"), MOVE_AWAY));
    }
    String::from_utf8(bytes).map_err(|_| bad(path, None, "is not UTF-8 text".into(), MOVE_AWAY))
}

fn optional(path: &Path) -> Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(Error::Io { path: path.to_owned(), source }),
    }
}

fn bad(path: &Path, line: Option<usize>, problem: String, hint: &str) -> Error {
    Error::BadRecord { path: path.to_owned(), line, problem, hint: hint.into() }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
