//! Batch normalisation over NHWC activations: statistics, the normalise–ReLU–residual pass, and the backward pass.
//!
//! Passes run over flat memory: per-channel coefficients are repeated until their length is a whole number of vectors, so no
//! lane is wasted when the channel count is not a multiple of the vector width.
#![allow(
    clippy::needless_range_loop,
    reason = "register tiles are indexed by constant ranges that must unroll"
)]

use std::ops::Range;

use crate::correlate::Finished;
use crate::isa::Isa;
use crate::pool::{SharedSlice, parallel_for};
use crate::scratch::Scratch;
use crate::simd::{Routine, Simd};

/// Sum and sum of squares around a shift, per channel, of one group of pixels.
pub(crate) struct Partials {
    scratch: Scratch,
    channels: usize,
}

/// Numbers kept per channel and group: shift, sum, sum of squares.
const KEPT: usize = 3;

impl Partials {
    pub(crate) fn new(groups: usize, channels: usize) -> Self {
        Self { scratch: Scratch::take(groups * channels * KEPT), channels }
    }

    pub(crate) fn shared(&mut self) -> SharedSlice<'_, f32> {
        SharedSlice::new(&mut self.scratch)
    }

    /// Mean and biased variance of all groups together; `pixels(group)` is the number of pixels of a group.
    pub(crate) fn combine(&self, pixels: impl Fn(usize) -> usize, mean: &mut [f32], variance: &mut [f32]) {
        let groups = self.scratch.len() / (self.channels * KEPT);
        for channel in 0..self.channels {
            let (mut count, mut total_mean, mut total_square) = (0.0_f64, 0.0_f64, 0.0_f64);
            for group in 0..groups {
                let place = group * self.channels * KEPT + channel;
                let part = |kind: usize| f64::from(self.scratch[place + kind * self.channels]);
                let number = pixels(group) as f64;
                let (shift, sum, square) = (part(0), part(1), part(2));
                let part_mean = shift + sum / number;
                let part_square = (square - sum * sum / number).max(0.0);
                let distance = part_mean - total_mean;
                let together = count + number;
                total_mean += distance * number / together;
                total_square += part_square + distance * distance * count * number / together;
                count = together;
            }
            mean[channel] = total_mean as f32;
            variance[channel] = (total_square / count) as f32;
        }
    }
}

/// Sums of one group over some channels.
pub(crate) struct Statistics<'a> {
    /// Values `[pixels, channels]`, and the part of them to sum.
    pub(crate) finished: Finished<'a>,
    pub(crate) channels: usize,
    pub(crate) partials: SharedSlice<'a, f32>,
}

impl Routine for Statistics<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let mut column = self.finished.columns.start;
        while column < self.finished.columns.end {
            let left = self.finished.columns.end - column;
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

impl Statistics<'_> {
    /// Sums `WIDE` vectors of channels from `column` on, the last of them `last` lanes wide.
    #[inline(always)]
    fn columns_wide<S: Simd, const WIDE: usize>(&self, simd: S, column: usize, last: usize) {
        let channels = self.channels;
        let lanes = |vector: usize| if vector + 1 < WIDE { S::LANES } else { last };
        assert!(self.finished.pixels.end * channels <= self.finished.output.len());
        assert!(column + (WIDE - 1) * S::LANES + last <= channels);
        assert!((self.finished.group + 1) * channels * KEPT <= self.partials.len());
        // SAFETY: pixels and columns lie inside the output, the group inside the partial sums, by the assertions; each group and
        // column is summed by one chunk.
        unsafe {
            let first = self
                .finished
                .output
                .pointer()
                .cast_const()
                .add(self.finished.pixels.start * channels + column);
            let mut shift = [simd.zero(); WIDE];
            for vector in 0..WIDE {
                shift[vector] = simd.load_first(first.add(vector * S::LANES), lanes(vector));
            }
            let (mut sums, mut squares) = ([simd.zero(); WIDE], [simd.zero(); WIDE]);
            for pixel in 0..self.finished.pixels.len() {
                let address = first.add(pixel * channels);
                for vector in 0..WIDE {
                    let value = simd.load_first(address.add(vector * S::LANES), lanes(vector));
                    let value = simd.sub(value, shift[vector]);
                    sums[vector] = simd.add(sums[vector], value);
                    squares[vector] = simd.mul_add(value, value, squares[vector]);
                }
            }
            let place = self.partials.pointer().add(self.finished.group * channels * KEPT + column);
            for vector in 0..WIDE {
                let place = place.add(vector * S::LANES);
                simd.store_first(place, lanes(vector), shift[vector]);
                simd.store_first(place.add(channels), lanes(vector), sums[vector]);
                simd.store_first(place.add(2 * channels), lanes(vector), squares[vector]);
            }
        }
    }
}

/// Numbers handled by one chunk of a flat pass, before rounding up to whole periods.
const FLAT_CHUNK: usize = 32 << 10;

/// Runs `body` over ranges of `length` numbers, each starting at channel 0 and at a whole vector.
pub(crate) fn flat_chunks(length: usize, channels: usize, body: impl Fn(Range<usize>) + Sync) {
    let period = period(channels);
    let chunk = FLAT_CHUNK.div_ceil(period) * period;
    parallel_for(length.div_ceil(chunk), |index| body(index * chunk..((index + 1) * chunk).min(length)));
}

/// The smallest multiple of the channel count that is a whole number of the widest vectors.
fn period(channels: usize) -> usize {
    const WIDEST: usize = crate::simd::MAX_LANES;
    let common = (1 << channels.trailing_zeros()).min(WIDEST);
    channels * (WIDEST / common)
}

/// Per-channel values repeated over one period.
pub(crate) struct Repeated<const COUNT: usize> {
    scratch: Scratch,
    period: usize,
}

impl<const COUNT: usize> Repeated<COUNT> {
    /// Repeats `COUNT` functions of the channel.
    pub(crate) fn new(channels: usize, value: impl Fn(usize) -> [f32; COUNT]) -> Self {
        let period = period(channels);
        let mut scratch = Scratch::take(COUNT * period);
        for channel in 0..channels {
            for (kind, value) in value(channel).into_iter().enumerate() {
                for place in (channel..period).step_by(channels) {
                    scratch[kind * period + place] = value;
                }
            }
        }
        Self { scratch, period }
    }

    #[inline(always)]
    pub(crate) fn period(&self) -> usize {
        self.period
    }

    /// The vectors of all functions at `place`.
    #[inline(always)]
    pub(crate) fn vectors<S: Simd>(&self, simd: S, place: usize) -> [S::Vector; COUNT] {
        assert!(place + S::LANES <= self.period);
        // SAFETY: `place` leaves room for a vector in each of the `COUNT` periods.
        std::array::from_fn(|kind| unsafe {
            simd.load(self.scratch.as_ptr().add(kind * self.period + place))
        })
    }
}

/// `relu((convolved - mean) * factor + shift) + residual`, each part optional, over a flat range.
pub(crate) struct Normalise<'a> {
    /// Mean, factor, shift.
    pub(crate) coefficients: &'a Repeated<3>,
    pub(crate) convolved: *const f32,
    pub(crate) residual: Option<*const f32>,
    pub(crate) output: *mut f32,
    pub(crate) length: usize,
    pub(crate) relu: bool,
    pub(crate) relu_after: bool,
}

impl Routine for Normalise<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        match (self.relu, self.residual.is_some(), self.relu_after) {
            (true, false, _) => self.pass::<S, true, false, false>(simd),
            (false, false, _) => self.pass::<S, false, false, false>(simd),
            (true, true, false) => self.pass::<S, true, true, false>(simd),
            (true, true, true) => self.pass::<S, true, true, true>(simd),
            (false, true, false) => self.pass::<S, false, true, false>(simd),
            (false, true, true) => self.pass::<S, false, true, true>(simd),
        }
    }
}

impl Normalise<'_> {
    #[inline(always)]
    fn pass<S: Simd, const RELU: bool, const RESIDUAL: bool, const AFTER: bool>(self, simd: S) {
        let period = self.coefficients.period();
        let residual = self.residual.unwrap_or(self.convolved);
        let mut place = 0;
        let mut index = 0;
        while index < self.length {
            let count = (self.length - index).min(S::LANES);
            let [mean, factor, shift] = self.coefficients.vectors(simd, place);
            // SAFETY: whoever builds a `Normalise` vouches for `length` numbers behind each pointer.
            unsafe {
                let load = |from: *const f32| {
                    if count == S::LANES {
                        simd.load(from.add(index))
                    } else {
                        simd.load_first(from.add(index), count)
                    }
                };
                let mut value = simd.mul_add(simd.sub(load(self.convolved), mean), factor, shift);
                if RELU {
                    value = simd.max(value, simd.zero());
                }
                if RESIDUAL {
                    value = simd.add(value, load(residual));
                }
                if AFTER {
                    value = simd.max(value, simd.zero());
                }
                if count == S::LANES {
                    simd.store(self.output.add(index), value);
                } else {
                    simd.store_first(self.output.add(index), count, value);
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

/// Runs [`Normalise`] over whole tensors in chunks. `convolved` may be the output itself.
#[expect(clippy::too_many_arguments, reason = "one flat pass with optional parts")]
pub(crate) fn normalise(
    isa: Isa,
    channels: usize,
    coefficients: &Repeated<3>,
    convolved: &[f32],
    residual: Option<&[f32]>,
    relu: bool,
    relu_after: bool,
    output: &mut [f32],
) {
    assert_eq!(convolved.len(), output.len());
    assert!(
        residual.is_none_or(|residual| residual.len() == output.len()),
        "the residual must have the output's shape"
    );
    let shared = SharedSlice::new(output);
    flat_chunks(convolved.len(), channels, |range| {
        // SAFETY: chunks are disjoint.
        let output = unsafe { shared.range(range.start, range.len()) };
        isa.run(Normalise {
            coefficients,
            convolved: convolved[range.clone()].as_ptr(),
            residual: residual.map(|residual| residual[range.clone()].as_ptr()),
            output: output.as_mut_ptr(),
            length: range.len(),
            relu,
            relu_after,
        });
    });
}
