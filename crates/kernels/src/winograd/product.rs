//! The matrix product of the tiles at one point with one panel of transformed weights.
#![allow(
    clippy::needless_range_loop,
    reason = "register tiles are indexed by constant ranges that must unroll"
)]

use crate::simd::{Routine, Simd};

/// `products[tile] (+)= values[tile] · weights` for every tile.
#[derive(Clone, Copy)]
pub(crate) struct Product {
    /// Values of the first tile, and the distance to the next.
    pub(crate) values: *const f32,
    pub(crate) value_pitch: usize,
    pub(crate) tiles: usize,
    /// Rows of `vectors` vectors, one for each value of a tile.
    pub(crate) weights: *const f32,
    pub(crate) length: usize,
    pub(crate) vectors: usize,
    /// Products of the first tile, and the distance to the next.
    pub(crate) products: *mut f32,
    pub(crate) product_pitch: usize,
    pub(crate) accumulate: bool,
}

/// Tiles by vectors of a register block.
struct Block<const ROWS: usize, const VECTORS: usize>(Product);

impl<const ROWS: usize, const VECTORS: usize> Routine for Block<ROWS, VECTORS> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let product = self.0;
        for first in (0..product.tiles).step_by(ROWS) {
            let mut sources = [product.values; ROWS];
            let mut sums = [[simd.zero(); VECTORS]; ROWS];
            for row in 0..ROWS {
                let tile = (first + row).min(product.tiles - 1);
                sources[row] = product.values.wrapping_add(tile * product.value_pitch);
            }
            // SAFETY: the caller of `multiply` vouches for all tiles and weights; a repeated last tile is computed from the
            // same numbers and stored with the same result.
            unsafe {
                let mut weights = product.weights;
                for step in 0..product.length {
                    let mut line = [simd.zero(); VECTORS];
                    for vector in 0..VECTORS {
                        line[vector] = simd.load(weights.add(vector * S::LANES));
                    }
                    for row in 0..ROWS {
                        let value = simd.splat(*sources[row].add(step));
                        for vector in 0..VECTORS {
                            sums[row][vector] = simd.mul_add(value, line[vector], sums[row][vector]);
                        }
                    }
                    weights = weights.add(VECTORS * S::LANES);
                }
                let rows = (product.tiles - first).min(ROWS);
                let target = product.products.add(first * product.product_pitch);
                for row in 0..ROWS {
                    if row >= rows {
                        break;
                    }
                    for vector in 0..VECTORS {
                        let place = target.add(row * product.product_pitch + vector * S::LANES);
                        let before = if product.accumulate { simd.load(place) } else { simd.zero() };
                        simd.store(place, simd.add(before, sums[row][vector]));
                    }
                }
            }
        }
    }
}

/// Computes the product.
///
/// # Safety
/// Values, weights and products must be accessible for all tiles; products must not overlap what is read.
#[inline(always)]
pub(crate) unsafe fn multiply<S: Simd>(simd: S, product: Product) {
    match (S::REGISTERS >= 32, product.vectors) {
        (_, 1) => simd.call(Block::<8, 1>(product)),
        (true, 2) => simd.call(Block::<8, 2>(product)),
        (true, 3) => simd.call(Block::<8, 3>(product)),
        (true, 4) => simd.call(Block::<6, 4>(product)),
        (true, _) => simd.call(Block::<5, 5>(product)),
        (false, 2) => simd.call(Block::<6, 2>(product)),
        (false, _) => simd.call(Block::<3, 3>(product)),
    }
}
