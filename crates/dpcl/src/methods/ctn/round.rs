//! Learning in rounds: some steps of the base, then one of the controller.

use burn::tensor::Tensor;

use super::{
    Ctn,
    controller::features,
    losses::{masked, stored_divergence},
    rings::Part,
};
use crate::{
    batch::{Batch, Ingredients, ahead},
    error::Result,
    memory::{Drawn, Sample},
    method::{Core, Step},
    model::{Model, Outcome, Pass, cross_entropy},
    rehearsal::{group_loss, replay::finite},
    stream::Due,
};

/// A stored sample, and the position of its task.
type Stored = (Drawn, usize);

/// The stored samples of one round.
struct Draws {
    /// Steps of the base.
    steps: usize,
    /// For each of them what is rehearsed; nothing as long as there is one task.
    replay: Vec<Vec<Stored>>,
    /// For the controller's step.
    semantic: Vec<Stored>,
}

/// What a round learns from.
struct Round {
    draws: Draws,
    /// The task's rows, cut and mixed when chance says so, then those of the replay of every step.
    batch: Batch,
    /// Clean images of the semantic samples.
    semantic: Vec<f32>,
}

impl Ctn {
    /// Takes the training steps that samples of the present task have earned. They are stored first, and all draws
    /// are made then: the memory does not change while they are learned.
    pub(super) fn learn_in_rounds(
        &mut self,
        core: &mut Core,
        due: &Due<Sample>,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        self.settled = false;
        let rows = self.store(&due.items);
        let (inner, rounds) = (self.keys.inner, due.updates.div_ceil(self.keys.inner));
        let draws = (0..rounds).map(|round| self.draw(inner.min(due.updates - round * inner)));
        let mut draws = draws.collect::<Vec<Draws>>().into_iter();
        let Core { model, batcher, .. } = core;
        let make = || {
            let draws = draws.next()?;
            let replay = draws.replay.iter().flatten().map(|(drawn, _)| drawn.clone()).collect();
            let batch = batcher.make(&rows, &Ingredients::beside(replay));
            let semantic = batcher.stored(draws.semantic.iter().map(|(drawn, _)| &drawn.sample));
            Some(Round { draws, batch, semantic })
        };
        ahead(rounds, make, |round| match round {
            Some(round) => self.take(model, &round, steps),
            None => Ok(()),
        })
    }

    /// Writes samples of the present task into its rings, the first into the semantic one. Gives back those to learn
    /// from: the others and the one that the first has displaced, or the first alone where there is none of either.
    pub(super) fn store(&mut self, samples: &[Sample]) -> Vec<Sample> {
        let Some((first, others)) = samples.split_first() else { return Vec::new() };
        let mut rows = others.to_vec();
        if self.rings.limit(Part::Semantic) == 0 {
            rows.insert(0, first.clone());
        } else {
            let displaced = self.rings.oldest(self.present, Part::Semantic);
            rows.extend(displaced.map(|slot| self.memory.slots()[slot].clone()));
            self.put(Part::Semantic, first);
        }
        for sample in &rows {
            self.put(Part::Episodic, sample);
        }
        if rows.is_empty() {
            rows.push(first.clone());
        }
        rows
    }

    fn put(&mut self, part: Part, sample: &Sample) {
        let place = self.rings.place(self.present, part, self.memory.slots().len());
        self.memory.put(place, sample, None);
        self.targets.place(place, Vec::new());
    }

    fn draw(&mut self, steps: usize) -> Draws {
        // A lone task has nothing to be kept from forgetting.
        let rehearsed = if self.tasks.len() > 1 { steps } else { 0 };
        let replay = (0..rehearsed).map(|_| self.draw_of(Part::Episodic, self.keys.replay)).collect();
        Draws { steps, replay, semantic: self.draw_of(Part::Semantic, self.keys.controller_rows) }
    }

    fn draw_of(&mut self, part: Part, count: usize) -> Vec<Stored> {
        let all = self.rings.all(part);
        let chosen = self.draws.distinct(all.len(), count).into_iter().map(|position| all[position]);
        let sample = |slot: usize| self.memory.slots()[slot].clone();
        chosen.map(|(slot, task)| (Drawn { slot, sample: sample(slot) }, task)).collect()
    }

    /// Takes a round's steps. The gradient of the task's rows is worked out once, that of the replay at every step.
    fn take(&mut self, model: &mut Model, round: &Round, steps: &mut Vec<Step>) -> Result<()> {
        let Round { draws, batch, semantic } = round;
        let mut from = batch.stream_rows();
        let mut of_rows = self.rows_outcome(model, batch, from);
        for step in 0..draws.steps {
            let mut outcome = of_rows.clone();
            of_rows.forget_statistics();
            if let Some(replay) = draws.replay.get(step).filter(|replay| !replay.is_empty()) {
                outcome.join(self.replay_outcome(model, batch, from, replay));
                from += replay.len();
            }
            let rate = self.rate.rate();
            let loss = finite(outcome.loss, rate, &batch.labels);
            let loss = loss.map_err(|error| error.at_step(steps.len()))?;
            model.descend(&outcome, rate);
            self.rate.stepped();
            steps.push(Step { loss, rate });
        }
        let controlled = self.control(model, &draws.semantic, semantic.clone(), batch.size);
        controlled.map_err(|error| error.at_step(steps.len()))
    }

    /// Cross-entropy of the task's rows over its columns.
    pub(super) fn rows_outcome(&self, model: &Model, batch: &Batch, rows: usize) -> Outcome {
        let mut pass = model.pass();
        let logits = self.forward(&mut pass, batch, 0, &vec![self.present; rows]);
        let loss = group_loss(masked(logits, &vec![self.columns(self.present); rows]), batch, 0..rows);
        pass.backward(&loss)
    }

    /// Cross-entropy of rehearsed rows over the columns of each one's task, and their distance from what they
    /// answered when it ended.
    pub(super) fn replay_outcome(
        &self,
        model: &Model,
        batch: &Batch,
        from: usize,
        replay: &[Stored],
    ) -> Outcome {
        let mut pass = model.pass();
        let tasks: Vec<usize> = replay.iter().map(|(_, task)| *task).collect();
        let logits = self.forward(&mut pass, batch, from, &tasks);
        let columns: Vec<&[usize]> = tasks.iter().map(|&task| self.columns(task)).collect();
        let targets: Vec<&[f32]> = replay.iter().map(|(drawn, _)| self.targets.get(drawn.slot)).collect();
        let labels = &batch.labels[from..from + replay.len()];
        let mut loss = cross_entropy(masked(logits.clone(), &columns), labels);
        if let Some(distance) = stored_divergence(logits, &targets, &columns, self.keys.temperature) {
            loss = loss + distance.mul_scalar(self.keys.weight);
        }
        pass.backward(&loss)
    }

    /// Training logits of the rows of a batch that begin at `from`, a task for each; the controller is a constant.
    fn forward(&self, pass: &mut Pass, batch: &Batch, from: usize, tasks: &[usize]) -> Tensor<3> {
        let length = batch.size * batch.size * 3;
        let images = batch.images[from * length..][..tasks.len() * length].to_vec();
        let maps = pass.maps(pass.images(images, batch.size));
        pass.logits(self.controller.features(tasks, maps))
    }

    /// A step of the controller alone, on clean images of semantic samples.
    pub(super) fn control(
        &mut self,
        model: &Model,
        samples: &[Stored],
        images: Vec<f32>,
        size: usize,
    ) -> Result<()> {
        if samples.is_empty() {
            return Ok(());
        }
        let tasks: Vec<usize> = samples.iter().map(|(_, task)| *task).collect();
        let labels: Vec<usize> = samples.iter().map(|(drawn, _)| drawn.sample.class).collect();
        let columns: Vec<&[usize]> = tasks.iter().map(|&task| self.columns(task)).collect();
        let mut pass = model.pass_learning(|_| false);
        let weights = pass.track(self.controller.weights());
        let maps = pass.maps(pass.images(images, size));
        let logits = pass.logits(features(&weights, &tasks, maps));
        let loss = cross_entropy(masked(logits, &columns), &labels);

        let outcome = pass.backward(&loss);
        finite(outcome.loss, self.keys.controller_lr, &labels)?;
        self.controller.descend(&outcome.further[0], self.keys.controller_lr);
        Ok(())
    }
}
