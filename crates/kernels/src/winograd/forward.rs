//! Forward Winograd convolution, which is also the gradient of the input with turned weights.
//!
//! With moderate weights a chunk takes some tiles through all three stages in its second-level cache. With large weights and
//! few tiles the inputs are transformed once, and a chunk is a panel of output channels that transforms its own weights.

use std::ops::Range;

use super::grid::{PointLayout, TileGrid, ToPoints};
use super::output::{Ending, FromPoints};
use super::product::{Product, multiply};
use super::transform::POINTS;
use super::weights::{PointWeights, Weights, WeightsToPoints, point_stride};
use crate::isa::Isa;
use crate::panel::Panels;
use crate::pool::{SharedSlice, parallel_for};
use crate::scratch::Scratch;
use crate::simd::{Routine, Simd};
use crate::tile::tile_rows;

/// Bytes of transformed weights up to which a chunk sweeps all of them.
const MODERATE_WEIGHTS: usize = 5 << 19;

/// Bytes of transformed inputs and outputs that a chunk keeps in its second-level cache.
const CACHED_POINTS: usize = 700 << 10;

/// Tiles that large weights are transformed for at a time.
const MAX_TILES: usize = 128;

/// Input channels whose transformed weights a chunk holds at a time.
const INPUT_BLOCK: usize = 64;

/// A Winograd convolution of images `[batch, height, width, inputs]`.
pub(crate) struct Winograd<'a> {
    pub(crate) grid: TileGrid,
    pub(crate) images: &'a [f32],
    pub(crate) weights: Weights<'a>,
}

/// How the tiles are cut into groups; depends on the shape and the instruction set only.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TileGroups {
    tiles: usize,
    each: usize,
}

impl TileGroups {
    pub(crate) fn new(tiles: usize, each: usize) -> Self {
        Self { tiles, each: each.max(1) }
    }

    pub(crate) fn count(&self) -> usize {
        self.tiles.div_ceil(self.each)
    }

    pub(crate) fn tiles(&self, group: usize) -> Range<usize> {
        group * self.each..((group + 1) * self.each).min(self.tiles)
    }
}

/// Groups the tiles are cut into at least, as long as a group fills two register blocks.
const MIN_GROUPS: usize = 8;

impl Winograd<'_> {
    fn is_moderate(&self) -> bool {
        POINTS * self.weights.inputs * self.weights.outputs * size_of::<f32>() <= MODERATE_WEIGHTS
    }

    /// The groups of tiles whose statistics are kept apart.
    pub(crate) fn groups(&self, isa: Isa) -> TileGroups {
        let tiles = self.grid.tiles();
        if !self.is_moderate() {
            return TileGroups::new(tiles, MAX_TILES);
        }
        let pitch = |channels| PointLayout::new(1, channels).pitch;
        let bytes = POINTS * (pitch(self.weights.inputs) + pitch(self.weights.outputs)) * size_of::<f32>();
        let tall = isa.run(Tall(Panels::new(isa, self.weights.outputs).vectors(0)));
        let each = (CACHED_POINTS / bytes).min((tiles / MIN_GROUPS).max(2 * tall));
        TileGroups::new(tiles, (each / tall).max(1) * tall)
    }

    /// Computes every output and ends each as `ending` says.
    pub(crate) fn run(&self, isa: Isa, output: &mut [f32], ending: Ending<'_>) {
        assert_eq!(output.len(), self.grid.batch * self.grid.height * self.grid.width * self.weights.outputs);
        let output = SharedSlice::new(output);
        let mut zeros = Scratch::take(self.weights.inputs);
        zeros.fill(0.0);
        if self.is_moderate() {
            self.run_by_tiles(isa, &zeros, output, ending);
        } else {
            self.run_by_panels(isa, &zeros, output, ending);
        }
    }

    fn to_points<'b>(
        &'b self,
        tiles: Range<usize>,
        zeros: &'b [f32],
        layout: PointLayout,
        points: *mut f32,
    ) -> ToPoints<'b, false> {
        let (grid, images, channels) = (self.grid, self.images, self.weights.inputs);
        ToPoints { grid, tiles, images, channels, zeros, layout, points }
    }

    fn run_by_tiles(&self, isa: Isa, zeros: &[f32], output: SharedSlice<'_, f32>, ending: Ending<'_>) {
        let panels = Panels::new(isa, self.weights.outputs);
        let weights = PointWeights::new(isa, self.weights, &panels);
        let groups = self.groups(isa);
        let inputs = self.weights.inputs;
        parallel_for(groups.count(), |group| {
            let tiles = groups.tiles(group);
            let (from, to) =
                (PointLayout::new(tiles.len(), inputs), PointLayout::new(tiles.len(), panels.packed_len(1)));
            let (mut values, mut products) = (Scratch::take(from.len()), Scratch::take(to.len()));
            isa.run(self.to_points(tiles.clone(), zeros, from, values.as_mut_ptr()));
            isa.run(MultiplyPoints {
                panels: &panels,
                panel: 0..panels.count(),
                values: &values,
                from,
                tiles: tiles.len(),
                weights: |panel, point| weights.rows(&panels, panel, point),
                products: &mut products,
                to,
                accumulate: false,
            });
            isa.run(FromPoints {
                grid: self.grid,
                tiles,
                products: &products,
                layout: to,
                columns: 0..self.weights.outputs,
                channels: self.weights.outputs,
                output,
                group,
                ending,
            });
        });
    }

    fn run_by_panels(&self, isa: Isa, zeros: &[f32], output: SharedSlice<'_, f32>, ending: Ending<'_>) {
        let panels = Panels::narrow(isa, self.weights.outputs);
        let groups = self.groups(isa);
        for group in 0..groups.count() {
            let tiles = groups.tiles(group);
            let layout = PointLayout::new(tiles.len(), self.weights.inputs);
            let mut values = Scratch::take(layout.len());
            let shared = SharedSlice::new(&mut values);
            parallel_for(tiles.len(), |position| {
                let tile = tiles.start + position;
                let points = shared.pointer().wrapping_add(position * layout.pitch);
                isa.run(self.to_points(tile..tile + 1, zeros, layout, points));
            });
            parallel_for(panels.count(), |panel| {
                let products = self.multiply_panel(isa, &values, layout, tiles.len(), &panels, panel);
                isa.run(FromPoints {
                    grid: self.grid,
                    tiles: tiles.clone(),
                    products: &products,
                    layout: PointLayout::new(tiles.len(), panels.width(panel)),
                    columns: panels.columns(panel),
                    channels: self.weights.outputs,
                    output,
                    group,
                    ending,
                });
            });
        }
    }

    /// The products of one panel, transforming its weights a block of inputs at a time.
    fn multiply_panel(
        &self,
        isa: Isa,
        values: &[f32],
        from: PointLayout,
        tiles: usize,
        panels: &Panels,
        panel: usize,
    ) -> Scratch {
        let width = panels.width(panel);
        let to = PointLayout::new(tiles, width);
        let mut products = Scratch::take(to.len());
        let stride = point_stride(INPUT_BLOCK, width);
        let mut weights = Scratch::take(POINTS * stride);
        for start in (0..self.weights.inputs).step_by(INPUT_BLOCK) {
            let inputs = start..(start + INPUT_BLOCK).min(self.weights.inputs);
            isa.run(WeightsToPoints {
                weights: self.weights,
                inputs: inputs.clone(),
                outputs: panels.columns(panel),
                width,
                stride,
                target: weights.as_mut_ptr(),
            });
            isa.run(MultiplyPoints {
                panels,
                panel: panel..panel + 1,
                values: &values[start..],
                from,
                tiles,
                weights: |_, point| &weights[point * stride..][..inputs.len() * width],
                products: &mut products,
                to,
                accumulate: start > 0,
            });
        }
        products
    }
}

/// Rows of the register block that is some vectors wide.
struct Tall(usize);

impl Routine for Tall {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> usize {
        tile_rows(S::REGISTERS, self.0)
    }
}

/// The products of some tiles with some panels at every point.
struct MultiplyPoints<'a, W> {
    panels: &'a Panels,
    panel: Range<usize>,
    values: &'a [f32],
    from: PointLayout,
    tiles: usize,
    /// The rows of a panel at a point.
    weights: W,
    products: &'a mut [f32],
    to: PointLayout,
    accumulate: bool,
}

impl<'a, W: Fn(usize, usize) -> &'a [f32]> Routine for MultiplyPoints<'a, W> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let first_column = self.panels.offset(self.panel.start, 1);
        for panel in self.panel.clone() {
            let vectors = self.panels.vectors(panel);
            for point in 0..POINTS {
                let weights = (self.weights)(panel, point);
                let length = weights.len() / (vectors * S::LANES);
                let values = &self.values[point * self.from.stride..];
                let products = &mut self.products
                    [point * self.to.stride + self.panels.offset(panel, 1) - first_column..];
                assert!(values.len() >= (self.tiles - 1) * self.from.pitch + length);
                assert!(products.len() >= (self.tiles - 1) * self.to.pitch + vectors * S::LANES);
                // SAFETY: values and products hold all tiles by the assertions, the weights `length` rows.
                unsafe {
                    multiply(
                        simd,
                        Product {
                            values: values.as_ptr(),
                            value_pitch: self.from.pitch,
                            tiles: self.tiles,
                            weights: weights.as_ptr(),
                            length,
                            vectors,
                            products: products.as_mut_ptr(),
                            product_pitch: self.to.pitch,
                            accumulate: self.accumulate,
                        },
                    );
                }
            }
        }
    }
}
