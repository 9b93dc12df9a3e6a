//! The gradient of a convolution's weights: a sum over output pixels of source number times output gradient.
//!
//! A register tile holds a few weight rows by a few vectors of output channels and runs over pixels, so neither side is
//! transposed. Small weights are summed group by group and the groups added in order; large weights are cut into blocks, each
//! of which one thread sums over all pixels.
#![allow(
    clippy::needless_range_loop,
    reason = "register tiles are indexed by constant ranges that must unroll"
)]

use std::ops::Range;

use crate::geometry::{ConvGeometry, Groups};
use crate::isa::Isa;
use crate::panel::Panels;
use crate::pool::{SharedSlice, parallel_for};
use crate::scratch::Scratch;
use crate::simd::{MAX_LANES, Routine, Simd};
use crate::source::{Source, SourceView};
use crate::tile::tile_rows;

/// Groups that partial sums are kept for.
const MAX_GROUPS: usize = 16;

/// Bytes of partial sums above which the weights are cut into blocks instead.
const PARTIAL_BYTES: usize = 6 << 20;

/// Bytes of output gradient that a tile sweep keeps in the first-level cache.
const CACHED_GRADIENT: usize = 24 << 10;

/// Chunks the blocks of large weights are cut into at least, where they can be.
const MIN_CHUNKS: usize = 16;

/// Rows of the tallest tile; a copy of the source is readable this far past a pixel's numbers.
pub(crate) const MAX_TALL: usize = 8;
const _: () = assert!(MAX_TALL <= MAX_LANES);

/// Vectors of the widest tile.
const MAX_WIDE: usize = 5;

/// What a tile multiplies and where it adds up.
#[derive(Clone, Copy)]
pub(crate) struct Operands<'a> {
    /// Address of the tile's first source number at each pixel, as an offset from `source`.
    pub(crate) offsets: &'a [usize],
    pub(crate) source: *const f32,
    /// Output gradient of the first pixel at the tile's first column, and the distance to the next pixel.
    pub(crate) gradient: *const f32,
    pub(crate) gradient_pitch: usize,
    /// The tile's place in the weight gradient, and the distance to the next row.
    pub(crate) target: *mut f32,
    pub(crate) target_pitch: usize,
    /// Rows of the tile that are kept.
    pub(crate) kept: (usize, usize),
    /// Lanes of the last vector that exist in the target.
    pub(crate) last: usize,
    pub(crate) accumulate: bool,
}

struct Tile<'a, const ROWS: usize, const VECTORS: usize>(Operands<'a>);

impl<const ROWS: usize, const VECTORS: usize> Routine for Tile<'_, ROWS, VECTORS> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let operands = self.0;
        let mut sums = [[simd.zero(); VECTORS]; ROWS];
        // SAFETY: `Block::run` sets up operands that lie inside the padded source, the gradient and the target.
        unsafe {
            let mut gradient = operands.gradient;
            for &offset in operands.offsets {
                let source = operands.source.add(offset);
                let mut values = [simd.zero(); VECTORS];
                for vector in 0..VECTORS {
                    values[vector] = simd.load(gradient.add(vector * S::LANES));
                }
                for row in 0..ROWS {
                    let value = simd.splat(*source.add(row));
                    for vector in 0..VECTORS {
                        sums[row][vector] = simd.mul_add(value, values[vector], sums[row][vector]);
                    }
                }
                gradient = gradient.add(operands.gradient_pitch);
            }
            if operands.kept == (0, ROWS) && operands.last == S::LANES {
                for row in 0..ROWS {
                    let target = operands.target.add(row * operands.target_pitch);
                    for vector in 0..VECTORS {
                        let address = target.add(vector * S::LANES);
                        let before = if operands.accumulate { simd.load(address) } else { simd.zero() };
                        simd.store(address, simd.add(before, sums[row][vector]));
                    }
                }
                return;
            }
            let mut spilled = [0.0_f32; MAX_TALL * MAX_WIDE * MAX_LANES];
            for row in 0..ROWS {
                for vector in 0..VECTORS {
                    simd.store(
                        spilled.as_mut_ptr().add((row * VECTORS + vector) * S::LANES),
                        sums[row][vector],
                    );
                }
            }
            for row in operands.kept.0..operands.kept.1 {
                let target = operands.target.add(row * operands.target_pitch);
                for vector in 0..VECTORS {
                    let count = if vector + 1 < VECTORS { S::LANES } else { operands.last };
                    let address = target.add(vector * S::LANES);
                    let sum = simd.load(spilled.as_ptr().add((row * VECTORS + vector) * S::LANES));
                    let before =
                        if operands.accumulate { simd.load_first(address, count) } else { simd.zero() };
                    simd.store_first(address, count, simd.add(before, sum));
                }
            }
        }
    }
}

#[inline(always)]
pub(crate) fn run_tile<S: Simd>(simd: S, vectors: usize, operands: Operands<'_>) {
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

/// Rows `run` of kernel row `kernel_row` and the columns of `panel`, summed over some pixels.
struct Block<'a> {
    view: SourceView,
    /// Source offset of each pixel from the first.
    offsets: &'a [usize],
    origin: *const f32,
    /// Output gradient `[pixels, channels]`, and the first of these pixels in it.
    gradient: &'a Scratch,
    first_pixel: usize,
    channels: usize,
    panels: &'a Panels,
    panel: Range<usize>,
    kernel_rows: Range<usize>,
    /// Numbers of one kernel row, and the part of them this block sums.
    row_len: usize,
    run: Range<usize>,
    target: SharedSlice<'a, f32>,
}

impl Routine for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let pixels = self.offsets.len();
        assert!(self.gradient.len() >= (self.first_pixel + pixels) * self.channels);
        let several = self.panels.count() > 1;
        for panel in self.panel.clone() {
            let width = self.panels.width(panel);
            let band = (CACHED_GRADIENT / size_of::<f32>() / width).max(32);
            let mut packed = Scratch::take(if several { band * width } else { 0 });
            for start in (0..pixels).step_by(band) {
                let range = start..(start + band).min(pixels);
                let first =
                    (self.first_pixel + range.start) * self.channels + self.panels.columns(panel).start;
                let (gradient, pitch) = if several {
                    self.pack(first, self.panels.columns(panel).len(), width, range.len(), &mut packed);
                    (packed.as_ptr(), width)
                } else {
                    (self.gradient.pointer().wrapping_add(first), self.channels)
                };
                self.sum_band(simd, panel, range, gradient, pitch);
            }
        }
    }
}

impl Block<'_> {
    /// Copies the gradients of one panel's columns next to each other.
    #[inline(always)]
    fn pack(&self, first: usize, columns: usize, width: usize, pixels: usize, packed: &mut [f32]) {
        for (pixel, target) in packed.chunks_exact_mut(width).enumerate().take(pixels) {
            let source = &self.gradient[first + pixel * self.channels..][..columns];
            target[..columns].copy_from_slice(source);
            target[columns..].fill(0.0);
        }
    }

    /// Adds the pixels of one band to every tile of the block.
    #[inline(always)]
    fn sum_band<S: Simd>(
        &self,
        simd: S,
        panel: usize,
        band: Range<usize>,
        gradient: *const f32,
        pitch: usize,
    ) {
        let vectors = self.panels.vectors(panel);
        let columns = self.panels.columns(panel);
        let tall = tile_rows(S::REGISTERS, vectors);
        for kernel_row in self.kernel_rows.clone() {
            let mut start = self.run.start;
            while start < self.run.end {
                let end = (start + tall).min(self.run.end);
                let shifted = end.saturating_sub(tall).max(self.run.start);
                let row = kernel_row * self.row_len + shifted;
                assert!((kernel_row * self.row_len + end) * self.channels <= self.target.len());
                run_tile(
                    simd,
                    vectors,
                    Operands {
                        offsets: &self.offsets[band.clone()],
                        source: self.origin.wrapping_add(kernel_row * self.view.row_pitch() + shifted),
                        gradient,
                        gradient_pitch: pitch,
                        target: self.target.pointer().wrapping_add(row * self.channels + columns.start),
                        target_pitch: self.channels,
                        kept: (start - shifted, end - shifted),
                        last: columns.len() - (vectors - 1) * S::LANES,
                        accumulate: band.start > 0,
                    },
                );
                start = end;
            }
        }
    }
}

/// The gradient of the weights `[kernel * kernel * channels_in, channels_out]`.
///
/// `output_gradient` is `[out_pixels, channels_out]` and must be readable for a vector past its end, hence a [`Scratch`].
pub(crate) fn weight_gradient(
    isa: Isa,
    geometry: &ConvGeometry,
    input: &[f32],
    output_gradient: &Scratch,
    gradient: &mut [f32],
) {
    assert_eq!(gradient.len(), geometry.weight_len());
    assert_eq!(output_gradient.len(), geometry.output_len());
    let groups = Groups::at_most(geometry.batch, geometry.out_height(), MAX_GROUPS);
    let bytes = geometry.weight_len() * size_of::<f32>();
    if bytes * groups.count() <= PARTIAL_BYTES {
        sum_by_groups(isa, geometry, input, output_gradient, gradient, groups);
    } else {
        sum_by_blocks(isa, geometry, input, output_gradient, gradient);
    }
}

/// Source offsets of the pixels of `images` whole images, relative to the first pixel.
fn pixel_offsets(geometry: &ConvGeometry, view: &SourceView, images: usize) -> Vec<usize> {
    let mut offsets = Vec::with_capacity(images * geometry.out_height() * geometry.out_width());
    let first = view.pixel(0, 0, 0) as usize;
    for image in 0..images {
        for row in 0..geometry.out_height() {
            for column in 0..geometry.out_width() {
                offsets
                    .push((view.pixel(image, row, column) as usize).wrapping_sub(first) / size_of::<f32>());
            }
        }
    }
    offsets
}

fn sum_by_groups(
    isa: Isa,
    geometry: &ConvGeometry,
    input: &[f32],
    output_gradient: &Scratch,
    gradient: &mut [f32],
    groups: Groups,
) {
    let source = Source::of_input(geometry, input);
    let panels = Panels::new(isa, geometry.channels_out);
    let row_len = geometry.kernel * geometry.channels_in;
    let image = geometry.out_height() * geometry.out_width();
    let length = gradient.len();
    let mut partial = Scratch::take(groups.count() * length);
    let shared = SharedSlice::new(&mut partial);
    parallel_for(groups.count(), |index| {
        let group = groups.group(index);
        let padded = if row_len < MAX_TALL { source.copy_group(&group) } else { source.pad_group(&group) };
        let view = padded.view(&source, &group);
        // SAFETY: every group has its own partial sum.
        let target = unsafe { shared.range(index * length, length) };
        isa.run(Block {
            view,
            offsets: &pixel_offsets(geometry, &view, group.images.len()),
            origin: view.pixel(group.images.start, 0, 0),
            gradient: output_gradient,
            first_pixel: group.images.start * image,
            channels: geometry.channels_out,
            panels: &panels,
            panel: 0..panels.count(),
            kernel_rows: 0..geometry.kernel,
            row_len,
            run: 0..row_len,
            target: SharedSlice::new(target),
        });
    });
    add_partials(isa, &partial, gradient);
}

fn sum_by_blocks(
    isa: Isa,
    geometry: &ConvGeometry,
    input: &[f32],
    output_gradient: &Scratch,
    gradient: &mut [f32],
) {
    let source = Source::of_input(geometry, input);
    let panels = Panels::new(isa, geometry.channels_out);
    let row_len = geometry.kernel * geometry.channels_in;
    let all = Groups::single(geometry.batch, geometry.out_height());
    let padded = if row_len < MAX_TALL { source.copy() } else { source.pad(all) };
    let view = padded.view(&source, &all.group(0));
    let offsets = pixel_offsets(geometry, &view, geometry.batch);
    let target = SharedSlice::new(gradient);
    let pieces = MIN_CHUNKS.div_ceil(panels.count() * geometry.kernel).min(row_len.div_ceil(48));
    parallel_for(panels.count() * geometry.kernel * pieces, |chunk| {
        let (panel, rest) = (chunk / (geometry.kernel * pieces), chunk % (geometry.kernel * pieces));
        let (kernel_row, piece) = (rest / pieces, rest % pieces);
        isa.run(Block {
            view,
            offsets: &offsets,
            origin: view.pixel(0, 0, 0),
            gradient: output_gradient,
            first_pixel: 0,
            channels: geometry.channels_out,
            panels: &panels,
            panel: panel..panel + 1,
            kernel_rows: kernel_row..kernel_row + 1,
            row_len,
            run: row_len * piece / pieces..row_len * (piece + 1) / pieces,
            target,
        });
    });
}

/// Numbers added up by one chunk.
const ADD_CHUNK: usize = 4096;

/// Adds partial sums `[groups, length]` in order.
fn add_partials(isa: Isa, partial: &[f32], total: &mut [f32]) {
    let length = total.len();
    let shared = SharedSlice::new(total);
    parallel_for(length.div_ceil(ADD_CHUNK), |chunk| {
        let range = chunk * ADD_CHUNK..((chunk + 1) * ADD_CHUNK).min(length);
        // SAFETY: chunks are disjoint.
        let total = unsafe { shared.range(range.start, range.len()) };
        isa.run(AddUp { partial, length, range, total });
    });
}

struct AddUp<'a> {
    partial: &'a [f32],
    length: usize,
    range: Range<usize>,
    total: &'a mut [f32],
}

impl Routine for AddUp<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for (index, part) in self.partial.chunks_exact(self.length).enumerate() {
            let part = &part[self.range.clone()];
            if index == 0 {
                self.total.copy_from_slice(part);
            } else {
                self.total.iter_mut().zip(part).for_each(|(total, part)| *total += part);
            }
        }
    }
}
