//! The evaluation path: batch norm folded to a multiply-add an output, ReLU and residual applied while the output is in cache.
//! Scaling outputs instead of weights needs no second copy of the network.

use crate::batch_norm::{Normalise, Repeated};
use crate::correlate::{Correlation, Finished};
use crate::geometry::ConvGeometry;
use crate::isa::Isa;
use crate::panel::{Panels, pack};
use crate::pool::SharedSlice;
use crate::simd::{Routine, Simd};
use crate::winograd;
use crate::winograd::forward::Winograd;
use crate::winograd::grid::TileGrid;
use crate::winograd::output::Ending;
use crate::winograd::weights::Weights;
use crate::work;

/// `relu(convolution · scale + shift) + residual`, ReLU and residual optional, then optionally another ReLU.
///
/// `input` is `[batch, height, width, channels_in]`, `weight` `[kernel * kernel * channels_in, channels_out]`, `scale`
/// and `shift` `[channels_out]`, `residual` and `output` `[batch, out_height, out_width, channels_out]`.
///
/// # Panics
/// When a slice does not have the length its shape says.
#[expect(clippy::too_many_arguments, reason = "the operands of one fused operator")]
pub fn conv_evaluate(
    geometry: &ConvGeometry,
    input: &[f32],
    weight: &[f32],
    scale: &[f32],
    shift: &[f32],
    relu: bool,
    residual: Option<&[f32]>,
    relu_after: bool,
    output: &mut [f32],
) {
    geometry.check();
    assert_eq!(input.len(), geometry.input_len(), "the input's length is not that of {geometry:?}");
    assert_eq!(weight.len(), geometry.weight_len(), "the weight's length is not that of {geometry:?}");
    assert_eq!(output.len(), geometry.output_len(), "the output's length is not that of {geometry:?}");
    for vector in [scale, shift] {
        assert_eq!(vector.len(), geometry.channels_out, "scale and shift have one number an output channel");
    }
    assert!(
        residual.is_none_or(|residual| residual.len() == output.len()),
        "the residual must have the output's shape"
    );
    work::convolved(geometry);
    let isa = Isa::active();
    if winograd::pays(geometry) {
        let weights = Weights::forward(geometry, weight);
        let task = Winograd { grid: TileGrid::new(geometry), images: input, weights };
        task.run(isa, output, Ending::Complete { scale, shift, relu, residual, relu_after });
        return;
    }
    let panels = Panels::new(isa, geometry.channels_out);
    let packed = pack(&panels, weight, geometry.weight_rows());
    let coefficients = Repeated::new(geometry.channels_out, |channel| [0.0, scale[channel], shift[channel]]);
    Correlation::forward(geometry, input, &panels, packed.as_slice()).run(
        isa,
        output,
        Some(&|finished| {
            isa.run(Complete {
                finished,
                channels: geometry.channels_out,
                coefficients: &coefficients,
                scale,
                shift,
                residual,
                relu,
                relu_after,
            });
        }),
    );
}

/// Applies scale, shift, ReLU and residual to what a chunk has convolved.
struct Complete<'a> {
    finished: Finished<'a>,
    channels: usize,
    coefficients: &'a Repeated<3>,
    scale: &'a [f32],
    shift: &'a [f32],
    residual: Option<&'a [f32]>,
    relu: bool,
    relu_after: bool,
}

impl Routine for Complete<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let (pixels, columns) = (self.finished.pixels.clone(), self.finished.columns.clone());
        let output: SharedSlice<'_, f32> = self.finished.output;
        if columns.len() == self.channels {
            let start = pixels.start * self.channels;
            let length = pixels.len() * self.channels;
            // SAFETY: these pixels are the chunk's own.
            let output = unsafe { output.range(start, length) }.as_mut_ptr();
            Normalise {
                coefficients: self.coefficients,
                convolved: output.cast_const(),
                residual: self.residual.map(|residual| residual[start..start + length].as_ptr()),
                output,
                length,
                relu: self.relu,
                relu_after: self.relu_after,
            }
            .run(simd);
            return;
        }
        let coefficients = Repeated::<3>::new(columns.len(), |column| {
            [0.0, self.scale[columns.start + column], self.shift[columns.start + column]]
        });
        for pixel in pixels {
            let start = pixel * self.channels + columns.start;
            // SAFETY: these columns of the pixel are the chunk's own.
            let output = unsafe { output.range(start, columns.len()) }.as_mut_ptr();
            Normalise {
                coefficients: &coefficients,
                convolved: output.cast_const(),
                residual: self.residual.map(|residual| residual[start..start + columns.len()].as_ptr()),
                output,
                length: columns.len(),
                relu: self.relu,
                relu_after: self.relu_after,
            }
            .run(simd);
        }
    }
}
