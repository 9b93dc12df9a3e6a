//! The fused block convolution → batch norm → optional ReLU → optional residual (→ optional ReLU), forward and backward.

use crate::batch_norm::{Partials, Repeated, Statistics, normalise};
use crate::batch_norm_backward::{Normalised, backward};
use crate::correlate::{Correlation, input_gradient};
use crate::geometry::ConvGeometry;
use crate::isa::Isa;
use crate::panel::{Panels, pack};
use crate::weight_gradient::weight_gradient;
use crate::winograd::forward::Winograd;
use crate::winograd::grid::TileGrid;
use crate::winograd::output::Ending;
use crate::winograd::weights::Weights;
use crate::winograd::{self, gradient};
use crate::work;

/// What the block does around its convolution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockOptions {
    /// Added to the variance before the square root.
    pub epsilon: f32,
    /// ReLU after the batch norm.
    pub relu: bool,
    /// ReLU after the residual has been added; without a residual it does nothing.
    pub relu_after: bool,
}

/// Where the forward pass of a block writes.
pub struct BlockForward<'a> {
    /// The convolution's output `[batch, out_height, out_width, channels_out]`, kept for the backward pass.
    pub convolved: &'a mut [f32],
    /// Batch mean `[channels_out]`.
    pub mean: &'a mut [f32],
    /// Biased batch variance `[channels_out]`.
    pub variance: &'a mut [f32],
    /// `1 / sqrt(variance + epsilon)`, `[channels_out]`.
    pub inverse_deviation: &'a mut [f32],
    /// The block's output, in the shape of `convolved`.
    pub output: &'a mut [f32],
}

/// What the backward pass of a block reads, as given to and left by the forward pass.
#[derive(Clone, Copy)]
pub struct BlockSaved<'a> {
    /// `[batch, height, width, channels_in]`.
    pub input: &'a [f32],
    /// `[kernel * kernel * channels_in, channels_out]`.
    pub weight: &'a [f32],
    /// `[channels_out]`.
    pub scale: &'a [f32],
    /// `[channels_out]`.
    pub shift: &'a [f32],
    /// `[batch, out_height, out_width, channels_out]`.
    pub convolved: &'a [f32],
    /// `[channels_out]`.
    pub mean: &'a [f32],
    /// `[channels_out]`.
    pub inverse_deviation: &'a [f32],
    /// The block's output; needed only with a residual and `relu_after`.
    pub output: Option<&'a [f32]>,
}

/// Where the backward pass of a block writes.
pub struct BlockGradients<'a> {
    /// In the shape of the input; `None` skips the work, as for the first layer.
    pub input: Option<&'a mut [f32]>,
    /// In the shape of the weight; `None` skips the work, as for a layer that does not learn.
    pub weight: Option<&'a mut [f32]>,
    /// `[channels_out]`; a by-product of the input's gradient, as is `shift`.
    pub scale: &'a mut [f32],
    /// `[channels_out]`.
    pub shift: &'a mut [f32],
}

/// Forward pass in training: normalises with the statistics of this batch.
///
/// `input` is `[batch, height, width, channels_in]`, `weight` `[kernel * kernel * channels_in, channels_out]`, `scale` and
/// `shift` `[channels_out]`, `residual` in the shape of the output.
///
/// # Panics
/// When a slice does not have the length its shape says.
#[expect(clippy::too_many_arguments, reason = "the operands of one fused operator")]
pub fn conv_block_forward(
    geometry: &ConvGeometry,
    input: &[f32],
    weight: &[f32],
    scale: &[f32],
    shift: &[f32],
    residual: Option<&[f32]>,
    options: BlockOptions,
    out: BlockForward<'_>,
) {
    geometry.check();
    let channels = geometry.channels_out;
    let BlockForward { convolved, mean, variance, inverse_deviation, output } = out;
    assert_eq!(input.len(), geometry.input_len(), "the input's length is not that of {geometry:?}");
    assert_eq!(weight.len(), geometry.weight_len(), "the weight's length is not that of {geometry:?}");
    assert_eq!(convolved.len(), geometry.output_len(), "the output's length is not that of {geometry:?}");
    for vector in [scale, shift, &*mean, &*variance, &*inverse_deviation] {
        assert_eq!(vector.len(), channels, "batch-norm vectors have one number a channel");
    }
    work::convolved(geometry);
    let isa = Isa::active();
    convolve_with_statistics(isa, geometry, input, weight, convolved, mean, variance);
    for (inverse, &variance) in inverse_deviation.iter_mut().zip(&*variance) {
        *inverse = 1.0 / (variance + options.epsilon).sqrt();
    }
    let coefficients = Repeated::new(channels, |channel| {
        [mean[channel], scale[channel] * inverse_deviation[channel], shift[channel]]
    });
    let (relu, after) = (options.relu, options.relu_after);
    normalise(isa, channels, &coefficients, convolved, residual, relu, after, output);
}

/// The convolution, with the mean and biased variance of each output channel.
fn convolve_with_statistics(
    isa: Isa,
    geometry: &ConvGeometry,
    input: &[f32],
    weight: &[f32],
    convolved: &mut [f32],
    mean: &mut [f32],
    variance: &mut [f32],
) {
    let channels = geometry.channels_out;
    if winograd::pays(geometry) {
        let grid = TileGrid::new(geometry);
        let task = Winograd { grid, images: input, weights: Weights::forward(geometry, weight) };
        let groups = task.groups(isa);
        let mut partials = Partials::new(groups.count(), channels);
        task.run(isa, convolved, Ending::Statistics(partials.shared()));
        partials.combine(|group| grid.pixels(groups.tiles(group)), mean, variance);
        return;
    }
    let panels = Panels::new(isa, channels);
    let packed = pack(&panels, weight, geometry.weight_rows());
    let correlation = Correlation::forward(geometry, input, &panels, packed.as_slice());
    let groups = correlation.groups();
    let mut partials = Partials::new(groups.count(), channels);
    let shared = partials.shared();
    correlation.run(
        isa,
        convolved,
        Some(&|finished| isa.run(Statistics { finished, channels, partials: shared })),
    );
    let pixels = |group| groups.group(group).pixels(geometry.out_height(), geometry.out_width()).len();
    partials.combine(pixels, mean, variance);
}

/// Backward pass of [`conv_block_forward`], given the gradient of the block's output; it leaves the residual's gradient there,
/// which differs only where a ReLU follows the sum.
///
/// # Panics
/// When a slice does not have the length its shape says.
pub fn conv_block_backward(
    geometry: &ConvGeometry,
    saved: BlockSaved<'_>,
    options: BlockOptions,
    output_gradient: &mut [f32],
    gradients: BlockGradients<'_>,
) {
    geometry.check();
    assert_eq!(saved.input.len(), geometry.input_len(), "the input's length is not that of {geometry:?}");
    assert_eq!(saved.weight.len(), geometry.weight_len(), "the weight's length is not that of {geometry:?}");
    assert_eq!(
        saved.convolved.len(),
        geometry.output_len(),
        "the saved output's length is not that of {geometry:?}"
    );
    let isa = Isa::active();
    let normalised = Normalised {
        convolved: saved.convolved,
        mean: saved.mean,
        inverse_deviation: saved.inverse_deviation,
        scale: saved.scale,
        shift: saved.shift,
        relu: options.relu,
    };
    let after = saved.output.filter(|_| options.relu_after);
    let convolved_gradient =
        backward(isa, normalised, output_gradient, after, gradients.scale, gradients.shift);
    let fast = winograd::pays(geometry);
    if let Some(weight) = gradients.weight {
        work::convolved(geometry);
        if fast {
            gradient::weight_gradient(isa, geometry, saved.input, &convolved_gradient, weight);
        } else {
            weight_gradient(isa, geometry, saved.input, &convolved_gradient, weight);
        }
    }
    if let Some(input) = gradients.input {
        work::convolved(geometry);
        assert_eq!(
            input.len(),
            geometry.input_len(),
            "the input gradient's length is not that of {geometry:?}"
        );
        if fast {
            let weights = Weights::backward(geometry, saved.weight);
            let task = Winograd { grid: TileGrid::new(geometry), images: &convolved_gradient, weights };
            task.run(isa, input, Ending::Plain);
        } else {
            input_gradient(isa, geometry, &convolved_gradient, saved.weight, input);
        }
    }
}

#[cfg(test)]
#[path = "block_tests.rs"]
mod tests;
