//! A copy of a network that only evaluates: the teacher of a later self.

use burn::tensor::{Device, Tensor};

use super::{Architecture, Change, Encoder, Folded, Heads, Model};
use crate::{
    error::Result,
    random::Random,
    state::{Persist, State},
};

/// Weights and running statistics as they once were.
pub struct Frozen {
    encoder: Encoder,
    heads: Heads,
    folded: Folded,
}

impl Frozen {
    /// The network as it is at present; costs memory only once the network learns on.
    pub fn of(model: &Model) -> Self {
        let encoder = model.encoder().clone();
        Self { folded: encoder.fold(), encoder, heads: model.heads().clone() }
    }

    /// How many learnable numbers it holds.
    pub fn parameters(&self) -> u64 {
        (self.encoder.weights().count() + self.heads.weights().count()) as u64
    }

    /// A network of the given form to load saved weights into.
    pub fn blank(architecture: Architecture, heads: usize, device: &Device) -> Self {
        let encoder = Encoder::new(architecture, &mut Random::named(0, "blank"), device);
        Self { folded: encoder.fold(), heads: Heads::new(heads, architecture.features(), device), encoder }
    }

    /// Logits in evaluation mode of `images` [rows, height, width, 3] → [heads, rows, classes], with a change applied to
    /// the image (depth 0) and to each residual group's output (depths 1 to 4). All rows go through together, since
    /// a change may mix them.
    pub fn logits(&self, images: Tensor<4>, change: &mut Change<'_>) -> Tensor<3> {
        self.heads.logits(self.encoder.evaluate(&self.folded, images, change, None))
    }

    /// How many classes it knows.
    pub fn classes(&self) -> usize {
        self.heads.classes()
    }
}

impl Persist for Frozen {
    fn save(&self, state: &mut State) {
        state.save_part("encoder", &self.encoder);
        state.save_part("heads", &self.heads);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        state.load_part("encoder", &mut self.encoder)?;
        state.load_part("heads", &mut self.heads)?;
        self.folded = self.encoder.fold();
        Ok(())
    }
}
