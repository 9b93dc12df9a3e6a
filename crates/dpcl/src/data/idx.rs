//! The MNIST family in the IDX layout, plain or compressed.
//!
//! Images are at most 32 × 32 grey pixels; they are centred in a black 32 × 32 square (28 × 28 gets a border of two)
//! and their one channel is served three times. Mean and deviation are measured on the training images as served.

use std::{
    fs::File,
    io::{self, BufReader, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Dataset, Findings, OnBadImage, Packed, Policy, Split, padding_for, places::Wanted, statistics,
    unpacked::Unpacked,
};
use crate::error::{Error, Result};

/// Height and width of the images served.
pub(super) const SIZE: usize = 32;

/// Beyond the largest relative of MNIST (814,255 images).
const MOST_IMAGES: u32 = 1_000_000;

/// Unsigned bytes in three dimensions.
const IMAGES_MAGIC: u32 = 0x0803;

/// Unsigned bytes in one dimension.
const LABELS_MAGIC: u32 = 0x0801;

/// The official file names, without `.gz`: training images and labels, then test images and labels.
pub(super) const FILES: [&str; 4] = [
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
];

/// One member of the family. All have the same file names, so folder names tell them apart.
pub(super) struct Member {
    /// Name in configurations.
    pub name: &'static str,
    /// Folders it is usually kept in.
    folders: &'static [&'static str],
    /// Class names in label order.
    pub classes: [&'static str; 10],
}

/// Handwritten digits.
pub(super) static MNIST: Member = Member {
    name: "mnist",
    folders: &["mnist", "MNIST/raw", "MNIST"],
    classes: ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"],
};

/// Articles of clothing.
pub(super) static FASHION: Member = Member {
    name: "fashion-mnist",
    folders: &["fashion-mnist", "FashionMNIST/raw", "FashionMNIST", "fashion_mnist", "fashion"],
    classes: [
        "t-shirt",
        "trouser",
        "pullover",
        "dress",
        "coat",
        "sandal",
        "shirt",
        "sneaker",
        "bag",
        "ankle-boot",
    ],
};

impl Member {
    /// Whether a folder has the family's files and does not carry the name of the other member.
    pub(super) fn is_in(&self, folder: &Path) -> bool {
        let other = if self.name == MNIST.name { &FASHION } else { &MNIST };
        let named_otherwise = other.folders.iter().any(|name| folder.ends_with(name));
        !named_otherwise && FILES.iter().any(|file| existing(folder, file).is_some())
    }

    /// Whether a folder is this member's by its files and its own name.
    pub(super) fn is_named(&self, folder: &Path) -> bool {
        let whole = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        self.is_in(&whole) && self.folders.iter().any(|name| folder.ends_with(name) || whole.ends_with(name))
    }
}

/// Opens a member from its own folder or that folder's parent.
///
/// # Errors
/// When it is not there, incomplete or damaged.
pub(super) fn open(member: &Member, directory: &Path) -> Result<Dataset> {
    let wanted = Wanted {
        name: member.name,
        folders: member.folders,
        archive: None,
        holds: &|folder| member.is_in(folder),
        any_child: false,
        fetchable: true,
    };
    let folder = wanted.find(directory)?;
    read_set(member.name, &member.classes, &|file| {
        let path = existing(&folder, file).ok_or_else(|| {
            let hint = format!("get the whole set with `dpcl data fetch {}`", member.name);
            Error::bad_data(&folder, format!("has no {file} or {file}.gz"), hint)
        })?;
        let open = || -> io::Result<(File, u64)> {
            let file = File::open(&path)?;
            let length = file.metadata()?.len();
            Ok((file, length))
        };
        let (file, length) = open().map_err(|error| Error::io("open", &path, error))?;
        let reader = BufReader::new(file);
        let compressed = path.extension().is_some_and(|extension| extension == "gz");
        let reader: Box<dyn Read> =
            if compressed { Box::new(Unpacked::of(reader, length)) } else { Box::new(reader) };
        Ok(Input { path, reader })
    })
}

fn existing(folder: &Path, file: &str) -> Option<PathBuf> {
    [folder.join(file), folder.join(format!("{file}.gz"))].into_iter().find(|path| path.is_file())
}

/// An IDX file being read; the path is for errors.
pub(super) struct Input<'a> {
    /// What to call it.
    pub path: PathBuf,
    /// Its bytes, decompressed.
    pub reader: Box<dyn Read + 'a>,
}

/// Reads the four files that `input` opens by name into a data set.
///
/// # Errors
/// What `input` reports, and any file that is not what it should be.
pub(super) fn read_set<'a>(
    name: &str,
    classes: &[&str],
    input: &dyn Fn(&str) -> Result<Input<'a>>,
) -> Result<Dataset> {
    let [train_images, train_labels, test_images, test_labels] = FILES;
    let train = read_split(input(train_images)?, input(train_labels)?, classes.len())?;
    let test = read_split(input(test_images)?, input(test_labels)?, classes.len())?;
    let positions: Vec<usize> = (0..train.labels.len()).collect();
    let (measured, _) = statistics::measure(&*train.images, &positions, OnBadImage::Fail)?;
    Ok(Dataset {
        name: name.to_owned(),
        classes: classes.iter().map(ToString::to_string).collect(),
        superclasses: None,
        size: SIZE,
        mean: measured.mean,
        std: measured.std,
        policy: Policy::None,
        padding: padding_for(SIZE),
        train,
        test,
        findings: Findings::default(),
    })
}

fn read_split(mut images: Input, mut labels: Input, classes: usize) -> Result<Split> {
    let [count, height, width] = images.header(IMAGES_MAGIC, "images")?;
    let most = SIZE as u32;
    if !(1..=most).contains(&height) || !(1..=most).contains(&width) {
        return Err(
            images.damaged(format!("says its images are {height}×{width}; at most {most}×{most} will do"))
        );
    }
    let pixels = images.body(count as usize * height as usize * width as usize)?;

    let [label_count] = labels.header(LABELS_MAGIC, "labels")?;
    if label_count != count {
        let problem = format!("has {label_count} labels, but {} has {count} images", images.path.display());
        return Err(labels.damaged(problem));
    }
    let bytes = labels.body(count as usize)?;
    if let Some(position) = bytes.iter().position(|&label| usize::from(label) >= classes) {
        let problem = format!("image {position} has label {}, but there are only {classes}", bytes[position]);
        return Err(labels.damaged(problem));
    }
    Ok(Split {
        labels: bytes.into_iter().map(usize::from).collect(),
        images: Arc::new(Packed::grey(SIZE, height as usize, width as usize, pixels)),
    })
}

impl Input<'_> {
    /// Reads the magic number and the extents; the first extent is the number of items.
    fn header<const EXTENTS: usize>(&mut self, magic: u32, what: &str) -> Result<[u32; EXTENTS]> {
        let found = self.word()?;
        if found != magic {
            let problem = format!("is no IDX file of {what} (begins with {found:#010x}, not {magic:#010x})");
            return Err(self.damaged(problem));
        }
        let mut extents = [0; EXTENTS];
        for extent in &mut extents {
            *extent = self.word()?;
        }
        match extents[0] {
            0 => Err(self.damaged(format!("holds no {what}"))),
            count if count > MOST_IMAGES => {
                Err(self.damaged(format!("says it holds {count} {what}; at most {MOST_IMAGES} will do")))
            }
            _ => Ok(extents),
        }
    }

    fn word(&mut self) -> Result<u32> {
        let mut bytes = [0; 4];
        self.reader.read_exact(&mut bytes).map_err(|error| self.unreadable(error))?;
        Ok(u32::from_be_bytes(bytes))
    }

    /// Exactly `length` bytes and then the end; memory grows with what is there, not with what was announced.
    fn body(&mut self, length: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = (&mut self.reader).take(length as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.unreadable(error))?;
        if bytes.len() < length {
            let problem = format!("ends after {} of {length} data bytes", bytes.len());
            return Err(self.damaged(problem));
        }
        if bytes.len() > length {
            return Err(self.damaged(format!("goes on after the {length} data bytes its header announces")));
        }
        bytes.shrink_to_fit();
        Ok(bytes)
    }

    fn damaged(&self, problem: String) -> Error {
        let hint =
            "replace it with the official file (`dpcl data fetch mnist` or `dpcl data fetch fashion-mnist`)";
        Error::bad_data(&self.path, problem, hint)
    }

    fn unreadable(&self, error: io::Error) -> Error {
        match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => {
                self.damaged(format!("is damaged or incomplete ({error})"))
            }
            _ => Error::io("read", &self.path, error),
        }
    }
}

#[cfg(test)]
mod tests;
