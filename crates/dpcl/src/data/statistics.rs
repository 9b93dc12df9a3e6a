//! Mean and standard deviation of a data set's channels, for sets whose published figures do not exist.
//!
//! Sums are whole numbers, so the result does not depend on how the work is divided among threads.

use std::{num::NonZero, thread};

use super::{ImageSource, OnBadImage};
use crate::error::{Error, Result};

/// Per-channel mean and standard deviation, scaled to 0..1.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Statistics {
    /// Mean of red, green and blue.
    pub mean: [f32; 3],
    /// Standard deviation of red, green and blue over all pixels of all images.
    pub std: [f32; 3],
}

/// At most `wanted` positions below `count`, evenly spaced from the first on.
pub(super) fn evenly_spaced(count: usize, wanted: usize) -> Vec<usize> {
    let chosen = count.min(wanted);
    (0..chosen).map(|position| position * count / chosen).collect()
}

/// Measures the images at `positions` as the source serves them, borders included.
///
/// A channel that never varies gets the deviation 1, so that dividing by it is harmless.
///
/// # Errors
/// When images cannot be read; all of them are named. If such are to be skipped, only when there is no other; they are then
/// given back with their positions.
pub(super) fn measure(
    images: &dyn ImageSource,
    positions: &[usize],
    on_bad_image: OnBadImage,
) -> Result<(Statistics, Vec<Bad>)> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let share = positions.len().div_ceil(threads).max(1);
    let parts: Vec<Sums> = thread::scope(|scope| {
        let workers: Vec<_> =
            positions.chunks(share).map(|part| scope.spawn(|| Sums::over(images, part))).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    let mut total = Sums::default();
    parts.into_iter().for_each(|part| total.add(part));
    if !total.bad.is_empty() && (on_bad_image == OnBadImage::Fail || total.pixels == 0) {
        let problems = total.bad.iter().map(|(_, error)| error.whole()).collect();
        return Err(Error::BadImages { problems });
    }
    Ok((total.statistics(), total.bad))
}

/// The position of an image that cannot be read, and why.
pub(super) type Bad = (usize, Error);

/// Sums over pixel values 0..=255: 10^13 pixels fit before the squares overflow.
#[derive(Default)]
struct Sums {
    pixels: u64,
    values: [u64; 3],
    squares: [u64; 3],
    /// Images that could not be read, in order of position.
    bad: Vec<Bad>,
}

impl Sums {
    fn over(images: &dyn ImageSource, positions: &[usize]) -> Self {
        let mut sums = Self::default();
        for &position in positions {
            let image = match images.image(position) {
                Ok(image) => image,
                Err(error) => {
                    sums.bad.push((position, error));
                    continue;
                }
            };
            sums.pixels += (image.pixels.len() / 3) as u64;
            for pixel in image.pixels.chunks_exact(3) {
                for (channel, &value) in pixel.iter().enumerate() {
                    sums.values[channel] += u64::from(value);
                    sums.squares[channel] += u64::from(value) * u64::from(value);
                }
            }
        }
        sums
    }

    fn add(&mut self, other: Self) {
        self.bad.extend(other.bad);
        self.pixels += other.pixels;
        for channel in 0..3 {
            self.values[channel] += other.values[channel];
            self.squares[channel] += other.squares[channel];
        }
    }

    fn statistics(&self) -> Statistics {
        let pixels = self.pixels.max(1) as f64;
        let mean = self.values.map(|sum| sum as f64 / pixels);
        let std = std::array::from_fn(|channel| {
            let variance = self.squares[channel] as f64 / pixels - mean[channel] * mean[channel];
            if variance > 0.0 { (variance.sqrt() / 255.0) as f32 } else { 1.0 }
        });
        Statistics { mean: mean.map(|value| (value / 255.0) as f32), std }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Packed, *};

    #[test]
    fn mean_and_deviation_of_two_single_pixel_images() {
        // Red 0 and 255, green 51 twice, blue 102 and 204.
        let images = Packed::colour(1, vec![0, 51, 102, 255, 51, 204]);
        let (found, _) = measure(&images, &[0, 1], OnBadImage::Fail).unwrap();
        let close = |left: [f32; 3], right: [f32; 3]| {
            left.iter().zip(right).all(|(left, right)| (left - right).abs() < 1e-6)
        };
        assert!(close(found.mean, [0.5, 0.2, 0.6]), "{found:?}");
        assert!(close(found.std, [0.5, 1.0, 0.2]), "{found:?}");
    }

    #[test]
    fn positions_are_spread_over_the_whole_range() {
        assert_eq!(evenly_spaced(10, 4), [0, 2, 5, 7]);
        assert_eq!(evenly_spaced(3, 4), [0, 1, 2]);
        assert!(evenly_spaced(0, 4).is_empty());
    }
}
