//! From products at the points to finished outputs.
#![allow(
    clippy::needless_range_loop,
    reason = "register tiles are indexed by constant ranges that must unroll"
)]

use std::ops::Range;

use super::grid::{PointLayout, TileGrid};
use super::transform::{SIDE, output_tile};
use crate::pool::SharedSlice;
use crate::simd::{Routine, Simd};

/// What happens to an output before it is stored.
#[derive(Clone, Copy)]
pub(crate) enum Ending<'a> {
    /// Nothing.
    Plain,
    /// It is stored and counted in the sums of its group, `[group][shift, sum, sum of squares][channel]`.
    Statistics(SharedSlice<'a, f32>),
    /// Scale and shift, ReLU, residual, ReLU, as in [`crate::evaluate::conv_evaluate`].
    Complete { scale: &'a [f32], shift: &'a [f32], relu: bool, residual: Option<&'a [f32]>, relu_after: bool },
}

/// Transforms some tiles and channels back and stores them.
pub(crate) struct FromPoints<'a> {
    pub(crate) grid: TileGrid,
    pub(crate) tiles: Range<usize>,
    pub(crate) products: &'a [f32],
    pub(crate) layout: PointLayout,
    /// The channels that the products hold.
    pub(crate) columns: Range<usize>,
    /// Channels of the output.
    pub(crate) channels: usize,
    pub(crate) output: SharedSlice<'a, f32>,
    pub(crate) group: usize,
    pub(crate) ending: Ending<'a>,
}

impl Routine for FromPoints<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let pixels = self.grid.batch * self.grid.height * self.grid.width;
        assert!(self.output.len() == pixels * self.channels && self.columns.end <= self.channels);
        assert!(self.products.len() >= self.layout.len() && self.tiles.end <= self.grid.tiles());
        match self.ending {
            Ending::Plain => {}
            Ending::Statistics(sums) => assert!(sums.len() >= (self.group + 1) * 3 * self.channels),
            Ending::Complete { scale, shift, residual, .. } => {
                assert!(scale.len() == self.channels && shift.len() == self.channels);
                assert!(residual.is_none_or(|residual| residual.len() == self.output.len()));
            }
        }
        let mut column = self.columns.start;
        while column < self.columns.end {
            let count = (self.columns.end - column).min(S::LANES);
            match self.ending {
                Ending::Plain => self.plain(simd, column, count),
                Ending::Statistics(sums) => self.statistics(simd, column, count, sums),
                Ending::Complete { .. } => self.complete(simd, column, count),
            }
            column += S::LANES;
        }
    }
}

/// The outputs of one tile and one vector of channels.
struct Outputs<S: Simd> {
    values: [S::Vector; SIDE * SIDE],
    /// Place of the first in the output.
    place: usize,
    /// Rows and columns that exist.
    extent: (usize, usize),
}

impl FromPoints<'_> {
    #[inline(always)]
    fn outputs<S: Simd>(&self, simd: S, position: usize, column: usize) -> Outputs<S> {
        let (image, row, first) = self.grid.tile(self.tiles.start + position);
        let start = position * self.layout.pitch + column - self.columns.start;
        // SAFETY: the layout holds whole vectors for every tile and point, and the products are as long as it.
        let load = |point: usize| unsafe {
            simd.load(self.products.as_ptr().add(point * self.layout.stride + start))
        };
        let mut values = [simd.zero(); SIDE * SIDE];
        output_tile(simd, load, |index, value| values[index] = value);
        let place = ((image * self.grid.height + row) * self.grid.width + first) * self.channels + column;
        Outputs { values, place, extent: self.grid.extent(row, first) }
    }

    #[inline(always)]
    fn store<S: Simd>(&self, simd: S, place: usize, count: usize, value: S::Vector) {
        // SAFETY: places come from `outputs` and lie inside the output, as `run` checked; each belongs to one chunk.
        unsafe {
            let target = self.output.pointer().add(place);
            if count == S::LANES { simd.store(target, value) } else { simd.store_first(target, count, value) }
        }
    }

    #[inline(always)]
    fn plain<S: Simd>(&self, simd: S, column: usize, count: usize) {
        for position in 0..self.tiles.len() {
            let Outputs { values, place, extent } = self.outputs(simd, position, column);
            let pitch = self.grid.width * self.channels;
            if extent == (SIDE, SIDE) {
                for row in 0..SIDE {
                    for column in 0..SIDE {
                        self.store(
                            simd,
                            place + row * pitch + column * self.channels,
                            count,
                            values[row * SIDE + column],
                        );
                    }
                }
                continue;
            }
            for row in 0..extent.0 {
                for column in 0..extent.1 {
                    self.store(
                        simd,
                        place + row * pitch + column * self.channels,
                        count,
                        values[row * SIDE + column],
                    );
                }
            }
        }
    }

    #[inline(always)]
    fn statistics<S: Simd>(&self, simd: S, column: usize, count: usize, sums: SharedSlice<'_, f32>) {
        let shift = self.outputs(simd, 0, column).values[0];
        let (mut sum, mut square) = ([simd.zero(); SIDE], [simd.zero(); SIDE]);
        for position in 0..self.tiles.len() {
            let Outputs { values, place, extent } = self.outputs(simd, position, column);
            let pitch = self.grid.width * self.channels;
            if extent == (SIDE, SIDE) {
                for row in 0..SIDE {
                    for column in 0..SIDE {
                        let value = values[row * SIDE + column];
                        let distance = simd.sub(value, shift);
                        sum[column] = simd.add(sum[column], distance);
                        square[column] = simd.mul_add(distance, distance, square[column]);
                        self.store(simd, place + row * pitch + column * self.channels, count, value);
                    }
                }
                continue;
            }
            for row in 0..extent.0 {
                for column in 0..extent.1 {
                    let value = values[row * SIDE + column];
                    let distance = simd.sub(value, shift);
                    sum[0] = simd.add(sum[0], distance);
                    square[0] = simd.mul_add(distance, distance, square[0]);
                    self.store(simd, place + row * pitch + column * self.channels, count, value);
                }
            }
        }
        let total =
            |parts: [S::Vector; SIDE]| simd.add(simd.add(parts[0], parts[1]), simd.add(parts[2], parts[3]));
        let place = self.group * 3 * self.channels + column;
        for (kind, value) in [shift, total(sum), total(square)].into_iter().enumerate() {
            // SAFETY: `run` checked that the group's sums exist; each group and column belongs to one chunk.
            unsafe { simd.store_first(sums.pointer().add(place + kind * self.channels), count, value) };
        }
    }

    #[inline(always)]
    fn complete<S: Simd>(&self, simd: S, column: usize, count: usize) {
        let Ending::Complete { scale, shift, relu, residual, relu_after } = self.ending else { return };
        let least = |on: bool| simd.splat(if on { 0.0 } else { f32::NEG_INFINITY });
        let (least, least_after) = (least(relu), least(relu_after));
        // SAFETY: scale and shift have a number for each channel, as `run` checked.
        let [scale, shift] =
            [scale, shift].map(|vector| unsafe { simd.load_first(vector.as_ptr().add(column), count) });
        for position in 0..self.tiles.len() {
            let Outputs { values, place, extent } = self.outputs(simd, position, column);
            for row in 0..extent.0 {
                for column in 0..extent.1 {
                    let place = place + (row * self.grid.width + column) * self.channels;
                    let mut value = simd.max(simd.mul_add(values[row * SIDE + column], scale, shift), least);
                    if let Some(residual) = residual {
                        // SAFETY: the residual has a number for each output, as `run` checked.
                        let residual = unsafe { simd.load_first(residual.as_ptr().add(place), count) };
                        value = simd.max(simd.add(value, residual), least_after);
                    }
                    self.store(simd, place, count, value);
                }
            }
        }
    }
}
