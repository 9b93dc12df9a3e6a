//! How it learns: one file a method.
//!
//! A [`Method`] holds the values it needs (memory, rate rule, perturbations) and works on a [`Core`]: the network and
//! the maker of batches. It sees samples one by one and is never told about tasks, unless it declares
//! [`Knowledge`] beyond that; every table marks such methods.

mod bic;
mod clib;
mod der_plus_plus;
mod dpcl;
mod er;
mod er_cpr;
mod ewc_plus_plus;
mod finetune;
mod gdumb;
mod joint;
mod mir;
mod offline;
mod perturbed;
mod rebuild;
mod refresh;
mod replay;

pub use crate::perturb::Scores;

use std::{collections::BTreeMap, fmt};

use burn::tensor::Tensor;
use dpcl_report::record::Parameters;

use crate::{
    batch::{Batch, Batcher},
    config::{OwnKeys, Setup},
    data::Image,
    error::{Error, Result},
    memory::{Memory, Sample},
    model::{Growth, Model, Pass, cross_entropy, floats, mixed_cross_entropy},
    perturb::Votes,
    state::{Persist, State},
};

/// What a method is told beyond images and labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Knowledge {
    /// Nothing.
    None,
    /// When a task ends.
    TaskEnds,
    /// Which task each sample belongs to.
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

/// A way to learn from a stream.
pub trait Method: Persist + Send + Sync {
    /// Takes in one sample; returns the training steps it set off.
    ///
    /// # Errors
    /// When a step cannot be taken, such as on a loss that is not finite.
    fn observe(&mut self, core: &mut Core, sample: Sample) -> Result<Vec<Step>>;

    /// Learns from samples still waiting for their batch to fill.
    ///
    /// # Errors
    /// As for `observe`.
    fn flush(&mut self, core: &mut Core) -> Result<Vec<Step>>;

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

    /// Training steps it takes on a stream whose tasks end after so many samples, all it ever met counted, for those who
    /// wait; none where it takes as many as the samples earn.
    fn planned(&self, _ends: &[u64]) -> Option<u64> {
        None
    }

    /// Answers for clean images, in evaluation mode; changes nothing.
    ///
    /// # Errors
    /// When images cannot be answered.
    fn predict(&self, core: &Core, images: &[Image]) -> Result<Vec<Scores>> {
        Ok(scores(core.logits(images)))
    }

    /// How many linear heads the network needs.
    fn heads(&self) -> usize {
        1
    }

    /// Refuses a loaded state that does not go with the network, which `load` does not see.
    ///
    /// # Errors
    /// [`Error::BadState`] for what does not fit.
    fn fit(&self, _core: &Core) -> Result<()> {
        Ok(())
    }

    /// The memory, for methods that have one.
    fn memory(&self) -> Option<&Memory>;

    /// Numbers it holds beside the network of its [`Core`] and the memory; what a model's size is judged by.
    fn extra_parameters(&self) -> Parameters {
        Parameters::default()
    }

    /// Counts worth recording, cumulative.
    fn counters(&self) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }
}

/// A method that can be named in a configuration.
pub struct MethodInfo {
    /// Name in configurations, records and tables.
    pub name: &'static str,
    /// The idea in a line.
    pub about: &'static str,
    /// Where its defaults are not what its paper says.
    pub departures: &'static [&'static str],
    /// What it is told.
    pub knowledge: Knowledge,
    /// When its answers are up to date.
    pub answers: Answers,
    /// Name of its table of own keys.
    pub section: &'static str,
    /// Memory scheme unless configured; "none" for methods without memory.
    pub memory_scheme: &'static str,
    /// Rate rule unless configured.
    pub rate: &'static str,
    /// Whether head moments survive growth unless configured.
    pub keep_adam: bool,
    /// CutMix probability unless configured.
    pub cutmix: f64,
    /// Its own keys.
    pub keys: OwnKeys,
    /// Builds it; refuses what does not go together.
    pub build: fn(&Setup) -> Result<Box<dyn Method>>,
}

impl fmt::Debug for MethodInfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// Every method that can be named.
pub static METHODS: &[MethodInfo] = &[
    dpcl::INFO,
    er::INFO,
    er_cpr::INFO,
    der_plus_plus::INFO,
    mir::INFO,
    clib::INFO,
    bic::INFO,
    ewc_plus_plus::INFO,
    gdumb::INFO,
    finetune::INFO,
    joint::INFO,
];

/// The method of that name.
///
/// # Errors
/// When there is none.
pub fn find(name: &str) -> Result<&'static MethodInfo> {
    METHODS.iter().find(|info| info.name == name).ok_or_else(|| Error::UnknownName {
        kind: "method",
        name: name.to_owned(),
        known: METHODS.iter().map(|info| info.name.to_owned()).collect(),
    })
}

/// Names of the tables that methods keep their own keys in.
pub fn section_names() -> Vec<&'static str> {
    METHODS.iter().map(|info| info.section).collect()
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
    /// Grows the heads if the class is new; says whether it was.
    pub fn meet(&mut self, class: usize) -> bool {
        let new = class >= self.model.heads.classes();
        while class >= self.model.heads.classes() {
            self.model.grow(self.growth);
        }
        new
    }

    /// Evaluation-mode features of clean images, [rows, features].
    pub fn features(&self, images: &[Image]) -> Tensor<2> {
        let floats = self.batcher.clean(images);
        self.model.features(self.model.images(floats, self.batcher.size()))
    }

    /// Evaluation-mode logits of clean images, [heads, rows, classes].
    pub fn logits(&self, images: &[Image]) -> Tensor<3> {
        self.model.heads.logits(self.features(images))
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

/// Training logits of a batch, [heads, rows, classes].
fn forward(model: &Model, pass: &mut Pass<'_>, batch: &Batch, size: usize) -> Tensor<3> {
    let features = pass.features(model.images(batch.images.clone(), size));
    pass.logits(features)
}

/// Mean cross-entropy of a batch, in CutMix form where it was cut and mixed.
fn batch_loss(logits: Tensor<3>, batch: &Batch) -> Tensor<1> {
    match &batch.mix {
        Some(mix) => mixed_cross_entropy(logits, &batch.labels, &batch.partners(mix), mix.coefficient),
        None => cross_entropy(logits, &batch.labels),
    }
}

/// Answers from logits [heads, rows, classes].
fn scores(logits: Tensor<3>) -> Vec<Scores> {
    let [heads, _, classes] = logits.dims();
    Votes::from_logits(floats(logits.permute([1, 0, 2])), [heads, 1, classes]).scores()
}
