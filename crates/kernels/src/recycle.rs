//! Buffers that outlive the tensors they held: a training step needs the same sizes again and again, and asking the
//! system for fresh pages each time would cost more than some kernels do.
//!
//! A [`Buffer`] is aligned to a cache line and holds whatever its last user left in it. When the tensor made from it is
//! dropped it returns to the store by itself.

use std::{
    collections::BTreeMap,
    mem::{MaybeUninit, take},
    ops::{Deref, DerefMut},
    slice,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
};

use burn::{
    backend::{AllocationProperty, Bytes, Flex, tensor::FloatTensor},
    tensor::{DType, Shape, TensorData},
};
use burn_std::{AccessError, AccessPolicy, AllocationController};

const LINE: usize = 16;

/// One cache line.
#[derive(Clone, Copy)]
#[repr(align(64))]
#[expect(dead_code, reason = "read and written through slices of floats")]
struct Line([f32; LINE]);

/// Floats on loan from the store.
pub struct Buffer {
    lines: Vec<Line>,
    length: usize,
}

/// How many times larger than asked for a kept buffer may be to be handed out.
const SLACK: usize = 2;

/// Most bytes the store keeps; when they do not suffice, everything kept goes back to the system.
const STORE_BYTES: usize = 1 << 30;

#[derive(Default)]
struct Store {
    by_lines: BTreeMap<usize, Vec<Vec<Line>>>,
    bytes: usize,
}

impl Store {
    /// The smallest kept buffer of at least `count` lines that is not much larger.
    fn take(&mut self, count: usize) -> Option<Vec<Line>> {
        let fitting = self.by_lines.range_mut(count..=SLACK * count).find(|(_, kept)| !kept.is_empty());
        let lines = fitting?.1.pop()?;
        self.bytes -= lines.len() * size_of::<Line>();
        Some(lines)
    }
}

static STORE: LazyLock<Mutex<Store>> = LazyLock::new(Mutex::default);

fn store() -> MutexGuard<'static, Store> {
    // The store holds plain memory: a panic elsewhere cannot leave it half changed.
    STORE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Buffer {
    /// `length` floats of no particular value.
    pub fn new(length: usize) -> Self {
        let count = length.div_ceil(LINE);
        let kept = store().take(count);
        Self { lines: kept.unwrap_or_else(|| vec![Line([0.0; LINE]); count]), length }
    }

    /// The buffer as a tensor, without copying.
    ///
    /// # Panics
    /// When the shape has another number of elements.
    pub fn into_tensor<const D: usize>(self, shape: [usize; D]) -> FloatTensor<Flex> {
        assert_eq!(shape.iter().product::<usize>(), self.length, "a tensor's shape fits its buffer");
        let length = self.length * size_of::<f32>();
        // SAFETY: the buffer holds `length` initialised bytes.
        let bytes = unsafe { Bytes::from_controller(Box::new(self), length) };
        FloatTensor::<Flex>::from_data(TensorData::from_bytes(bytes, Shape::from(shape), DType::F32))
    }
}

impl Deref for Buffer {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        // SAFETY: lines are 16 floats each without gaps, and there are enough of them for `length`.
        unsafe { slice::from_raw_parts(self.lines.as_ptr().cast(), self.length) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as for `deref`, and `self` is borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.length) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let lines = take(&mut self.lines);
        let bytes = lines.len() * size_of::<Line>();
        if bytes > STORE_BYTES {
            return;
        }
        let mut store = store();
        if store.bytes + bytes > STORE_BYTES {
            // Sizes have changed, as when a larger batch begins: what the old ones left is of no use.
            *store = Store::default();
        }
        store.bytes += bytes;
        store.by_lines.entry(lines.len()).or_default().push(lines);
    }
}

impl AllocationController for Buffer {
    fn alloc_align(&self) -> usize {
        align_of::<Line>()
    }

    fn property(&self) -> AllocationProperty {
        AllocationProperty::Other
    }

    unsafe fn memory_mut(&mut self, _policy: AccessPolicy) -> Result<&mut [MaybeUninit<u8>], AccessError> {
        let floats: &mut [f32] = self;
        // SAFETY: a float is four initialised bytes and the caller writes initialised bytes only.
        Ok(unsafe { slice::from_raw_parts_mut(floats.as_mut_ptr().cast(), size_of_val(floats)) })
    }

    fn memory(&self, _policy: AccessPolicy) -> Result<&[MaybeUninit<u8>], AccessError> {
        let floats: &[f32] = self;
        // SAFETY: a float is four initialised bytes.
        Ok(unsafe { slice::from_raw_parts(floats.as_ptr().cast(), size_of_val(floats)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_tensor_gives_its_memory_back() {
        // A length no other test uses.
        let length = 12_345;
        let mut buffer = Buffer::new(length);
        buffer.fill(7.0);
        let address = buffer.as_ptr();
        assert_eq!(address as usize % 64, 0);
        let tensor = buffer.into_tensor([5, 2_469]);
        assert_eq!(tensor.as_slice::<f32>().unwrap()[length - 1], 7.0);
        let copy = tensor.clone();
        drop(tensor);
        assert_ne!(Buffer::new(length).as_ptr(), address, "a clone still holds it");
        drop(copy);
        let again = [Buffer::new(length), Buffer::new(length)];
        assert!(again.iter().any(|buffer| buffer.as_ptr() == address));
    }

    #[test]
    fn writing_to_a_shared_tensor_copies_it() {
        let mut buffer = Buffer::new(8);
        buffer.fill(1.0);
        let tensor = buffer.into_tensor([2, 4]);
        let mut other = tensor.clone();
        other.storage_mut::<f32>()[0] = 5.0;
        assert_eq!(tensor.as_slice::<f32>().unwrap()[0], 1.0);
        assert_eq!(other.as_slice::<f32>().unwrap()[0], 5.0);
    }
}
