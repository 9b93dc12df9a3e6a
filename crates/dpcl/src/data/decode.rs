//! One image file to pixels of the size asked for.
//!
//! The format is told by the content, not the name (ImageNet has PNG files called `.JPEG`). Grey, palette, 16-bit,
//! CMYK and transparent images become plain RGB; transparency is dropped, orientation tags are not followed.

use std::{io::Cursor, path::Path, sync::Arc};

use image::{DynamicImage, ImageError, ImageFormat, ImageReader, Limits, imageops::FilterType};

use super::Image;
use crate::error::{Error, Result};

/// Sides of served images: below, a residual network has nothing to work on; above, one image fills 12 MB.
const SIZES: std::ops::RangeInclusive<usize> = 8..=2048;

/// No photograph is longer than this; what is longer is not read.
const LONGEST_FILE: u64 = 256 << 20;

/// Bytes that a decoded image may have: 89 million pixels of plain colour. The file alone could ask for any number.
const LARGEST_DECODED: u64 = 256 << 20;

/// Refuses sizes that cannot be served.
///
/// # Errors
/// When `size` is outside 8..=2048.
pub(super) fn check_size(size: usize) -> Result<()> {
    if SIZES.contains(&size) {
        return Ok(());
    }
    let problem = format!("is {size}; images can be served from {} to {} pixels", SIZES.start(), SIZES.end());
    Err(Error::bad_key("size", problem))
}

/// Reads a PNG or JPEG file and resizes it to `size` × `size`, bilinear, whatever its aspect ratio.
///
/// # Errors
/// When the file cannot be read, is no image of these formats, is damaged, or `size` is outside 8..=2048.
pub fn read_image(path: &Path, size: usize) -> Result<Image> {
    check_size(size)?;
    let length = std::fs::metadata(path).map_err(|error| Error::io("open", path, error))?.len();
    if length > LONGEST_FILE {
        return Err(unreadable(path, format!("is {length} bytes long, which no image should be")));
    }
    let bytes = std::fs::read(path).map_err(|error| Error::io("read", path, error))?;
    let decoded = decode(&bytes).map_err(|problem| unreadable(path, problem))?;
    Ok(resize(decoded, size))
}

/// Why bytes are no image that can be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadBytes {
    /// They are not a whole PNG or JPEG image.
    #[error("{0}")]
    NotAnImage(String),
    /// The image has more pixels than allowed, or would take too much memory.
    #[error("{0}")]
    TooLarge(String),
}

/// Decodes a PNG or JPEG image of at most `most_pixels` and resizes it to `size` × `size` as [`read_image`] does. The number
/// of pixels is looked at before any of them is decoded.
///
/// # Errors
/// When the bytes are no such image or have more pixels.
pub fn decode_image(bytes: &[u8], size: usize, most_pixels: u64) -> Result<Image, BadBytes> {
    let reader = reader(bytes).map_err(BadBytes::NotAnImage)?;
    let extent = reader.into_dimensions();
    let (width, height) =
        extent.map_err(|error| BadBytes::NotAnImage(format!("cannot be decoded ({error})")))?;
    if u64::from(width) * u64::from(height) > most_pixels {
        let problem = format!("has {width} × {height} pixels, and at most {most_pixels} are taken");
        return Err(BadBytes::TooLarge(problem));
    }
    match decode(bytes) {
        Ok(decoded) => Ok(resize(decoded, size)),
        Err(problem) if problem == TOO_LARGE => Err(BadBytes::TooLarge(problem)),
        Err(problem) => Err(BadBytes::NotAnImage(problem)),
    }
}

fn unreadable(path: &Path, problem: String) -> Error {
    Error::bad_data(path, problem, "replace the file with a whole PNG or JPEG image, or remove it")
}

/// What is said of an image that would take too much memory.
const TOO_LARGE: &str = "is larger than an image may be";

/// A reader of bytes that begin like a PNG or JPEG image.
fn reader(bytes: &[u8]) -> Result<ImageReader<Cursor<&[u8]>>, String> {
    let reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .expect("a buffer in memory can always be read");
    match reader.format() {
        Some(ImageFormat::Png | ImageFormat::Jpeg) => Ok(reader),
        _ => Err("is neither a PNG nor a JPEG image".into()),
    }
}

fn decode(bytes: &[u8]) -> Result<DynamicImage, String> {
    let mut reader = reader(bytes)?;
    if reader.format() == Some(ImageFormat::Jpeg) && !has_end_marker(bytes) {
        return Err("is cut off before its end".into());
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(LARGEST_DECODED);
    reader.limits(limits);
    reader.decode().map_err(|error| match error {
        ImageError::Limits(_) => TOO_LARGE.into(),
        other => format!("cannot be decoded ({other})"),
    })
}

/// Whether a JPEG's last scan is closed. The decoder would fill what is missing with grey and say nothing.
fn has_end_marker(bytes: &[u8]) -> bool {
    let marker = |second: u8| bytes.windows(2).rposition(|pair| pair == [0xff, second]);
    match (marker(0xda), marker(0xd9)) {
        (Some(scan), Some(end)) => scan < end,
        _ => false,
    }
}

fn resize(image: DynamicImage, size: usize) -> Image {
    let side = size as u32;
    let whole = image.width() == side && image.height() == side;
    let pixels: Arc<[u8]> = if whole {
        image.into_rgb8().into_raw().into()
    } else {
        let colour = DynamicImage::ImageRgb8(image.into_rgb8());
        colour.resize_exact(side, side, FilterType::Triangle).into_rgb8().into_raw().into()
    };
    Image { height: size, width: size, pixels }
}

#[cfg(test)]
mod tests;
