//! A thread that owns a learner and does one job after the other.
//!
//! Whoever asks waits with the interpreter free and looks at Python's signals meanwhile. When one ends the wait, the job
//! comes to a good end by itself (at its next look at the stop flag), so nothing that was learned is lost; whatever is
//! asked next waits for it.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread,
    time::Duration,
};

use dpcl::{Error, Learner};
use pyo3::{exceptions::PyRuntimeError, prelude::*};

use crate::errors::raised;

/// Time between two looks at Python's signals: shorter than anybody notices.
const LOOK: Duration = Duration::from_millis(50);

/// Says whether the job is to end early.
pub type Stop = Arc<AtomicBool>;

type Job = Box<dyn FnOnce(&mut Learner) + Send>;

/// The thread's address.
pub struct Worker {
    jobs: Sender<Job>,
    /// Set when a job broke off inside the library: what the learner is then is not known.
    broken: Arc<AtomicBool>,
}

impl Worker {
    /// Starts a thread with the learner that `make` makes.
    pub fn start(
        py: Python<'_>,
        make: impl FnOnce() -> Result<Learner, Error> + Send + 'static,
    ) -> PyResult<Self> {
        let (jobs, orders) = mpsc::channel::<Job>();
        let (tell, made) = mpsc::channel();
        in_one_process()?;
        let work = move || {
            let learner = match caught(make) {
                Some(Ok(learner)) => learner,
                failed => return drop(tell.send(failed.map(|made| made.map(drop)))),
            };
            // The one who waits may have gone, and takes the learner along.
            if tell.send(Some(Ok(()))).is_ok() {
                work_through(learner, &orders);
            }
        };
        thread::Builder::new().name("dpcl-learner".into()).spawn(work)?;
        match wait(py, made, &Stop::default())? {
            Some(Ok(())) => Ok(Self { jobs, broken: Arc::default() }),
            Some(Err(error)) => Err(raised(&error)),
            None => Err(broke_off()),
        }
    }

    /// Has a job done on the learner and waits for what it gives.
    pub fn ask<T: Send + 'static>(
        &self,
        py: Python<'_>,
        job: impl FnOnce(&mut Learner, &Stop) -> Result<T, Error> + Send + 'static,
    ) -> PyResult<T> {
        in_one_process()?;
        let (tell, done) = mpsc::channel();
        let (stop, broken) = (Stop::default(), Arc::clone(&self.broken));
        let stopped = Arc::clone(&stop);
        let job = move |learner: &mut Learner| {
            if broken.load(Ordering::Relaxed) {
                return drop(tell.send(None));
            }
            let done = caught(|| job(learner, &stopped));
            broken.store(done.is_none(), Ordering::Relaxed);
            // Nobody may wait any more.
            let _ = tell.send(done);
        };
        self.jobs.send(Box::new(job)).map_err(|_| broke_off())?;
        match wait(py, done, &stop)? {
            Some(done) => done.map_err(|error| raised(&error)),
            None => Err(broke_off()),
        }
    }
}

fn work_through(mut learner: Learner, orders: &Receiver<Job>) {
    while let Ok(job) = orders.recv() {
        job(&mut learner);
    }
}

/// Has something done on a thread of its own and waits for what it gives.
pub fn elsewhere<T: Send + 'static>(
    py: Python<'_>,
    job: impl FnOnce(&Stop) -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    in_one_process()?;
    let (tell, done) = mpsc::channel();
    let stop = Stop::default();
    let stopped = Arc::clone(&stop);
    let worker = thread::Builder::new().name("dpcl-job".into());
    let worker = worker.spawn(move || drop(tell.send(caught(|| job(&stopped)))))?;
    let waited = wait(py, done, &stop);
    if waited.is_err() {
        // A run that was told to stop writes its checkpoint first.
        py.detach(|| drop(worker.join()));
    }
    match waited? {
        Some(done) => done.map_err(|error| raised(&error)),
        None => Err(broke_off()),
    }
}

/// Waits for an answer with the interpreter free; a signal that Python makes an exception of sets the stop flag.
fn wait<T: Send>(py: Python<'_>, mut answer: Receiver<Option<T>>, stop: &Stop) -> PyResult<Option<T>> {
    loop {
        let (again, received) = py.detach(move || {
            let received = answer.recv_timeout(LOOK);
            (answer, received)
        });
        answer = again;
        match received {
            Ok(received) => return Ok(received),
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(interrupt) = py.check_signals() {
                    stop.store(true, Ordering::Relaxed);
                    return Err(interrupt);
                }
            }
        }
    }
}

/// What `job` gives; nothing if it panicked.
fn caught<T>(job: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(job)).ok()
}

fn broke_off() -> PyErr {
    PyRuntimeError::new_err(
        "the library broke off in the middle of its work, and the learner cannot be relied on\n\
         hint: take up the last saved one; this is a fault in dpcl, please report it",
    )
}

/// Refuses to compute in a process that was forked from one that had computed: its threads stayed behind.
fn in_one_process() -> PyResult<()> {
    static FIRST: OnceLock<u32> = OnceLock::new();
    let here = std::process::id();
    if *FIRST.get_or_init(|| here) == here {
        return Ok(());
    }
    Err(PyRuntimeError::new_err(
        "this process was forked from one in which dpcl had computed, and its threads were not\n\
         hint: start processes with `multiprocessing.set_start_method(\"spawn\")`",
    ))
}
