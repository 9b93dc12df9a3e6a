//! Which weights and statistics answer: those that learn, their average, or the average with statistics measured anew.

use super::Learner;
use crate::{
    answers::Scores,
    cache::Cache,
    config::choices,
    data::Image,
    error::{Error, Result},
    finite::all_finite,
    memory::Sample,
    method::{Core, Method},
};

/// Where the averaged network has its batch-norm statistics from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AverageStatistics {
    /// They are averaged as its weights are.
    #[default]
    Averaged,
    /// Measured on the stored samples, with the averaged weights, whenever it is asked after it moved.
    Memory,
}

choices!(AverageStatistics: Averaged = "averaged", Memory = "memory");

/// What answers with statistics measured anew, by the network's revision and the samples taken in.
pub(super) type Remeasured = Cache<(u64, u64), Core>;

/// Stored images that go through together when statistics are measured.
const ROWS: usize = 128;

impl Learner {
    /// Samples taken in that wait for their batch to fill; [`Learner::flush`] learns them.
    pub fn waiting(&self) -> usize {
        self.method.waiting()
    }

    /// How many heads answer; a single one cannot disagree.
    pub fn heads(&self) -> usize {
        self.method.heads()
    }

    /// As [`Method::predict`].
    pub(super) fn answer(&self, images: &[Image], task: Option<usize>) -> Result<Vec<Scores>> {
        let answers = match self.stored() {
            Some(stored) => {
                let key = (self.core.model.revision(), self.samples);
                let core = self.remeasured.get(key, || self.remeasure(stored));
                self.method.predict(&core, images, task)
            }
            None => self.method.predict(&self.core, images, task),
        };
        sound(answers?)
    }

    /// The samples that statistics are measured on, where they are and there are any.
    fn stored(&self) -> Option<&[Sample]> {
        let measured = self.setup.average_statistics == AverageStatistics::Memory;
        let stored = self.method.memory().filter(|_| measured)?.slots();
        (!stored.is_empty()).then_some(stored)
    }

    fn remeasure(&self, stored: &[Sample]) -> Core {
        let Core { model, batcher, growth } = &self.core;
        let images = |samples: &[Sample]| model.images(batcher.stored(samples.iter()), batcher.size());
        let model = model.with_statistics_of(stored.chunks(ROWS).map(images));
        Core { model, batcher: batcher.clone(), growth: *growth }
    }

    /// The same learner answering with the weights that learn; `None` where these answer anyway.
    pub(crate) fn unaveraged(&self) -> Option<Unaveraged<'_>> {
        self.core.model.average()?;
        let Core { model, batcher, growth } = &self.core;
        let core = Core { model: model.unaveraged(), batcher: batcher.clone(), growth: *growth };
        Some(Unaveraged { method: &*self.method, core })
    }
}

/// A learner whose average does not answer.
pub(crate) struct Unaveraged<'a> {
    method: &'a dyn Method,
    core: Core,
}

impl Unaveraged<'_> {
    /// As [`Learner::scores`].
    pub fn scores(&self, images: &[Image]) -> Result<Vec<Scores>> {
        sound(self.method.predict(&self.core, images, None)?)
    }
}

/// Answers whose probabilities are numbers: nobody could tell the others from a choice.
fn sound(answers: Vec<Scores>) -> Result<Vec<Scores>> {
    match answers.iter().all(|answer| all_finite(&answer.probabilities)) {
        true => Ok(answers),
        false => Err(Error::NotFinite { what: "the probability of an answer".into() }),
    }
}
