//! The kernels as operators of Burn's CPU backend, with hand-written backward passes.
//!
//! Each operator has a plain form on `Flex` tensors and a differentiable form on `Autodiff<Flex>` that saves only what
//! its backward pass cannot cheaply recompute.

mod backward;
mod block;
mod differentiable;
mod tensors;

use burn::backend::{Backend, Flex, backend_extension, tensor::FloatTensor};

use crate::{
    AdamStep, ConvSpec, PerturbMix,
    adam::{AdamState, adam},
    depthwise::depthwise_add_forward,
    evaluate::conv_evaluate,
    linear::linear_forward,
    perturb::perturb_mix_forward,
    pooling::{average_pool_forward, max_pool_forward},
    recycle::Buffer,
};
use block::block_forward;
use tensors::{contiguous_mut, dims, geometry, image_shape, slice, tensor};

/// The CPU's tensor.
type Cpu = FloatTensor<Flex>;

/// Operators of a residual network on tensors with channels last; shapes as for the functions of the crate root.
#[backend_extension(Flex, Autodiff)]
pub trait Kernels: Backend {
    /// Output, batch mean and biased batch variance.
    fn conv_block(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        spec: ConvSpec,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// As `conv_block`, with another tensor added to the output.
    fn conv_block_add(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        residual: FloatTensor<Self>,
        spec: ConvSpec,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// Convolution, each output channel times its scale plus its shift.
    fn conv_scaled(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        spec: ConvSpec,
    ) -> FloatTensor<Self>;

    /// As `conv_scaled`, with another tensor added to the output.
    fn conv_scaled_add(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        residual: FloatTensor<Self>,
        spec: ConvSpec,
    ) -> FloatTensor<Self>;

    /// 3×3 maximum of stride 2.
    fn max_pool(x: FloatTensor<Self>) -> FloatTensor<Self>;

    /// `x` and its 3×3 convolution, channel by channel.
    fn depthwise_add(x: FloatTensor<Self>, kernel: FloatTensor<Self>) -> FloatTensor<Self>;

    /// Mean over height and width.
    fn average_pool(x: FloatTensor<Self>) -> FloatTensor<Self>;

    /// `x` · `weight` + `bias`.
    fn linear(x: FloatTensor<Self>, weight: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self>;

    /// Perturbed, then mixed rows.
    fn perturb_mix(x: FloatTensor<Self>, change: PerturbMix) -> FloatTensor<Self>;

    /// Parameter and moments after one step.
    fn adam(
        parameter: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);

    /// As `adam`, and the parameter's average moved by `share` of the way to it, which comes last.
    fn adam_averaged(
        parameter: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        average: FloatTensor<Self>,
        step: AdamStep,
        share: f64,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

impl Kernels for Flex {
    fn conv_block(x: Cpu, weight: Cpu, scale: Cpu, shift: Cpu, spec: ConvSpec) -> (Cpu, Cpu, Cpu) {
        let (output, mean, variance, _) = block_forward(&x, weight, scale, shift, None, spec);
        (output, mean, variance)
    }

    fn conv_block_add(
        x: Cpu,
        weight: Cpu,
        scale: Cpu,
        shift: Cpu,
        residual: Cpu,
        spec: ConvSpec,
    ) -> (Cpu, Cpu, Cpu) {
        let (output, mean, variance, _) = block_forward(&x, weight, scale, shift, Some(&residual), spec);
        (output, mean, variance)
    }

    fn conv_scaled(x: Cpu, weight: Cpu, scale: Cpu, shift: Cpu, spec: ConvSpec) -> Cpu {
        scaled(&x, &weight, [&scale, &shift], None, &spec)
    }

    fn conv_scaled_add(x: Cpu, weight: Cpu, scale: Cpu, shift: Cpu, residual: Cpu, spec: ConvSpec) -> Cpu {
        scaled(&x, &weight, [&scale, &shift], Some(&residual.to_contiguous()), &spec)
    }

    fn max_pool(x: Cpu) -> Cpu {
        let x = x.to_contiguous();
        let shape = image_shape(&x);
        let pooled = shape.max_pooled();
        let mut output = Buffer::new(pooled.len());
        max_pool_forward(shape, slice(&x), &mut output);
        tensor(output, [pooled.batch, pooled.height, pooled.width, pooled.channels])
    }

    fn depthwise_add(x: Cpu, kernel: Cpu) -> Cpu {
        let [x, kernel] = [x, kernel].map(|operand| operand.to_contiguous());
        let mut output = Buffer::new(slice(&x).len());
        depthwise_add_forward(image_shape(&x), slice(&x), slice(&kernel), &mut output);
        tensor(output, dims::<4>(&x))
    }

    fn average_pool(x: Cpu) -> Cpu {
        let x = x.to_contiguous();
        let shape = image_shape(&x);
        let mut output = Buffer::new(shape.batch * shape.channels);
        average_pool_forward(shape, slice(&x), &mut output);
        tensor(output, [shape.batch, shape.channels])
    }

    fn linear(x: Cpu, weight: Cpu, bias: Cpu) -> Cpu {
        let [x, weight, bias] = [x, weight, bias].map(|operand| operand.to_contiguous());
        let [rows, _] = dims(&x);
        let [_, outputs] = dims(&weight);
        let mut output = Buffer::new(rows * outputs);
        linear_forward(rows, slice(&x), slice(&weight), slice(&bias), &mut output);
        tensor(output, [rows, outputs])
    }

    fn perturb_mix(x: Cpu, change: PerturbMix) -> Cpu {
        let x = x.to_contiguous();
        let mut output = Buffer::new(slice(&x).len());
        perturb_mix_forward(&change.view(), slice(&x), &mut output);
        tensor(output, dims::<4>(&x))
    }

    fn adam(
        mut parameter: Cpu,
        gradient: Cpu,
        mut first: Cpu,
        mut second: Cpu,
        step: AdamStep,
    ) -> (Cpu, Cpu, Cpu) {
        let operands = [&mut parameter, &mut first, &mut second];
        let [parameter_slice, first_slice, second_slice] = operands.map(contiguous_mut);
        let state = AdamState {
            parameter: parameter_slice,
            first: first_slice,
            second: second_slice,
            average: &mut [],
        };
        adam(step, 0.0, state, slice(&gradient.to_contiguous()));
        (parameter, first, second)
    }

    fn adam_averaged(
        mut parameter: Cpu,
        gradient: Cpu,
        mut first: Cpu,
        mut second: Cpu,
        mut average: Cpu,
        step: AdamStep,
        share: f64,
    ) -> (Cpu, Cpu, Cpu, Cpu) {
        let operands = [&mut parameter, &mut first, &mut second, &mut average];
        let [parameter_slice, first_slice, second_slice, average_slice] = operands.map(contiguous_mut);
        let state = AdamState {
            parameter: parameter_slice,
            first: first_slice,
            second: second_slice,
            average: average_slice,
        };
        adam(step, share, state, slice(&gradient.to_contiguous()));
        (parameter, first, second, average)
    }
}

/// A convolution with scaled and shifted output, with or without another tensor added.
fn scaled(x: &Cpu, weight: &Cpu, [scale, shift]: [&Cpu; 2], residual: Option<&Cpu>, spec: &ConvSpec) -> Cpu {
    let [x, weight, scale, shift] = [x, weight, scale, shift].map(Cpu::to_contiguous);
    let geometry = geometry(&x, &weight, spec);
    let mut output = Buffer::new(geometry.output_len());
    conv_evaluate(
        &geometry,
        slice(&x),
        slice(&weight),
        slice(&scale),
        slice(&shift),
        spec.relu,
        residual.map(slice),
        spec.relu_after_sum,
        &mut output,
    );
    tensor(output, [geometry.batch, geometry.out_height(), geometry.out_width(), geometry.channels_out])
}
