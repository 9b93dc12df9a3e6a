//! A 3×3 convolution of every channel by itself, added to what it convolves: y = x + k ∗ x, with zeros around the image.
//!
//! The kernel is `[9, channels]`, a row for each kernel row and column. The gradient of x is the same operation on the
//! gradient of y with the kernel turned round. A kernel of zeros gives back x.

use crate::isa::Isa;
use crate::pool::{SharedSlice, parallel_for};
use crate::pooling::ImageShape;
use crate::simd::{Routine, Simd};

/// Places of a kernel.
const TAPS: usize = 9;

/// `output = input + kernel ∗ input`: `input` and `output` have `shape`, `kernel` is `[9, channels]`.
///
/// # Panics
/// When a slice does not have the length its shape says.
pub fn depthwise_add_forward(shape: ImageShape, input: &[f32], kernel: &[f32], output: &mut [f32]) {
    assert!(
        input.len() == shape.len() && output.len() == shape.len() && kernel.len() == TAPS * shape.channels,
        "operands do not fit {shape:?}"
    );
    let isa = Isa::active();
    let line = shape.width * shape.channels;
    let shared = SharedSlice::new(output);
    parallel_for(shape.batch * shape.height, |index| {
        // SAFETY: rows of the output are disjoint.
        let output = unsafe { shared.range(index * line, line) };
        let (image, row) = (index / shape.height, index % shape.height);
        isa.run(Row { shape, input: of_image(shape, input, image), kernel, row, output });
    });
}

/// The gradient of the input under the gradient of the output, both of `shape`.
///
/// # Panics
/// When a slice does not have the length its shape says.
pub fn depthwise_add_backward(
    shape: ImageShape,
    kernel: &[f32],
    output_gradient: &[f32],
    gradient: &mut [f32],
) {
    let turned: Vec<f32> = kernel.chunks_exact(shape.channels).rev().flatten().copied().collect();
    depthwise_add_forward(shape, output_gradient, &turned, gradient);
}

/// The gradient of the kernel, `[9, channels]`: `input` and `output_gradient` have `shape`. Images are summed in order.
///
/// # Panics
/// When a slice does not have the length its shape says.
pub fn depthwise_kernel_gradient(
    shape: ImageShape,
    input: &[f32],
    output_gradient: &[f32],
    gradient: &mut [f32],
) {
    let length = TAPS * shape.channels;
    assert!(
        input.len() == shape.len() && output_gradient.len() == shape.len() && gradient.len() == length,
        "operands do not fit {shape:?}"
    );
    let isa = Isa::active();
    let mut parts = vec![0.0; shape.batch * length];
    let shared = SharedSlice::new(&mut parts);
    parallel_for(shape.batch, |image| {
        // SAFETY: the parts of images are disjoint.
        let part = unsafe { shared.range(image * length, length) };
        let [input, output_gradient] =
            [input, output_gradient].map(|numbers| of_image(shape, numbers, image));
        isa.run(KernelPart { shape, input, output_gradient, part });
    });
    gradient.fill(0.0);
    for part in parts.chunks_exact(length) {
        gradient.iter_mut().zip(part).for_each(|(sum, number)| *sum += number);
    }
}

fn of_image(shape: ImageShape, numbers: &[f32], image: usize) -> &[f32] {
    let length = shape.len() / shape.batch;
    &numbers[image * length..][..length]
}

/// The row of the image that a row of taps looks at from `row`, if there is one.
fn source_row(row: usize, tap: usize, height: usize) -> Option<usize> {
    (row + tap / 3).checked_sub(1).filter(|&source| source < height)
}

/// Where, in a line of that many numbers, the pixels lie that a column of taps is looking from, and those it looks at.
fn columns(tap: usize, channels: usize, line: usize) -> [std::ops::Range<usize>; 2] {
    match tap % 3 {
        0 => [channels..line, 0..line - channels],
        1 => [0..line, 0..line],
        _ => [0..line - channels, channels..line],
    }
}

struct Row<'a> {
    shape: ImageShape,
    /// The image.
    input: &'a [f32],
    kernel: &'a [f32],
    row: usize,
    output: &'a mut [f32],
}

impl Routine for Row<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let ImageShape { height, width, channels, .. } = self.shape;
        let line = width * channels;
        self.output.copy_from_slice(&self.input[self.row * line..][..line]);
        for (tap, weights) in self.kernel.chunks_exact(channels).enumerate() {
            let Some(row) = source_row(self.row, tap, height) else { continue };
            let [to, from] = columns(tap, channels, line);
            let source = &self.input[row * line..][from];
            for (sum, source) in self.output[to].chunks_exact_mut(channels).zip(source.chunks_exact(channels))
            {
                for ((sum, source), weight) in sum.iter_mut().zip(source).zip(weights) {
                    *sum += source * weight;
                }
            }
        }
    }
}

struct KernelPart<'a> {
    shape: ImageShape,
    /// The image.
    input: &'a [f32],
    output_gradient: &'a [f32],
    part: &'a mut [f32],
}

impl Routine for KernelPart<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let ImageShape { height, width, channels, .. } = self.shape;
        let line = width * channels;
        for row in 0..height {
            let given = &self.output_gradient[row * line..][..line];
            for (tap, sums) in self.part.chunks_exact_mut(channels).enumerate() {
                let Some(row) = source_row(row, tap, height) else { continue };
                let [to, from] = columns(tap, channels, line);
                let source = &self.input[row * line..][from];
                for (given, source) in given[to].chunks_exact(channels).zip(source.chunks_exact(channels)) {
                    for ((sum, source), given) in sums.iter_mut().zip(source).zip(given) {
                        *sum += source * given;
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{pool::scope_threads, reference::numbers};

    /// By definition, in double precision.
    fn expected(shape: ImageShape, input: &[f32], kernel: &[f32]) -> Vec<f64> {
        let ImageShape { height, width, channels, .. } = shape;
        let number = |index: usize| {
            let (channel, pixel) = (index % channels, index / channels);
            let (column, row) = (pixel % width, pixel / width % height);
            let image = pixel / width / height;
            let mut sum = f64::from(input[index]);
            for tap in 0..TAPS {
                let (y, x) = ((row + tap / 3).wrapping_sub(1), (column + tap % 3).wrapping_sub(1));
                if y < height && x < width {
                    let source = input[((image * height + y) * width + x) * channels + channel];
                    sum += f64::from(source) * f64::from(kernel[tap * channels + channel]);
                }
            }
            sum
        };
        (0..shape.len()).map(number).collect()
    }

    const SHAPES: [[usize; 4]; 5] = [[2, 5, 7, 3], [1, 1, 1, 4], [3, 4, 1, 20], [1, 1, 6, 2], [2, 8, 8, 33]];

    fn shapes() -> impl Iterator<Item = ImageShape> {
        SHAPES.into_iter().map(|[batch, height, width, channels]| ImageShape {
            batch,
            height,
            width,
            channels,
        })
    }

    fn product(one: &[f32], other: &[f32]) -> f64 {
        one.iter().zip(other).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    }

    #[test]
    fn every_channel_is_convolved_by_itself_and_added() {
        for shape in shapes() {
            let (input, kernel) = (numbers(shape.len(), 3), numbers(TAPS * shape.channels, 5));
            let mut output = vec![0.0; shape.len()];
            depthwise_add_forward(shape, &input, &kernel, &mut output);
            for (found, expected) in output.iter().zip(expected(shape, &input, &kernel)) {
                assert!((f64::from(*found) - expected).abs() < 1e-5, "{shape:?}: {found} for {expected}");
            }
            depthwise_add_forward(shape, &input, &vec![0.0; kernel.len()], &mut output);
            assert_eq!(output, input, "a kernel of zeros changes nothing");
        }
    }

    /// ⟨g, y(x, k)⟩ is linear in x and, less ⟨g, x⟩, in k: its gradients give it back.
    #[test]
    fn gradients_are_those_of_a_product() {
        for shape in shapes() {
            let (input, kernel) = (numbers(shape.len(), 3), numbers(TAPS * shape.channels, 5));
            let given = numbers(shape.len(), 7);
            let mut output = vec![0.0; shape.len()];
            depthwise_add_forward(shape, &input, &kernel, &mut output);
            let value = product(&given, &output);
            let mut gradient = vec![0.0; shape.len()];
            depthwise_add_backward(shape, &kernel, &given, &mut gradient);
            assert!((product(&gradient, &input) - value).abs() < 1e-3, "{shape:?}");
            let mut gradient = vec![1.0; kernel.len()];
            depthwise_kernel_gradient(shape, &input, &given, &mut gradient);
            assert!(
                (product(&gradient, &kernel) + product(&given, &input) - value).abs() < 1e-3,
                "{shape:?}"
            );
        }
    }

    #[test]
    fn any_number_of_threads_gives_the_same_bits() {
        for shape in shapes() {
            let (input, kernel) = (numbers(shape.len(), 3), numbers(TAPS * shape.channels, 5));
            let [one, two, four] = [1, 2, 4].map(|threads| {
                scope_threads(threads, || {
                    let mut output = vec![0.0; shape.len()];
                    depthwise_add_forward(shape, &input, &kernel, &mut output);
                    let mut gradient = vec![0.0; kernel.len()];
                    depthwise_kernel_gradient(shape, &input, &output, &mut gradient);
                    (output, gradient)
                })
            });
            assert!(one == two && one == four, "{shape:?}");
        }
    }
}
