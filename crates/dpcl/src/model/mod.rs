//! Encoders, growing heads and the optimiser's step.
//!
//! A [`Model`] is an architecture (pure description), a table of named weights, running statistics and heads. Training
//! happens in a [`Pass`]: tracked copies of all weights through which any differentiable loss can be built. Nothing
//! here knows where images come from or why a loss is what it is.

mod adam;
mod architecture;
mod autoencoder;
mod average;
mod correction;
mod descent;
mod encoder;
mod heads;
mod loss;
mod network;
mod norms;
mod pass;
#[cfg(test)]
mod tests;
mod weights;
mod windows;

pub use adam::{Adam, Follow};
pub use architecture::{Architecture, Family, Layer, MODELS, ModelInfo};
pub use autoencoder::Autoencoder;
pub use average::Average;
pub(crate) use correction::{Correction, Fit};
pub use dpcl_kernels::average_pool as pooled;
pub(crate) use encoder::Folded;
pub use encoder::{Change, Encoder, LayerView, Watch};
pub use heads::{Growth, Heads};
pub use loss::{
    cross_entropy, cross_entropy_rows, distillation, divergence, mean_entropy, mixed_cross_entropy,
    stored_distance,
};
pub use network::Network;
pub use norms::Norms;
pub use pass::{Outcome, Pass, Shift};
pub use weights::{FileLayout, Gradients, Weight, Weights, floats, matrix};

use burn::tensor::{Device, Tensor};

use crate::{
    error::Result,
    random::Random,
    state::{Persist, State},
};

/// Random streams of a network's first weights: of the encoder, and of the heads as they grow.
const STREAMS: [&str; 2] = ["encoder-weights", "head-weights"];

/// A network that learns: its weights, the optimiser's moments and, if one is kept, their average, which then answers.
pub struct Model {
    network: Network,
    optimiser: Adam,
    average: Option<Average>,
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
            network: Network::new(encoder, Heads::new(heads, features, device)),
            optimiser: Adam::new(device),
            average: None,
            initialise,
            revision: 0,
        }
    }

    /// The weights that learn, as they would answer.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Turns images into feature vectors.
    pub fn encoder(&self) -> &Encoder {
        self.network.encoder()
    }

    /// The encoder, to change.
    pub fn encoder_mut(&mut self) -> &mut Encoder {
        self.revision += 1;
        self.network.parts_mut().0
    }

    /// Turn feature vectors into logits.
    pub fn heads(&self) -> &Heads {
        self.network.heads()
    }

    /// The heads, to change.
    pub fn heads_mut(&mut self) -> &mut Heads {
        self.revision += 1;
        self.network.parts_mut().1
    }

    /// A number that is another after every change of weights or statistics: what was worked out at one revision holds
    /// as long as it is the same.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The name of a part with numbers that are not finite, if there is one, in what learns and in what answers.
    pub fn not_finite(&self) -> Option<String> {
        let averaged = || self.average.as_ref()?.network().not_finite();
        self.network.not_finite().or_else(|| averaged().map(|name| format!("{}.{name}", average::PART)))
    }

    /// Where the tensors live.
    pub fn device(&self) -> Device {
        self.heads().device()
    }

    /// Adds one class to every head.
    pub fn grow(&mut self, growth: Growth) {
        self.revision += 1;
        let (_, heads) = self.network.parts_mut();
        heads.grow(growth, &mut self.initialise);
        if growth.keep_moments {
            self.optimiser.extend(heads.names(), heads);
        } else {
            self.optimiser.forget(heads.names());
        }
        if let Some(average) = &mut self.average {
            average.grow(heads);
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
        self.revision += 1;
        let (encoder, heads) = self.network.parts_mut();
        encoder.absorb(&outcome.statistics);
        match &mut self.average {
            None => {
                self.optimiser.step(encoder.weights_mut(), outcome.encoder, rate);
                self.optimiser.step(heads.weights_mut(), outcome.heads, rate);
            }
            Some(average) => {
                let (share, average) = average.step();
                let (slow_encoder, slow_heads) = average.parts_mut();
                let follow = |weights| Some(Follow { weights, share });
                let slow = follow(slow_encoder.weights_mut());
                self.optimiser.step_followed(encoder.weights_mut(), outcome.encoder, rate, slow);
                let slow = follow(slow_heads.weights_mut());
                self.optimiser.step_followed(heads.weights_mut(), outcome.heads, rate, slow);
                slow_encoder.follow_statistics(encoder, share);
            }
        }
    }

    /// A copy that answers with the weights that learn. It has no moments.
    pub fn unaveraged(&self) -> Self {
        Self {
            network: self.network.clone(),
            optimiser: Adam::new(&self.device()),
            average: None,
            initialise: self.initialise.clone(),
            revision: self.revision,
        }
    }

    /// A copy whose average answers with the mean statistics of these batches [rows, height, width, 3], met with its own
    /// weights. It has no moments.
    pub fn with_statistics_of(&self, batches: impl Iterator<Item = Tensor<4>>) -> Self {
        let mut copy = self.unaveraged();
        copy.average = self.average.clone();
        if let Some(average) = &mut copy.average {
            let (encoder, _) = average.network_mut().parts_mut();
            encoder.remeasure(batches);
        }
        copy
    }

    /// A tensor of images from normalised floats, [rows, size, size, 3].
    pub fn images(&self, floats: Vec<f32>, size: usize) -> Tensor<4> {
        pass::images(floats, size, &self.device())
    }
}

impl Persist for Model {
    fn save(&self, state: &mut State) {
        self.network.save(state);
        state.save_part("optimiser", &self.optimiser);
        state.put("initialise", &self.initialise);
        if let Some(average) = &self.average {
            state.save_part(average::PART, average);
        }
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.revision += 1;
        self.network.load(state)?;
        state.load_part("optimiser", &mut self.optimiser)?;
        self.optimiser.check_loaded(self.encoder().weights())?;
        self.optimiser.check_loaded(self.heads().weights())?;
        self.initialise = state.get("initialise")?;
        match &mut self.average {
            Some(average) => average.restore(state, &self.network),
            None => Ok(()),
        }
    }
}
