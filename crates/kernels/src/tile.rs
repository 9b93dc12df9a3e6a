//! The register tile of the correlations: a few pixels by a few vectors of output channels.
//!
//! Each pixel is an address in the source; for every number of a segment the tile broadcasts one source number per pixel and
//! multiplies it with a row of the packed weights. Nothing is copied into columns first.
#![allow(
    clippy::needless_range_loop,
    reason = "register tiles are indexed by constant ranges that must unroll"
)]

use crate::simd::{Routine, Simd};

/// Pixels of the tallest tile.
pub(crate) const MAX_ROWS: usize = 8;

/// Pixels of the tile that is `vectors` wide on an instruction set with that many registers.
///
/// Four by three would fill sixteen registers to the last, and the compiler then keeps one sum in memory: half the speed.
#[inline(always)]
pub(crate) const fn tile_rows(registers: usize, vectors: usize) -> usize {
    match (registers >= 32, vectors) {
        (_, 1) => 8,
        (true, 2 | 3) => 8,
        (true, 4) => 6,
        (true, _) => 5,
        (false, 2) => 6,
        (false, _) => 3,
    }
}

/// A contiguous run of source numbers, relative to a pixel's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) offset: usize,
    pub(crate) length: usize,
}

/// The memory a tile works on.
#[derive(Clone, Copy)]
pub(crate) struct TileOperands<'a> {
    /// Source address of each pixel.
    pub(crate) source: &'a [*const f32; MAX_ROWS],
    /// Where each pixel's outputs go.
    pub(crate) target: &'a [*mut f32; MAX_ROWS],
    /// What to read of the source, in order.
    pub(crate) segments: &'a [Segment],
    /// One packed row of `vectors * LANES` numbers for each source number.
    pub(crate) weights: *const f32,
    /// Lanes of the last vector that exist in the target.
    pub(crate) last: usize,
    /// Add to the target instead of replacing it.
    pub(crate) accumulate: bool,
}

struct Tile<'a, const ROWS: usize, const VECTORS: usize>(TileOperands<'a>);

impl<const ROWS: usize, const VECTORS: usize> Routine for Tile<'_, ROWS, VECTORS> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let operands = self.0;
        let whole = operands.last == S::LANES;
        let mut sums = [[simd.zero(); VECTORS]; ROWS];
        // SAFETY: `run_tile` passes its caller's promise that the operands are accessible.
        unsafe {
            if operands.accumulate {
                for row in 0..ROWS {
                    for vector in 0..VECTORS {
                        let address = operands.target[row].add(vector * S::LANES);
                        sums[row][vector] = if vector + 1 < VECTORS || whole {
                            simd.load(address)
                        } else {
                            simd.load_first(address, operands.last)
                        };
                    }
                }
            }
            let mut weights = operands.weights;
            for segment in operands.segments {
                let mut source = [operands.source[0]; ROWS];
                for row in 0..ROWS {
                    source[row] = operands.source[row].add(segment.offset);
                }
                for step in 0..segment.length {
                    let mut rows = [simd.zero(); VECTORS];
                    for vector in 0..VECTORS {
                        rows[vector] = simd.load(weights.add(vector * S::LANES));
                    }
                    for row in 0..ROWS {
                        let value = simd.splat(*source[row].add(step));
                        for vector in 0..VECTORS {
                            sums[row][vector] = simd.mul_add(value, rows[vector], sums[row][vector]);
                        }
                    }
                    weights = weights.add(VECTORS * S::LANES);
                }
            }
            for row in 0..ROWS {
                for vector in 0..VECTORS {
                    let address = operands.target[row].add(vector * S::LANES);
                    if vector + 1 < VECTORS || whole {
                        simd.store(address, sums[row][vector]);
                    } else {
                        simd.store_first(address, operands.last, sums[row][vector]);
                    }
                }
            }
        }
    }
}

/// Runs the tile that is `vectors` wide.
///
/// # Safety
/// The first [`tile_rows`] sources must be readable over every segment, the targets writable for `vectors` vectors (the last
/// one up to `last` lanes), and the weights readable for all rows. Targets that coincide must have coinciding sources.
#[inline(always)]
pub(crate) unsafe fn run_tile<S: Simd>(simd: S, vectors: usize, operands: TileOperands<'_>) {
    match (S::REGISTERS >= 32, vectors) {
        (_, 1) => simd.call(Tile::<8, 1>(operands)),
        (true, 2) => simd.call(Tile::<8, 2>(operands)),
        (true, 3) => simd.call(Tile::<8, 3>(operands)),
        (true, 4) => simd.call(Tile::<6, 4>(operands)),
        (true, _) => simd.call(Tile::<5, 5>(operands)),
        (false, 2) => simd.call(Tile::<6, 2>(operands)),
        (false, _) => simd.call(Tile::<3, 3>(operands)),
    }
}
