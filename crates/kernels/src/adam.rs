//! Adam in one pass over memory.
//!
//! m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g², θ ← θ − η · (m / (1−β₁ˢ)) / (√(v / (1−β₂ˢ)) + ε), with s the step of the parameter.

use crate::AdamStep;
use crate::isa::Isa;
use crate::pool::{SharedSlice, parallel_for};
use crate::simd::{Routine, Simd};

/// Numbers handled by one chunk.
const CHUNK: usize = 16 << 10;

/// Updates a parameter and its two moments in place; all four slices have the same length.
///
/// # Panics
/// When the lengths differ or the step is zero.
pub fn adam(step: AdamStep, parameter: &mut [f32], gradient: &[f32], first: &mut [f32], second: &mut [f32]) {
    let length = parameter.len();
    assert!(
        gradient.len() == length && first.len() == length && second.len() == length,
        "Adam's operands differ in length"
    );
    assert!(step.count > 0, "Adam counts steps from one");
    let isa = Isa::active();
    let constants = Constants::new(step);
    let (parameter, first, second) =
        (SharedSlice::new(parameter), SharedSlice::new(first), SharedSlice::new(second));
    parallel_for(length.div_ceil(CHUNK), |chunk| {
        let start = chunk * CHUNK;
        let count = CHUNK.min(length - start);
        // SAFETY: chunks are disjoint.
        let (parameter, first, second) =
            unsafe { (parameter.range(start, count), first.range(start, count), second.range(start, count)) };
        isa.run(Update { constants, parameter, gradient: &gradient[start..start + count], first, second });
    });
}

/// θ ← θ − factor · m / (√v + epsilon), with the bias corrections folded into factor and epsilon.
#[derive(Clone, Copy)]
struct Constants {
    keep1: f32,
    new1: f32,
    keep2: f32,
    new2: f32,
    factor: f32,
    epsilon: f32,
}

impl Constants {
    fn new(step: AdamStep) -> Self {
        let (correction1, correction2) = step.corrections();
        let root = correction2.sqrt();
        Self {
            keep1: step.beta1 as f32,
            new1: (1.0 - step.beta1) as f32,
            keep2: step.beta2 as f32,
            new2: (1.0 - step.beta2) as f32,
            factor: (step.rate * root / correction1) as f32,
            epsilon: (step.epsilon * root) as f32,
        }
    }
}

struct Update<'a> {
    constants: Constants,
    parameter: &'a mut [f32],
    gradient: &'a [f32],
    first: &'a mut [f32],
    second: &'a mut [f32],
}

impl Routine for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Constants { keep1, new1, keep2, new2, factor, epsilon } = self.constants;
        let (keep1, new1) = (simd.splat(keep1), simd.splat(new1));
        let (keep2, new2) = (simd.splat(keep2), simd.splat(new2));
        let (factor, epsilon) = (simd.splat(-factor), simd.splat(epsilon));
        let length = self.parameter.len();
        let mut index = 0;
        while index < length {
            let count = (length - index).min(S::LANES);
            let whole = count == S::LANES;
            // SAFETY: `index + count` is at most the common length of the four slices, which `adam` checked.
            unsafe {
                let load = |from: *const f32| {
                    if whole { simd.load(from.add(index)) } else { simd.load_first(from.add(index), count) }
                };
                let store = |to: *mut f32, value: S::Vector| {
                    if whole {
                        simd.store(to.add(index), value);
                    } else {
                        simd.store_first(to.add(index), count, value);
                    }
                };
                let gradient = load(self.gradient.as_ptr());
                let first = simd.mul_add(load(self.first.as_ptr()), keep1, simd.mul(gradient, new1));
                let second = simd.mul_add(
                    load(self.second.as_ptr()),
                    keep2,
                    simd.mul(simd.mul(gradient, gradient), new2),
                );
                let move_by = simd.div(first, simd.add(simd.sqrt(second), epsilon));
                store(
                    self.parameter.as_mut_ptr(),
                    simd.mul_add(move_by, factor, load(self.parameter.as_ptr())),
                );
                store(self.first.as_mut_ptr(), first);
                store(self.second.as_mut_ptr(), second);
            }
            index += S::LANES;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_formula_over_several_steps() {
        for isa in Isa::supported() {
            isa.scope(|| {
                let length = 37;
                let mut parameter: Vec<f32> = (0..length).map(|i| (i as f32 * 0.7).sin()).collect();
                let (mut first, mut second) = (vec![0.0; length], vec![0.0; length]);
                let mut expected: Vec<[f64; 3]> =
                    parameter.iter().map(|&p| [f64::from(p), 0.0, 0.0]).collect();
                for step in 1..=5 {
                    let gradient: Vec<f32> =
                        (0..length).map(|i| ((i * step) as f32 * 1.3).cos() * 0.01).collect();
                    let options =
                        AdamStep { rate: 3e-4, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, count: step as u64 };
                    adam(options, &mut parameter, &gradient, &mut first, &mut second);
                    for (i, [p, m, v]) in expected.iter_mut().enumerate() {
                        let g = f64::from(gradient[i]);
                        *m = 0.9 * *m + 0.1 * g;
                        *v = 0.999 * *v + 0.001 * g * g;
                        let s = step as i32;
                        *p -= 3e-4 * (*m / (1.0 - 0.9_f64.powi(s)))
                            / ((*v / (1.0 - 0.999_f64.powi(s))).sqrt() + 1e-8);
                    }
                }
                for (parameter, [expected, ..]) in parameter.iter().zip(&expected) {
                    assert!((f64::from(*parameter) - expected).abs() < 2e-7);
                }
            });
        }
    }

    #[test]
    fn the_first_step_moves_by_the_rate() {
        let (mut parameter, mut first, mut second) = (vec![0.0; 3], vec![0.0; 3], vec![0.0; 3]);
        let options = AdamStep { rate: 0.5, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, count: 1 };
        adam(options, &mut parameter, &[4.0, -0.25, 1.0], &mut first, &mut second);
        for (parameter, expected) in parameter.iter().zip([-0.5, 0.5, -0.5]) {
            assert!((parameter - expected).abs() < 1e-5, "{parameter} {expected}");
        }
    }
}
