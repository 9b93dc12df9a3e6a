//! What is in a data set, in numbers and as a picture. Printing it is the caller's business.

use std::sync::Arc;

use super::{Dataset, Findings, Image, Policy, Split};

/// Pixels between the tiles of a sheet.
const GAP: usize = 2;

/// Grey of the gaps: to be seen against a light and a dark page.
const GAP_VALUE: u8 = 128;

/// The facts of a data set.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Inspection {
    /// The data set's name.
    pub name: String,
    /// Height and width of the images as served.
    pub size: usize,
    /// Number of training images.
    pub train: usize,
    /// Number of test images.
    pub test: usize,
    /// Number of superclasses, where the set has them.
    pub superclasses: Option<usize>,
    /// Per-channel mean used for normalising, 0..1.
    pub mean: [f32; 3],
    /// Per-channel standard deviation used for normalising, 0..1.
    pub std: [f32; 3],
    /// The AutoAugment policy used by default.
    pub policy: Policy,
    /// The histogram, in label order.
    pub classes: Vec<ClassCount>,
    /// What opening the set found.
    pub findings: Findings,
}

/// One bar of the histogram.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ClassCount {
    /// The class's name.
    pub name: String,
    /// Training images.
    pub train: usize,
    /// Test images.
    pub test: usize,
}

/// Counts a data set without decoding any image.
pub fn inspect(dataset: &Dataset) -> Inspection {
    let count = |split: &Split| {
        let mut counts = vec![0_usize; dataset.classes.len()];
        for &label in &split.labels {
            counts[label] += 1;
        }
        counts
    };
    let classes = dataset
        .classes
        .iter()
        .zip(count(&dataset.train).into_iter().zip(count(&dataset.test)))
        .map(|(name, (train, test))| ClassCount { name: name.clone(), train, test })
        .collect();
    Inspection {
        name: dataset.name.clone(),
        size: dataset.size,
        train: dataset.train.labels.len(),
        test: dataset.test.labels.len(),
        superclasses: dataset.superclasses.as_ref().and_then(|of| of.iter().max()).map(|last| last + 1),
        mean: dataset.mean,
        std: dataset.std,
        policy: dataset.policy,
        classes,
        findings: dataset.findings.clone(),
    }
}

/// Lays images out row by row, `columns` a row, with grey gaps between and around them.
///
/// Cells have the extents of the largest image; smaller ones sit in their upper left corner. Without images the sheet
/// is a single grey pixel.
pub fn tile(images: &[Image], columns: usize) -> Image {
    let columns = columns.clamp(1, images.len().max(1));
    let rows = images.len().div_ceil(columns);
    let cell_height = images.iter().map(|image| image.height).max().unwrap_or(0) + GAP;
    let cell_width = images.iter().map(|image| image.width).max().unwrap_or(0) + GAP;
    let (height, width) = match rows {
        0 => (1, 1),
        _ => (rows * cell_height + GAP, columns * cell_width + GAP),
    };
    let mut pixels = vec![GAP_VALUE; height * width * 3];
    for (position, image) in images.iter().enumerate() {
        let top = position / columns * cell_height + GAP;
        let left = position % columns * cell_width + GAP;
        let line_bytes = image.width * 3;
        for row in 0..image.height {
            let start = ((top + row) * width + left) * 3;
            let line = &image.pixels[row * line_bytes..(row + 1) * line_bytes];
            pixels[start..start + line_bytes].copy_from_slice(line);
        }
    }
    Image { height, width, pixels: Arc::from(pixels) }
}

/// Encodes an image as a PNG file.
///
/// # Panics
/// When the image has no pixels or another number of them than its extents say.
pub fn png(image: &Image) -> Vec<u8> {
    use image::{ExtendedColorType, ImageEncoder as _, codecs::png::PngEncoder};
    let mut bytes = Vec::new();
    PngEncoder::new(&mut bytes)
        .write_image(&image.pixels, image.width as u32, image.height as u32, ExtendedColorType::Rgb8)
        .expect(
            "an image has height × width × 3 bytes, at least one pixel, and memory takes what is written",
        );
    bytes
}

#[cfg(test)]
mod tests {
    use super::{
        super::{Packed, contact_sheet},
        *,
    };

    fn plain(height: usize, width: usize, value: u8) -> Image {
        Image { height, width, pixels: vec![value; height * width * 3].into() }
    }

    fn red(image: &Image, row: usize, column: usize) -> u8 {
        image.pixels[(row * image.width + column) * 3]
    }

    fn dataset() -> Dataset {
        let split = |labels: &[usize]| Split {
            labels: labels.to_vec(),
            images: Arc::new(Packed::colour(1, (0..labels.len()).flat_map(|at| [at as u8 + 1; 3]).collect())),
        };
        Dataset {
            name: "toy".into(),
            classes: vec!["cat".into(), "dog".into(), "eel".into()],
            superclasses: Some(vec![0, 0, 1]),
            size: 1,
            mean: [0.0; 3],
            std: [1.0; 3],
            policy: Policy::None,
            padding: 0,
            train: split(&[1, 0, 1, 1]),
            test: split(&[2, 0]),
            findings: Findings::default(),
        }
    }

    #[test]
    fn counts_are_per_class_and_split() {
        let found = inspect(&dataset());
        assert_eq!((found.train, found.test, found.superclasses), (4, 2, Some(2)));
        let bars: Vec<(&str, usize, usize)> =
            found.classes.iter().map(|bar| (bar.name.as_str(), bar.train, bar.test)).collect();
        assert_eq!(bars, [("cat", 1, 1), ("dog", 3, 0), ("eel", 0, 1)]);
    }

    #[test]
    fn the_contact_sheet_has_a_row_a_class() {
        let sheet = contact_sheet(&dataset(), 2, 2);
        // Two rows as high as a letter with its margin; two columns beside names of three letters.
        assert_eq!((sheet.height, sheet.width), (2 * 14 + 2, 36 + 8));
        let cells = [red(&sheet, 2, 38), red(&sheet, 2, 41), red(&sheet, 16, 38), red(&sheet, 16, 41)];
        assert_eq!(cells, [2, 0, 1, 3]);
        assert_eq!(red(&sheet, 2, 39), GAP_VALUE);
    }

    #[test]
    fn tiles_of_unequal_extents_share_one_grid() {
        let sheet = tile(&[plain(2, 1, 10), plain(1, 3, 20), plain(1, 1, 30)], 2);
        assert_eq!((sheet.height, sheet.width), (2 * 4 + 2, 2 * 5 + 2));
        assert_eq!([red(&sheet, 3, 2), red(&sheet, 2, 9), red(&sheet, 6, 2)], [10, 20, 30]);
        assert_eq!([red(&sheet, 3, 7), red(&sheet, 6, 7)], [GAP_VALUE; 2]);
        assert_eq!(tile(&[], 3), plain(1, 1, GAP_VALUE));
    }

    #[test]
    fn png_files_read_back_the_same() {
        let sheet = contact_sheet(&dataset(), 3, 9);
        let decoded = image::load_from_memory(&png(&sheet)).unwrap().into_rgb8();
        assert_eq!((decoded.height() as usize, decoded.width() as usize), (sheet.height, sheet.width));
        assert_eq!(decoded.into_raw(), sheet.pixels[..]);
    }
}
