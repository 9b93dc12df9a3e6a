//! A folder of images, one subfolder a class: `train/<class>/*` and `test/<class>/*` (or `val/<class>/*`).
//!
//! Opening lists the files; each is decoded when it is asked for, so a set larger than the memory is fine. Classes
//! are numbered in the order of their names, images of a class in the order of theirs. Class sizes may differ.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Dataset, Image, ImageSource, OnBadImage, Policy, Split, Statistics,
    decode::{check_size, read_image},
    padding_for, statistics,
};
use crate::error::{Error, Result};

/// Side of the images when none is asked for.
pub(super) const DEFAULT_SIZE: usize = 32;

/// Sides from here on take the ImageNet policy.
const LARGE: usize = 64;

/// How many training images mean and deviation are measured on at most.
const MOST_MEASURED: usize = 10_000;

/// Image files that are decoded when asked for.
pub(super) struct Files {
    pub(super) size: usize,
    pub(super) paths: Vec<PathBuf>,
}

impl ImageSource for Files {
    fn image(&self, index: usize) -> Result<Image> {
        read_image(&self.paths[index], self.size)
    }

    fn path(&self, index: usize) -> Option<&Path> {
        self.paths.get(index).map(PathBuf::as_path)
    }

    /// The last three parts of the path, `train/<class>/<file>`, which is how split files name an image.
    fn file_name(&self, index: usize) -> Option<String> {
        let parts: Vec<_> =
            self.paths[index].iter().rev().take(3).map(|part| part.to_string_lossy()).collect();
        (parts.len() == 3).then(|| parts.into_iter().rev().collect::<Vec<_>>().join("/"))
    }
}

/// The AutoAugment policy for images of this side.
pub(super) fn policy_for(size: usize) -> Policy {
    if size < LARGE { Policy::Cifar10 } else { Policy::Imagenet }
}

/// Opens a folder; every image is resized directly to `size` × `size`.
///
/// Mean and deviation are measured on the training images unless given: on all of them up to 10,000, on 10,000
/// evenly spaced ones of a larger set.
///
/// # Errors
/// When there is no `train` or no `test` or `val`, when their classes differ, when a class has no images, or when one
/// of the measured images cannot be decoded.
pub fn open(directory: &Path, size: usize, given: Option<Statistics>) -> Result<Dataset> {
    open_with(directory, size, given, OnBadImage::Fail)
}

/// The same; what `on_bad_image` says holds for the images that are measured.
pub(super) fn open_with(
    directory: &Path,
    size: usize,
    given: Option<Statistics>,
    on_bad_image: OnBadImage,
) -> Result<Dataset> {
    check_size(size)?;
    let train_folder = directory.join("train");
    let test_folder = test_folder(directory);
    if !train_folder.is_dir() || !test_folder.is_dir() {
        return Err(Error::NoData {
            name: "folder".into(),
            looked: vec![directory.join("train/<class>/*"), directory.join("test/<class>/*")],
            hint:
                "name a folder with `train/<class>/` and `test/<class>/` (or `val/<class>/`) subfolders with \
                   `--data-dir`"
                    .into(),
        });
    }
    let classes = class_names(&train_folder)?;
    same_classes(&classes, &train_folder, &test_folder)?;
    let train = list(&train_folder, &classes, size)?;
    let test = list(&test_folder, &classes, size)?;
    let measured = match given {
        Some(statistics) => statistics,
        None => {
            let positions = statistics::evenly_spaced(train.labels.len(), MOST_MEASURED);
            statistics::measure(&*train.images, &positions, on_bad_image)?
        }
    };
    Ok(Dataset {
        name: name_of(directory),
        classes,
        superclasses: None,
        size,
        mean: measured.mean,
        std: measured.std,
        policy: policy_for(size),
        padding: padding_for(size),
        train,
        test,
    })
}

/// What records call the set: the folder's own name tells it from other folders. Split files and pictures are named
/// after it, so it has no character that a file name cannot have.
fn name_of(directory: &Path) -> String {
    let whole = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    match whole.file_name() {
        Some(name) => format!("folder-{}", name.to_string_lossy()),
        None => "folder".to_owned(),
    }
}

/// Whether a folder has the two halves of an image folder.
pub(super) fn is_in(directory: &Path) -> bool {
    directory.join("train").is_dir() && test_folder(directory).is_dir()
}

fn test_folder(directory: &Path) -> PathBuf {
    ["test", "val"]
        .map(|name| directory.join(name))
        .into_iter()
        .find(|path| path.is_dir())
        .unwrap_or_default()
}

/// Names of the subfolders, sorted; hidden ones do not count.
fn class_names(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for (name, path) in entries(folder)? {
        if path.is_dir() {
            names.push(name);
        }
    }
    if names.is_empty() {
        let hint = "put the images of each class into a subfolder named after the class";
        return Err(Error::bad_data(folder, "has no class folders", hint));
    }
    Ok(names)
}

fn same_classes(classes: &[String], train: &Path, test: &Path) -> Result<()> {
    let tested = class_names(test)?;
    let complain = |folder: &Path, class: &String, other: &Path| {
        let problem = format!("has no class folder `{class}`, but {} has", other.display());
        Err(Error::bad_data(
            folder,
            problem,
            "both halves need the same classes: add the folder, or remove its twin",
        ))
    };
    if let Some(class) = classes.iter().find(|class| !tested.contains(class)) {
        return complain(test, class, train);
    }
    if let Some(class) = tested.iter().find(|class| !classes.contains(class)) {
        return complain(train, class, test);
    }
    Ok(())
}

/// The images of the given class folders, class by class.
///
/// # Errors
/// When a class folder cannot be listed or has no PNG or JPEG file.
pub(super) fn list(folder: &Path, classes: &[String], size: usize) -> Result<Split> {
    let mut labels = Vec::new();
    let mut paths = Vec::new();
    for (label, class) in classes.iter().enumerate() {
        let class_folder = folder.join(class);
        let before = paths.len();
        paths.extend(entries(&class_folder)?.into_iter().map(|(_, path)| path).filter(|path| is_image(path)));
        if paths.len() == before {
            let hint = "add images of this class (.png, .jpg, .jpeg), or remove its folder everywhere";
            return Err(Error::bad_data(class_folder, "has no PNG or JPEG images", hint));
        }
        labels.resize(paths.len(), label);
    }
    Ok(Split { labels, images: Arc::new(Files { size, paths }) })
}

/// Names and paths of everything in a folder that is not hidden, sorted by name.
pub(super) fn entries(folder: &Path) -> Result<Vec<(String, PathBuf)>> {
    let failed = |error| Error::io("list", folder, error);
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_str()
            .map(str::to_owned)
            .ok_or_else(|| Error::bad_data(&path, "has a name that is not valid Unicode", "rename it"))?;
        if !name.starts_with('.') {
            found.push((name, path));
        }
    }
    found.sort();
    Ok(found)
}

pub(super) fn is_image(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_ascii_lowercase();
    ["png", "jpg", "jpeg"].iter().any(|known| extension == *known)
}

#[cfg(test)]
mod tests {
    use image::RgbImage;

    use super::*;

    fn picture(path: &Path, colour: [u8; 3]) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        RgbImage::from_pixel(12, 9, image::Rgb(colour)).save(path).unwrap();
    }

    fn small(root: &Path) {
        picture(&root.join("train/b/2.png"), [0, 255, 0]);
        picture(&root.join("train/b/1.png"), [255, 0, 0]);
        picture(&root.join("train/a/x.jpg"), [10, 10, 10]);
        picture(&root.join("val/a/x.PNG"), [1, 2, 3]);
        picture(&root.join("val/b/x.png"), [4, 5, 6]);
        std::fs::write(root.join("train/a/notes.txt"), "not an image").unwrap();
        std::fs::write(root.join("train/a/.hidden.png"), "not an image").unwrap();
    }

    fn problem(root: &Path) -> String {
        match open(root, 16, None) {
            Err(error @ Error::BadData { .. }) => error.to_string().replace(root.to_str().unwrap(), "ROOT"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn classes_and_images_come_in_the_order_of_their_names() {
        let root = tempfile::tempdir().unwrap();
        small(root.path());
        let set = open(root.path(), 16, None).unwrap();
        assert_eq!(set.classes, ["a", "b"]);
        assert_eq!(set.train.labels, [0, 1, 1]);
        assert_eq!(set.test.labels, [0, 1]);
        let image = set.train.images.image(1).unwrap();
        assert_eq!((image.height, image.width, image.pixels.len()), (16, 16, 768));
        assert_eq!(image.pixels[..3], [255, 0, 0]);
        assert_eq!(set.test.images.image(0).unwrap().pixels[..3], [1, 2, 3]);
        // Red is 10, 255 and 0 on a third of the pixels each.
        assert!((set.mean[0] - 265.0 / 3.0 / 255.0).abs() < 1e-6, "{:?}", set.mean);
        assert_eq!((set.size, set.padding, set.policy), (16, 2, Policy::Cifar10));
        let own = root.path().canonicalize().unwrap();
        assert_eq!(set.name, format!("folder-{}", own.file_name().unwrap().to_str().unwrap()));
        let given = Statistics { mean: [0.1; 3], std: [0.2; 3] };
        let set = open(root.path(), 64, Some(given)).unwrap();
        assert_eq!((set.mean, set.std, set.policy), ([0.1; 3], [0.2; 3], Policy::Imagenet));
    }

    #[test]
    fn images_are_not_read_before_they_are_asked_for() {
        let root = tempfile::tempdir().unwrap();
        small(root.path());
        let given = Statistics { mean: [0.0; 3], std: [1.0; 3] };
        std::fs::write(root.path().join("train/b/2.png"), "broken").unwrap();
        let set = open(root.path(), 16, Some(given)).unwrap();
        assert!(set.train.images.image(1).is_ok());
        let error = set.train.images.image(2).unwrap_err();
        assert!(error.to_string().ends_with("train/b/2.png: is neither a PNG nor a JPEG image"), "{error}");
        std::fs::remove_file(root.path().join("train/b/2.png")).unwrap();
        let error = set.train.images.image(2).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error:?}");
    }

    #[test]
    fn an_unreadable_image_is_found_when_measuring() {
        let root = tempfile::tempdir().unwrap();
        small(root.path());
        std::fs::write(root.path().join("train/b/2.png"), "broken").unwrap();
        assert_eq!(problem(root.path()), "ROOT/train/b/2.png: is neither a PNG nor a JPEG image");
    }

    #[test]
    fn missing_halves_classes_and_images_are_named() {
        let root = tempfile::tempdir().unwrap();
        let error = open(root.path(), 16, None).unwrap_err();
        assert!(error.hint().unwrap().contains("train/<class>/"), "{error:?}");

        small(root.path());
        std::fs::create_dir(root.path().join("train/c")).unwrap();
        assert_eq!(problem(root.path()), "ROOT/val: has no class folder `c`, but ROOT/train has");
        std::fs::create_dir(root.path().join("val/c")).unwrap();
        assert_eq!(problem(root.path()), "ROOT/train/c: has no PNG or JPEG images");
        std::fs::remove_dir(root.path().join("train/c")).unwrap();
        assert_eq!(problem(root.path()), "ROOT/train: has no class folder `c`, but ROOT/val has");

        let bare = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(bare.path().join("train")).unwrap();
        std::fs::create_dir_all(bare.path().join("test")).unwrap();
        assert_eq!(problem(bare.path()), "ROOT/train: has no class folders");
    }

    #[test]
    fn sizes_that_cannot_be_served_are_refused() {
        let error = open(Path::new("anywhere"), 0, None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "configuration key `size`: is 0; images can be served from 8 to 2048 pixels"
        );
    }
}
