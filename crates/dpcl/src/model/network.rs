//! Encoder and heads as they answer: the part of a model that evaluates. Copies of it are teachers, virtual steps and
//! averages; they cost memory only once one of the two learns on.

use std::sync::OnceLock;

use burn::tensor::{Device, Tensor};

use dpcl_kernels::average_pool as pooled;

use super::{Architecture, Change, Encoder, Folded, Heads, Watch};
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

/// Weights and running statistics, for evaluation.
#[derive(Clone)]
pub struct Network {
    encoder: Encoder,
    heads: Heads,
    folded: OnceLock<Folded>,
}

impl Network {
    /// A network of these parts.
    pub fn new(encoder: Encoder, heads: Heads) -> Self {
        Self { encoder, heads, folded: OnceLock::new() }
    }

    /// A network of the given form to load saved weights into.
    pub fn blank(architecture: Architecture, heads: usize, device: &Device) -> Self {
        let encoder = Encoder::new(architecture, &mut Random::named(0, "blank"), device);
        Self::new(encoder, Heads::new(heads, architecture.features(), device))
    }

    /// Turns images into feature vectors.
    pub fn encoder(&self) -> &Encoder {
        &self.encoder
    }

    /// Turn feature vectors into logits.
    pub fn heads(&self) -> &Heads {
        &self.heads
    }

    /// Both parts, to change.
    pub fn parts_mut(&mut self) -> (&mut Encoder, &mut Heads) {
        self.folded.take();
        (&mut self.encoder, &mut self.heads)
    }

    /// The name of a part with numbers that are not finite, if there is one.
    pub fn not_finite(&self) -> Option<String> {
        let encoder = self.encoder.not_finite().map(|name| format!("encoder.{name}"));
        encoder.or_else(|| self.heads.weights().not_finite().map(|name| format!("heads.{name}")))
    }

    /// How many learnable numbers it holds.
    pub fn parameters(&self) -> u64 {
        (self.encoder.weights().count() + self.heads.weights().count()) as u64
    }

    /// Features of clean images in evaluation mode, `images` [rows, height, width, 3] → [rows, features].
    ///
    /// # Panics
    /// When the images are tracked: evaluation is not differentiable.
    pub fn features(&self, images: Tensor<4>) -> Tensor<2> {
        let parts = self.parts(images).into_iter();
        Tensor::cat(parts.map(|part| self.features_with(part, &mut |_, x| x)).collect(), 0)
    }

    /// The last residual group's output on clean images in evaluation mode, whose means are the features:
    /// [rows, height, width, 3] → [rows, height, width, features].
    ///
    /// # Panics
    /// When the images are tracked: evaluation is not differentiable.
    pub fn maps(&self, images: Tensor<4>) -> Tensor<4> {
        let maps = |part| self.encoder.evaluate(self.folded(), part, &mut |_, x| x, None);
        Tensor::cat(self.parts(images).into_iter().map(maps).collect(), 0)
    }

    /// Images in parts that stay in the cache on their way through.
    fn parts(&self, images: Tensor<4>) -> Vec<Tensor<4>> {
        let [rows, height, width, _] = images.dims();
        let activations = self.encoder.architecture().activations(height, width);
        let at_once = (EVALUATION_FLOATS / activations).max(EVALUATION_IMAGES).min(rows.max(1));
        images.split(at_once, 0)
    }

    /// Features in evaluation mode with a change applied at each depth: to the image (0) and to each residual group's
    /// output (1 to 4). All rows go through together, since a change may mix them.
    pub fn features_with(&self, images: Tensor<4>, change: &mut Change<'_>) -> Tensor<2> {
        pooled(self.encoder.evaluate(self.folded(), images, change, None))
    }

    /// Features in evaluation mode with every layer watched; all rows go through together.
    pub fn features_watching(&self, images: Tensor<4>, watch: &mut Watch<'_>) -> Tensor<2> {
        pooled(self.encoder.evaluate(self.folded(), images, &mut |_, x| x, Some(watch)))
    }

    /// Logits of clean images in evaluation mode → [heads, rows, classes].
    pub fn logits(&self, images: Tensor<4>) -> Tensor<3> {
        self.heads.logits(self.features(images))
    }

    /// Logits in evaluation mode with a change applied at each depth → [heads, rows, classes].
    pub fn logits_with(&self, images: Tensor<4>, change: &mut Change<'_>) -> Tensor<3> {
        self.heads.logits(self.features_with(images, change))
    }

    fn folded(&self) -> &Folded {
        self.folded.get_or_init(|| self.encoder.fold())
    }
}

impl Persist for Network {
    fn save(&self, state: &mut State) {
        state.save_part("encoder", &self.encoder);
        state.save_part("heads", &self.heads);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.folded.take();
        state.load_part("encoder", &mut self.encoder)?;
        state.load_part("heads", &mut self.heads)
    }
}
