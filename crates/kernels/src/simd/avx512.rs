//! Vector operations on AVX-512: sixteen lanes, thirty-two registers, masked loads and stores.

use std::arch::x86_64::*;

use super::{Routine, Simd, avx2};

/// Proof that the processor has AVX-512 F, VL, DQ, BW and FMA.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

/// Compiles and runs `routine` for AVX-512.
///
/// # Safety
/// The processor must support the features named below.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
pub(crate) unsafe fn run_avx512<R: Routine>(routine: R) -> R::Output {
    routine.run(Avx512(()))
}

#[inline(always)]
fn first(count: usize) -> __mmask16 {
    debug_assert!(count <= 16);
    ((1u32 << count) - 1) as __mmask16
}

// SAFETY of every block below: the token proves the features; pointers are the caller's promise.
impl Simd for Avx512 {
    type Vector = __m512;
    const LANES: usize = 16;
    const REGISTERS: usize = 32;

    #[inline(always)]
    fn call<R: Routine>(self, routine: R) -> R::Output {
        // SAFETY: the token proves the features.
        unsafe { run_avx512(routine) }
    }
    #[inline(always)]
    fn splat(self, value: f32) -> __m512 {
        // SAFETY: the token proves the features.
        unsafe { _mm512_set1_ps(value) }
    }
    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves the features.
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves the features.
        unsafe { _mm512_sub_ps(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves the features.
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves the features.
        unsafe { _mm512_div_ps(a, b) }
    }
    #[inline(always)]
    fn mul_add(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: the token proves the features.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: the token proves the features.
        unsafe { _mm512_max_ps(a, b) }
    }
    #[inline(always)]
    fn sqrt(self, a: __m512) -> __m512 {
        // SAFETY: the token proves the features.
        unsafe { _mm512_sqrt_ps(a) }
    }
    #[inline(always)]
    fn where_positive(self, test: __m512, value: __m512) -> __m512 {
        // SAFETY: the token proves the features.
        unsafe {
            let mask = _mm512_cmp_ps_mask::<_CMP_GT_OQ>(test, _mm512_setzero_ps());
            _mm512_maskz_mov_ps(mask, value)
        }
    }
    #[inline(always)]
    unsafe fn load(self, source: *const f32) -> __m512 {
        // SAFETY: the caller vouches for 16 numbers.
        unsafe { _mm512_loadu_ps(source) }
    }
    #[inline(always)]
    unsafe fn store(self, target: *mut f32, value: __m512) {
        // SAFETY: the caller vouches for 16 numbers.
        unsafe { _mm512_storeu_ps(target, value) }
    }
    #[inline(always)]
    unsafe fn load_first(self, source: *const f32, count: usize) -> __m512 {
        // SAFETY: masked lanes are not read.
        unsafe { _mm512_maskz_loadu_ps(first(count), source) }
    }
    #[inline(always)]
    unsafe fn store_first(self, target: *mut f32, count: usize, value: __m512) {
        // SAFETY: masked lanes are not written.
        unsafe { _mm512_mask_storeu_ps(target, first(count), value) }
    }
    #[inline(always)]
    unsafe fn transpose8(
        self,
        source: *const f32,
        source_stride: usize,
        target: *mut f32,
        target_stride: usize,
    ) {
        // SAFETY: AVX-512 processors have AVX2; the blocks are the caller's promise.
        unsafe { avx2::transpose8(source, source_stride, target, target_stride) }
    }
}
