//! The controller: what a task makes of the features that all tasks share.
//!
//! (g, b) = W·e + c, e the task's embedding; g and b are each divided by their length, which counts as a constant.
//! Maps h become ReLU(g ⊙ h + b) + ReLU(h), whose means over height and width are the task's features.

use burn::tensor::{Device, Tensor, activation::relu};

use crate::{
    error::{Error, Result},
    model::{FileLayout, Gradients, Weights, floats, matrix, pooled},
    random::Random,
    state::{Persist, State},
};

/// Positions in the table.
const EMBEDDING: usize = 0;
const WEIGHT: usize = 1;
const BIAS: usize = 2;

/// How far a number of the controller is pulled at most, before the learning rate.
const FARTHEST: f64 = 1.0;

/// What gradients are divided by: the authors' sum is over two rounds.
const ROUNDS: f64 = 2.0;

/// No length is taken to be shorter.
const SHORTEST: f32 = 1e-12;

/// Embeddings of all tasks, and the layer that makes modulations of them.
pub struct Controller {
    weights: Weights,
    /// How many rows of embeddings stand for tasks: without any there is one of zeros, for tensors cannot be empty.
    tasks: usize,
    random: Random,
    device: Device,
}

impl Controller {
    /// A controller that knows no task, over maps of so many channels.
    pub fn fresh(embedding: usize, channels: usize, seed: u64, device: &Device) -> Self {
        let mut random = Random::named(seed, "ctn-controller");
        let bound = 1.0 / (embedding as f64).sqrt();
        let mut draw = |rows: usize| {
            let drawn = (0..rows * 2 * channels).map(|_| random.between(-bound, bound) as f32).collect();
            matrix(drawn, [rows, 2 * channels], device)
        };
        let (weight, bias) = (draw(embedding), draw(1));
        let mut weights = Weights::default();
        weights.push("embedding", FileLayout::Linear, matrix(vec![0.0; embedding], [1, embedding], device));
        weights.push("film.weight", FileLayout::Linear, weight);
        weights.push("film.bias", FileLayout::Vector, bias);
        Self { weights, tasks: 0, random, device: device.clone() }
    }

    /// How many tasks it knows.
    pub fn tasks(&self) -> usize {
        self.tasks
    }

    /// Its weights, to be tracked by a pass.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// How many numbers it learns.
    pub fn parameters(&self) -> u64 {
        self.weights.count() as u64
    }

    /// A task is met for the first time: its embedding is drawn from a standard normal distribution.
    pub fn new_task(&mut self) {
        let old = self.weights.value(EMBEDDING).clone();
        let [_, width] = old.dims();
        let mut numbers = if self.tasks > 0 { floats(old) } else { Vec::new() };
        numbers.extend((0..width).map(|_| self.random.normal() as f32));
        self.tasks += 1;
        self.weights.set(EMBEDDING, matrix(numbers, [self.tasks, width], &self.device));
    }

    /// Takes a plain step against half the gradients, no number of which counts for more than one.
    pub fn descend(&mut self, gradients: &Gradients, rate: f64) {
        for (weight, gradient) in self.weights.iter_mut().zip(gradients) {
            let Some(gradient) = gradient else { continue };
            let pull = gradient.clone().div_scalar(ROUNDS).clamp(-FARTHEST, FARTHEST);
            weight.value = weight.value.clone() - pull.mul_scalar(rate);
        }
    }

    /// Features of maps [rows, height, width, channels] under its present weights.
    pub fn features(&self, tasks: &[usize], maps: Tensor<4>) -> Tensor<2> {
        let weights: Vec<Tensor<2>> = self.weights.iter().map(|weight| weight.value.clone()).collect();
        features(&weights, tasks, maps)
    }
}

/// Features of maps [rows, height, width, channels] under given weights, in table order; a task for every row, or one
/// for all of them.
pub fn features(weights: &[Tensor<2>], tasks: &[usize], maps: Tensor<4>) -> Tensor<2> {
    let [factor, shift] = modulation(weights, tasks).map(|vector| {
        let [rows, channels] = vector.dims();
        vector.reshape([rows, 1, 1, channels])
    });
    pooled(relu(maps.clone() * factor + shift) + relu(maps))
}

/// g and b of every task asked for, [tasks, channels] each, of length one.
fn modulation(weights: &[Tensor<2>], tasks: &[usize]) -> [Tensor<2>; 2] {
    let [known, _] = weights[EMBEDDING].dims();
    let mut chosen = vec![0.0; tasks.len() * known];
    tasks.iter().enumerate().for_each(|(row, task)| chosen[row * known + task] = 1.0);
    let chosen = matrix(chosen, [tasks.len(), known], &weights[EMBEDDING].device().inner());
    let embedded = chosen.matmul(weights[EMBEDDING].clone());
    let film = embedded.matmul(weights[WEIGHT].clone()) + weights[BIAS].clone();
    let [_, width] = film.dims();
    [0, width / 2].map(|from| {
        let part = film.clone().narrow(1, from, width / 2);
        let length = part.clone().inner().square().sum_dim(1).sqrt().clamp_min(SHORTEST);
        part / length
    })
}

impl Persist for Controller {
    fn save(&self, state: &mut State) {
        self.weights.save(state);
        state.put("tasks", &self.tasks);
        state.put("random", &self.random);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.tasks = state.get("tasks")?;
        let [_, width] = self.weights.value(EMBEDDING).dims();
        let rows = self.tasks.max(1);
        // Room is made only for as many rows as are there.
        if state.array("embedding")?.shape != [width, rows] {
            let problem = format!("is {}, of which there are no embeddings", self.tasks);
            return Err(Error::BadState { key: "tasks".into(), problem });
        }
        self.weights.set(EMBEDDING, matrix(vec![0.0; rows * width], [rows, width], &self.device));
        self.weights.load(state)?;
        self.random = state.get("random")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor<const D: usize>(values: &[f32], shape: [usize; D]) -> Tensor<D> {
        matrix(values.to_vec(), [1, values.len()], &Device::flex()).reshape(shape)
    }

    fn controller(tasks: usize) -> Controller {
        let mut controller = Controller::fresh(3, 4, 1, &Device::flex());
        (0..tasks).for_each(|_| controller.new_task());
        controller
    }

    fn values(controller: &Controller) -> Vec<Tensor<2>> {
        controller.weights().iter().map(|weight| weight.value.clone()).collect()
    }

    #[test]
    fn modulations_have_length_one_and_are_the_tasks_own() {
        let controller = controller(3);
        let [g, b] = modulation(&values(&controller), &[2, 0, 2]).map(floats);
        for vector in g.chunks(4).chain(b.chunks(4)) {
            let length: f32 = vector.iter().map(|number| number * number).sum();
            assert!((length - 1.0).abs() < 1e-6, "{vector:?}");
        }
        assert_eq!((&g[..4], &b[..4]), (&g[8..], &b[8..]));
        assert_ne!(g[..4], g[4..8]);
        assert_ne!(g[..4], b[..4]);
    }

    #[test]
    fn features_by_hand() {
        // One channel and one number of embedding: g and b are the signs of 2·3 − 5 and −1·3 + 1.
        let weights = [tensor(&[3.0], [1, 1]), tensor(&[2.0, -1.0], [1, 2]), tensor(&[-5.0, 1.0], [1, 2])];
        let maps = tensor(&[4.0, -2.0, 0.5, 1.0], [1, 2, 2, 1]);
        // ReLU(h − 1) + ReLU(h): 7, 0, 0.5, 1.
        assert_eq!(floats(features(&weights, &[0], maps)), [8.5 / 4.0]);
    }

    #[test]
    fn a_length_is_a_constant_to_the_gradient() {
        // g = x / |x| with |x| fixed has the slope 1/|x| along itself, where the unit vector itself has none.
        let weights =
            [tensor(&[1.0], [1, 1]), tensor(&[0.0; 4], [1, 4]), tensor(&[3.0, 4.0, 0.0, 2.0], [1, 4])];
        let tracked: Vec<Tensor<2>> =
            weights.into_iter().map(|weight| weight.autodiff().require_grad()).collect();
        let [g, b] = modulation(&tracked, &[0]);
        let along = tensor(&[0.6, 0.8], [1, 2]);
        let gradients = ((g * along).sum() + b.sum()).backward();
        let found = floats(tracked[BIAS].grad(&gradients).unwrap());
        for (found, expected) in found.iter().zip([0.12, 0.16, 0.5, 0.5]) {
            assert!((found - expected).abs() < 1e-6, "{found} for {expected}");
        }
    }

    #[test]
    fn a_step_is_halved_and_no_longer_than_the_rate() {
        let mut controller = controller(1);
        let before = floats(controller.weights().value(BIAS).clone());
        let gradient = tensor(&[0.5, -1.0, 8.0, -80.0, 0.0, 2.0, 2.5, 0.0], [1, 8]);
        controller.descend(&vec![None, None, Some(gradient)], 0.1);
        let after = floats(controller.weights().value(BIAS).clone());
        let moved: Vec<f32> = before.iter().zip(after).map(|(before, after)| before - after).collect();
        for (found, expected) in moved.iter().zip([0.025, -0.05, 0.1, -0.1, 0.0, 0.1, 0.1, 0.0]) {
            assert!((found - expected).abs() < 1e-6, "{moved:?}");
        }
    }

    #[test]
    fn a_new_task_leaves_the_embeddings_of_others_and_saving_keeps_the_next_one() {
        let mut grown = controller(2);
        let before = floats(grown.weights().value(EMBEDDING).clone());
        let mut state = State::default();
        grown.save(&mut state);
        grown.new_task();
        assert_eq!(floats(grown.weights().value(EMBEDDING).clone())[..6], before);
        let mut loaded = controller(0);
        loaded.load(&state).unwrap();
        loaded.new_task();
        assert_eq!(loaded.tasks(), 3);
        for (one, other) in values(&loaded).into_iter().zip(values(&grown)) {
            assert_eq!(floats(one), floats(other));
        }
        state.put("tasks", &7);
        assert!(controller(0).load(&state).unwrap_err().to_string().contains("`tasks`"));
    }
}
