//! A run's folder: the configuration it belongs to, events flushed as they happen, checkpoints, the result written last.
//!
//! Nothing is ever overwritten: a folder of another configuration is refused, a finished run is kept as it is.

mod checkpoints;
mod claim;
mod texts;
mod trail;

pub use crate::disk::write_whole;
pub use checkpoints::{CHECKPOINT_FOLDER, Every, Keeper};
pub use claim::Claim;
use texts::{in_comment, read_config};
pub use trail::{Mark, Trail};

use std::{
    fs::{self, File, OpenOptions},
    io::{BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use dpcl_report::{
    error::plain_words,
    record::{CONFIG_FILE, ERROR_FILE, EVENTS_FILE, Event, RESULT_FILE, RunResult},
    seal,
};

use crate::{
    config::{Config, Role, Setup, role_of},
    disk::{new_file, refuse_link, sync_folder_of},
    error::{Error, Result},
};

const MOVE_AWAY: &str = "the record is damaged; move the folder away";

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
    pub fn new(out: &Path, name: &str, setup: &Setup) -> Self {
        Self { path: out.join(name).join(format!("{}-seed{}", setup.label, setup.seed)) }
    }

    /// The folder at a known place.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it holds for this configuration. Values that only opening the data settles are not compared where nobody
    /// has opened them.
    ///
    /// # Errors
    /// When it belongs to another configuration or cannot be read.
    pub fn status(&self, setup: &Setup) -> Result<Status> {
        let path = self.path.join(CONFIG_FILE);
        if !path.exists() {
            return match [EVENTS_FILE, RESULT_FILE].iter().find(|file| self.path.join(file).exists()) {
                None => Ok(Status::Missing),
                Some(file) => {
                    Err(Error::bad_data(path, format!("is missing, but {file} is there"), MOVE_AWAY))
                }
            };
        }
        if let Some(difference) = differences(self.stored()?, setup).into_iter().next() {
            return Err(Error::OtherConfig { path: self.path.clone(), key: difference.key });
        }
        let result = self.path.join(RESULT_FILE);
        if !result.exists() {
            return Ok(Status::Begun);
        }
        let text = fs::read_to_string(&result).map_err(|source| Error::io("read", &result, source))?;
        let result = serde_json::from_str(&text)
            .map_err(|error| Error::bad_data(&result, plain_words(&error), MOVE_AWAY))?;
        Ok(Status::Finished(Box::new(result)))
    }

    /// Every key whose value on record is another than this configuration's; none where nothing is on record.
    ///
    /// # Errors
    /// When the record cannot be read.
    pub fn differences(&self, setup: &Setup) -> Result<Vec<Difference>> {
        if !self.path.join(CONFIG_FILE).exists() {
            return Ok(Vec::new());
        }
        Ok(differences(self.stored()?, setup))
    }

    /// The configuration on record.
    ///
    /// # Errors
    /// When there is none or it cannot be read.
    pub fn config(&self) -> Result<Config> {
        Config::from_record(self.stored()?)
    }

    fn stored(&self) -> Result<toml::Table> {
        let path = self.path.join(CONFIG_FILE);
        let text = read_config(&path)?;
        let stored = text.parse::<toml::Table>();
        stored.map_err(|error| Error::bad_data(&path, error.message(), MOVE_AWAY))
    }

    /// Takes the folder, creating it if need be, so that no other process writes into it while the claim lives.
    ///
    /// # Errors
    /// [`Error::Claimed`] when another process has it; when it cannot be created.
    pub fn claim(&self) -> Result<Claim> {
        for name in [EVENTS_FILE, CHECKPOINT_FOLDER] {
            refuse_link(&self.path.join(name))?;
        }
        Claim::of(&self.path)
    }

    /// Begins the record: writes the configuration, with the command that asked for it, and opens the event log. An
    /// earlier, unfinished log is set aside under a numbered name.
    ///
    /// # Errors
    /// When the run is finished, the folder belongs to another configuration or it cannot be written.
    pub fn begin(&self, setup: &Setup, command: Option<&str>) -> Result<EventLog> {
        self.refuse_finished(setup)?;
        let write = |action, path: &Path, source| Error::io(action, path, source);
        fs::create_dir_all(&self.path).map_err(|source| write("create", &self.path, source))?;
        let path = self.path.join(CONFIG_FILE);
        if !path.exists() {
            let command = command.map(|command| format!("# command: {}\n", in_comment(command)));
            let command = command.unwrap_or_default();
            write_whole(&path, (command + &setup.to_toml()).as_bytes())?;
        }
        let path = self.log_path();
        if path.exists() {
            let aside = (1..).map(|number| self.path.join(format!("events.interrupted-{number}.jsonl")));
            let aside = aside.into_iter().find(|aside| !aside.exists()).unwrap_or_else(|| path.clone());
            fs::rename(&path, &aside).map_err(|source| write("rename", &path, source))?;
        }
        let file = OpenOptions::new().create_new(true).append(true).open(&path);
        let file = file.map_err(|source| write("create", &path, source))?;
        sync_folder_of(&path);
        Ok(EventLog { path, file: BufWriter::new(file), trail: Trail::default() })
    }

    /// Opens the event log again, without what comes after the text `before`, with which it begins.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn go_on(&self, before: &[u8]) -> Result<EventLog> {
        let path = self.log_path();
        let open = || -> std::io::Result<File> {
            let mut file = OpenOptions::new().write(true).open(&path)?;
            file.set_len(before.len() as u64)?;
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        };
        let file = open().map_err(|source| Error::io("write", &path, source))?;
        let mut trail = Trail::default();
        trail.add(before);
        Ok(EventLog { path, file: BufWriter::new(file), trail })
    }

    /// Where the event log is.
    pub fn log_path(&self) -> PathBuf {
        self.path.join(EVENTS_FILE)
    }

    /// Checkpoints of the run, newest first; files that were never finished are removed.
    pub fn checkpoints(&self) -> Vec<PathBuf> {
        checkpoints::remove_unfinished(&self.path);
        checkpoints::list(&self.path)
    }

    /// The newest checkpoint of the run, for those who only read.
    pub fn newest_checkpoint(&self) -> Option<PathBuf> {
        checkpoints::list(&self.path).into_iter().next()
    }

    /// Takes a checkpoint that is not to be used out of the way, without losing it.
    ///
    /// # Errors
    /// When it cannot be renamed.
    pub fn set_aside(&self, checkpoint: &Path) -> Result<()> {
        let others = (2..).map(|number| checkpoint.with_extension(format!("aside-{number}")));
        let mut names = std::iter::once(checkpoint.with_extension("aside")).chain(others);
        let aside = names.find(|aside| aside.symlink_metadata().is_err()).expect("numbers do not end");
        fs::rename(checkpoint, aside).map_err(|source| Error::io("rename", checkpoint, source))
    }

    /// Leaves the reason in the record of a run that did not finish. Only for the process that holds the claim.
    pub fn note_failure(&self, text: &str) {
        if self.path.join(CONFIG_FILE).exists() && !self.path.join(RESULT_FILE).exists() {
            // The reason is told to whoever waits for the run as well.
            let file = new_file(&self.path.join(ERROR_FILE));
            let _ = file.and_then(|mut file| file.write_all(text.as_bytes()));
        }
    }

    /// Removes the reason of an earlier failure.
    ///
    /// # Errors
    /// When it is there and cannot be removed.
    pub fn forget_failure(&self) -> Result<()> {
        let path = self.path.join(ERROR_FILE);
        match fs::remove_file(&path) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io("remove", path, source))
            }
            _ => Ok(()),
        }
    }

    /// Ends the record, with the log as it was written.
    ///
    /// # Errors
    /// When there is a result already, it cannot be written, or the log is not what was written into it.
    pub fn finish(&self, result: &RunResult, written: &Mark) -> Result<()> {
        let path = self.path.join(RESULT_FILE);
        if path.exists() {
            return Err(self.finished());
        }
        let read = |name: &str| {
            let path = self.path.join(name);
            fs::read(&path).map_err(|source| Error::io("read", path, source))
        };
        let events = read(EVENTS_FILE)?;
        let mut found = Trail::default();
        found.add(&events);
        if found.mark() != *written {
            let problem = "is not what the run wrote: something else changed it meanwhile";
            let hint = "give the command again: what was changed is set aside and made anew";
            return Err(Error::bad_data(self.log_path(), problem, hint));
        }
        let text = seal::sealed(result, &read(CONFIG_FILE)?, &events);
        write_whole(&path, text.as_bytes())
    }

    /// Refuses to touch the record of a run that came to its end.
    ///
    /// # Errors
    /// When it did, or the folder belongs to another configuration.
    pub fn refuse_finished(&self, setup: &Setup) -> Result<()> {
        match self.status(setup)? {
            Status::Finished(_) => Err(self.finished()),
            Status::Missing | Status::Begun => Ok(()),
        }
    }

    fn finished(&self) -> Error {
        let hint = "records are never overwritten; make the run in another folder";
        Error::bad_data(self.path.join(RESULT_FILE), "the run is finished already", hint)
    }
}

/// The open event log of a run.
pub struct EventLog {
    path: PathBuf,
    file: BufWriter<File>,
    trail: Trail,
}

impl EventLog {
    /// Appends one event and flushes it.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn write(&mut self, event: &Event) -> Result<()> {
        let line = event.line();
        self.trail.add(line.as_bytes());
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.flush());
        written.map_err(|source| Error::io("write", &self.path, source))
    }

    /// A second handle of the log, to sync it elsewhere.
    pub(crate) fn handle(&self) -> Result<File> {
        self.file.get_ref().try_clone().map_err(|source| Error::io("open", &self.path, source))
    }

    /// Ends the log: what was written is on disk afterwards, whatever happens to the machine. Says what that is.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub fn close(mut self) -> Result<Mark> {
        let closed = self.file.flush().and_then(|()| self.file.get_ref().sync_all());
        closed.map_err(|source| Error::io("write", &self.path, source))?;
        Ok(self.trail.mark())
    }
}

/// A key on record with another value than a configuration's.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The key, dotted.
    pub key: String,
    /// Its value on record, if it has one there.
    pub recorded: Option<toml::Value>,
    /// Its value in the configuration, if it has one there.
    pub wanted: Option<toml::Value>,
}

/// The keys, dotted, in which a stored configuration differs from a setup, surroundings aside.
pub(crate) fn differences(stored: toml::Table, wanted: &Setup) -> Vec<Difference> {
    let mut stored = complete(stored);
    stored.retain(|key, _| !wanted.is_open(key));
    let mut found = Vec::new();
    compare("", &stored, &wanted.to_table(), &mut found);
    found
}

/// The table in today's spelling, with keys it lacks at their defaults, so that a record from before a key existed is
/// still recognised. One that cannot be read or run is left as it is.
fn complete(table: toml::Table) -> toml::Table {
    let setup = Config::from_record(table.clone()).and_then(|config| config.check());
    setup.map_or(table, |setup| setup.to_table())
}

/// Adds the keys in which two configurations differ, surroundings aside.
fn compare(prefix: &str, stored: &toml::Table, wanted: &toml::Table, found: &mut Vec<Difference>) {
    let new = wanted.keys().filter(|key| !stored.contains_key(*key));
    for key in stored.keys().chain(new).filter(|key| role_of(key) != Role::Surroundings) {
        match (stored.get(key), wanted.get(key)) {
            (Some(toml::Value::Table(old)), Some(toml::Value::Table(new))) => {
                compare(&format!("{prefix}{key}."), old, new, found);
            }
            (old, new) if old != new => found.push(Difference {
                key: format!("{prefix}{key}"),
                recorded: old.cloned(),
                wanted: new.cloned(),
            }),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun() -> (tempfile::TempDir, RunFolder, Setup) {
        let place = tempfile::tempdir().unwrap();
        let folder = RunFolder::at(place.path().join("run"));
        let setup = Config::default().check().unwrap();
        folder.begin(&setup, None).unwrap().close().unwrap();
        (place, folder, setup)
    }

    #[test]
    fn keys_that_an_older_record_lacks_count_as_their_defaults() {
        let (_place, folder, setup) = begun();
        let path = folder.path().join(CONFIG_FILE);
        let mut stored = setup.to_table();
        stored.remove("cutmix_alpha").unwrap();
        stored.remove("eval_period").unwrap();
        fs::write(&path, toml::to_string(&stored).unwrap()).unwrap();
        assert_eq!(folder.status(&setup).unwrap(), Status::Begun);

        let mut other = setup.clone();
        other.cutmix_alpha = 0.5;
        let refused = folder.status(&other).unwrap_err();
        assert!(matches!(refused, Error::OtherConfig { key, .. } if key == "cutmix_alpha"));
    }

    #[test]
    fn a_record_in_an_older_spelling_is_of_the_same_configuration() {
        let place = tempfile::tempdir().unwrap();
        let folder = RunFolder::at(place.path());
        let text = "method = 'ewc++'\nmemory_scheme = 'balanced'\nrebuild = true\nupdates = 2.0";
        let setup = Config::from_toml(text).unwrap().check().unwrap();
        let old = setup.to_toml().replace("rebuild =", "rm_rebuild =").replace("balanced", "rm");
        let old = old.replace("updates =", "updates_per_sample =");
        fs::write(place.path().join(CONFIG_FILE), old).unwrap();
        assert_eq!(folder.status(&setup).unwrap(), Status::Begun);
    }

    #[test]
    fn a_record_without_its_configuration_is_damaged_not_missing() {
        let (_place, folder, setup) = begun();
        fs::remove_file(folder.path().join(CONFIG_FILE)).unwrap();
        assert!(matches!(folder.status(&setup), Err(Error::BadData { .. })));
        assert!(matches!(folder.begin(&setup, None), Err(Error::BadData { .. })));
        fs::remove_file(folder.path().join(EVENTS_FILE)).unwrap();
        assert_eq!(folder.status(&setup).unwrap(), Status::Missing);
    }
}
