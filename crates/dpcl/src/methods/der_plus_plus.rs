//! Dark experience replay++: rehearsed samples are held to the logits they once had, and to their labels.
//!
//! Paper: Dark Experience for General Continual Learning: a Strong, Simple Baseline (NeurIPS 2020, arXiv 2004.07211).
//!
//! Loss: CE(stream) + a·MSE(z(x₁), z stored with x₁) + b·CE(z(x₂), y₂), x₁ and x₂ two independent draws from the memory;
//! each term is a mean of its own. A head that has grown is compared over the stored width.
//! Memory and rate: as experience replay.
//!
//! Departures from the paper: the three groups go through the network as one batch, as everywhere here, and the two
//! cross-entropies are in CutMix form where chance says so; x₁ is never mixed. What is stored is the output on the
//! augmented stream image in the last step on it. If that batch was mixed, one more pass over the same rows
//! unmixed gives it. Arrivals that earn no step leave samples without logits, which count by their label alone.

use std::ops::Range;

use super::{MethodInfo, REHEARSAL};
use crate::{
    batch::{Batch, Recipe},
    config::{OwnKeys, Setup, keys},
    error::Result,
    memory::{Memory, Place, SlotVectors},
    method::Core,
    model::{Model, floats, stored_distance},
    rehearsal::{Objective, Rehearsal, Rehearse, Replay, Training, forward, group_loss},
    state::{Persist, State},
};
use burn::tensor::Tensor;
use dpcl_report::record::Parameters;

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "der++",
    about: "experience replay that also holds samples to the logits they were stored with",
    departures: &[
        "the three groups are one batch, two of them in CutMix form",
        "what is stored is the output on the augmented image in the last step on it",
    ],
    section: "der",
    keys: OwnKeys::of::<DerPlusPlusKeys>(),
    build: |setup| {
        Objective::refuse_asymmetric(setup)?;
        Ok(Rehearsal::boxed(Replay::new(setup)?, DerPlusPlus::new(setup)))
    },
    ..REHEARSAL
};

keys! {
    /// Own keys of `der++`; the defaults are the authors' for CIFAR-100 at 500 slots.
    #[derive(Copy)]
    pub struct DerPlusPlusKeys {
        /// Weight of the stored logits; at 0 none are drawn.
        a: f64 = 0.3, at_least(0);
        /// Weight of the rehearsed labels; at 0 none are drawn.
        b: f64 = 0.5, at_least(0);
    }
}

/// Experience replay with stored logits.
pub struct DerPlusPlus {
    keys: DerPlusPlusKeys,
    /// Logits of each stored sample, as wide as the head was when it was stored.
    stored: SlotVectors,
    /// Logits of the stream rows in the last step on them.
    answers: Vec<Vec<f32>>,
}

impl DerPlusPlus {
    fn new(setup: &Setup) -> Self {
        let stored = SlotVectors::saved_as("logits", "logit_widths");
        Self { keys: setup.own(), stored, answers: Vec::new() }
    }
}

impl Rehearse for DerPlusPlus {
    fn recipe(&self, rows: usize) -> Recipe {
        let DerPlusPlusKeys { a, b } = self.keys;
        let rows_of = |weight: f64| if weight > 0.0 { rows } else { 0 };
        Recipe { beside: rows_of(a), ..Recipe::plain(rows_of(b)) }
    }

    fn step(&mut self, training: &mut Training<'_>, batch: Batch) -> Result<f64> {
        let DerPlusPlusKeys { a, b } = self.keys;
        let (stream, labelled) = (batch.stream_rows(), batch.labels.len() - batch.beside);
        let mut pass = training.model.pass();
        let logits = forward(&mut pass, &batch);

        let mut loss = group_loss(logits.clone(), &batch, 0..stream);
        if labelled > stream {
            loss = loss + group_loss(logits.clone(), &batch, stream..labelled).mul_scalar(b);
        }
        let slots = &batch.slots[labelled - stream..];
        let targets: Vec<&[f32]> = slots.iter().map(|&slot| self.stored.get(slot)).collect();
        let again = rows(logits.clone(), labelled..batch.labels.len());
        if let Some(distance) = again.and_then(|again| stored_distance(again, &targets)) {
            loss = loss + distance.mul_scalar(a);
        }

        let loss = training.taught(loss, logits.clone(), &batch);

        if training.left == 0 {
            self.answers = stream_answers(training.model, logits.inner(), &batch);
        }
        training.step(pass, &loss, &batch)
    }

    fn offered(&mut self, row: usize, place: Place) {
        let logits = self.answers.get_mut(row).map(std::mem::take).unwrap_or_default();
        self.stored.place(place, logits);
    }

    fn check_loaded(&self, _core: &Core, memory: &Memory) -> Result<()> {
        self.stored.check_loaded(memory.slots().len())
    }

    fn extra_parameters(&self) -> Parameters {
        Parameters { history: self.stored.count() as u64, ..Parameters::default() }
    }
}

impl Persist for DerPlusPlus {
    fn save(&self, state: &mut State) {
        self.stored.save(state);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.stored.load(state)
    }
}

/// Some rows of logits [heads, rows, classes]; `None` for no rows, since tensors cannot be empty.
fn rows(logits: Tensor<3>, range: Range<usize>) -> Option<Tensor<3>> {
    let [heads, _, classes] = logits.dims();
    (!range.is_empty()).then(|| logits.slice([0..heads, range, 0..classes]))
}

/// Training-mode logits of the unmixed stream rows; `logits` are those of the batch as it was trained on.
fn stream_answers(model: &Model, logits: Tensor<3>, batch: &Batch) -> Vec<Vec<f32>> {
    let logits =
        if batch.mixes.is_empty() { logits } else { forward(&mut model.pass(), &batch.unmixed()).inner() };
    let [_, _, classes] = logits.dims();
    floats(logits).chunks(classes).take(batch.stream_rows()).map(<[f32]>::to_vec).collect()
}
