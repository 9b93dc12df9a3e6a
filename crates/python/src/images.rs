//! Images between Python's buffers and the library.

use std::sync::Arc;

use dpcl::Image;
use pyo3::{buffer::PyBuffer, exceptions::PyValueError, prelude::*};

/// Images from a buffer [count, height, width, 3] of bytes.
pub fn from_buffer(images: &Bound<'_, PyAny>) -> PyResult<Vec<Image>> {
    let buffer = PyBuffer::<u8>::get(images)?;
    let &[count, height, width, 3] = buffer.shape() else {
        return Err(PyValueError::new_err("a buffer [count, height, width, 3] is expected"));
    };
    let pixels = buffer.to_vec(images.py())?;
    let length = height * width * 3;
    if length == 0 {
        return Err(PyValueError::new_err("images of no pixels were given"));
    }
    debug_assert_eq!(pixels.len(), count * length);
    Ok(pixels.chunks_exact(length).map(|pixels| Image { height, width, pixels: Arc::from(pixels) }).collect())
}

/// Floats as the bytes of an array of Python's.
pub fn float_bytes(numbers: impl IntoIterator<Item = f32>) -> Vec<u8> {
    numbers.into_iter().flat_map(f32::to_ne_bytes).collect()
}
