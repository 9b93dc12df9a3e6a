//! The images a correlation reads, with zeros around them where it reaches past an edge.

use std::ops::Range;

use crate::geometry::{ConvGeometry, Group, Groups};
use crate::pool::{SharedSlice, parallel_for};
use crate::scratch::Scratch;
use crate::tile::Segment;

/// Images `[batch, height, width, channels]` and how outputs read them: output (row, column) reads the kernel's rows and columns
/// from (`first_row + row * step`, `first_column + column * step`) on, which may lie outside, where everything is zero.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) batch: usize,
    pub(crate) height: usize,
    pub(crate) width: usize,
    pub(crate) channels: usize,
    pub(crate) first_row: isize,
    pub(crate) first_column: isize,
    pub(crate) step: usize,
    pub(crate) kernel_rows: usize,
    pub(crate) kernel_columns: usize,
    pub(crate) out_rows: usize,
    pub(crate) out_columns: usize,
}

/// Some images with their zeros, or the original images when no output reaches past an edge.
pub(crate) struct PaddedSource {
    scratch: Option<Scratch>,
    /// First image and first output row held.
    first_image: usize,
    first_row: usize,
    rows: usize,
}

/// Addresses of the pixels of a group.
#[derive(Clone, Copy)]
pub(crate) struct SourceView {
    /// Address that image 0, output row 0, output column 0 would have.
    origin: *const f32,
    image_pitch: usize,
    row_pitch: usize,
    row_step: usize,
    column_step: usize,
}

// SAFETY: a view is only read through, and its data outlives the chunk that uses it.
unsafe impl Send for SourceView {}
// SAFETY: as above.
unsafe impl Sync for SourceView {}

impl<'a> Source<'a> {
    /// How a forward convolution reads its input.
    pub(crate) fn of_input(geometry: &ConvGeometry, input: &'a [f32]) -> Self {
        let padding = -(geometry.padding as isize);
        Self {
            data: input,
            batch: geometry.batch,
            height: geometry.height,
            width: geometry.width,
            channels: geometry.channels_in,
            first_row: padding,
            first_column: padding,
            step: geometry.stride,
            kernel_rows: geometry.kernel,
            kernel_columns: geometry.kernel,
            out_rows: geometry.out_height(),
            out_columns: geometry.out_width(),
        }
    }

    /// Source columns that some output reads.
    fn padded_width(&self) -> usize {
        (self.out_columns - 1) * self.step + self.kernel_columns
    }

    /// Source rows that `rows` consecutive output rows read.
    fn padded_rows(&self, rows: usize) -> usize {
        (rows - 1) * self.step + self.kernel_rows
    }

    fn reaches_past_an_edge(&self) -> bool {
        let outside = |first: isize, length: usize, size: usize| first < 0 || first as usize + length > size;
        outside(self.first_row, self.padded_rows(self.out_rows), self.height)
            || outside(self.first_column, self.padded_width(), self.width)
    }

    /// Fills `target` with the source rows that output rows `rows` of `image` read.
    fn copy_image(&self, image: usize, rows: Range<usize>, target: &mut [f32]) {
        let (width, channels) = (self.padded_width(), self.channels);
        let first_row = self.first_row + (rows.start * self.step) as isize;
        let left = (-self.first_column).clamp(0, width as isize) as usize;
        let start = self.first_column.max(0) as usize;
        let copied = (self.width.saturating_sub(start)).min(width - left);
        for (index, line) in target.chunks_exact_mut(width * channels).enumerate() {
            let row = first_row + index as isize;
            if row < 0 || row as usize >= self.height {
                line.fill(0.0);
                continue;
            }
            let from = ((image * self.height + row as usize) * self.width + start) * channels;
            line[..left * channels].fill(0.0);
            line[left * channels..(left + copied) * channels]
                .copy_from_slice(&self.data[from..from + copied * channels]);
            line[(left + copied) * channels..].fill(0.0);
        }
    }

    /// The part of the source that one group reads, copied by the calling thread if it needs zeros around it.
    pub(crate) fn pad_group(&self, group: &Group) -> PaddedSource {
        let rows = self.padded_rows(group.rows.len());
        let scratch = self.reaches_past_an_edge().then(|| {
            let image_len = rows * self.padded_width() * self.channels;
            let mut scratch = Scratch::take(group.images.len() * image_len);
            for (image, target) in group.images.clone().zip(scratch.chunks_exact_mut(image_len)) {
                self.copy_image(image, group.rows.clone(), target);
            }
            scratch
        });
        PaddedSource { scratch, first_image: group.images.start, first_row: group.rows.start, rows }
    }

    /// The whole source, copied by all threads if it needs zeros around it.
    pub(crate) fn pad(&self, groups: Groups) -> PaddedSource {
        let group = groups.group(0);
        if !self.reaches_past_an_edge() {
            return self.pad_group(&group);
        }
        self.copy()
    }

    /// The whole source copied with its zeros, whether it needs them or not; readable for a vector past its end.
    pub(crate) fn copy(&self) -> PaddedSource {
        let rows = self.padded_rows(self.out_rows);
        let image_len = rows * self.padded_width() * self.channels;
        let mut scratch = Scratch::take(self.batch * image_len);
        let shared = SharedSlice::new(&mut scratch);
        parallel_for(self.batch, |image| {
            // SAFETY: images are disjoint.
            let target = unsafe { shared.range(image * image_len, image_len) };
            self.copy_image(image, 0..self.out_rows, target);
        });
        PaddedSource { scratch: Some(scratch), first_image: 0, first_row: 0, rows }
    }

    /// One group copied with its zeros, whether it needs them or not; readable for a vector past its end.
    pub(crate) fn copy_group(&self, group: &Group) -> PaddedSource {
        let rows = self.padded_rows(group.rows.len());
        let image_len = rows * self.padded_width() * self.channels;
        let mut scratch = Scratch::take(group.images.len() * image_len);
        for (image, target) in group.images.clone().zip(scratch.chunks_exact_mut(image_len)) {
            self.copy_image(image, group.rows.clone(), target);
        }
        PaddedSource {
            scratch: Some(scratch),
            first_image: group.images.start,
            first_row: group.rows.start,
            rows,
        }
    }
}

impl PaddedSource {
    /// Addresses of the pixels of `group`, which must lie inside what is held.
    pub(crate) fn view(&self, source: &Source<'_>, group: &Group) -> SourceView {
        let (step, channels) = (source.step, source.channels);
        match &self.scratch {
            None => {
                let row_pitch = source.width * channels;
                assert_eq!(source.data.len(), source.batch * source.height * row_pitch);
                let start = source.first_row as usize * row_pitch + source.first_column as usize * channels;
                SourceView {
                    origin: source.data.as_ptr().wrapping_add(start),
                    image_pitch: source.height * row_pitch,
                    row_pitch,
                    row_step: step * row_pitch,
                    column_step: step * channels,
                }
            }
            Some(scratch) => {
                let row_pitch = source.padded_width() * channels;
                let image_pitch = self.rows * row_pitch;
                assert!(group.images.start >= self.first_image && group.rows.start >= self.first_row);
                assert!((group.images.end - self.first_image) * image_pitch <= scratch.len());
                assert!(source.padded_rows(group.rows.end - self.first_row) <= self.rows);
                let back = self.first_image * image_pitch + self.first_row * step * row_pitch;
                SourceView {
                    origin: scratch.pointer().wrapping_sub(back),
                    image_pitch,
                    row_pitch,
                    row_step: step * row_pitch,
                    column_step: step * channels,
                }
            }
        }
    }
}

impl SourceView {
    /// Address of the first number that an output pixel reads.
    #[inline(always)]
    pub(crate) fn pixel(&self, image: usize, row: usize, column: usize) -> *const f32 {
        let offset = image * self.image_pitch + row * self.row_step + column * self.column_step;
        self.origin.wrapping_add(offset)
    }

    /// Numbers between a kernel row and the next.
    pub(crate) fn row_pitch(&self) -> usize {
        self.row_pitch
    }

    /// The runs of source numbers that rows `range` of the weight matrix multiply.
    pub(crate) fn segments(&self, source: &Source<'_>, range: Range<usize>, segments: &mut Vec<Segment>) {
        let run = source.kernel_columns * source.channels;
        segments.clear();
        let mut start = range.start;
        while start < range.end {
            let end = ((start / run + 1) * run).min(range.end);
            segments
                .push(Segment { offset: start / run * self.row_pitch + start % run, length: end - start });
            start = end;
        }
    }
}
