//! Images as a learner stores them: bytes as they come from data sets, or floats as a method may make them.

use std::{borrow::Cow, sync::Arc};

use super::Image;

/// One RGB image as floats, height × width × 3, row by row; 0 is black and 1 is full colour, and values may lie beyond.
#[derive(Clone, Debug, PartialEq)]
pub struct FloatImage {
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// `height * width * 3` numbers: red, green, blue of each pixel.
    pub pixels: Arc<[f32]>,
}

/// An image of either kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Picture {
    /// As data sets have it.
    Bytes(Image),
    /// As computed.
    Floats(FloatImage),
}

impl Picture {
    /// The image as bytes, for people to look at; floats are rounded and cut to what bytes can hold.
    pub fn to_bytes(&self) -> Cow<'_, Image> {
        match self {
            Self::Bytes(image) => Cow::Borrowed(image),
            Self::Floats(FloatImage { height, width, pixels }) => {
                // `as` keeps numbers beyond a byte at its ends.
                let pixels = pixels.iter().map(|value| (value * 255.0).round() as u8).collect();
                Cow::Owned(Image { height: *height, width: *width, pixels })
            }
        }
    }

    /// Rows and columns.
    pub fn extent(&self) -> [usize; 2] {
        match self {
            Self::Bytes(image) => [image.height, image.width],
            Self::Floats(image) => [image.height, image.width],
        }
    }
}

impl From<Image> for Picture {
    fn from(image: Image) -> Self {
        Self::Bytes(image)
    }
}

impl From<FloatImage> for Picture {
    fn from(image: FloatImage) -> Self {
        Self::Floats(image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_shown_as_the_nearest_bytes() {
        let pixels: Arc<[f32]> = vec![0.0, 0.5, 1.0, -0.2, 1.7, 0.1].into();
        let shown = Picture::from(FloatImage { height: 1, width: 2, pixels });
        assert_eq!(shown.to_bytes().pixels[..], [0, 128, 255, 0, 255, 26]);
        assert_eq!(shown.extent(), [1, 2]);
    }
}
