//! A scenario's samples in order, for people with a learner of their own.

use std::{path::PathBuf, sync::Arc};

use dpcl::{Image, Run, stream};
use pyo3::{
    exceptions::PyIndexError,
    prelude::*,
    types::{PyBytes, PyDict},
};

use crate::{errors::raised, keys, worker::elsewhere};

/// An image's bytes with its height, width and class.
type Sample = (Py<PyBytes>, usize, usize, usize);

/// A stream: the data set and who comes when.
#[pyclass(frozen, module = "dpcl._native")]
pub struct Stream {
    run: Arc<Run>,
    test: Vec<usize>,
}

#[pymethods]
impl Stream {
    #[new]
    fn new(py: Python<'_>, keys: &Bound<'_, PyDict>) -> PyResult<Self> {
        let config = keys::config(keys)?;
        let run = elsewhere(py, move |_| Run::open(&config))?;
        let test = test_positions(&run);
        Ok(Self { run: Arc::new(run), test })
    }

    /// Names of the classes; numbers elsewhere index this list.
    fn classes(&self) -> Vec<String> {
        self.run.dataset().classes.clone()
    }

    /// For each task: how many samples it has, and the classes it is tested on.
    fn tasks(&self) -> Vec<(usize, Vec<usize>)> {
        self.run.schedule().tasks.iter().map(|task| (task.samples.len(), task.classes.clone())).collect()
    }

    /// Height and width of the images.
    fn size(&self) -> usize {
        self.run.dataset().size
    }

    /// Mean and deviation of the colours, 0 to 1.
    fn normalisation(&self) -> ([f32; 3], [f32; 3]) {
        (self.run.setup().mean, self.run.setup().std)
    }

    /// A sample of a task.
    fn sample(&self, py: Python<'_>, task: usize, number: usize) -> PyResult<Sample> {
        let task = self.run.schedule().tasks.get(task);
        let position = task.and_then(|task| task.samples.get(number)).copied();
        self.of(py, position, |run| &run.dataset().train)
    }

    /// How many test images there are.
    fn test_count(&self) -> usize {
        self.test.len()
    }

    /// A test image.
    fn test_sample(&self, py: Python<'_>, number: usize) -> PyResult<Sample> {
        let heldout = self.run.parts().heldout().is_some();
        self.of(py, self.test.get(number).copied(), |run| match heldout {
            true => &run.dataset().train,
            false => &run.dataset().test,
        })
    }

    /// Writes the stream as split files and returns their paths.
    fn export(&self, py: Python<'_>, folder: PathBuf) -> PyResult<Vec<PathBuf>> {
        let run = Arc::clone(&self.run);
        elsewhere(py, move |_| {
            let (keys, seed) = (run.setup().stream(), run.setup().seed);
            stream::export(&folder, run.dataset(), run.parts(), run.schedule(), &keys, seed)
        })
    }
}

impl Stream {
    fn of(
        &self,
        py: Python<'_>,
        position: Option<usize>,
        split: impl Fn(&Run) -> &dpcl::data::Split + Send + Sync,
    ) -> PyResult<Sample> {
        let position = position.ok_or_else(|| PyIndexError::new_err("there is no such sample"))?;
        let read = || -> dpcl::Result<(Image, usize)> {
            let split = split(&self.run);
            Ok((split.images.image(position)?, split.labels[position]))
        };
        let (image, class) = py.detach(read).map_err(|error| raised(&error))?;
        Ok((PyBytes::new(py, &image.pixels).unbind(), image.height, image.width, class))
    }
}

/// Test images of the classes that the stream brings: those held out, else the official ones.
fn test_positions(run: &Run) -> Vec<usize> {
    let dataset = run.dataset();
    let mut met = vec![false; dataset.classes.len()];
    for position in run.schedule().tasks.iter().flat_map(|task| &task.samples) {
        met[dataset.train.labels[*position]] = true;
    }
    match run.parts().heldout() {
        Some(heldout) => {
            heldout.iter().copied().filter(|&position| met[dataset.train.labels[position]]).collect()
        }
        None => {
            (0..dataset.test.labels.len()).filter(|&position| met[dataset.test.labels[position]]).collect()
        }
    }
}
