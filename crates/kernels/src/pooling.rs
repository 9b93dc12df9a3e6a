//! Pooling over NHWC activations: 3×3 maximum with stride 2, and the average over a whole image.

use crate::isa::Isa;
use crate::pool::{SharedSlice, parallel_for};
use crate::simd::{Routine, Simd};

/// The shape `[batch, height, width, channels]` of activations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageShape {
    /// Images.
    pub batch: usize,
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Channels.
    pub channels: usize,
}

impl ImageShape {
    /// Numbers in the activations.
    pub fn len(&self) -> usize {
        self.batch * self.height * self.width * self.channels
    }

    /// The shape after a 3×3 maximum with stride 2 and padding 1.
    pub fn max_pooled(&self) -> Self {
        Self { height: (self.height - 1) / 2 + 1, width: (self.width - 1) / 2 + 1, ..*self }
    }
}

/// The 3×3 maximum with stride 2 and padding 1.
///
/// `input` has `shape`, `output` has `shape.max_pooled()`.
///
/// # Panics
/// When a slice does not have the length its shape says.
pub fn max_pool_forward(shape: ImageShape, input: &[f32], output: &mut [f32]) {
    let pooled = shape.max_pooled();
    assert!(
        input.len() == shape.len() && output.len() == pooled.len(),
        "max-pool operands do not fit {shape:?}"
    );
    let isa = Isa::active();
    let line = pooled.width * pooled.channels;
    let shared = SharedSlice::new(output);
    parallel_for(pooled.batch * pooled.height, |index| {
        // SAFETY: output rows are disjoint.
        let output = unsafe { shared.range(index * line, line) };
        isa.run(MaxRow { shape, input, image: index / pooled.height, row: index % pooled.height, output });
    });
}

/// Input rows or columns that a pooled position looks at.
fn window(position: usize, size: usize) -> std::ops::Range<usize> {
    (2 * position).saturating_sub(1)..(2 * position + 2).min(size)
}

struct MaxRow<'a> {
    shape: ImageShape,
    input: &'a [f32],
    image: usize,
    row: usize,
    output: &'a mut [f32],
}

impl Routine for MaxRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let ImageShape { height, width, channels, .. } = self.shape;
        for (column, output) in self.output.chunks_exact_mut(channels).enumerate() {
            output.fill(f32::NEG_INFINITY);
            for row in window(self.row, height) {
                for column in window(column, width) {
                    let start = ((self.image * height + row) * width + column) * channels;
                    for (output, &value) in output.iter_mut().zip(&self.input[start..start + channels]) {
                        *output = if value > *output { value } else { *output };
                    }
                }
            }
        }
    }
}

/// The gradient of the max-pool's input: each output's gradient goes to the first largest number of its window.
///
/// `input` and `gradient` have `shape`, `output` and `output_gradient` have `shape.max_pooled()`.
///
/// # Panics
/// When a slice does not have the length its shape says.
pub fn max_pool_backward(
    shape: ImageShape,
    input: &[f32],
    output: &[f32],
    output_gradient: &[f32],
    gradient: &mut [f32],
) {
    let pooled = shape.max_pooled();
    assert!(
        input.len() == shape.len() && gradient.len() == shape.len(),
        "max-pool operands do not fit {shape:?}"
    );
    assert!(
        output.len() == pooled.len() && output_gradient.len() == pooled.len(),
        "max-pool outputs do not fit {shape:?}"
    );
    let isa = Isa::active();
    let (image_len, pooled_len) = (shape.len() / shape.batch, pooled.len() / shape.batch);
    let shared = SharedSlice::new(gradient);
    parallel_for(shape.batch, |image| {
        let (from, to) = (image * pooled_len, (image + 1) * pooled_len);
        isa.run(MaxBackward {
            shape,
            input: &input[image * image_len..(image + 1) * image_len],
            output: &output[from..to],
            output_gradient: &output_gradient[from..to],
            // SAFETY: images are disjoint.
            gradient: unsafe { shared.range(image * image_len, image_len) },
        });
    });
}

struct MaxBackward<'a> {
    shape: ImageShape,
    input: &'a [f32],
    output: &'a [f32],
    output_gradient: &'a [f32],
    gradient: &'a mut [f32],
}

impl Routine for MaxBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let ImageShape { height, width, channels, .. } = self.shape;
        let pooled = self.shape.max_pooled();
        self.gradient.fill(0.0);
        let mut left = vec![0.0_f32; channels];
        for row in 0..pooled.height {
            for column in 0..pooled.width {
                let place = (row * pooled.width + column) * channels;
                let largest = &self.output[place..place + channels];
                left.copy_from_slice(&self.output_gradient[place..place + channels]);
                for row in window(row, height) {
                    for column in window(column, width) {
                        let start = (row * width + column) * channels;
                        let values = &self.input[start..start + channels];
                        let gradient = &mut self.gradient[start..start + channels];
                        for channel in 0..channels {
                            let here = values[channel] == largest[channel];
                            let give = if here { left[channel] } else { 0.0 };
                            gradient[channel] += give;
                            left[channel] -= give;
                        }
                    }
                }
            }
        }
    }
}

/// The average over each image: `input` has `shape`, `output` is `[batch, channels]`.
///
/// # Panics
/// When a slice does not have the length its shape says.
pub fn average_pool_forward(shape: ImageShape, input: &[f32], output: &mut [f32]) {
    assert!(
        input.len() == shape.len() && output.len() == shape.batch * shape.channels,
        "operands do not fit {shape:?}"
    );
    let isa = Isa::active();
    let (image_len, channels) = (shape.len() / shape.batch, shape.channels);
    let shared = SharedSlice::new(output);
    parallel_for(shape.batch, |image| {
        // SAFETY: images are disjoint.
        let output = unsafe { shared.range(image * channels, channels) };
        isa.run(Average { input: &input[image * image_len..(image + 1) * image_len], output });
    });
}

struct Average<'a> {
    input: &'a [f32],
    output: &'a mut [f32],
}

impl Routine for Average<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let channels = self.output.len();
        self.output.fill(0.0);
        for pixel in self.input.chunks_exact(channels) {
            self.output.iter_mut().zip(pixel).for_each(|(sum, value)| *sum += value);
        }
        let share = channels as f32 / self.input.len() as f32;
        self.output.iter_mut().for_each(|sum| *sum *= share);
    }
}

/// The gradient of the average's input: `output_gradient` is `[batch, channels]`, `gradient` has `shape`.
///
/// # Panics
/// When a slice does not have the length its shape says.
pub fn average_pool_backward(shape: ImageShape, output_gradient: &[f32], gradient: &mut [f32]) {
    let ImageShape { batch, channels, .. } = shape;
    assert!(
        gradient.len() == shape.len() && output_gradient.len() == batch * channels,
        "operands do not fit {shape:?}"
    );
    let image_len = shape.len() / batch;
    let share = channels as f32 / image_len as f32;
    let shared = SharedSlice::new(gradient);
    parallel_for(batch, |image| {
        let scaled: Vec<f32> =
            output_gradient[image * channels..][..channels].iter().map(|value| value * share).collect();
        // SAFETY: images are disjoint.
        let gradient = unsafe { shared.range(image * image_len, image_len) };
        gradient.chunks_exact_mut(channels).for_each(|pixel| pixel.copy_from_slice(&scaled));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: f32) -> Vec<f32> {
        (0..count).map(|i| ((i as f32 + seed) * 12.9898).sin()).collect()
    }

    #[test]
    fn max_pool_takes_the_largest_and_sends_its_gradient_back() {
        for (height, width, channels) in [(5, 7, 3), (4, 4, 20), (1, 1, 1), (8, 6, 33)] {
            let shape = ImageShape { batch: 2, height, width, channels };
            let pooled = shape.max_pooled();
            let input = numbers(shape.len(), 0.5);
            let mut output = vec![0.0; pooled.len()];
            max_pool_forward(shape, &input, &mut output);
            let given = numbers(pooled.len(), 7.0);
            let mut gradient = vec![1.0; shape.len()];
            max_pool_backward(shape, &input, &output, &given, &mut gradient);
            let mut expected = vec![0.0; shape.len()];
            for index in 0..pooled.len() {
                let (channel, pixel) = (index % channels, index / channels);
                let (column, row) = (pixel % pooled.width, pixel / pooled.width % pooled.height);
                let image = pixel / pooled.width / pooled.height;
                let mut best = None;
                for y in (2 * row as isize - 1).max(0)..(2 * row as isize + 2).min(height as isize) {
                    for x in (2 * column as isize - 1).max(0)..(2 * column as isize + 2).min(width as isize) {
                        let place = ((image * height + y as usize) * width + x as usize) * channels + channel;
                        if best.is_none_or(|best: usize| input[place] > input[best]) {
                            best = Some(place);
                        }
                    }
                }
                let best = best.expect("a window is never empty");
                assert_eq!(output[index], input[best]);
                expected[best] += given[index];
            }
            for (gradient, expected) in gradient.iter().zip(&expected) {
                assert!((gradient - expected).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn average_pool_and_its_gradient() {
        let shape = ImageShape { batch: 3, height: 2, width: 5, channels: 7 };
        let input = numbers(shape.len(), 0.0);
        let mut output = vec![0.0; 21];
        average_pool_forward(shape, &input, &mut output);
        for (index, value) in output.iter().enumerate() {
            let (image, channel) = (index / 7, index % 7);
            let expected: f32 =
                (0..10).map(|pixel| input[(image * 10 + pixel) * 7 + channel]).sum::<f32>() / 10.0;
            assert!((value - expected).abs() < 1e-6);
        }
        let mut gradient = vec![0.0; shape.len()];
        average_pool_backward(shape, &output, &mut gradient);
        assert!(gradient.iter().enumerate().all(|(i, &value)| value == output[i / 70 * 7 + i % 7] * 0.1));
    }
}
