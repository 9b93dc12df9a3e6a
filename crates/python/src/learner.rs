//! The learner, as `dpcl.Learner` in Python holds it: images are bytes, labels are strings or whole numbers.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
};

use dpcl::{
    Checkpoint, Error, Image, Label, Shape,
    method::{Array, Elements, State},
};
use pyo3::{
    buffer::PyBuffer,
    exceptions::PyValueError,
    prelude::*,
    types::{PyBytes, PyDict},
};
use serde_json::json;

use crate::{
    errors::raised,
    images::{float_bytes, from_buffer},
    keys,
    worker::{Stop, Worker},
};

/// Images answered between two looks at the stop flag.
const ROWS: usize = 128;

/// What a pickled learner is called in errors.
const PICKLE: &str = "the pickled learner";

/// A label as it crosses the border.
#[derive(FromPyObject, IntoPyObject)]
pub enum Name {
    /// A whole number.
    Number(i64),
    /// A text.
    Text(String),
}

impl From<Name> for Label {
    fn from(name: Name) -> Self {
        match name {
            Name::Number(number) => Self::Number(number),
            Name::Text(text) => Self::Name(text),
        }
    }
}

impl From<Label> for Name {
    fn from(label: Label) -> Self {
        match label {
            Label::Number(number) => Self::Number(number),
            Label::Name(text) => Self::Text(text),
        }
    }
}

/// Probabilities [images, classes] of answers, with how much the heads disagree and how unsure they are.
type Answers = (Vec<Name>, Py<PyBytes>, Vec<f64>, Vec<f64>);

/// Named float arrays: name, shape, bytes.
type Arrays = Vec<(String, Vec<usize>, Py<PyBytes>)>;

/// A learner on a thread of its own.
#[pyclass(frozen, module = "dpcl._native")]
pub struct Learner {
    worker: Worker,
}

#[pymethods]
impl Learner {
    #[new]
    fn new(py: Python<'_>, keys: &Bound<'_, PyDict>) -> PyResult<Self> {
        let config = keys::config(keys)?;
        let side = config.check().map_err(|error| raised(&error))?.size;
        let shape = Shape { channels: 3, height: side, width: side };
        Ok(Self { worker: Worker::start(py, move || dpcl::Learner::new(&config, shape))? })
    }

    /// Takes up a learner that was saved.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Ok(Self { worker: Worker::start(py, move || dpcl::Learner::load(path))? })
    }

    /// Takes up a learner from the bytes of a checkpoint.
    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: Vec<u8>) -> PyResult<Self> {
        let make = move || Checkpoint::from_bytes(&bytes, Path::new(PICKLE))?.learner();
        Ok(Self { worker: Worker::start(py, make)? })
    }

    /// Writes everything the learner's future depends on.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        self.worker.ask(py, move |learner, _| learner.save(path))
    }

    /// The same as bytes.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.worker.ask(py, |learner, _| {
            let mut bytes = Vec::new();
            let written = Checkpoint::of(learner).write_to(&mut bytes);
            written.map_err(|source| Error::io("write", PICKLE, source))?;
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Another learner with the same past.
    fn copy(&self, py: Python<'_>) -> PyResult<Self> {
        let checkpoint = self.worker.ask(py, |learner, _| Ok(Checkpoint::of(learner)))?;
        Ok(Self { worker: Worker::start(py, move || checkpoint.learner())? })
    }

    /// Takes in labelled images in order.
    fn learn(
        &self,
        py: Python<'_>,
        images: &Bound<'_, PyAny>,
        labels: Vec<Name>,
        task: Option<usize>,
    ) -> PyResult<()> {
        let images = from_buffer(images)?;
        if images.len() != labels.len() {
            return Err(PyValueError::new_err("there must be one label an image"));
        }
        self.worker.ask(py, move |learner, stop| {
            for (image, label) in images.iter().zip(labels) {
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                match task {
                    None => learner.observe(image, label)?,
                    Some(task) => learner.observe_in(task, image, label)?,
                };
            }
            Ok(())
        })
    }

    /// Answers for images: labels met, probabilities, disagreement, entropy.
    fn predict(&self, py: Python<'_>, images: &Bound<'_, PyAny>, task: Option<usize>) -> PyResult<Answers> {
        let images = from_buffer(images)?;
        let (labels, probabilities, disagreement, entropy) = self.worker.ask(py, move |learner, stop| {
            let (mut probabilities, mut disagreement, mut entropy) = (Vec::new(), Vec::new(), Vec::new());
            for images in batches(&images, stop) {
                let images = images?;
                let answers = match task {
                    None => learner.predict_all(images)?,
                    Some(task) => learner.predict_all_in(task, images)?,
                };
                for answer in answers {
                    probabilities.extend(answer.probabilities.into_iter().map(|(_, share)| share));
                    disagreement.push(answer.disagreement);
                    entropy.push(answer.entropy);
                }
            }
            Ok((learner.labels().to_vec(), float_bytes(probabilities), disagreement, entropy))
        })?;
        let labels = labels.into_iter().map(Name::from).collect();
        Ok((labels, PyBytes::new(py, &probabilities).unbind(), disagreement, entropy))
    }

    /// Feature vectors of images.
    fn features<'py>(&self, py: Python<'py>, images: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let images = from_buffer(images)?;
        let features = self.worker.ask(py, move |learner, stop| {
            let mut features = Vec::new();
            for images in batches(&images, stop) {
                features.extend(learner.features(images?)?.concat());
            }
            Ok(features)
        })?;
        Ok(PyBytes::new(py, &float_bytes(features)))
    }

    /// Learns from samples still waiting for their batch to fill.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.worker.ask(py, |learner, _| learner.flush().map(drop))
    }

    /// Tells the method that a task ended, if it is of the kind that is told.
    fn task_end(&self, py: Python<'_>) -> PyResult<()> {
        self.worker.ask(py, |learner, _| learner.task_end())
    }

    /// Tells the method that nothing more will come.
    fn finish(&self, py: Python<'_>) -> PyResult<()> {
        self.worker.ask(py, |learner, _| learner.finish())
    }

    /// Labels met, in order of first arrival.
    fn labels(&self, py: Python<'_>) -> PyResult<Vec<Name>> {
        let labels = self.worker.ask(py, |learner, _| Ok(learner.labels().to_vec()))?;
        Ok(labels.into_iter().map(Name::from).collect())
    }

    /// Where it stands, as JSON.
    fn standing(&self, py: Python<'_>) -> PyResult<String> {
        self.worker.ask(py, |learner, _| {
            let stored = learner.memory().map_or(0, |memory| memory.slots().len());
            Ok(json!({
                "samples": learner.samples(),
                "updates": learner.updates(),
                "classes": learner.labels().len(),
                "stored": stored,
                "knowledge": learner.knowledge().name(),
                "config": learner.config().to_table()?,
            })
            .to_string())
        })
    }

    /// The encoder's weights and running statistics in PyTorch's layouts.
    fn encoder(&self, py: Python<'_>) -> PyResult<Arrays> {
        let state = self.worker.ask(py, |learner, _| Ok(learner.encoder()))?;
        let floats = |array: &Array| match &array.elements {
            Elements::F32(elements) => float_bytes(elements.iter().copied()),
            Elements::U8(elements) => elements.clone(),
        };
        let arrays = state.arrays.into_iter();
        Ok(arrays
            .map(|(name, array)| (name, array.shape.clone(), PyBytes::new(py, &floats(&array)).unbind()))
            .collect())
    }

    /// Begins with an encoder trained elsewhere: name, shape and numbers of each array.
    fn begin_with_encoder(
        &self,
        py: Python<'_>,
        arrays: Vec<(String, Vec<usize>, PyBuffer<f32>)>,
    ) -> PyResult<()> {
        let mut state = State::default();
        for (name, shape, numbers) in arrays {
            state.put_array(&name, Array::floats(shape, numbers.to_vec(py)?));
        }
        self.worker.ask(py, move |learner, _| learner.begin_with_encoder(&state))
    }
}

/// Images in parts, until somebody says stop.
fn batches<'a>(images: &'a [Image], stop: &'a Stop) -> impl Iterator<Item = Result<&'a [Image], Error>> {
    let stop = Arc::clone(stop);
    images.chunks(ROWS).map(move |part| match stop.load(Ordering::Relaxed) {
        true => Err(Error::Interrupted),
        false => Ok(part),
    })
}
