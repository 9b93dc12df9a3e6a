//! The Python package's native part: the learner, streams, runs and records, for the modules in `python/dpcl`.
//!
//! Python's side turns what people have (arrays, pictures, labels of any kind) into bytes, strings and whole numbers;
//! this side computes, with the interpreter free to do something else.

mod errors;
mod images;
mod keys;
mod learner;
mod records;
mod stream;
mod worker;

use pyo3::prelude::*;

/// What `import dpcl._native` gives.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{
        keys::{describe_keys, methods},
        learner::Learner,
        records::{read, run},
        stream::Stream,
    };
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
