//! The modules that calibrate a network's layers for one task: s = x + k ∗ x, then s ⊙ σ(W·mean(s) + b).

use burn::tensor::{Device, Tensor, activation::sigmoid};

use dpcl_kernels::{average_pool, depthwise_add};

use crate::{
    error::Result,
    model::{Architecture, FileLayout, LayerView, Network, Pass, Weights, matrix},
    state::{Persist, State},
};

/// Images evaluated at once.
const ROWS: usize = 32;

/// Weights of a layer in the table: kernels, gate weights, gate biases.
const PER_LAYER: usize = 3;

/// A spatial and a channel module behind every layer.
pub struct Calibration {
    /// Names of the layers' convolutions, in table order.
    layers: Vec<String>,
    weights: Weights,
}

impl Calibration {
    /// Modules that let through what they are given: kernels and gate weights of zero, gates that open with `gate` and look
    /// at `group` channels at most.
    pub fn fresh(architecture: &Architecture, group: usize, gate: f64, device: &Device) -> Self {
        let (mut layers, mut weights) = (Vec::new(), Weights::default());
        for layer in architecture.layers().0 {
            let channels = layer.channels_out;
            let name = layer.convolution;
            let mut push = |part: &str, layout, rows: usize, value: f32| {
                let value = matrix(vec![value; rows * channels], [rows, channels], device);
                weights.push(format!("{name}.{part}"), layout, value);
            };
            push("spatial", FileLayout::Convolution { kernel: 3 }, 9, 0.0);
            push("channel.weight", FileLayout::Linear, even_group(channels, group), 0.0);
            push("channel.bias", FileLayout::Vector, 1, gate as f32);
            layers.push(name);
        }
        Self { layers, weights }
    }

    /// Every module's weights.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Every module's weights, to change.
    pub fn weights_mut(&mut self) -> &mut Weights {
        &mut self.weights
    }

    /// Training features of images, the modules' gradients tracked in the pass.
    pub fn train(&self, pass: &mut Pass, images: Tensor<4>) -> Tensor<2> {
        let weights = pass.track(&self.weights);
        pass.features_watching(images, &mut |view| self.calibrated(&weights, view))
    }

    /// Features of clean images in evaluation mode.
    pub fn evaluate(&self, network: &Network, images: Tensor<4>) -> Tensor<2> {
        let weights: Vec<Tensor<2>> = self.weights.iter().map(|weight| weight.value.clone()).collect();
        let part = |part| network.features_watching(part, &mut |view| self.calibrated(&weights, view));
        Tensor::cat(images.split(ROWS, 0).into_iter().map(part).collect(), 0)
    }

    fn calibrated(&self, weights: &[Tensor<2>], view: LayerView<'_>) -> Tensor<4> {
        let layer = self.layers.iter().position(|name| *name == view.layer.convolution);
        let layer = layer.expect("modules stand behind every layer of the network");
        let [kernel, weight, bias] = [0, 1, 2].map(|part| weights[layer * PER_LAYER + part].clone());
        gated(depthwise_add(view.output, kernel), weight, bias)
    }
}

/// The largest number of channels, `most` at most, that divides them evenly.
fn even_group(channels: usize, most: usize) -> usize {
    (1..=most.min(channels)).rev().find(|group| channels.is_multiple_of(*group)).unwrap_or(1)
}

/// Maps [rows, height, width, channels] with every channel scaled by its gate. A column of `weight` [group, channels] joins
/// the channels of the gate's group, `bias` is [1, channels].
fn gated(maps: Tensor<4>, weight: Tensor<2>, bias: Tensor<2>) -> Tensor<4> {
    let [rows, _, _, channels] = maps.dims();
    let [group, _] = weight.dims();
    let groups = channels / group;
    let means = average_pool(maps.clone()).reshape([rows, groups, group]).swap_dims(0, 1);
    let joined = means.matmul(weight.reshape([group, groups, group]).swap_dims(0, 1));
    let gates = sigmoid(joined.swap_dims(0, 1).reshape([rows, channels]) + bias);
    maps * gates.reshape([rows, 1, 1, channels])
}

impl Persist for Calibration {
    fn save(&self, state: &mut State) {
        self.weights.save(state);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.weights.load(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model::floats, random::Random};

    fn tensor<const D: usize>(values: &[f32], shape: [usize; D]) -> Tensor<D> {
        matrix(values.to_vec(), [1, values.len()], &Device::flex()).reshape(shape)
    }

    fn logistic(x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }

    #[test]
    fn a_gate_looks_at_the_means_of_its_group() {
        // Two pixels, four channels in groups of two; means 1, 2, 3, 4.
        let maps = tensor(&[0.0, 2.0, 4.0, 4.0, 2.0, 2.0, 2.0, 4.0], [1, 1, 2, 4]);
        let weight = tensor(&[0.5, 1.0, -1.0, 0.0, 0.25, 0.0, 1.0, 0.0], [2, 4]);
        let bias = tensor(&[0.0, 0.0, 1.0, -2.0], [1, 4]);
        let found = floats(gated(maps.clone(), weight, bias));
        // 0.5·1 + 0.25·2, 1·1, −3 + 4 + 1, −2.
        let gates = [1.0, 1.0, 2.0, -2.0].map(logistic);
        for (at, (found, map)) in found.iter().zip(floats(maps)).enumerate() {
            assert!((f64::from(*found) - f64::from(map) * gates[at % 4]).abs() < 1e-6, "{at}: {found}");
        }
    }

    #[test]
    fn groups_divide_the_channels() {
        let groups = [20, 40, 64, 512, 4, 17, 31].map(|channels| even_group(channels, 16));
        assert_eq!(groups, [10, 10, 16, 16, 4, 1, 1]);
        assert_eq!(even_group(8, 1), 1);
    }

    #[test]
    fn its_size_is_that_of_kernels_weights_and_biases() {
        let count = |name: &str| {
            let architecture = Architecture::named(name, None, 1e-6, 0.1).unwrap();
            Calibration::fresh(&architecture, 16, 6.0, &Device::flex()).weights().count()
        };
        // 4,800 channels in all layers, 26 numbers each: 1.1 % of a ResNet18.
        assert_eq!(count("resnet18"), 4_800 * 26);
        // Of slim's 1,500 channels those of the first two groups are joined by ten.
        assert_eq!(count("slim"), (20 * 5 + 40 * 5) * 20 + (80 * 5 + 160 * 5) * 26);
    }

    /// The gradient of a kernel, a weight and a bias, against central differences of a smooth function of the output.
    #[test]
    fn modules_have_the_gradient_of_what_they_do() {
        let mut random = Random::named(3, "calibration");
        let mut draw = |length: usize| -> Vec<f32> { (0..length).map(|_| random.normal() as f32).collect() };
        let (maps, aim) = (draw(2 * 3 * 3 * 4), draw(2 * 3 * 3 * 4));
        let parts: [Vec<f32>; 3] = [draw(36), draw(8), draw(4)];
        let shapes = [[9, 4], [2, 4], [1, 4]];
        let output = |parts: [Tensor<2>; 3]| {
            let [kernel, weight, bias] = parts;
            gated(depthwise_add(tensor(&maps, [2, 3, 3, 4]), kernel), weight, bias)
        };
        let tracked = [0, 1, 2].map(|at| tensor(&parts[at], shapes[at]).autodiff().require_grad());
        let value = (output(tracked.clone()) * tensor(&aim, [2, 3, 3, 4])).sum();
        let gradients = value.backward();
        for (at, tracked) in tracked.into_iter().enumerate() {
            let gradient = floats(tracked.grad(&gradients).unwrap());
            for (position, expected) in gradient.iter().enumerate() {
                let moved = |step: f32| -> f64 {
                    let mut parts = parts.clone();
                    parts[at][position] += step;
                    let found = floats(output([0, 1, 2].map(|at| tensor(&parts[at], shapes[at]))));
                    found.iter().zip(&aim).map(|(found, aim)| f64::from(*found) * f64::from(*aim)).sum()
                };
                let slope = (moved(1e-2) - moved(-1e-2)) / 2e-2;
                let bound = 1e-2 * slope.abs().max(1.0);
                assert!(
                    (slope - f64::from(*expected)).abs() < bound,
                    "{at}.{position}: {expected} for {slope}"
                );
            }
        }
    }
}
