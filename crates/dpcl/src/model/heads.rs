//! Linear heads that grow by one class at a time. Several heads share one matrix, head after head.

use burn::tensor::{Device, Tensor};

use dpcl_kernels::linear;

use super::weights::{FileLayout, Weights, floats, matrix};
use crate::{
    error::{Error, Result},
    random::Random,
    state::{Persist, State},
};

/// What survives when a head grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Keep the biases of known classes (otherwise they are drawn again).
    pub keep_bias: bool,
    /// Keep the optimiser's moments of known classes (otherwise the heads' moments start over).
    pub keep_moments: bool,
}

/// One or more linear classifiers over the same features and classes.
#[derive(Clone)]
pub struct Heads {
    count: usize,
    features: usize,
    classes: usize,
    weights: Weights,
}

/// How many heads there are, over how many classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadShape {
    count: usize,
    classes: usize,
}

impl HeadShape {
    /// Logits under given weights (in table order), [rows, features] → [heads, rows, classes].
    pub fn logits(self, weights: &[Tensor<2>], features: Tensor<2>) -> Tensor<3> {
        let [rows, _] = features.dims();
        let flat = linear(features, weights[WEIGHT].clone(), weights[BIAS].clone());
        flat.reshape([rows, self.count, self.classes.max(1)]).permute([1, 0, 2])
    }
}

const WEIGHT: usize = 0;
const BIAS: usize = 1;

impl Heads {
    /// `count` heads that know no class yet.
    pub fn new(count: usize, features: usize, device: &Device) -> Self {
        let mut weights = Weights::default();
        // One dummy output a head, replaced at the first class: tensors cannot be empty.
        weights.push(
            "weight",
            FileLayout::Linear,
            matrix(vec![0.0; features * count], [features, count], device),
        );
        weights.push("bias", FileLayout::Vector, matrix(vec![0.0; count], [1, count], device));
        Self { count, features, classes: 0, weights }
    }

    /// How many heads there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many classes are known.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// Weight [features, heads·classes] and bias [1, heads·classes].
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Weight and bias, to change.
    pub fn weights_mut(&mut self) -> &mut Weights {
        &mut self.weights
    }

    /// Names of the weights.
    pub fn names(&self) -> [&'static str; 2] {
        ["weight", "bias"]
    }

    /// Where the tensors live.
    pub fn device(&self) -> Device {
        self.weights.value(WEIGHT).device()
    }

    /// Adds one class to every head, its weights and bias drawn from U(−1/√features, 1/√features).
    pub fn grow(&mut self, growth: Growth, random: &mut Random) {
        let bound = 1.0 / (self.features as f64).sqrt();
        let mut draw = |length: usize| -> Vec<f32> {
            (0..length).map(|_| random.between(-bound, bound) as f32).collect()
        };
        let weights: Vec<Vec<f32>> = (0..self.count).map(|_| draw(self.features)).collect();
        let redrawn = if growth.keep_bias { 1 } else { self.classes + 1 };
        let biases: Vec<Vec<f32>> = (0..self.count).map(|_| draw(redrawn)).collect();
        self.grow_with(&weights, &biases);
    }

    /// Adds one class to every head with given numbers: for each head its new weights, and either the new bias alone
    /// or new biases for every class.
    pub fn grow_with(&mut self, weights: &[Vec<f32>], biases: &[Vec<f32>]) {
        let (count, classes) = (self.count, self.classes);
        let old = [WEIGHT, BIAS].map(|position| floats(self.weights.value(position).clone()));
        let weight = widen(&old[WEIGHT], count, classes, |head, feature| weights[head][feature]);
        let redrawn = biases.iter().all(|biases| biases.len() == classes + 1);
        let bias = if redrawn {
            biases.concat()
        } else {
            widen(&old[BIAS], count, classes, |head, _| biases[head][0])
        };
        self.classes += 1;
        let (device, outputs) = (self.device(), count * self.classes);
        self.weights.set(WEIGHT, matrix(weight, [self.features, outputs], &device));
        self.weights.set(BIAS, matrix(bias, [1, outputs], &device));
    }

    /// Adds the last class of other heads, with its numbers there.
    pub fn grow_like(&mut self, grown: &Self) {
        let [rows, biases] = [WEIGHT, BIAS].map(|position| grown.last_class(position));
        self.grow_with(&rows, &biases);
    }

    /// Numbers of the last class in every head.
    fn last_class(&self, position: usize) -> Vec<Vec<f32>> {
        let table = floats(self.weights.value(position).clone());
        let width = self.count * self.classes;
        let column = |head: usize| (head + 1) * self.classes - 1;
        (0..self.count).map(|head| table.chunks_exact(width).map(|row| row[column(head)]).collect()).collect()
    }

    /// How many heads there are, over how many classes.
    pub fn shape(&self) -> HeadShape {
        HeadShape { count: self.count, classes: self.classes }
    }

    /// Logits under the current weights, [rows, features] → [heads, rows, classes].
    pub fn logits(&self, features: Tensor<2>) -> Tensor<3> {
        let weights: Vec<Tensor<2>> = self.weights.iter().map(|weight| weight.value.clone()).collect();
        self.shape().logits(&weights, features)
    }
}

/// Row-major [rows, heads·classes] → [rows, heads·(classes + 1)], the new column of each head filled by `fill`.
pub(super) fn widen(
    old: &[f32],
    heads: usize,
    classes: usize,
    fill: impl Fn(usize, usize) -> f32,
) -> Vec<f32> {
    let old_width = heads * classes.max(1);
    let rows = old.len() / old_width;
    let mut new = Vec::with_capacity(rows * heads * (classes + 1));
    for row in 0..rows {
        for head in 0..heads {
            let start = row * old_width + head * classes;
            new.extend_from_slice(&old[start..start + classes]);
            new.push(fill(head, row));
        }
    }
    new
}

impl Persist for Heads {
    fn save(&self, state: &mut State) {
        state.put("classes", &self.classes);
        state.put("count", &self.count);
        self.weights.save(state);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        let count: usize = state.get("count")?;
        if count != self.count {
            let problem = format!("is {count}, but the method has {} heads", self.count);
            return Err(Error::BadState { key: "count".into(), problem });
        }
        self.classes = state.get("classes")?;
        // Room is made only for as many classes as there are weights of.
        let outputs = count.checked_mul(self.classes.max(1));
        if Some(state.array("bias")?.shape.as_slice()) != outputs.as_ref().map(std::slice::from_ref) {
            let problem = format!("is {}, which is not what the heads' bias has", self.classes);
            return Err(Error::BadState { key: "classes".into(), problem });
        }
        let (device, outputs) = (self.device(), self.count * self.classes.max(1));
        self.weights
            .set(WEIGHT, matrix(vec![0.0; self.features * outputs], [self.features, outputs], &device));
        self.weights.set(BIAS, matrix(vec![0.0; outputs], [1, outputs], &device));
        self.weights.load(state)
    }
}
