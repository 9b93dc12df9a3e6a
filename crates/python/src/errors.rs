//! Errors of the library as Python's own kinds of exceptions, with the hint in the text.

use std::io;

use dpcl::{Error, config};
use pyo3::{
    PyErr,
    exceptions::{
        PyArithmeticError, PyFileNotFoundError, PyKeyboardInterrupt, PyOSError, PyPermissionError,
        PyRuntimeError, PyTypeError, PyValueError,
    },
};

/// The exception that tells a Python user of an error.
pub fn raised(error: &Error) -> PyErr {
    let text = text(error);
    match error {
        Error::UnknownKey { .. } => PyTypeError::new_err(text),
        Error::Io { source, .. } | Error::CheckpointNotWritten { source, .. } => of_the_system(source, text),
        Error::NoData { .. } => PyFileNotFoundError::new_err(text),
        Error::LossNotFinite { .. } | Error::PartNotFinite { .. } | Error::RanAway { .. } => {
            PyArithmeticError::new_err(text)
        }
        Error::Interrupted => PyKeyboardInterrupt::new_err(()),
        Error::Claimed { .. } | Error::AlreadyLearning { .. } | Error::BadInstructionSet(_) => {
            PyRuntimeError::new_err(text)
        }
        _ => PyValueError::new_err(text),
    }
}

/// The same for errors of reading records.
pub fn of_records(error: &dpcl_report::Error) -> PyErr {
    let hint = match error {
        dpcl_report::Error::NoRecords { .. } => Some("give the folder of a run, or one above it".into()),
        _ => error.hint(),
    };
    let text = with_hint(chain(error), hint);
    match error {
        dpcl_report::Error::Io { source, .. } => of_the_system(source, text),
        dpcl_report::Error::NoRecords { .. } => PyFileNotFoundError::new_err(text),
        _ => PyValueError::new_err(text),
    }
}

fn of_the_system(source: &io::Error, text: String) -> PyErr {
    match source.kind() {
        io::ErrorKind::NotFound => PyFileNotFoundError::new_err(text),
        io::ErrorKind::PermissionDenied => PyPermissionError::new_err(text),
        _ => PyOSError::new_err(text),
    }
}

fn text(error: &Error) -> String {
    let hint = match error {
        Error::UnknownKey { key, known } => Some(unknown(key, known)),
        Error::UnknownName { name, known, .. } => {
            let valid = error.hint().unwrap_or_default();
            Some(meant(config::closest(name, known), &valid))
        }
        Error::NoTask { .. } => Some("say it with `task=`, or use a method that needs no task ids".into()),
        Error::NoClassYet => Some("call `learn_one` with at least one labelled image first".into()),
        Error::WrongShape { .. } => {
            Some("resize the images, or make a learner for theirs: `Learner(size=…)`".into())
        }
        _ => error.hint().map(|hint| spelled(&hint)),
    };
    with_hint(chain(error), hint)
}

fn unknown(key: &str, known: &[String]) -> String {
    if key.contains('.') {
        return meant(config::meant(key, known), &format!("valid keys: {}", known.join(", ")));
    }
    let names = config::common_names();
    let found = config::meant(key, &names).map(|found| match found.split_once('.') {
        Some((table, own)) => format!("{table}={{\"{own}\": …}}"),
        None => found,
    });
    meant(found, &format!("valid keys: {}", names.join(", ")))
}

fn meant(found: Option<String>, valid: &str) -> String {
    match found {
        Some(found) => format!("did you mean `{found}`? {valid}"),
        None => valid.to_owned(),
    }
}

/// The error and what caused it.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

fn with_hint(problem: String, hint: Option<String>) -> String {
    match hint {
        Some(hint) => format!("{problem}\nhint: {hint}"),
        None => problem,
    }
}

/// A hint with the command's flags spelled as keyword arguments: `--data-dir` is `data_dir`.
fn spelled(hint: &str) -> String {
    let parts: Vec<String> = hint
        .split('`')
        .map(|part| match part.strip_prefix("--") {
            Some(flag) => flag.replace('-', "_"),
            None => part.to_owned(),
        })
        .collect();
    parts.join("`")
}
