//! Which instruction set the kernels run on.
//!
//! The choice is made once at run time: the widest set the processor has, unless `DPCL_ISA` or a call to [`Isa::activate`]
//! holds the program to a narrower one. Results are bit-identical between runs on one instruction set, not between sets.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::simd::{Portable, Routine};

/// The environment variable that holds the program to one instruction set.
pub const ISA_VARIABLE: &str = "DPCL_ISA";

/// An instruction set the kernels are written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    /// x86-64 with AVX-512 F, VL, DQ and BW: sixteen `f32` lanes, thirty-two registers.
    Avx512,
    /// x86-64 with AVX2 and FMA: eight `f32` lanes, sixteen registers.
    Avx2,
    /// Plain Rust that runs anywhere and that the compiler vectorises as far as the target allows.
    Portable,
}

/// Why an instruction set could not be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IsaError {
    /// The name is none of `avx512`, `avx2`, `portable`.
    Unknown(String),
    /// This processor cannot run it.
    Unsupported(Isa),
}

impl fmt::Display for IsaError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                write!(formatter, "unknown instruction set `{name}` (expected avx512, avx2 or portable)")
            }
            Self::Unsupported(isa) => {
                write!(formatter, "this processor does not support the instruction set `{isa}`")
            }
        }
    }
}

impl std::error::Error for IsaError {}

impl fmt::Display for Isa {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl std::str::FromStr for Isa {
    type Err = IsaError;

    fn from_str(name: &str) -> Result<Self, IsaError> {
        Self::ALL.into_iter().find(|isa| isa.name() == name).ok_or_else(|| IsaError::Unknown(name.to_owned()))
    }
}

/// Zero: not chosen yet; otherwise one more than the position in [`Isa::ALL`].
static ACTIVE: AtomicU8 = AtomicU8::new(0);

thread_local! {
    static OVERRIDE: Cell<Option<Isa>> = const { Cell::new(None) };
}

impl Isa {
    /// Every instruction set, widest first.
    pub const ALL: [Self; 3] = [Self::Avx512, Self::Avx2, Self::Portable];

    /// The name used by `DPCL_ISA`, records and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Portable => "portable",
        }
    }

    /// Whether this processor can run it.
    pub fn is_supported(self) -> bool {
        match self {
            Self::Portable => true,
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512vl")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512bw")
                    && Self::Avx2.is_supported()
            }
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Self::Avx2 => is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma"),
            #[cfg(not(all(target_arch = "x86_64", not(miri))))]
            _ => false,
        }
    }

    /// The instruction sets this processor can run, widest first.
    pub fn supported() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|isa| isa.is_supported())
    }

    /// The widest instruction set this processor has.
    pub fn detect() -> Self {
        Self::supported().next().unwrap_or(Self::Portable)
    }

    /// What `DPCL_ISA` asks for, or the widest supported set when it is not set or empty.
    pub fn from_environment() -> Result<Self, IsaError> {
        match std::env::var(ISA_VARIABLE) {
            Ok(name) if !name.is_empty() => {
                let isa: Self = name.parse()?;
                if isa.is_supported() { Ok(isa) } else { Err(IsaError::Unsupported(isa)) }
            }
            _ => Ok(Self::detect()),
        }
    }

    /// Makes this the instruction set of the whole program from now on.
    pub fn activate(self) -> Result<(), IsaError> {
        if !self.is_supported() {
            return Err(IsaError::Unsupported(self));
        }
        let position = Self::ALL.iter().position(|&isa| isa == self).unwrap_or(0);
        ACTIVE.store(position as u8 + 1, Ordering::Relaxed);
        Ok(())
    }

    /// The instruction set in use. The first call settles it; a `DPCL_ISA` that [`Isa::from_environment`] would refuse
    /// is ignored here, so a program that wants to report it calls that function first.
    pub fn active() -> Self {
        if let Some(isa) = OVERRIDE.get() {
            return isa;
        }
        match ACTIVE.load(Ordering::Relaxed) {
            0 => {
                let isa = Self::from_environment().unwrap_or_else(|_| Self::detect());
                let _ = isa.activate();
                isa
            }
            position => Self::ALL[position as usize - 1],
        }
    }

    /// Runs `body` with kernels called from this thread held to `self`; meant for tests and benchmarks.
    ///
    /// # Panics
    /// When this processor does not support the instruction set.
    pub fn scope<T>(self, body: impl FnOnce() -> T) -> T {
        assert!(self.is_supported(), "this processor does not support {self}");
        let before = OVERRIDE.replace(Some(self));
        let result = body();
        OVERRIDE.set(before);
        result
    }

    /// Runs a routine compiled for this instruction set.
    #[inline]
    pub(crate) fn run<R: Routine>(self, routine: R) -> R::Output {
        match self {
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: an `Isa` other than `Portable` only becomes active after `is_supported` said yes.
            Self::Avx512 => unsafe { crate::simd::run_avx512(routine) },
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            // SAFETY: as above.
            Self::Avx2 => unsafe { crate::simd::run_avx2(routine) },
            _ => routine.run(Portable),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for isa in Isa::ALL {
            assert_eq!(isa.name().parse(), Ok(isa));
        }
        let error = "sse9".parse::<Isa>().unwrap_err();
        assert!(error.to_string().contains("unknown instruction set `sse9`"));
    }

    #[test]
    fn portable_is_always_there_and_detection_is_supported() {
        assert!(Isa::Portable.is_supported());
        assert!(Isa::detect().is_supported());
    }

    #[test]
    fn scope_is_undone() {
        let before = Isa::active();
        Isa::Portable.scope(|| assert_eq!(Isa::active(), Isa::Portable));
        assert_eq!(Isa::active(), before);
    }
}
