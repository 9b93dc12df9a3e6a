//! Images held in memory as one buffer.
//!
//! Colour images lie there as they are handed out. Grey ones keep one byte a pixel and their own, smaller frame;
//! the zero border and the three channels are added when an image is asked for, which holds a quarter of the
//! bytes. This file knows nothing of labels or file formats.

use std::sync::Arc;

use md5::{Digest, Md5};

use super::{Image, ImageSource, watched::digits};
use crate::error::Result;

/// Number of bytes of a square colour image.
pub(super) const fn colour_bytes(size: usize) -> usize {
    size * size * 3
}

/// Square images in one shared buffer.
pub struct Packed {
    size: usize,
    frame: Frame,
    bytes: Vec<u8>,
}

/// How an image lies in the buffer.
enum Frame {
    /// Whole, as height × width × 3.
    Colour,
    /// One byte a pixel, to be centred in the square.
    Grey { height: usize, width: usize },
}

impl Packed {
    /// Colour images of `size` × `size`, one after another, each row by row with interleaved channels.
    ///
    /// # Panics
    /// When `bytes` is not a whole number of images.
    pub fn colour(size: usize, bytes: Vec<u8>) -> Self {
        assert!(size > 0 && bytes.len().is_multiple_of(colour_bytes(size)), "a whole number of images");
        Self { size, frame: Frame::Colour, bytes }
    }

    /// Grey images of `height` × `width`, served as colour images of `size` × `size` with a zero border.
    ///
    /// # Panics
    /// When an image does not fit the square or `bytes` is not a whole number of images.
    pub fn grey(size: usize, height: usize, width: usize, bytes: Vec<u8>) -> Self {
        assert!((1..=size).contains(&height) && (1..=size).contains(&width), "images fit the square");
        assert!(bytes.len().is_multiple_of(height * width), "a whole number of images");
        Self { size, frame: Frame::Grey { height, width }, bytes }
    }

    fn record(&self, index: usize, bytes: usize) -> &[u8] {
        &self.bytes[index * bytes..(index + 1) * bytes]
    }
}

impl ImageSource for Packed {
    fn image(&self, index: usize) -> Result<Image> {
        let pixels: Arc<[u8]> = match self.frame {
            Frame::Colour => self.record(index, colour_bytes(self.size)).into(),
            Frame::Grey { height, width } => {
                let grey = self.record(index, height * width);
                let (top, left) = ((self.size - height) / 2, (self.size - width) / 2);
                let mut pixels = vec![0; colour_bytes(self.size)];
                for (row, line) in grey.chunks_exact(width).enumerate() {
                    let start = ((top + row) * self.size + left) * 3;
                    let target = &mut pixels[start..start + width * 3];
                    for (pixel, &value) in target.chunks_exact_mut(3).zip(line) {
                        pixel.fill(value);
                    }
                }
                pixels.into()
            }
        };
        Ok(Image { height: self.size, width: self.size, pixels })
    }

    fn digest(&self) -> Option<String> {
        let mut digest = Md5::new();
        digest.update(&self.bytes);
        Some(digits(digest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_images_come_back_as_stored() {
        let packed = Packed::colour(2, (0..24).collect());
        let image = packed.image(1).unwrap();
        assert_eq!((image.height, image.width), (2, 2));
        assert_eq!(image.pixels[..], (12..24).collect::<Vec<u8>>());
    }

    #[test]
    fn grey_images_are_centred_and_repeated() {
        let packed = Packed::grey(4, 2, 2, vec![0, 0, 0, 0, 1, 2, 3, 4]);
        let image = packed.image(1).unwrap();
        let red: Vec<u8> = image.pixels.iter().step_by(3).copied().collect();
        assert_eq!(red, [0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0, 0, 0, 0, 0]);
        for channel in 1..3 {
            let other: Vec<u8> = image.pixels.iter().skip(channel).step_by(3).copied().collect();
            assert_eq!(other, red);
        }
    }
}
