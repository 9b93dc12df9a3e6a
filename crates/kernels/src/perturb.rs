//! Perturb, then mix: the rows of a batch with noise of their own, interpolated with a partner row.
//!
//! ȟᵢ = (1 + mᵢ ξᵢ) hᵢ + aᵢ ξ′ᵢ and h̃ᵢ = ζ ȟᵢ + (1 − ζ) ȟ_{s(i)}. The noise is drawn from the seed again in the backward pass
//! instead of being stored. A row that is its own partner, and ζ = 1, pass ȟᵢ on unchanged.

use crate::isa::Isa;
use crate::noise::{NOISE_BLOCK, NoiseSeed, noise_block, noise_counters};
use crate::pool::{SharedSlice, parallel_for};
use crate::scratch::Scratch;
use crate::simd::{Routine, Simd};

/// How rows are perturbed and mixed.
#[derive(Clone, Copy, Debug)]
pub struct Perturbation<'a> {
    /// Level mᵢ of the multiplicative noise of each row, `[rows]`.
    pub multiplicative: &'a [f32],
    /// Level aᵢ of the additive noise of each row, `[rows]`.
    pub additive: &'a [f32],
    /// Partner s(i) of each row, `[rows]`.
    pub partner: &'a [usize],
    /// Share ζ of a row itself.
    pub share: f32,
    /// Where the noise comes from.
    pub seed: NoiseSeed,
}

/// Numbers of a row that one chunk handles.
const CHUNK: usize = 16 * NOISE_BLOCK;

impl Perturbation<'_> {
    /// The seeds of the multiplicative and additive noise of a row.
    fn seeds(&self, row: usize, length: usize) -> [NoiseSeed; 2] {
        let stride = noise_counters(length);
        [0, 1].map(|kind| NoiseSeed {
            counter: self.seed.counter.wrapping_add((2 * row as u64 + kind) * stride),
            ..self.seed
        })
    }

    fn check(&self, input: &[f32], output: &[f32]) -> usize {
        let rows = self.partner.len();
        assert!(
            self.multiplicative.len() == rows && self.additive.len() == rows,
            "one level of each kind a row"
        );
        assert!(self.partner.iter().all(|&partner| partner < rows), "a partner is one of the rows");
        assert!(
            rows > 0 && input.len().is_multiple_of(rows) && input.len() == output.len(),
            "rows of equal length"
        );
        input.len() / rows
    }
}

/// `target = (1 + level ξ) source + offset ξ′` over part of a row.
struct Perturb<'a> {
    levels: [f32; 2],
    seeds: [NoiseSeed; 2],
    /// First noise block of the part.
    block: usize,
    source: &'a [f32],
    target: &'a mut [f32],
}

impl Routine for Perturb<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let [multiplicative, additive] = self.levels;
        let parts = self.source.chunks(NOISE_BLOCK).zip(self.target.chunks_mut(NOISE_BLOCK));
        for (index, (source, target)) in parts.enumerate() {
            target.copy_from_slice(source);
            if multiplicative != 0.0 {
                let noise = noise_block(self.seeds[0], self.block + index);
                target
                    .iter_mut()
                    .zip(&noise)
                    .for_each(|(value, noise)| *value *= 1.0 + multiplicative * noise);
            }
            if additive != 0.0 {
                let noise = noise_block(self.seeds[1], self.block + index);
                target.iter_mut().zip(&noise).for_each(|(value, noise)| *value += additive * noise);
            }
        }
    }
}

/// `target = share · a + other · b`.
struct Mix<'a> {
    shares: [f32; 2],
    a: &'a [f32],
    b: &'a [f32],
    target: &'a mut [f32],
}

impl Routine for Mix<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        let [share, other] = self.shares;
        for ((target, a), b) in self.target.iter_mut().zip(self.a).zip(self.b) {
            *target = share * a + other * b;
        }
    }
}

/// Perturbs and mixes the rows of `input` `[rows, length]` into `output`.
///
/// # Panics
/// When the lengths do not fit together or a partner is not a row.
pub fn perturb_mix_forward(perturbation: &Perturbation<'_>, input: &[f32], output: &mut [f32]) {
    let length = perturbation.check(input, output);
    let rows = perturbation.partner.len();
    let isa = Isa::active();
    let shared = SharedSlice::new(output);
    parallel_for(length.div_ceil(CHUNK), |chunk| {
        let start = chunk * CHUNK;
        let count = CHUNK.min(length - start);
        let mut perturbed = Scratch::take(rows * count);
        for (row, target) in perturbed.chunks_exact_mut(count).enumerate() {
            isa.run(Perturb {
                levels: [perturbation.multiplicative[row], perturbation.additive[row]],
                seeds: perturbation.seeds(row, length),
                block: start / NOISE_BLOCK,
                source: &input[row * length + start..][..count],
                target,
            });
        }
        let part = |row: usize| &perturbed[row * count..(row + 1) * count];
        for (row, &partner) in perturbation.partner.iter().enumerate() {
            // SAFETY: chunks are disjoint parts of each row.
            let target = unsafe { shared.range(row * length + start, count) };
            if partner == row || perturbation.share == 1.0 {
                target.copy_from_slice(part(row));
            } else {
                let shares = [perturbation.share, 1.0 - perturbation.share];
                isa.run(Mix { shares, a: part(row), b: part(partner), target });
            }
        }
    });
}

/// The gradient of [`perturb_mix_forward`]'s input, given that of its output; the noise counts as constant.
///
/// # Panics
/// When the lengths do not fit together or a partner is not a row.
pub fn perturb_mix_backward(perturbation: &Perturbation<'_>, output_gradient: &[f32], gradient: &mut [f32]) {
    let length = perturbation.check(output_gradient, gradient);
    let share = perturbation.share;
    let isa = Isa::active();
    let shared = SharedSlice::new(gradient);
    parallel_for(length.div_ceil(CHUNK), |chunk| {
        let start = chunk * CHUNK;
        let count = CHUNK.min(length - start);
        let part = |row: usize| &output_gradient[row * length + start..][..count];
        let mut mixed = Scratch::take(count);
        for row in 0..perturbation.partner.len() {
            let own = if perturbation.partner[row] == row { 1.0 } else { share };
            mixed.iter_mut().zip(part(row)).for_each(|(sum, value)| *sum = own * value);
            for (other, &partner) in perturbation.partner.iter().enumerate() {
                if partner == row && other != row {
                    mixed.iter_mut().zip(part(other)).for_each(|(sum, value)| *sum += (1.0 - share) * value);
                }
            }
            // SAFETY: chunks are disjoint parts of each row.
            let target = unsafe { shared.range(row * length + start, count) };
            isa.run(Perturb {
                levels: [perturbation.multiplicative[row], 0.0],
                seeds: perturbation.seeds(row, length),
                block: start / NOISE_BLOCK,
                source: &mixed,
                target,
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::noise::fill_normal;
    use crate::reference::numbers;

    const SEED: NoiseSeed = NoiseSeed { key: 5, counter: 1000 };

    /// The noise of each row: multiplicative, then additive.
    fn noise(rows: usize, length: usize) -> Vec<[Vec<f32>; 2]> {
        let mut counter = SEED.counter;
        let mut next = || {
            let mut values = vec![0.0; length];
            fill_normal(NoiseSeed { counter, ..SEED }, &mut values);
            counter += noise_counters(length);
            values
        };
        (0..rows).map(|_| [next(), next()]).collect()
    }

    #[test]
    fn agrees_with_the_equations_forward_and_backward() {
        for length in [1, 33, 700] {
            let rows = 4;
            let (multiplicative, additive) = ([0.2, 0.0, 0.5, 0.1], [0.4, 0.3, 0.0, 0.1]);
            let partner = [2, 1, 3, 0];
            let p = Perturbation {
                multiplicative: &multiplicative,
                additive: &additive,
                partner: &partner,
                share: 0.25,
                seed: SEED,
            };
            let (input, given) = (numbers(rows * length, 1), numbers(rows * length, 2));
            let (mut output, mut gradient) = (vec![0.0; rows * length], vec![0.0; rows * length]);
            perturb_mix_forward(&p, &input, &mut output);
            perturb_mix_backward(&p, &given, &mut gradient);
            let noise = noise(rows, length);
            let factor = |row: usize, i: usize| 1.0 + multiplicative[row] * noise[row][0][i];
            let check = |row: usize, i: usize| {
                factor(row, i) * input[row * length + i] + additive[row] * noise[row][1][i]
            };
            for row in 0..rows {
                let from = partner.iter().position(|&partner| partner == row).expect("a permutation");
                for i in 0..length {
                    let expected = 0.25 * check(row, i) + 0.75 * check(partner[row], i);
                    assert!((output[row * length + i] - expected).abs() < 1e-5);
                    let expected =
                        factor(row, i) * (0.25 * given[row * length + i] + 0.75 * given[from * length + i]);
                    assert!((gradient[row * length + i] - expected).abs() < 1e-5);
                }
            }
        }
    }

    #[test]
    fn without_noise_and_with_full_share_nothing_changes() {
        let input = numbers(2 * 50, 3);
        let mut output = vec![0.0; 100];
        let p = Perturbation {
            multiplicative: &[0.0; 2],
            additive: &[0.0; 2],
            partner: &[1, 0],
            share: 1.0,
            seed: SEED,
        };
        perturb_mix_forward(&p, &input, &mut output);
        assert_eq!(output, input);
        let own = Perturbation { partner: &[0, 1], share: 0.3, ..p };
        perturb_mix_forward(&own, &input, &mut output);
        assert_eq!(output, input);
    }
}
