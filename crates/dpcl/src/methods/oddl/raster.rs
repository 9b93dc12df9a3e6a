//! Images as an autoencoder sees them: numbers from 0 to 1, large ones made smaller.

use std::sync::Arc;

use crate::{
    data::{FloatImage, Picture},
    memory::Sample,
};

/// Pixels a side that autoencoders see, at most.
const SIDE: usize = 32;

/// How images of one size are made smaller and back.
#[derive(Clone, Copy)]
pub(super) struct Raster {
    /// Pixels a side.
    side: usize,
    /// Pixels a side that become one.
    block: usize,
}

impl Raster {
    /// For images of `side` pixels a side.
    pub fn new(side: usize) -> Self {
        Self { side, block: side.div_ceil(SIDE).max(1) }
    }

    /// Pixels a side of the small images.
    fn small(self) -> usize {
        self.side / self.block
    }

    /// Numbers of a small image.
    pub fn numbers(self) -> usize {
        self.small() * self.small() * 3
    }

    /// The means of its blocks; what fills no block at the right and the bottom is left out.
    pub fn shrunk(self, picture: &Picture) -> Vec<f32> {
        let Self { block, .. } = self;
        let [_, columns] = picture.extent();
        let value = |at: usize| match picture {
            Picture::Bytes(image) => f32::from(image.pixels[at]) / 255.0,
            Picture::Floats(image) => image.pixels[at],
        };
        let mean = |at: usize| {
            let (row, column, colour) = (at / 3 / self.small(), at / 3 % self.small(), at % 3);
            let of = |step: usize| (row * block + step / block) * columns + column * block + step % block;
            (0..block * block).map(|step| value(3 * of(step) + colour)).sum::<f32>() / (block * block) as f32
        };
        (0..self.numbers()).map(mean).collect()
    }

    /// An image of full size from a small one, block by block.
    pub fn enlarged(self, small: &[f32]) -> Sample {
        let Self { side, block } = self;
        let inside = |at: usize| (at / block).min(self.small() - 1);
        let value = |at: usize| {
            let (row, column) = (inside(at / 3 / side), inside(at / 3 % side));
            small[3 * (row * self.small() + column) + at % 3]
        };
        let pixels: Arc<[f32]> = (0..side * side * 3).map(value).collect();
        Sample::new(FloatImage { height: side, width: side, pixels }, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Image;

    fn image(side: usize) -> Picture {
        let pixels: Vec<u8> = (0..side * side * 3).map(|at| (at * 7 % 256) as u8).collect();
        Image { height: side, width: side, pixels: pixels.into() }.into()
    }

    #[test]
    fn small_images_stay_as_they_are() {
        for side in [1, 8, 32] {
            let raster = Raster::new(side);
            let numbers = raster.shrunk(&image(side));
            assert_eq!(numbers.len(), raster.numbers());
            let back = raster.enlarged(&numbers);
            let Picture::Floats(float) = &back.image else { panic!("floats") };
            assert_eq!(float.pixels[..], numbers);
            assert_eq!(back.image.to_bytes().pixels, image(side).to_bytes().pixels);
            assert_eq!(raster.shrunk(&back.image), numbers);
        }
    }

    #[test]
    fn large_images_become_the_means_of_their_blocks() {
        // 65 pixels in blocks of 3 are 21, and two pixels at each end are left out.
        let raster = Raster::new(65);
        assert_eq!((raster.block, raster.small(), raster.numbers()), (3, 21, 21 * 21 * 3));
        let numbers = raster.shrunk(&image(65));
        let pixel = |row: usize, column: usize| ((row * 65 + column) * 3 + 1) * 7 % 256;
        let sum: usize = (3..6).flat_map(|row| (6..9).map(move |column| pixel(row, column))).sum();
        let found = numbers[(21 + 2) * 3 + 1];
        assert!((found - sum as f32 / 9.0 / 255.0).abs() < 1e-6, "{found}");

        let Picture::Floats(large) = raster.enlarged(&numbers).image else { panic!("floats") };
        for (row, column, block) in [(0, 0, 0), (4, 7, 23), (64, 64, 21 * 21 - 1), (64, 0, 20 * 21)] {
            assert_eq!(large.pixels[(row * 65 + column) * 3 + 2], numbers[block * 3 + 2]);
        }
    }
}
