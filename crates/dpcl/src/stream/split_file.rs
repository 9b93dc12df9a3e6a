//! The layout of split files: a JSON list a task, in order of arrival, as published with i-Blurry.
//!
//! An entry names an image (`train/<class>/<number>.png`, counting the class's images from 0001 in official order),
//! its class, and the class's position in the seed's order. Sets whose images are files go by the files' real names.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Scenario, StreamSettings};
use crate::data::Split;

/// One line of a split file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Published files of CIFAR-10 call it `filepath`.
    #[serde(alias = "filepath")]
    pub file_name: String,
    pub klass: String,
    pub label: usize,
}

/// What the file of one task is called; tasks count from 0.
///
/// The published names know disjoint, blurry and i-blurry streams; for the other scenarios the scenario is added to
/// the data set's name, so that different streams never share a name.
pub fn task_file_name(dataset: &str, settings: &StreamSettings, seed: u64, task: usize) -> String {
    let (n, m) = match settings.scenario {
        Scenario::Disjoint | Scenario::Superclass | Scenario::Shuffled => (100.0, 0.0),
        Scenario::Blurry | Scenario::RmBlurry => (0.0, settings.m),
        Scenario::IBlurry => (settings.n, settings.m),
    };
    let stem = match settings.scenario {
        Scenario::Superclass | Scenario::RmBlurry | Scenario::Shuffled => {
            format!("{dataset}-{}", settings.scenario.name())
        }
        _ => dataset.to_owned(),
    };
    let tasks = settings.scenario.tasks(settings.tasks);
    format!("{stem}_split{tasks}_n{n}_m{m}_rand{seed}_task{task}.json")
}

/// What the list of test images is called.
pub fn test_file_name(dataset: &str) -> String {
    format!("{dataset}_val.json")
}

/// What the images of one split are called.
pub(super) struct Roll<'a> {
    folder: &'static str,
    classes: &'a [String],
    split: &'a Split,
    /// Position of each image among those of its class, from 1.
    numbers: Vec<usize>,
    /// Positions of each class's images.
    members: Vec<Vec<usize>>,
    /// Positions by class folder and file, if the images are files.
    files: HashMap<String, usize>,
}

/// Why an entry names no image.
pub(super) enum Missing {
    /// The file name does not end in a number.
    NoNumber,
    /// The class has only that many images.
    OutOfRange(usize),
    /// The set's images are files, and none is called that.
    NoSuchFile,
}

impl<'a> Roll<'a> {
    /// `folder` is what names of this split begin with: `train` or `test`.
    pub(super) fn new(folder: &'static str, classes: &'a [String], split: &'a Split) -> Self {
        let mut members = vec![Vec::new(); classes.len()];
        let mut numbers = Vec::with_capacity(split.labels.len());
        let mut files = HashMap::new();
        for (position, &class) in split.labels.iter().enumerate() {
            members[class].push(position);
            numbers.push(members[class].len());
            if let Some(name) = split.images.file_name(position) {
                files.insert(tail(&name), position);
            }
        }
        Self { folder, classes, split, numbers, members, files }
    }

    /// The name of the image at `position`.
    pub(super) fn name(&self, position: usize) -> String {
        self.split.images.file_name(position).unwrap_or_else(|| {
            let class = &self.classes[self.split.labels[position]];
            format!("{}/{class}/{:04}.png", self.folder, self.numbers[position])
        })
    }

    /// The position of the image that an entry of class `class` names.
    pub(super) fn find(&self, class: usize, name: &str) -> Result<usize, Missing> {
        if !self.files.is_empty() {
            return self.files.get(&tail(name)).copied().ok_or(Missing::NoSuchFile);
        }
        let file = name.rsplit('/').next().unwrap_or(name);
        let stem = file.split('.').next().unwrap_or(file);
        let number: usize = stem.parse().map_err(|_| Missing::NoNumber)?;
        let members = &self.members[class];
        let index = number.checked_sub(1).filter(|&index| index < members.len());
        index.map(|index| members[index]).ok_or(Missing::OutOfRange(members.len()))
    }
}

/// Class folder and file of a path, which are the same wherever the set lies.
fn tail(name: &str) -> String {
    let parts: Vec<&str> = name.split(['/', '\\']).collect();
    parts[parts.len().saturating_sub(2)..].join("/")
}
