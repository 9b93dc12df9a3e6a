//! The processor's register-only multiply–add rate, the yardstick for every other number.

use std::time::Instant;

use crate::isa::Isa;
use crate::pool::{parallel_for, threads};
use crate::simd::{Routine, Simd};

/// Multiply–adds in flight: more than latency times issue width on any processor the kernels know.
const CHAINS: usize = 12;

/// Steps of one timed piece.
const STEPS: usize = if cfg!(miri) { 4 } else { 200_000 };

struct Chains;

impl Routine for Chains {
    type Output = f32;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        let factor = simd.splat(std::hint::black_box(0.999));
        let offset = simd.splat(std::hint::black_box(0.001));
        let mut sums = [simd.splat(1.0); CHAINS];
        for _ in 0..STEPS {
            for sum in &mut sums {
                *sum = simd.mul_add(*sum, factor, offset);
            }
        }
        let total = sums.into_iter().fold(simd.zero(), |total, sum| simd.add(total, sum));
        let mut lanes = [0.0; crate::simd::MAX_LANES];
        // SAFETY: no vector is wider than `MAX_LANES`.
        unsafe { simd.store(lanes.as_mut_ptr(), total) };
        std::hint::black_box(lanes.iter().sum())
    }
}

struct Lanes;

impl Routine for Lanes {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, _: S) -> usize {
        S::LANES
    }
}

/// The best of several measurements, in 10⁹ floating-point operations a second, of all [`threads`] together on the active
/// instruction set.
pub fn fma_peak_gflops() -> f64 {
    let isa = Isa::active();
    let operations = (2 * CHAINS * STEPS * isa.run(Lanes) * threads()) as f64;
    let rounds = if cfg!(miri) { 1 } else { 20 };
    let seconds = (0..rounds).map(|_| {
        let start = Instant::now();
        parallel_for(threads(), |_| _ = isa.run(Chains));
        start.elapsed().as_secs_f64()
    });
    operations / seconds.fold(f64::INFINITY, f64::min) / 1e9
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_processor_computes_something() {
        assert!(super::fma_peak_gflops() > 0.0);
    }
}
