//! The shape of a convolution, and how its output pixels are cut into groups that threads work on.

use std::ops::Range;

/// The shape of a square convolution over NHWC activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ConvGeometry {
    /// Images.
    pub batch: usize,
    /// Input rows.
    pub height: usize,
    /// Input columns.
    pub width: usize,
    /// Input channels.
    pub channels_in: usize,
    /// Output channels.
    pub channels_out: usize,
    /// Side of the square kernel.
    pub kernel: usize,
    /// Step between neighbouring output pixels, in input pixels.
    pub stride: usize,
    /// Zeros around the input, on each side.
    pub padding: usize,
}

impl ConvGeometry {
    /// Output rows.
    pub fn out_height(&self) -> usize {
        (self.height + 2 * self.padding - self.kernel) / self.stride + 1
    }

    /// Output columns.
    pub fn out_width(&self) -> usize {
        (self.width + 2 * self.padding - self.kernel) / self.stride + 1
    }

    /// Output pixels of the whole batch.
    pub fn out_pixels(&self) -> usize {
        self.batch * self.out_height() * self.out_width()
    }

    /// Length of the input `[batch, height, width, channels_in]`.
    pub fn input_len(&self) -> usize {
        self.batch * self.height * self.width * self.channels_in
    }

    /// Length of the output `[batch, out_height, out_width, channels_out]`.
    pub fn output_len(&self) -> usize {
        self.out_pixels() * self.channels_out
    }

    /// Rows of the weight matrix: `kernel * kernel * channels_in`.
    pub fn weight_rows(&self) -> usize {
        self.kernel * self.kernel * self.channels_in
    }

    /// Length of the weight matrix `[kernel * kernel * channels_in, channels_out]`.
    pub fn weight_len(&self) -> usize {
        self.weight_rows() * self.channels_out
    }

    /// # Panics
    /// When a size is zero or the kernel does not fit into the padded input.
    pub(crate) fn check(&self) {
        let sizes = [
            self.batch,
            self.height,
            self.width,
            self.channels_in,
            self.channels_out,
            self.kernel,
            self.stride,
        ];
        assert!(sizes.iter().all(|&size| size > 0), "every size of {self:?} must be above zero");
        let side = self.height.min(self.width) + 2 * self.padding;
        assert!(self.kernel <= side, "the kernel of {self:?} is larger than its padded input");
    }
}

/// Pixels a group aims for when a large weight matrix is swept for each group.
const GROUP_PIXELS: usize = 256;

/// Pixels above which one image is cut into bands of rows.
const BAND_PIXELS: usize = 1024;

/// Output pixels cut into groups: some whole images each, or a band of rows of one image. Depends on the shape only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Groups {
    batch: usize,
    rows: usize,
    images_each: usize,
    bands: usize,
}

/// The pixels of one group: some images, and the same rows of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) images: Range<usize>,
    pub(crate) rows: Range<usize>,
}

impl Groups {
    pub(crate) fn new(batch: usize, rows: usize, columns: usize) -> Self {
        let image = (rows * columns).max(1);
        let images_each = GROUP_PIXELS.div_ceil(image).min(batch).max(1);
        let bands = if image > BAND_PIXELS { image.div_ceil(BAND_PIXELS).min(rows) } else { 1 };
        Self { batch, rows, images_each, bands }
    }

    /// Everything in one group.
    pub(crate) fn single(batch: usize, rows: usize) -> Self {
        Self { batch, rows, images_each: batch, bands: 1 }
    }

    /// At most about `limit` groups, made of whole images.
    pub(crate) fn at_most(batch: usize, rows: usize, limit: usize) -> Self {
        Self { batch, rows, images_each: batch.div_ceil(limit).max(1), bands: 1 }
    }

    pub(crate) fn count(&self) -> usize {
        self.batch.div_ceil(self.images_each) * self.bands
    }

    pub(crate) fn group(&self, index: usize) -> Group {
        let first = index / self.bands * self.images_each;
        let band = index % self.bands;
        Group {
            images: first..(first + self.images_each).min(self.batch),
            rows: self.rows * band / self.bands..self.rows * (band + 1) / self.bands,
        }
    }
}

impl Group {
    /// The first pixel and the number of pixels, which are contiguous in an image of `height` by `width`.
    pub(crate) fn pixels(&self, height: usize, width: usize) -> Range<usize> {
        let start = (self.images.start * height + self.rows.start) * width;
        start..((self.images.end - 1) * height + self.rows.end) * width
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_a_strided_convolution() {
        let geometry = ConvGeometry {
            batch: 2,
            height: 5,
            width: 7,
            channels_in: 3,
            channels_out: 4,
            kernel: 3,
            stride: 2,
            padding: 1,
        };
        assert_eq!((geometry.out_height(), geometry.out_width()), (3, 4));
        assert_eq!(geometry.weight_len(), 108);
    }

    #[test]
    fn groups_cover_every_pixel_once() {
        for (batch, rows, columns) in [(16, 4, 4), (3, 112, 112), (1, 1, 1), (7, 5, 9), (16, 32, 32)] {
            let groups = Groups::new(batch, rows, columns);
            let mut next = 0;
            for index in 0..groups.count() {
                let pixels = groups.group(index).pixels(rows, columns);
                assert_eq!(pixels.start, next);
                next = pixels.end;
            }
            assert_eq!(next, batch * rows * columns);
        }
    }
}
