//! Which data set lies at a path, going by the names of files and folders.

use std::path::Path;

use super::{DatasetInfo, REGISTRY, cifar, idx, places};
use crate::error::{Error, Result};

/// Which data set lies at `path`, going by the names of files and folders.
///
/// # Errors
/// When it looks like none of them, or like several; data sets one step below are named.
pub fn recognise(path: &Path) -> Result<&'static DatasetInfo> {
    let at = |path: &Path| REGISTRY.iter().find(|info| (info.is_at)(path));
    if let Some(info) = at(path) {
        return Ok(info);
    }
    if idx::MNIST.is_in(path) {
        let hint = "call the folder `mnist` or `fashion-mnist`, or name the data set and give the folder with \
                    `--data-dir`";
        return Err(Error::bad_data(path, "holds IDX files, which may be MNIST or Fashion-MNIST", hint));
    }
    let archives: Vec<_> =
        [&cifar::CIFAR10, &cifar::CIFAR100].iter().filter_map(|set| set.archive_in(path)).collect();
    let found: Vec<_> = archives
        .iter()
        .cloned()
        .chain(places::children(path))
        .filter_map(|place| at(&place).map(|info| (place, info)))
        .collect();
    // The only set in a folder with its archive is opened by the folder's name too.
    if let Some((_, first)) = found.first().filter(|_| !archives.is_empty())
        && found.iter().all(|(_, info)| info.name == first.name)
    {
        return Ok(*first);
    }
    let below: Vec<String> =
        found.iter().map(|(place, info)| format!("{} ({})", place.display(), info.name)).collect();
    let hint = if below.is_empty() {
        "name a folder with a subfolder of images for each class, CIFAR binary files, IDX files or `train/<class>/` and \
         `test/<class>/`, or an official archive"
            .to_owned()
    } else {
        format!("name one of these: {}", below.join(", "))
    };
    Err(Error::bad_data(path, "is no data set of a known kind", hint))
}
