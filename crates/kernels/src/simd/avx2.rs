//! Vector operations on AVX2 with FMA: eight lanes, sixteen registers.

use std::arch::x86_64::*;

use super::{Routine, Simd};

/// Proof that the processor has AVX2 and FMA.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(());

/// Compiles and runs `routine` for AVX2 with FMA.
///
/// # Safety
/// The processor must support both.
#[target_feature(enable = "avx2,fma")]
pub(crate) unsafe fn run_avx2<R: Routine>(routine: R) -> R::Output {
    routine.run(Avx2(()))
}

/// Eight ones followed by eight zeros, read at an offset to get the mask of the first lanes.
static MASK: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

#[inline(always)]
fn first(count: usize) -> __m256i {
    assert!(count <= 8);
    // SAFETY: `8 - count + 8` is at most 16, the length of the table; the token of the caller proves the features.
    unsafe { _mm256_loadu_si256(MASK.as_ptr().add(8 - count).cast()) }
}

/// Copies an 8×8 block transposed.
///
/// # Safety
/// The processor must have AVX2; both blocks must be accessible and must not overlap.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn transpose8(
    source: *const f32,
    source_stride: usize,
    target: *mut f32,
    target_stride: usize,
) {
    // SAFETY: the caller vouches for eight rows of eight numbers on both sides.
    unsafe {
        let row = |i: usize| _mm256_loadu_ps(source.add(i * source_stride));
        let pair =
            |i: usize| (_mm256_unpacklo_ps(row(i), row(i + 1)), _mm256_unpackhi_ps(row(i), row(i + 1)));
        let ((a0, a1), (a2, a3), (a4, a5), (a6, a7)) = (pair(0), pair(2), pair(4), pair(6));
        let b0 = _mm256_shuffle_ps::<0x44>(a0, a2);
        let b1 = _mm256_shuffle_ps::<0xEE>(a0, a2);
        let b2 = _mm256_shuffle_ps::<0x44>(a1, a3);
        let b3 = _mm256_shuffle_ps::<0xEE>(a1, a3);
        let b4 = _mm256_shuffle_ps::<0x44>(a4, a6);
        let b5 = _mm256_shuffle_ps::<0xEE>(a4, a6);
        let b6 = _mm256_shuffle_ps::<0x44>(a5, a7);
        let b7 = _mm256_shuffle_ps::<0xEE>(a5, a7);
        let put = |j: usize, value: __m256| _mm256_storeu_ps(target.add(j * target_stride), value);
        put(0, _mm256_permute2f128_ps::<0x20>(b0, b4));
        put(1, _mm256_permute2f128_ps::<0x20>(b1, b5));
        put(2, _mm256_permute2f128_ps::<0x20>(b2, b6));
        put(3, _mm256_permute2f128_ps::<0x20>(b3, b7));
        put(4, _mm256_permute2f128_ps::<0x31>(b0, b4));
        put(5, _mm256_permute2f128_ps::<0x31>(b1, b5));
        put(6, _mm256_permute2f128_ps::<0x31>(b2, b6));
        put(7, _mm256_permute2f128_ps::<0x31>(b3, b7));
    }
}

impl Simd for Avx2 {
    type Vector = __m256;
    const LANES: usize = 8;
    const REGISTERS: usize = 16;

    #[inline(always)]
    fn call<R: Routine>(self, routine: R) -> R::Output {
        // SAFETY: the token proves the features.
        unsafe { run_avx2(routine) }
    }
    #[inline(always)]
    fn splat(self, value: f32) -> __m256 {
        // SAFETY: the token proves the features.
        unsafe { _mm256_set1_ps(value) }
    }
    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token proves the features.
        unsafe { _mm256_add_ps(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token proves the features.
        unsafe { _mm256_sub_ps(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token proves the features.
        unsafe { _mm256_mul_ps(a, b) }
    }
    #[inline(always)]
    fn div(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token proves the features.
        unsafe { _mm256_div_ps(a, b) }
    }
    #[inline(always)]
    fn mul_add(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        // SAFETY: the token proves the features.
        unsafe { _mm256_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn max(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: the token proves the features.
        unsafe { _mm256_max_ps(a, b) }
    }
    #[inline(always)]
    fn sqrt(self, a: __m256) -> __m256 {
        // SAFETY: the token proves the features.
        unsafe { _mm256_sqrt_ps(a) }
    }
    #[inline(always)]
    fn where_positive(self, test: __m256, value: __m256) -> __m256 {
        // SAFETY: the token proves the features.
        unsafe { _mm256_and_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(test, _mm256_setzero_ps()), value) }
    }
    #[inline(always)]
    unsafe fn load(self, source: *const f32) -> __m256 {
        // SAFETY: the caller vouches for 8 numbers.
        unsafe { _mm256_loadu_ps(source) }
    }
    #[inline(always)]
    unsafe fn store(self, target: *mut f32, value: __m256) {
        // SAFETY: the caller vouches for 8 numbers.
        unsafe { _mm256_storeu_ps(target, value) }
    }
    #[inline(always)]
    unsafe fn load_first(self, source: *const f32, count: usize) -> __m256 {
        // SAFETY: masked lanes are not read.
        unsafe { _mm256_maskload_ps(source, first(count)) }
    }
    #[inline(always)]
    unsafe fn store_first(self, target: *mut f32, count: usize, value: __m256) {
        // SAFETY: masked lanes are not written.
        unsafe { _mm256_maskstore_ps(target, first(count), value) }
    }
    #[inline(always)]
    unsafe fn transpose8(
        self,
        source: *const f32,
        source_stride: usize,
        target: *mut f32,
        target_stride: usize,
    ) {
        // SAFETY: the token proves AVX2; the blocks are the caller's promise.
        unsafe { transpose8(source, source_stride, target, target_stride) }
    }
}
