//! One image file to pixels of the size asked for.
//!
//! The format is told by the content, not the name (ImageNet has PNG files called `.JPEG`). Grey, palette, 16-bit,
//! CMYK and transparent images become plain RGB; transparency is dropped. Orientation tags (EXIF) are followed. Of
//! several frames the first is read.

use std::{
    fs::File,
    io::{BufReader, Cursor, Read as _},
    path::Path,
};

use image::{
    DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader, Limits, metadata::Orientation,
};

use super::{Fit, Image};
use crate::error::{Error, Result};

/// Endings of files that are taken for images.
pub(super) const ENDINGS: [&str; 6] = ["png", "jpg", "jpeg", "webp", "bmp", "gif"];

/// What can be read, for texts.
pub(super) const KINDS: &str = "PNG, JPEG, WebP, BMP or GIF";

/// Sides of served images: below, a residual network has nothing to work on; above, one image fills 12 MB.
const SIZES: std::ops::RangeInclusive<usize> = 8..=2048;

/// No photograph is longer than this; what is longer is not read.
const LONGEST_FILE: u64 = 256 << 20;

/// Bytes that a decoded image may have: 89 million pixels of plain colour. The file alone could ask for any number.
const LARGEST_DECODED: u64 = 256 << 20;

/// Pixels that an image may have whose decoder makes a whole copy in other colours before it hands them over.
const MOST_COPIED: u64 = 48 << 20;

const TOO_LARGE: &str = "is larger than an image may be";

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

/// Reads an image file and resizes it to `size` × `size`, bilinear, whatever its aspect ratio.
///
/// # Errors
/// When the file cannot be read, is no image of a known format, is damaged, or `size` is outside 8..=2048.
pub fn read_image(path: &Path, size: usize) -> Result<Image> {
    read_fitted(path, size, Fit::Squash)
}

/// Reads an image file as a square of the size.
///
/// # Errors
/// As for [`read_image`].
pub fn read_fitted(path: &Path, size: usize, fit: Fit) -> Result<Image> {
    check_size(size)?;
    let bytes = whole_file(path)?;
    let fitted = decode(&bytes).and_then(|decoded| fitted(decoded, size, fit));
    fitted.map_err(|problem| unreadable(path, problem))
}

/// Scaling sums rows up first, in four floats a pixel: what is as wide as a wall and a pixel high would fill the memory.
fn refuse_too_wide(image: &DynamicImage, size: usize) -> Result<(), String> {
    const PIXEL: u64 = 16;
    if u64::from(image.width()) * size as u64 * PIXEL <= LARGEST_DECODED {
        return Ok(());
    }
    let (width, height) = (image.width(), image.height());
    Err(format!("{TOO_LARGE}: {width} × {height} pixels cannot be scaled to {size} × {size}"))
}

/// The length of an ordinary file: a pipe or a device would be waited for, or never end.
fn refuse_strange(path: &Path) -> Result<u64> {
    // Asked before it is opened: opening a pipe that nobody writes to never returns.
    let known = std::fs::metadata(path).map_err(|error| Error::io("open", path, error))?;
    if !known.is_file() {
        return Err(unreadable(path, "is no ordinary file".into()));
    }
    let length = known.len();
    if length > LONGEST_FILE {
        return Err(unreadable(path, format!("is {length} bytes long, which no image should be")));
    }
    Ok(length)
}

fn whole_file(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(refuse_strange(path)? as usize);
    let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
    file.take(LONGEST_FILE).read_to_end(&mut bytes).map_err(|error| Error::io("read", path, error))?;
    Ok(bytes)
}

/// Why bytes are no image that can be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadBytes {
    /// They are not a whole image of a known format.
    #[error("{0}")]
    NotAnImage(String),
    /// The image has more pixels than allowed, or would take too much memory.
    #[error("{0}")]
    TooLarge(String),
}

/// Decodes an image of at most `most_pixels` and resizes it to `size` × `size` as [`read_image`] does. The number of
/// pixels is looked at before any of them is decoded.
///
/// # Errors
/// When the bytes are no such image or have more pixels.
pub fn decode_image(bytes: &[u8], size: usize, most_pixels: u64) -> Result<Image, BadBytes> {
    let refused = |problem: String| match problem.starts_with(TOO_LARGE) {
        true => BadBytes::TooLarge(problem),
        false => BadBytes::NotAnImage(problem),
    };
    let (width, height) = decoder(Cursor::new(bytes)).map_err(refused)?.1.dimensions();
    if u64::from(width) * u64::from(height) > most_pixels {
        let problem = format!("has {width} × {height} pixels, and at most {most_pixels} are taken");
        return Err(BadBytes::TooLarge(problem));
    }
    decode(bytes).and_then(|decoded| fitted(decoded, size, Fit::Squash)).map_err(refused)
}

/// Height and width of the picture in a file as people see it; its pixels are not decoded.
///
/// # Errors
/// When the file cannot be read or does not begin as an image of a known format.
pub(super) fn read_extent(path: &Path) -> Result<[usize; 2]> {
    refuse_strange(path)?;
    let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
    let measured = || -> Result<[usize; 2], String> {
        let (_, mut decoder) = decoder(BufReader::new(file))?;
        let (width, height) = decoder.dimensions();
        let [width, height] = [width, height].map(|length| length as usize);
        Ok(if lies_on_its_side(orientation(&mut decoder)) { [width, height] } else { [height, width] })
    };
    measured().map_err(|problem| unreadable(path, problem))
}

fn unreadable(path: &Path, problem: String) -> Error {
    Error::bad_data(path, problem, format!("replace the file with a whole {KINDS} image, or remove it"))
}

/// A picture as it is stored, and how it is to be turned.
struct Decoded {
    image: DynamicImage,
    orientation: Orientation,
}

fn decode(bytes: &[u8]) -> Result<Decoded, String> {
    let (format, mut decoder) = decoder(Cursor::new(bytes))?;
    if format == ImageFormat::Jpeg && !has_end_marker(bytes) {
        return Err("is cut off before its end".into());
    }
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    let copied = !matches!(format, ImageFormat::Png | ImageFormat::Jpeg);
    if decoder.total_bytes() > LARGEST_DECODED || (copied && pixels > MOST_COPIED) {
        return Err(TOO_LARGE.into());
    }
    let orientation = orientation(&mut decoder);
    let image = DynamicImage::from_decoder(decoder).map_err(|error| told(&error))?;
    Ok(Decoded { image, orientation })
}

/// What reads a file of one of the known formats, within limits.
fn decoder<'a, R: std::io::BufRead + std::io::Seek + 'a>(
    bytes: R,
) -> Result<(ImageFormat, impl ImageDecoder + 'a), String> {
    use ImageFormat as F;
    let unknown = || format!("is not a {KINDS} image");
    let mut reader = ImageReader::new(bytes).with_guessed_format().map_err(|_| unknown())?;
    let known = |format: &F| matches!(format, F::Png | F::Jpeg | F::WebP | F::Bmp | F::Gif);
    let format = reader.format().filter(known).ok_or_else(unknown)?;
    let mut limits = Limits::default();
    limits.max_alloc = Some(LARGEST_DECODED);
    reader.limits(limits);
    Ok((format, reader.into_decoder().map_err(|error| told(&error))?))
}

fn told(error: &ImageError) -> String {
    match error {
        ImageError::Limits(_) => TOO_LARGE.into(),
        other => format!("cannot be decoded ({other})"),
    }
}

/// A tag that cannot be read turns nothing.
fn orientation(decoder: &mut impl ImageDecoder) -> Orientation {
    decoder.orientation().unwrap_or(Orientation::NoTransforms)
}

fn lies_on_its_side(orientation: Orientation) -> bool {
    use Orientation as O;
    matches!(orientation, O::Rotate90 | O::Rotate270 | O::Rotate90FlipH | O::Rotate270FlipH)
}

/// Whether a JPEG's last scan is closed. The decoder would fill what is missing with grey and say nothing.
fn has_end_marker(bytes: &[u8]) -> bool {
    let marker = |second: u8| bytes.windows(2).rposition(|pair| pair == [0xff, second]);
    match (marker(0xda), marker(0xd9)) {
        (Some(scan), Some(end)) => scan < end,
        _ => false,
    }
}

/// Turned when it is small: the square is the same, and a large picture need not be copied.
fn fitted(decoded: Decoded, size: usize, fit: Fit) -> Result<Image, String> {
    refuse_too_wide(&decoded.image, size)?;
    let square = fit.applied(decoded.image.into_rgb8(), size as u32);
    let mut square = DynamicImage::ImageRgb8(square);
    square.apply_orientation(decoded.orientation);
    Ok(Image { height: size, width: size, pixels: square.into_rgb8().into_raw().into() })
}

#[cfg(test)]
mod tests;
