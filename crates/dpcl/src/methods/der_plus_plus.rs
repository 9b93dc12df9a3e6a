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
//! augmented stream image in the last step of its buffer. If that batch was mixed, one more pass over the same rows
//! unmixed gives it. A buffer that earns no step leaves samples without logits, which count by their label alone.

use std::ops::Range;

use burn::tensor::Tensor;
use dpcl_report::record::Parameters;

use super::{
    Answers, Core, Knowledge, Method, MethodInfo, Step, forward,
    replay::{Replay, finite},
};
use crate::{
    batch::{Batch, Batcher},
    config::{OwnKeys, Setup, keys},
    error::{Error, Result},
    memory::{Memory, Place, Sample},
    model::{Model, cross_entropy, floats, mixed_cross_entropy, stored_distance},
    state::{Array, Elements, Persist, State},
    stream::Full,
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "der++",
    about: "experience replay that also holds samples to the logits they were stored with",
    departures: &[
        "the three groups are one batch, two of them in CutMix form",
        "what is stored is the output on the augmented image in the last step of its buffer",
    ],
    knowledge: Knowledge::None,
    answers: Answers::AnyTime,
    section: "der",
    memory_scheme: "reservoir",
    rate: "exp-reset",
    keep_adam: false,
    cutmix: 0.5,
    keys: OwnKeys::of::<DerPlusPlusKeys>(),
    build: |setup| Ok(Box::new(DerPlusPlus::new(setup)?)),
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
    config: DerPlusPlusKeys,
    replay: Replay,
    logits: StoredLogits,
}

/// Logits of each filled memory slot, as wide as the head was when they were stored.
#[derive(Default)]
struct StoredLogits(Vec<Vec<f32>>);

impl DerPlusPlus {
    fn new(setup: &Setup) -> Result<Self> {
        Ok(Self { config: setup.own(), replay: Replay::new(setup)?, logits: StoredLogits::default() })
    }

    fn learn(&mut self, core: &mut Core, full: &Full<Sample>) -> Result<Vec<Step>> {
        let Self { config: DerPlusPlusKeys { a, b }, replay, logits: stored } = self;
        let (size, stream) = (core.batcher.size(), full.items.len());
        let mut left = full.updates;
        let mut answers = vec![Vec::new(); stream];

        let draw = |memory: &mut Memory, rows: usize| {
            let mut draw = |weight: f64| if weight > 0.0 { memory.draw(rows) } else { Vec::new() };
            (draw(*b), draw(*a))
        };
        let make = |batcher: &mut Batcher, stream: &[Sample], (labelled, matched): (Vec<_>, Vec<_>)| {
            (batcher.replay_beside(stream, &labelled, &matched), matched.len())
        };
        let steps =
            replay.iterate_made(core, full, draw, make, |model, (batch, matched), memory, rate| {
                let mut pass = model.pass();
                let logits = forward(model, &mut pass, &batch, size);

                let labelled = batch.labels.len() - matched;
                let mut loss = group_loss(logits.clone(), &batch, 0..stream);
                if labelled > stream {
                    loss = loss + group_loss(logits.clone(), &batch, stream..labelled).mul_scalar(*b);
                }
                let slots = &batch.slots[batch.slots.len() - matched..];
                let targets: Vec<&[f32]> = slots.iter().map(|&slot| &stored.0[slot][..]).collect();
                let again = rows(logits.clone(), labelled..batch.labels.len());
                if let Some(distance) = again.and_then(|again| stored_distance(again, &targets)) {
                    loss = loss + distance.mul_scalar(*a);
                }

                left -= 1;
                if left == 0 {
                    answers = stream_answers(model, logits.inner(), &batch, stream, size);
                }
                let outcome = pass.backward(&loss);
                let loss = outcome.loss;
                model.update(outcome, rate.rate());
                memory.trained(&batch.slots);
                finite(loss, rate.rate(), batch.labels)
            })?;

        for (sample, logits) in full.items.iter().zip(answers) {
            stored.place(replay.memory.offer(sample, None), logits);
        }
        Ok(steps)
    }
}

impl Method for DerPlusPlus {
    fn observe(&mut self, core: &mut Core, sample: Sample) -> Result<Vec<Step>> {
        match self.replay.arrive(core, sample) {
            Some(full) => self.learn(core, &full),
            None => Ok(Vec::new()),
        }
    }

    fn flush(&mut self, core: &mut Core) -> Result<Vec<Step>> {
        match self.replay.flush() {
            Some(full) => self.learn(core, &full),
            None => Ok(Vec::new()),
        }
    }

    fn memory(&self) -> Option<&Memory> {
        Some(&self.replay.memory)
    }

    fn extra_parameters(&self) -> Parameters {
        let stored = self.logits.0.iter().map(Vec::len).sum::<usize>() as u64;
        Parameters { history: stored, ..Parameters::default() }
    }
}

impl Persist for DerPlusPlus {
    fn save(&self, state: &mut State) {
        self.replay.save(state);
        self.logits.save(state);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.replay.load(state)?;
        self.logits.load(state)?;
        let (found, slots) = (self.logits.0.len(), self.replay.memory.slots().len());
        if found != slots {
            let problem = format!("holds logits of {found} samples for {slots} filled slots");
            return Err(Error::BadState { key: "logit_widths".into(), problem });
        }
        Ok(())
    }
}

impl StoredLogits {
    /// Follows where the memory put a sample.
    fn place(&mut self, place: Place, logits: Vec<f32>) {
        match place {
            Place::Append => self.0.push(logits),
            Place::Replace(slot) => self.0[slot] = logits,
            Place::Refuse => {}
        }
    }
}

impl Persist for StoredLogits {
    fn save(&self, state: &mut State) {
        let widths: Vec<usize> = self.0.iter().map(Vec::len).collect();
        state.put("logit_widths", &widths);
        let flat = self.0.concat();
        state.put_array("logits", Array::floats([flat.len()], flat));
    }

    fn load(&mut self, state: &State) -> Result<()> {
        let widths: Vec<usize> = state.get("logit_widths")?;
        let total: usize = widths.iter().sum();
        let Elements::F32(flat) = &state.array("logits")?.elements else {
            return Err(Error::BadState { key: "logits".into(), problem: "are not floats".into() });
        };
        if flat.len() != total {
            let problem = format!("are {} numbers, expected {total}", flat.len());
            return Err(Error::BadState { key: "logits".into(), problem });
        }
        let mut rest = &flat[..];
        self.0.clear();
        for width in widths {
            let (row, after) = rest.split_at(width);
            self.0.push(row.to_vec());
            rest = after;
        }
        Ok(())
    }
}

/// Some rows of logits [heads, rows, classes]; `None` for no rows, since tensors cannot be empty.
fn rows(logits: Tensor<3>, range: Range<usize>) -> Option<Tensor<3>> {
    let [heads, _, classes] = logits.dims();
    (!range.is_empty()).then(|| logits.slice([0..heads, range, 0..classes]))
}

/// Mean cross-entropy of some rows of a batch, in CutMix form where it was cut and mixed.
fn group_loss(logits: Tensor<3>, batch: &Batch, group: Range<usize>) -> Tensor<1> {
    let [heads, _, classes] = logits.dims();
    let logits = logits.slice([0..heads, group.clone(), 0..classes]);
    let labels = &batch.labels[group.clone()];
    match &batch.mix {
        Some(mix) => mixed_cross_entropy(logits, labels, &batch.partners(mix)[group], mix.coefficient),
        None => cross_entropy(logits, labels),
    }
}

/// Training-mode logits of the unmixed `stream` rows; `logits` are those of the batch as it was trained on.
fn stream_answers(
    model: &Model,
    logits: Tensor<3>,
    batch: &Batch,
    stream: usize,
    size: usize,
) -> Vec<Vec<f32>> {
    let logits = match &batch.mix {
        Some(mix) => {
            let mut unmixed = batch.clone();
            let mixed = mix.permutation.len() * size * size * 3;
            mix.inverse().apply(&mut unmixed.images[..mixed], size, size);
            forward(model, &mut model.pass(), &unmixed, size).inner()
        }
        None => logits,
    };
    let [_, _, classes] = logits.dims();
    floats(logits).chunks(classes).take(stream).map(<[f32]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logits_follow_their_samples_and_survive_saving() {
        let mut stored = StoredLogits::default();
        stored.place(Place::Append, vec![1.0]);
        stored.place(Place::Append, vec![2.0, 3.0]);
        stored.place(Place::Refuse, vec![9.0]);
        stored.place(Place::Replace(0), vec![4.0, 5.0, 6.0]);
        stored.place(Place::Append, Vec::new());
        assert_eq!(stored.0, [vec![4.0, 5.0, 6.0], vec![2.0, 3.0], vec![]]);

        let mut state = State::default();
        stored.save(&mut state);
        let mut restored = StoredLogits::default();
        restored.load(&state).unwrap();
        assert_eq!(restored.0, stored.0);
    }
}
