//! The type a library user holds: network, memory and method behind two verbs, `observe` and `predict`.
//!
//! Labels are any strings or integers; classes are numbered here in order of first arrival and are never announced
//! in advance.

mod answering;
mod exchange;
mod histories;
mod keep;
mod label;
mod probing;
mod snapshot;

pub use answering::AverageStatistics;
use answering::Remeasured;
pub use label::Label;
pub use snapshot::Snapshot;

use std::{collections::HashMap, fmt, path::Path};

use dpcl_report::record::{Parameters, Remark};
use serde::{Deserialize, Serialize};

use crate::{
    answers::Scores,
    augment::{CutMix, Pipeline},
    batch::Batcher,
    config::{Config, Setup},
    data::Image,
    device,
    error::{Error, Result},
    memory::{Memory, Sample},
    method::{Answers, Arrival, Core, Knowledge, Method, Step},
    model::{Growth, Model},
    process, weights_file,
};

/// Size of the images a learner takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// Colours; 3.
    pub channels: usize,
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} × {} pixels with {} colours", self.height, self.width, self.channels)
    }
}

/// What one observation set off.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observation {
    /// Whether the label had never been met.
    pub new_class: bool,
    /// Training steps taken.
    pub steps: Vec<Step>,
}

/// An answer for one image.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The most probable class.
    pub label: Label,
    /// Every class met so far with its probability, in order of first arrival.
    pub probabilities: Vec<(Label, f32)>,
    /// How much the heads disagree: mutual information in nats, 0 where only one answer was given.
    pub disagreement: f64,
    /// Total uncertainty: entropy of the probabilities in nats.
    pub entropy: f64,
}

/// A learner that takes samples one by one and answers at any time.
pub struct Learner {
    setup: Setup,
    shape: Shape,
    core: Core,
    method: Box<dyn Method>,
    labels: Vec<Label>,
    numbers: HashMap<Label, usize>,
    samples: u64,
    updates: u64,
    remeasured: Remeasured,
}

impl Learner {
    /// A learner that knows no class yet. Images of `shape` are expected; their colours are normalised with the
    /// configured `mean` and `std` (0.5 and 0.25 unless given). The configured number of threads holds for the process.
    ///
    /// # Errors
    /// When the configuration or the shape cannot be run, or the file of initial weights cannot be read.
    pub fn new(config: &Config, shape: Shape) -> Result<Self> {
        Self::of(&Self::setup_for(config, shape)?, shape)
    }

    /// The same from a configuration that has been checked.
    ///
    /// # Errors
    /// As for [`Learner::new`].
    pub fn of(setup: &Setup, shape: Shape) -> Result<Self> {
        let mut learner = Self::blank(setup, shape)?;
        if let Some(path) = &setup.weights {
            weights_file::load_encoder(Path::new(path), learner.core.model.encoder_mut())?;
        }
        Ok(learner)
    }

    /// A learner with freshly drawn weights, whatever file the configuration names.
    fn blank(setup: &Setup, shape: Shape) -> Result<Self> {
        if shape.channels != 3 || shape.height != shape.width {
            let expected = "square images with 3 colours".into();
            return Err(Error::WrongShape { expected, found: shape.to_string() });
        }
        let device = device::named(&setup.device)?;
        dpcl_kernels::set_threads(process::threads(setup.threads));
        let method = (setup.method.build)(setup)?;
        let architecture = method.architecture(setup.architecture()?);
        let model = Model::new(architecture, method.heads(), setup.seed, &device).averaged(setup.average);
        let growth = Growth { keep_bias: setup.head_keep_bias, keep_moments: setup.head_keep_adam };
        let core = Core { model, batcher: batcher(setup), growth };
        Ok(Self {
            setup: setup.clone(),
            shape,
            core,
            method,
            labels: Vec::new(),
            numbers: HashMap::new(),
            samples: 0,
            updates: 0,
            remeasured: Remeasured::default(),
        })
    }

    /// The setup of a learner of images of this shape.
    fn setup_for(config: &Config, shape: Shape) -> Result<Setup> {
        let mut config = config.clone();
        config.settings.size = Some(shape.height);
        config.check()
    }

    /// Takes in one labelled image.
    ///
    /// # Errors
    /// When the image has another shape, the method must be told the task, or training runs away.
    pub fn observe(&mut self, image: &Image, label: impl Into<Label>) -> Result<Observation> {
        self.take_in(image, label.into(), None)
    }

    /// Takes in one labelled image of a task, numbered from 0; methods that are not told tasks do not hear of it.
    ///
    /// # Errors
    /// When the image has another shape or training runs away.
    pub fn observe_in(&mut self, task: usize, image: &Image, label: impl Into<Label>) -> Result<Observation> {
        self.take_in(image, label.into(), Some(task))
    }

    fn take_in(&mut self, image: &Image, label: Label, task: Option<usize>) -> Result<Observation> {
        self.check(image)?;
        let task = self.told(task);
        if task.is_none() && self.knowledge() == Knowledge::TaskIds {
            return Err(Error::NoTask { method: self.setup.method.name.to_owned() });
        }
        let known = self.labels.len();
        let class = *self.numbers.entry(label.clone()).or_insert(known);
        let new_class = class == known;
        if new_class {
            self.labels.push(label);
            self.method.new_class(&mut self.core);
        }
        self.samples += 1;
        let arrival = Arrival { sample: Sample::new(image.clone(), class), task };
        let steps = self.method.observe(&mut self.core, arrival)?;
        self.updates += steps.len() as u64;
        Ok(Observation { new_class, steps })
    }

    /// What the method hears of a task.
    fn told(&self, task: Option<usize>) -> Option<usize> {
        task.filter(|_| self.knowledge() == Knowledge::TaskIds)
    }

    /// Takes in labelled images in order.
    ///
    /// # Errors
    /// As for [`Learner::observe`]; images before the failing one are learned.
    pub fn observe_all<'a, L: Into<Label>>(
        &mut self,
        samples: impl IntoIterator<Item = (&'a Image, L)>,
    ) -> Result<Vec<Observation>> {
        samples.into_iter().map(|(image, label)| self.observe(image, label)).collect()
    }

    /// Learns from samples still waiting for their batch to fill.
    ///
    /// # Errors
    /// When training runs away.
    pub fn flush(&mut self) -> Result<Vec<Step>> {
        let steps = self.method.flush(&mut self.core)?;
        self.updates += steps.len() as u64;
        Ok(steps)
    }

    /// Tells the method that a task ended, if it is of the kind that is told, and lets it do its work.
    ///
    /// # Errors
    /// When the method's work at task ends fails.
    pub fn task_end(&mut self) -> Result<()> {
        self.announce_task_end()?;
        while !self.catch_up()?.is_empty() {}
        Ok(())
    }

    /// Tells the method that nothing more will come, and lets it do its work.
    ///
    /// # Errors
    /// When the method's last work fails.
    pub fn finish(&mut self) -> Result<()> {
        self.announce_end()?;
        while !self.catch_up()?.is_empty() {}
        Ok(())
    }

    /// Takes some of the training steps that an announcement left to do; none when all are taken.
    pub(crate) fn catch_up(&mut self) -> Result<Vec<Step>> {
        let steps = self.method.catch_up(&mut self.core)?;
        self.updates += steps.len() as u64;
        Ok(steps)
    }

    /// Training steps the method takes on a stream whose tasks end after these numbers of samples, those before it counted, if it
    /// does not take those that the samples earn.
    pub(crate) fn planned(&self, ends: &[u64]) -> Option<u64> {
        self.method.planned(ends)
    }

    /// Tells the method that the stream has ended; work may be left for [`Learner::catch_up`].
    pub(crate) fn announce_end(&mut self) -> Result<()> {
        self.method.finish(&mut self.core)
    }

    /// Tells the method that a task ended; work may be left for [`Learner::catch_up`].
    pub(crate) fn announce_task_end(&mut self) -> Result<()> {
        match self.knowledge() {
            Knowledge::None => Ok(()),
            Knowledge::TaskEnds | Knowledge::TaskIds => self.method.task_end(&mut self.core),
        }
    }

    /// Answers for one image.
    ///
    /// # Errors
    /// [`Error::NoClassYet`] before the first observation; when the image has another shape.
    pub fn predict(&self, image: &Image) -> Result<Prediction> {
        let mut answers = self.predict_all(std::slice::from_ref(image))?;
        answers.pop().ok_or(Error::NoClassYet)
    }

    /// Answers for many images at once, which is faster than one by one.
    ///
    /// # Errors
    /// As for [`Learner::predict`].
    pub fn predict_all(&self, images: &[Image]) -> Result<Vec<Prediction>> {
        Ok(self.named(self.scores(images, None)?))
    }

    /// The same for images of a task, numbered from 0; methods that are not told tasks do not hear of it.
    ///
    /// # Errors
    /// As for [`Learner::predict`].
    pub fn predict_all_in(&self, task: usize, images: &[Image]) -> Result<Vec<Prediction>> {
        Ok(self.named(self.scores(images, Some(task))?))
    }

    fn named(&self, scores: Vec<Scores>) -> Vec<Prediction> {
        let answer = |scores: Scores| Prediction {
            label: self.labels[scores.best()].clone(),
            disagreement: scores.disagreement,
            entropy: scores.entropy,
            probabilities: self.labels.iter().cloned().zip(scores.probabilities).collect(),
        };
        scores.into_iter().map(answer).collect()
    }

    /// Probabilities by class number, for evaluators.
    pub(crate) fn scores(&self, images: &[Image], task: Option<usize>) -> Result<Vec<Scores>> {
        if self.labels.is_empty() {
            return Err(Error::NoClassYet);
        }
        images.iter().try_for_each(|image| self.check(image))?;
        if images.is_empty() {
            return Ok(Vec::new());
        }
        self.answer(images, self.told(task))
    }

    /// Makes sure that weights and statistics, of what learns and of what answers, are finite numbers.
    ///
    /// # Errors
    /// [`Error::NotFinite`] with the name of one that is not.
    pub fn check_finite(&self) -> Result<()> {
        match self.core.model.not_finite() {
            Some(name) => Err(Error::NotFinite { what: format!("`{name}`") }),
            None => Ok(()),
        }
    }

    /// Labels met so far, in order of first arrival.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// Samples taken in so far.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Training steps taken so far.
    pub fn updates(&self) -> u64 {
        self.updates
    }

    /// The configuration with every value settled.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The configuration that it would be made anew with: what a checkpoint holds.
    pub fn config(&self) -> Config {
        self.setup.config()
    }

    /// Size of the images it takes.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The memory, for methods that have one.
    pub fn memory(&self) -> Option<&Memory> {
        self.method.memory()
    }

    /// What the method is told beyond images and labels.
    pub fn knowledge(&self) -> Knowledge {
        self.setup.method.knowledge
    }

    /// When the method's answers are up to date.
    pub fn answers(&self) -> Answers {
        self.setup.method.answers
    }

    /// Counts the method wants on record.
    pub fn counters(&self) -> std::collections::BTreeMap<String, f64> {
        self.method.counters()
    }

    /// What befell the method that tables have to say below them, such as a limit that was met.
    pub fn remarks(&self) -> Vec<Remark> {
        self.method.remarks()
    }

    /// How many numbers it holds, stored images and optimiser moments left out.
    pub fn parameters(&self) -> Parameters {
        let extra = self.method.extra_parameters();
        let Core { model, .. } = &self.core;
        let average = model.average().map_or(0, |average| average.network().parameters());
        let (network, state) = (extra.network + model.network().parameters(), extra.state + average);
        Parameters { network, state, ..extra }
    }

    fn check(&self, image: &Image) -> Result<()> {
        let found = Shape { channels: 3, height: image.height, width: image.width };
        let whole =
            image.pixels.len() == found.height.saturating_mul(found.width).saturating_mul(found.channels);
        if found != self.shape || !whole {
            return Err(Error::WrongShape { expected: self.shape.to_string(), found: found.to_string() });
        }
        Ok(())
    }
}

fn batcher(setup: &Setup) -> Batcher {
    let pipeline = Pipeline {
        padding: setup.pad_crop,
        flip: true,
        policy: setup.autoaugment,
        mean: setup.mean,
        std: setup.std,
    };
    let cutmix = CutMix { probability: setup.cutmix_prob, alpha: setup.cutmix_alpha };
    Batcher::new(pipeline, cutmix, setup.size, setup.seed).in_halves(setup.asymmetric)
}
