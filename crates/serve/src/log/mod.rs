//! The log of accepted samples: what is in it survives whatever happens to the process, and the learner learns from it in
//! this order.
//!
//! `DIR/log/<number of its first sample>.log` are segments. Only the last is written to. A segment goes when the older of
//! two kept checkpoints has learned everything in it; each begins with the keys of the requests before it, so that these do
//! not go with their samples. A write that fails is taken back, so that the log ends with a whole record.

mod record;
mod segments;

use std::{
    fs::{File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
};

use dpcl::{Image, folder};

pub use segments::{Replay, Scan};

use crate::{
    error::{Error, Result},
    keys::{Key, Keys},
};

/// Folder of the log in the server's folder.
pub const FOLDER: &str = "log";

/// A segment that has grown to this is followed by another.
const LONGEST: u64 = 64 << 20;

/// A segment shorter than this is not worth another at a checkpoint.
const SHORTEST: u64 = 64 << 10;

/// A request that was accepted, whole.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Number of its first sample; samples are numbered from 1 without gaps.
    pub first: u64,
    /// Its key, if it had one.
    pub key: Option<Key>,
    /// Labels and images.
    pub samples: Vec<(String, Image)>,
}

impl Entry {
    /// Number of its last sample.
    pub fn last(&self) -> u64 {
        self.first + self.samples.len() as u64 - 1
    }
}

/// The log, open to be written.
pub struct Log {
    folder: PathBuf,
    side: usize,
    file: File,
    path: PathBuf,
    /// Bytes that are known to be good; what lies behind is taken back.
    good: u64,
    /// Whether bytes of a write that failed may lie behind the good ones.
    dirty: bool,
    next: u64,
}

impl Log {
    /// Opens the log in the server's folder behind what was found there, or begins it with sample `next`.
    ///
    /// # Errors
    /// When files cannot be written.
    pub fn open(server: &Path, side: usize, scan: &Scan, next: u64) -> Result<Self> {
        let folder = server.join(FOLDER);
        std::fs::create_dir_all(&folder).map_err(|source| Error::io("create", &folder, source))?;
        let next = scan.next.unwrap_or(next);
        let (path, good) = match &scan.last {
            Some((path, good)) => (path.clone(), *good),
            None => segments::begin(&folder, side, next, &scan.keys)?,
        };
        let file = OpenOptions::new().append(true).open(&path);
        let file = file.map_err(|source| Error::io("open", &path, source))?;
        let mut log = Self { folder, side, file, path, good, dirty: true, next };
        log.take_back().map_err(|source| Error::io("write", &log.path, source))?;
        Ok(log)
    }

    /// Number of the sample that comes next.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Writes entries and has the disk confirm them, all in one go: all are safe, or none is in the log.
    ///
    /// # Errors
    /// What the disk says; the log is then as it was.
    pub fn append(&mut self, entries: &[Entry]) -> io::Result<()> {
        self.take_back()?;
        let mut bytes = Vec::new();
        entries.iter().for_each(|entry| record::write_entry(&mut bytes, entry));
        self.dirty = true;
        let written = self.file.write_all(&bytes).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // Tried again before the next write if the disk does not let us.
            let _ = self.take_back();
            return Err(error);
        }
        self.dirty = false;
        self.good += bytes.len() as u64;
        self.next = entries.last().map_or(self.next, |entry| entry.last() + 1);
        Ok(())
    }

    /// Cuts off what a failed write may have left.
    fn take_back(&mut self) -> io::Result<()> {
        if self.dirty {
            self.file.set_len(self.good)?;
            self.file.sync_data()?;
            self.dirty = false;
        }
        Ok(())
    }

    /// Follows the segment with another one if it has become long.
    ///
    /// # Errors
    /// When the new one cannot be written; the old one goes on.
    pub fn turn_over_if_long(&mut self, keys: &Keys) -> Result<()> {
        if self.good < LONGEST { Ok(()) } else { self.turn_over(keys) }
    }

    /// Every sample up to `learned` is in a checkpoint and in the one before it: removes what holds nothing else.
    ///
    /// # Errors
    /// When files cannot be written or removed.
    pub fn compact(&mut self, learned: u64, keys: &Keys) -> Result<()> {
        if self.good > SHORTEST {
            self.turn_over(keys)?;
        }
        let segments = segments::list(&self.folder)?;
        for pair in segments.windows(2) {
            let [(_, path), (follower, _)] = pair else { continue };
            if *follower <= learned + 1 {
                std::fs::remove_file(path).map_err(|source| Error::io("remove", path, source))?;
            }
        }
        Ok(())
    }

    fn turn_over(&mut self, keys: &Keys) -> Result<()> {
        let path = segments::path(&self.folder, self.next);
        if path == self.path {
            return Ok(());
        }
        self.take_back().map_err(|source| Error::io("write", &self.path, source))?;
        let (path, good) = segments::begin(&self.folder, self.side, self.next, keys)?;
        let file = OpenOptions::new().append(true).open(&path);
        self.file = file.map_err(|source| Error::io("open", &path, source))?;
        (self.path, self.good) = (path, good);
        Ok(())
    }

    /// Bytes in all segments.
    pub fn bytes(&self) -> u64 {
        let segments = segments::list(&self.folder).unwrap_or_default();
        segments.iter().filter_map(|(_, path)| path.metadata().ok()).map(|data| data.len()).sum()
    }
}

/// Writes a file whole.
fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    Ok(folder::write_whole(path, bytes)?)
}

#[cfg(test)]
mod tests;
