//! CIFAR-10 and CIFAR-100 in their official binary layout, from a folder or straight from the official archive.
//!
//! A copy may hold fewer records than the official set. Of CIFAR-10's five training files the first few will do, in
//! order. Nothing is ever unpacked to disk.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader, Read},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use super::{
    Dataset, Findings, PUBLISHED_PADDING, Packed, Policy, Split, Statistics, places::Wanted,
    unpacked::Unpacked,
};
use crate::error::{Error, Result};

mod names;
mod records;

use records::{Records, SIZE};

/// What distinguishes the two sets.
pub(super) struct Format {
    name: &'static str,
    folders: &'static [&'static str],
    archive: &'static str,
    train: &'static [&'static str],
    test: &'static str,
    names_file: &'static str,
    classes: &'static [&'static str],
    superclass: Option<&'static [usize]>,
    statistics: Statistics,
}

/// CIFAR-10: one label byte a record.
pub(super) static CIFAR10: Format = Format {
    name: "cifar10",
    folders: &["cifar-10-batches-bin", "cifar-10-binary", "cifar10"],
    archive: "cifar-10-binary.tar.gz",
    train: &[
        "data_batch_1.bin",
        "data_batch_2.bin",
        "data_batch_3.bin",
        "data_batch_4.bin",
        "data_batch_5.bin",
    ],
    test: "test_batch.bin",
    names_file: "batches.meta.txt",
    classes: &names::CIFAR10,
    superclass: None,
    statistics: Statistics { mean: [0.4914, 0.4822, 0.4465], std: [0.2023, 0.1994, 0.2010] },
};

/// CIFAR-100: a coarse and a fine label byte a record.
pub(super) static CIFAR100: Format = Format {
    name: "cifar100",
    folders: &["cifar-100-binary", "cifar100"],
    archive: "cifar-100-binary.tar.gz",
    train: &["train.bin"],
    test: "test.bin",
    names_file: "fine_label_names.txt",
    classes: &names::CIFAR100,
    superclass: Some(&names::SUPERCLASS),
    statistics: Statistics { mean: [0.5071, 0.4867, 0.4408], std: [0.2675, 0.2565, 0.2761] },
};

/// More than ten times what the official archives hold; what goes on longer is made to fill the memory.
const LONGEST_ARCHIVE: u64 = 2 << 30;

/// A names file is a few hundred bytes; more than this is something else.
const LONGEST_NAMES_FILE: u64 = 64 * 1024;

impl Format {
    fn label_bytes(&self) -> usize {
        if self.superclass.is_some() { 2 } else { 1 }
    }

    fn binaries(&self) -> impl Iterator<Item = &'static str> {
        self.train.iter().copied().chain([self.test])
    }

    /// Whether a folder has any of this set's binary files.
    pub(super) fn is_in(&self, folder: &Path) -> bool {
        self.binaries().any(|file| folder.join(file).is_file())
    }

    /// Whether a file is this set's official archive, going by its name.
    pub(super) fn is_archive(&self, file: &Path) -> bool {
        file.is_file() && file.file_name().is_some_and(|name| name == self.archive)
    }

    /// This set's official archive in a folder, where `data fetch` puts it.
    pub(super) fn archive_in(&self, folder: &Path) -> Option<PathBuf> {
        Some(folder.join(self.archive)).filter(|path| path.is_file())
    }

    fn damaged(&self, path: &Path, problem: String) -> Error {
        let hint = format!("delete it and get it again with `dpcl data fetch {}`", self.name);
        Error::bad_data(path, problem, hint)
    }

    fn unreadable(&self, path: &Path, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
                self.damaged(path, format!("is damaged or incomplete ({error})"))
            }
            _ => Error::io("read", path, error),
        }
    }

    fn other_layout_hint(&self) -> String {
        format!(
            "check that the file is of {} in the binary layout (not of its sister set, nor the Python or Matlab \
             version), or get it again with `dpcl data fetch {0}`",
            self.name
        )
    }
}

/// Opens the set from its folder, that folder's parent, any folder with its files, or its archive.
///
/// # Errors
/// When it is not there, incomplete or damaged.
pub(super) fn open(format: &Format, directory: &Path) -> Result<Dataset> {
    let wanted = Wanted {
        name: format.name,
        folders: format.folders,
        archive: Some(format.archive),
        holds: &|folder| format.is_in(folder),
        any_child: true,
        fetchable: true,
    };
    let place = wanted.find(directory)?;
    let files = if place.is_file() { from_archive(format, &place)? } else { from_folder(format, &place)? };
    assemble(format, &place, files)
}

/// The files of a set that were found, by name.
#[derive(Default)]
struct Files {
    binaries: BTreeMap<&'static str, Records>,
    names: Option<(PathBuf, String)>,
}

fn from_folder(format: &Format, folder: &Path) -> Result<Files> {
    let mut files = Files::default();
    for name in format.binaries() {
        let path = folder.join(name);
        if path.is_file() {
            let file = File::open(&path).map_err(|error| Error::io("open", &path, error))?;
            let length = file.metadata().map_err(|error| Error::io("read", &path, error))?.len();
            let mut reader = BufReader::with_capacity(1 << 20, file);
            files.binaries.insert(name, Records::read(&mut reader, &path, length, format)?);
        }
    }
    let path = folder.join(format.names_file);
    if path.is_file() {
        let mut file = File::open(&path).map_err(|error| Error::io("open", &path, error))?;
        let text = read_names(format, &path, &mut file)?;
        files.names = Some((path, text));
    }
    Ok(files)
}

fn from_archive(format: &Format, path: &Path) -> Result<Files> {
    let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
    let unreadable = |error| format.unreadable(path, error);
    let packed = file.metadata().map_err(unreadable)?.len();
    let unpacked = Unpacked::of(BufReader::with_capacity(1 << 20, file), packed).take(LONGEST_ARCHIVE);
    let mut archive = tar::Archive::new(unpacked);
    let mut files = Files::default();
    for entry in archive.entries().map_err(unreadable)? {
        let mut entry = entry.map_err(unreadable)?;
        let inside = entry.path().map_err(unreadable)?.into_owned();
        if inside.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
            let problem = format!("has an entry that leads outside it, {}", inside.display());
            return Err(format.damaged(path, problem));
        }
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = inside.file_name().unwrap_or_default();
        let shown = path.join(&inside);
        if let Some(binary) = format.binaries().find(|binary| name == *binary) {
            // Photographs hardly pack: what an entry says beyond that is no reason to set memory aside.
            let length = entry.size().min(packed.saturating_mul(2));
            files.binaries.insert(binary, Records::read(&mut entry, &shown, length, format)?);
        } else if name == format.names_file {
            files.names = Some((shown.clone(), read_names(format, &shown, &mut entry)?));
        }
    }
    // Reading on to the end makes the decompressor compare its checksum.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(unreadable)?;
    Ok(files)
}

fn read_names(format: &Format, path: &Path, reader: &mut dyn Read) -> Result<String> {
    let mut bytes = Vec::new();
    reader
        .take(LONGEST_NAMES_FILE)
        .read_to_end(&mut bytes)
        .map_err(|error| format.unreadable(path, error))?;
    String::from_utf8(bytes).map_err(|_| format.damaged(path, "is not text".into()))
}

fn assemble(format: &Format, place: &Path, mut files: Files) -> Result<Dataset> {
    let missing = |file: &str| {
        let hint = format!("get the whole set with `dpcl data fetch {}`", format.name);
        Error::bad_data(place, format!("has no {file}"), hint)
    };
    let present = format.train.iter().rposition(|file| files.binaries.contains_key(file));
    let last = present.ok_or_else(|| missing(format.train[0]))?;
    let mut train = Records::default();
    for file in &format.train[..=last] {
        train.append(files.binaries.remove(file).ok_or_else(|| missing(file))?);
    }
    let test = files.binaries.remove(format.test).ok_or_else(|| missing(format.test))?;
    Ok(Dataset {
        name: format.name.to_owned(),
        classes: class_names(format, files.names)?,
        superclasses: superclasses(format, place, &[&train, &test])?,
        size: SIZE,
        mean: format.statistics.mean,
        std: format.statistics.std,
        policy: Policy::Cifar10,
        padding: PUBLISHED_PADDING,
        train: split(train),
        test: split(test),
        findings: Findings::default(),
    })
}

fn class_names(format: &Format, file: Option<(PathBuf, String)>) -> Result<Vec<String>> {
    let Some((path, text)) = file else {
        return Ok(format.classes.iter().map(ToString::to_string).collect());
    };
    let names: Vec<String> =
        text.lines().map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned).collect();
    if names.len() != format.classes.len() {
        let problem = format!("names {} classes, not {}", names.len(), format.classes.len());
        let hint = "delete it to use the official names, or put one name a line, in label order";
        return Err(Error::bad_data(path, problem, hint));
    }
    Ok(names)
}

/// The superclass of each class: as the records say, and for classes without records as published.
fn superclasses(format: &Format, place: &Path, parts: &[&Records]) -> Result<Option<Vec<usize>>> {
    let Some(published) = format.superclass else {
        return Ok(None);
    };
    let mut seen = vec![None; published.len()];
    for records in parts {
        for (&class, &coarse) in records.labels.iter().zip(&records.coarse) {
            let known = *seen[class].get_or_insert(coarse);
            if known != coarse {
                let problem = format!("fine label {class} comes with the coarse labels {known} and {coarse}");
                return Err(Error::bad_data(place, problem, format.other_layout_hint()));
            }
        }
    }
    Ok(Some(seen.iter().zip(published).map(|(seen, &published)| seen.unwrap_or(published)).collect()))
}

fn split(records: Records) -> Split {
    Split { labels: records.labels, images: Arc::new(Packed::colour(SIZE, records.pixels)) }
}

#[cfg(test)]
mod tests;
