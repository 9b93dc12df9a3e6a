//! Looking into a learner from outside: the features it answers from, and the loss around its classifier's weights.

use burn::tensor::Tensor;

use super::Learner;
use crate::{
    data::Image,
    error::Result,
    model::{Weights, floats, matrix},
    random::Random,
};

/// Images that go through together.
const ROWS: usize = 128;

impl Learner {
    /// The features that answers to clean images are made from, a list an image.
    ///
    /// # Errors
    /// When an image has another shape.
    pub fn features(&self, images: &[Image]) -> Result<Vec<Vec<f32>>> {
        let mut features = Vec::with_capacity(images.len());
        for chunk in images.chunks(ROWS) {
            chunk.iter().try_for_each(|image| self.check(image))?;
            let tensor = self.core.features(chunk);
            let [_, width] = tensor.dims();
            features.extend(floats(tensor).chunks_exact(width).map(<[f32]>::to_vec));
        }
        Ok(features)
    }

    /// The mean cross-entropy of images whose classes are given by their numbers, with the classifier's weights shifted by
    /// each of `shifts` along one random direction as long as they are. Several heads have a direction each, and the
    /// mean of their losses counts.
    ///
    /// # Errors
    /// When an image has another shape.
    pub fn landscape(
        &self,
        images: &[Image],
        classes: &[usize],
        shifts: &[f64],
        seed: u64,
    ) -> Result<Vec<f64>> {
        let mut features = Vec::new();
        for chunk in images.chunks(ROWS) {
            chunk.iter().try_for_each(|image| self.check(image))?;
            features.push(self.core.features(chunk));
        }
        let heads = self.core.model.answering().heads();
        let direction = direction(heads.weights(), heads.count(), &mut Random::named(seed, "landscape"));
        let loss = |shift: &f64| {
            let shifted: Vec<Tensor<2>> = heads
                .weights()
                .iter()
                .zip(&direction)
                .map(|(weight, direction)| {
                    let sum = floats(weight.value.clone())
                        .into_iter()
                        .zip(direction)
                        .map(|(weight, along)| (f64::from(weight) + shift * along) as f32);
                    matrix(sum.collect(), weight.value.dims(), &weight.value.device())
                })
                .collect();
            let mut sum = 0.0;
            for (chunk, classes) in features.iter().zip(classes.chunks(ROWS)) {
                let logits = heads.shape().logits(&shifted, chunk.clone());
                let [heads, rows, width] = logits.dims();
                let logits = floats(logits);
                let each = logits.chunks_exact(width).enumerate();
                sum +=
                    each.map(|(at, row)| cross_entropy(row, classes[at % rows])).sum::<f64>() / heads as f64;
            }
            sum / classes.len().max(1) as f64
        };
        Ok(shifts.iter().map(loss).collect())
    }
}

fn cross_entropy(logits: &[f32], class: usize) -> f64 {
    let most = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let sum: f64 = logits.iter().map(|logit| f64::from(logit - most).exp()).sum();
    sum.ln() - f64::from(logits[class] - most)
}

/// Normal numbers in the shape of the weights, those of each head as long in all as its own weights and biases.
fn direction(weights: &Weights, heads: usize, random: &mut Random) -> Vec<Vec<f64>> {
    let tables: Vec<(Vec<f32>, usize)> =
        weights.iter().map(|weight| (floats(weight.value.clone()), weight.value.dims()[1])).collect();
    let mut drawn: Vec<Vec<f64>> =
        tables.iter().map(|(table, _)| table.iter().map(|_| random.normal()).collect()).collect();
    // Columns lie head after head.
    let head = |at: usize, width: usize| at % width / (width / heads);
    let (mut own, mut made) = (vec![0.0; heads], vec![0.0; heads]);
    for ((table, width), drawn) in tables.iter().zip(&drawn) {
        for (at, (weight, along)) in table.iter().zip(drawn).enumerate() {
            own[head(at, *width)] += f64::from(*weight).powi(2);
            made[head(at, *width)] += along.powi(2);
        }
    }
    for ((_, width), drawn) in tables.iter().zip(&mut drawn) {
        for (at, along) in drawn.iter_mut().enumerate() {
            *along *= (own[head(at, *width)] / made[head(at, *width)]).sqrt();
        }
    }
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::Config, learner::Shape};

    fn learner(method: &str) -> (Learner, Vec<Image>, Vec<usize>) {
        let text = format!("method = '{method}'\nwidth = 4\nbatch = 4\nmemory = 8\nupdates = 1");
        let mut learner =
            Learner::new(&Config::from_toml(&text).unwrap(), Shape { channels: 3, height: 16, width: 16 })
                .unwrap();
        let mut random = Random::named(1, "probing");
        let mut image = || {
            let pixels: Vec<u8> = (0..16 * 16 * 3).map(|_| random.below(256) as u8).collect();
            Image { height: 16, width: 16, pixels: pixels.into() }
        };
        let images: Vec<Image> = (0..12).map(|_| image()).collect();
        let classes: Vec<usize> = (0..12).map(|at| at % 3).collect();
        for (image, &class) in images.iter().zip(&classes) {
            learner.observe(image, class).unwrap();
        }
        (learner, images, classes)
    }

    #[test]
    fn the_middle_of_the_landscape_is_the_loss_itself() {
        let (learner, images, classes) = learner("er");
        let losses = learner.landscape(&images, &classes, &[-1.0, 0.0, 1.0], 1).unwrap();
        let answers = learner.scores(&images, None).unwrap();
        let own: f64 = answers
            .iter()
            .zip(&classes)
            .map(|(scores, &class)| -f64::from(scores.probabilities[class]).ln())
            .sum();
        assert!((losses[1] - own / 12.0).abs() < 1e-5, "{losses:?} {own}");
        assert!(losses[0] != losses[1] && losses[2] != losses[1]);
        assert_eq!(losses, learner.landscape(&images, &classes, &[-1.0, 0.0, 1.0], 1).unwrap());
    }

    #[test]
    fn each_heads_direction_is_as_long_as_the_head() {
        let (learner, ..) = learner("dpcl");
        let heads = learner.core.model.answering().heads();
        let drawn = direction(heads.weights(), heads.count(), &mut Random::named(3, "x"));
        assert!(heads.count() > 1);
        for head in 0..heads.count() {
            let length = |of: &dyn Fn(usize, usize) -> f64| {
                let mut sum = 0.0;
                for (table, weight) in heads.weights().iter().enumerate() {
                    let [rows, width] = weight.value.dims();
                    let each = width / heads.count();
                    sum += (0..rows * width)
                        .filter(|at| at % width / each == head)
                        .map(|at| of(table, at).powi(2))
                        .sum::<f64>();
                }
                sum.sqrt()
            };
            let tables: Vec<Vec<f32>> =
                heads.weights().iter().map(|weight| floats(weight.value.clone())).collect();
            let own = length(&|table, at| f64::from(tables[table][at]));
            let along = length(&|table, at| drawn[table][at]);
            assert!((own - along).abs() < 1e-6 * own.max(1.0), "{own} {along}");
        }
    }

    #[test]
    fn features_are_those_of_the_network() {
        let (learner, images, _) = learner("er");
        let features = learner.features(&images[..2]).unwrap();
        assert_eq!(
            (features.len(), features[0].len()),
            (2, learner.setup().architecture().unwrap().features())
        );
    }
}
