//! Image files that stay what they were: replaced by others while a run goes on, or before it goes on, they are noticed.
//!
//! Of files, names, lengths and times are known; of images in memory, a digest.

use std::{path::Path, sync::Arc, time::SystemTime};

use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};

use super::{Dataset, Image, ImageSource, Split};
use crate::error::{Error, Result};

/// Length of a file and when it was written last.
type Known = (u64, Option<SystemTime>);

/// What tells a data set from another without looking into its files, in hexadecimal digits.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Print {
    /// Of the labels and of the names and lengths of the files, or of the images where these are in memory.
    pub content: String,
    /// Of the times at which the files were written last; empty without files.
    pub times: String,
}

/// A source whose files are compared with what they were when it was made.
struct Watched {
    inner: Arc<dyn ImageSource>,
    /// `None` where there was no file to look at: reading it tells why.
    known: Vec<Option<Known>>,
}

impl ImageSource for Watched {
    fn image(&self, index: usize) -> Result<Image> {
        if let (Some(path), Some(known)) = (self.inner.path(index), self.known[index])
            && look(path).is_some_and(|found| found != known)
        {
            let hint = "put the file back as it was, or begin another run with `--name`";
            return Err(Error::bad_data(path, "was changed after the data were opened", hint));
        }
        self.inner.image(index)
    }

    fn file_name(&self, index: usize) -> Option<String> {
        self.inner.file_name(index)
    }

    fn path(&self, index: usize) -> Option<&Path> {
        self.inner.path(index)
    }

    fn digest(&self) -> Option<String> {
        self.inner.digest()
    }
}

fn look(path: &Path) -> Option<Known> {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()))
}

/// The same data set, its files compared from here on with what they are.
pub fn watched(mut dataset: Dataset) -> Dataset {
    for split in [&mut dataset.train, &mut dataset.test] {
        if split.images.path(0).is_some() {
            let known = (0..split.labels.len()).map(|index| look(split.images.path(index)?)).collect();
            split.images = Arc::new(Watched { inner: Arc::clone(&split.images), known });
        }
    }
    dataset
}

/// What tells the data set from another.
pub fn print(dataset: &Dataset) -> Print {
    let (mut content, mut times) = (Md5::new(), None::<Md5>);
    for Split { labels, images } in [&dataset.train, &dataset.test] {
        content.update((labels.len() as u64).to_le_bytes());
        labels.iter().for_each(|&label| content.update((label as u64).to_le_bytes()));
        content.update(images.digest().unwrap_or_default());
        for index in 0..labels.len() {
            let Some(path) = images.path(index) else { break };
            let found = look(path);
            content.update(images.file_name(index).unwrap_or_default());
            content.update(found.map_or(0, |(length, _)| length).to_le_bytes());
            let time = found.and_then(|(_, time)| time?.duration_since(SystemTime::UNIX_EPOCH).ok());
            let time = time.map_or(0, |time| time.as_nanos());
            times.get_or_insert_default().update(time.to_le_bytes());
        }
    }
    Print { content: digits(content), times: times.map(digits).unwrap_or_default() }
}

/// A digest in hexadecimal digits.
pub(super) fn digits(digest: Md5) -> String {
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
