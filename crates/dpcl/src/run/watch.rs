//! Who follows a run: hears events and progress, decides on checkpoints, says stop.

use std::sync::atomic::AtomicBool;

use dpcl_report::record::Event;

use crate::{
    checkpoint::{Checkpoint, Moment},
    error::Result,
};

/// Where a run stands, for people watching.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Progress {
    /// Stream samples seen.
    pub samples: u64,
    /// Stream samples in all.
    pub total: u64,
    /// Training steps taken.
    pub updates: u64,
    /// Training steps expected in all.
    pub planned: u64,
    /// Share of the work that an earlier process had done, where this one went on.
    pub earlier: f64,
    /// Loss of the last step.
    pub loss: Option<f64>,
    /// Learning rate of the last step.
    pub rate: Option<f64>,
    /// Accuracy on the classes met, at the last evaluation.
    pub accuracy: Option<f64>,
}

impl Progress {
    /// Share of the work that is done, 0..=1: of the training steps, for these take the time and need not come with the
    /// samples; where none are taken, of the samples.
    pub fn share(&self) -> f64 {
        let (done, all) =
            if self.planned > 0 { (self.updates, self.planned) } else { (self.samples, self.total.max(1)) };
        (done as f64 / all as f64).min(1.0)
    }
}

/// Who watches a run and can stop it.
pub struct Watch<'a> {
    /// Called with every event, in order; what it returns ends the run if it is an error.
    pub event: &'a mut dyn FnMut(&Event) -> Result<()>,
    /// Called after every sample and evaluation.
    pub progress: &'a mut dyn FnMut(&Progress),
    /// Called wherever a checkpoint could be taken; taking one, which is up to it, changes nothing in the run.
    pub keep: &'a mut Keep<'a>,
    /// Set from elsewhere to stop between two samples.
    pub stop: &'a AtomicBool,
}

/// Decides whether to take a checkpoint, and what becomes of it: the moment, the training steps that the learner has
/// behind it, and how to take one.
pub type Keep<'a> = dyn FnMut(Moment, u64, &dyn Fn() -> Checkpoint) -> Result<()> + 'a;
