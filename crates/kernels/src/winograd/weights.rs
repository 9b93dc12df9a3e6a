//! Weights at the 36 points.

use std::ops::Range;

use super::transform::{POINTS, weight_tile};
use crate::geometry::ConvGeometry;
use crate::isa::Isa;
use crate::panel::Panels;
use crate::pool::{SharedSlice, parallel_for};
use crate::scratch::Scratch;
use crate::simd::{MAX_LANES, Routine, Simd, prefetch};

/// A 3×3 weight matrix seen as taps of `[inputs, outputs]`: as stored, or, for the gradient of the input, turned by half a
/// circle with inputs and outputs exchanged.
#[derive(Clone, Copy)]
pub(crate) struct Weights<'a> {
    pub(crate) data: &'a [f32],
    /// Channels that are summed over.
    pub(crate) inputs: usize,
    /// Channels that come out.
    pub(crate) outputs: usize,
    pub(crate) turned: bool,
}

impl<'a> Weights<'a> {
    pub(crate) fn forward(geometry: &ConvGeometry, data: &'a [f32]) -> Self {
        Self { data, inputs: geometry.channels_in, outputs: geometry.channels_out, turned: false }
    }

    pub(crate) fn backward(geometry: &ConvGeometry, data: &'a [f32]) -> Self {
        Self { data, inputs: geometry.channels_out, outputs: geometry.channels_in, turned: true }
    }
}

/// Transforms some inputs and outputs into `target`, `[point, input, width]` with `stride` numbers from a point to the next.
pub(crate) struct WeightsToPoints<'a> {
    pub(crate) weights: Weights<'a>,
    pub(crate) inputs: Range<usize>,
    pub(crate) outputs: Range<usize>,
    /// Numbers of an input's row: whole vectors that hold the outputs.
    pub(crate) width: usize,
    pub(crate) stride: usize,
    /// Place of the first input.
    pub(crate) target: *mut f32,
}

impl Routine for WeightsToPoints<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Weights { data, inputs, outputs, turned } = self.weights;
        assert!(
            data.len() == 9 * inputs * outputs && self.inputs.end <= inputs && self.outputs.end <= outputs
        );
        if turned {
            let (rows, width) = (self.inputs.len(), self.width);
            let mut taps = Scratch::take(9 * rows * width);
            for tap in 0..9 {
                self.transpose_tap(simd, tap, &mut taps[(8 - tap) * rows * width..(9 - tap) * rows * width]);
            }
            // SAFETY: the scratch holds nine taps of `rows` rows, readable for a vector past its end.
            unsafe { self.transform(simd, taps.as_ptr(), rows * width, width) };
        } else {
            let first = self.inputs.start * outputs + self.outputs.start;
            // SAFETY: the nine taps hold the inputs and outputs by the assertion above.
            unsafe { self.transform(simd, data.as_ptr().add(first), inputs * outputs, outputs) };
        }
    }
}

impl WeightsToPoints<'_> {
    /// Copies one tap transposed: rows are inputs, columns are outputs.
    #[inline(always)]
    fn transpose_tap<S: Simd>(&self, simd: S, tap: usize, target: &mut [f32]) {
        let (inputs, outputs) = (self.weights.inputs, self.weights.outputs);
        let data = &self.weights.data[tap * inputs * outputs..(tap + 1) * inputs * outputs];
        let (rows, columns) = (self.inputs.len(), self.outputs.len());
        let (whole_rows, whole_columns) = (rows / 8 * 8, columns / 8 * 8);
        for column in (0..whole_columns).step_by(8) {
            for row in (0..whole_rows).step_by(8) {
                let place = (self.outputs.start + column) * inputs + self.inputs.start + row;
                assert!(
                    place + 7 * inputs + 8 <= data.len()
                        && (row + 7) * self.width + column + 8 <= target.len()
                );
                // SAFETY: both 8×8 blocks lie inside the slices by the assertion.
                unsafe {
                    let target = target.as_mut_ptr().add(row * self.width + column);
                    simd.transpose8(data.as_ptr().add(place), inputs, target, self.width);
                }
            }
        }
        for row in 0..rows {
            let done = if row < whole_rows { whole_columns } else { 0 };
            for column in done..columns {
                let place = (self.outputs.start + column) * inputs + self.inputs.start + row;
                target[row * self.width + column] = data[place];
            }
        }
    }

    /// # Safety
    /// `taps` must be readable for nine taps of the inputs' rows, each holding the outputs.
    #[inline(always)]
    unsafe fn transform<S: Simd>(&self, simd: S, taps: *const f32, tap_stride: usize, row_stride: usize) {
        for row in 0..self.inputs.len() {
            for tap in 0..9 {
                for line in (0..self.width).step_by(MAX_LANES) {
                    prefetch(taps.wrapping_add((row + PREFETCH_ROWS) * row_stride + tap * tap_stride + line));
                }
            }
            let mut column = 0;
            while column < self.width {
                let count = self.outputs.len().saturating_sub(column).min(S::LANES);
                let source = taps.wrapping_add(row * row_stride + column);
                let target = self.target.wrapping_add(row * self.width + column);
                // SAFETY: the caller vouches for the taps; whoever builds this routine vouches for the target.
                let load = |tap: usize| unsafe {
                    let source = source.wrapping_add(tap * tap_stride);
                    if count == S::LANES { simd.load(source) } else { simd.load_first(source, count) }
                };
                // SAFETY: as above.
                weight_tile(simd, load, |point, value| unsafe {
                    simd.store(target.add(point * self.stride), value);
                });
                column += S::LANES;
            }
        }
    }
}

/// Rows of weights asked for ahead of their use; rows are too far apart for the processor to guess them.
const PREFETCH_ROWS: usize = 8;

/// All weights at the points, `[panel][point][input][width]`.
pub(crate) struct PointWeights {
    scratch: Scratch,
    inputs: usize,
}

/// Numbers from a point to the next when each has `rows` rows of `width` numbers: an odd number of cache lines, so that the 36
/// places of a weight do not compete for the same cache set.
pub(crate) fn point_stride(rows: usize, width: usize) -> usize {
    let lines = (rows * width).div_ceil(MAX_LANES);
    (lines + 1 - lines % 2) * MAX_LANES
}

/// Inputs transformed by one chunk.
const CHUNK: usize = 16;

impl PointWeights {
    pub(crate) fn new(isa: Isa, weights: Weights<'_>, panels: &Panels) -> Self {
        let inputs = weights.inputs;
        let mut scratch =
            Scratch::take(POINTS * (panels.packed_len(inputs) + panels.count() * 2 * MAX_LANES));
        let shared = SharedSlice::new(&mut scratch);
        let blocks = inputs.div_ceil(CHUNK);
        parallel_for(blocks * panels.count(), |chunk| {
            let (panel, block) = (chunk / blocks, chunk % blocks);
            let range = block * CHUNK..((block + 1) * CHUNK).min(inputs);
            let width = panels.width(panel);
            let start = Self::offset(panels, panel, inputs) + range.start * width;
            isa.run(WeightsToPoints {
                weights,
                inputs: range,
                outputs: panels.columns(panel),
                width,
                stride: point_stride(inputs, width),
                target: shared.pointer().wrapping_add(start),
            });
        });
        Self { scratch, inputs }
    }

    /// Where a panel starts, leaving room for its point strides.
    fn offset(panels: &Panels, panel: usize, inputs: usize) -> usize {
        POINTS * (panels.offset(panel, inputs) + panel * 2 * MAX_LANES)
    }

    /// The rows of one panel at one point.
    #[inline(always)]
    pub(crate) fn rows(&self, panels: &Panels, panel: usize, point: usize) -> &[f32] {
        let width = panels.width(panel);
        let start = Self::offset(panels, panel, self.inputs) + point * point_stride(self.inputs, width);
        &self.scratch[start..start + self.inputs * width]
    }
}
