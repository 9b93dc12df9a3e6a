//! Plain gradient steps, θ − rate·g, without moments.

use super::{Gradients, Model, Network, Outcome, Weights};

impl Model {
    /// Takes a plain gradient step and keeps the batch statistics of the pass. A loss that is not finite changes
    /// nothing.
    pub fn descend(&mut self, outcome: &Outcome, rate: f64) {
        if !outcome.loss.is_finite() {
            return;
        }
        self.revision += 1;
        self.network.descend(outcome, rate);
        let (encoder, heads) = self.network.parts_mut();
        encoder.absorb(&outcome.statistics);
        if let Some(average) = &mut self.average {
            let (share, average) = average.step();
            let (slow_encoder, slow_heads) = average.parts_mut();
            slow_encoder.weights_mut().follow(encoder.weights(), share);
            slow_encoder.follow_statistics(encoder, share);
            slow_heads.weights_mut().follow(heads.weights(), share);
        }
    }

    /// A copy moved by one plain gradient step, to see what a step would do. It has the same running statistics and
    /// no moments.
    pub fn moved(&self, outcome: &Outcome, rate: f64) -> Self {
        let mut copy = self.unaveraged();
        copy.network.descend(outcome, rate);
        copy
    }
}

impl Network {
    fn descend(&mut self, outcome: &Outcome, rate: f64) {
        let (encoder, heads) = self.parts_mut();
        encoder.weights_mut().descend(&outcome.encoder, rate);
        heads.weights_mut().descend(&outcome.heads, rate);
    }
}

impl Weights {
    fn descend(&mut self, gradients: &Gradients, rate: f64) {
        for (weight, gradient) in self.iter_mut().zip(gradients) {
            let Some(gradient) = gradient else { continue };
            weight.value = weight.value.clone() - gradient.clone().mul_scalar(rate);
        }
    }

    /// Moves every weight by `share` of the way to that of another table.
    pub(super) fn follow(&mut self, other: &Self, share: f64) {
        for (own, new) in self.iter_mut().zip(other.iter()) {
            own.value = own.value.clone() + (new.value.clone() - own.value.clone()).mul_scalar(share);
        }
    }
}
