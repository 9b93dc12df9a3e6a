//! The backward pass of batch normalisation with batch statistics and ReLU.
//!
//! With g the gradient after the ReLU mask and x̂ the normalised value, the two per-channel sums Σg and Σg·x̂ are the gradients of
//! shift and scale, and the gradient of the convolution's output is factor · (g − mean(g) − x̂ · mean(g·x̂)).
#![allow(
    clippy::needless_range_loop,
    reason = "register tiles are indexed by constant ranges that must unroll"
)]

use std::ops::Range;

use crate::batch_norm::{Repeated, flat_chunks};
use crate::isa::Isa;
use crate::pool::{SharedSlice, parallel_for};
use crate::scratch::Scratch;
use crate::simd::{Routine, Simd};

/// What the forward pass left for the backward pass of a normalisation.
#[derive(Clone, Copy)]
pub(crate) struct Normalised<'a> {
    /// `[pixels, channels]`.
    pub(crate) convolved: &'a [f32],
    pub(crate) mean: &'a [f32],
    pub(crate) inverse_deviation: &'a [f32],
    pub(crate) scale: &'a [f32],
    pub(crate) shift: &'a [f32],
    pub(crate) relu: bool,
}

impl Normalised<'_> {
    fn channels(&self) -> usize {
        self.mean.len()
    }

    fn factor(&self, channel: usize) -> f32 {
        self.scale[channel] * self.inverse_deviation[channel]
    }
}

/// Pixels summed by one chunk at least, and the number of chunks aimed for.
const MIN_PIXELS: usize = 64;
const CHUNKS: usize = 32;

/// Σg and Σg·(z − mean) over some pixels and all channels; masks the gradient by the block's output, in place, if asked.
struct Sums<'a> {
    saved: Normalised<'a>,
    /// The pixels' own part of it may be written.
    gradient: SharedSlice<'a, f32>,
    /// Output of the block, when a ReLU follows the residual.
    after: Option<&'a [f32]>,
    pixels: Range<usize>,
    /// `[2, channels]`.
    sums: &'a mut [f32],
}

impl Routine for Sums<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        let channels = self.saved.channels();
        let mut column = 0;
        while column < channels {
            let left = channels - column;
            if left >= 4 * S::LANES {
                self.columns_wide::<S, 4>(simd, column, S::LANES);
                column += 4 * S::LANES;
            } else if left > S::LANES {
                self.columns_wide::<S, 2>(simd, column, (left - S::LANES).min(S::LANES));
                column += 2 * S::LANES;
            } else {
                self.columns_wide::<S, 1>(simd, column, left);
                column += S::LANES;
            }
        }
    }
}

impl Sums<'_> {
    #[inline(always)]
    fn columns_wide<S: Simd, const WIDE: usize>(&mut self, simd: S, column: usize, last: usize) {
        let channels = self.saved.channels();
        let lanes = |vector: usize| if vector + 1 < WIDE { S::LANES } else { last };
        assert!(self.pixels.end * channels <= self.saved.convolved.len().min(self.gradient.len()));
        assert!(column + (WIDE - 1) * S::LANES + last <= channels && self.sums.len() == 2 * channels);
        let (mut mean, mut factor, mut shift) =
            ([simd.zero(); WIDE], [simd.zero(); WIDE], [simd.zero(); WIDE]);
        let (mut sums, mut products) = ([simd.zero(); WIDE], [simd.zero(); WIDE]);
        // SAFETY: pixels and columns lie inside every slice by the assertions, here and in `backward`.
        unsafe {
            for vector in 0..WIDE {
                let (place, count) = (column + vector * S::LANES, lanes(vector));
                let inverse = simd.load_first(self.saved.inverse_deviation.as_ptr().add(place), count);
                mean[vector] = simd.load_first(self.saved.mean.as_ptr().add(place), count);
                factor[vector] =
                    simd.mul(simd.load_first(self.saved.scale.as_ptr().add(place), count), inverse);
                shift[vector] = simd.load_first(self.saved.shift.as_ptr().add(place), count);
            }
            for pixel in self.pixels.clone() {
                for vector in 0..WIDE {
                    let (place, count) = (pixel * channels + column + vector * S::LANES, lanes(vector));
                    let value = simd.load_first(self.saved.convolved.as_ptr().add(place), count);
                    let centred = simd.sub(value, mean[vector]);
                    let source = self.gradient.pointer().add(place);
                    let mut gradient = simd.load_first(source, count);
                    if let Some(output) = self.after {
                        gradient =
                            simd.where_positive(simd.load_first(output.as_ptr().add(place), count), gradient);
                        simd.store_first(source, count, gradient);
                    }
                    if self.saved.relu {
                        let before = simd.mul_add(centred, factor[vector], shift[vector]);
                        gradient = simd.where_positive(before, gradient);
                    }
                    sums[vector] = simd.add(sums[vector], gradient);
                    products[vector] = simd.mul_add(gradient, centred, products[vector]);
                }
            }
            for vector in 0..WIDE {
                let place = column + vector * S::LANES;
                simd.store_first(self.sums.as_mut_ptr().add(place), lanes(vector), sums[vector]);
                simd.store_first(
                    self.sums.as_mut_ptr().add(channels + place),
                    lanes(vector),
                    products[vector],
                );
            }
        }
    }
}

/// `factor · g + slope · (z − mean) + offset` over a flat range.
struct Spread<'a> {
    /// Mean, factor, shift, slope, offset.
    coefficients: &'a Repeated<5>,
    convolved: &'a [f32],
    gradient: &'a [f32],
    relu: bool,
    target: &'a mut [f32],
}

impl Routine for Spread<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let length = self.target.len();
        assert!(self.convolved.len() == length && self.gradient.len() == length);
        let period = self.coefficients.period();
        let (mut index, mut place) = (0, 0);
        while index < length {
            let count = (length - index).min(S::LANES);
            let [mean, factor, shift, slope, offset] = self.coefficients.vectors(simd, place);
            // SAFETY: `index + count` is at most the length of all three slices.
            unsafe {
                let load = |from: &[f32]| {
                    let from = from.as_ptr().add(index);
                    if count == S::LANES { simd.load(from) } else { simd.load_first(from, count) }
                };
                let centred = simd.sub(load(self.convolved), mean);
                let mut gradient = load(self.gradient);
                if self.relu {
                    gradient = simd.where_positive(simd.mul_add(centred, factor, shift), gradient);
                }
                let value = simd.mul_add(gradient, factor, simd.mul_add(centred, slope, offset));
                if count == S::LANES {
                    simd.store(self.target.as_mut_ptr().add(index), value);
                } else {
                    simd.store_first(self.target.as_mut_ptr().add(index), count, value);
                }
            }
            index += S::LANES;
            place += S::LANES;
            if place == period {
                place = 0;
            }
        }
    }
}

/// Gradients of scale and shift, each `[channels]`; returns the gradient of the convolution's output `[pixels, channels]`.
///
/// `after` is the block's output when a ReLU follows the residual; the output's gradient is then masked by it, in place.
pub(crate) fn backward(
    isa: Isa,
    saved: Normalised<'_>,
    output_gradient: &mut [f32],
    after: Option<&[f32]>,
    scale_gradient: &mut [f32],
    shift_gradient: &mut [f32],
) -> Scratch {
    let channels = saved.channels();
    let length = saved.convolved.len();
    let pixels = length / channels;
    assert!(length == pixels * channels && output_gradient.len() == length);
    for vector in [saved.inverse_deviation, saved.scale, saved.shift, scale_gradient, shift_gradient] {
        assert_eq!(vector.len(), channels, "batch-norm vectors have one number a channel");
    }
    assert!(after.is_none_or(|output| output.len() == length));
    let each = pixels.div_ceil(CHUNKS).max(MIN_PIXELS);
    let chunks = pixels.div_ceil(each);
    let mut sums = Scratch::take(chunks * 2 * channels);
    let shared = SharedSlice::new(&mut sums);
    let gradient = SharedSlice::new(output_gradient);
    parallel_for(chunks, |chunk| {
        let pixels = chunk * each..((chunk + 1) * each).min(pixels);
        // SAFETY: every chunk has its own sums.
        let sums = unsafe { shared.range(chunk * 2 * channels, 2 * channels) };
        isa.run(Sums { saved, gradient, after, pixels, sums });
    });
    let total =
        |place: usize| -> f64 { sums.chunks_exact(2 * channels).map(|sums| f64::from(sums[place])).sum() };
    for channel in 0..channels {
        shift_gradient[channel] = total(channel) as f32;
        scale_gradient[channel] =
            (total(channels + channel) * f64::from(saved.inverse_deviation[channel])) as f32;
    }
    spread(isa, saved, output_gradient, scale_gradient, shift_gradient)
}

/// The gradient of the convolution's output, given the two sums.
fn spread(
    isa: Isa,
    saved: Normalised<'_>,
    gradient: &[f32],
    scale_sum: &[f32],
    shift_sum: &[f32],
) -> Scratch {
    let (channels, length) = (saved.channels(), saved.convolved.len());
    let pixels = (length / channels) as f32;
    let coefficients = Repeated::<5>::new(channels, |channel| {
        let factor = saved.factor(channel);
        let slope = -factor * saved.inverse_deviation[channel] * scale_sum[channel] / pixels;
        let offset = -factor * shift_sum[channel] / pixels;
        [saved.mean[channel], factor, saved.shift[channel], slope, offset]
    });
    let mut result = Scratch::take(length);
    let shared = SharedSlice::new(&mut result);
    flat_chunks(length, channels, |range| {
        // SAFETY: chunks are disjoint.
        let target = unsafe { shared.range(range.start, range.len()) };
        isa.run(Spread {
            coefficients: &coefficients,
            convolved: &saved.convolved[range.clone()],
            gradient: &gradient[range],
            relu: saved.relu,
            target,
        });
    });
    result
}
