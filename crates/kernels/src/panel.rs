//! Weight matrices rearranged for the register tiles.
//!
//! The columns of a matrix are cut into panels of a few vectors each. A panel stores its rows one after the other, padded with
//! zeros to whole vectors, so that a tile reads it in order. For a matrix with one panel and no padding this is the matrix itself.

use std::ops::Range;

use crate::geometry::ConvGeometry;
use crate::isa::Isa;
use crate::pool::{SharedSlice, parallel_for};
use crate::scratch::Scratch;
use crate::simd::{Routine, Simd};

/// How the columns of a matrix are cut into panels.
#[derive(Clone, Debug)]
pub(crate) struct Panels {
    columns: usize,
    lanes: usize,
    /// First vector of each panel, and the end of the last.
    starts: Vec<usize>,
}

/// Lanes and registers of an instruction set, as values.
struct Width;

impl Routine for Width {
    type Output = (usize, usize);

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> (usize, usize) {
        (S::LANES, S::REGISTERS)
    }
}

impl Panels {
    pub(crate) fn new(isa: Isa, columns: usize) -> Self {
        let (lanes, registers) = isa.run(Width);
        let vectors = columns.div_ceil(lanes);
        let count = if registers >= 32 {
            if vectors % 5 == 0 && vectors % 4 != 0 { vectors / 5 } else { vectors.div_ceil(4) }
        } else if vectors == 3 {
            1
        } else {
            (vectors / 2).max(1)
        };
        let starts = (0..=count).map(|panel| vectors * panel / count).collect();
        Self { columns, lanes, starts }
    }

    /// Panels of one or two vectors, for work that is cut into a chunk a panel.
    pub(crate) fn narrow(isa: Isa, columns: usize) -> Self {
        let (lanes, registers) = isa.run(Width);
        let vectors = columns.div_ceil(lanes);
        let count = if vectors >= 16 {
            vectors.div_ceil(if registers >= 32 && vectors >= 16 { 4 } else { 2 })
        } else {
            vectors
        };
        let starts = (0..=count).map(|panel| vectors * panel / count).collect();
        Self { columns, lanes, starts }
    }

    pub(crate) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Vectors of a panel.
    pub(crate) fn vectors(&self, panel: usize) -> usize {
        self.starts[panel + 1] - self.starts[panel]
    }

    /// Numbers in a row of a packed panel.
    pub(crate) fn width(&self, panel: usize) -> usize {
        self.vectors(panel) * self.lanes
    }

    /// The columns of the matrix a panel holds.
    pub(crate) fn columns(&self, panel: usize) -> Range<usize> {
        self.starts[panel] * self.lanes..(self.starts[panel + 1] * self.lanes).min(self.columns)
    }

    /// Where a panel of a matrix with `rows` rows starts.
    pub(crate) fn offset(&self, panel: usize, rows: usize) -> usize {
        self.starts[panel] * self.lanes * rows
    }

    /// Length of a packed matrix of `rows` rows.
    pub(crate) fn packed_len(&self, rows: usize) -> usize {
        self.starts[self.count()] * self.lanes * rows
    }

    /// Whether packing would copy the matrix unchanged.
    pub(crate) fn is_identity(&self) -> bool {
        self.count() == 1 && self.columns == self.width(0)
    }
}

/// A packed matrix, or the original where packing would not change it.
pub(crate) enum Packed<'a> {
    Borrowed(&'a [f32]),
    Owned(Scratch),
}

impl Packed<'_> {
    pub(crate) fn as_slice(&self) -> &[f32] {
        match self {
            Self::Borrowed(slice) => slice,
            Self::Owned(scratch) => scratch,
        }
    }
}

/// Bytes of a cache line; a vector load that crosses one costs twice.
const CACHE_LINE: usize = 64;

/// Rows packed by one chunk.
const PACK_ROWS: usize = 256;

/// Packs a row-major matrix `[rows, columns]`.
pub(crate) fn pack<'a>(panels: &Panels, matrix: &'a [f32], rows: usize) -> Packed<'a> {
    let aligned = (matrix.as_ptr() as usize).is_multiple_of(CACHE_LINE);
    if panels.is_identity() && aligned {
        return Packed::Borrowed(matrix);
    }
    let mut packed = Scratch::take(panels.packed_len(rows));
    let shared = SharedSlice::new(&mut packed);
    let blocks = rows.div_ceil(PACK_ROWS);
    parallel_for(blocks * panels.count(), |chunk| {
        let (panel, block) = (chunk / blocks, chunk % blocks);
        let range = block * PACK_ROWS..((block + 1) * PACK_ROWS).min(rows);
        let (width, columns) = (panels.width(panel), panels.columns(panel));
        // SAFETY: panels and row blocks are disjoint places of the packed matrix.
        let target =
            unsafe { shared.range(panels.offset(panel, rows) + range.start * width, range.len() * width) };
        for (row, target) in range.zip(target.chunks_exact_mut(width)) {
            let source = &matrix[row * panels.columns..][columns.clone()];
            target[..source.len()].copy_from_slice(source);
            target[source.len()..].fill(0.0);
        }
    });
    Packed::Owned(packed)
}

/// Which kernel rows (or columns) touch the input pixels of one residue modulo the stride, in the order in which a correlation
/// over the output gradient meets them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taps {
    /// The smallest kernel index.
    pub(crate) first: usize,
    /// How many there are.
    pub(crate) count: usize,
    stride: usize,
    /// Output row that the first tap of input row `residue` reads; may lie outside.
    pub(crate) start: isize,
}

impl Taps {
    pub(crate) fn new(geometry: &ConvGeometry, residue: usize) -> Self {
        let (stride, padding, kernel) = (geometry.stride, geometry.padding, geometry.kernel);
        let first = (residue + padding) % stride;
        let count = if first < kernel { (kernel - first).div_ceil(stride) } else { 0 };
        let start = ((residue + padding - first) / stride) as isize - count as isize + 1;
        Self { first, count, stride, start }
    }

    /// The kernel index of the tap met at `position`.
    pub(crate) fn kernel_index(&self, position: usize) -> usize {
        self.first + self.stride * (self.count - 1 - position)
    }
}

/// Copies one tap of the weight matrix transposed into a panel.
struct TransposeTap<'a> {
    /// `[channels_in, channels_out]` of one kernel position.
    tap: &'a [f32],
    channels_out: usize,
    /// Input channels of the panel.
    columns: Range<usize>,
    /// `[channels_out, width]`.
    target: &'a mut [f32],
    width: usize,
}

impl Routine for TransposeTap<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self { tap, channels_out, columns, target, width } = self;
        assert!(tap.len() >= columns.end * channels_out && target.len() >= channels_out * width);
        let count = columns.len();
        let (whole_columns, whole_rows) = (count / 8 * 8, channels_out / 8 * 8);
        let place = |column: usize, row: usize| tap[(columns.start + column) * channels_out + row];
        for column in (0..whole_columns).step_by(8) {
            for row in (0..whole_rows).step_by(8) {
                // SAFETY: both 8×8 blocks lie inside the slices by the assertion above.
                unsafe {
                    let source = tap.as_ptr().add((columns.start + column) * channels_out + row);
                    let target = target.as_mut_ptr().add(row * width + column);
                    simd.transpose8(source, channels_out, target, width);
                }
            }
        }
        for (row, target) in target.chunks_exact_mut(width).enumerate().take(channels_out) {
            let done = if row < whole_rows { whole_columns } else { 0 };
            for (column, value) in target.iter_mut().enumerate().skip(done) {
                *value = if column < count { place(column, row) } else { 0.0 };
            }
        }
    }
}

/// Packs the transposed weights that one residue of the input gradient needs: rows are (row tap, column tap, output channel),
/// columns are input channels.
pub(crate) fn pack_transposed(
    isa: Isa,
    panels: &Panels,
    geometry: &ConvGeometry,
    weight: &[f32],
    taps: [Taps; 2],
) -> Scratch {
    let (inputs, outputs) = (geometry.channels_in, geometry.channels_out);
    let [down, across] = taps;
    let count = down.count * across.count;
    let rows = count * outputs;
    let mut packed = Scratch::take(panels.packed_len(rows));
    let shared = SharedSlice::new(&mut packed);
    parallel_for(count * panels.count(), |chunk| {
        let (panel, tap) = (chunk / count, chunk % count);
        let kernel_row = down.kernel_index(tap / across.count);
        let kernel_column = across.kernel_index(tap % across.count);
        let position = kernel_row * geometry.kernel + kernel_column;
        let width = panels.width(panel);
        // SAFETY: panels and taps are disjoint places of the packed matrix.
        let target =
            unsafe { shared.range(panels.offset(panel, rows) + tap * outputs * width, outputs * width) };
        isa.run(TransposeTap {
            tap: &weight[position * inputs * outputs..][..inputs * outputs],
            channels_out: outputs,
            columns: panels.columns(panel),
            target,
            width,
        });
    });
    packed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panels_cover_all_columns() {
        for isa in Isa::supported() {
            for columns in 1..200 {
                let panels = Panels::new(isa, columns);
                let covered: usize = (0..panels.count()).map(|panel| panels.columns(panel).len()).sum();
                assert_eq!(covered, columns);
                assert!((0..panels.count()).all(|panel| (1..=5).contains(&panels.vectors(panel))));
            }
        }
    }

    #[test]
    fn packing_keeps_every_number() {
        for isa in Isa::supported() {
            let (rows, columns) = (5, 33);
            let matrix: Vec<f32> = (0..rows * columns).map(|i| i as f32 + 1.0).collect();
            let panels = Panels::new(isa, columns);
            let packed = pack(&panels, &matrix, rows);
            for panel in 0..panels.count() {
                for row in 0..rows {
                    for (position, column) in panels.columns(panel).enumerate() {
                        let offset = panels.offset(panel, rows) + row * panels.width(panel) + position;
                        assert_eq!(packed.as_slice()[offset], matrix[row * columns + column]);
                    }
                }
            }
        }
    }

    #[test]
    fn taps_of_a_strided_kernel() {
        let geometry = ConvGeometry {
            batch: 1,
            height: 8,
            width: 8,
            channels_in: 1,
            channels_out: 1,
            kernel: 3,
            stride: 2,
            padding: 1,
        };
        let even = Taps::new(&geometry, 0);
        assert_eq!((even.first, even.count, even.start), (1, 1, 0));
        let odd = Taps::new(&geometry, 1);
        assert_eq!((odd.first, odd.count, odd.start), (0, 2, 0));
        assert_eq!((odd.kernel_index(0), odd.kernel_index(1)), (2, 0));
    }
}
