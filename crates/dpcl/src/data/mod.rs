//! Where images come from.
//!
//! A [`Dataset`] is two lists of labelled images and the facts needed to feed them to a network. Images stay
//! bytes; whoever needs floats makes them. This stage knows nothing of tasks, order or learning.
//!
//! [`list`] names the data sets there are and [`open`] opens one. A new one is a file here and a line in `REGISTRY`.

use std::{fmt, path::Path, sync::Arc};

use crate::{
    config::choices,
    error::{Error, Result},
};

mod ahead;
mod bad_image;
mod cifar;
mod decode;
mod download;
mod embedded;
mod fetch;
mod files;
mod findings;
mod fit;
mod folder;
mod idx;
mod imagenet;
mod inspect;
mod joined;
mod layout;
mod packed;
mod picture;
mod pictures;
mod places;
mod recognise;
mod sheet;
mod statistics;
mod unpacked;
mod watched;

pub use ahead::Ahead;
pub use bad_image::OnBadImage;
pub use decode::{BadBytes, decode_image, read_fitted, read_image};
pub use fetch::{MIRROR_VARIABLE, Progress, fetch, fetch_from};
pub use files::{image_files, open_files};
pub use findings::{Findings, Unreadable};
pub use fit::Fit;
pub use folder::open as open_folder;
pub use imagenet::WORDNET_IDS;
pub use inspect::{ClassCount, Inspection, inspect, png, tile};
pub use joined::Joined;
pub use packed::Packed;
pub use picture::{FloatImage, Picture};
pub use pictures::{Pictures, pictures};
pub use recognise::recognise;
pub use sheet::{contact_sheet, named_rows};
pub use statistics::Statistics;
pub use watched::Print;
pub(crate) use watched::{print, watched};

/// One RGB image as bytes, height × width × 3, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// `height * width * 3` bytes: red, green, blue of each pixel.
    pub pixels: Arc<[u8]>,
}

/// Images that can be fetched by position, from memory or by decoding a file when asked.
pub trait ImageSource: Send + Sync {
    /// The image at `index`, already of the data set's size.
    ///
    /// # Errors
    /// When its file has gone or cannot be decoded.
    fn image(&self, index: usize) -> Result<Image>;

    /// Where the image lies inside its set, as `<split>/<class>/<file>`, if every image is a file of its own.
    fn file_name(&self, _index: usize) -> Option<String> {
        None
    }

    /// Height and width of the picture before it was made to the data set's size, if every image is a file of its own; only
    /// the file's beginning is read.
    fn stored_extent(&self, _index: usize) -> Option<Result<[usize; 2]>> {
        None
    }

    /// The file of the image, if every image is a file of its own.
    fn path(&self, _index: usize) -> Option<&Path> {
        None
    }

    /// A digest of all images, if they are in memory.
    fn digest(&self) -> Option<String> {
        None
    }
}

/// Labelled images: `labels[i]` is the class of `images.image(i)`.
pub struct Split {
    /// Class of each image, an index into [`Dataset::classes`].
    pub labels: Vec<usize>,
    /// The images.
    pub images: Arc<dyn ImageSource>,
}

/// Which AutoAugment policy suits a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// No AutoAugment.
    None,
    /// The policy found on CIFAR-10, for small images.
    Cifar10,
    /// The policy found on ImageNet.
    Imagenet,
}

choices!(Policy: None = "none", Cifar10 = "cifar10", Imagenet = "imagenet");

/// Padding before a random crop of the sets whose published results were had with it, whatever the image size.
const PUBLISHED_PADDING: usize = 4;

/// Padding before a random crop of any other set.
fn padding_for(size: usize) -> usize {
    size / 8
}

/// A data set in its official order.
pub struct Dataset {
    /// Lower-case name as used in configurations and records.
    pub name: String,
    /// Class names; a label indexes this list.
    pub classes: Vec<String>,
    /// For CIFAR-100: the superclass index of each class.
    pub superclasses: Option<Vec<usize>>,
    /// Height and width of every image.
    pub size: usize,
    /// Per-channel mean of the training images, scaled to 0..1.
    pub mean: [f32; 3],
    /// Per-channel standard deviation of the training images, scaled to 0..1.
    pub std: [f32; 3],
    /// AutoAugment policy used unless the configuration names another.
    pub policy: Policy,
    /// Pixels of padding before a random crop, unless the configuration names another number.
    pub padding: usize,
    /// Training images.
    pub train: Split,
    /// Test images; none where the set has no half to test on.
    pub test: Split,
    /// What opening it found that people should know.
    pub findings: Findings,
}

/// How a data set is opened.
#[derive(Clone, Debug, Default)]
pub struct Opening {
    /// The side of the images served, for sets that can be resized; the set's own unless given.
    pub size: Option<usize>,
    /// What happens to images that are not square, for sets whose images are files.
    pub fit: Fit,
    /// What to do about images that cannot be read where mean and deviation are measured.
    pub on_bad_image: OnBadImage,
    /// Mean and deviation, where they need not be measured.
    pub statistics: Option<Statistics>,
}

impl fmt::Debug for Split {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "Split of {} images", self.labels.len())
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter
            .debug_struct("Dataset")
            .field("name", &self.name)
            .field("classes", &self.classes.len())
            .field("size", &self.size)
            .field("train", &self.train)
            .field("test", &self.test)
            .finish_non_exhaustive()
    }
}

/// Where a run on a data set starts from unless configured; for published sets, what they were published with.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Protocol {
    /// Images of a training batch.
    pub batch: usize,
    /// Training steps per stream sample.
    pub updates: f64,
    /// Memory slots.
    pub memory: usize,
    /// Samples between evaluations.
    pub eval_period: u64,
    /// Training steps between measurements of the whole memory, for memories and rates that ask for them.
    pub imp_period: u64,
}

const USUAL: Protocol = Protocol { batch: 16, updates: 3.0, memory: 2000, eval_period: 500, imp_period: 1 };

/// What is known of a data set before it is opened.
#[derive(Clone, Debug, serde::Serialize)]
pub struct DatasetInfo {
    /// Name in configurations, records and on the command line.
    pub name: &'static str,
    /// One line on what it shows.
    pub about: &'static str,
    /// Number of classes, where it is fixed.
    pub classes: Option<usize>,
    /// Training images of the official set.
    pub train: Option<usize>,
    /// Test images of the official set.
    pub test: Option<usize>,
    /// Height and width of the images unless another size is asked for.
    pub size: usize,
    /// Whether another size may be asked for.
    pub any_size: bool,
    /// Whether `fetch` can download it.
    pub fetchable: bool,
    /// Whether it is looked for in a directory; if not it is built in.
    pub needs_directory: bool,
    /// What a run on it starts from unless configured.
    pub protocol: Protocol,
    #[serde(skip)]
    open: fn(&Path, usize, &Opening) -> Result<Dataset>,
    #[serde(skip)]
    is_at: fn(&Path) -> bool,
}

const BUILT_IN: DatasetInfo = DatasetInfo {
    name: embedded::NAME,
    about: "clothes, 250 training and 50 test images of each of 10 classes of Fashion-MNIST, built in",
    classes: Some(10),
    train: Some(2_500),
    test: Some(500),
    size: idx::SIZE,
    any_size: false,
    fetchable: false,
    needs_directory: false,
    protocol: USUAL,
    open: |_, _, _| embedded::open(),
    is_at: |_| false,
};

/// Every data set, the default first. A path is recognised as the first that fits, so special ones go before general.
static REGISTRY: [DatasetInfo; 7] = [
    BUILT_IN,
    DatasetInfo {
        name: "cifar10",
        about: "CIFAR-10: animals and vehicles, 32 × 32",
        train: Some(50_000),
        test: Some(10_000),
        fetchable: true,
        needs_directory: true,
        protocol: Protocol { updates: 1.0, memory: 500, eval_period: 100, ..USUAL },
        open: |directory, _, _| cifar::open(&cifar::CIFAR10, directory),
        is_at: |path| cifar::CIFAR10.is_in(path) || cifar::CIFAR10.is_archive(path),
        ..BUILT_IN
    },
    DatasetInfo {
        name: "cifar100",
        about: "CIFAR-100: 100 classes of things in 20 superclasses, 32 × 32",
        classes: Some(100),
        train: Some(50_000),
        test: Some(10_000),
        fetchable: true,
        needs_directory: true,
        open: |directory, _, _| cifar::open(&cifar::CIFAR100, directory),
        is_at: |path| cifar::CIFAR100.is_in(path) || cifar::CIFAR100.is_archive(path),
        ..BUILT_IN
    },
    DatasetInfo {
        name: "fashion-mnist",
        about: "Fashion-MNIST: clothes, grey, 28 × 28 in a border",
        train: Some(60_000),
        test: Some(10_000),
        fetchable: true,
        needs_directory: true,
        open: |directory, _, _| idx::open(&idx::FASHION, directory),
        is_at: |path| idx::FASHION.is_named(path),
        ..BUILT_IN
    },
    DatasetInfo {
        name: "mnist",
        about: "MNIST: handwritten digits, grey, 28 × 28 in a border",
        train: Some(60_000),
        test: Some(10_000),
        fetchable: true,
        needs_directory: true,
        open: |directory, _, _| idx::open(&idx::MNIST, directory),
        is_at: |path| idx::MNIST.is_named(path),
        ..BUILT_IN
    },
    DatasetInfo {
        name: "imagenet100",
        about: "ImageNet-100: the first 100 classes of an ILSVRC-2012 tree",
        classes: Some(WORDNET_IDS.len()),
        train: Some(129_395),
        test: Some(5_000),
        size: imagenet::DEFAULT_SIZE,
        any_size: true,
        needs_directory: true,
        protocol: Protocol { batch: 64, updates: 0.25, eval_period: 2500, imp_period: 10, ..USUAL },
        open: |directory, size, opening| imagenet::open(directory, size, opening.fit),
        is_at: imagenet::is_in,
        ..BUILT_IN
    },
    DatasetInfo {
        name: "folder",
        about: "your own images, a folder a class: <class>/*, or train/<class>/* and test/<class>/* (or val); PNG, JPEG, \
                WebP, BMP or GIF of any size",
        classes: None,
        train: None,
        test: None,
        size: folder::DEFAULT_SIZE,
        any_size: true,
        needs_directory: true,
        open: folder::open_as,
        is_at: folder::is_in,
        ..BUILT_IN
    },
];

/// Every data set there is, the default first.
pub fn list() -> &'static [DatasetInfo] {
    &REGISTRY
}

/// What is known of the data set called `name`.
///
/// # Errors
/// When there is none; the error knows the names.
pub fn info(name: &str) -> Result<&'static DatasetInfo> {
    REGISTRY.iter().find(|info| info.name == name).ok_or_else(|| Error::UnknownName {
        kind: "data set",
        name: name.to_owned(),
        known: REGISTRY.iter().map(|info| info.name.to_owned()).collect(),
    })
}

/// Opens a data set.
///
/// `directory` is its own folder, that folder's parent or its archive; `folder` takes the folder itself; the built-in set
/// needs none. `size` is the side of the images served, for sets that can be resized.
///
/// # Errors
/// When the name is unknown, the data are not there or damaged, or the size cannot be had.
pub fn open(name: &str, directory: Option<&Path>, size: Option<usize>) -> Result<Dataset> {
    open_with(name, directory, size, OnBadImage::Fail)
}

/// Opens a data set, passing over images that cannot be read where its mean and deviation are measured, if so wished.
///
/// # Errors
/// As for [`open`].
pub fn open_with(
    name: &str,
    directory: Option<&Path>,
    size: Option<usize>,
    on_bad_image: OnBadImage,
) -> Result<Dataset> {
    open_as(name, directory, &Opening { size, on_bad_image, ..Opening::default() })
}

/// Opens a data set as asked.
///
/// # Errors
/// As for [`open`].
pub fn open_as(name: &str, directory: Option<&Path>, opening: &Opening) -> Result<Dataset> {
    let info = info(name)?;
    let wanted = opening.size.unwrap_or(info.size);
    if wanted != info.size && !info.any_size {
        let problem = format!("is {wanted}, but {name} has images of {0} × {0}", info.size);
        return Err(Error::bad_key("size", problem));
    }
    match directory {
        Some(directory) => (info.open)(directory, wanted, opening),
        None if !info.needs_directory => (info.open)(Path::new(""), wanted, opening),
        None => Err(Error::NoData {
            name: name.to_owned(),
            looked: Vec::new(),
            hint: "say where it is with `--data-dir`".into(),
        }),
    }
}

#[cfg(test)]
mod tests;
