//! Encoders, growing heads and the optimiser's step.
//!
//! A [`Model`] is an architecture (pure description), a table of named weights, running statistics and heads. Training
//! happens in a [`Pass`]: tracked copies of all weights through which any differentiable loss can be built. Nothing
//! here knows where images come from or why a loss is what it is.

mod adam;
mod architecture;
mod correction;
mod encoder;
mod frozen;
mod heads;
mod loss;
mod weights;

pub use adam::Adam;
pub use architecture::{Architecture, Family, MODELS, ModelInfo};
pub use correction::{Correction, Fit};
pub use encoder::{BatchStatistics, Encoder, Folded};
pub use frozen::Frozen;
pub use heads::{Growth, Heads};
pub use loss::{
    cross_entropy, cross_entropy_rows, distillation, mean_entropy, mixed_cross_entropy, stored_distance,
};
pub use weights::{FileLayout, Gradients, Weight, Weights, floats, matrix};

use std::sync::OnceLock;

use burn::tensor::{Device, Tensor, TensorData};

use crate::{
    error::Result,
    random::Random,
    state::{Persist, State},
};

/// Floats of one layer's activations when images are evaluated: as many images as that go through the network
/// together, so that a layer's output is still in the cache when the next one reads it.
const EVALUATION_FLOATS: usize = 1 << 20;

/// Images that go through together at least, so that work on the weights is shared.
const EVALUATION_IMAGES: usize = 8;

/// Encoder, heads and optimiser moments of one learner.
pub struct Model {
    encoder: Encoder,
    /// Turn feature vectors into logits.
    pub heads: Heads,
    optimiser: Adam,
    folded: OnceLock<Folded>,
    initialise: Random,
}

impl Model {
    /// A freshly drawn network with `heads` linear heads and no class yet.
    pub fn new(architecture: Architecture, heads: usize, seed: u64, device: &Device) -> Self {
        let encoder = Encoder::new(architecture, &mut Random::named(seed, "encoder-weights"), device);
        let features = encoder.architecture().features();
        Self {
            heads: Heads::new(heads, features, device),
            optimiser: Adam::new(device),
            folded: OnceLock::new(),
            initialise: Random::named(seed, "head-weights"),
            encoder,
        }
    }

    /// Turns images into feature vectors.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The encoder, to change; what evaluation had prepared from it is dropped.
    pub fn encoder_mut(&mut self) -> &mut Encoder {
        self.folded.take();
        &mut self.encoder
    }

    /// Where the tensors live.
    pub fn device(&self) -> Device {
        self.heads.device()
    }

    /// Adds one class to every head.
    pub fn grow(&mut self, growth: Growth) {
        self.heads.grow(growth, &mut self.initialise);
        if growth.keep_moments {
            self.optimiser.extend(self.heads.names(), &self.heads);
        } else {
            self.optimiser.forget(self.heads.names());
        }
    }

    /// Begins a training pass: tracked copies of every weight.
    pub fn pass(&self) -> Pass<'_> {
        Pass {
            encoder: &self.encoder,
            heads: &self.heads,
            encoder_weights: self.encoder.weights().tracked(),
            head_weights: self.heads.weights().tracked(),
            statistics: Vec::new(),
        }
    }

    /// Takes an optimiser step with the given gradients and keeps the batch statistics of the pass. A loss that is not
    /// finite changes nothing, so that whoever refuses it still holds a working network.
    pub fn update(&mut self, outcome: Outcome, rate: f64) {
        if !outcome.loss.is_finite() {
            return;
        }
        self.folded.take();
        self.encoder.absorb(&outcome.statistics);
        self.optimiser.step(self.encoder.weights_mut(), outcome.encoder, rate);
        self.optimiser.step(self.heads.weights_mut(), outcome.heads, rate);
    }

    /// A copy moved by one plain gradient step, θ − rate·g, to see what a step would do. It has the same running
    /// statistics and no moments.
    pub fn moved(&self, outcome: &Outcome, rate: f64) -> Self {
        let mut copy = Self {
            encoder: self.encoder.clone(),
            heads: self.heads.clone(),
            optimiser: Adam::new(&self.device()),
            folded: OnceLock::new(),
            initialise: self.initialise.clone(),
        };
        for (weights, gradients) in
            [(copy.encoder.weights_mut(), &outcome.encoder), (copy.heads.weights_mut(), &outcome.heads)]
        {
            for (weight, gradient) in weights.iter_mut().zip(gradients) {
                let Some(gradient) = gradient else { continue };
                weight.value = weight.value.clone() - gradient.clone().mul_scalar(rate);
            }
        }
        copy
    }

    /// Features of clean images in evaluation mode, `images` [rows, height, width, 3] → [rows, features].
    pub fn features(&self, images: Tensor<4>) -> Tensor<2> {
        let folded = self.folded.get_or_init(|| self.encoder.fold());
        let [rows, height, width, _] = images.dims();
        let activations = self.encoder.architecture().activations(height, width);
        let at_once = (EVALUATION_FLOATS / activations).max(EVALUATION_IMAGES).min(rows.max(1));
        let parts = images.split(at_once, 0).into_iter();
        Tensor::cat(parts.map(|part| self.encoder.evaluate(folded, part)).collect(), 0)
    }

    /// Logits of clean images in evaluation mode → [heads, rows, classes].
    pub fn logits(&self, images: Tensor<4>) -> Tensor<3> {
        let features = self.features(images);
        self.heads.logits(features)
    }

    /// A tensor of `rows` images from normalised floats, [rows, size, size, 3].
    pub fn images(&self, floats: Vec<f32>, size: usize) -> Tensor<4> {
        let rows = floats.len() / (size * size * 3);
        Tensor::from_data(TensorData::new(floats, [rows, size, size, 3]), &self.device())
    }
}

impl Persist for Model {
    fn save(&self, state: &mut State) {
        state.save_part("encoder", &self.encoder);
        state.save_part("heads", &self.heads);
        state.save_part("optimiser", &self.optimiser);
        state.put("initialise", &self.initialise);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        state.load_part("encoder", &mut self.encoder)?;
        state.load_part("heads", &mut self.heads)?;
        state.load_part("optimiser", &mut self.optimiser)?;
        self.optimiser.fit(self.encoder.weights())?;
        self.optimiser.fit(self.heads.weights())?;
        self.initialise = state.get("initialise")?;
        self.folded.take();
        Ok(())
    }
}

/// One differentiable trip through the network in training mode.
pub struct Pass<'a> {
    encoder: &'a Encoder,
    heads: &'a Heads,
    encoder_weights: Vec<Tensor<2>>,
    head_weights: Vec<Tensor<2>>,
    statistics: Vec<BatchStatistics>,
}

/// Loss and gradients of one pass and the batch statistics it met, ready for [`Model::update`].
pub struct Outcome {
    /// The loss.
    pub loss: f64,
    /// Gradient of every encoder weight, in table order.
    pub encoder: Gradients,
    /// Gradient of every head weight, in table order.
    pub heads: Gradients,
    statistics: Vec<BatchStatistics>,
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

impl Pass<'_> {
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
        let (features, statistics) = self.encoder.train(&self.encoder_weights, images, change);
        self.statistics.extend(statistics);
        features
    }

    /// Logits of every head, [rows, features] → [heads, rows, classes].
    pub fn logits(&self, features: Tensor<2>) -> Tensor<3> {
        self.heads.logits_with(&self.head_weights, features)
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
