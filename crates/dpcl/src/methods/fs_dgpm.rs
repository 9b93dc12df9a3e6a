//! FS-DGPM: flattening sharpness for dynamic gradient projection memory. Weights keep out of the directions that
//! earlier tasks' inputs lie in, each held as firmly as a weight of its own says, and learn where the loss is flat
//! along them.
//!
//! Paper: Flattening Sharpness for Dynamic Gradient Projection Memory Benefits Continual Learning (NeurIPS 2021, arXiv
//! 2110.04593); the authors' public code where it says more.
//!
//! Loss: (1/K) Σₖ CE(b; θₖ), b the batch of experience replay and θₖ = θₖ₋₁ + η₁·[M diag(λ) Mᵀ gₖ], θ₀ = θ, with gₖ the
//! gradient of CE at θₖ₋₁ on the k-th of K parts of the stream's half, its elements cut to ±c. Of the gradient g of
//! that loss, cut to a norm of c, g − M diag(λ) Mᵀ g is learned from. Before that λ descends its own gradient, cut to
//! the same norm, by η₂ with momentum 0.9, and goes through the sigmoid of 10·λ. At the i-th task end, from 0, each
//! layer's M becomes the leading right singular vectors of its inputs on up to 125 stored images that hold th +
//! th_add·i of their squared length, and λ starts over at 1. Before the first, M diag(λ) Mᵀ is the identity where
//! weights are perturbed, and nothing is left out. Memory and rate: as experience replay.
//!
//! Departures from the paper: Adam and the rate of experience replay in the place of plain steps that a plateau
//! shortens. Adam gives directions that are held a little the weight of those that are not, so that only what is held
//! wholly stays. The gradients of gₖ are left out of the loss's (first order). There is one head over all classes met,
//! with a basis as well; batch norms and biases are perturbed and not held. The network is another, and th and th_add,
//! the authors' for ten tasks of CIFAR-100, are a guess for it. Bases are made of at most 4,096 windows a layer, of
//! clean images in evaluation mode, by the eigen-decomposition of their Gram matrix. The batch is cut and mixed, the
//! rows of gₖ are not. Running statistics follow b at θ₁ alone.

mod leading;
mod subspace;
#[cfg(test)]
mod tests;

use burn::tensor::Tensor;
use dpcl_report::record::Parameters;

use super::{MethodInfo, REHEARSAL};
use crate::{
    batch::Batch,
    config::{OwnKeys, Setup, keys},
    device,
    error::Result,
    memory::{Memory, Sample},
    method::{Core, Knowledge},
    model::{Gradients, Model, Outcome, Shift, Weight, Weights, cross_entropy},
    random::Random,
    rehearsal::{Rehearsal, Rehearse, Replay, Training, forward},
    state::{Persist, State},
};
use subspace::{Soft, Subspaces};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "fs-dgpm",
    about: "replay that learns outside of the directions of earlier inputs, and where the loss is flat along them",
    departures: &[
        "Adam and the decaying rate of `er`, not plain steps that a plateau shortens",
        "perturbed weights pass gradients on to first order only",
        "one head over all classes met, with a basis as well",
        "the thresholds are those for ten tasks of CIFAR-100 and another network",
    ],
    knowledge: Knowledge::TaskEnds,
    section: "fsdgpm",
    keys: OwnKeys::of::<FsDgpmKeys>(),
    build: |setup| Ok(Rehearsal::boxed(Replay::new(setup)?, FsDgpm::new(setup)?)),
    ..REHEARSAL
};

keys! {
    /// Own keys of `fs-dgpm`; the defaults are the authors' for ten tasks of CIFAR-100.
    #[derive(Copy)]
    struct FsDgpmKeys {
        /// How far weights are perturbed along a gradient (η₁).
        e1: f64 = 0.001, at_least(0);
        /// Learning rate of the soft weights (η₂).
        e2: f64 = 0.01, at_least(0);
        /// Share of a layer's squared inputs that its basis holds after the first task.
        th: f64 = 0.97, above(0), at_most(1);
        /// How much that share grows with each task.
        th_add: f64 = 0.003, at_least(0);
        /// Stored images that bases are made of; 0 makes none.
        images: usize = 125, capped(65_536, "no machine has the memory for more");
        /// Parts of the stream's half, each a step of the perturbation.
        inner_steps: usize = 2, at_least(1), capped(1_000_000, "no run would come to an end");
        /// Largest element of a perturbation's gradient, and largest norm of the loss's.
        clip: f64 = 2.0, above(0);
    }
}

/// A basis never has to hold more: rounding could keep it from ever being enough.
const MOST_SHARE: f64 = 1.0 - 1e-11;

/// Replay beside what is held.
pub struct FsDgpm {
    keys: FsDgpmKeys,
    subspaces: Subspaces,
    /// Task ends so far.
    tasks: u64,
    chance: Random,
}

impl FsDgpm {
    fn new(setup: &Setup) -> Result<Self> {
        let subspaces = Subspaces::new(device::named(&setup.device)?);
        Ok(Self { keys: setup.own(), subspaces, tasks: 0, chance: Random::named(setup.seed, "subspaces") })
    }

    /// The share that bases hold which are made at the next task end.
    fn share(&self) -> f64 {
        (self.keys.th + self.keys.th_add * self.tasks as f64).min(MOST_SHARE)
    }

    /// The places θₖ − θ that the loss is looked at, the nearest first.
    fn perturbed(&self, model: &Model, batch: &Batch, soft: &Soft) -> Vec<Shift> {
        let (batch, rows) = (batch.unmixed(), batch.stream_rows());
        let length = batch.size * batch.size * 3;
        let size = rows.div_ceil(self.keys.inner_steps);
        let mut shift = Shift::default();
        let mut places = Vec::new();
        for (images, labels) in
            batch.images[..rows * length].chunks(size * length).zip(batch.labels.chunks(size))
        {
            let mut pass = model.pass_at(&constant(&shift));
            let features = pass.features(pass.images(images.to_vec(), batch.size));
            let loss = cross_entropy(pass.logits(features), &labels[..images.len() / length]);
            shift = self.further(model, &shift, pass.backward(&loss), soft);
            places.push(shift.clone());
        }
        places
    }

    /// A place further up, by gradients found at the one before.
    fn further(&self, model: &Model, before: &Shift, found: Outcome, soft: &Soft) -> Shift {
        let FsDgpmKeys { e1, clip, .. } = self.keys;
        let along = |part: &str, weights: &Weights, gradients: Gradients, before: &Gradients| -> Gradients {
            let before = before.iter().cloned().chain(std::iter::repeat(None));
            let weights = weights.iter().zip(gradients).zip(before);
            let step = |((weight, gradient), before): ((&Weight, Option<Tensor<2>>), Option<Tensor<2>>)| {
                let Some(gradient) = gradient else { return before };
                let name = format!("{part}.{}", weight.name);
                let step = self.subspaces.within(&name, gradient, soft).clamp(-clip, clip).mul_scalar(e1);
                Some(match before {
                    Some(before) => before + step,
                    None => step,
                })
            };
            weights.map(step).collect()
        };
        Shift {
            encoder: along("encoder", model.encoder().weights(), found.encoder, &before.encoder),
            heads: along("heads", model.heads().weights(), found.heads, &before.heads),
        }
    }
}

impl Rehearse for FsDgpm {
    fn step(&mut self, training: &mut Training<'_>, batch: Batch) -> Result<f64> {
        let mut pass = training.model.pass();
        let soft = self.subspaces.track(&mut pass);
        let places = self.perturbed(training.model, &batch, &soft);
        let count = places.len();

        // The nearest place comes last, and its statistics are kept.
        let mut losses = places.into_iter().rev().map(|place| {
            pass.forget_statistics();
            pass.shift(&place);
            let logits = forward(&mut pass, &batch);
            training.loss(logits, &batch)
        });
        let first = losses.next().expect("the stream has rows in every batch");
        let loss = losses.fold(first, |sum, loss| sum + loss).div_scalar(count as f64);

        let mut outcome = pass.backward(&loss);
        outcome.clip(self.keys.clip);
        if outcome.loss.is_finite() {
            let gradients = outcome.further.remove(0);
            self.subspaces.descend(gradients, self.keys.clip, self.keys.e2);
            self.subspaces.leave_out(training.model, &mut outcome);
        }
        training.apply(outcome, &batch)
    }

    fn task_end(&mut self, core: &Core, memory: &Memory) {
        let share = self.share();
        self.tasks += 1;
        let slots = self.chance.distinct(memory.slots().len(), self.keys.images);
        let samples: Vec<&Sample> = slots.into_iter().map(|slot| &memory.slots()[slot]).collect();
        if !samples.is_empty() {
            self.subspaces.rebuild(core, &samples, share, &mut self.chance);
        }
    }

    fn check_loaded(&self, core: &Core, _memory: &Memory) -> Result<()> {
        self.subspaces.check_loaded(&core.model)
    }

    fn extra_parameters(&self) -> Parameters {
        Parameters { state: self.subspaces.count(), ..Parameters::default() }
    }
}

impl Persist for FsDgpm {
    fn save(&self, state: &mut State) {
        state.save_part("subspaces", &self.subspaces);
        state.put("tasks", &self.tasks);
        state.put("chance", &self.chance);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        state.load_part("subspaces", &mut self.subspaces)?;
        self.tasks = state.get("tasks")?;
        self.chance = state.get("chance")?;
        Ok(())
    }
}

/// The same place, which no gradient reaches.
fn constant(shift: &Shift) -> Shift {
    let part = |table: &Gradients| -> Gradients {
        table.iter().map(|tensor| tensor.clone().map(Tensor::inner)).collect()
    };
    Shift { encoder: part(&shift.encoder), heads: part(&shift.heads) }
}
