//! The data set that is always there: a small part of Fashion-MNIST compiled into the program.
//!
//! 250 training and 50 test images of each of ten classes; origin and licence are in `assets/README.md`. The files
//! are ordinary compressed IDX files and are treated like them.

use flate2::read::GzDecoder;

use super::{
    Dataset,
    idx::{self, FASHION, FILES, Input},
};
use crate::error::Result;

/// Name in configurations.
pub(super) const NAME: &str = "fashion-mini";

/// In the order of [`FILES`].
static CONTENTS: [&[u8]; 4] = [
    include_bytes!("../../assets/fashion-mini/train-images-idx3-ubyte.gz"),
    include_bytes!("../../assets/fashion-mini/train-labels-idx1-ubyte.gz"),
    include_bytes!("../../assets/fashion-mini/t10k-images-idx3-ubyte.gz"),
    include_bytes!("../../assets/fashion-mini/t10k-labels-idx1-ubyte.gz"),
];

/// Decodes the built-in images.
///
/// # Errors
/// Only if the program was built from damaged files.
pub fn open() -> Result<Dataset> {
    idx::read_set(NAME, &FASHION.classes, &|file| {
        let position = FILES.iter().position(|known| *known == file).expect("only these four are asked for");
        Ok(Input {
            path: format!("{NAME}/{file}.gz").into(),
            reader: Box::new(GzDecoder::new(CONTENTS[position])),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_classes_with_250_and_50_images_each() {
        let set = open().unwrap();
        for (split, each) in [(&set.train, 250), (&set.test, 50)] {
            for class in 0..10 {
                assert_eq!(split.labels.iter().filter(|&&label| label == class).count(), each);
            }
            assert!(split.images.image(split.labels.len() - 1).is_ok());
        }
        assert_eq!((set.name.as_str(), set.size), ("fashion-mini", 32));
    }

    #[test]
    fn the_first_images_are_those_of_the_official_files() {
        let set = open().unwrap();
        assert_eq!(set.train.labels[..8], [9, 0, 0, 3, 0, 2, 7, 2]);
        assert_eq!(set.test.labels[..8], [9, 2, 1, 1, 6, 1, 4, 6]);
        let boot = set.train.images.image(0).unwrap();
        // The end of its row 12, two pixels lower because of the border, which follows it.
        let row: Vec<u8> = boot.pixels[14 * 96..15 * 96].iter().step_by(3).copied().collect();
        assert_eq!(row[26..], [245, 119, 167, 56, 0, 0]);
        assert_eq!(boot.pixels.iter().map(|&value| u64::from(value)).sum::<u64>(), 3 * 76_247);
    }

    #[test]
    fn the_files_stay_small() {
        assert!(CONTENTS.iter().map(|bytes| bytes.len()).sum::<usize>() < 2_000_000);
    }
}
