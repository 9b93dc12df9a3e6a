//! Normal noise from a key and a counter.
//!
//! Threefry-2×32 with 13 rounds turns each counter into two random words, and Box–Muller turns these into two normal numbers.
//! Only exactly rounded operations are used and nothing is fused, so the numbers are the same on every instruction set, and
//! since each depends on its counter alone they are the same for any number of threads. Noise can thus be drawn again instead
//! of stored. Resolution: 24 bits in the radius, so no number is beyond 5.8.

use crate::isa::Isa;
use crate::pool::{SharedSlice, parallel_for};
use crate::simd::{Routine, Simd};

/// Where a sequence of noise starts: a key that names the generator and a counter within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NoiseSeed {
    /// Different keys give unrelated sequences.
    pub key: u64,
    /// Position in the sequence; drawing `n` numbers uses [`noise_counters`]`(n)` positions.
    pub counter: u64,
}

/// Counters evaluated together.
const LANES: usize = 16;

/// Numbers that [`LANES`] counters give.
pub(crate) const NOISE_BLOCK: usize = 2 * LANES;

/// Counters used up by drawing `count` numbers.
pub fn noise_counters(count: usize) -> u64 {
    (count.div_ceil(NOISE_BLOCK) * LANES) as u64
}

/// Rotations of Threefry-2×32.
const ROTATIONS: [u32; 8] = [13, 15, 26, 6, 17, 29, 16, 24];

#[inline(always)]
fn threefry(key: [u32; 3], counter: u64) -> [u32; 2] {
    let mut a = (counter as u32).wrapping_add(key[0]);
    let mut b = ((counter >> 32) as u32).wrapping_add(key[1]);
    let mut round = 0;
    while round < 13 {
        a = a.wrapping_add(b);
        b = b.rotate_left(ROTATIONS[round % 8]) ^ a;
        round += 1;
        if round.is_multiple_of(4) {
            let injection = round / 4;
            a = a.wrapping_add(key[injection % 3]);
            b = b.wrapping_add(key[(injection + 1) % 3]).wrapping_add(injection as u32);
        }
    }
    [a, b]
}

/// Natural logarithm of a number in (0, 1], with the polynomial of Cephes.
#[inline(always)]
fn logarithm(value: f32) -> f32 {
    const ROOT_HALF_BITS: u32 = 0x3F35_04F3;
    let shifted = value.to_bits().wrapping_sub(ROOT_HALF_BITS);
    let exponent = (shifted as i32) >> 23;
    let x = f32::from_bits((shifted & 0x007F_FFFF).wrapping_add(ROOT_HALF_BITS)) - 1.0;
    let exponent = exponent as f32;
    let square = x * x;
    let mut y = 7.037_683_6e-2;
    for coefficient in [
        -0.115_146_1,
        0.116_769_99,
        -0.124_201_41,
        0.142_493_22,
        -0.166_680_57,
        0.200_007_15,
        -0.249_999_94,
        0.333_333_3,
    ] {
        y = y * x + coefficient;
    }
    let y = y * x * square - exponent * 2.121_944_4e-4 - 0.5 * square;
    x + y + exponent * 0.693_359_4
}

/// Cosine and sine of `turn / 2³²` full turns.
#[inline(always)]
fn circle(turn: u32) -> (f32, f32) {
    let quadrant = turn.wrapping_add(1 << 29) >> 30;
    let angle = turn.wrapping_sub(quadrant << 30) as i32 as f32
        * (std::f32::consts::FRAC_PI_2 / (1_u32 << 30) as f32);
    let square = angle * angle;
    let sine = ((-1.951_529_6e-4 * square + 8.332_161e-3) * square - 0.166_666_55) * square * angle + angle;
    let cosine = ((2.443_315_7e-5 * square - 1.388_731_6e-3) * square + 4.166_664_6e-2) * square * square
        - 0.5 * square
        + 1.0;
    let swapped = 0_u32.wrapping_sub(quadrant & 1);
    let (sine, cosine) = (sine.to_bits(), cosine.to_bits());
    let first = (cosine & !swapped) | (sine & swapped);
    let second = (sine & !swapped) | (cosine & swapped);
    let first_sign = (quadrant.wrapping_add(1) & 2) << 30;
    let second_sign = (quadrant & 2) << 30;
    (f32::from_bits(first ^ first_sign), f32::from_bits(second ^ second_sign))
}

/// The numbers of one block of counters.
#[inline(always)]
pub(crate) fn noise_block(seed: NoiseSeed, block: usize) -> [f32; NOISE_BLOCK] {
    let (low, high) = (seed.key as u32, (seed.key >> 32) as u32);
    let key = [low, high, 0x1BD1_1BDA ^ low ^ high];
    let first = seed.counter.wrapping_add((block * LANES) as u64);
    let mut result = [0.0; NOISE_BLOCK];
    for lane in 0..LANES {
        let [a, b] = threefry(key, first.wrapping_add(lane as u64));
        let radius = (-2.0 * logarithm(((a >> 8) + 1) as f32 * (1.0 / (1 << 24) as f32))).sqrt();
        let (cosine, sine) = circle(b);
        result[lane] = radius * cosine;
        result[LANES + lane] = radius * sine;
    }
    result
}

/// Blocks drawn by one chunk.
const CHUNK_BLOCKS: usize = 512;

/// Fills `target` with independent standard normal numbers.
pub fn fill_normal(seed: NoiseSeed, target: &mut [f32]) {
    let isa = Isa::active();
    let length = target.len();
    let shared = SharedSlice::new(target);
    parallel_for(length.div_ceil(CHUNK_BLOCKS * NOISE_BLOCK), |chunk| {
        let start = chunk * CHUNK_BLOCKS * NOISE_BLOCK;
        let count = (CHUNK_BLOCKS * NOISE_BLOCK).min(length - start);
        // SAFETY: chunks are disjoint.
        let target = unsafe { shared.range(start, count) };
        isa.run(Fill { seed, first: chunk * CHUNK_BLOCKS, target });
    });
}

struct Fill<'a> {
    seed: NoiseSeed,
    first: usize,
    target: &'a mut [f32],
}

impl Routine for Fill<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, _: S) {
        for (block, target) in self.target.chunks_mut(NOISE_BLOCK).enumerate() {
            let values = noise_block(self.seed, self.first + block);
            if target.len() == NOISE_BLOCK {
                target.copy_from_slice(&values);
            } else {
                target.copy_from_slice(&values[..target.len()]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::scope_threads;

    const SEED: NoiseSeed = NoiseSeed { key: 0x0123_4567_89AB_CDEF, counter: 77 };

    #[test]
    fn threefry_gives_the_published_words() {
        // Known answers of Random123 for 13 rounds.
        let key = |low: u32, high: u32| [low, high, 0x1BD1_1BDA ^ low ^ high];
        assert_eq!(threefry(key(0, 0), 0), [0x9D1C_5EC6, 0x8BD5_0731]);
        assert_eq!(threefry(key(u32::MAX, u32::MAX), u64::MAX), [0xFD36_D048, 0x2D17_272C]);
    }

    #[test]
    fn the_functions_are_accurate() {
        for step in 1..2000_u32 {
            let value = step as f32 / 2000.0;
            assert!(
                (f64::from(logarithm(value)) - f64::from(value).ln()).abs()
                    < 3e-7 * (1.0 + f64::from(value).ln().abs())
            );
            let turn = step.wrapping_mul(0x9E37_79B9);
            let angle = f64::from(turn) / 2_f64.powi(32) * std::f64::consts::TAU;
            let (cosine, sine) = circle(turn);
            assert!(
                (f64::from(cosine) - angle.cos()).abs() < 2e-7
                    && (f64::from(sine) - angle.sin()).abs() < 2e-7
            );
        }
    }

    #[test]
    fn the_same_on_every_instruction_set_and_any_number_of_threads() {
        let length = if cfg!(miri) { 100 } else { 3 * CHUNK_BLOCKS * NOISE_BLOCK + 5 };
        let draw = |isa: Isa, threads| {
            let mut values = vec![0.0; length];
            isa.scope(|| scope_threads(threads, || fill_normal(SEED, &mut values)));
            values
        };
        let expected = draw(Isa::Portable, 1);
        for isa in Isa::supported() {
            assert!(draw(isa, 1) == expected && draw(isa, 4) == expected, "{isa}");
        }
        let mut later = vec![0.0; 64];
        fill_normal(
            NoiseSeed { counter: SEED.counter + noise_counters(NOISE_BLOCK), ..SEED },
            &mut later[..36],
        );
        assert_eq!(later[..36], expected[NOISE_BLOCK..NOISE_BLOCK + 36]);
    }

    #[test]
    fn moments_are_those_of_the_standard_normal() {
        if cfg!(miri) {
            return;
        }
        let mut values = vec![0.0; 1 << 20];
        fill_normal(SEED, &mut values);
        let moment = |power: i32| {
            values.iter().map(|&value| f64::from(value).powi(power)).sum::<f64>() / values.len() as f64
        };
        for (power, expected, tolerance) in
            [(1, 0.0, 0.004), (2, 1.0, 0.006), (3, 0.0, 0.015), (4, 3.0, 0.04), (6, 15.0, 0.6)]
        {
            assert!((moment(power) - expected).abs() < tolerance, "moment {power} is {}", moment(power));
        }
        let beyond = values.iter().filter(|value| value.abs() > 2.0).count() as f64 / values.len() as f64;
        assert!((beyond - 0.0455).abs() < 0.001);
        let lagged: f64 =
            values.windows(2).map(|pair| f64::from(pair[0] * pair[1])).sum::<f64>() / values.len() as f64;
        assert!(lagged.abs() < 0.004);
    }
}
