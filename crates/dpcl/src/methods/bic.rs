//! BiC: experience replay that is held to the answers of its former self, and whose logits for the newest classes are
//! corrected by a scale and a shift fitted on samples it never trains on.
//!
//! Paper: Large Scale Incremental Learning (CVPR 2019, arXiv 1905.13260), in the online form of the i-Blurry code base.
//!
//! Loss: (1/B) Σᵢ CE(zᵢ, yᵢ) + (1/B) Σᵢ −Σ_{c<Cₒ} softmax(z'ᵢ/T)_c log softmax(zᵢ/T)_c, z' the logits of the teacher:
//! the network as it was before the last new class, or at the end of the last task; the second term begins with the
//! second task. Before answering, z_c ← α·z_c + β for the classes first met in the present task. Memory: reservoir,
//! less a tenth that holds the samples for α and β. Rate: exponential decay that starts over at every new class.
//!
//! With `pfi` and `bsc` activations and heads are perturbed as in the paper of DPCL: the teacher sees the same
//! disturbance, α and β are fitted to the mean weights averaged over heads and hold for every drawn head, and the rate
//! may be `pima`. With `rebuild` the memory is chosen anew at task ends, by the network's own answers, which are not
//! corrected.
//!
//! Departures from the paper, all but the last those of i-Blurry: the two terms have equal weight; memory is a reservoir
//! instead of herding; the fit has no penalty on β. The teacher answers in evaluation mode. A task counts as present
//! until the first sample of the next, so that answers at its end are corrected for its own classes.

mod validation;

use std::{collections::BTreeMap, sync::OnceLock};

use burn::tensor::{Device, Tensor, TensorData};
use dpcl_report::record::Parameters;
use serde::{Deserialize, Serialize};

use self::validation::Validation;
use super::{
    Answers, Core, Knowledge, Method, MethodInfo, Scores, Step,
    perturbed::{Forward, Perturbed},
    replay::Replay,
};
use crate::{
    config::{OwnKeys, Setup, keys},
    data::Image,
    device,
    error::{Error, Result},
    memory::{Memory, Sample},
    model::{Architecture, Correction, Fit, Frozen, Model, distillation, floats},
    perturb::{BscConfig, PfiConfig, Votes},
    random::Random,
    rate::{self, PimaConfig, Rate},
    state::{Persist, State},
    stream::Full,
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "bic",
    about: "replay with a teacher; corrects the logits of the newest classes on samples set aside",
    departures: &[
        "both terms have equal weight",
        "the memory is a reservoir",
        "the correction is fitted without a penalty",
    ],
    knowledge: Knowledge::TaskEnds,
    answers: Answers::AnyTime,
    section: "bic",
    memory_scheme: "reservoir",
    rate: "exp-reset",
    keep_adam: false,
    cutmix: 0.5,
    keys: OwnKeys::of::<BicKeys>().mixing(|own| own.get("pfi") == Some(&true.into())),
    build: |setup| Ok(Box::new(Bic::new(setup)?)),
};

keys! {
    /// Own keys of `bic`; the defaults are those of the i-Blurry code base.
    struct BicKeys {
        /// Share of the memory that is never trained on and fits the correction.
        val_frac: f64 = 0.1, at_least(0), below(1);
        /// What logits are divided by when the network is compared with its teacher.
        temperature: f64 = 2.0, above(0);
        /// Passes over the samples set aside when the correction is fitted.
        fit_epochs: usize = 256;
        /// Learning rate of that fit.
        fit_lr: f64 = 0.001, above(0);
        /// Largest norm of the gradient of all weights together.
        clip: f64 = 10.0, above(0);

        /// Whether training activations are perturbed and mixed, which takes the place of CutMix.
        pfi: bool = false;
        /// How they are perturbed and mixed.
        interpolation: PfiConfig = PfiConfig::default();
        /// Whether there are several heads with distributions; otherwise one plain head.
        bsc: bool = false;
        /// How many heads, and how their distributions are followed.
        classifiers: BscConfig = BscConfig::default();
        /// How the rate `pima` follows the disagreement of these heads.
        pima: PimaConfig = PimaConfig::default();
    }
}

/// Samples of one step of the fit.
const FIT_ROWS: usize = 100;

/// Replay with a teacher and corrected answers.
pub struct Bic {
    replay: Replay,
    config: BicKeys,
    seed: u64,
    form: (Architecture, Device),
    perturbed: Perturbed,
    validation: Validation,
    teacher: Option<Frozen>,
    task: Task,
    /// The correction that answers until something is learned.
    fitted: OnceLock<Option<Correction>>,
}

/// Where in the stream the learner is.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Task {
    /// Tasks begun before the present one.
    earlier: u64,
    /// Whether the present one is over and waits for the first sample of the next.
    over: bool,
    /// Classes first met in the present one.
    classes: Vec<usize>,
    /// The correction at the end of the one before.
    before: Option<Correction>,
    /// Samples met in all.
    samples: u64,
}

impl Bic {
    fn new(setup: &Setup) -> Result<Self> {
        let own: BicKeys = setup.own();
        let aside = (own.val_frac * setup.memory as f64).round() as usize;
        let memory = Memory::new(&setup.memory_scheme, setup.memory - aside, setup.seed)?;
        let architecture = Architecture::named(&setup.model, setup.width, setup.bn_eps, setup.bn_momentum)?;
        let (pfi, bsc) = (own.pfi.then(|| own.interpolation.clone()), own.bsc.then_some(own.classifiers));
        let perturbed = Perturbed::new(setup, pfi, bsc, own.pima.gamma)?;
        let rate: Box<dyn Rate> = match perturbed.pima(setup, &memory, &own.pima)? {
            Some(pima) => Box::new(pima),
            None => rate::build(setup)?,
        };
        let validation = Validation::new(aside, setup.seed);
        Ok(Self {
            replay: Replay::told_task_ends(setup, memory, rate)?.setting_aside(validation.most()),
            perturbed,
            config: own,
            seed: setup.seed,
            form: (architecture, device::named(&setup.device)?),
            validation,
            teacher: None,
            task: Task::default(),
            fitted: OnceLock::new(),
        })
    }

    /// Something is about to be learned: what answered is forgotten.
    fn learning(&mut self) {
        self.fitted.take();
        self.perturbed.learning();
    }

    /// A sample arrives: what a new class and a new task change happens before the heads grow.
    fn prepare(&mut self, core: &Core, class: usize) {
        self.task.samples += 1;
        if std::mem::take(&mut self.task.over) {
            self.task.earlier += 1;
            self.task.classes.clear();
        }
        if class >= core.model.heads.classes() {
            self.copy_teacher(core);
            self.task.classes.push(class);
            self.validation.new_class(class + 1);
        }
    }

    fn copy_teacher(&mut self, core: &Core) {
        // In the first task there is nothing to be taught.
        if self.task.earlier > 0 || self.task.over {
            self.teacher = Some(Frozen::of(&core.model));
        }
    }

    fn learn(&mut self, core: &mut Core, full: &Full<Sample>) -> Result<Vec<Step>> {
        let size = core.batcher.size();
        let Self { replay, config, perturbed, teacher, task, .. } = self;
        let teacher = teacher.as_ref().filter(|_| task.earlier > 0);
        let steps = replay.iterate_with(core, full, |model: &mut Model, batch, memory, rate| {
            let mut pass = model.pass();
            let forward = perturbed.forward(model, &mut pass, batch, size);
            let mut loss = forward.losses.mean();
            if let Some(teacher) = teacher {
                let taught = taught(teacher, task.before.as_ref(), &forward);
                loss = loss + distillation(forward.logits.clone(), taught, config.temperature);
            }

            let mut outcome = pass.backward(&loss);
            outcome.clip(config.clip);
            let loss = outcome.loss;
            model.update(outcome, rate.rate());
            perturbed.learned(model, batch, forward, loss, memory, rate);
            loss
        })?;
        replay.remember(full);
        Ok(steps)
    }

    /// The correction for the present network, fitted when first asked for.
    fn correction(&self, core: &Core) -> Option<&Correction> {
        self.fitted.get_or_init(|| self.fit(core)).as_ref()
    }

    fn fit(&self, core: &Core) -> Option<Correction> {
        let Task { earlier, classes, samples, .. } = &self.task;
        let aside = self.validation.whole()?;
        if *earlier == 0 || classes.is_empty() {
            return None;
        }
        let images: Vec<Image> = aside.iter().map(|sample| sample.image.clone()).collect();
        let labels: Vec<usize> = aside.iter().map(|sample| sample.class).collect();
        let logits = self.perturbed.mean_logits(core, &images);
        let fit = Fit { epochs: self.config.fit_epochs, batch: FIT_ROWS, rate: self.config.fit_lr };
        let mut random = Random::named(self.seed, &format!("bias-fit-{samples}"));
        Some(Correction::fitted(classes.clone(), &logits, &labels, fit, &mut random))
    }
}

impl Method for Bic {
    fn observe(&mut self, core: &mut Core, sample: Sample) -> Result<Vec<Step>> {
        self.learning();
        self.prepare(core, sample.class);
        if self.validation.wants(sample.class) {
            self.replay.arrive_unused(core, sample.class);
            self.validation.take(sample, core.model.heads.classes());
            return Ok(Vec::new());
        }
        match self.replay.arrive(core, sample) {
            Some(full) => self.learn(core, &full),
            None => Ok(Vec::new()),
        }
    }

    fn flush(&mut self, core: &mut Core) -> Result<Vec<Step>> {
        self.learning();
        match self.replay.flush() {
            Some(full) => self.learn(core, &full),
            None => Ok(Vec::new()),
        }
    }

    fn task_end(&mut self, core: &mut Core) -> Result<()> {
        self.task.before = self.correction(core).cloned();
        self.task.over = true;
        self.copy_teacher(core);
        self.replay.task_end(core);
        Ok(())
    }

    fn predict(&self, core: &Core, images: &[Image]) -> Result<Vec<Scores>> {
        let (mut logits, shape) = self.perturbed.logits(core, images);
        if let Some(correction) = self.correction(core) {
            correction.apply(&mut logits, shape[2]);
        }
        Ok(Votes::from_logits(logits, shape).scores())
    }

    fn heads(&self) -> usize {
        self.perturbed.heads()
    }

    fn memory(&self) -> Option<&Memory> {
        Some(&self.replay.memory)
    }

    fn fit(&self, core: &Core) -> Result<()> {
        let known = core.model.heads.classes();
        if let Some(class) = self.task.classes.iter().find(|&&class| class >= known) {
            let problem = format!("names class {class} of {known}");
            return Err(Error::BadState { key: "task".into(), problem });
        }
        self.perturbed.fit(&core.model.heads)
    }

    fn extra_parameters(&self) -> Parameters {
        let teacher = self.teacher.as_ref().map_or(0, Frozen::parameters);
        let heads = self.perturbed.parameters();
        Parameters { state: heads.state + teacher, ..heads }
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        let rate = self.replay.rate.counters().into_iter().map(|(name, count)| (name.to_owned(), count));
        rate.chain(self.perturbed.counters()).map(|(name, count)| (name, count as f64)).collect()
    }
}

impl Persist for Bic {
    fn save(&self, state: &mut State) {
        self.replay.save(state);
        state.save_part("perturbed", &self.perturbed);
        state.save_part("validation", &self.validation);
        state.put("task", &self.task);
        state.put("taught", &self.teacher.is_some());
        if let Some(teacher) = &self.teacher {
            state.save_part("teacher", teacher);
        }
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.fitted.take();
        self.replay.load(state)?;
        state.load_part("perturbed", &mut self.perturbed)?;
        state.load_part("validation", &mut self.validation)?;
        self.task = state.get("task")?;
        self.teacher = None;
        if state.get("taught")? {
            let (architecture, device) = &self.form;
            let mut teacher = Frozen::blank(*architecture, self.perturbed.heads(), device);
            state.load_part("teacher", &mut teacher)?;
            self.teacher = Some(teacher);
        }
        Ok(())
    }
}

/// Logits [heads, rows, classes] of the teacher on a batch, disturbed like the network's own and corrected as the
/// teacher's answers were.
fn taught(teacher: &Frozen, correction: Option<&Correction>, forward: &Forward) -> Tensor<3> {
    let logits = teacher.logits(forward.images.clone(), &mut |depth, x| forward.disturb(depth, x));
    let Some(correction) = correction else { return logits };
    let (shape, device) = (logits.dims(), logits.device());
    let mut numbers = floats(logits);
    correction.apply(&mut numbers, shape[2]);
    Tensor::from_data(TensorData::new(numbers, shape), &device)
}
