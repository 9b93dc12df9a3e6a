//! Encoder weights from a safetensors file, under the names and layouts documented for checkpoints, so that a network
//! trained elsewhere can be the starting point.

use std::path::Path;

use safetensors::{Dtype, SafeTensors};

use crate::{
    error::{Error, Result},
    model::Encoder,
    state::{Array, Persist, State},
};

/// Replaces the encoder's weights and running statistics by those in the file.
///
/// # Errors
/// When the file cannot be read, lacks a tensor or has one of another shape.
pub fn load_encoder(path: &Path, encoder: &mut Encoder) -> Result<()> {
    let hint = "expected a safetensors file with the names of a checkpoint's `encoder.` part";
    let bytes = std::fs::read(path).map_err(|source| Error::io("read", path, source))?;
    let file = SafeTensors::deserialize(&bytes)
        .map_err(|error| Error::bad_data(path, format!("not a safetensors file: {error}"), hint))?;
    let mut state = State::default();
    for (name, view) in file.tensors() {
        // Checkpoints nest the encoder; plain files may not.
        let name = name.rsplit_once("encoder.").map_or(name.as_str(), |(_, rest)| rest);
        if view.dtype() == Dtype::F32 {
            let elements: Vec<f32> =
                view.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            state.put_array(name, Array::floats(view.shape(), elements));
        }
    }
    if let Some(name) = state.not_finite() {
        let problem = format!("its tensor `{name}` is not finite");
        return Err(Error::bad_data(path, problem, "use weights from before training ran away"));
    }
    encoder.load(&state).map_err(|error| Error::bad_data(path, error.to_string(), hint))
}
