//! Runs and their records. A record crosses the border as JSON.

use std::path::PathBuf;

use dpcl::{
    Run,
    folder::{Every, RunFolder, Status},
    run::Recording,
};
use dpcl_report::{curves, read as records, record::Event};
use pyo3::{exceptions::PyValueError, prelude::*, types::PyDict};
use serde_json::{Value, json};

use crate::{
    errors::{of_records, raised},
    keys,
    worker::elsewhere,
};

/// Makes a run in its folder, or goes on with it; returns what a person should know of how it was taken up.
#[pyfunction]
pub fn run(py: Python<'_>, folder: PathBuf, keys: &Bound<'_, PyDict>, every: &str) -> PyResult<Vec<String>> {
    let config = keys::config(keys)?;
    config.check().map_err(|error| raised(&error))?;
    let every: Every = every.parse().map_err(PyValueError::new_err)?;
    elsewhere(py, move |stop| {
        let run = Run::open(&config)?;
        let folder = RunFolder::at(&folder);
        let mut notices = Vec::new();
        if let Status::Finished(_) = folder.status(run.setup())? {
            return Ok(notices);
        }
        let claim = folder.claim()?;
        run.record(Recording {
            folder: &folder,
            claim: &claim,
            command: None,
            every,
            progress: &mut |_| {},
            notice: &mut |text| notices.push(text.to_owned()),
            stop,
        })?;
        Ok(notices)
    })
}

/// Every record in the given folders or below them, as JSON.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "an argument from Python is made for the call")]
pub fn read(py: Python<'_>, folders: Vec<PathBuf>) -> PyResult<String> {
    let text = py.detach(|| -> dpcl_report::Result<String> {
        let records = records::find(&folders)?;
        Ok(Value::from_iter(records.iter().map(described)).to_string())
    });
    text.map_err(|error| of_records(&error))
}

fn described(record: &records::Record) -> Value {
    let points = |curve: Vec<(f64, f64)>| curve.into_iter().map(|(x, y)| json!([x, y])).collect::<Value>();
    let classes = record.events.iter().find_map(|event| match event {
        Event::Start { classes, .. } => Some(classes),
        _ => None,
    });
    json!({
        "path": record.path,
        "config": record.config,
        "classes": classes,
        "events": record.events,
        "result": record.result,
        "failure": record.failure,
        "altered": record.altered,
        "accuracy": points(curves::any_time(&record.events)),
        "loss": points(curves::loss(&record.events)),
    })
}
