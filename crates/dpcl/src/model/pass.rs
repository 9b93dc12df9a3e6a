//! One differentiable trip through a network in training mode, and what comes back from it.
//!
//! A [`Pass`] holds tracked copies of every weight and nothing of the model, so that the model can take the step that the
//! pass leads to. Any loss can be built from what it gives.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};

use super::{
    Model,
    encoder::{BatchStatistics, Layout},
    heads::HeadShape,
    weights::{Gradients, floats},
};

/// One differentiable trip through the network in training mode.
pub struct Pass {
    layout: Arc<Layout>,
    heads: HeadShape,
    encoder_weights: Vec<Tensor<2>>,
    head_weights: Vec<Tensor<2>>,
    statistics: Vec<BatchStatistics>,
    device: Device,
}

/// Loss and gradients of one pass and the batch statistics it met, ready for [`Model::update`].
pub struct Outcome {
    /// The loss.
    pub loss: f64,
    /// Gradient of every encoder weight, in table order.
    pub encoder: Gradients,
    /// Gradient of every head weight, in table order.
    pub heads: Gradients,
    pub(super) statistics: Vec<BatchStatistics>,
}

impl Pass {
    /// Tracked copies of every weight of a network.
    pub(super) fn of(model: &Model) -> Self {
        Self {
            layout: model.encoder().layout(),
            heads: model.heads().shape(),
            encoder_weights: model.encoder().weights().tracked(),
            head_weights: model.heads().weights().tracked(),
            statistics: Vec::new(),
            device: model.device(),
        }
    }

    /// A tensor of images from normalised floats, [rows, size, size, 3].
    pub fn images(&self, floats: Vec<f32>, size: usize) -> Tensor<4> {
        images(floats, size, &self.device)
    }

    /// Features of a training batch, [rows, height, width, 3] → [rows, features].
    pub fn features(&mut self, images: Tensor<4>) -> Tensor<2> {
        self.features_with(images, &mut |_, activations| activations)
    }

    /// Features with a change applied at each depth: 0 is the image, 1..=4 the output of that residual group.
    pub fn features_with(
        &mut self,
        images: Tensor<4>,
        change: &mut dyn FnMut(usize, Tensor<4>) -> Tensor<4>,
    ) -> Tensor<2> {
        let (features, statistics) = self.layout.train(&self.encoder_weights, images, change);
        self.statistics.extend(statistics);
        features
    }

    /// Logits of every head, [rows, features] → [heads, rows, classes].
    pub fn logits(&self, features: Tensor<2>) -> Tensor<3> {
        self.heads.logits(&self.head_weights, features)
    }

    /// Gradients of a scalar loss with respect to every weight.
    pub fn backward(self, loss: &Tensor<1>) -> Outcome {
        let mut gradients = loss.backward();
        let mut collect = |weights: Vec<Tensor<2>>| -> Gradients {
            weights.into_iter().map(|weight| weight.grad_remove(&mut gradients)).collect()
        };
        Outcome {
            loss: f64::from(floats(loss.clone())[0]),
            encoder: collect(self.encoder_weights),
            heads: collect(self.head_weights),
            statistics: self.statistics,
        }
    }
}

impl Outcome {
    /// Scales all gradients down together so that their common norm is at most `limit`.
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
