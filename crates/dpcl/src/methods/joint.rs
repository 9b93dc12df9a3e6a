//! Training on all samples of the stream together, once it has ended: the ceiling that no learner of a stream is
//! expected to pass.
//!
//! Loss: mean cross-entropy over uniform batches of everything kept, in CutMix form half of the time. As many steps as
//! the stream has earned, or a given number of epochs. Rate: exponential decay that never starts over.
//!
//! It keeps every sample, so the memory budget does not bind it. It answers at the end only: nothing it says before
//! is evaluated, and forgetting is not defined.

use super::{Method, MethodInfo, REHEARSAL};
use crate::{
    config::{OwnKeys, Setup, keys},
    error::{Error, Result},
    memory::Samples,
    method::{Answers, Arrival, Core, Step},
    rehearsal::offline::Offline,
    state::{Persist, State},
    stream::Credit,
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "joint",
    about: "keeps every sample and learns them all together when the stream has ended: the ceiling",
    answers: Answers::End,
    section: "joint",
    memory_scheme: "none",
    keys: OwnKeys::of::<JointKeys>(),
    build: |setup| Ok(Box::new(Joint::new(setup)?)),
    ..REHEARSAL
};

keys! {
    /// Own keys of `joint`.
    #[derive(Copy)]
    pub struct JointKeys {
        /// Passes over all samples; 0 takes as many steps as the stream has earned.
        epochs: f64 = 0.0, at_least(0), capped(1_000_000, "no run would come to an end");
    }
}

/// Everything at once.
pub struct Joint {
    keys: JointKeys,
    batch: usize,
    updates: f64,
    samples: Samples,
    offline: Offline,
}

impl Joint {
    fn new(setup: &Setup) -> Result<Self> {
        if setup.memory_scheme != INFO.memory_scheme {
            let problem = "joint keeps every sample; use `gdumb` to learn from a memory alone";
            return Err(Error::bad_key("memory_scheme", problem));
        }
        Ok(Self {
            keys: setup.own(),
            batch: setup.batch,
            updates: setup.updates,
            samples: Samples::default(),
            offline: Offline::new(setup)?,
        })
    }
}

impl Method for Joint {
    fn observe(&mut self, _core: &mut Core, Arrival { sample, .. }: Arrival) -> Result<Vec<Step>> {
        self.samples.0.push(sample);
        Ok(Vec::new())
    }

    fn finish(&mut self, _core: &mut Core) -> Result<()> {
        self.offline.begin(steps(self.keys.epochs, self.samples.len(), self.batch, self.updates))
    }

    fn catch_up(&mut self, core: &mut Core) -> Result<Vec<Step>> {
        self.offline.slice(core, &self.samples)
    }

    fn planned(&self, ends: &[u64]) -> Option<u64> {
        let samples = ends.last().copied().unwrap_or(0) as usize;
        Some(steps(self.keys.epochs, samples, self.batch, self.updates))
    }
}

impl Persist for Joint {
    fn save(&self, state: &mut State) {
        self.samples.save(state);
        state.save_part("offline", &self.offline);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.samples.load(state)?;
        state.load_part("offline", &mut self.offline)
    }
}

/// Training steps for a number of samples: those of the epochs, or those the stream has earned.
fn steps(epochs: f64, samples: usize, batch: usize, updates: f64) -> u64 {
    if epochs > 0.0 {
        (epochs * samples as f64 / batch as f64).ceil() as u64
    } else {
        Credit::earned(samples as u64, updates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_earned_or_counted_in_epochs() {
        assert_eq!(steps(0.0, 1_000, 16, 3.0), 3_000);
        assert_eq!(steps(0.0, 70, 64, 0.25), 17);
        assert_eq!(steps(2.0, 100, 16, 3.0), 13);
    }
}
