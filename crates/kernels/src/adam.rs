//! Adam in one pass over memory.
//!
//! m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g², θ ← θ − η · (m / (1−β₁ˢ)) / (√(v / (1−β₂ˢ)) + ε), with s the step of the parameter.
//! A running average of the parameter moves in the same pass: a ← a + κ(θ − a).

use crate::AdamStep;
use crate::isa::Isa;
use crate::pool::{SharedSlice, parallel_for};
use crate::simd::{Routine, Simd};

/// Numbers handled by one chunk.
const CHUNK: usize = 16 << 10;

/// What a step changes in place: a parameter, its two moments and, if one is kept, its average. All have the same length.
pub struct AdamState<'a> {
    pub parameter: &'a mut [f32],
    pub first: &'a mut [f32],
    pub second: &'a mut [f32],
    /// Empty where no average is kept.
    pub average: &'a mut [f32],
}

/// Updates a parameter, its two moments and its average in place; the average moves by `share` of the way.
///
/// # Panics
/// When the lengths differ or the step is zero.
pub fn adam(step: AdamStep, share: f64, state: AdamState<'_>, gradient: &[f32]) {
    let AdamState { parameter, first, second, average } = state;
    let length = parameter.len();
    let averaged = !average.is_empty();
    assert!(
        gradient.len() == length
            && first.len() == length
            && second.len() == length
            && (!averaged || average.len() == length),
        "Adam's operands differ in length"
    );
    assert!(step.count > 0, "Adam counts steps from one");
    let isa = Isa::active();
    let constants = Constants::new(step, share);
    let [parameter, first, second, average] = [parameter, first, second, average].map(SharedSlice::new);
    parallel_for(length.div_ceil(CHUNK), |chunk| {
        let start = chunk * CHUNK;
        let count = CHUNK.min(length - start);
        // SAFETY: chunks are disjoint.
        let [parameter, first, second] =
            [&parameter, &first, &second].map(|slice| unsafe { slice.range(start, count) });
        // SAFETY: as above; an average that is not kept has no numbers.
        let average = unsafe { if averaged { average.range(start, count) } else { average.range(0, 0) } };
        let state = AdamState { parameter, first, second, average };
        isa.run(Update { constants, state, gradient: &gradient[start..start + count] });
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
    share: f32,
}

impl Constants {
    fn new(step: AdamStep, share: f64) -> Self {
        let (correction1, correction2) = step.corrections();
        let root = correction2.sqrt();
        Self {
            keep1: step.beta1 as f32,
            new1: (1.0 - step.beta1) as f32,
            keep2: step.beta2 as f32,
            new2: (1.0 - step.beta2) as f32,
            factor: (step.rate * root / correction1) as f32,
            epsilon: (step.epsilon * root) as f32,
            share: share as f32,
        }
    }
}

struct Update<'a> {
    constants: Constants,
    state: AdamState<'a>,
    gradient: &'a [f32],
}

impl Routine for Update<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Constants { keep1, new1, keep2, new2, factor, epsilon, share } = self.constants;
        let AdamState { parameter, first, second, average } = self.state;
        let (keep1, new1) = (simd.splat(keep1), simd.splat(new1));
        let (keep2, new2) = (simd.splat(keep2), simd.splat(new2));
        let (factor, epsilon, share) = (simd.splat(-factor), simd.splat(epsilon), simd.splat(share));
        let length = parameter.len();
        let averaged = !average.is_empty();
        let mut index = 0;
        while index < length {
            let count = (length - index).min(S::LANES);
            let whole = count == S::LANES;
            // SAFETY: `index + count` is at most the common length of the slices, which `adam` checked; an average
            // without numbers is not touched.
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
                let slope = load(self.gradient.as_ptr());
                let new_first = simd.mul_add(load(first.as_ptr()), keep1, simd.mul(slope, new1));
                let new_second =
                    simd.mul_add(load(second.as_ptr()), keep2, simd.mul(simd.mul(slope, slope), new2));
                let move_by = simd.div(new_first, simd.add(simd.sqrt(new_second), epsilon));
                let moved = simd.mul_add(move_by, factor, load(parameter.as_ptr()));
                store(parameter.as_mut_ptr(), moved);
                store(first.as_mut_ptr(), new_first);
                store(second.as_mut_ptr(), new_second);
                if averaged {
                    let old = load(average.as_ptr());
                    store(average.as_mut_ptr(), simd.mul_add(simd.sub(moved, old), share, old));
                }
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
                let mut average = parameter.clone();
                let mut expected: Vec<[f64; 4]> =
                    parameter.iter().map(|&p| [f64::from(p), 0.0, 0.0, f64::from(p)]).collect();
                for step in 1..=5 {
                    let gradient: Vec<f32> =
                        (0..length).map(|i| ((i * step) as f32 * 1.3).cos() * 0.01).collect();
                    let options =
                        AdamStep { rate: 3e-4, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, count: step as u64 };
                    let state = AdamState {
                        parameter: &mut parameter,
                        first: &mut first,
                        second: &mut second,
                        average: &mut average,
                    };
                    adam(options, 0.25, state, &gradient);
                    for (i, [p, m, v, a]) in expected.iter_mut().enumerate() {
                        let g = f64::from(gradient[i]);
                        *m = 0.9 * *m + 0.1 * g;
                        *v = 0.999 * *v + 0.001 * g * g;
                        let s = step as i32;
                        *p -= 3e-4 * (*m / (1.0 - 0.9_f64.powi(s)))
                            / ((*v / (1.0 - 0.999_f64.powi(s))).sqrt() + 1e-8);
                        *a += 0.25 * (*p - *a);
                    }
                }
                for ((parameter, average), expected) in parameter.iter().zip(&average).zip(&expected) {
                    assert!((f64::from(*parameter) - expected[0]).abs() < 2e-7);
                    assert!((f64::from(*average) - expected[3]).abs() < 2e-7);
                }
            });
        }
    }

    #[test]
    fn the_first_step_moves_by_the_rate() {
        let (mut parameter, mut first, mut second) = (vec![0.0; 3], vec![0.0; 3], vec![0.0; 3]);
        let options = AdamStep { rate: 0.5, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, count: 1 };
        let state =
            AdamState { parameter: &mut parameter, first: &mut first, second: &mut second, average: &mut [] };
        adam(options, 0.5, state, &[4.0, -0.25, 1.0]);
        for (parameter, expected) in parameter.iter().zip([-0.5, 0.5, -0.5]) {
            assert!((parameter - expected).abs() < 1e-5, "{parameter} {expected}");
        }
    }
}
