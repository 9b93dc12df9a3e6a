//! What a learner that is taken further knew before, tested beside what it learns: images of other data, which are never
//! learned from.

use std::sync::Arc;

use crate::{
    config::Setup,
    data::{self, Dataset, ImageSource, Joined, Opening, Split, Statistics},
    error::Result,
    stream::{self, Schedule, StreamSettings, Task},
};

/// Opens the further data. Their classes join those of the data set, and those that the stream does not bring make up a
/// task of their own at its head, without samples: it is tested before anything is learned, so that what is forgotten
/// shows.
pub(super) fn open(setup: &Setup, dataset: &mut Dataset, schedule: &mut Schedule) -> Result<Vec<Split>> {
    let opening = Opening {
        size: Some(setup.size),
        fit: setup.fit,
        on_bad_image: setup.on_bad_image,
        // Nothing is learned from them, so nothing is measured.
        statistics: Some(Statistics { mean: setup.mean, std: setup.std }),
    };
    let mut splits = Vec::new();
    let mut before = Vec::new();
    for directory in &setup.test_dirs {
        let other = data::open_as(setup.dataset.as_str(), Some(directory), &opening)?;
        let numbers: Vec<usize> = other.classes.iter().map(|name| number(dataset, name)).collect();
        before.extend(numbers.iter().copied());
        let Split { labels, images } = tested(&other, setup)?;
        let labels = labels.into_iter().map(|label| numbers[label]).collect();
        splits.push(Split { labels, images });
    }
    let learned: Vec<usize> = schedule.tasks.iter().flat_map(|task| task.classes.clone()).collect();
    before.retain(|class| !learned.contains(class));
    before.sort_unstable();
    before.dedup();
    if !before.is_empty() {
        schedule.tasks.insert(0, Task { samples: Vec::new(), classes: before });
    }
    Ok(splits)
}

/// The class of this name, which is new to the data set unless it has it.
fn number(dataset: &mut Dataset, name: &str) -> usize {
    let known = dataset.classes.iter().position(|class| class == name);
    known.unwrap_or_else(|| {
        dataset.classes.push(name.to_owned());
        dataset.classes.len() - 1
    })
}

/// The images that a run on the data would have been tested on.
fn tested(other: &Dataset, setup: &Setup) -> Result<Split> {
    let apart = !other.test.labels.is_empty();
    let holdout = if apart { None } else { other.findings.holdout.or(setup.holdout) };
    let settings = StreamSettings { holdout, ..StreamSettings::default() };
    let parts = stream::cut(&other.train.labels, other.classes.len(), &settings)?;
    let Some(heldout) = parts.heldout() else {
        return Ok(Split { labels: other.test.labels.clone(), images: Arc::clone(&other.test.images) });
    };
    let mut images = Joined::default();
    images.add(Arc::clone(&other.train.images), heldout.iter().copied());
    let labels = heldout.iter().map(|&position| other.train.labels[position]).collect();
    Ok(Split { labels, images: Arc::new(images) as Arc<dyn ImageSource> })
}
