//! The operators in their differentiable form: each saves what its backward pass needs.

use burn::backend::{
    Autodiff, Flex,
    autodiff::{
        checkpoint::strategy::CheckpointStrategy,
        ops::{Backward, OpsKind},
    },
    tensor::FloatTensor,
};

use super::{
    Cpu, Kernels,
    backward::{
        AveragePoolBackward, ConvBlockAddBackward, ConvBlockBackward, DepthwiseAddBackward, LinearBackward,
        MaxPoolBackward, PerturbMixBackward,
    },
    block::block_forward,
    tensors::dims,
};
use crate::{AdamStep, ConvSpec, NO_GRADIENT, PerturbMix};

impl<C: CheckpointStrategy> Kernels for Autodiff<Flex, C> {
    fn conv_block(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        spec: ConvSpec,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let nodes = [x.node(), weight.node(), scale.node(), shift.node()];
        let [x, weight, scale, shift] = [x, weight, scale, shift].map(inner::<C>);
        let (output, mean, variance, state) = block_forward(&x, weight, scale, shift, None, spec);
        let output = match ConvBlockBackward.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(state, output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        };
        (output, constant::<C>(mean), constant::<C>(variance))
    }

    fn conv_block_add(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        residual: FloatTensor<Self>,
        spec: ConvSpec,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let nodes = [x.node(), weight.node(), scale.node(), shift.node(), residual.node()];
        let [x, weight, scale, shift, residual] = [x, weight, scale, shift, residual].map(inner::<C>);
        let (output, mean, variance, mut state) =
            block_forward(&x, weight, scale, shift, Some(&residual), spec);
        let output = match ConvBlockAddBackward.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => {
                if spec.relu_after_sum {
                    state.output = Some(output.clone());
                }
                prep.finish(state, output)
            }
            OpsKind::UnTracked(prep) => prep.finish(output),
        };
        (output, constant::<C>(mean), constant::<C>(variance))
    }

    fn conv_scaled(
        _x: FloatTensor<Self>,
        _weight: FloatTensor<Self>,
        _scale: FloatTensor<Self>,
        _shift: FloatTensor<Self>,
        _spec: ConvSpec,
    ) -> FloatTensor<Self> {
        unreachable!("{NO_GRADIENT}")
    }

    fn conv_scaled_add(
        _x: FloatTensor<Self>,
        _weight: FloatTensor<Self>,
        _scale: FloatTensor<Self>,
        _shift: FloatTensor<Self>,
        _residual: FloatTensor<Self>,
        _spec: ConvSpec,
    ) -> FloatTensor<Self> {
        unreachable!("{NO_GRADIENT}")
    }

    fn max_pool(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let node = x.node();
        let x = x.into_primitive().to_contiguous();
        let output = <Flex as Kernels>::max_pool(x.clone());
        match MaxPoolBackward.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((x, output.clone()), output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }

    fn depthwise_add(x: FloatTensor<Self>, kernel: FloatTensor<Self>) -> FloatTensor<Self> {
        let nodes = [x.node(), kernel.node()];
        let [x, kernel] = [x, kernel].map(|operand| inner::<C>(operand).to_contiguous());
        let output = <Flex as Kernels>::depthwise_add(x.clone(), kernel.clone());
        match DepthwiseAddBackward.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((x, kernel), output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }

    fn average_pool(x: FloatTensor<Self>) -> FloatTensor<Self> {
        let node = x.node();
        let x = x.into_primitive();
        let shape = dims(&x);
        let output = <Flex as Kernels>::average_pool(x);
        match AveragePoolBackward.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(shape, output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }

    fn linear(x: FloatTensor<Self>, weight: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node(), bias.node()];
        let [x, weight, bias] = [x, weight, bias].map(inner::<C>);
        let [x, weight] = [x, weight].map(|operand| operand.to_contiguous());
        let output = <Flex as Kernels>::linear(x.clone(), weight.clone(), bias);
        match LinearBackward.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((x, weight), output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }

    fn perturb_mix(x: FloatTensor<Self>, change: PerturbMix) -> FloatTensor<Self> {
        let node = x.node();
        let output = <Flex as Kernels>::perturb_mix(x.into_primitive(), change.clone());
        match PerturbMixBackward.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(change, output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        }
    }

    fn adam(
        parameter: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let [parameter, gradient, first, second] = [parameter, gradient, first, second].map(inner::<C>);
        let (parameter, first, second) = <Flex as Kernels>::adam(parameter, gradient, first, second, step);
        (constant::<C>(parameter), constant::<C>(first), constant::<C>(second))
    }

    fn adam_averaged(
        parameter: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        average: FloatTensor<Self>,
        step: AdamStep,
        share: f64,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        let [parameter, gradient, first, second, average] =
            [parameter, gradient, first, second, average].map(inner::<C>);
        let (parameter, first, second, average) =
            <Flex as Kernels>::adam_averaged(parameter, gradient, first, second, average, step, share);
        (constant::<C>(parameter), constant::<C>(first), constant::<C>(second), constant::<C>(average))
    }
}

/// The plain tensor inside a differentiable one.
fn inner<C: CheckpointStrategy>(tensor: FloatTensor<Autodiff<Flex, C>>) -> Cpu {
    tensor.into_primitive()
}

/// A tensor that takes no part in the graph.
fn constant<C: CheckpointStrategy>(primitive: Cpu) -> FloatTensor<Autodiff<Flex, C>> {
    <Autodiff<Flex, C> as burn::backend::AutodiffBackend>::from_inner(primitive)
}
