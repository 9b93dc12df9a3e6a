//! The gradient of 3×3 weights through the points: the transpose of the forward transforms.
//!
//! At each point the gradient is a product of transformed inputs with transformed output gradients, summed over tiles. Small
//! weights are summed group by group; large ones in blocks of channels over all tiles at once.

use std::ops::Range;

use super::forward::TileGroups;
use super::grid::{PointLayout, TileGrid, ToPoints};
use super::transform::{POINTS, weight_gradient_tile};
use crate::geometry::ConvGeometry;
use crate::isa::Isa;
use crate::panel::Panels;
use crate::pool::{SharedSlice, parallel_for};
use crate::scratch::Scratch;
use crate::simd::{MAX_LANES, Routine, Simd, prefetch};
use crate::tile::tile_rows;
use crate::weight_gradient::{MAX_TALL, Operands, run_tile};

/// Bytes of point gradients up to which every group of tiles sums its own.
const SMALL_GRADIENT: usize = 700 << 10;

/// Groups that small gradients are summed in.
const MAX_GROUPS: usize = 8;

/// Bytes of transformed tiles that a chunk keeps in its second-level cache.
const CACHED_POINTS: usize = 600 << 10;

/// Input channels of a block of large gradients.
const INPUT_BLOCK: usize = 64;

/// Rows of weight gradients asked for ahead of being written; they are too far apart for the processor to guess them.
const PREFETCH_ROWS: usize = 4;

/// The gradient of the weights `[9 * channels_in, channels_out]`.
pub(crate) fn weight_gradient(
    isa: Isa,
    geometry: &ConvGeometry,
    input: &[f32],
    output_gradient: &[f32],
    gradient: &mut [f32],
) {
    assert_eq!(gradient.len(), geometry.weight_len());
    let grid = TileGrid::new(geometry);
    let mut zeros = Scratch::take(geometry.channels_in.max(geometry.channels_out));
    zeros.fill(0.0);
    let task = Task {
        isa,
        geometry,
        grid,
        input,
        output_gradient,
        zeros: &zeros,
        panels: Panels::new(isa, geometry.channels_out),
    };
    if task.length() * size_of::<f32>() <= SMALL_GRADIENT {
        task.sum_by_groups(gradient);
    } else {
        task.sum_by_blocks(gradient);
    }
}

struct Task<'a> {
    isa: Isa,
    geometry: &'a ConvGeometry,
    grid: TileGrid,
    input: &'a [f32],
    output_gradient: &'a [f32],
    zeros: &'a [f32],
    panels: Panels,
}

impl Task<'_> {
    /// Numbers of all point gradients, `[channels_in][point][padded channels_out]`, and room for the last tile's spare rows.
    fn length(&self) -> usize {
        POINTS * (self.geometry.channels_in + MAX_TALL) * self.panels.packed_len(1)
    }

    fn transform(&self, tiles: Range<usize>, layouts: [PointLayout; 2], points: [*mut f32; 2]) {
        let (grid, zeros) = (self.grid, self.zeros);
        self.isa.run(ToPoints::<'_, false> {
            grid,
            tiles: tiles.clone(),
            images: self.input,
            channels: self.geometry.channels_in,
            zeros,
            layout: layouts[0],
            points: points[0],
        });
        self.isa.run(ToPoints::<'_, true> {
            grid,
            tiles,
            images: self.output_gradient,
            channels: self.geometry.channels_out,
            zeros,
            layout: layouts[1],
            points: points[1],
        });
    }

    fn layouts(&self, tiles: usize) -> [PointLayout; 2] {
        [
            PointLayout::new(tiles, self.geometry.channels_in),
            PointLayout::new(tiles, self.panels.packed_len(1)),
        ]
    }

    fn sum_by_groups(&self, gradient: &mut [f32]) {
        let tiles = self.grid.tiles();
        let groups = TileGroups::new(tiles, tiles.div_ceil(MAX_GROUPS).max(16));
        let [one, other] = self.layouts(1);
        let each = (CACHED_POINTS / (POINTS * (one.pitch + other.pitch) * size_of::<f32>())).clamp(8, 64);
        let (inputs, padded) = (self.geometry.channels_in, self.panels.packed_len(1));
        let length = self.length();
        let mut partial = Scratch::take(groups.count() * length);
        let shared = SharedSlice::new(&mut partial);
        parallel_for(groups.count(), |group| {
            let tiles = groups.tiles(group);
            let layouts = self.layouts(each.min(tiles.len()));
            let (mut values, mut gradients) =
                (Scratch::take(layouts[0].len()), Scratch::take(layouts[1].len()));
            let offsets: Vec<usize> = (0..each).map(|tile| tile * layouts[0].pitch).collect();
            for start in tiles.clone().step_by(each) {
                let block = start..(start + each).min(tiles.end);
                self.transform(block.clone(), layouts, [values.as_mut_ptr(), gradients.as_mut_ptr()]);
                self.isa.run(SumPoints {
                    values: &values,
                    gradients: &gradients,
                    layouts,
                    offsets: &offsets[..block.len()],
                    panels: &self.panels,
                    panel: 0..self.panels.count(),
                    inputs: 0..inputs,
                    width: padded,
                    target: shared.pointer().wrapping_add(group * length),
                    accumulate: start > tiles.start,
                });
            }
        });
        self.finish(&partial, groups.count(), gradient);
    }

    /// Adds the groups in order and transforms the sums back.
    fn finish(&self, partial: &[f32], groups: usize, gradient: &mut [f32]) {
        let (inputs, outputs) = (self.geometry.channels_in, self.geometry.channels_out);
        let padded = self.panels.packed_len(1);
        let target = SharedSlice::new(gradient);
        parallel_for(inputs, |input| {
            let part =
                |group: usize| &partial[group * self.length() + input * POINTS * padded..][..POINTS * padded];
            let mut sums = Scratch::take(POINTS * padded);
            sums.copy_from_slice(part(0));
            for group in 1..groups {
                sums.iter_mut().zip(part(group)).for_each(|(sum, part)| *sum += part);
            }
            self.isa.run(BackToWeights {
                points: &sums,
                width: padded,
                inputs: input..input + 1,
                outputs: 0..outputs,
                channels: [inputs, outputs],
                target,
            });
        });
    }

    fn sum_by_blocks(&self, gradient: &mut [f32]) {
        let tiles = self.grid.tiles();
        let layouts = self.layouts(tiles);
        let (mut values, mut gradients) = (Scratch::take(layouts[0].len()), Scratch::take(layouts[1].len()));
        let shared = [SharedSlice::new(&mut values), SharedSlice::new(&mut gradients)];
        let each = if tiles > 64 { 4 } else { 1 };
        parallel_for(tiles.div_ceil(each), |chunk| {
            let first = chunk * each;
            let points = [0, 1].map(|side| shared[side].pointer().wrapping_add(first * layouts[side].pitch));
            self.transform(first..(first + each).min(tiles), layouts, points);
        });
        let (inputs, outputs) = (self.geometry.channels_in, self.geometry.channels_out);
        let offsets: Vec<usize> = (0..tiles).map(|tile| tile * layouts[0].pitch).collect();
        let target = SharedSlice::new(gradient);
        let blocks = inputs.div_ceil(INPUT_BLOCK);
        parallel_for(blocks * self.panels.count(), |chunk| {
            let (panel, block) = (chunk / blocks, chunk % blocks);
            let range = inputs * block / blocks..inputs * (block + 1) / blocks;
            let width = self.panels.width(panel);
            let mut sums = Scratch::take(POINTS * (range.len() + MAX_TALL) * width);
            self.isa.run(SumPoints {
                values: &values,
                gradients: &gradients,
                layouts,
                offsets: &offsets,
                panels: &self.panels,
                panel: panel..panel + 1,
                inputs: range.clone(),
                width,
                target: sums.as_mut_ptr(),
                accumulate: false,
            });
            self.isa.run(BackToWeights {
                points: &sums,
                width,
                inputs: range,
                outputs: self.panels.columns(panel),
                channels: [inputs, outputs],
                target,
            });
        });
    }
}

/// Products over tiles at every point, `[input][point][width]`, with room for a tile's spare inputs at the end: a tile may run
/// past the last input, onto the next tile's values or the room past the end of the scratch they are in.
struct SumPoints<'a> {
    values: &'a Scratch,
    gradients: &'a [f32],
    layouts: [PointLayout; 2],
    /// Place of each tile's values.
    offsets: &'a [usize],
    panels: &'a Panels,
    panel: Range<usize>,
    inputs: Range<usize>,
    /// Numbers of an input at one point.
    width: usize,
    target: *mut f32,
    accumulate: bool,
}

impl Routine for SumPoints<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let rows = self.inputs.len();
        let first_column = self.panels.offset(self.panel.start, 1);
        for point in 0..POINTS {
            for panel in self.panel.clone() {
                let vectors = self.panels.vectors(panel);
                let tall = tile_rows(S::REGISTERS, vectors);
                let column = self.panels.offset(panel, 1);
                let gradient = self.gradients[point * self.layouts[1].stride + column..].as_ptr();
                let values =
                    self.values.pointer().wrapping_add(point * self.layouts[0].stride + self.inputs.start);
                for start in (0..rows).step_by(tall) {
                    let place = (start * POINTS + point) * self.width + column - first_column;
                    run_tile(
                        simd,
                        vectors,
                        Operands {
                            offsets: self.offsets,
                            source: values.wrapping_add(start),
                            gradient,
                            gradient_pitch: self.layouts[1].pitch,
                            target: self.target.wrapping_add(place),
                            target_pitch: POINTS * self.width,
                            kept: (0, tall),
                            last: S::LANES,
                            accumulate: self.accumulate,
                        },
                    );
                }
            }
        }
    }
}

/// Transforms point gradients to weight gradients.
struct BackToWeights<'a> {
    /// `[input][point][width]`.
    points: &'a [f32],
    width: usize,
    inputs: Range<usize>,
    outputs: Range<usize>,
    channels: [usize; 2],
    target: SharedSlice<'a, f32>,
}

impl Routine for BackToWeights<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let [inputs, outputs] = self.channels;
        assert!(
            self.target.len() == 9 * inputs * outputs
                && self.inputs.end <= inputs
                && self.outputs.end <= outputs
        );
        assert!(self.points.len() >= POINTS * self.inputs.len() * self.width);
        assert!(self.outputs.len() <= self.width && self.width.is_multiple_of(S::LANES));
        for (row, input) in self.inputs.clone().enumerate() {
            for tap in 0..9 {
                for column in self.outputs.clone().step_by(MAX_LANES) {
                    let place = (tap * inputs + input + PREFETCH_ROWS) * outputs + column;
                    prefetch(self.target.pointer().wrapping_add(place));
                }
            }
            for column in (0..self.outputs.len()).step_by(S::LANES) {
                let count = (self.outputs.len() - column).min(S::LANES);
                let source = self.points[row * POINTS * self.width + column..].as_ptr();
                // SAFETY: every point holds whole vectors for each of its inputs.
                let load = |point: usize| unsafe { simd.load(source.add(point * self.width)) };
                let target =
                    self.target.pointer().wrapping_add(input * outputs + self.outputs.start + column);
                weight_gradient_tile(simd, load, |tap, value| {
                    // SAFETY: the weight gradient holds nine taps; each input and output belongs to one chunk.
                    unsafe { simd.store_first(target.wrapping_add(tap * inputs * outputs), count, value) };
                });
            }
        }
    }
}
