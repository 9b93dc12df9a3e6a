//! What a method is, and what an author of one needs.
//!
//! A [`Method`] works on a [`Core`]: the network and the maker of batches. It sees samples one by one and is never told
//! about tasks, unless it declares [`Knowledge`] beyond that; every table marks such methods.
//!
//! Most methods rehearse. Such a one implements [`Rehearse`], its step and what it remembers beyond the samples it
//! stores, and becomes a method by [`Rehearsal::boxed`]. A step goes forward through a [`Pass`], makes a loss and hands
//! both to [`Training::step`]. [`MethodInfo`] says how a method is listed and built, and [`crate::keys!`] declares its
//! own keys. `examples/own_method.rs` of the command is a whole one.
//!
//! | what | where |
//! |---|---|
//! | samples, and how batches are made of them | [`Sample`], [`Batch`], [`Recipe`], [`Batcher`] |
//! | what is kept, and numbers kept with it | [`Memory`], [`Scheme`], [`Place`], [`SlotVectors`] |
//! | how fast to learn | [`Rate`], [`configured_rate`] |
//! | the network | [`Model`], [`Pass`], [`Outcome`], [`Shift`], [`LayerView`], [`Network`], [`Norms`], [`Weights`], [`Architecture`] |
//! | losses | [`batch_loss`], [`cross_entropy`], [`distillation`], … |
//! | perturbed activations and heads | [`DoublePerturbation`], [`DoubleKeys`] |
//! | answers | [`Scores`], [`scores`] |
//! | chance, saving | [`Random`], [`Persist`], [`State`] |

use std::collections::BTreeMap;

pub use crate::{
    answers::{Scores, Votes},
    batch::{Batch, Batcher, Candidates, Recipe},
    config::{OwnKeys, Setup},
    memory::{Chance, Drawn, Memory, Offer, Place, Sample, Samples, Scheme, SlotVectors, View},
    methods::{MethodInfo, REHEARSAL},
    model::{
        Adam, Architecture, Average, Change, Encoder, FileLayout, Gradients, Growth, Heads, Layer, LayerView,
        Model, Network, Norms, Outcome, Pass, Shift, Watch, Weight, Weights, cross_entropy,
        cross_entropy_rows, distillation, divergence, floats, matrix, mean_entropy, mixed_cross_entropy,
        pooled, stored_distance,
    },
    random::Random,
    rate::{Rate, build as configured_rate},
    rehearsal::{
        Objective, Rehearsal, Rehearse, Replay, Training, batch_loss,
        double::{Correlation, DoubleKeys, DoublePerturbation, HistoryCheck, Way},
        forward,
        offline::Offline,
    },
    state::{Array, Elements, Persist, State},
};
use burn::tensor::Tensor;
pub use dpcl_report::record::{Parameters, Remark};

use crate::{data::Image, error::Result};

/// What a method is told beyond images and labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knowledge {
    /// Nothing.
    None,
    /// When a task ends.
    TaskEnds,
    /// When a task ends and which task each sample belongs to. Answers are asked for with the task and without.
    TaskIds,
}

impl Knowledge {
    /// The name used in records and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::TaskEnds => "task-ends",
            Self::TaskIds => "task-ids",
        }
    }
}

/// When what a method answers is what it has learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answers {
    /// Always.
    AnyTime,
    /// At task ends; in between it answers as of the last one.
    TaskEnds,
    /// When the stream has ended; before, its answers count for nothing and are not evaluated.
    End,
}

impl Answers {
    /// The name used in records.
    pub fn name(self) -> &'static str {
        match self {
            Self::AnyTime => "any-time",
            Self::TaskEnds => "task-ends",
            Self::End => "end",
        }
    }
}

/// One training step, for the record.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Step {
    /// Training loss before the step.
    pub loss: f64,
    /// Learning rate it was taken with.
    pub rate: f64,
}

/// A sample as it reaches a method.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// The image and its class.
    pub sample: Sample,
    /// Its task, from 0; only for methods that declare [`Knowledge::TaskIds`].
    pub task: Option<usize>,
}

/// A way to learn from a stream.
pub trait Method: Persist + Send + Sync {
    /// A class is about to be met for the first time; called before the sample that brings it is observed. The
    /// class's number is that of the classes met before it.
    fn new_class(&mut self, core: &mut Core) {
        core.grow();
    }

    /// Takes in one sample; returns the training steps it set off.
    ///
    /// # Errors
    /// When a step cannot be taken, such as on a loss that is not finite.
    fn observe(&mut self, core: &mut Core, arrival: Arrival) -> Result<Vec<Step>>;

    /// Learns from samples still waiting for their batch to fill.
    ///
    /// # Errors
    /// As for `observe`.
    fn flush(&mut self, _core: &mut Core) -> Result<Vec<Step>> {
        Ok(Vec::new())
    }

    /// How many samples wait for their batch to fill.
    fn waiting(&self) -> usize {
        0
    }

    /// A task ended; called only for methods that declare [`Knowledge::TaskEnds`] or more.
    ///
    /// # Errors
    /// As for `observe`.
    fn task_end(&mut self, _core: &mut Core) -> Result<()> {
        Ok(())
    }

    /// The stream has ended; called once, before the last evaluation and after the last `task_end`.
    ///
    /// # Errors
    /// As for `observe`.
    fn finish(&mut self, _core: &mut Core) -> Result<()> {
        Ok(())
    }

    /// Takes some of the training steps that `task_end` or `finish` left to do; none when all are taken. Called again
    /// and again after both, so that long work can be watched and stopped.
    ///
    /// # Errors
    /// As for `observe`.
    fn catch_up(&mut self, _core: &mut Core) -> Result<Vec<Step>> {
        Ok(Vec::new())
    }

    /// Training steps it takes on a stream whose tasks end after these numbers of samples, all it ever met counted, for
    /// those who wait; none where it takes as many as the samples earn.
    fn planned(&self, _ends: &[u64]) -> Option<u64> {
        None
    }

    /// Answers for clean images, in evaluation mode; changes nothing. Methods that declare [`Knowledge::TaskIds`] are
    /// asked with the task the images belong to and without; others never hear of it.
    ///
    /// # Errors
    /// When images cannot be answered.
    fn predict(&self, core: &Core, images: &[Image], _task: Option<usize>) -> Result<Vec<Scores>> {
        Ok(scores(core.logits(images)))
    }

    /// How many linear heads the network needs.
    fn heads(&self) -> usize {
        1
    }

    /// The network it needs, made of the configured one.
    fn architecture(&self, configured: Architecture) -> Architecture {
        configured
    }

    /// How many classes it can answer with: those of the network's heads, unless it keeps heads of its own.
    fn classes(&self, core: &Core) -> usize {
        core.model.heads().classes()
    }

    /// Refuses a loaded state that does not go with the network, which `load` does not see.
    ///
    /// # Errors
    /// [`crate::Error::BadState`] for what does not fit.
    fn check_loaded(&self, _core: &Core) -> Result<()> {
        Ok(())
    }

    /// The memory, for methods that have one.
    fn memory(&self) -> Option<&Memory> {
        None
    }

    /// How well the histories of stored samples tell what heads disagree on, for methods that measure it.
    fn check_histories(&self, _core: &Core) -> Option<HistoryCheck> {
        None
    }

    /// Numbers it holds beside the network of its [`Core`] and the memory; what a model's size is judged by.
    fn extra_parameters(&self) -> Parameters {
        Parameters::default()
    }

    /// Counts worth recording, cumulative.
    fn counters(&self) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    /// What befell it that tables have to say below them, such as a limit that was met.
    fn remarks(&self) -> Vec<Remark> {
        Vec::new()
    }
}

/// What every method works on: the network and the maker of batches.
pub struct Core {
    /// Encoder, heads, optimiser.
    pub model: Model,
    /// Maker of batches.
    pub batcher: Batcher,
    /// What survives when heads grow.
    pub growth: Growth,
}

impl Core {
    /// Adds one class to every head.
    pub fn grow(&mut self) {
        self.model.grow(self.growth);
    }

    /// Features that answers come from: evaluation mode, clean images, the average where one is kept, [rows, features].
    pub fn features(&self, images: &[Image]) -> Tensor<2> {
        let floats = self.batcher.clean(images);
        self.model.answering().features(self.model.images(floats, self.batcher.size()))
    }

    /// Logits of the same, [heads, rows, classes].
    pub fn logits(&self, images: &[Image]) -> Tensor<3> {
        self.model.answering().heads().logits(self.features(images))
    }
}

impl Persist for Core {
    fn save(&self, state: &mut State) {
        state.save_part("model", &self.model);
        state.save_part("batcher", &self.batcher);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        state.load_part("model", &mut self.model)?;
        state.load_part("batcher", &mut self.batcher)
    }
}

/// Answers from logits [heads, rows, classes].
pub fn scores(logits: Tensor<3>) -> Vec<Scores> {
    let [heads, _, classes] = logits.dims();
    Votes::from_logits(floats(logits.permute([1, 0, 2])), [heads, 1, classes]).scores()
}
