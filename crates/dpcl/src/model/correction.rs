//! Bias correction: the logits of some classes are scaled and shifted by one common pair of numbers, so that they can
//! be compared with those of the others. z_c ← α·z_c + β.

use serde::{Deserialize, Serialize};

use crate::random::Random;

/// A scale and a shift for the logits of some classes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Correction {
    /// The classes corrected.
    pub classes: Vec<usize>,
    /// α, 1 changes nothing.
    pub scale: f64,
    /// β, 0 changes nothing.
    pub shift: f64,
}

/// How a correction is fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// Passes over the samples.
    pub epochs: usize,
    /// Samples of one step.
    pub batch: usize,
    /// Rate of Adam.
    pub rate: f64,
}

impl Correction {
    /// Fits the pair to logits [rows, labels' classes] by Adam on the cross-entropy, rows in random order.
    pub fn fitted(
        classes: Vec<usize>,
        logits: &[f32],
        labels: &[usize],
        fit: Fit,
        random: &mut Random,
    ) -> Self {
        let mut correction = Self { classes, scale: 1.0, shift: 0.0 };
        let width = logits.len() / labels.len().max(1);
        let mut moments = [[0.0; 2]; 2];
        let mut steps = 0;
        for _ in 0..fit.epochs {
            for rows in random.permutation(labels.len()).chunks(fit.batch) {
                let logits: Vec<f32> =
                    rows.iter().flat_map(|&row| &logits[row * width..][..width]).copied().collect();
                let labels: Vec<usize> = rows.iter().map(|&row| labels[row]).collect();
                let (_, gradient) = correction.loss_and_gradient(&logits, &labels);
                steps += 1;
                let step = adam(&mut moments, gradient, steps);
                correction.scale -= fit.rate * step[0];
                correction.shift -= fit.rate * step[1];
            }
        }
        correction
    }

    /// Corrects logits [rows, `width`] in place; classes beyond the width are not there to be corrected.
    pub fn apply(&self, logits: &mut [f32], width: usize) {
        for row in logits.chunks_exact_mut(width) {
            for &class in self.classes.iter().filter(|&&class| class < width) {
                row[class] = (self.scale * f64::from(row[class]) + self.shift) as f32;
            }
        }
    }

    /// Mean cross-entropy of the corrected logits [rows, classes] against `labels`, and its gradient by scale and shift.
    pub fn loss_and_gradient(&self, logits: &[f32], labels: &[usize]) -> (f64, [f64; 2]) {
        let rows = labels.len();
        let width = logits.len() / rows;
        let (mut loss, mut by_scale, mut by_shift) = (0.0, 0.0, 0.0);
        for (row, &label) in logits.chunks_exact(width).zip(labels) {
            let mut corrected: Vec<f64> = row.iter().map(|&logit| f64::from(logit)).collect();
            for &class in &self.classes {
                corrected[class] = self.scale * corrected[class] + self.shift;
            }
            let largest = corrected.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = corrected.iter().map(|logit| (logit - largest).exp()).sum();
            loss += largest + sum.ln() - corrected[label];
            for &class in &self.classes {
                let share = (corrected[class] - largest).exp() / sum - f64::from(u8::from(class == label));
                by_scale += share * f64::from(row[class]);
                by_shift += share;
            }
        }
        let rows = rows as f64;
        (loss / rows, [by_scale / rows, by_shift / rows])
    }
}

/// Direction of Adam's step number `step` (from 1) for two numbers; `moments` are the first and the second of each.
fn adam(moments: &mut [[f64; 2]; 2], gradient: [f64; 2], step: i32) -> [f64; 2] {
    const BETA1: f64 = 0.9;
    const BETA2: f64 = 0.999;
    const EPSILON: f64 = 1e-8;
    let mut direction = [0.0; 2];
    for ((moments, gradient), direction) in moments.iter_mut().zip(gradient).zip(&mut direction) {
        moments[0] = BETA1 * moments[0] + (1.0 - BETA1) * gradient;
        moments[1] = BETA2 * moments[1] + (1.0 - BETA2) * gradient * gradient;
        let (first, second) = (moments[0] / (1.0 - BETA1.powi(step)), moments[1] / (1.0 - BETA2.powi(step)));
        *direction = first / (second.sqrt() + EPSILON);
    }
    direction
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scale_one_and_shift_zero_change_nothing() {
        let mut logits = vec![0.25, -1.5, 3.0, 2.0, 0.1, 0.0];
        Correction { classes: vec![1, 2, 7], scale: 1.0, shift: 0.0 }.apply(&mut logits, 3);
        assert_eq!(logits, [0.25, -1.5, 3.0, 2.0, 0.1, 0.0]);
    }

    #[test]
    fn a_common_excess_of_the_new_classes_is_found() {
        // Both classes are equally likely on every row, but class 1 is given a logit that is 0.2 too high.
        let logits: Vec<f32> = [0.0, 0.2].repeat(8);
        let labels = [0, 1].repeat(4);
        let fit = Fit { epochs: 4000, batch: 8, rate: 0.001 };
        let found = Correction::fitted(vec![1], &logits, &labels, fit, &mut Random::named(1, "fit"));
        assert!((found.scale * 0.2 + found.shift).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn the_first_step_of_adam_has_length_one() {
        let direction = adam(&mut [[0.0; 2]; 2], [3.0, -0.02], 1);
        assert!((direction[0] - 1.0).abs() < 1e-6 && (direction[1] + 1.0).abs() < 1e-6, "{direction:?}");
    }
}
