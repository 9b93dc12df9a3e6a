//! What a learner would answer at one moment, kept apart from it: others ask the snapshot while the learner learns.

use super::{Label, Learner, Prediction, Shape, answering::Remeasured};
use crate::{data::Image, error::Result, memory::Memory, method::Core, state::State};

/// A learner that answers and learns no more. It has no optimiser moments and shares what it can with the learner it was
/// taken of.
pub struct Snapshot(Learner);

impl Learner {
    /// What answers in this moment. Network weights are shared until the learner moves its own; what the method keeps,
    /// stored samples included, is copied. Taking one changes nothing.
    ///
    /// # Errors
    /// When the method's state cannot be taken up.
    pub fn snapshot(&self) -> Result<Snapshot> {
        let Core { model, batcher, growth } = &self.core;
        let core = Core { model: model.answering_copy(), batcher: batcher.clone(), growth: *growth };
        let mut method = (self.setup.method.build)(&self.setup)?;
        let mut state = State::default();
        self.method.save(&mut state);
        method.load(&state)?;
        Ok(Snapshot(Self {
            setup: self.setup.clone(),
            shape: self.shape,
            core,
            method,
            labels: self.labels.clone(),
            numbers: self.numbers.clone(),
            samples: self.samples,
            updates: self.updates,
            remeasured: Remeasured::default(),
        }))
    }
}

impl From<Learner> for Snapshot {
    /// A learner that was taken up only to answer.
    fn from(learner: Learner) -> Self {
        Self(learner)
    }
}

impl Snapshot {
    /// As [`Learner::predict_all`] answered when the snapshot was taken.
    ///
    /// # Errors
    /// As for [`Learner::predict`].
    pub fn predict_all(&self, images: &[Image]) -> Result<Vec<Prediction>> {
        self.0.predict_all(images)
    }

    /// Labels met by then, in order of first arrival.
    pub fn labels(&self) -> &[Label] {
        self.0.labels()
    }

    /// Samples taken in by then.
    pub fn samples(&self) -> u64 {
        self.0.samples()
    }

    /// Training steps taken by then.
    pub fn updates(&self) -> u64 {
        self.0.updates()
    }

    /// Size of the images it answers for.
    pub fn shape(&self) -> Shape {
        self.0.shape()
    }

    /// The memory as it was, for methods that have one.
    pub fn memory(&self) -> Option<&Memory> {
        self.0.memory()
    }
}
