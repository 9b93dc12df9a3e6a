//! Writes a stream out as split files, for other programs and for running it again as it is.

use std::path::{Path, PathBuf};

use super::split_file::{Entry, Roll, task_file_name, test_file_name};
use super::{Parts, Schedule, StreamSettings};
use crate::data::Dataset;
use crate::error::{Error, Result};

/// Writes one file a task and the list of test images, and returns their paths.
///
/// The test list holds the held-out images if there are any, else the official ones, of the classes in the stream. It
/// serves every seed, so its labels are the data set's own class numbers. A file that is there already is kept if it
/// says the same and never replaced if it does not.
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
    std::fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
    let mut labels = vec![None; dataset.classes.len()];
    for (label, &class) in schedule.class_order.iter().enumerate() {
        labels[class] = Some(label);
    }
    let train = Roll::new("train", &dataset.classes, &dataset.train);
    let mut paths = Vec::new();
    for (task, content) in schedule.tasks.iter().enumerate() {
        let entries = content.samples.iter().map(|&position| {
            let class = dataset.train.labels[position];
            let label = labels[class].expect("a schedule's class order names every class of its samples");
            Entry { file_name: train.name(position), klass: dataset.classes[class].clone(), label }
        });
        paths.push(write(folder.join(task_file_name(&dataset.name, settings, seed, task)), entries)?);
    }

    let in_stream = |class: usize| labels[class].is_some();
    let path = folder.join(test_file_name(&dataset.name));
    let list = |roll: Roll<'_>, positions: &mut dyn Iterator<Item = usize>, classes: &[usize]| {
        let entries = positions.filter(|&position| in_stream(classes[position])).map(|position| {
            let class = classes[position];
            Entry { file_name: roll.name(position), klass: dataset.classes[class].clone(), label: class }
        });
        write(path, entries)
    };
    paths.push(match parts.heldout() {
        Some(heldout) => list(train, &mut heldout.iter().copied(), &dataset.train.labels)?,
        None => {
            let test = Roll::new("test", &dataset.classes, &dataset.test);
            list(test, &mut (0..dataset.test.labels.len()), &dataset.test.labels)?
        }
    });
    Ok(paths)
}

fn write(path: PathBuf, entries: impl Iterator<Item = Entry>) -> Result<PathBuf> {
    let entries: Vec<Entry> = entries.collect();
    let bytes = serde_json::to_vec(&entries).expect("entries are plain strings and numbers");
    match std::fs::read(&path) {
        Ok(present) if present == bytes => return Ok(path),
        Ok(_) => {
            let problem = "there is a file of this name with other content";
            return Err(Error::bad_data(path, problem, "export to another folder, or remove the file first"));
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(Error::io("read", path, error)),
    }
    std::fs::write(&path, bytes).map_err(|error| Error::io("write", &path, error))?;
    Ok(path)
}
