//! What answers: a snapshot of the learner that is swapped in whole. Whoever asks keeps the one it asked.

use std::{
    sync::{Arc, PoisonError, RwLock},
    time::Instant,
};

use dpcl::Snapshot;

/// A snapshot with its version.
pub struct Version {
    /// What answers.
    pub snapshot: Snapshot,
    /// Samples it has learned.
    pub number: u64,
    /// When it was swapped in.
    pub since: Instant,
}

/// The snapshot that answers at present.
pub struct Published(RwLock<Arc<Version>>);

impl Published {
    /// Begins with a snapshot.
    pub fn new(snapshot: Snapshot) -> Self {
        Self(RwLock::new(Arc::new(Version::of(snapshot))))
    }

    /// The one that answers.
    pub fn current(&self) -> Arc<Version> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Puts another in its place.
    pub fn swap(&self, snapshot: Snapshot) {
        let version = Arc::new(Version::of(snapshot));
        // The old one is dropped outside of the lock.
        let _old = std::mem::replace(&mut *self.0.write().unwrap_or_else(PoisonError::into_inner), version);
    }
}

impl Version {
    fn of(snapshot: Snapshot) -> Self {
        Self { number: snapshot.samples(), snapshot, since: Instant::now() }
    }
}
