//! One image file to pixels of the size asked for.
//!
//! The format is told by the content, not the name (ImageNet has PNG files called `.JPEG`). Grey, palette, 16-bit,
//! CMYK and transparent images become plain RGB; transparency is dropped, orientation tags are not followed.

use std::{
    fs::File,
    io::{Cursor, Read as _},
    path::Path,
    sync::Arc,
};

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
    let bytes = whole_file(path)?;
    let decoded = decode(&bytes).map_err(|problem| unreadable(path, problem))?;
    refuse_too_wide(&decoded, size).map_err(|problem| unreadable(path, problem))?;
    Ok(resize(decoded, size))
}

/// Scaling sums rows up first, in four floats a pixel: what is as wide as a wall and a pixel high would fill the memory.
fn refuse_too_wide(image: &DynamicImage, size: usize) -> Result<(), String> {
    const PIXEL: u64 = 16;
    if u64::from(image.width()) * size as u64 * PIXEL <= LARGEST_DECODED {
        return Ok(());
    }
    let (width, height) = (image.width(), image.height());
    Err(format!(
        "is larger than an image may be: {width} × {height} pixels cannot be scaled to {size} × {size}"
    ))
}

/// The bytes of an ordinary file: a pipe or a device would be waited for, or never end.
fn whole_file(path: &Path) -> Result<Vec<u8>> {
    // Asked before it is opened: opening a pipe that nobody writes to never returns.
    let known = std::fs::metadata(path).map_err(|error| Error::io("open", path, error))?;
    if !known.is_file() {
        return Err(unreadable(path, "is no ordinary file".into()));
    }
    let length = known.len();
    if length > LONGEST_FILE {
        return Err(unreadable(path, format!("is {length} bytes long, which no image should be")));
    }
    let mut bytes = Vec::with_capacity(length as usize);
    let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
    file.take(LONGEST_FILE).read_to_end(&mut bytes).map_err(|error| Error::io("read", path, error))?;
    Ok(bytes)
}

fn unreadable(path: &Path, problem: String) -> Error {
    Error::bad_data(path, problem, "replace the file with a whole PNG or JPEG image, or remove it")
}

fn decode(bytes: &[u8]) -> Result<DynamicImage, String> {
    let mut reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .expect("a buffer in memory can always be read");
    let Some(format @ (ImageFormat::Png | ImageFormat::Jpeg)) = reader.format() else {
        return Err("is neither a PNG nor a JPEG image".into());
    };
    if format == ImageFormat::Jpeg && !has_end_marker(bytes) {
        return Err("is cut off before its end".into());
    }
    let mut limits = Limits::default();
    limits.max_alloc = Some(LARGEST_DECODED);
    reader.limits(limits);
    reader.decode().map_err(|error| match error {
        ImageError::Limits(_) => "is larger than an image may be".into(),
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
