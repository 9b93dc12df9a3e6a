//! The fused convolution block on tensors: what it computes, what it keeps, how gradients flow back.

use super::{
    Cpu,
    tensors::{dims, geometry, slice, slice_mut, tensor},
};
use crate::{
    ConvSpec,
    block::{
        BlockForward, BlockGradients, BlockOptions, BlockSaved, conv_block_backward, conv_block_forward,
    },
    recycle::Buffer,
};

/// What a block keeps for its backward pass.
#[derive(Clone, Debug)]
pub(super) struct BlockState {
    x: Cpu,
    weight: Cpu,
    scale: Cpu,
    shift: Cpu,
    convolved: Cpu,
    mean: Cpu,
    inverse_deviation: Cpu,
    /// The block's output; kept only where a ReLU follows the sum.
    pub(super) output: Option<Cpu>,
    spec: ConvSpec,
}

/// A block's output, batch mean and biased variance, and what its backward pass needs.
pub(super) fn block_forward(
    x: &Cpu,
    weight: Cpu,
    scale: Cpu,
    shift: Cpu,
    residual: Option<&Cpu>,
    spec: ConvSpec,
) -> (Cpu, Cpu, Cpu, BlockState) {
    let x = x.to_contiguous();
    let [weight, scale, shift] = [weight, scale, shift].map(|operand| operand.to_contiguous());
    let residual = residual.map(Cpu::to_contiguous);
    let residual = residual.as_ref().map(slice);
    let geometry = geometry(&x, &weight, &spec);
    let channels = geometry.channels_out;
    let mut convolved = Buffer::new(geometry.output_len());
    let mut output = Buffer::new(geometry.output_len());
    let [mut mean, mut variance, mut inverse_deviation] = [0; 3].map(|_| Buffer::new(channels));
    let forward = BlockForward {
        convolved: &mut convolved,
        mean: &mut mean,
        variance: &mut variance,
        inverse_deviation: &mut inverse_deviation,
        output: &mut output,
    };
    let (weights, scales, shifts) = (slice(&weight), slice(&scale), slice(&shift));
    conv_block_forward(&geometry, slice(&x), weights, scales, shifts, residual, options(&spec), forward);
    let shape = [geometry.batch, geometry.out_height(), geometry.out_width(), channels];
    let row = [1, channels];
    let mean = tensor(mean, row);
    let state = BlockState {
        x,
        weight,
        scale,
        shift,
        convolved: tensor(convolved, shape),
        mean: mean.clone(),
        inverse_deviation: tensor(inverse_deviation, row),
        output: None,
        spec,
    };
    (tensor(output, shape), mean, tensor(variance, row), state)
}

/// Gradients of a block's operands.
pub(super) struct BlockOutcome {
    pub(super) input: Option<Cpu>,
    pub(super) weight: Option<Cpu>,
    pub(super) scale: Cpu,
    pub(super) shift: Cpu,
    /// Gradient of the added tensor, if there is one.
    pub(super) residual: Cpu,
}

/// Runs a block backwards; the gradients of input and weight are computed only when wanted.
pub(super) fn block_backward(
    state: &BlockState,
    mut gradient: Cpu,
    wants_input: bool,
    wants_weight: bool,
) -> BlockOutcome {
    if !gradient.is_contiguous() {
        gradient = gradient.to_contiguous();
    }
    let geometry = geometry(&state.x, &state.weight, &state.spec);
    let mut input = wants_input.then(|| Buffer::new(geometry.input_len()));
    let mut weight = wants_weight.then(|| Buffer::new(geometry.weight_len()));
    let [mut scale, mut shift] = [0; 2].map(|_| Buffer::new(geometry.channels_out));
    let saved = BlockSaved {
        input: slice(&state.x),
        weight: slice(&state.weight),
        scale: slice(&state.scale),
        shift: slice(&state.shift),
        convolved: slice(&state.convolved),
        mean: slice(&state.mean),
        inverse_deviation: slice(&state.inverse_deviation),
        output: state.output.as_ref().map(slice),
    };
    let gradients = BlockGradients {
        input: input.as_deref_mut(),
        weight: weight.as_deref_mut(),
        scale: &mut scale,
        shift: &mut shift,
    };
    conv_block_backward(&geometry, saved, options(&state.spec), slice_mut(&mut gradient), gradients);
    let row = [1, geometry.channels_out];
    BlockOutcome {
        input: input.map(|input| tensor(input, dims::<4>(&state.x))),
        weight: weight.map(|weight| tensor(weight, [geometry.weight_rows(), geometry.channels_out])),
        scale: tensor(scale, row),
        shift: tensor(shift, row),
        residual: gradient,
    }
}

fn options(spec: &ConvSpec) -> BlockOptions {
    BlockOptions { epsilon: spec.epsilon as f32, relu: spec.relu, relu_after: spec.relu_after_sum }
}
