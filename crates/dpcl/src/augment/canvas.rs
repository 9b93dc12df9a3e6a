//! The bytes an image is changed in: a copy of it and room for its next version.
//!
//! It knows pixels and look-up tables, not which changes exist or when they are made.

/// One output byte for every input byte.
pub(super) type Table = [u8; 256];

/// A working copy of one image. Reusing it for image after image allocates nothing.
#[derive(Clone, Debug, Default)]
pub struct Canvas {
    height: usize,
    width: usize,
    pixels: Vec<u8>,
    spare: Vec<u8>,
}

impl Canvas {
    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Height × width × 3 bytes, row by row.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    pub(super) fn pixels_mut(&mut self) -> &mut [u8] {
        &mut self.pixels
    }

    /// Sets the size; the content is whatever was there.
    pub(super) fn resize(&mut self, height: usize, width: usize) {
        (self.height, self.width) = (height, width);
        self.pixels.resize(height * width * 3, 0);
        self.spare.resize(height * width * 3, 0);
    }

    /// Makes the next version from the present one: `draw` gets both and must write every byte of the second.
    pub(super) fn redraw(&mut self, draw: impl FnOnce(&[u8], &mut [u8])) {
        draw(&self.pixels, &mut self.spare);
        std::mem::swap(&mut self.pixels, &mut self.spare);
    }

    /// Sends every byte through one table.
    pub(super) fn map(&mut self, table: &Table) {
        for byte in &mut self.pixels {
            *byte = table[usize::from(*byte)];
        }
    }

    /// Sends every channel through its own table.
    pub(super) fn map_channels(&mut self, tables: &[Table; 3]) {
        for pixel in self.pixels.as_chunks_mut::<3>().0 {
            for (byte, table) in pixel.iter_mut().zip(tables) {
                *byte = table[usize::from(*byte)];
            }
        }
    }

    /// How often each byte occurs in each channel.
    pub(super) fn histograms(&self) -> [[u32; 256]; 3] {
        let mut counts = [[0; 256]; 3];
        for pixel in self.pixels.as_chunks::<3>().0 {
            for (byte, channel) in pixel.iter().zip(&mut counts) {
                channel[usize::from(*byte)] += 1;
            }
        }
        counts
    }
}

/// The table of a function of one byte.
pub(super) fn table(function: impl Fn(u8) -> u8) -> Table {
    std::array::from_fn(|value| function(value as u8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Image;

    impl Canvas {
        /// A working copy of `image`.
        pub fn of(image: &Image) -> Self {
            let mut canvas = Self::default();
            canvas.resize(image.height, image.width);
            canvas.pixels.copy_from_slice(&image.pixels);
            canvas
        }
    }
}
