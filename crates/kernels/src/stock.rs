//! Every operator composed of stock Burn operators: what runs on devices without kernels of our own, and what
//! the kernels are tested against.

use burn::tensor::{
    Int, Tensor, TensorData,
    activation::relu,
    module::{conv2d, max_pool2d},
    ops::{ConvOptions, MaxPoolOptions},
};

use crate::{
    AdamStep, ConvSpec, PerturbMix, TrainOutput,
    noise::{NoiseSeed, fill_normal, noise_counters},
};

/// Convolution alone. `x` [batch, height, width, in], `weight` [kernel·kernel·in, out] → [batch, rows, columns, out].
pub fn convolution(x: Tensor<4>, weight: Tensor<2>, spec: &ConvSpec) -> Tensor<4> {
    let [_, _, _, channels_in] = x.dims();
    let [_, channels_out] = weight.dims();
    let kernel = spec.kernel;
    let weight = weight.reshape([kernel, kernel, channels_in, channels_out]).permute([3, 2, 0, 1]);
    let options = ConvOptions::new([spec.stride; 2], [spec.padding(); 2], [1, 1], 1);
    conv2d(x.permute([0, 3, 1, 2]), weight, None, options).permute([0, 2, 3, 1])
}

/// Convolution, batch norm with this batch's statistics, optional ReLU; see [`crate::conv_block`].
pub fn conv_block(
    x: Tensor<4>,
    weight: Tensor<2>,
    scale: Tensor<2>,
    shift: Tensor<2>,
    residual: Option<Tensor<4>>,
    spec: &ConvSpec,
) -> TrainOutput {
    let z = convolution(x, weight, spec);
    let [batch, height, width, channels] = z.dims();
    let z = z.reshape([batch * height * width, channels]);
    let mean = z.clone().mean_dim(0);
    let centred = z - mean.clone();
    let variance = centred.clone().square().mean_dim(0);
    let inverse = variance.clone().add_scalar(spec.epsilon).sqrt().recip();
    let y = centred * (inverse * scale) + shift;
    let y = if spec.relu { relu(y) } else { y };
    TrainOutput {
        y: add(y.reshape([batch, height, width, channels]), residual, spec),
        mean: mean.inner(),
        variance: variance.inner(),
    }
}

/// Convolution, scale and shift, optional ReLU; see [`crate::conv_scaled`].
pub fn conv_scaled(
    x: Tensor<4>,
    weight: Tensor<2>,
    scale: Tensor<2>,
    shift: Tensor<2>,
    residual: Option<Tensor<4>>,
    spec: &ConvSpec,
) -> Tensor<4> {
    let [_, channels] = scale.dims();
    let [scale, shift] = [scale, shift].map(|vector| vector.reshape([1, 1, 1, channels]));
    let y = convolution(x, weight, spec) * scale + shift;
    add(if spec.relu { relu(y) } else { y }, residual, spec)
}

fn add(y: Tensor<4>, residual: Option<Tensor<4>>, spec: &ConvSpec) -> Tensor<4> {
    match residual {
        Some(residual) if spec.relu_after_sum => relu(y + residual),
        Some(residual) => y + residual,
        None => y,
    }
}

/// 3×3 maximum, stride 2, padding 1, on [batch, height, width, channels].
pub fn max_pool(x: Tensor<4>) -> Tensor<4> {
    let options = MaxPoolOptions::new([3, 3]).with_stride([2, 2]).with_padding([1, 1]);
    max_pool2d(x.permute([0, 3, 1, 2]), options).permute([0, 2, 3, 1])
}

/// `x` plus its 3×3 convolution, channel by channel; see [`crate::depthwise_add`].
pub fn depthwise_add(x: Tensor<4>, kernel: Tensor<2>) -> Tensor<4> {
    let [_, _, _, channels] = x.dims();
    let weight = kernel.reshape([3, 3, 1, channels]).permute([3, 2, 0, 1]);
    let options = ConvOptions::new([1; 2], [1; 2], [1, 1], channels);
    x.clone() + conv2d(x.permute([0, 3, 1, 2]), weight, None, options).permute([0, 2, 3, 1])
}

/// Mean over height and width: [batch, height, width, channels] → [batch, channels].
pub fn average_pool(x: Tensor<4>) -> Tensor<2> {
    let [batch, height, width, channels] = x.dims();
    x.reshape([batch, height * width, channels]).mean_dim(1).reshape([batch, channels])
}

/// `x` · `weight` + `bias`.
pub fn linear(x: Tensor<2>, weight: Tensor<2>, bias: Tensor<2>) -> Tensor<2> {
    x.matmul(weight) + bias
}

/// Rows with noise of their own, mixed with a partner row; see [`crate::perturb_mix`].
pub fn perturb_mix(x: Tensor<4>, change: &PerturbMix) -> Tensor<4> {
    let [rows, height, width, channels] = x.dims();
    let device = x.device().inner();
    let length = height * width * channels;
    let stride = noise_counters(length);
    let noise = |kind: u64, level: &[f32]| {
        let mut numbers = vec![0.0; rows * length];
        for (row, numbers) in numbers.chunks_exact_mut(length.max(1)).enumerate() {
            let counter = (2 * row as u64 + kind) * stride;
            fill_normal(NoiseSeed { key: change.key, counter }, numbers);
            numbers.iter_mut().for_each(|number| *number *= level[row]);
        }
        Tensor::<4>::from_data(TensorData::new(numbers, [rows, height, width, channels]), &device)
    };
    let factor = noise(0, &change.multiplicative).add_scalar(1.0);
    let perturbed = x * factor + noise(1, &change.additive);
    let partner: Vec<i64> = change.partner.iter().map(|&row| row as i64).collect();
    let partner = Tensor::<1, Int>::from_data(TensorData::new(partner, [rows]), &perturbed.device());
    let partners = perturbed.clone().select(0, partner);
    perturbed.mul_scalar(change.share) + partners.mul_scalar(1.0 - change.share)
}

/// One Adam step; see [`crate::adam()`].
pub fn adam(
    parameter: Tensor<2>,
    gradient: Tensor<2>,
    moments: (Tensor<2>, Tensor<2>),
    step: &AdamStep,
) -> (Tensor<2>, (Tensor<2>, Tensor<2>)) {
    let (first, second) = moments;
    let first = first.mul_scalar(step.beta1) + gradient.clone().mul_scalar(1.0 - step.beta1);
    let second = second.mul_scalar(step.beta2) + gradient.square().mul_scalar(1.0 - step.beta2);
    let (correction1, correction2) = step.corrections();
    let denominator = second.clone().div_scalar(correction2).sqrt().add_scalar(step.epsilon);
    let change = first.clone().div_scalar(correction1).mul_scalar(step.rate) / denominator;
    (parameter - change, (first, second))
}

/// An average moved by `share` of the way to `value`.
pub fn follow(average: Tensor<2>, value: &Tensor<2>, share: f64) -> Tensor<2> {
    average.clone() + (value.clone() - average).mul_scalar(share)
}
