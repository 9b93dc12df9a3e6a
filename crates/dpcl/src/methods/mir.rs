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
//!
//! On short streams it can end far behind experience replay. Candidates of one class are hurt alike, so the highest scores
//! are mostly of one class, and of the stream's present classes hardly any is chosen: a batch is lopsided, the next one to
//! the other side. Measured over 360 steps on the built-in images, at tasks 2 and 3 (rows of the largest class among the
//! eight chosen, rows of the present task, ACC with seeds 5, 1, 2):
//!
//! | chosen | largest class | of the present task | ACC |
//! |---|---|---|---|
//! | by interference | 85 %, 77 % | 0.2, 0.2 of 8 | 38.7, 79.3, 57.7 |
//! | by interference with batch statistics | 78 %, 85 % | 0.0, 0.1 of 8 | 39.3, 82.3, 67.3 |
//! | by chance | 50 %, 40 % | 2.2, 1.4 of 8 | 63.3, 80.0, 78.0 |
//! | by the present loss | – | – | 64.0, 83.0, 80.7 |
//! | `er` | – | – | 58.7, 80.0, 78.3 |
//!
//! Chosen by chance the same batches do as well as `er`, so nothing but the score is behind it; neither are the running
//! statistics that scores are made with. With thousands of steps what was neglected is hurt in its turn and comes back:
//! at the small protocol (15,000 steps) the two end level. (`dpcl run --method er,mir --seeds 5 --first-tasks 3
//! --per-class 60`; on AVX-512.)

use super::{MethodInfo, REHEARSAL};
use crate::{
    batch::{Batch, Candidates, Recipe},
    config::{OwnKeys, keys},
    error::Result,
    model::{Model, cross_entropy, cross_entropy_rows, floats},
    rehearsal::{Rehearsal, Rehearse, Replay, Training, forward},
    state::Persist,
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "mir",
    about: "experience replay of the stored samples that the next step would hurt most",
    departures: &[
        "candidates are scored on clean images in evaluation mode",
        "none is left out for being of the current task",
    ],
    section: "mir",
    keys: OwnKeys::of::<MirKeys>(),
    build: |setup| Ok(Rehearsal::boxed(Replay::new(setup)?, Mir { keys: setup.own() })),
    ..REHEARSAL
};

keys! {
    /// Own keys of `mir`.
    #[derive(Copy)]
    pub struct MirKeys {
        /// Stored samples looked at in each step.
        candidates: usize = 50, at_least(1), capped(65_536, "no machine has the memory for more");
    }
}

/// Experience replay by interference.
pub struct Mir {
    keys: MirKeys,
}

impl Rehearse for Mir {
    fn recipe(&self, rows: usize) -> Recipe {
        Recipe { candidates: self.keys.candidates, ..Recipe::plain(rows) }
    }

    fn step(&mut self, training: &mut Training<'_>, batch: Batch) -> Result<f64> {
        let chosen = chosen(training.model, &batch, training.rate.rate());
        let batch = batch.joined(&chosen);

        let mut pass = training.model.pass();
        let logits = forward(&mut pass, &batch);
        let loss = training.loss(logits, &batch);

        training.step(pass, &loss, &batch)
    }
}

impl Persist for Mir {}

/// Which candidates join the stream rows, in the order they were drawn.
fn chosen(model: &Model, batch: &Batch, rate: f64) -> Vec<usize> {
    let Some(candidates) = &batch.candidates else { return Vec::new() };
    let count = candidates.slots.len();
    if count <= candidates.wanted {
        return (0..count).collect();
    }
    highest(&interference(model, batch, candidates, rate), candidates.wanted)
}

/// How much one plain step on the stream at `rate` would raise the loss of each candidate.
fn interference(model: &Model, batch: &Batch, candidates: &Candidates, rate: f64) -> Vec<f32> {
    let mut pass = model.pass();
    let logits = forward(&mut pass, batch);
    let loss = cross_entropy(logits, &batch.labels);
    let moved = model.moved(&pass.backward(&loss), rate);

    let losses = |model: &Model| {
        let logits = model.network().logits(model.images(candidates.clean.clone(), batch.size));
        floats(cross_entropy_rows(logits, &candidates.classes))
    };
    losses(&moved).into_iter().zip(losses(model)).map(|(after, before)| after - before).collect()
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
        batch::Batcher,
        data::{Image, Policy},
        memory::{Memory, Sample},
        model::{Architecture, Growth},
        random::Random,
    };

    #[test]
    fn the_highest_scores_win_and_the_first_of_equal_ones() {
        assert_eq!(highest(&[0.1, 0.5, -1.0, 0.5, 0.4], 3), [1, 3, 4]);
        assert_eq!(highest(&[0.0; 5], 2), [0, 1]);
    }

    /// Two classes; the stream shows class 0 as bright, one candidate shows the same brightness as class 1.
    fn network_and_batch() -> (Model, Batch) {
        network_and_batch_with(&[(200, 0), (200, 1), (10, 0)], 1)
    }

    /// The same with these candidates, of a brightness and a class each, of which some are wanted.
    fn network_and_batch_with(stored: &[(usize, usize)], wanted: usize) -> (Model, Batch) {
        let size = 8;
        let pipeline =
            Pipeline { padding: 0, flip: false, policy: Policy::None, mean: [0.5; 3], std: [0.25; 3] };
        let mut batcher = Batcher::new(pipeline, CutMix { probability: 0.0, alpha: 1.0 }, size, 1);
        let mut random = Random::named(3, "images");
        let mut sample = |level: usize, class: usize| {
            let pixels: Vec<u8> = (0..size * size * 3).map(|_| (level + random.below(40)) as u8).collect();
            Sample::new(Image { height: size, width: size, pixels: pixels.into() }, class)
        };
        let stream: Vec<Sample> = (0..4).map(|_| sample(200, 0)).collect();
        let mut memory = Memory::new("reservoir", stored.len(), 1).unwrap();
        for &(level, class) in stored {
            memory.offer(&sample(level, class), None);
        }
        let recipe = Recipe { candidates: stored.len(), ..Recipe::plain(wanted) };
        let batch = batcher.make(&stream, &recipe.draw(&mut memory));
        let architecture = Architecture::named("slim", Some(4), 1e-6, 0.1).unwrap();
        let mut model = Model::new(architecture, 1, 2, &burn::tensor::Device::flex());
        (0..2).for_each(|_| model.grow(Growth { keep_bias: true, keep_moments: true }));
        (model, batch)
    }

    /// Interference of the samples in slots 0, 1 and 2.
    fn by_slot(model: &Model, batch: &Batch, rate: f64) -> [f32; 3] {
        let candidates = batch.candidates.as_ref().unwrap();
        let scores = interference(model, batch, candidates, rate);
        [0, 1, 2].map(|slot| scores[candidates.slots.iter().position(|&other| other == slot).unwrap()])
    }

    #[test]
    fn a_step_of_length_nothing_interferes_with_nothing() {
        let (model, batch) = network_and_batch();
        assert_eq!(by_slot(&model, &batch, 0.0), [0.0; 3]);
    }

    #[test]
    fn candidates_of_one_class_are_hurt_alike_and_chosen_together() {
        let stored: Vec<(usize, usize)> = (0..12).map(|place| (200, place % 2)).collect();
        let (model, batch) = network_and_batch_with(&stored, 6);
        let chosen = chosen(&model, &batch, 0.01);
        let batch = batch.joined(&chosen);
        assert_eq!(batch.labels[batch.stream_rows()..], [1; 6]);
    }

    #[test]
    fn the_candidate_that_contradicts_the_stream_is_chosen() {
        let (model, batch) = network_and_batch();
        let scores = by_slot(&model, &batch, 0.01);
        assert!(scores[1] > 0.0 && scores[0] < 0.0, "{scores:?}");
        let chosen = chosen(&model, &batch, 0.01);
        let batch = batch.joined(&chosen);
        assert_eq!((batch.labels, batch.slots), (vec![0, 0, 0, 0, 1], vec![1]));
        assert_eq!(batch.images.len(), 5 * 8 * 8 * 3);
    }
}
