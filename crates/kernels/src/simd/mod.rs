//! The vector operations the kernels are written in, once for every instruction set.
//!
//! A kernel is a [`Routine`]: a value with a generic `run`. [`crate::isa::Isa::run`] compiles it under the target features of
//! the chosen set. The token passed to `run` exists only inside such a call, which is what makes the arithmetic methods safe;
//! memory is reached through raw pointers and stays the kernel's own responsibility.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx512;
mod portable;

#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) use avx2::run_avx2;
#[cfg(all(target_arch = "x86_64", not(miri)))]
pub(crate) use avx512::run_avx512;
pub(crate) use portable::Portable;

/// The widest vector of any instruction set, in lanes; scratch buffers are padded by it.
pub(crate) const MAX_LANES: usize = 16;

/// Asks for the cache line at `address`, which need not be accessible.
#[inline(always)]
pub(crate) fn prefetch(address: *const f32) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch never faults, and every x86-64 processor has it.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// A piece of work that can be compiled for any instruction set.
pub(crate) trait Routine {
    /// What it returns.
    type Output;

    /// Does the work with the vector operations of `simd`. Implementations are `#[inline(always)]` so that they are
    /// compiled inside the function that carries the target features.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Vector operations of one instruction set; a value proves that the processor has it.
pub(crate) trait Simd: Copy + Send + Sync + 'static {
    /// `LANES` numbers of 32 bits.
    type Vector: Copy;

    /// Numbers in a vector.
    const LANES: usize;

    /// Vector registers of the processor.
    const REGISTERS: usize;

    /// Calls a routine as a function of its own rather than inlining it.
    fn call<R: Routine>(self, routine: R) -> R::Output;

    /// The same number in every lane.
    fn splat(self, value: f32) -> Self::Vector;
    /// Lane-wise `a + b`.
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Lane-wise `a - b`.
    fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Lane-wise `a * b`.
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Lane-wise `a / b`.
    fn div(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Lane-wise `a * b + c`.
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// Lane-wise larger number.
    fn max(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Lane-wise square root.
    fn sqrt(self, a: Self::Vector) -> Self::Vector;
    /// `value` in the lanes where `test` is above zero, zero elsewhere.
    fn where_positive(self, test: Self::Vector, value: Self::Vector) -> Self::Vector;

    /// Zero in every lane.
    #[inline(always)]
    fn zero(self) -> Self::Vector {
        self.splat(0.0)
    }

    /// Reads `LANES` numbers.
    ///
    /// # Safety
    /// `source` must be readable for `LANES` numbers.
    unsafe fn load(self, source: *const f32) -> Self::Vector;

    /// Writes `LANES` numbers.
    ///
    /// # Safety
    /// `target` must be writable for `LANES` numbers.
    unsafe fn store(self, target: *mut f32, value: Self::Vector);

    /// Reads the first `count` numbers (at most `LANES`), zero in the other lanes.
    ///
    /// # Safety
    /// `source` must be readable for `count` numbers.
    unsafe fn load_first(self, source: *const f32, count: usize) -> Self::Vector;

    /// Writes the first `count` lanes (at most `LANES`).
    ///
    /// # Safety
    /// `target` must be writable for `count` numbers.
    unsafe fn store_first(self, target: *mut f32, count: usize, value: Self::Vector);

    /// Copies an 8×8 block transposed: `target[j * target_stride + i] = source[i * source_stride + j]`.
    ///
    /// # Safety
    /// Both blocks must be accessible and must not overlap.
    #[inline(always)]
    unsafe fn transpose8(
        self,
        source: *const f32,
        source_stride: usize,
        target: *mut f32,
        target_stride: usize,
    ) {
        for i in 0..8 {
            for j in 0..8 {
                // SAFETY: the caller vouches for all 64 places of both blocks.
                unsafe { *target.add(j * target_stride + i) = *source.add(i * source_stride + j) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Isa;

    struct Everything;

    impl Routine for Everything {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            let a: Vec<f32> = (0..S::LANES).map(|i| i as f32 - 2.5).collect();
            let b: Vec<f32> = (0..S::LANES).map(|i| 0.5 * i as f32 + 1.0).collect();
            let check = |vector: S::Vector, expected: &dyn Fn(f32, f32) -> f32| {
                let mut out = vec![0.0; S::LANES];
                // SAFETY: `out` holds `LANES` numbers.
                unsafe { simd.store(out.as_mut_ptr(), vector) };
                for i in 0..S::LANES {
                    assert_eq!(out[i], expected(a[i], b[i]));
                }
            };
            // SAFETY: both vectors hold `LANES` numbers.
            let (x, y) = unsafe { (simd.load(a.as_ptr()), simd.load(b.as_ptr())) };
            check(simd.add(x, y), &|x, y| x + y);
            check(simd.sub(x, y), &|x, y| x - y);
            check(simd.mul(x, y), &|x, y| x * y);
            check(simd.div(x, y), &|x, y| x / y);
            check(simd.max(x, y), &|x, y| x.max(y));
            check(simd.mul_add(x, y, y), &|x, y| x * y + y);
            check(simd.sqrt(y), &|_, y| y.sqrt());
            check(simd.where_positive(x, y), &|x, y| if x > 0.0 { y } else { 0.0 });
            for count in 0..=S::LANES {
                let mut out = vec![7.0; S::LANES];
                // SAFETY: `a` and `out` hold `LANES` numbers and `count` is at most that.
                unsafe { simd.store_first(out.as_mut_ptr(), count, simd.load_first(a.as_ptr(), count)) };
                for i in 0..S::LANES {
                    assert_eq!(out[i], if i < count { a[i] } else { 7.0 });
                }
            }
            let block: Vec<f32> = (0..8 * 9).map(|i| i as f32).collect();
            let mut turned = vec![0.0; 8 * 11];
            // SAFETY: rows of 9 and 11 numbers hold 8 each.
            unsafe { simd.transpose8(block.as_ptr(), 9, turned.as_mut_ptr(), 11) };
            for i in 0..8 {
                for j in 0..8 {
                    assert_eq!(turned[j * 11 + i], block[i * 9 + j]);
                }
            }
        }
    }

    #[test]
    fn operations_agree_with_scalar_arithmetic() {
        for isa in Isa::supported() {
            isa.run(Everything);
        }
    }
}
