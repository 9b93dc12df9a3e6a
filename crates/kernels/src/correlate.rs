//! Dense correlation of NHWC images with a packed weight matrix: the forward convolution, and its input gradient.
//!
//! Work is cut into (group of pixels, panels of output channels). With small weights every group sweeps all panels and pads its
//! own part of the source in cache; with large weights a chunk is one panel, and the source is padded once for everybody.

use std::ops::Range;

use crate::geometry::{ConvGeometry, Group, Groups};
use crate::isa::Isa;
use crate::panel::{Panels, Taps};
use crate::pool::{SharedSlice, parallel_for};
use crate::scratch::Scratch;
use crate::simd::{Routine, Simd};
use crate::source::{Source, SourceView};
use crate::tile::{MAX_ROWS, Segment, TileOperands, run_tile, tile_rows};

/// Packed weights above this many bytes are swept panel by panel.
const LARGE_WEIGHTS: usize = 640 << 10;

/// Bytes of packed weights that a tile sweep keeps in the first-level cache.
const CACHED_WEIGHTS: usize = 40 << 10;

/// Where the results of a correlation go: every `step`-th pixel of an image, from a first row and column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) first_row: usize,
    pub(crate) first_column: usize,
    pub(crate) step: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) channels: usize,
}

/// The outputs that a chunk has completed: some channels of the pixels of a group.
pub(crate) struct Finished<'a> {
    pub(crate) group: usize,
    pub(crate) pixels: Range<usize>,
    pub(crate) columns: Range<usize>,
    /// The whole output; only the pixels and columns above may be touched.
    pub(crate) output: SharedSlice<'a, f32>,
}

/// Called when a chunk's outputs are complete.
pub(crate) type Finish<'a> = &'a (dyn Fn(Finished<'_>) + Sync);

/// A correlation: how outputs read the source, and where they go.
pub(crate) struct Correlation<'a> {
    pub(crate) source: Source<'a>,
    pub(crate) placement: Placement,
    pub(crate) panels: &'a Panels,
    pub(crate) weights: &'a [f32],
}

impl<'a> Correlation<'a> {
    /// The forward convolution.
    pub(crate) fn forward(
        geometry: &ConvGeometry,
        input: &'a [f32],
        panels: &'a Panels,
        weights: &'a [f32],
    ) -> Self {
        let placement = Placement {
            height: geometry.out_height(),
            width: geometry.out_width(),
            first_row: 0,
            first_column: 0,
            step: 1,
            rows: geometry.out_height(),
            columns: geometry.out_width(),
            channels: geometry.channels_out,
        };
        Self { source: Source::of_input(geometry, input), placement, panels, weights }
    }

    /// The part of the input gradient at input rows and columns of the given residues modulo the stride.
    pub(crate) fn backward(
        geometry: &ConvGeometry,
        gradient: &'a [f32],
        panels: &'a Panels,
        weights: &'a [f32],
        residues: [usize; 2],
        taps: [Taps; 2],
    ) -> Self {
        let placement = Placement {
            height: geometry.height,
            width: geometry.width,
            first_row: residues[0],
            first_column: residues[1],
            step: geometry.stride,
            rows: (geometry.height - residues[0]).div_ceil(geometry.stride),
            columns: (geometry.width - residues[1]).div_ceil(geometry.stride),
            channels: geometry.channels_in,
        };
        let source = Source {
            data: gradient,
            batch: geometry.batch,
            height: geometry.out_height(),
            width: geometry.out_width(),
            channels: geometry.channels_out,
            first_row: taps[0].start,
            first_column: taps[1].start,
            step: 1,
            kernel_rows: taps[0].count,
            kernel_columns: taps[1].count,
            out_rows: placement.rows,
            out_columns: placement.columns,
        };
        Self { source, placement, panels, weights }
    }

    fn rows(&self) -> usize {
        self.source.kernel_rows * self.source.kernel_columns * self.source.channels
    }

    /// Groups of pixels the work is cut into.
    pub(crate) fn groups(&self) -> Groups {
        Groups::new(self.source.batch, self.placement.rows, self.placement.columns)
    }

    /// Computes every output; `finish` is called once per chunk.
    pub(crate) fn run(&self, isa: Isa, output: &mut [f32], finish: Option<Finish<'_>>) {
        let placement = &self.placement;
        assert_eq!(output.len(), self.source.batch * placement.height * placement.width * placement.channels);
        assert!(self.weights.len() >= self.panels.packed_len(self.rows()));
        let output = SharedSlice::new(output);
        let groups = self.groups();
        let large = self.rows() * placement.channels * size_of::<f32>() > LARGE_WEIGHTS;
        let whole = large.then(|| self.source.pad(Groups::single(self.source.batch, placement.rows)));
        let sweeps = if large { self.panels.count() } else { 1 };
        parallel_for(groups.count() * sweeps, |chunk| {
            let (index, sweep) = (chunk % groups.count(), chunk / groups.count());
            let group = groups.group(index);
            let panels = if large { sweep..sweep + 1 } else { 0..self.panels.count() };
            let own;
            let view = match &whole {
                Some(padded) => padded.view(&self.source, &group),
                None => {
                    own = self.source.pad_group(&group);
                    own.view(&self.source, &group)
                }
            };
            isa.run(Sweep { correlation: self, view, group: group.clone(), panels: panels.clone(), output });
            if let Some(finish) = finish {
                let pixels = group.pixels(placement.rows, placement.columns);
                let columns =
                    self.panels.columns(panels.start).start..self.panels.columns(panels.end - 1).end;
                finish(Finished { group: index, pixels, columns, output });
            }
        });
    }
}

/// One chunk: some panels over the pixels of a group.
struct Sweep<'a> {
    correlation: &'a Correlation<'a>,
    view: SourceView,
    group: Group,
    panels: Range<usize>,
    output: SharedSlice<'a, f32>,
}

impl Routine for Sweep<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let correlation = self.correlation;
        let rows = correlation.rows();
        let source = &correlation.source;
        let mut segments = Vec::with_capacity(source.kernel_rows + 1);
        for panel in self.panels.clone() {
            let width = correlation.panels.width(panel);
            let block = (CACHED_WEIGHTS / size_of::<f32>() / width).max(32);
            let blocks = rows.div_ceil(block);
            for index in 0..blocks {
                let range = rows * index / blocks..rows * (index + 1) / blocks;
                self.view.segments(source, range.clone(), &mut segments);
                let weights = correlation.panels.offset(panel, rows) + range.start * width;
                self.sweep(simd, panel, &segments, weights, index > 0);
            }
        }
    }
}

impl Sweep<'_> {
    /// Runs the tiles of one panel and one block of weight rows over all pixels of the group.
    #[inline(always)]
    fn sweep<S: Simd>(&self, simd: S, panel: usize, segments: &[Segment], weights: usize, accumulate: bool) {
        let correlation = self.correlation;
        let placement = &correlation.placement;
        let vectors = correlation.panels.vectors(panel);
        let tall = tile_rows(S::REGISTERS, vectors);
        let columns = correlation.panels.columns(panel);
        let last = columns.len() - (vectors - 1) * S::LANES;
        let mut sources = [std::ptr::null(); MAX_ROWS];
        let mut targets = [std::ptr::null_mut(); MAX_ROWS];
        let mut filled = 0;
        let flush = |sources: &[*const f32; MAX_ROWS], targets: &[*mut f32; MAX_ROWS]| {
            // SAFETY: the view holds every pixel of the group over every segment; targets are the group's own pixels and
            // this panel's columns; the packed weights were checked in `run`.
            unsafe {
                run_tile(
                    simd,
                    vectors,
                    TileOperands {
                        source: sources,
                        target: targets,
                        segments,
                        weights: correlation.weights.as_ptr().add(weights),
                        last,
                        accumulate,
                    },
                );
            }
        };
        for image in self.group.images.clone() {
            for row in self.group.rows.clone() {
                let target_row = image * placement.height + placement.first_row + row * placement.step;
                let target_start = target_row * placement.width + placement.first_column;
                for column in 0..placement.columns {
                    let target =
                        (target_start + column * placement.step) * placement.channels + columns.start;
                    sources[filled] = self.view.pixel(image, row, column);
                    // SAFETY: the placement lies inside the output, whose length `run` checked.
                    targets[filled] = unsafe { self.output.pointer().add(target) };
                    filled += 1;
                    if filled == tall {
                        flush(&sources, &targets);
                        filled = 0;
                    }
                }
            }
        }
        if filled > 0 {
            for spare in filled..tall {
                (sources[spare], targets[spare]) = (sources[filled - 1], targets[filled - 1]);
            }
            flush(&sources, &targets);
        }
    }
}

/// The gradient of the input `[batch, height, width, channels_in]`, given that of the output.
pub(crate) fn input_gradient(
    isa: Isa,
    geometry: &ConvGeometry,
    output_gradient: &[f32],
    weight: &[f32],
    gradient: &mut [f32],
) {
    let panels = Panels::new(isa, geometry.channels_in);
    for row in 0..geometry.stride.min(geometry.height) {
        for column in 0..geometry.stride.min(geometry.width) {
            let taps = [Taps::new(geometry, row), Taps::new(geometry, column)];
            if taps[0].count * taps[1].count == 0 {
                clear(geometry, [row, column], gradient);
                continue;
            }
            let packed: Scratch = crate::panel::pack_transposed(isa, &panels, geometry, weight, taps);
            let part =
                Correlation::backward(geometry, output_gradient, &panels, &packed, [row, column], taps);
            part.run(isa, gradient, None);
        }
    }
}

/// Zeros the input pixels of the given residues, which no output reads.
fn clear(geometry: &ConvGeometry, residues: [usize; 2], gradient: &mut [f32]) {
    let (width, channels) = (geometry.width, geometry.channels_in);
    let shared = SharedSlice::new(gradient);
    parallel_for(geometry.batch, |image| {
        // SAFETY: images are disjoint.
        let image = unsafe {
            shared.range(image * geometry.height * width * channels, geometry.height * width * channels)
        };
        for row in image.chunks_exact_mut(width * channels).skip(residues[0]).step_by(geometry.stride) {
            for pixel in row.chunks_exact_mut(channels).skip(residues[1]).step_by(geometry.stride) {
                pixel.fill(0.0);
            }
        }
    });
}
