//! Segments on disk: which there are, what is whole in them, and reading them again.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{Entry, FOLDER, record, write_whole};
use crate::{
    error::{Error, Result},
    keys::{Kept, Keys},
};

/// Where the segment lies whose first sample has this number.
pub fn path(folder: &Path, first: u64) -> PathBuf {
    folder.join(format!("{first:020}.log"))
}

/// All segments with the numbers of their first samples, in order.
pub fn list(folder: &Path) -> Result<Vec<(u64, PathBuf)>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(Error::io("read", folder, source)),
    };
    let number = |path: &Path| -> Option<u64> {
        (path.extension()? == "log").then_some(())?;
        path.file_stem()?.to_str()?.parse().ok()
    };
    let paths = entries.flatten().map(|entry| entry.path());
    let mut found: Vec<(u64, PathBuf)> = paths.filter_map(|path| Some((number(&path)?, path))).collect();
    found.sort();
    Ok(found)
}

/// Begins a segment, whole or not at all; gives its path and length.
pub fn begin(folder: &Path, side: usize, first: u64, keys: &Keys) -> Result<(PathBuf, u64)> {
    let mut bytes = record::header(side, first);
    record::write_keys(&mut bytes, keys.iter());
    let path = path(folder, first);
    write_whole(&path, &bytes)?;
    Ok((path, bytes.len() as u64))
}

/// What was found of a log.
#[derive(Default)]
pub struct Scan {
    /// The segment that goes on, and how much of it is whole.
    pub last: Option<(PathBuf, u64)>,
    /// Number of the next sample.
    pub next: Option<u64>,
    /// Keys of the last requests.
    pub keys: Keys,
    /// Bytes at the end of the last segment that are no whole record: what was being written when the process ended.
    pub torn: u64,
}

impl Scan {
    /// Reads every segment in the server's folder. Whatever is wrong but a torn end of the last segment is refused: samples
    /// that were acknowledged must not be passed over in silence.
    ///
    /// # Errors
    /// [`Error::DamagedLog`] with file and place.
    pub fn of(server: &Path, side: usize) -> Result<Self> {
        let mut scan = Self::default();
        let segments = list(&server.join(FOLDER))?;
        let count = segments.len();
        for (position, (first, path)) in segments.into_iter().enumerate() {
            if scan.next.is_some_and(|next| next != first) {
                return Err(damaged(&path, 0, "a segment before it is missing"));
            }
            let segment = Segment::read(&path, side, first)?;
            let mut next = first;
            for (record, place) in segment.records() {
                match record {
                    record::Record::Keys(keys) => keys.into_iter().for_each(|kept| scan.keys.remember(kept)),
                    record::Record::Samples(entry) if entry.first != next || entry.samples.is_empty() => {
                        return Err(damaged(
                            &path,
                            place,
                            "its samples are not numbered one after the other",
                        ));
                    }
                    record::Record::Samples(entry) => {
                        next = entry.last() + 1;
                        if let Some(key) = entry.key {
                            let samples = entry.samples.len() as u32;
                            scan.keys.remember(Kept { key, samples });
                        }
                    }
                }
            }
            let whole = segment.whole();
            scan.torn = segment.bytes.len() as u64 - whole;
            if scan.torn > 0 && position + 1 < count {
                return Err(damaged(&path, whole, "a record does not match its checksum"));
            }
            scan.next = Some(next);
            scan.last = Some((path, whole));
        }
        Ok(scan)
    }

    /// Number of the first sample that can be read again.
    pub fn first(server: &Path) -> Result<Option<u64>> {
        Ok(list(&server.join(FOLDER))?.first().map(|(first, _)| *first))
    }
}

/// The accepted requests in a server's folder from a sample on, one segment in memory at a time.
pub struct Replay {
    segments: std::vec::IntoIter<(u64, PathBuf)>,
    side: usize,
    after: u64,
    until: u64,
    waiting: std::vec::IntoIter<Entry>,
}

impl Replay {
    /// Samples after number `after`, up to number `until`.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn new(server: &Path, side: usize, after: u64, until: u64) -> Result<Self> {
        let segments = list(&server.join(FOLDER))?;
        // The last segment that begins at or before the first sample wanted.
        let begin = segments.iter().rposition(|(first, _)| *first <= after + 1).unwrap_or(0);
        let segments: Vec<_> = segments.into_iter().skip(begin).collect();
        Ok(Self { segments: segments.into_iter(), side, after, until, waiting: Vec::new().into_iter() })
    }

    /// The next request of which something is wanted; samples before are left out.
    ///
    /// # Errors
    /// When a segment cannot be read.
    pub fn next(&mut self) -> Result<Option<Entry>> {
        if self.after >= self.until {
            return Ok(None);
        }
        loop {
            for mut entry in self.waiting.by_ref() {
                if entry.last() > self.after {
                    let known = (self.after + 1).saturating_sub(entry.first) as usize;
                    entry.samples.drain(..known);
                    entry.first += known as u64;
                    self.after = entry.last();
                    return Ok(Some(entry));
                }
            }
            let Some((first, path)) = self.segments.next() else { return Ok(None) };
            let segment = Segment::read(&path, self.side, first)?;
            let entries = segment.records().filter_map(|(record, _)| match record {
                record::Record::Samples(entry) => Some(entry),
                record::Record::Keys(_) => None,
            });
            self.waiting = entries.collect::<Vec<_>>().into_iter();
        }
    }
}

struct Segment {
    bytes: Vec<u8>,
    side: usize,
}

impl Segment {
    fn read(path: &Path, side: usize, first: u64) -> Result<Self> {
        let bytes = fs::read(path).map_err(|source| Error::io("read", path, source))?;
        let (found_side, found_first) =
            record::read_header(&bytes).map_err(|problem| damaged(path, 0, &problem))?;
        if found_side != side || found_first != first {
            return Err(damaged(path, 0, "its header is that of another segment"));
        }
        Ok(Self { bytes, side })
    }

    /// Whole records with their places, up to the first that is not whole.
    fn records(&self) -> impl Iterator<Item = (record::Record, u64)> {
        let mut place = record::HEADER;
        std::iter::from_fn(move || {
            let (record, length) = record::read(&self.bytes[place..], self.side)?;
            let here = place;
            place += length;
            Some((record, here as u64))
        })
    }

    /// Bytes up to the end of the last whole record.
    fn whole(&self) -> u64 {
        let mut place = record::HEADER;
        while let Some((_, length)) = record::read(&self.bytes[place..], self.side) {
            place += length;
        }
        place as u64
    }
}

fn damaged(path: &Path, place: u64, problem: &str) -> Error {
    Error::DamagedLog { path: path.to_owned(), place, problem: problem.to_owned() }
}
