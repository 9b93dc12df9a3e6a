//! How a picture that is not square becomes one of the size asked for.

use image::{DynamicImage, RgbImage, imageops, imageops::FilterType};

use crate::config::choices;

/// What happens to the longer side of a picture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fit {
    /// Both sides are scaled to the size: everything is seen, out of shape.
    #[default]
    Squash,
    /// The shorter side is scaled to the size and the middle of the longer one is kept: in shape, the ends are lost.
    Crop,
    /// The longer side is scaled to the size and what the shorter one lacks is black: everything is seen, in shape, smaller.
    Pad,
}

choices!(Fit: Squash = "squash", Crop = "crop", Pad = "pad");

impl Fit {
    /// What it does, for people.
    pub fn about(self) -> &'static str {
        match self {
            Self::Squash => "squashed to a square",
            Self::Crop => "cut to the square in their middle",
            Self::Pad => "padded with black to a square",
        }
    }

    /// The picture as a square of `side` pixels.
    pub(super) fn applied(self, image: RgbImage, side: u32) -> RgbImage {
        let (width, height) = image.dimensions();
        match self {
            Self::Squash => scaled(image, side, side),
            Self::Crop => {
                let square = width.min(height);
                let (left, top) = ((width - square) / 2, (height - square) / 2);
                scaled(imageops::crop_imm(&image, left, top, square, square).to_image(), side, side)
            }
            Self::Pad => {
                let longest = u64::from(width.max(height)).max(1);
                let share = |length| (u64::from(length) * u64::from(side) + longest / 2) / longest;
                let [width, height] = [width, height].map(|length| share(length).max(1) as u32);
                let small = scaled(image, width, height);
                let mut whole = RgbImage::new(side, side);
                let (left, top) = ((side - width) / 2, (side - height) / 2);
                imageops::replace(&mut whole, &small, left.into(), top.into());
                whole
            }
        }
    }
}

/// Bilinear, averaging when shrinking.
fn scaled(image: RgbImage, width: u32, height: u32) -> RgbImage {
    if image.dimensions() == (width, height) {
        return image;
    }
    DynamicImage::ImageRgb8(image).resize_exact(width, height, FilterType::Triangle).into_rgb8()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Red, green and blue thirds from left to right, twelve by four.
    fn thirds() -> RgbImage {
        RgbImage::from_fn(12, 4, |column, _| {
            let mut pixel = [0; 3];
            pixel[column as usize / 4] = 240;
            image::Rgb(pixel)
        })
    }

    #[test]
    fn squashing_keeps_everything_cropping_the_middle_padding_the_shape() {
        let squashed = Fit::Squash.applied(thirds(), 12);
        assert_eq!(squashed.get_pixel(0, 11).0, [240, 0, 0]);
        assert_eq!(squashed.get_pixel(11, 0).0, [0, 0, 240]);
        let cropped = Fit::Crop.applied(thirds(), 8);
        assert!(cropped.pixels().all(|pixel| pixel.0 == [0, 240, 0]));
        let padded = Fit::Pad.applied(thirds(), 12);
        let column = |column| (0..12).map(|row| padded.get_pixel(column, row).0).collect::<Vec<_>>();
        let bars = |colour| [vec![[0; 3]; 4], vec![colour; 4], vec![[0; 3]; 4]].concat();
        assert_eq!(column(0), bars([240, 0, 0]));
        assert_eq!(column(11), bars([0, 0, 240]));
        let tall = Fit::Pad.applied(imageops::rotate90(&thirds()), 12);
        assert_eq!((tall.get_pixel(3, 0).0, tall.get_pixel(4, 0).0), ([0; 3], [240, 0, 0]));
    }

    #[test]
    fn a_square_of_the_size_is_left_alone_and_no_side_vanishes() {
        let square = RgbImage::from_fn(8, 8, |x, y| image::Rgb([x as u8, y as u8, 7]));
        for fit in [Fit::Squash, Fit::Crop, Fit::Pad] {
            assert_eq!(fit.applied(square.clone(), 8), square);
            assert_eq!(fit.applied(RgbImage::new(1, 400), 8).dimensions(), (8, 8));
        }
    }
}
