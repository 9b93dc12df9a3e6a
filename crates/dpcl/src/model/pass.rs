//! One differentiable trip through a network in training mode, and what comes back from it.
//!
//! A [`Pass`] holds tracked copies of every weight and nothing of the model, so that the model can take the step that the
//! pass leads to. Any loss can be built from what it gives; images and further tables of weights can be tracked beside
//! the network's own, and passes of several networks can meet in one loss.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};

use dpcl_kernels::average_pool as pooled;

use super::{
    Model,
    encoder::{BatchStatistics, Change, Layout, Watch},
    heads::HeadShape,
    weights::{Gradients, Weights, floats},
};

/// One differentiable trip through the network in training mode.
pub struct Pass {
    layout: Arc<Layout>,
    heads: HeadShape,
    encoder_weights: Part,
    head_weights: Part,
    images: Vec<Tensor<4>>,
    further: Vec<Vec<Tensor<2>>>,
    statistics: Vec<BatchStatistics>,
    device: Device,
}

/// How far from a network's weights θ a pass runs: the δ of θ + δ, in table order. `None` moves nothing, and neither does
/// an empty table. A δ that depends on tracked tensors passes gradients on to them.
#[derive(Clone, Default)]
pub struct Shift {
    /// Of the encoder's weights.
    pub encoder: Gradients,
    /// Of the heads' weights.
    pub heads: Gradients,
}

/// Loss and gradients of one pass and the batch statistics it met, ready for [`Model::update`].
#[derive(Clone)]
pub struct Outcome {
    /// The loss.
    pub loss: f64,
    /// Gradient of every encoder weight, in table order.
    pub encoder: Gradients,
    /// Gradient of every head weight, in table order.
    pub heads: Gradients,
    /// Gradient of every batch of images given to [`Pass::track_images`], in that order.
    pub images: Vec<Option<Tensor<4>>>,
    /// Gradients of every table given to [`Pass::track`], in that order.
    pub further: Vec<Gradients>,
    pub(super) statistics: Vec<BatchStatistics>,
}

/// The weights of one part of a network: those that gradients are asked for, and those in use, which may be shifted.
struct Part {
    origin: Vec<Tensor<2>>,
    used: Vec<Tensor<2>>,
}

impl Part {
    fn new(origin: Vec<Tensor<2>>) -> Self {
        Self { used: origin.clone(), origin }
    }

    fn shift(&mut self, shift: &Gradients) {
        assert!(shift.is_empty() || shift.len() == self.origin.len(), "a shift has one entry a weight");
        let shift = shift.iter().map(Option::as_ref).chain(std::iter::repeat(None));
        let shifted = |(weight, shift): (&Tensor<2>, Option<&Tensor<2>>)| match shift {
            Some(shift) => weight.clone() + shift.clone(),
            None => weight.clone(),
        };
        self.used = self.origin.iter().zip(shift).map(shifted).collect();
    }
}

impl Pass {
    /// Copies of every weight of a network, tracked where `learns` accepts its name.
    pub(super) fn of(model: &Model, learns: impl Fn(&str) -> bool) -> Self {
        let part = |prefix: &str, weights: &Weights| {
            Part::new(weights.tracked(|name| learns(&format!("{prefix}.{name}"))))
        };
        Self {
            layout: model.encoder().layout(),
            heads: model.heads().shape(),
            encoder_weights: part("encoder", model.encoder().weights()),
            head_weights: part("heads", model.heads().weights()),
            images: Vec::new(),
            further: Vec::new(),
            statistics: Vec::new(),
            device: model.device(),
        }
    }

    /// A tensor of images from normalised floats, [rows, size, size, 3].
    pub fn images(&self, floats: Vec<f32>, size: usize) -> Tensor<4> {
        images(floats, size, &self.device)
    }

    /// Images [rows, height, width, 3] whose gradient [`Outcome::images`] will hold. What they came from is cut off.
    pub fn track_images(&mut self, images: Tensor<4>) -> Tensor<4> {
        let images = images.inner().autodiff().require_grad();
        self.images.push(images.clone());
        images
    }

    /// A further table of weights, such as a modulation, whose gradients [`Outcome::further`] will hold.
    pub fn track(&mut self, weights: &Weights) -> Vec<Tensor<2>> {
        let tracked = weights.tracked(|_| true);
        self.further.push(tracked.clone());
        tracked
    }

    /// From here on the pass runs at θ + δ, whatever the shift before was. Gradients of all places it ran at add up.
    pub fn shift(&mut self, shift: &Shift) {
        self.encoder_weights.shift(&shift.encoder);
        self.head_weights.shift(&shift.heads);
    }

    /// Features of a training batch, [rows, height, width, 3] → [rows, features].
    pub fn features(&mut self, images: Tensor<4>) -> Tensor<2> {
        self.features_with(images, &mut |_, activations| activations)
    }

    /// Features with a change applied at each depth: 0 is the image, 1..=4 the output of that residual group.
    pub fn features_with(&mut self, images: Tensor<4>, change: &mut Change<'_>) -> Tensor<2> {
        pooled(self.train(images, change, None))
    }

    /// The last residual group's output on a training batch, whose means are the features: [rows, height, width, 3] →
    /// [rows, height, width, features].
    pub fn maps(&mut self, images: Tensor<4>) -> Tensor<4> {
        self.train(images, &mut |_, activations| activations, None)
    }

    /// Features with every layer watched: who watches may keep a layer's input and output or put another output in
    /// its place.
    pub fn features_watching(&mut self, images: Tensor<4>, watch: &mut Watch<'_>) -> Tensor<2> {
        pooled(self.train(images, &mut |_, activations| activations, Some(watch)))
    }

    fn train(
        &mut self,
        images: Tensor<4>,
        change: &mut Change<'_>,
        watch: Option<&mut Watch<'_>>,
    ) -> Tensor<4> {
        let (maps, statistics) = self.layout.train(&self.encoder_weights.used, images, change, watch);
        self.statistics.extend(statistics);
        maps
    }

    /// Meets the statistics of a batch [rows, height, width, 3] as [`Pass::features`] would, at the price of a forward
    /// pass: nothing else is kept of it, and there is no gradient.
    pub fn meet_statistics(&mut self, images: Tensor<4>) {
        let weights: Vec<Tensor<2>> =
            self.encoder_weights.used.iter().map(|weight| weight.clone().inner()).collect();
        let (_, statistics) = self.layout.train(&weights, images, &mut |_, activations| activations, None);
        self.statistics.extend(statistics);
    }

    /// Drops the statistics of the batches met so far: their features were normalised with them, but [`Model::update`]
    /// will not move the running statistics towards them.
    pub fn forget_statistics(&mut self) {
        self.statistics.clear();
    }

    /// Logits of every head, [rows, features] → [heads, rows, classes].
    pub fn logits(&self, features: Tensor<2>) -> Tensor<3> {
        self.heads.logits(&self.head_weights.used, features)
    }

    /// Gradients of a scalar loss with respect to every weight and everything else tracked.
    pub fn backward(self, loss: &Tensor<1>) -> Outcome {
        let [outcome] = Self::backward_together([self], loss);
        outcome
    }

    /// Gradients of one scalar loss that several passes have a part in, such as those of two networks: the outcome of
    /// each, in the order given.
    pub fn backward_together<const N: usize>(passes: [Self; N], loss: &Tensor<1>) -> [Outcome; N] {
        let mut gradients = loss.backward();
        let loss = f64::from(floats(loss.clone())[0]);
        passes.map(|pass| {
            let mut collect = |weights: Vec<Tensor<2>>| -> Gradients {
                weights.into_iter().map(|weight| weight.grad_remove(&mut gradients)).collect()
            };
            Outcome {
                loss,
                encoder: collect(pass.encoder_weights.origin),
                heads: collect(pass.head_weights.origin),
                further: pass.further.into_iter().map(collect).collect(),
                images: pass.images.into_iter().map(|images| images.grad_remove(&mut gradients)).collect(),
                statistics: pass.statistics,
            }
        })
    }
}

impl Outcome {
    /// Adds those of another pass of the same network: loss, gradients of encoder and heads, and statistics.
    pub fn join(&mut self, other: Self) {
        self.loss += other.loss;
        for (own, other) in [(&mut self.encoder, other.encoder), (&mut self.heads, other.heads)] {
            for (own, other) in own.iter_mut().zip(other) {
                *own = match (own.take(), other) {
                    (Some(own), Some(other)) => Some(own + other),
                    (own, other) => own.or(other),
                };
            }
        }
        self.statistics.extend(other.statistics);
    }

    /// Drops the batch statistics, so that taking a step with it again does not count the batch twice.
    pub fn forget_statistics(&mut self) {
        self.statistics.clear();
    }

    /// Scales the gradients of encoder and heads down together so that their common norm is at most `limit`.
    pub fn clip(&mut self, limit: f64) {
        let gradients = || self.encoder.iter().chain(&self.heads).flatten();
        let square = |gradient: &Tensor<2>| f64::from(floats(gradient.clone().square().sum())[0]);
        let norm = gradients().map(square).sum::<f64>().sqrt();
        if norm > limit {
            for gradient in self.encoder.iter_mut().chain(&mut self.heads).flatten() {
                *gradient = gradient.clone().mul_scalar(limit / norm);
            }
        }
    }
}

/// A tensor of square images from normalised floats, [rows, size, size, 3].
pub(super) fn images(floats: Vec<f32>, size: usize, device: &Device) -> Tensor<4> {
    let rows = floats.len() / (size * size * 3);
    Tensor::from_data(TensorData::new(floats, [rows, size, size, 3]), device)
}
