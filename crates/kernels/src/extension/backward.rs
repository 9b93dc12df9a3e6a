//! Backward passes of the operators, in the form Burn's autodiff calls them.

use burn::backend::{
    Flex,
    autodiff::{
        NodeId,
        checkpoint::base::Checkpointer,
        grads::Gradients,
        ops::{Backward, Ops},
    },
};

use super::{
    Cpu,
    block::{BlockOutcome, BlockState, block_backward},
    tensors::{dims, image_shape, slice, tensor},
};
use crate::{
    PerturbMix,
    depthwise::{depthwise_add_backward, depthwise_kernel_gradient},
    linear::linear_backward,
    perturb::perturb_mix_backward,
    pooling::{ImageShape, average_pool_backward, max_pool_backward},
    recycle::Buffer,
};

/// Hands each gradient to its parent, where the parent wants one.
fn register<const N: usize>(
    grads: &mut Gradients,
    parents: [Option<NodeId>; N],
    gradients: [Option<Cpu>; N],
) {
    for (node, gradient) in parents.into_iter().zip(gradients) {
        if let (Some(node), Some(gradient)) = (node, gradient) {
            grads.register::<Flex>(node, gradient);
        }
    }
}

#[derive(Debug)]
pub(super) struct ConvBlockBackward;

impl Backward<Flex, 4> for ConvBlockBackward {
    type State = BlockState;

    fn backward(self, ops: Ops<BlockState, 4>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let gradient = grads.consume::<Flex>(&ops.node);
        let BlockOutcome { input, weight, scale, shift, .. } =
            block_backward(&ops.state, gradient, ops.parents[0].is_some(), ops.parents[1].is_some());
        register(
            grads,
            ops.parents.map(|node| node.map(|node| node.id)),
            [input, weight, Some(scale), Some(shift)],
        );
    }
}

#[derive(Debug)]
pub(super) struct ConvBlockAddBackward;

impl Backward<Flex, 5> for ConvBlockAddBackward {
    type State = BlockState;

    fn backward(self, ops: Ops<BlockState, 5>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let gradient = grads.consume::<Flex>(&ops.node);
        let BlockOutcome { input, weight, scale, shift, residual } =
            block_backward(&ops.state, gradient, ops.parents[0].is_some(), ops.parents[1].is_some());
        register(
            grads,
            ops.parents.map(|node| node.map(|node| node.id)),
            [input, weight, Some(scale), Some(shift), Some(residual)],
        );
    }
}

#[derive(Debug)]
pub(super) struct MaxPoolBackward;

impl Backward<Flex, 1> for MaxPoolBackward {
    type State = (Cpu, Cpu);

    fn backward(self, ops: Ops<(Cpu, Cpu), 1>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let [node] = ops.parents;
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let Some(node) = node else { return };
        let (x, output) = ops.state;
        let shape = image_shape(&x);
        let mut input = Buffer::new(shape.len());
        max_pool_backward(shape, slice(&x), slice(&output), slice(&gradient), &mut input);
        grads.register::<Flex>(node.id, tensor(input, dims::<4>(&x)));
    }
}

#[derive(Debug)]
pub(super) struct DepthwiseAddBackward;

impl Backward<Flex, 2> for DepthwiseAddBackward {
    type State = (Cpu, Cpu);

    fn backward(self, ops: Ops<(Cpu, Cpu), 2>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let nodes = ops.parents.map(|node| node.map(|node| node.id));
        let given = grads.consume::<Flex>(&ops.node).to_contiguous();
        let (x, kernel) = ops.state;
        let shape = image_shape(&x);
        let input = nodes[0].map(|_| {
            let mut input = Buffer::new(shape.len());
            depthwise_add_backward(shape, slice(&kernel), slice(&given), &mut input);
            tensor(input, dims::<4>(&x))
        });
        let weights = nodes[1].map(|_| {
            let mut weights = Buffer::new(slice(&kernel).len());
            depthwise_kernel_gradient(shape, slice(&x), slice(&given), &mut weights);
            tensor(weights, dims::<2>(&kernel))
        });
        register(grads, nodes, [input, weights]);
    }
}

#[derive(Debug)]
pub(super) struct AveragePoolBackward;

impl Backward<Flex, 1> for AveragePoolBackward {
    type State = [usize; 4];

    fn backward(self, ops: Ops<[usize; 4], 1>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let [node] = ops.parents;
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let Some(node) = node else { return };
        let [batch, height, width, channels] = ops.state;
        let shape = ImageShape { batch, height, width, channels };
        let mut input = Buffer::new(shape.len());
        average_pool_backward(shape, slice(&gradient), &mut input);
        grads.register::<Flex>(node.id, tensor(input, ops.state));
    }
}

#[derive(Debug)]
pub(super) struct LinearBackward;

impl Backward<Flex, 3> for LinearBackward {
    type State = (Cpu, Cpu);

    fn backward(self, ops: Ops<(Cpu, Cpu), 3>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let nodes = ops.parents.map(|node| node.map(|node| node.id));
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let (x, weight) = ops.state;
        let [rows, features] = dims(&x);
        let [_, outputs] = dims(&weight);
        let mut input = nodes[0].is_some().then(|| Buffer::new(rows * features));
        let (mut weights, mut bias) = (Buffer::new(features * outputs), Buffer::new(outputs));
        let wanted = input.as_deref_mut();
        linear_backward(rows, slice(&x), slice(&weight), slice(&gradient), wanted, &mut weights, &mut bias);
        let gradients = [
            input.map(|input| tensor(input, [rows, features])),
            Some(tensor(weights, [features, outputs])),
            Some(tensor(bias, [1, outputs])),
        ];
        register(grads, nodes, gradients);
    }
}

#[derive(Debug)]
pub(super) struct PerturbMixBackward;

impl Backward<Flex, 1> for PerturbMixBackward {
    type State = PerturbMix;

    fn backward(self, ops: Ops<PerturbMix, 1>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let [node] = ops.parents;
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let Some(node) = node else { return };
        let mut input = Buffer::new(slice(&gradient).len());
        perturb_mix_backward(&ops.state.view(), slice(&gradient), &mut input);
        grads.register::<Flex>(node.id, tensor(input, dims::<4>(&gradient)));
    }
}
