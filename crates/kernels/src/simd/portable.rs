//! Vector operations in plain Rust: four lanes, which every 64-bit target can hold in one register.

use super::{Routine, Simd};

/// The token of the portable set, which needs no proof.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

/// Four numbers kept together.
#[derive(Clone, Copy)]
#[repr(C, align(16))]
pub(crate) struct Four([f32; 4]);

#[inline(always)]
fn map2(a: Four, b: Four, f: impl Fn(f32, f32) -> f32) -> Four {
    Four([f(a.0[0], b.0[0]), f(a.0[1], b.0[1]), f(a.0[2], b.0[2]), f(a.0[3], b.0[3])])
}

/// `a * b + c`, fused only where the target has an instruction for it: elsewhere it would be a library call.
#[inline(always)]
fn mul_add(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(any(target_arch = "aarch64", target_feature = "fma")) { a.mul_add(b, c) } else { a * b + c }
}

impl Simd for Portable {
    type Vector = Four;
    const LANES: usize = 4;
    const REGISTERS: usize = if cfg!(target_arch = "aarch64") { 32 } else { 16 };

    #[inline(always)]
    fn call<R: Routine>(self, routine: R) -> R::Output {
        routine.run(self)
    }
    #[inline(always)]
    fn splat(self, value: f32) -> Four {
        Four([value; 4])
    }
    #[inline(always)]
    fn add(self, a: Four, b: Four) -> Four {
        map2(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, a: Four, b: Four) -> Four {
        map2(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, a: Four, b: Four) -> Four {
        map2(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, a: Four, b: Four) -> Four {
        map2(a, b, |a, b| a / b)
    }
    #[inline(always)]
    fn mul_add(self, a: Four, b: Four, c: Four) -> Four {
        Four([
            mul_add(a.0[0], b.0[0], c.0[0]),
            mul_add(a.0[1], b.0[1], c.0[1]),
            mul_add(a.0[2], b.0[2], c.0[2]),
            mul_add(a.0[3], b.0[3], c.0[3]),
        ])
    }
    #[inline(always)]
    fn max(self, a: Four, b: Four) -> Four {
        map2(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn sqrt(self, a: Four) -> Four {
        map2(a, a, |a, _| a.sqrt())
    }
    #[inline(always)]
    fn where_positive(self, test: Four, value: Four) -> Four {
        map2(test, value, |test, value| if test > 0.0 { value } else { 0.0 })
    }
    #[inline(always)]
    unsafe fn load(self, source: *const f32) -> Four {
        // SAFETY: the caller vouches for 4 numbers.
        Four(unsafe { source.cast::<[f32; 4]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn store(self, target: *mut f32, value: Four) {
        // SAFETY: the caller vouches for 4 numbers.
        unsafe { target.cast::<[f32; 4]>().write_unaligned(value.0) }
    }
    #[inline(always)]
    unsafe fn load_first(self, source: *const f32, count: usize) -> Four {
        let mut lanes = [0.0; 4];
        // SAFETY: the caller vouches for `count` numbers, and `count` is at most 4.
        unsafe { std::ptr::copy_nonoverlapping(source, lanes.as_mut_ptr(), count.min(4)) };
        Four(lanes)
    }
    #[inline(always)]
    unsafe fn store_first(self, target: *mut f32, count: usize, value: Four) {
        // SAFETY: the caller vouches for `count` numbers, and `count` is at most 4.
        unsafe { std::ptr::copy_nonoverlapping(value.0.as_ptr(), target, count.min(4)) };
    }
}
