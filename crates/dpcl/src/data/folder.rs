//! A folder of images, one subfolder a class: `train/<class>/*` and `test/<class>/*` (or `val`), `train` alone, or the
//! class folders directly. Without a half to test on, the last images of each class are kept for that.
//!
//! Opening lists the files; each is decoded when it is asked for, so a set larger than the memory is fine. Classes
//! are numbered in the order of their names, images of a class in the order of theirs. Class sizes may differ.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Dataset, Findings, Fit, Image, ImageSource, Opening, Policy, Split, Statistics, Unreadable,
    decode::{KINDS, check_size, read_extent, read_fitted},
    layout::{Layout, Passed, class_names, images_below},
    padding_for, statistics,
};
use crate::error::{Error, Result};

/// Side of the images when none is asked for.
pub(super) const DEFAULT_SIZE: usize = 32;

/// Sides from here on take the ImageNet policy.
const LARGE: usize = 64;

/// How many training images mean and deviation are measured on at most.
const MOST_MEASURED: usize = 10_000;

/// Of a class's images, one in so many is kept for testing where there is no half for that; of a large class at most
/// so many.
const ONE_IN: usize = 5;
const MOST_HELD_OUT: usize = 50;

/// Image files that are decoded when asked for.
pub(super) struct Files {
    pub(super) size: usize,
    pub(super) fit: Fit,
    /// What file names are told below.
    pub(super) root: PathBuf,
    pub(super) paths: Vec<PathBuf>,
}

impl ImageSource for Files {
    fn image(&self, index: usize) -> Result<Image> {
        read_fitted(&self.paths[index], self.size, self.fit)
    }

    fn path(&self, index: usize) -> Option<&Path> {
        self.paths.get(index).map(PathBuf::as_path)
    }

    /// The path below the set's folder, `train/<class>/<file>` with halves, which is how split files name an image.
    fn file_name(&self, index: usize) -> Option<String> {
        let path = self.paths[index].strip_prefix(&self.root).ok()?;
        let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
        Some(parts.join("/"))
    }

    fn stored_extent(&self, index: usize) -> Option<Result<[usize; 2]>> {
        Some(read_extent(&self.paths[index]))
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
/// When there are no class folders, when the classes of both halves differ, when a class has no images, or when some of
/// the measured images cannot be decoded.
pub fn open(directory: &Path, size: usize, given: Option<Statistics>) -> Result<Dataset> {
    open_as(directory, size, &Opening { statistics: given, ..Opening::default() })
}

/// The same; what `on_bad_image` says holds for the images that are measured.
pub(super) fn open_as(directory: &Path, size: usize, opening: &Opening) -> Result<Dataset> {
    check_size(size)?;
    let Some(Layout { train: train_folder, test: test_folder }) = Layout::of(directory) else {
        return Err(no_data(directory));
    };
    let classes = class_names(&train_folder)?;
    let mut passed = Passed::default();
    let mut of = |half: &Path| {
        passed.beside_classes(half)?;
        list(half, directory, &classes, size, opening.fit, &mut passed)
    };
    let train = match &test_folder {
        Some(test_folder) => {
            same_classes(&classes, &train_folder, test_folder)?;
            of(&train_folder)?
        }
        None => of(&train_folder)?,
    };
    let test = match &test_folder {
        Some(test_folder) => of(test_folder)?,
        None => Split { labels: Vec::new(), images: Arc::clone(&train.images) },
    };
    let mut findings = Findings { notes: passed.notes(), ..Findings::default() };
    if test_folder.is_none() {
        findings.hold_out(held_out(&train.labels, classes.len()));
    }
    let measured = match opening.statistics {
        Some(statistics) => statistics,
        None => {
            let positions = statistics::evenly_spaced(train.labels.len(), MOST_MEASURED);
            let (measured, unreadable) =
                statistics::measure(&*train.images, &positions, opening.on_bad_image)?;
            let name = |position| train.images.file_name(position).unwrap_or_default();
            findings.unreadable = unreadable
                .into_iter()
                .map(|(position, problem)| Unreadable {
                    file: name(position),
                    problem: problem.whole_without_path(),
                })
                .collect();
            measured
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
        findings,
    })
}

fn no_data(directory: &Path) -> Error {
    let below = |place: &str| directory.join(place);
    Error::NoData {
        name: "folder".into(),
        looked: vec![below("train/<class>/*"), below("test/<class>/*"), below("<class>/*")],
        hint: format!(
            "name a folder with a subfolder of images for each class with `--data-dir`, or one with `train/<class>/` and \
             `test/<class>/` (or `val/<class>/`); what is read: {KINDS}"
        ),
    }
}

/// How many images of each class are kept for testing: a share of the smallest class.
fn held_out(labels: &[usize], classes: usize) -> usize {
    let mut counts = vec![0; classes];
    labels.iter().for_each(|&label| counts[label] += 1);
    (counts.into_iter().min().unwrap_or(0) / ONE_IN).clamp(1, MOST_HELD_OUT)
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

/// Whether there is a folder of images at a place.
pub(super) fn is_in(directory: &Path) -> bool {
    Layout::of(directory).is_some()
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

/// The images of the given class folders of a half, class by class; files are named below `root`.
///
/// # Errors
/// When a class folder cannot be listed or has no image.
pub(super) fn list(
    half: &Path,
    root: &Path,
    classes: &[String],
    size: usize,
    fit: Fit,
    passed: &mut Passed,
) -> Result<Split> {
    let mut labels = Vec::new();
    let mut paths = Vec::new();
    for (label, class) in classes.iter().enumerate() {
        let class_folder = half.join(class);
        let found = images_below(&class_folder, passed)?;
        if found.is_empty() {
            let hint = format!("add images of this class ({KINDS}), or remove its folder everywhere");
            return Err(Error::bad_data(class_folder, "has no images", hint));
        }
        paths.extend(found);
        labels.resize(paths.len(), label);
    }
    Ok(Split { labels, images: Arc::new(Files { size, fit, root: root.to_owned(), paths }) })
}

#[cfg(test)]
mod tests {
    use image::RgbImage;

    use super::{super::OnBadImage, *};

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
        assert!(
            error.to_string().ends_with("train/b/2.png: is not a PNG, JPEG, WebP, BMP or GIF image"),
            "{error}"
        );
        std::fs::remove_file(root.path().join("train/b/2.png")).unwrap();
        let error = set.train.images.image(2).unwrap_err();
        assert!(matches!(error, Error::Io { .. }), "{error:?}");
    }

    #[test]
    fn an_unreadable_image_is_found_when_measuring() {
        let root = tempfile::tempdir().unwrap();
        small(root.path());
        std::fs::write(root.path().join("train/b/2.png"), "broken").unwrap();
        let error = open(root.path(), 16, None).unwrap_err();
        let unknown = "is not a PNG, JPEG, WebP, BMP or GIF image";
        let line = |name: &str| format!("\n{}: {unknown}", root.path().join("train").join(name).display());
        assert_eq!(error.to_string(), format!("1 image cannot be read:{}", line("b/2.png")));
        assert!(error.hint().unwrap().contains("--on-bad-image skip"), "{error:?}");
        std::fs::write(root.path().join("train/a/x.jpg"), "broken").unwrap();
        let all = format!("2 images cannot be read:{}{}", line("a/x.jpg"), line("b/2.png"));
        assert_eq!(open(root.path(), 16, None).unwrap_err().to_string(), all);
        let skip = Opening { on_bad_image: OnBadImage::Skip, ..Opening::default() };
        let found = open_as(root.path(), 16, &skip).unwrap().findings.unreadable;
        let files: Vec<&str> = found.iter().map(|found| found.file.as_str()).collect();
        assert_eq!(files, ["train/a/x.jpg", "train/b/2.png"]);
        assert_eq!(found[0].problem, unknown);
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
        assert_eq!(problem(root.path()), "ROOT/train/c: has no images");
        std::fs::remove_dir(root.path().join("train/c")).unwrap();
        assert_eq!(problem(root.path()), "ROOT/train: has no class folder `c`, but ROOT/val has");

        let bare = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(bare.path().join("train")).unwrap();
        std::fs::create_dir_all(bare.path().join("test")).unwrap();
        assert_eq!(problem(bare.path()), "ROOT/train: has no class folders");
    }

    #[test]
    fn without_a_half_to_test_on_the_last_of_each_class_are_kept() {
        let root = tempfile::tempdir().unwrap();
        for (class, count) in [("cat", 12), ("dog", 30)] {
            (0..count)
                .for_each(|number| picture(&root.path().join(format!("{class}/{number:02}.png")), [9; 3]));
        }
        let set = open(root.path(), 16, None).unwrap();
        assert_eq!((set.train.labels.len(), set.test.labels.len()), (42, 0));
        assert_eq!(set.findings.holdout, Some(2));
        assert_eq!(set.train.images.file_name(0).unwrap(), "cat/00.png");
        let [note] = &set.findings.notes[..] else { panic!("{:?}", set.findings) };
        assert!(note.contains("the last 2 of each class are kept for testing"), "{note}");
        picture(&root.path().join("train/elk/1.png"), [9; 3]);
        let alone = open(&root.path().join("train"), 16, None).unwrap();
        assert_eq!((alone.classes.len(), alone.findings.holdout), (1, Some(1)));
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
