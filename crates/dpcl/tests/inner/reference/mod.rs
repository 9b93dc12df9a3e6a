//! Reads the golden vectors and compares with them. It knows the form of the files, not what they are about.
//!
//! The folder is `DPCL_REFERENCE` if set, else the copy beside the tests.

// Every golden test file is a crate of its own and uses only a part of this.
#![allow(dead_code)]

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// One input with what must come out of it.
#[derive(Clone, Debug, serde::Deserialize)]
pub struct Case {
    /// Unique within its file.
    pub name: String,
    /// Everything the computation needs, random numbers included.
    pub input: Value,
    /// What an independent implementation computed.
    pub expected: Value,
    /// How far apart the two may be; see [`close`].
    pub tolerance: Value,
}

impl Case {
    /// The input called `key`, as whatever type is asked for.
    pub fn input<T: DeserializeOwned>(&self, key: &str) -> T {
        read(&self.input, key, &self.name)
    }

    /// The expected value called `key`, as whatever type is asked for.
    pub fn expected<T: DeserializeOwned>(&self, key: &str) -> T {
        read(&self.expected, key, &self.name)
    }

    /// Compares `found` with the expected value called `key` within this case's tolerance.
    pub fn check(&self, key: &str, found: impl Serialize) {
        let expected = self.expected.get(key).unwrap_or_else(|| panic!("{}: no expected `{key}`", self.name));
        close(found, expected, &self.tolerance, &format!("{}.{key}", self.name));
    }
}

/// The folder of the golden vectors.
pub fn folder() -> PathBuf {
    std::env::var_os("DPCL_REFERENCE").map_or_else(
        || concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/reference").into(),
        PathBuf::from,
    )
}

/// A whole JSON file of the folder, for what stands beside its cases.
pub fn document(file: &str) -> Value {
    serde_json::from_slice(&bytes(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// All cases of a file, in order; never an empty list.
pub fn cases(file: &str) -> Vec<Case> {
    let found: Vec<Case> = read(&document(file), "cases", file);
    assert!(!found.is_empty(), "{file} has no cases");
    found
}

/// The cases of a file whose name starts with `prefix`; never an empty list.
pub fn cases_named(file: &str, prefix: &str) -> Vec<Case> {
    let mut found = cases(file);
    found.retain(|case| case.name.starts_with(prefix));
    assert!(!found.is_empty(), "{file} has no cases called {prefix}…");
    found
}

/// Fails unless `found` has the form of `expected` and every number is within the tolerance.
///
/// A tolerance is a number (absolute, and relative for expected values above 1; 0 asks for equality) or an object
/// with `absolute` and `relative`. Numbers, lists and objects are compared part by part; an object in `expected`
/// may have fewer keys than `found`. A float that is not finite serialises to `null` and so equals only `null`.
pub fn close(found: impl Serialize, expected: impl Serialize, tolerance: &Value, context: &str) {
    let found = serde_json::to_value(found).unwrap_or_else(|error| panic!("{context}: {error}"));
    let expected = serde_json::to_value(expected).unwrap_or_else(|error| panic!("{context}: {error}"));
    compare(&found, &expected, bounds(tolerance, context), context);
}

/// One tensor of a safetensors file.
pub struct Tensor {
    /// Extent of each dimension, outermost first.
    pub shape: Vec<usize>,
    /// Little-endian elements as stored.
    pub bytes: Vec<u8>,
    kind: safetensors::Dtype,
}

impl Tensor {
    /// The elements of an f32 tensor.
    pub fn floats(&self) -> Vec<f32> {
        assert_eq!(self.kind, safetensors::Dtype::F32);
        self.words().map(f32::from_le_bytes).collect()
    }

    /// The elements of an i32 tensor.
    pub fn integers(&self) -> Vec<i32> {
        assert_eq!(self.kind, safetensors::Dtype::I32);
        self.words().map(i32::from_le_bytes).collect()
    }

    fn words(&self) -> impl Iterator<Item = [u8; 4]> + '_ {
        self.bytes.chunks_exact(4).map(|word| [word[0], word[1], word[2], word[3]])
    }
}

/// All tensors of a safetensors file by name.
pub fn tensors(file: &str) -> BTreeMap<String, Tensor> {
    let bytes = bytes(file);
    let parsed =
        safetensors::SafeTensors::deserialize(&bytes).unwrap_or_else(|error| panic!("{file}: {error}"));
    parsed
        .iter()
        .map(|(name, view)| {
            let tensor =
                Tensor { shape: view.shape().to_vec(), bytes: view.data().to_vec(), kind: view.dtype() };
            (name.to_owned(), tensor)
        })
        .collect()
}

#[derive(Clone, Copy)]
struct Bounds {
    absolute: f64,
    relative: f64,
    relative_above: f64,
}

impl Bounds {
    fn allow(self, found: f64, expected: f64) -> bool {
        let relative =
            if expected.abs() > self.relative_above { self.relative * expected.abs() } else { 0.0 };
        (found - expected).abs() <= self.absolute.max(relative)
    }
}

fn bounds(tolerance: &Value, context: &str) -> Bounds {
    if let Some(number) = tolerance.as_f64() {
        return Bounds { absolute: number, relative: number, relative_above: 1.0 };
    }
    let part = |key: &str| tolerance.get(key).and_then(Value::as_f64);
    let (absolute, relative) = (part("absolute"), part("relative"));
    assert!(absolute.is_some() || relative.is_some(), "{context}: cannot use the tolerance {tolerance}");
    Bounds { absolute: absolute.unwrap_or(0.0), relative: relative.unwrap_or(0.0), relative_above: 0.0 }
}

fn compare(found: &Value, expected: &Value, bounds: Bounds, context: &str) {
    match (found, expected) {
        (Value::Number(one), Value::Number(other)) => {
            let numbers = one.as_f64().zip(other.as_f64());
            let near = numbers.is_some_and(|(found, expected)| bounds.allow(found, expected));
            assert!(near, "{context}: found {found}, expected {expected}");
        }
        (Value::Array(one), Value::Array(other)) => {
            assert_eq!(one.len(), other.len(), "{context}: length\nfound {found}\nexpected {expected}");
            for (index, (found, expected)) in one.iter().zip(other).enumerate() {
                compare(found, expected, bounds, &format!("{context}[{index}]"));
            }
        }
        (Value::Object(one), Value::Object(other)) => {
            for (key, expected) in other {
                let found = one.get(key).unwrap_or_else(|| panic!("{context}: no `{key}` in {found}"));
                compare(found, expected, bounds, &format!("{context}.{key}"));
            }
        }
        _ => assert_eq!(found, expected, "{context}"),
    }
}

fn read<T: DeserializeOwned>(value: &Value, key: &str, context: &str) -> T {
    let part = value.get(key).unwrap_or_else(|| panic!("{context}: no `{key}`"));
    T::deserialize(part).unwrap_or_else(|error| panic!("{context}.{key}: {error}"))
}

fn bytes(file: &str) -> Vec<u8> {
    let path = folder().join(file);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
