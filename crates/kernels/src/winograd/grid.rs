//! The tiles of a batch of images, and moving tiles between images and points.
#![allow(
    clippy::needless_range_loop,
    reason = "register tiles are indexed by constant ranges that must unroll"
)]

use std::ops::Range;

use super::transform::{POINTS, SIDE, SPAN, gradient_tile, input_tile};
use crate::geometry::ConvGeometry;
use crate::simd::{MAX_LANES, Routine, Simd};

/// The 4×4 tiles that cover every image of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TileGrid {
    pub(crate) batch: usize,
    pub(crate) height: usize,
    pub(crate) width: usize,
    rows: usize,
    columns: usize,
}

impl TileGrid {
    pub(crate) fn new(geometry: &ConvGeometry) -> Self {
        let ConvGeometry { batch, height, width, .. } = *geometry;
        Self { batch, height, width, rows: height.div_ceil(SIDE), columns: width.div_ceil(SIDE) }
    }

    /// Tiles of the whole batch.
    pub(crate) fn tiles(&self) -> usize {
        self.batch * self.rows * self.columns
    }

    /// The image of a tile, and its first row and column.
    #[inline(always)]
    pub(crate) fn tile(&self, index: usize) -> (usize, usize, usize) {
        let (row, column) = (index / self.columns, index % self.columns);
        (row / self.rows, row % self.rows * SIDE, column * SIDE)
    }

    /// Output rows and columns of a tile that exist.
    #[inline(always)]
    pub(crate) fn extent(&self, row: usize, column: usize) -> (usize, usize) {
        ((self.height - row).min(SIDE), (self.width - column).min(SIDE))
    }

    /// Pixels covered by some tiles.
    pub(crate) fn pixels(&self, tiles: Range<usize>) -> usize {
        let size = |index| {
            let (_, row, column) = self.tile(index);
            let (rows, columns) = self.extent(row, column);
            rows * columns
        };
        tiles.map(size).sum()
    }
}

/// The layout of one number per (point, tile, channel). Points are kept apart by an odd number of cache lines so that the
/// 36 places of a tile do not compete for the same cache set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointLayout {
    /// Numbers from a tile to the next.
    pub(crate) pitch: usize,
    /// Numbers from a point to the next.
    pub(crate) stride: usize,
}

impl PointLayout {
    pub(crate) fn new(tiles: usize, channels: usize) -> Self {
        let pitch = channels.next_multiple_of(MAX_LANES);
        let lines = tiles * pitch / MAX_LANES;
        Self { pitch, stride: (lines + 1 - lines % 2) * MAX_LANES }
    }

    /// Numbers of all points.
    pub(crate) fn len(&self) -> usize {
        POINTS * self.stride
    }
}

/// Transforms the tiles `tiles` of images `[batch, height, width, channels]` into `points`.
pub(crate) struct ToPoints<'a, const GRADIENT: bool> {
    pub(crate) grid: TileGrid,
    pub(crate) tiles: Range<usize>,
    pub(crate) images: &'a [f32],
    pub(crate) channels: usize,
    /// A pixel's worth of zeros.
    pub(crate) zeros: &'a [f32],
    pub(crate) layout: PointLayout,
    /// Where the first of `tiles` goes.
    pub(crate) points: *mut f32,
}

impl<const GRADIENT: bool> Routine for ToPoints<'_, GRADIENT> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        assert!(self.images.len() == self.grid.batch * self.grid.height * self.grid.width * self.channels);
        assert!(self.zeros.len() >= self.channels && self.tiles.end <= self.grid.tiles());
        for (position, tile) in self.tiles.clone().enumerate() {
            let sources = self.sources(tile);
            let target = self.points.wrapping_add(position * self.layout.pitch);
            let mut channel = 0;
            while channel < self.channels {
                let count = (self.channels - channel).min(S::LANES);
                if count == S::LANES {
                    self.transform::<S, true>(simd, &sources, channel, count, target);
                } else {
                    self.transform::<S, false>(simd, &sources, channel, count, target);
                }
                channel += S::LANES;
            }
        }
    }
}

impl<const GRADIENT: bool> ToPoints<'_, GRADIENT> {
    /// Addresses of the pixels of a tile, those outside the image pointing at zeros.
    #[inline(always)]
    fn sources(&self, tile: usize) -> [*const f32; POINTS] {
        let (side, back) = if GRADIENT { (SIDE, 0) } else { (SPAN, 1) };
        let (image, first_row, first_column) = self.grid.tile(tile);
        let mut sources = [self.zeros.as_ptr(); POINTS];
        for row in 0..side {
            let y = (first_row + row).wrapping_sub(back);
            if y >= self.grid.height {
                continue;
            }
            let line = (image * self.grid.height + y) * self.grid.width;
            for column in 0..side {
                let x = (first_column + column).wrapping_sub(back);
                if x < self.grid.width {
                    sources[row * side + column] =
                        self.images.as_ptr().wrapping_add((line + x) * self.channels);
                }
            }
        }
        sources
    }

    #[inline(always)]
    fn transform<S: Simd, const WHOLE: bool>(
        &self,
        simd: S,
        sources: &[*const f32; POINTS],
        channel: usize,
        count: usize,
        target: *mut f32,
    ) {
        // SAFETY: a source is a pixel of the images or the zeros, both of which hold `channel + count` numbers.
        let load = |place: usize| unsafe {
            let source = sources[place].add(channel);
            if WHOLE { simd.load(source) } else { simd.load_first(source, count) }
        };
        // SAFETY: whoever builds this routine vouches for `layout.len()` numbers less the tiles before the first one.
        let store = |point: usize, value| unsafe {
            simd.store(target.add(point * self.layout.stride + channel), value);
        };
        if GRADIENT {
            gradient_tile(simd, load, store);
        } else {
            input_tile(simd, load, store);
        }
    }
}
