//! The operators of a residual network, on Burn tensors with channels last.
//!
//! Each function here runs stock Burn operators or, on the CPU, kernels of our own. Nothing here knows what a
//! network, a class or a stream is. Weights of convolutions are matrices [kernel · kernel · in, out], rows ordered by
//! kernel row, kernel column, input channel; vectors are matrices of one row.

use std::sync::atomic::{AtomicBool, Ordering};

use burn::{
    backend::{Dispatch, DispatchDevice},
    tensor::Tensor,
};

mod adam;
mod batch_norm;
mod batch_norm_backward;
mod block;
mod correlate;
mod depthwise;
mod evaluate;
mod extension;
mod geometry;
mod isa;
mod linear;
mod noise;
mod panel;
mod peak;
mod perturb;
mod pool;
mod pooling;
mod recycle;
#[cfg(test)]
mod reference;
mod scratch;
mod simd;
mod source;
pub mod stock;
mod tile;
mod weight_gradient;
mod winograd;
mod work;

pub use isa::{ISA_VARIABLE, Isa, IsaError};
pub use peak::fma_peak_gflops;
pub use pool::{set_threads, set_threads_here, threads};
pub use work::multiply_adds;

use extension::Kernels;

/// What a convolution block does, apart from its weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConvSpec {
    /// Rows and columns of the kernel: 1, 3 or 7.
    pub kernel: usize,
    /// Step between windows: 1 or 2.
    pub stride: usize,
    /// Whether a ReLU follows the batch norm.
    pub relu: bool,
    /// Whether another ReLU follows where a residual is added.
    pub relu_after_sum: bool,
    /// Added to the variance before its root is taken.
    pub epsilon: f64,
}

impl ConvSpec {
    /// Zero padding on each side that keeps the size at stride 1.
    pub fn padding(&self) -> usize {
        self.kernel / 2
    }
}

/// What a convolution block gives back in training.
pub struct TrainOutput {
    /// Activations [batch, rows, columns, channels].
    pub y: Tensor<4>,
    /// Batch mean of each channel before normalisation [1, channels]; no gradient.
    pub mean: Tensor<2>,
    /// Biased batch variance of each channel before normalisation [1, channels]; no gradient.
    pub variance: Tensor<2>,
}

/// Constants of one Adam step on one parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamStep {
    /// Learning rate.
    pub rate: f64,
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// Steps of this parameter, this one included.
    pub count: u64,
}

impl AdamStep {
    /// The bias corrections 1 − β₁ˢ and 1 − β₂ˢ.
    pub fn corrections(&self) -> (f64, f64) {
        let count = self.count as f64;
        (1.0 - self.beta1.powf(count), 1.0 - self.beta2.powf(count))
    }
}

/// How the rows of a batch are perturbed and mixed.
#[derive(Clone, Debug, PartialEq)]
pub struct PerturbMix {
    /// Level of each row's multiplicative noise.
    pub multiplicative: Vec<f32>,
    /// Level of each row's additive noise.
    pub additive: Vec<f32>,
    /// The row mixed into each row.
    pub partner: Vec<usize>,
    /// Share of a row itself; its partner has the rest.
    pub share: f32,
    /// Names the noise: the same key gives the same numbers on every instruction set.
    pub key: u64,
}

impl PerturbMix {
    fn view(&self) -> perturb::Perturbation<'_> {
        perturb::Perturbation {
            multiplicative: &self.multiplicative,
            additive: &self.additive,
            partner: &self.partner,
            share: self.share,
            seed: noise::NoiseSeed { key: self.key, counter: 0 },
        }
    }
}

/// Why an operator of evaluation refuses tensors of the autodiff device.
const NO_GRADIENT: &str = "evaluation is not differentiable: use a training pass, or `.inner()`";

/// Whether stock operators are asked for where our kernels could run.
static STOCK: AtomicBool = AtomicBool::new(false);

/// Makes every operator run as stock Burn operators (or stop doing so); meant for comparisons.
pub fn use_stock(stock: bool) {
    STOCK.store(stock, Ordering::Relaxed);
}

/// Whether a tensor lies where our kernels run.
fn has_kernels<const D: usize>(tensor: &Tensor<D>) -> bool {
    !STOCK.load(Ordering::Relaxed) && matches!(tensor.device().inner().as_dispatch(), DispatchDevice::Flex(_))
}

/// Convolution → batch norm with this batch's statistics → optional ReLU → optional sum, differentiable.
///
/// `x` [batch, height, width, in], `weight` [kernel·kernel·in, out], `scale` and `shift` [1, out], `residual` in the shape
/// of the output.
pub fn conv_block(
    x: Tensor<4>,
    weight: Tensor<2>,
    scale: Tensor<2>,
    shift: Tensor<2>,
    residual: Option<Tensor<4>>,
    spec: &ConvSpec,
) -> TrainOutput {
    if !has_kernels(&x) {
        return stock::conv_block(x, weight, scale, shift, residual, spec);
    }
    let x = x.into_dispatch();
    let [weight, scale, shift] = [weight, scale, shift].map(Tensor::into_dispatch);
    let (y, mean, variance) = match residual.map(Tensor::into_dispatch) {
        Some(residual) => <Dispatch as Kernels>::conv_block_add(x, weight, scale, shift, residual, *spec),
        None => <Dispatch as Kernels>::conv_block(x, weight, scale, shift, *spec),
    };
    TrainOutput {
        y: Tensor::from_dispatch(y),
        mean: Tensor::<2>::from_dispatch(mean).inner(),
        variance: Tensor::<2>::from_dispatch(variance).inner(),
    }
}

/// Convolution → scale and shift, to which batch norm with known statistics comes down → optional ReLU → optional sum, for
/// evaluation.
///
/// `x` [batch, height, width, in], `weight` [kernel·kernel·in, out], `scale` and `shift` [1, out], `residual` in the shape
/// of the output.
///
/// # Panics
/// When an operand is on the autodiff device: no kernel has a backward pass for this, and a result without a gradient
/// would leave part of a loss out without a word.
pub fn conv_scaled(
    x: Tensor<4>,
    weight: Tensor<2>,
    scale: Tensor<2>,
    shift: Tensor<2>,
    residual: Option<Tensor<4>>,
    spec: &ConvSpec,
) -> Tensor<4> {
    let differentiable = [&weight, &scale, &shift].into_iter().any(Tensor::is_autodiff)
        || [Some(&x), residual.as_ref()].into_iter().flatten().any(Tensor::is_autodiff);
    assert!(!differentiable, "{NO_GRADIENT}");
    if !has_kernels(&x) {
        return stock::conv_scaled(x, weight, scale, shift, residual, spec);
    }
    let x = x.into_dispatch();
    let [weight, scale, shift] = [weight, scale, shift].map(Tensor::into_dispatch);
    Tensor::from_dispatch(match residual.map(Tensor::into_dispatch) {
        Some(residual) => <Dispatch as Kernels>::conv_scaled_add(x, weight, scale, shift, residual, *spec),
        None => <Dispatch as Kernels>::conv_scaled(x, weight, scale, shift, *spec),
    })
}

/// 3×3 maximum, stride 2, padding 1, on [batch, height, width, channels], differentiable.
pub fn max_pool(x: Tensor<4>) -> Tensor<4> {
    if !has_kernels(&x) {
        return stock::max_pool(x);
    }
    Tensor::from_dispatch(<Dispatch as Kernels>::max_pool(x.into_dispatch()))
}

/// `x` plus its 3×3 convolution with zeros around it, every channel with a kernel of its own, differentiable. `x` [batch,
/// height, width, channels], `kernel` [9, channels], a row for each kernel row and column.
pub fn depthwise_add(x: Tensor<4>, kernel: Tensor<2>) -> Tensor<4> {
    if !has_kernels(&x) {
        return stock::depthwise_add(x, kernel);
    }
    Tensor::from_dispatch(<Dispatch as Kernels>::depthwise_add(x.into_dispatch(), kernel.into_dispatch()))
}

/// Mean over height and width, [batch, height, width, channels] → [batch, channels], differentiable.
pub fn average_pool(x: Tensor<4>) -> Tensor<2> {
    if !has_kernels(&x) {
        return stock::average_pool(x);
    }
    Tensor::from_dispatch(<Dispatch as Kernels>::average_pool(x.into_dispatch()))
}

/// `x` [rows, features] · `weight` [features, outputs] + `bias` [1, outputs], differentiable.
pub fn linear(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<2>) -> Tensor<2> {
    if !has_kernels(&x) {
        return stock::linear(x, weight, bias);
    }
    let [x, weight, bias] = [x, weight, bias].map(Tensor::into_dispatch);
    Tensor::from_dispatch(<Dispatch as Kernels>::linear(x, weight, bias))
}

/// Rows with standard normal noise of their own, (1 + mᵢξ) xᵢ + aᵢξ′, then mixed with a partner row, differentiable; the
/// noise is a constant in the backward pass. `x` [rows, height, width, channels].
pub fn perturb_mix(x: Tensor<4>, change: PerturbMix) -> Tensor<4> {
    if !has_kernels(&x) {
        return stock::perturb_mix(x, &change);
    }
    Tensor::from_dispatch(<Dispatch as Kernels>::perturb_mix(x.into_dispatch(), change))
}

/// One Adam step without weight decay; returns the parameter and its moments.
pub fn adam(
    parameter: Tensor<2>,
    gradient: Tensor<2>,
    moments: (Tensor<2>, Tensor<2>),
    step: &AdamStep,
) -> (Tensor<2>, (Tensor<2>, Tensor<2>)) {
    if !has_kernels(&parameter) {
        return stock::adam(parameter, gradient, moments, step);
    }
    let [parameter, gradient, first, second] =
        [parameter, gradient, moments.0, moments.1].map(Tensor::into_dispatch);
    let (parameter, first, second) = <Dispatch as Kernels>::adam(parameter, gradient, first, second, *step);
    (Tensor::from_dispatch(parameter), (Tensor::from_dispatch(first), Tensor::from_dispatch(second)))
}

/// A parameter's average over its steps, and how far it moves towards the parameter after the present one, 0 to 1.
#[derive(Clone, Debug)]
pub struct Averaging {
    /// The average.
    pub average: Tensor<2>,
    /// Share of the way.
    pub share: f64,
}

/// One Adam step after which the parameter's average follows it, all in one pass over memory; returns the parameter, its
/// moments and the average.
pub fn adam_averaged(
    parameter: Tensor<2>,
    gradient: Tensor<2>,
    moments: (Tensor<2>, Tensor<2>),
    averaging: Averaging,
    step: &AdamStep,
) -> (Tensor<2>, (Tensor<2>, Tensor<2>), Tensor<2>) {
    let Averaging { average, share } = averaging;
    if !has_kernels(&parameter) {
        let (parameter, moments) = stock::adam(parameter, gradient, moments, step);
        let average = stock::follow(average, &parameter, share);
        return (parameter, moments, average);
    }
    let [parameter, gradient, first, second, average] =
        [parameter, gradient, moments.0, moments.1, average].map(Tensor::into_dispatch);
    let (parameter, first, second, average) =
        <Dispatch as Kernels>::adam_averaged(parameter, gradient, first, second, average, *step, share);
    let [parameter, first, second, average] = [parameter, first, second, average].map(Tensor::from_dispatch);
    (parameter, (first, second), average)
}

/// The instruction set the kernels run on, as written into records.
pub fn isa_name() -> &'static str {
    Isa::active().name()
}
