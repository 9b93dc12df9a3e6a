//! Keyword arguments as a configuration: the same keys, read and checked by the same code.

use dpcl::{
    Config, Settings,
    config::{Key, Keys as _},
};
use pyo3::{
    exceptions::{PyOverflowError, PyTypeError},
    prelude::*,
    types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple},
};
use serde_json::json;
use toml::{Table, Value};

use crate::errors::raised;

/// A configuration from keyword arguments. `None` leaves a key to its default.
pub fn config(keys: &Bound<'_, PyDict>) -> PyResult<Config> {
    let table = table(keys, "")?;
    Config::from_table(table).map_err(|error| raised(&error))
}

fn table(keys: &Bound<'_, PyDict>, prefix: &str) -> PyResult<Table> {
    let mut table = Table::new();
    for (key, value) in keys {
        let name: String = key
            .extract()
            .map_err(|_| PyTypeError::new_err(format!("configuration keys are strings, not {key}")))?;
        if !value.is_none() {
            let dotted = format!("{prefix}{name}");
            table.insert(name, read(&value, &dotted)?);
        }
    }
    Ok(table)
}

fn read(value: &Bound<'_, PyAny>, key: &str) -> PyResult<Value> {
    if value.is_instance_of::<PyBool>() {
        return Ok(Value::Boolean(value.extract()?));
    }
    if value.is_instance_of::<PyInt>() {
        let too_large =
            |_| PyOverflowError::new_err(format!("configuration key `{key}`: {value} is too large"));
        return value.extract().map(Value::Integer).map_err(too_large);
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Value::Float(value.extract()?));
    }
    if value.is_instance_of::<PyString>() {
        return Ok(Value::String(value.extract()?));
    }
    if let Ok(keys) = value.cast::<PyDict>() {
        return table(keys, &format!("{key}.")).map(Value::Table);
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let values: PyResult<Vec<Value>> = value.try_iter()?.map(|value| read(&value?, key)).collect();
        return Ok(Value::Array(values?));
    }
    // Paths, and numbers and arrays of NumPy.
    for method in ["__fspath__", "tolist"] {
        if value.hasattr(method)? {
            return read(&value.call_method0(method)?, key);
        }
    }
    let kind = value.get_type().name()?;
    let problem = format!("configuration key `{key}`: a value of type `{kind}` was given");
    Err(PyTypeError::new_err(format!(
        "{problem}\nhint: give a number, a text, true or false, a list of these, or a dictionary of a method's own keys"
    )))
}

/// Every key as JSON: name, help, values, default; a method's own keys by table.
#[pyfunction]
pub fn describe_keys() -> String {
    let about = |key: &Key| {
        json!({
            "name": key.name, "help": key.help, "values": key.values_text(), "default": key.default_text(),
        })
    };
    let all = |keys: Vec<Key>| keys.iter().map(about).collect::<Vec<_>>();
    let own: serde_json::Map<_, _> = dpcl::methods::all()
        .iter()
        .map(|info| (info.section.to_owned(), all((info.keys.list)()).into()))
        .collect();
    json!({ "common": all(Settings::keys()), "own": own }).to_string()
}

/// Names of the methods.
#[pyfunction]
pub fn methods() -> Vec<&'static str> {
    dpcl::methods::all().iter().map(|info| info.name).collect()
}
