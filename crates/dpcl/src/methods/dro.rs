//! Distributionally robust memory evolution: rehearsed images are first moved to where the network finds them harder, so
//! that a few stored samples stand for a neighbourhood of the past.
//!
//! Paper: Improving Task-free Continual Learning by Distributionally Robust Memory Evolution (ICML 2022, arXiv
//! 2207.07256). Where paper and code differ, the authors' public code is followed.
//!
//! Loss: CE(stream) + CE(x, y) + β·CE(z, y), x the n memory rows and z where they evolve to, each term a mean of its own.
//! Evolution: z ← x, then a few times z ← z − (s/n)·(K·G + R), with G the gradient of −CE(z, y) + γ·(1/n) Σᵢ ‖zᵢ − xᵢ‖²,
//! Kᵢⱼ = exp(−‖zᵢ − zⱼ‖²/h), Rᵢ = (2/h) Σⱼ Kᵢⱼ·(zᵢ − zⱼ) and h = 0.05·m²/ln(n + 1), m the median of all distances, those
//! of points to themselves included. One row alone has K = 1 and R = 0. `langevin` has z ← z + s·G + √(2s)·ξ instead, ξ
//! normal. Evolved images are never stored. Memory and rate: as experience replay.
//!
//! Departures from the paper, the first three those of the authors' code. The signs are not those of the derivation: R
//! pulls rows together, and `langevin` makes them easier; `fix_sign` turns both around. Between images K is the identity
//! as far as numbers go, so that R hardly matters and each row climbs its own loss. The dot products of gradients that
//! the paper bounds are not looked at. Stream and memory rows go through the network as one batch and are cut and mixed
//! apart, each half by chance of its own; evolution and both terms of the memory have the mixed labels. Evolved rows are
//! normalised with their own batch statistics, and leave no trace in the running ones.

mod stein;
#[cfg(test)]
mod tests;

use burn::tensor::Tensor;

use super::{MethodInfo, REHEARSAL};
use crate::{
    batch::{Batch, Recipe},
    config::{OwnKeys, Setup, choices, keys},
    error::Result,
    model::{Model, floats},
    perturb::Normals,
    random::Random,
    rehearsal::{Objective, Rehearsal, Rehearse, Replay, Training, forward, group_loss, rows_loss},
    state::{Persist, State},
};
use stein::Points;

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "dro",
    about: "replay of memory rows and of where they evolve to, which is harder",
    departures: &[
        "signs of the evolution are those of the authors' code, unless `dro.fix_sign`",
        "dot products of gradients are not bounded, as in that code",
        "evolved rows leave no trace in batch norm's running statistics",
    ],
    section: "dro",
    keys: OwnKeys::of::<DroKeys>(),
    build: |setup| {
        Objective::refuse_asymmetric(setup)?;
        Ok(Rehearsal::boxed(Replay::new(setup)?, Dro::new(setup)))
    },
    ..REHEARSAL
};

/// How memory rows move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evolution {
    /// By Stein variational gradient descent: together, through a kernel.
    Svgd,
    /// By Langevin dynamics: each by itself, with noise.
    Langevin,
}

choices!(Evolution: Svgd = "svgd", Langevin = "langevin");

keys! {
    /// Own keys of `dro`; the defaults are those of the authors' code.
    #[derive(Copy)]
    struct DroKeys {
        /// How memory rows move: `svgd` (Stein variational gradient) or `langevin`.
        evolution: Evolution = Evolution::Svgd;
        /// Steps they take before each training step.
        steps: usize = 5, capped(1_000_000, "no run would come to an end");
        /// Length of such a step (s), in units of normalised pixels.
        step: f64 = 1e-4, above(0);
        /// Weight of the squared distance to the stored image (γ).
        gamma: f64 = 0.2, at_least(0);
        /// Weight of the evolved rows (β); at 0 nothing evolves.
        beta: f64 = 0.02, at_least(0);
        /// Whether rows repel each other and `langevin` makes them harder, which the authors' code has the wrong way round.
        fix_sign: bool = false;
    }
}

/// Replay of evolving memory rows.
pub struct Dro {
    keys: DroKeys,
    noise: Random,
}

impl Dro {
    fn new(setup: &Setup) -> Self {
        Self { keys: setup.own(), noise: Random::named(setup.seed, "evolution") }
    }

    /// Where the memory rows of a batch evolve to; none where nothing evolves.
    fn evolved(&mut self, model: &Model, batch: &Batch) -> Option<Tensor<4>> {
        let length = batch.size * batch.size * 3;
        let stored = &batch.images[batch.stream_rows() * length..];
        if stored.is_empty() || self.keys.beta == 0.0 {
            return None;
        }
        let mut points = stored.to_vec();
        for _ in 0..self.keys.steps {
            let gradient = self.slope(model, batch, points.clone());
            points = self.moved(&points, &gradient, batch.slots.len());
        }
        Some(model.images(points, batch.size))
    }

    /// The gradient of the energy where the memory rows of a batch are at `points`. The network does not learn from it.
    fn slope(&self, model: &Model, batch: &Batch, points: Vec<f32>) -> Vec<f32> {
        let memory = batch.stream_rows()..batch.labels.len();
        let mut pass = model.pass_learning(|_| false);
        let stored = pass.images(batch.images[batch.images.len() - points.len()..].to_vec(), batch.size);
        let points = pass.images(points, batch.size);
        let points = pass.track_images(points);
        let features = pass.features(points.clone());
        let cross_entropy = rows_loss(pass.logits(features), batch, memory);
        let energy = energy(cross_entropy, points, stored, self.keys.gamma);

        let gradient = pass.backward(&energy).images.remove(0);
        floats(gradient.expect("the energy depends on the images"))
    }

    /// Points one step further, along the gradient of the energy.
    fn moved(&mut self, points: &[f32], gradient: &[f32], rows: usize) -> Vec<f32> {
        let DroKeys { evolution, step, fix_sign, .. } = self.keys;
        match evolution {
            Evolution::Svgd => {
                let moved = Points::new(points, rows).step(gradient, step, fix_sign);
                moved.into_iter().map(|number| number as f32).collect()
            }
            Evolution::Langevin => {
                let along = if fix_sign { -step } else { step };
                let spread = (2.0 * step).sqrt();
                let mut normals = Normals::new(self.noise.bits());
                let mut moved = |(point, slope): (&f32, &f32)| {
                    let drift = along * f64::from(*slope) + spread * f64::from(normals.next_one());
                    (f64::from(*point) + drift) as f32
                };
                points.iter().zip(gradient).map(&mut moved).collect()
            }
        }
    }
}

impl Rehearse for Dro {
    fn recipe(&self, rows: usize) -> Recipe {
        Recipe { apart: true, ..Recipe::plain(rows) }
    }

    fn step(&mut self, training: &mut Training<'_>, batch: Batch) -> Result<f64> {
        let (stream, rows) = (batch.stream_rows(), batch.labels.len());
        let evolved = self.evolved(training.model, &batch);

        let mut pass = training.model.pass();
        let hard = evolved.map(|images| {
            let features = pass.features(images);
            pass.forget_statistics();
            rows_loss(pass.logits(features), &batch, stream..rows)
        });
        let logits = forward(&mut pass, &batch);
        let mut loss = group_loss(logits.clone(), &batch, 0..stream);
        if rows > stream {
            loss = loss + group_loss(logits.clone(), &batch, stream..rows);
        }
        if let Some(hard) = hard {
            loss = loss + hard.mul_scalar(self.keys.beta);
        }

        let loss = training.taught(loss, logits, &batch);
        training.step(pass, &loss, &batch)
    }
}

impl Persist for Dro {
    fn save(&self, state: &mut State) {
        state.put("noise", &self.noise);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.noise = state.get("noise")?;
        Ok(())
    }
}

/// −CE + γ·(1/n) Σᵢ ‖zᵢ − xᵢ‖² of n images [n, height, width, channels] and where they are stored.
fn energy(cross_entropy: Tensor<1>, points: Tensor<4>, stored: Tensor<4>, gamma: f64) -> Tensor<1> {
    let [rows, ..] = points.dims();
    let distance = (points - stored).square().sum().div_scalar(rows as f64);
    distance.mul_scalar(gamma) - cross_entropy
}
