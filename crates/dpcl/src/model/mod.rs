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
mod pass;
#[cfg(test)]
mod tests;
mod weights;

pub use adam::Adam;
pub use architecture::{Architecture, Family, Layer, MODELS, ModelInfo};
pub(crate) use correction::{Correction, Fit};
pub(crate) use encoder::Folded;
pub use encoder::{Change, Encoder, LayerView, Watch};
pub use frozen::Frozen;
pub use heads::{Growth, Heads};
pub use loss::{
    cross_entropy, cross_entropy_rows, distillation, mean_entropy, mixed_cross_entropy, stored_distance,
};
pub use pass::{Outcome, Pass, Shift};
pub use weights::{FileLayout, Gradients, Weight, Weights, floats, matrix};

use std::sync::OnceLock;

use burn::tensor::{Device, Tensor};

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

/// Random streams of a network's first weights: of the encoder, and of the heads as they grow.
const STREAMS: [&str; 2] = ["encoder-weights", "head-weights"];

/// Encoder, heads and optimiser moments of one learner.
pub struct Model {
    encoder: Encoder,
    heads: Heads,
    optimiser: Adam,
    folded: OnceLock<Folded>,
    initialise: Random,
    revision: u64,
}

impl Model {
    /// A freshly drawn network with `heads` linear heads and no class yet.
    pub fn new(architecture: Architecture, heads: usize, seed: u64, device: &Device) -> Self {
        Self::drawn(architecture, heads, STREAMS.map(|stream| Random::named(seed, stream)), device)
    }

    /// A further network of the same run: as [`Model::new`], from random streams that carry `name`, so that two networks
    /// of one seed start from different weights.
    pub fn named(architecture: Architecture, heads: usize, seed: u64, name: &str, device: &Device) -> Self {
        let streams = STREAMS.map(|stream| Random::named(seed, &format!("{name}-{stream}")));
        Self::drawn(architecture, heads, streams, device)
    }

    fn drawn(architecture: Architecture, heads: usize, streams: [Random; 2], device: &Device) -> Self {
        let [mut weights, initialise] = streams;
        let encoder = Encoder::new(architecture, &mut weights, device);
        let features = encoder.architecture().features();
        Self {
            heads: Heads::new(heads, features, device),
            optimiser: Adam::new(device),
            folded: OnceLock::new(),
            initialise,
            revision: 0,
            encoder,
        }
    }

    /// Turns images into feature vectors.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// The encoder, to change.
    pub fn encoder_mut(&mut self) -> &mut Encoder {
        self.change();
        &mut self.encoder
    }

    /// Turn feature vectors into logits.
    pub fn heads(&self) -> &Heads {
        &self.heads
    }

    /// The heads, to change.
    pub fn heads_mut(&mut self) -> &mut Heads {
        self.change();
        &mut self.heads
    }

    /// A number that is another after every change of weights or statistics: what was worked out at one revision holds
    /// as long as it is the same.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Something is about to change: what evaluation had prepared no longer holds.
    fn change(&mut self) {
        self.folded.take();
        self.revision += 1;
    }

    /// Where the tensors live.
    pub fn device(&self) -> Device {
        self.heads.device()
    }

    /// Adds one class to every head.
    pub fn grow(&mut self, growth: Growth) {
        self.change();
        self.heads.grow(growth, &mut self.initialise);
        if growth.keep_moments {
            self.optimiser.extend(self.heads.names(), &self.heads);
        } else {
            self.optimiser.forget(self.heads.names());
        }
    }

    /// Begins a training pass: tracked copies of every weight.
    pub fn pass(&self) -> Pass {
        Pass::of(self, |_| true)
    }

    /// Begins a training pass in which a part of the network does not learn: weights that `learns` refuses are
    /// constants, have no gradient, and neither they nor their moments move in [`Model::update`]. Names are those of
    /// files, such as `encoder.stem.conv.weight` and `heads.bias`.
    pub fn pass_learning(&self, learns: impl Fn(&str) -> bool) -> Pass {
        Pass::of(self, learns)
    }

    /// Begins a training pass at θ + δ. Its gradients are those at the shifted weights; [`Model::update`] applies them to
    /// θ.
    pub fn pass_at(&self, shift: &Shift) -> Pass {
        let mut pass = self.pass();
        pass.shift(shift);
        pass
    }

    /// Takes the optimiser step that a pass and its loss lead to; returns the loss.
    pub fn step(&mut self, pass: Pass, loss: &Tensor<1>, rate: f64) -> f64 {
        let outcome = pass.backward(loss);
        let loss = outcome.loss;
        self.update(outcome, rate);
        loss
    }

    /// Takes an optimiser step with the given gradients and keeps the batch statistics of the pass. A loss that is not
    /// finite changes nothing, so that whoever refuses it still holds a working network.
    pub fn update(&mut self, outcome: Outcome, rate: f64) {
        if !outcome.loss.is_finite() {
            return;
        }
        self.change();
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
            revision: 0,
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
    ///
    /// # Panics
    /// When the images are tracked: evaluation is not differentiable.
    pub fn features(&self, images: Tensor<4>) -> Tensor<2> {
        let [rows, height, width, _] = images.dims();
        let activations = self.encoder.architecture().activations(height, width);
        let at_once = (EVALUATION_FLOATS / activations).max(EVALUATION_IMAGES).min(rows.max(1));
        let parts = images.split(at_once, 0).into_iter();
        Tensor::cat(parts.map(|part| self.features_with(part, &mut |_, x| x)).collect(), 0)
    }

    /// Features in evaluation mode with a change applied at each depth. All rows go through together, since a change may
    /// mix them.
    pub fn features_with(&self, images: Tensor<4>, change: &mut Change<'_>) -> Tensor<2> {
        self.encoder.evaluate(self.folded(), images, change, None)
    }

    /// Features in evaluation mode with every layer watched; all rows go through together.
    pub fn features_watching(&self, images: Tensor<4>, watch: &mut Watch<'_>) -> Tensor<2> {
        self.encoder.evaluate(self.folded(), images, &mut |_, x| x, Some(watch))
    }

    fn folded(&self) -> &Folded {
        self.folded.get_or_init(|| self.encoder.fold())
    }

    /// Logits of clean images in evaluation mode → [heads, rows, classes].
    pub fn logits(&self, images: Tensor<4>) -> Tensor<3> {
        let features = self.features(images);
        self.heads.logits(features)
    }

    /// A tensor of images from normalised floats, [rows, size, size, 3].
    pub fn images(&self, floats: Vec<f32>, size: usize) -> Tensor<4> {
        pass::images(floats, size, &self.device())
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
        self.change();
        state.load_part("encoder", &mut self.encoder)?;
        state.load_part("heads", &mut self.heads)?;
        state.load_part("optimiser", &mut self.optimiser)?;
        self.optimiser.check_loaded(self.encoder.weights())?;
        self.optimiser.check_loaded(self.heads.weights())?;
        self.initialise = state.get("initialise")?;
        Ok(())
    }
}
