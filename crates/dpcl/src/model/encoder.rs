//! A residual network from images to the maps that feature vectors are means of, in training (batch statistics,
//! differentiable) and in evaluation (running statistics folded into the convolutions' outputs).

use std::sync::Arc;

use burn::tensor::{Device, Tensor, activation::relu};

use dpcl_kernels::{conv_block, conv_scaled, max_pool};

use super::{
    architecture::{Architecture, Block, Family, Layer},
    weights::{FileLayout, Weights, matrix},
};
use crate::{
    error::Result,
    random::Random,
    state::{Persist, State},
};

/// Mean and unbiased variance of one layer over one batch, each [1, channels].
#[derive(Clone, Debug)]
pub struct BatchStatistics {
    layer: usize,
    mean: Tensor<2>,
    variance: Tensor<2>,
}

/// What each batch norm comes down to in evaluation, in layer order: a scale and a shift of the convolution's output.
#[derive(Clone)]
pub struct Folded(Vec<(Tensor<2>, Tensor<2>)>);

/// A change of activations [rows, height, width, channels] at a depth: 0 is the image, 1 to 4 the output of that
/// residual group.
pub type Change<'a> = dyn FnMut(usize, Tensor<4>) -> Tensor<4> + 'a;

/// Sees every layer in the order they are passed and gives back what goes on in the place of its output.
pub type Watch<'a> = dyn FnMut(LayerView<'_>) -> Tensor<4> + 'a;

/// One layer on the way through the network: convolution, batch norm, ReLU.
pub struct LayerView<'a> {
    /// Its names and sizes.
    pub layer: &'a Layer,
    /// What goes in, [rows, height, width, channels].
    pub input: &'a Tensor<4>,
    /// What comes out, [rows, height, width, channels]; where a residual is to be added, before it is.
    pub output: Tensor<4>,
}

/// The network below the heads.
#[derive(Clone)]
pub struct Encoder {
    layout: Arc<Layout>,
    weights: Weights,
    pub(super) running: Weights,
}

/// Which layers there are and in which order they are passed: a pure description, shared by everything that walks
/// them.
pub struct Layout {
    architecture: Architecture,
    layers: Vec<Layer>,
    groups: Vec<Vec<Block>>,
}

/// Weights per layer in the table: convolution, scale, shift.
const PER_LAYER: usize = 3;

impl Encoder {
    /// Draws every convolution from normal(0, √(2 / fan-out)); batch norms start as identities.
    pub fn new(architecture: Architecture, random: &mut Random, device: &Device) -> Self {
        let (layers, groups) = architecture.layers();
        let (mut weights, mut running) = (Weights::default(), Weights::default());
        for layer in &layers {
            let Layer { convolution, norm, channels_in, channels_out, spec } = layer;
            let (channels_out, area) = (*channels_out, spec.kernel * spec.kernel);
            let deviation = (2.0 / (channels_out * area) as f64).sqrt();
            let rows = area * channels_in;
            let drawn = (0..rows * channels_out).map(|_| (deviation * random.normal()) as f32).collect();
            let layout = FileLayout::Convolution { kernel: spec.kernel };
            weights.push(
                format!("{convolution}.weight"),
                layout,
                matrix(drawn, [rows, channels_out], device),
            );
            let vector = |value: f32| matrix(vec![value; channels_out], [1, channels_out], device);
            weights.push(format!("{norm}.weight"), FileLayout::Vector, vector(1.0));
            weights.push(format!("{norm}.bias"), FileLayout::Vector, vector(0.0));
            running.push(format!("{norm}.running_mean"), FileLayout::Vector, vector(0.0));
            running.push(format!("{norm}.running_var"), FileLayout::Vector, vector(1.0));
        }
        Self { layout: Arc::new(Layout { architecture, layers, groups }), weights, running }
    }

    /// What the network is made of.
    pub fn architecture(&self) -> &Architecture {
        &self.layout.architecture
    }

    /// Which layers there are.
    pub fn layout(&self) -> Arc<Layout> {
        Arc::clone(&self.layout)
    }

    /// Learnable weights in layer order: convolution, scale, shift of each.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Learnable weights, to change.
    pub fn weights_mut(&mut self) -> &mut Weights {
        &mut self.weights
    }

    /// The name of a weight or statistic with numbers that are not finite, if there is one.
    pub fn not_finite(&self) -> Option<&str> {
        self.weights.not_finite().or_else(|| self.running.not_finite())
    }

    /// Moves the running statistics towards those of a batch.
    pub fn absorb(&mut self, statistics: &[BatchStatistics]) {
        self.move_statistics(statistics, self.layout.architecture.momentum);
    }

    /// Moves the running statistics by `share` of the way to those of a batch.
    fn move_statistics(&mut self, statistics: &[BatchStatistics], share: f64) {
        for BatchStatistics { layer, mean, variance } in statistics {
            for (offset, new) in [mean, variance].into_iter().enumerate() {
                let position = layer * 2 + offset;
                let old = self.running.value(position).clone();
                self.running.set(position, old.mul_scalar(1.0 - share) + new.clone().mul_scalar(share));
            }
        }
    }

    /// Replaces the running statistics by the mean of those of these batches [rows, height, width, 3]; without a batch they
    /// stay.
    pub fn remeasure(&mut self, batches: impl Iterator<Item = Tensor<4>>) {
        let weights = self.weights.tracked(|_| false);
        for (met, images) in batches.enumerate() {
            let (_, statistics) = self.layout.train(&weights, images, &mut |_, x| x, None);
            self.move_statistics(&statistics, 1.0 / (met + 1) as f64);
        }
    }

    /// Moves the running statistics by `share` of the way to those of another encoder.
    pub fn follow_statistics(&mut self, other: &Self, share: f64) {
        self.running.follow(&other.running, share);
    }

    /// Folds running statistics, scale and shift of each batch norm into one multiply-add.
    pub fn fold(&self) -> Folded {
        let fold = |layer: usize| {
            let [scale, shift] = [1, 2].map(|offset| self.weights.value(layer * PER_LAYER + offset).clone());
            let [mean, variance] = [0, 1].map(|offset| self.running.value(layer * 2 + offset).clone());
            let factor = scale / variance.add_scalar(self.layout.architecture.epsilon).sqrt();
            (factor.clone(), shift - mean * factor)
        };
        Folded((0..self.layout.layers.len()).map(fold).collect())
    }

    /// The last residual group's output in evaluation mode on `images` [rows, height, width, 3], changed at each
    /// depth, and after each layer if it is watched.
    pub fn evaluate(
        &self,
        folded: &Folded,
        images: Tensor<4>,
        change: &mut Change<'_>,
        watch: Option<&mut Watch<'_>>,
    ) -> Tensor<4> {
        self.layout.walk(images, change, watch, &mut |layer, x, residual| {
            let (scale, shift) = folded.0[layer].clone();
            let weight = self.weights.value(layer * PER_LAYER).clone();
            conv_scaled(x, weight, scale, shift, residual, &self.layout.layers[layer].spec)
        })
    }
}

impl Layout {
    /// The last residual group's output in training mode on `images` [rows, height, width, 3] under `weights` (in
    /// table order), changed at each depth, and after each layer if it is watched.
    pub fn train(
        &self,
        weights: &[Tensor<2>],
        images: Tensor<4>,
        change: &mut Change<'_>,
        watch: Option<&mut Watch<'_>>,
    ) -> (Tensor<4>, Vec<BatchStatistics>) {
        let mut statistics = Vec::with_capacity(self.layers.len());
        let mut apply = |layer: usize, x: Tensor<4>, residual: Option<Tensor<4>>| {
            let [weight, scale, shift] = [0, 1, 2].map(|offset| weights[layer * PER_LAYER + offset].clone());
            let output = conv_block(x, weight, scale, shift, residual, &self.layers[layer].spec);
            let [rows, height, width, _] = output.y.dims();
            let count = (rows * height * width) as f64;
            // The running variance takes the unbiased estimate; one pixel in all has none.
            let unbiased = if count > 1.0 { count / (count - 1.0) } else { 1.0 };
            let variance = output.variance.mul_scalar(unbiased);
            statistics.push(BatchStatistics { layer, mean: output.mean, variance });
            output.y
        };
        let maps = self.walk(images, change, watch, &mut apply);
        (maps, statistics)
    }

    /// The order of layers, shared by training and evaluation.
    fn walk(
        &self,
        images: Tensor<4>,
        change: &mut Change<'_>,
        mut watch: Option<&mut Watch<'_>>,
        convolve: &mut Convolve<'_>,
    ) -> Tensor<4> {
        let mut apply = |layer: usize, x: Tensor<4>, residual: Option<Tensor<4>>| match &mut watch {
            None => convolve(layer, x, residual),
            Some(watch) => self.watched(layer, &x, residual, *watch, convolve),
        };
        let mut x = apply(0, change(0, images), None);
        if self.architecture.family == Family::Imagenet {
            x = max_pool(x);
        }
        for (group, blocks) in self.groups.iter().enumerate() {
            for Block { layers: [first, second], shortcut } in blocks {
                let inner = apply(*first, x.clone(), None);
                let around = match shortcut {
                    Some(layer) => apply(*layer, x, None),
                    None => x,
                };
                x = apply(*second, inner, Some(around));
            }
            x = change(group + 1, x);
        }
        x
    }

    /// One layer that is watched. Its own output exists only if the residual is added by itself, which gives the same
    /// bits but takes longer.
    fn watched(
        &self,
        layer: usize,
        x: &Tensor<4>,
        residual: Option<Tensor<4>>,
        watch: &mut Watch<'_>,
        convolve: &mut Convolve<'_>,
    ) -> Tensor<4> {
        let output = convolve(layer, x.clone(), None);
        let layer = &self.layers[layer];
        let output = watch(LayerView { layer, input: x, output });
        match residual {
            Some(residual) if layer.spec.relu_after_sum => relu(output + residual),
            Some(residual) => output + residual,
            None => output,
        }
    }
}

/// Runs the layer at a position on its input, adding a residual if there is one.
type Convolve<'a> = dyn FnMut(usize, Tensor<4>, Option<Tensor<4>>) -> Tensor<4> + 'a;

impl Persist for Encoder {
    fn save(&self, state: &mut State) {
        self.weights.save(state);
        self.running.save(state);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.weights.load(state)?;
        self.running.load(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(name: &str, classes: usize) -> usize {
        let architecture = Architecture::named(name, None, 1e-6, 0.1).unwrap();
        let (layers, _) = architecture.layers();
        let encoder: usize = layers
            .iter()
            .map(|layer| {
                layer.spec.kernel.pow(2) * layer.channels_in * layer.channels_out + 2 * layer.channels_out
            })
            .sum();
        encoder + classes * (architecture.features() + 1)
    }

    #[test]
    fn parameter_counts_are_the_published_ones() {
        assert_eq!(parameters("resnet18", 10), 11_173_962);
        assert_eq!(parameters("resnet34", 100), 21_328_292);
        assert_eq!(parameters("resnet34-imagenet", 1000), 21_797_672);
    }
}
