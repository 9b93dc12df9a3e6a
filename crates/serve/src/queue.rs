//! What the learning thread waits for: accepted samples in their order, and wishes that go before them.

use std::{
    collections::VecDeque,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use dpcl::Image;
use tokio::sync::oneshot;

/// An accepted sample.
#[derive(Debug)]
pub struct Waiting {
    /// What it shows.
    pub label: String,
    /// The image.
    pub image: Image,
}

/// What a wish for a checkpoint is answered with: samples learned in it, or why there is none.
pub type Written = Result<u64, String>;

/// What there is to do next.
#[derive(Debug)]
pub enum Work {
    /// Learn a sample.
    Sample(Waiting),
    /// Write a checkpoint and tell.
    Checkpoint(oneshot::Sender<Written>),
    /// Nothing came for a while.
    Idle,
    /// End.
    Stop,
}

#[derive(Default)]
struct Inner {
    samples: VecDeque<Waiting>,
    wishes: VecDeque<oneshot::Sender<Written>>,
    stopping: bool,
}

/// The queue. How many samples it may hold is decided where they are accepted.
#[derive(Default)]
pub struct Queue {
    inner: Mutex<Inner>,
    changed: Condvar,
}

impl Queue {
    /// Samples were accepted.
    pub fn push(&self, samples: impl IntoIterator<Item = Waiting>) {
        self.lock().samples.extend(samples);
        self.changed.notify_one();
    }

    /// Somebody wishes a checkpoint.
    pub fn wish(&self, tell: oneshot::Sender<Written>) {
        self.lock().wishes.push_back(tell);
        self.changed.notify_one();
    }

    /// The learning thread is to end after the present sample.
    pub fn stop(&self) {
        self.lock().stopping = true;
        self.changed.notify_one();
    }

    /// A wish, or the end, if there is one; samples are left where they are.
    pub fn urgent(&self) -> Option<Work> {
        let mut inner = self.lock();
        if inner.stopping {
            return Some(Work::Stop);
        }
        inner.wishes.pop_front().map(Work::Checkpoint)
    }

    /// What is to be done next; waits for it no longer than this.
    pub fn next(&self, patience: Duration) -> Work {
        if let Some(urgent) = self.urgent() {
            return urgent;
        }
        let mut inner = self.lock();
        if inner.samples.is_empty() && inner.wishes.is_empty() && !inner.stopping {
            let waited = self.changed.wait_timeout(inner, patience);
            inner = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        if inner.stopping {
            return Work::Stop;
        }
        if let Some(wish) = inner.wishes.pop_front() {
            return Work::Checkpoint(wish);
        }
        inner.samples.pop_front().map_or(Work::Idle, Work::Sample)
    }

    /// Nobody will take anything any more: whoever wished something learns of it.
    pub fn close(&self) {
        self.lock().wishes.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
