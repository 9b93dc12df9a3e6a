//! Saved state: named arrays and named values, and the small trait by which every part writes itself out.
//!
//! A `State` is a flat map with dotted names. Arrays are what a PyTorch user would want to read (weights,
//! moments, images); everything else (counters, generators, histories) is JSON.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    error::{Error, Result},
    finite::all_finite,
};

/// A part of a learner that can be written out whole and read back exactly. A part that remembers nothing writes both
/// as they are here.
pub trait Persist {
    /// Writes everything that the future of this part depends on.
    fn save(&self, _state: &mut State) {}

    /// Reads back what `save` wrote into a part built from the same configuration.
    ///
    /// # Errors
    /// When an entry is missing or has another form.
    fn load(&mut self, _state: &State) -> Result<()> {
        Ok(())
    }
}

/// A state is its own saved form, so that a part can keep another's for later.
impl Persist for State {
    fn save(&self, state: &mut State) {
        state.arrays.extend(self.arrays.clone());
        state.values.extend(self.values.clone());
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.clone_from(state);
        Ok(())
    }
}

/// The elements of a saved array.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// Bytes.
    U8(Vec<u8>),
}

/// A saved array with its shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Extent of each dimension, outermost first.
    pub shape: Vec<usize>,
    /// Row-major elements.
    pub elements: Elements,
}

impl Array {
    /// An array of floats.
    pub fn floats(shape: impl Into<Vec<usize>>, elements: Vec<f32>) -> Self {
        Self { shape: shape.into(), elements: Elements::F32(elements) }
    }

    /// An array of bytes.
    pub fn bytes(shape: impl Into<Vec<usize>>, elements: Vec<u8>) -> Self {
        Self { shape: shape.into(), elements: Elements::U8(elements) }
    }
}

/// Named arrays and named values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// Arrays by dotted name, shared: parts of a state are looked at without copying them.
    pub arrays: BTreeMap<String, Arc<Array>>,
    /// Everything else by dotted name.
    pub values: BTreeMap<String, Value>,
}

impl State {
    /// Stores a value.
    pub fn put<T: Serialize>(&mut self, key: &str, value: &T) {
        let value = serde_json::to_value(value).expect("state values are plain data with string keys");
        self.values.insert(key.to_owned(), value);
    }

    /// Reads a value back.
    ///
    /// # Errors
    /// When it is missing or has another form.
    pub fn get<T: DeserializeOwned>(&self, key: &str) -> Result<T> {
        let value = self.values.get(key).ok_or_else(|| missing(key))?;
        T::deserialize(value).map_err(|error| Error::BadState {
            key: key.to_owned(),
            problem: format!("cannot be read: {error}"),
        })
    }

    /// Reads back a value in which every whole number counts something.
    ///
    /// # Errors
    /// As for [`State::get`], and for a count from where counting on would not be exact in floating point, or overflow.
    pub fn get_counted<T: DeserializeOwned>(&self, key: &str) -> Result<T> {
        let value = self.values.get(key).ok_or_else(|| missing(key))?;
        if let Some(count) = largest_count(value).filter(|&count| count > MOST_COUNTED) {
            let problem = format!("counts {count}, which nobody lived to see");
            return Err(Error::BadState { key: key.to_owned(), problem });
        }
        self.get(key)
    }

    /// Stores an array.
    pub fn put_array(&mut self, key: &str, array: Array) {
        self.arrays.insert(key.to_owned(), Arc::new(array));
    }

    /// Reads an array of floats of the given shape.
    ///
    /// # Errors
    /// When it is missing, holds other elements or has another shape.
    pub fn floats(&self, key: &str, shape: &[usize]) -> Result<&[f32]> {
        let array = self.array(key)?;
        match &array.elements {
            Elements::F32(elements) if array.shape == shape => Ok(elements),
            _ => Err(wrong_form(key, array, shape)),
        }
    }

    /// Any array, with the shape it was saved with.
    ///
    /// # Errors
    /// When it is missing.
    pub fn array(&self, key: &str) -> Result<&Array> {
        self.arrays.get(key).map(Arc::as_ref).ok_or_else(|| missing(key))
    }

    /// The name of an array with numbers that are not finite, if there is one.
    pub fn not_finite(&self) -> Option<&str> {
        let finite = |array: &Array| match &array.elements {
            Elements::F32(elements) => all_finite(elements),
            Elements::U8(_) => true,
        };
        self.arrays.iter().find(|(_, array)| !finite(array)).map(|(name, _)| name.as_str())
    }

    /// Saves a part under a prefix.
    pub fn save_part(&mut self, prefix: &str, part: &(impl Persist + ?Sized)) {
        let mut inner = Self::default();
        part.save(&mut inner);
        for (key, array) in inner.arrays {
            self.arrays.insert(format!("{prefix}.{key}"), array);
        }
        for (key, value) in inner.values {
            self.values.insert(format!("{prefix}.{key}"), value);
        }
    }

    /// Loads a part from under a prefix.
    ///
    /// # Errors
    /// What the part's own `load` reports, with the full name.
    pub fn load_part(&self, prefix: &str, part: &mut (impl Persist + ?Sized)) -> Result<()> {
        part.load(&self.part(prefix)).map_err(|error| match error {
            Error::BadState { key, problem } => Error::BadState { key: format!("{prefix}.{key}"), problem },
            other => other,
        })
    }

    /// The entries under a prefix, with the prefix removed.
    pub fn part(&self, prefix: &str) -> Self {
        let start = format!("{prefix}.");
        fn under<T: Clone>(map: &BTreeMap<String, T>, start: &str) -> BTreeMap<String, T> {
            map.range(start.to_owned()..)
                .take_while(|(key, _)| key.starts_with(start))
                .map(|(key, value)| (key[start.len()..].to_owned(), value.clone()))
                .collect()
        }
        Self { arrays: under(&self.arrays, &start), values: under(&self.values, &start) }
    }
}

/// Counts are exact in floating point up to here, and nothing that adds to them overflows.
const MOST_COUNTED: u64 = 1 << 53;

/// The largest whole number anywhere in a value.
fn largest_count(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::Array(values) => values.iter().filter_map(largest_count).max(),
        Value::Object(entries) => entries.values().filter_map(largest_count).max(),
        Value::Null | Value::Bool(_) | Value::String(_) => None,
    }
}

fn missing(key: &str) -> Error {
    Error::BadState { key: key.to_owned(), problem: "is missing".into() }
}

fn wrong_form(key: &str, array: &Array, shape: &[usize]) -> Error {
    let kind = match array.elements {
        Elements::F32(_) => "floats",
        Elements::U8(_) => "bytes",
    };
    Error::BadState {
        key: key.to_owned(),
        problem: format!("holds {kind} of shape {:?}, expected floats of shape {shape:?}", array.shape),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Counter(u64);

    impl Persist for Counter {
        fn save(&self, state: &mut State) {
            state.put("count", &self.0);
            state.put_array("weights", Array::floats([2], vec![self.0 as f32, 0.5]));
        }

        fn load(&mut self, state: &State) -> Result<()> {
            state.floats("weights", &[2])?;
            self.0 = state.get("count")?;
            Ok(())
        }
    }

    #[test]
    fn parts_live_under_their_prefix() {
        let mut state = State::default();
        state.save_part("a", &Counter(3));
        state.save_part("ab", &Counter(4));
        let mut restored = Counter(0);
        state.load_part("a", &mut restored).unwrap();
        assert_eq!(restored.0, 3);
        assert_eq!(state.part("ab").floats("weights", &[2]).unwrap(), [4.0, 0.5]);
    }

    #[test]
    fn counts_that_nobody_lived_to_see_are_refused_wherever_they_stand() {
        let most = 1_u64 << 53;
        let read = |value: Value| {
            let mut state = State::default();
            state.put("counts", &value);
            state.get_counted::<Value>("counts").map_err(|error| error.to_string())
        };
        for value in [json!(most), json!([0, most]), json!({ "a": [most], "b": -1, "c": 1e300, "d": null })] {
            assert_eq!(read(value.clone()), Ok(value));
        }
        for value in [json!(most + 1), json!([0, u64::MAX]), json!({ "a": 1, "b": [[most + 1]] })] {
            let refused = read(value).unwrap_err();
            assert!(refused.contains("`counts` counts") && refused.contains("nobody lived"), "{refused}");
        }
    }

    #[test]
    fn a_missing_entry_is_named_in_full() {
        let error = State::default().load_part("memory", &mut Counter(0)).unwrap_err();
        assert_eq!(error.to_string(), "saved state: entry `memory.weights` is missing");
    }
}
