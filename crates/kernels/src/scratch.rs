//! Working memory that is kept from step to step.
//!
//! Each thread keeps the buffers it has used and hands them out again, so a training step allocates nothing after the first.
//! A buffer's content is whatever its last user left there.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

use crate::simd::MAX_LANES;

/// Numbers in a cache line, to which buffers are aligned.
const LINE: usize = 16;

/// Buffers kept per thread; further ones are given back to the allocator, the one unused for longest first.
const KEPT: usize = 48;

thread_local! {
    static FREE: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// How many times larger than asked for a kept buffer may be to be handed out.
const SLACK: usize = 8;

/// A borrowed buffer of numbers, aligned to a cache line and readable for one vector past its end.
pub(crate) struct Scratch {
    storage: Vec<f32>,
    offset: usize,
    length: usize,
}

impl Scratch {
    /// A buffer of `length` numbers of unspecified value.
    pub(crate) fn take(length: usize) -> Self {
        let needed = length + LINE + MAX_LANES;
        let storage = FREE.with_borrow_mut(|free| {
            let fitting = free
                .iter()
                .enumerate()
                .rev()
                .filter(|(_, buffer)| (needed..=SLACK * needed).contains(&buffer.len()));
            let best = fitting.min_by_key(|(_, buffer)| buffer.len()).map(|(index, _)| index);
            best.map(|index| free.remove(index))
        });
        let storage = storage.unwrap_or_else(|| vec![0.0; needed]);
        let misaligned = storage.as_ptr().align_offset(LINE * size_of::<f32>());
        let offset = if misaligned <= LINE { misaligned } else { 0 };
        Self { storage, offset, length }
    }

    /// The first number's address, from which one vector more than the buffer's length may be read.
    pub(crate) fn pointer(&self) -> *const f32 {
        self.storage[self.offset..].as_ptr()
    }
}

impl Deref for Scratch {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.storage[self.offset..self.offset + self.length]
    }
}

impl DerefMut for Scratch {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.storage[self.offset..self.offset + self.length]
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let storage = std::mem::take(&mut self.storage);
        let _ = FREE.try_with(|free| {
            let mut free = free.borrow_mut();
            free.push(storage);
            if free.len() > KEPT {
                free.remove(0);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_aligned_and_reused() {
        let first = Scratch::take(100);
        assert!(cfg!(miri) || (first.as_ptr() as usize).is_multiple_of(64));
        let address = first.as_ptr();
        drop(first);
        let second = Scratch::take(90);
        assert_eq!(second.as_ptr(), address);
        assert_eq!(second.len(), 90);
    }
}
