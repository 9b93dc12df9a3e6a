//! Branched stochastic classifiers: several linear heads, each with a distribution over its weights instead of one set.
//!
//! Every class of every head has its own [`Gaussian`], independent of the others. Predictions average over draws,
//! p̄ = (1/N) Σₙ (1/R) Σᵣ softmax(Wₙʳ f + bₙʳ). Weights can be drawn themselves (once for many images) or, since a
//! logit is linear in its class's weights, each logit can be drawn from its exact normal distribution (cheap for few
//! images): mean w̄·f̂, variance ½ v·f̂² + Σₐ (Dₐ·f̂)² / (2(A − 1)), f̂ = (f, 1). Training never sees any of this. A class
//! without a snapshot uses its present weights as they are. Where the whole network is averaged, weights are drawn around
//! the averaged heads instead of w̄: they belong to the averaged encoder.

mod config;

pub use config::{BscConfig, Predict};

use std::sync::OnceLock;

use burn::tensor::{Device, Tensor};

use dpcl_kernels::linear;
use dpcl_report::record::Parameters;

use super::Gaussian;
use crate::{
    answers::Votes,
    error::{Error, Result},
    model::{Heads, floats, matrix},
    state::{Persist, State},
};

/// What weights are drawn around. A class without a snapshot keeps its weights in the heads given.
#[derive(Clone, Copy)]
pub enum Middle<'a> {
    /// The mean of the snapshots.
    Snapshots(&'a Heads),
    /// These heads: the network's average, whose encoder goes with them.
    Heads(&'a Heads),
}

/// Distributions of every class of every head.
pub struct Bsc {
    config: BscConfig,
    /// By class, then by head.
    classes: Vec<Vec<Gaussian>>,
    collections: u64,
    tables: OnceLock<Tables>,
}

impl Bsc {
    /// No snapshot yet.
    pub fn new(config: BscConfig) -> Self {
        Self { config, classes: Vec::new(), collections: 0, tables: OnceLock::new() }
    }

    /// Takes a snapshot of every known class.
    pub fn collect(&mut self, heads: &Heads) {
        self.tables.take();
        let Self { config, classes, .. } = self;
        classes
            .resize_with(heads.classes(), || vec![Gaussian::new(config.rank, config.window); config.heads]);
        let rows = Rows::of(heads);
        for (class, gaussians) in classes.iter_mut().enumerate() {
            for (head, gaussian) in gaussians.iter_mut().enumerate() {
                gaussian.collect(&rows.row(head, class));
            }
        }
        self.collections += 1;
    }

    /// Refuses distributions that are not of these heads' weights.
    ///
    /// # Errors
    /// [`Error::BadState`] for the first that is not.
    pub fn check_loaded(&self, heads: &Heads) -> Result<()> {
        let [features, _] = heads.weights().value(0).dims();
        let fits = |gaussian: &Gaussian| gaussian.count() == 0 || gaussian.mean().len() == features + 1;
        let strange = self.classes.iter().position(|heads| !heads.iter().all(fits));
        let strange = strange.or_else(|| (self.classes.len() > heads.classes()).then_some(heads.classes()));
        strange.map_or(Ok(()), |class| {
            let problem = "is of another shape than the heads".into();
            Err(Error::BadState { key: format!("method.bsc.{class}"), problem })
        })
    }

    /// Snapshots taken so far.
    pub fn collections(&self) -> u64 {
        self.collections
    }

    /// Numbers the distributions hold: running means and squares, and snapshots and deviations kept one by one.
    pub fn parameters(&self) -> Parameters {
        let gaussians = || self.classes.iter().flatten();
        Parameters {
            network: 0,
            state: gaussians().map(|gaussian| 2 * gaussian.mean().len() as u64).sum(),
            history: gaussians().map(Gaussian::history).sum(),
        }
    }

    /// Draws the weights of every head `draws` times.
    pub fn draw_weights(&self, middle: Middle<'_>, normal: &mut dyn FnMut() -> f64) -> DrawnHeads {
        self.weights(middle, self.config.draws, &mut |gaussian, row| match middle {
            Middle::Snapshots(_) => gaussian.draw(normal),
            Middle::Heads(_) => {
                let offset =
                    row.iter().zip(gaussian.mean()).map(|(&row, mean)| (f64::from(row) - mean) as f32);
                gaussian.draw(normal).into_iter().zip(offset).map(|(drawn, offset)| drawn + offset).collect()
            }
        })
    }

    /// The mean weights of every head.
    pub fn mean_weights(&self, middle: Middle<'_>) -> DrawnHeads {
        self.weights(middle, 1, &mut |gaussian, row| match middle {
            Middle::Snapshots(_) => gaussian.mean().iter().map(|&number| number as f32).collect(),
            Middle::Heads(_) => row.to_vec(),
        })
    }

    /// Weights taken from the distribution of every class and its row in the heads they are taken around.
    fn weights(
        &self,
        middle: Middle<'_>,
        draws: usize,
        take: &mut dyn FnMut(&Gaussian, &[f32]) -> Vec<f32>,
    ) -> DrawnHeads {
        let (Middle::Snapshots(heads) | Middle::Heads(heads)) = middle;
        let present = Rows::of(heads);
        let classes = heads.classes();
        let mut columns = Columns::new(present.features, self.config.heads * draws * classes);
        for head in 0..self.config.heads {
            for _ in 0..draws {
                for class in 0..classes {
                    let row = present.row(head, class);
                    let drawn = self.collected(class).map(|gaussians| take(&gaussians[head], &row));
                    columns.push(&drawn.unwrap_or(row));
                }
            }
        }
        DrawnHeads { affine: columns.affine(&heads.device()), shape: [self.config.heads, draws, classes] }
    }

    /// Mean and variance of every logit of `features` [rows, features] outside autodiff; `present` are their logits
    /// [heads, rows, classes] under the present weights, which stand for classes without a snapshot.
    pub fn logit_moments(&self, features: Tensor<2>, present: Tensor<3>) -> LogitMoments {
        let [heads, rows, classes] = present.dims();
        let mut mean = floats(present.permute([1, 0, 2]));
        let mut variance = vec![0.0; mean.len()];
        let tables = self.tables.get_or_init(|| self.tables(&features.device()));
        if !tables.classes.is_empty() {
            let collected = tables.moments(features);
            let width = heads * tables.classes.len();
            for row in 0..rows {
                for (column, (new_mean, new_variance)) in collected[row * width..][..width].iter().enumerate()
                {
                    let (head, position) = (column / tables.classes.len(), column % tables.classes.len());
                    let index = (row * heads + head) * classes + tables.classes[position];
                    (mean[index], variance[index]) = (*new_mean, *new_variance);
                }
            }
        }
        LogitMoments { mean, variance, heads, draws: self.config.draws, classes }
    }

    fn collected(&self, class: usize) -> Option<&[Gaussian]> {
        self.classes.get(class).filter(|heads| heads[0].count() > 0).map(Vec::as_slice)
    }

    fn tables(&self, device: &Device) -> Tables {
        let classes: Vec<usize> =
            (0..self.classes.len()).filter(|&class| self.collected(class).is_some()).collect();
        let gaussians = || {
            let heads = 0..self.config.heads;
            heads.flat_map(|head| classes.iter().map(move |&class| &self.classes[class][head]))
        };
        let length = gaussians().next().map_or(1, |gaussian| gaussian.mean().len());
        let new = |count: usize| Columns::new(length - 1, count);
        let width = gaussians().count();
        let depth = gaussians().map(|gaussian| gaussian.deviations().len()).max().unwrap_or(0);
        let (mut mean, mut variance, mut deviations) = (new(width), new(width), new(width * depth));
        for gaussian in gaussians() {
            mean.push(&gaussian.mean().iter().map(|&number| number as f32).collect::<Vec<_>>());
            variance.push(&gaussian.variance().map(|number| (number / 2.0) as f32).collect::<Vec<_>>());
        }
        for position in 0..depth {
            for gaussian in gaussians() {
                let scale = gaussian.column_scale() as f32;
                let column = gaussian.deviations().get(position);
                let scaled = column.map(|column| column.iter().map(|number| scale * number).collect());
                deviations.push(&scaled.unwrap_or_else(|| vec![0.0; length]));
            }
        }
        Tables {
            classes,
            mean: mean.affine(device),
            variance: variance.affine(device),
            deviations: (depth > 0).then(|| deviations.affine(device)),
        }
    }
}

impl Persist for Bsc {
    fn save(&self, state: &mut State) {
        state.put("collections", &self.collections);
        state.put("classes", &self.classes.len());
        for (class, heads) in self.classes.iter().enumerate() {
            for (head, gaussian) in heads.iter().enumerate() {
                gaussian.save(&format!("{class}.{head}"), state);
            }
        }
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.tables.take();
        self.collections = state.get_counted("collections")?;
        let fresh = Gaussian::new(self.config.rank, self.config.window);
        self.classes.clear();
        // Class by class, so that a count nothing stands behind ends at the first missing entry.
        for class in 0..state.get::<usize>("classes")? {
            let mut heads = vec![fresh.clone(); self.config.heads];
            for (head, gaussian) in heads.iter_mut().enumerate() {
                gaussian.load(&format!("{class}.{head}"), state)?;
            }
            self.classes.push(heads);
        }
        Ok(())
    }
}

/// Heads with drawn weights, side by side: [features, heads·draws·classes].
pub struct DrawnHeads {
    affine: (Tensor<2>, Tensor<2>),
    /// Heads, draws, classes.
    shape: [usize; 3],
}

impl DrawnHeads {
    /// Logits [rows, heads, draws, classes] for `features` [rows, features], with the last three of these numbers.
    pub fn logits(&self, features: Tensor<2>) -> (Vec<f32>, [usize; 3]) {
        let (weight, bias) = self.affine.clone();
        (floats(linear(features, weight, bias)), self.shape)
    }
}

/// The normal distribution of every logit of a few rows.
#[derive(Clone, Debug, PartialEq)]
pub struct LogitMoments {
    /// Means, [rows, heads, classes].
    pub mean: Vec<f32>,
    /// Variances, [rows, heads, classes].
    pub variance: Vec<f32>,
    heads: usize,
    draws: usize,
    classes: usize,
}

impl LogitMoments {
    /// Draws every logit, row by row, head by head, draw by draw.
    pub fn votes(&self, normal: &mut dyn FnMut() -> f32) -> Votes {
        let Self { mean, variance, heads, draws, classes } = self;
        // Without any variance all draws are the same.
        let draws = if variance.iter().all(|&variance| variance == 0.0) { 1 } else { *draws };
        let mut logits = Vec::with_capacity(mean.len() * draws);
        for (mean, variance) in mean.chunks_exact(*classes).zip(variance.chunks_exact(*classes)) {
            let deviation: Vec<f32> = variance.iter().map(|variance| variance.sqrt()).collect();
            for _ in 0..draws {
                logits
                    .extend(mean.iter().zip(&deviation).map(|(mean, deviation)| mean + deviation * normal()));
            }
        }
        Votes::from_logits(logits, [*heads, draws, *classes])
    }
}

/// What logit moments are computed from; columns run over heads, then collected classes.
struct Tables {
    /// Classes that have a snapshot.
    classes: Vec<usize>,
    mean: (Tensor<2>, Tensor<2>),
    /// Half of the variance.
    variance: (Tensor<2>, Tensor<2>),
    /// Scaled deviations, all columns of the oldest age first.
    deviations: Option<(Tensor<2>, Tensor<2>)>,
}

impl Tables {
    /// Mean and variance for every row and column.
    fn moments(&self, features: Tensor<2>) -> Vec<(f32, f32)> {
        let apply = |(weight, bias): &(Tensor<2>, Tensor<2>), features| {
            floats(linear(features, weight.clone(), bias.clone()))
        };
        let mean = apply(&self.mean, features.clone());
        let mut variance = apply(&self.variance, features.clone().square());
        if let Some(deviations) = &self.deviations {
            let [rows, _] = features.dims();
            let width = mean.len() / rows;
            let projected = apply(deviations, features);
            let rows = projected.chunks_exact(projected.len() / rows);
            for (projected, variance) in rows.zip(variance.chunks_exact_mut(width)) {
                for column in projected.chunks_exact(width) {
                    variance.iter_mut().zip(column).for_each(|(sum, number)| *sum += number * number);
                }
            }
        }
        mean.into_iter().zip(variance).collect()
    }
}

/// The present weights and bias of every class of every head, as vectors.
struct Rows {
    features: usize,
    classes: usize,
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Rows {
    fn of(heads: &Heads) -> Self {
        let [weight, bias] = [0, 1].map(|position| heads.weights().value(position).clone());
        let [features, _] = weight.dims();
        Self { features, classes: heads.classes(), weight: floats(weight.transpose()), bias: floats(bias) }
    }

    fn row(&self, head: usize, class: usize) -> Vec<f32> {
        let index = head * self.classes + class;
        let weight = &self.weight[index * self.features..][..self.features];
        weight.iter().copied().chain([self.bias[index]]).collect()
    }
}

/// Weight vectors on their way to becoming the columns of a matrix.
struct Columns {
    features: usize,
    count: usize,
    filled: usize,
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Columns {
    fn new(features: usize, count: usize) -> Self {
        Self { features, count, filled: 0, weight: vec![0.0; features * count], bias: vec![0.0; count] }
    }

    fn push(&mut self, vector: &[f32]) {
        let (weight, bias) = vector.split_at(self.features);
        for (feature, &number) in weight.iter().enumerate() {
            self.weight[feature * self.count + self.filled] = number;
        }
        self.bias[self.filled] = bias[0];
        self.filled += 1;
    }

    fn affine(self, device: &Device) -> (Tensor<2>, Tensor<2>) {
        let Self { features, count, weight, bias, .. } = self;
        (matrix(weight, [features, count], device), matrix(bias, [1, count], device))
    }
}
