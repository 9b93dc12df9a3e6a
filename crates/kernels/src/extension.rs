//! The kernels as operators of Burn's CPU backend, with hand-written backward passes.
//!
//! Each operator has a plain form on `Flex` tensors and a differentiable form on `Autodiff<Flex>` that saves only what
//! its backward pass cannot cheaply recompute.

use burn::backend::{
    Autodiff, Backend, Flex, TensorMetadata,
    autodiff::{
        checkpoint::{base::Checkpointer, strategy::CheckpointStrategy},
        grads::Gradients,
        ops::{Backward, Ops, OpsKind},
    },
    backend_extension,
    tensor::FloatTensor,
};
use burn::tensor::{Shape, TensorData};

use crate::{
    AdamStep, ConvSpec,
    adam::{AdamOptions, adam},
    block::{
        BlockForward, BlockGradients, BlockOptions, BlockSaved, conv_block_backward, conv_block_forward,
    },
    evaluate::conv_evaluate,
    geometry::ConvGeometry,
    linear::{linear_backward, linear_forward},
    pooling::{ImageShape, average_pool_backward, average_pool_forward, max_pool_backward, max_pool_forward},
};

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

    /// Convolution with folded batch norm.
    fn conv_folded(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        spec: ConvSpec,
    ) -> FloatTensor<Self>;

    /// 3×3 maximum of stride 2.
    fn max_pool(x: FloatTensor<Self>) -> FloatTensor<Self>;

    /// Mean over height and width.
    fn average_pool(x: FloatTensor<Self>) -> FloatTensor<Self>;

    /// `x` · `weight` + `bias`.
    fn linear(x: FloatTensor<Self>, weight: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self>;

    /// Parameter and moments after one step.
    fn adam(
        parameter: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>);
}

/// What a block keeps for its backward pass.
#[derive(Clone, Debug)]
struct BlockState {
    x: Cpu,
    weight: Cpu,
    scale: Cpu,
    shift: Cpu,
    convolved: Cpu,
    mean: Cpu,
    inverse_deviation: Cpu,
    spec: ConvSpec,
}

/// A block's output, batch mean and biased variance, and what its backward pass needs.
fn block_forward(x: Cpu, weight: Cpu, scale: Cpu, shift: Cpu, spec: ConvSpec) -> (Cpu, Cpu, Cpu, BlockState) {
    let x = x.to_contiguous();
    let geometry = geometry(&x, &weight, &spec);
    let channels = geometry.channels_out;
    let mut convolved = vec![0.0; geometry.output_len()];
    let mut output = vec![0.0; geometry.output_len()];
    let [mut mean, mut variance, mut inverse_deviation] = [0; 3].map(|_| vec![0.0; channels]);
    let forward = BlockForward {
        convolved: &mut convolved,
        mean: &mut mean,
        variance: &mut variance,
        inverse_deviation: &mut inverse_deviation,
        output: &mut output,
    };
    let (weights, scales, shifts) = (slice(&weight), slice(&scale), slice(&shift));
    conv_block_forward(&geometry, slice(&x), weights, scales, shifts, None, options(&spec), forward);
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
        spec,
    };
    (tensor(output, shape), mean, tensor(variance, row), state)
}

/// Gradients of a block's input (when wanted), weight, scale and shift.
fn block_backward(state: &BlockState, gradient: &Cpu, wants_input: bool) -> (Option<Cpu>, Cpu, Cpu, Cpu) {
    let gradient = gradient.to_contiguous();
    let geometry = geometry(&state.x, &state.weight, &state.spec);
    let mut input = wants_input.then(|| vec![0.0; geometry.input_len()]);
    let mut weight = vec![0.0; geometry.weight_len()];
    let [mut scale, mut shift] = [0; 2].map(|_| vec![0.0; geometry.channels_out]);
    let saved = BlockSaved {
        input: slice(&state.x),
        weight: slice(&state.weight),
        scale: slice(&state.scale),
        shift: slice(&state.shift),
        convolved: slice(&state.convolved),
        mean: slice(&state.mean),
        inverse_deviation: slice(&state.inverse_deviation),
        output: None,
    };
    let gradients = BlockGradients {
        input: input.as_deref_mut(),
        weight: &mut weight,
        scale: &mut scale,
        shift: &mut shift,
        residual: None,
    };
    conv_block_backward(&geometry, saved, options(&state.spec), slice(&gradient), gradients);
    let row = [1, geometry.channels_out];
    (
        input.map(|input| tensor(input, dims::<4>(&state.x))),
        tensor(weight, [geometry.weight_rows(), geometry.channels_out]),
        tensor(scale, row),
        tensor(shift, row),
    )
}

impl Kernels for Flex {
    fn conv_block(x: Cpu, weight: Cpu, scale: Cpu, shift: Cpu, spec: ConvSpec) -> (Cpu, Cpu, Cpu) {
        let (output, mean, variance, _) = block_forward(x, weight, scale, shift, spec);
        (output, mean, variance)
    }

    fn conv_folded(x: Cpu, weight: Cpu, bias: Cpu, spec: ConvSpec) -> Cpu {
        let x = x.to_contiguous();
        let geometry = geometry(&x, &weight, &spec);
        let mut output = vec![0.0; geometry.output_len()];
        let (weights, biases) = (slice(&weight), slice(&bias));
        conv_evaluate(&geometry, slice(&x), weights, biases, spec.relu, None, false, &mut output);
        tensor(output, [geometry.batch, geometry.out_height(), geometry.out_width(), geometry.channels_out])
    }

    fn max_pool(x: Cpu) -> Cpu {
        let x = x.to_contiguous();
        let shape = image_shape(&x);
        let pooled = shape.max_pooled();
        let mut output = vec![0.0; pooled.len()];
        max_pool_forward(shape, slice(&x), &mut output);
        tensor(output, [pooled.batch, pooled.height, pooled.width, pooled.channels])
    }

    fn average_pool(x: Cpu) -> Cpu {
        let x = x.to_contiguous();
        let shape = image_shape(&x);
        let mut output = vec![0.0; shape.batch * shape.channels];
        average_pool_forward(shape, slice(&x), &mut output);
        tensor(output, [shape.batch, shape.channels])
    }

    fn linear(x: Cpu, weight: Cpu, bias: Cpu) -> Cpu {
        let x = x.to_contiguous();
        let [rows, _] = dims(&x);
        let [_, outputs] = dims(&weight);
        let mut output = vec![0.0; rows * outputs];
        linear_forward(rows, slice(&x), slice(&weight), slice(&bias), &mut output);
        tensor(output, [rows, outputs])
    }

    fn adam(
        mut parameter: Cpu,
        gradient: Cpu,
        mut first: Cpu,
        mut second: Cpu,
        step: AdamStep,
    ) -> (Cpu, Cpu, Cpu) {
        let options = AdamOptions {
            rate: step.rate,
            beta1: step.beta1,
            beta2: step.beta2,
            epsilon: step.epsilon,
            step: step.count,
        };
        let gradient = gradient.to_contiguous();
        adam(
            options,
            parameter.storage_mut::<f32>(),
            slice(&gradient),
            first.storage_mut::<f32>(),
            second.storage_mut::<f32>(),
        );
        (parameter, first, second)
    }
}

#[derive(Debug)]
struct ConvBlockBackward;

impl Backward<Flex, 4> for ConvBlockBackward {
    type State = BlockState;

    fn backward(self, ops: Ops<BlockState, 4>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let [x_node, weight_node, scale_node, shift_node] = ops.parents;
        let gradient = grads.consume::<Flex>(&ops.node);
        let (x, weight, scale, shift) = block_backward(&ops.state, &gradient, x_node.is_some());
        let gradients = [x, Some(weight), Some(scale), Some(shift)];
        for (node, gradient) in [x_node, weight_node, scale_node, shift_node].into_iter().zip(gradients) {
            if let (Some(node), Some(gradient)) = (node, gradient) {
                grads.register::<Flex>(node.id, gradient);
            }
        }
    }
}

#[derive(Debug)]
struct MaxPoolBackward;

impl Backward<Flex, 1> for MaxPoolBackward {
    type State = (Cpu, Cpu);

    fn backward(self, ops: Ops<(Cpu, Cpu), 1>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let [node] = ops.parents;
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let Some(node) = node else { return };
        let (x, output) = ops.state;
        let shape = image_shape(&x);
        let mut input = vec![0.0; shape.len()];
        max_pool_backward(shape, slice(&x), slice(&output), slice(&gradient), &mut input);
        grads.register::<Flex>(node.id, tensor(input, dims::<4>(&x)));
    }
}

#[derive(Debug)]
struct AveragePoolBackward;

impl Backward<Flex, 1> for AveragePoolBackward {
    type State = [usize; 4];

    fn backward(self, ops: Ops<[usize; 4], 1>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let [node] = ops.parents;
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let Some(node) = node else { return };
        let [batch, height, width, channels] = ops.state;
        let shape = ImageShape { batch, height, width, channels };
        let mut input = vec![0.0; shape.len()];
        average_pool_backward(shape, slice(&gradient), &mut input);
        grads.register::<Flex>(node.id, tensor(input, ops.state));
    }
}

#[derive(Debug)]
struct LinearBackward;

impl Backward<Flex, 3> for LinearBackward {
    type State = (Cpu, Cpu);

    fn backward(self, ops: Ops<(Cpu, Cpu), 3>, grads: &mut Gradients, _checkpointer: &mut Checkpointer) {
        let [x_node, weight_node, bias_node] = ops.parents;
        let gradient = grads.consume::<Flex>(&ops.node).to_contiguous();
        let (x, weight) = ops.state;
        let [rows, features] = dims(&x);
        let [_, outputs] = dims(&weight);
        let mut input = x_node.is_some().then(|| vec![0.0; rows * features]);
        let (mut weights, mut bias) = (vec![0.0; features * outputs], vec![0.0; outputs]);
        let wanted = input.as_deref_mut();
        linear_backward(rows, slice(&x), slice(&weight), slice(&gradient), wanted, &mut weights, &mut bias);
        let gradients = [
            input.map(|input| tensor(input, [rows, features])),
            Some(tensor(weights, [features, outputs])),
            Some(tensor(bias, [1, outputs])),
        ];
        for (node, gradient) in [x_node, weight_node, bias_node].into_iter().zip(gradients) {
            if let (Some(node), Some(gradient)) = (node, gradient) {
                grads.register::<Flex>(node.id, gradient);
            }
        }
    }
}

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
        let (output, mean, variance, state) = block_forward(x, weight, scale, shift, spec);
        let output = match ConvBlockBackward.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(state, output),
            OpsKind::UnTracked(prep) => prep.finish(output),
        };
        (output, constant::<C>(mean), constant::<C>(variance))
    }

    fn conv_folded(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        spec: ConvSpec,
    ) -> FloatTensor<Self> {
        let [x, weight, bias] = [x, weight, bias].map(inner::<C>);
        constant::<C>(<Flex as Kernels>::conv_folded(x, weight, bias, spec))
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
        let x = x.to_contiguous();
        let output = <Flex as Kernels>::linear(x.clone(), weight.clone(), bias);
        match LinearBackward.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((x, weight), output),
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
}

/// The plain tensor inside a differentiable one.
fn inner<C: CheckpointStrategy>(tensor: FloatTensor<Autodiff<Flex, C>>) -> Cpu {
    tensor.into_primitive()
}

/// A tensor that takes no part in the graph.
fn constant<C: CheckpointStrategy>(primitive: Cpu) -> FloatTensor<Autodiff<Flex, C>> {
    <Autodiff<Flex, C> as burn::backend::AutodiffBackend>::from_inner(primitive)
}

fn geometry(x: &Cpu, weight: &Cpu, spec: &ConvSpec) -> ConvGeometry {
    let [batch, height, width, channels_in] = dims(x);
    let [_, channels_out] = dims(weight);
    ConvGeometry {
        batch,
        height,
        width,
        channels_in,
        channels_out,
        kernel: spec.kernel,
        stride: spec.stride,
        padding: spec.padding(),
    }
}

fn options(spec: &ConvSpec) -> BlockOptions {
    BlockOptions { epsilon: spec.epsilon as f32, relu: spec.relu, relu_after: false }
}

fn image_shape(x: &Cpu) -> ImageShape {
    let [batch, height, width, channels] = dims(x);
    ImageShape { batch, height, width, channels }
}

fn dims<const D: usize>(tensor: &Cpu) -> [usize; D] {
    tensor.shape().dims()
}

/// The numbers of a contiguous tensor.
fn slice(tensor: &Cpu) -> &[f32] {
    tensor.as_slice::<f32>().expect("operators make their inputs contiguous f32 first")
}

fn tensor<const D: usize>(elements: Vec<f32>, shape: [usize; D]) -> Cpu {
    Cpu::from_data(TensorData::new(elements, Shape::from(shape)))
}
