//! Writes a stream out as split files, for other programs and for running it again as it is.

use std::path::{Path, PathBuf};

use super::split_file::{Entry, Roll, task_file_name, test_file_name};
use super::{Parts, Schedule, StreamSettings};
use crate::data::Dataset;
use crate::disk::write_whole;
use crate::error::{Error, Result};

/// Writes one file a task and the list of test images, and returns their paths.
///
/// The test list holds the held-out images if there are any, else the official ones, of every class of the data set. It
/// serves every seed and cut, so its labels are the data set's own class numbers. A file that is there already is kept
/// if it says the same; if one does not, nothing is written.
///
/// # Errors
/// When a file cannot be written, or another one is in its place.
pub fn export(
    folder: &Path,
    dataset: &Dataset,
    parts: &Parts,
    schedule: &Schedule,
    settings: &StreamSettings,
    seed: u64,
) -> Result<Vec<PathBuf>> {
    let mut labels = vec![None; dataset.classes.len()];
    for (label, &class) in schedule.class_order.iter().enumerate() {
        labels[class] = Some(label);
    }
    let train = Roll::new("train", &dataset.classes, &dataset.train);
    let mut files = Vec::new();
    for (task, content) in schedule.tasks.iter().enumerate() {
        let entries = content.samples.iter().map(|&position| {
            let class = dataset.train.labels[position];
            let label = labels[class].expect("a schedule's class order names every class of its samples");
            Entry { file_name: train.name(position), klass: dataset.classes[class].clone(), label }
        });
        files.push((folder.join(task_file_name(&dataset.name, settings, seed, task)), bytes(entries)));
    }
    files.push((folder.join(test_file_name(&dataset.name)), test_list(dataset, parts, &train)));

    let mut missing = Vec::with_capacity(files.len());
    for (path, bytes) in &files {
        missing.push(is_missing(path, bytes)?);
    }
    std::fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
    for ((path, bytes), _) in files.iter().zip(missing).filter(|(_, missing)| *missing) {
        write_whole(path, bytes)?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

fn test_list(dataset: &Dataset, parts: &Parts, train: &Roll<'_>) -> Vec<u8> {
    let entry = |roll: &Roll<'_>, position: usize, class: usize| Entry {
        file_name: roll.name(position),
        klass: dataset.classes[class].clone(),
        label: class,
    };
    match parts.heldout() {
        Some(heldout) => {
            bytes(heldout.iter().map(|&position| entry(train, position, dataset.train.labels[position])))
        }
        None => {
            let test = Roll::new("test", &dataset.classes, &dataset.test);
            let classes = dataset.test.labels.iter().enumerate();
            bytes(classes.map(|(position, &class)| entry(&test, position, class)))
        }
    }
}

fn bytes(entries: impl Iterator<Item = Entry>) -> Vec<u8> {
    let entries: Vec<Entry> = entries.collect();
    serde_json::to_vec(&entries).expect("entries are plain strings and numbers")
}

/// Whether the file is still to be written; one that says something else is refused.
fn is_missing(path: &Path, bytes: &[u8]) -> Result<bool> {
    match std::fs::read(path) {
        Ok(present) if present == bytes => Ok(false),
        Ok(_) => {
            let problem = "there is a file of this name with other content";
            Err(Error::bad_data(path, problem, "export to another folder, or remove the file first"))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(Error::io("read", path, error)),
    }
}
