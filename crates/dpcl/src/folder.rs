//! A run's folder: the configuration it belongs to, events flushed as they happen, the result written last.
//!
//! Nothing is ever overwritten: a folder of another configuration is refused, a finished run is kept as it is.

use std::{
    fs::{self, File, OpenOptions},
    io::{BufWriter, Write},
    path::{Path, PathBuf},
};

use dpcl_report::record::{Event, RunResult};

use crate::{
    config::{Config, NEUTRAL_KEYS},
    error::{Error, Result},
};

/// What a folder holds for a configuration.
#[derive(Clone, Debug, PartialEq)]
pub enum Status {
    /// Nothing yet.
    Missing,
    /// The same run, begun but not finished.
    Begun,
    /// The same run, finished.
    Finished(Box<RunResult>),
}

/// The folder of one run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
}

impl RunFolder {
    /// `<out>/<name>/<label>-seed<k>`.
    pub fn new(out: &Path, name: &str, config: &Config) -> Self {
        let settings = &config.settings;
        let label = settings.label.as_deref().unwrap_or(&settings.method);
        Self { path: out.join(name).join(format!("{label}-seed{}", settings.seed)) }
    }

    /// The folder at a known place.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds for this (resolved) configuration.
    ///
    /// # Errors
    /// When it belongs to another configuration or cannot be read.
    pub fn status(&self, config: &Config) -> Result<Status> {
        let path = self.path.join("config.toml");
        if !path.exists() {
            return Ok(Status::Missing);
        }
        let text = fs::read_to_string(&path).map_err(|source| Error::io("read", &path, source))?;
        let stored = text.parse::<toml::Table>().map_err(|error| {
            Error::bad_data(&path, error.message(), "the record is damaged; move the folder away")
        })?;
        if let Some(key) = first_difference(&stored, &config.to_table()) {
            return Err(Error::OtherConfig { path: self.path.clone(), key });
        }
        let result = self.path.join("result.json");
        if !result.exists() {
            return Ok(Status::Begun);
        }
        let text = fs::read_to_string(&result).map_err(|source| Error::io("read", &result, source))?;
        let result = serde_json::from_str(&text).map_err(|error| {
            Error::bad_data(&result, error.to_string(), "the record is damaged; move the folder away")
        })?;
        Ok(Status::Finished(Box::new(result)))
    }

    /// Begins the record: writes the configuration and opens the event log. An earlier, unfinished log is set aside
    /// under a numbered name.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn begin(&self, config: &Config) -> Result<EventLog> {
        let write = |action, path: &Path, source| Error::io(action, path, source);
        fs::create_dir_all(&self.path).map_err(|source| write("create", &self.path, source))?;
        let path = self.path.join("config.toml");
        if !path.exists() {
            write_whole(&path, config.to_toml().as_bytes())?;
        }
        let path = self.path.join("events.jsonl");
        if path.exists() {
            let aside = (1..).map(|number| self.path.join(format!("events.interrupted-{number}.jsonl")));
            let aside = aside.into_iter().find(|aside| !aside.exists()).unwrap_or_else(|| path.clone());
            fs::rename(&path, &aside).map_err(|source| write("rename", &path, source))?;
        }
        let file = OpenOptions::new().create_new(true).append(true).open(&path);
        let file = file.map_err(|source| write("create", &path, source))?;
        Ok(EventLog { path, file: BufWriter::new(file) })
    }

    /// Ends the record.
    ///
    /// # Errors
    /// When the result cannot be written.
    pub fn finish(&self, result: &RunResult) -> Result<()> {
        let text = serde_json::to_string_pretty(result).expect("a result is plain data with string keys");
        write_whole(&self.path.join("result.json"), text.as_bytes())
    }
}

/// The open event log of a run.
pub struct EventLog {
    path: PathBuf,
    file: BufWriter<File>,
}

impl EventLog {
    /// Appends one event and flushes it.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn write(&mut self, event: &Event) -> Result<()> {
        let line = serde_json::to_string(event).expect("an event is plain data with string keys");
        let written = writeln!(self.file, "{line}").and_then(|()| self.file.flush());
        written.map_err(|source| Error::io("write", &self.path, source))
    }
}

/// Writes a file under a temporary name, syncs it and renames it into place, so that it is there whole or not at all.
///
/// # Errors
/// When the disk does not take it.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let partial = path.with_extension("partial");
    let write = || -> std::io::Result<()> {
        let mut file = File::create(&partial)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&partial, path)
    };
    write().map_err(|source| Error::io("write", path, source))
}

/// The first key, dotted, in which two configurations differ, results-neutral keys aside.
fn first_difference(stored: &toml::Table, wanted: &toml::Table) -> Option<String> {
    let keys = stored.keys().chain(wanted.keys());
    for key in keys.filter(|key| !NEUTRAL_KEYS.contains(&key.as_str())) {
        match (stored.get(key), wanted.get(key)) {
            (Some(toml::Value::Table(old)), Some(toml::Value::Table(new))) => {
                if let Some(inner) = first_difference(old, new) {
                    return Some(format!("{key}.{inner}"));
                }
            }
            (old, new) if old != new => return Some(key.clone()),
            _ => {}
        }
    }
    None
}
