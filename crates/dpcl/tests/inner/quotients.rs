//! What is wrong with a gradient, as far as central difference quotients tell.

use crate::random::Random;

/// How closely a gradient is looked at. A value is asked for at an offset from where the gradient was taken.
pub struct Quotients {
    /// Lengths of steps along unit vectors. A shorter one drowns in rounding, a longer one meets points where a ReLU turns
    /// and the loss has no slope, and which does worse varies; an error of a gradient is there at all of them.
    pub steps: &'static [f64],
    /// A shorter gradient says nothing.
    pub least_norm: f64,
    /// What may be missed in a direction by chance: a share of the slope that such a direction has on average.
    pub share: f64,
}

impl Quotients {
    /// What is wrong with a gradient; nothing if it is right.
    ///
    /// Along the gradient itself 5 % of its length are allowed: a term too much or a factor shows there. Of four directions
    /// by chance, with all numbers as large, one may meet a point without a slope: a missing term shows there.
    pub fn fault(&self, gradient: &[f64], value: &mut dyn FnMut(Vec<f32>) -> f64) -> Option<String> {
        let norm = norm(gradient);
        if norm < self.least_norm {
            return Some(format!("it is {norm} long"));
        }
        let along: Vec<f64> = gradient.iter().map(|g| g / norm).collect();
        if let Some(fault) = self.off(gradient, &along, 0.05 * norm, value) {
            return Some(format!("along itself: {fault}"));
        }
        let mut random = Random::named(gradient.len() as u64, "direction");
        let size = (gradient.len() as f64).sqrt().recip();
        let mut direction = || -> Vec<f64> {
            gradient.iter().map(|_| if random.chance(0.5) { size } else { -size }).collect()
        };
        let bound = self.share * norm * size;
        let faults: Vec<String> =
            (0..4).filter_map(|_| self.off(gradient, &direction(), bound, value)).collect();
        (faults.len() > 1).then(|| format!("in directions by chance: {faults:#?}"))
    }

    /// The slopes found in a direction, if none is within `bound` of the one that the gradient says.
    pub fn off(
        &self,
        gradient: &[f64],
        direction: &[f64],
        bound: f64,
        value: &mut dyn FnMut(Vec<f32>) -> f64,
    ) -> Option<String> {
        let expected: f64 = gradient.iter().zip(direction).map(|(g, d)| g * d).sum();
        let mut at = |step: f64| value(direction.iter().map(|d| (d * step) as f32).collect());
        let mut found = Vec::new();
        let right = self.steps.iter().any(|&step| {
            let slope = (at(step) - at(-step)) / (2.0 * step);
            found.push(slope);
            (slope - expected).abs() < bound
        });
        (!right).then(|| format!("{found:?} for {expected} ± {bound}"))
    }
}

/// The length of a gradient.
pub fn norm(gradient: &[f64]) -> f64 {
    gradient.iter().map(|g| g * g).sum::<f64>().sqrt()
}
