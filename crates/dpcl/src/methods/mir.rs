//! Maximally interfered retrieval: of some stored samples, rehearse those that the coming step would hurt most.
//!
//! Paper: Online Continual Learning with Maximally Interfered Retrieval (NeurIPS 2019, arXiv 1908.04742).
//!
//! Loss: as experience replay, on the stream and the candidates of highest CE(θ − η·g; x) − CE(θ; x), g the gradient of
//! the stream's mean cross-entropy. Memory and rate: as experience replay.
//!
//! Departures from the paper: candidates are scored on clean images in evaluation mode, so that scoring leaves no trace
//! in the running statistics; none is left out for being of the current task, which nobody tells. Chosen candidates
//! stay in the order they were drawn, so that with no more candidates than memory rows this is experience replay, and
//! the trial step is spared.

use super::{
    Answers, Core, Knowledge, Method, MethodInfo, Step, batch_loss, forward,
    replay::{Replay, finite},
};
use crate::{
    augment::Mix,
    batch::{Batch, Batcher},
    config::{OwnKeys, Setup, keys},
    data::Image,
    error::Result,
    memory::{Drawn, Memory, Sample},
    model::{Model, cross_entropy, cross_entropy_rows, floats},
    state::{Persist, State},
    stream::Full,
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "mir",
    about: "experience replay of the stored samples that the next step would hurt most",
    departures: &[
        "candidates are scored on clean images in evaluation mode",
        "none is left out for being of the current task",
    ],
    knowledge: Knowledge::None,
    answers: Answers::AnyTime,
    section: "mir",
    memory_scheme: "reservoir",
    rate: "exp-reset",
    keep_adam: false,
    cutmix: 0.5,
    keys: OwnKeys::of::<MirKeys>(),
    build: |setup| Ok(Box::new(Mir::new(setup)?)),
};

keys! {
    /// Own keys of `mir`.
    #[derive(Copy)]
    pub struct MirKeys {
        /// Stored samples looked at in each step.
        candidates: usize = 50, at_least(1);
    }
}

/// Experience replay by interference.
pub struct Mir {
    config: MirKeys,
    replay: Replay,
}

/// What one step needs, made ahead: which candidates it uses is known only when it is taken.
struct Choice {
    /// Augmented stream rows.
    stream: Batch,
    /// Augmented candidates, one after the other.
    augmented: Vec<f32>,
    /// The same candidates as they were stored.
    clean: Vec<f32>,
    classes: Vec<usize>,
    slots: Vec<usize>,
    /// Candidates that join the batch.
    wanted: usize,
    /// How that batch will be cut and mixed.
    mix: Option<Mix>,
}

impl Mir {
    fn new(setup: &Setup) -> Result<Self> {
        Ok(Self { config: setup.own(), replay: Replay::new(setup)? })
    }

    fn learn(&mut self, core: &mut Core, full: &Full<Sample>) -> Result<Vec<Step>> {
        let (size, candidates) = (core.batcher.size(), self.config.candidates);
        let draw = |memory: &mut Memory, rows: usize| (memory.draw(candidates), rows);
        let make = |batcher: &mut Batcher, stream: &[Sample], (drawn, rows): (Vec<Drawn>, usize)| {
            Choice::new(batcher, stream, &drawn, rows)
        };
        let steps = self.replay.iterate_made(core, full, draw, make, |model, choice, memory, rate| {
            let chosen = if choice.slots.len() > choice.wanted {
                highest(&choice.interference(model, size, rate.rate()), choice.wanted)
            } else {
                (0..choice.slots.len()).collect()
            };
            let batch = choice.batch(&chosen, size);

            let mut pass = model.pass();
            let logits = forward(model, &mut pass, &batch, size);
            let loss = batch_loss(logits, &batch);

            let outcome = pass.backward(&loss);
            let loss = outcome.loss;
            model.update(outcome, rate.rate());
            memory.trained(&batch.slots);
            finite(loss, rate.rate(), batch.labels)
        })?;
        self.replay.remember(full);
        Ok(steps)
    }
}

impl Choice {
    fn new(batcher: &mut Batcher, stream: &[Sample], drawn: &[Drawn], rows: usize) -> Self {
        let samples = || drawn.iter().map(|drawn| &drawn.sample);
        let images = batcher.augmented(stream.iter());
        let augmented = batcher.augmented(samples());
        let stored: Vec<Image> = samples().map(|sample| sample.image.clone()).collect();
        let wanted = rows.min(drawn.len());
        let labels = stream.iter().map(|sample| sample.class).collect();
        Self {
            clean: batcher.clean(&stored),
            classes: samples().map(|sample| sample.class).collect(),
            slots: drawn.iter().map(|drawn| drawn.slot).collect(),
            mix: batcher.mixing(stream.len() + wanted),
            stream: Batch { images, labels, slots: Vec::new(), mix: None },
            augmented,
            wanted,
        }
    }

    /// How much one plain step on the stream at `rate` would raise the loss of each candidate.
    fn interference(&self, model: &Model, size: usize, rate: f64) -> Vec<f32> {
        let mut pass = model.pass();
        let logits = forward(model, &mut pass, &self.stream, size);
        let loss = cross_entropy(logits, &self.stream.labels);
        let moved = model.moved(&pass.backward(&loss), rate);

        let losses = |model: &Model| {
            let logits = model.logits(model.images(self.clean.clone(), size));
            floats(cross_entropy_rows(logits, &self.classes))
        };
        losses(&moved).into_iter().zip(losses(model)).map(|(after, before)| after - before).collect()
    }

    /// The stream rows and the chosen candidates, cut and mixed if they are to be.
    fn batch(self, chosen: &[usize], size: usize) -> Batch {
        let length = size * size * 3;
        let Batch { mut images, mut labels, .. } = self.stream;
        for &candidate in chosen {
            images.extend_from_slice(&self.augmented[candidate * length..][..length]);
            labels.push(self.classes[candidate]);
        }
        if let Some(mix) = &self.mix {
            mix.apply(&mut images, size, size);
        }
        let slots = chosen.iter().map(|&candidate| self.slots[candidate]).collect();
        Batch { images, labels, slots, mix: self.mix }
    }
}

impl Method for Mir {
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
}

impl Persist for Mir {
    fn save(&self, state: &mut State) {
        self.replay.save(state);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.replay.load(state)
    }
}

/// Positions of the `count` highest scores, ascending; of equal scores the first ones.
fn highest(scores: &[f32], count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    order.sort_by(|&one, &other| scores[other].total_cmp(&scores[one]));
    order.truncate(count);
    order.sort_unstable();
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        augment::{CutMix, Pipeline},
        data::Policy,
        model::{Architecture, Growth},
        random::Random,
    };

    #[test]
    fn the_highest_scores_win_and_the_first_of_equal_ones() {
        assert_eq!(highest(&[0.1, 0.5, -1.0, 0.5, 0.4], 3), [1, 3, 4]);
        assert_eq!(highest(&[0.0; 5], 2), [0, 1]);
    }

    /// Two classes; the stream shows class 0 as bright, one candidate shows the same brightness as class 1.
    fn choice() -> (Model, Choice) {
        let size = 8;
        let pipeline =
            Pipeline { padding: 0, flip: false, policy: Policy::None, mean: [0.5; 3], std: [0.25; 3] };
        let mut batcher = Batcher::new(pipeline, CutMix { probability: 0.0, alpha: 1.0 }, size, 1);
        let mut random = Random::named(3, "images");
        let mut sample = |level: usize, class: usize| {
            let pixels: Vec<u8> = (0..size * size * 3).map(|_| (level + random.below(40)) as u8).collect();
            Sample { image: Image { height: size, width: size, pixels: pixels.into() }, class }
        };
        let stream: Vec<Sample> = (0..4).map(|_| sample(200, 0)).collect();
        let candidates = [sample(200, 0), sample(200, 1), sample(10, 0)];
        let drawn: Vec<Drawn> =
            candidates.into_iter().enumerate().map(|(slot, sample)| Drawn { slot, sample }).collect();
        let architecture = Architecture::named("slim", Some(4), 1e-6, 0.1).unwrap();
        let mut model = Model::new(architecture, 1, 2, &burn::tensor::Device::flex());
        (0..2).for_each(|_| model.grow(Growth { keep_bias: true, keep_moments: true }));
        (model, Choice::new(&mut batcher, &stream, &drawn, 1))
    }

    #[test]
    fn a_step_of_length_nothing_interferes_with_nothing() {
        let (model, choice) = choice();
        assert_eq!(choice.interference(&model, 8, 0.0), [0.0; 3]);
    }

    #[test]
    fn the_candidate_that_contradicts_the_stream_is_chosen() {
        let (model, choice) = choice();
        let scores = choice.interference(&model, 8, 0.01);
        assert!(scores[1] > 0.0 && scores[0] < 0.0, "{scores:?}");
        assert_eq!(highest(&scores, choice.wanted), [1]);
        let batch = choice.batch(&[1], 8);
        assert_eq!((batch.labels, batch.slots), (vec![0, 0, 0, 0, 1], vec![1]));
        assert_eq!(batch.images.len(), 5 * 8 * 8 * 3);
    }
}
