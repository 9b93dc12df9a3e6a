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

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use dpcl_report::record::Parameters;
use serde::{Deserialize, Serialize};

use self::validation::Validation;
use super::{Method, MethodInfo, REHEARSAL};
use crate::{
    answers::Scores,
    batch::Batch,
    cache::Cache,
    config::{OwnKeys, Setup, keys},
    data::Image,
    device,
    error::{Error, Result},
    memory::{Memory, Sample},
    method::{Arrival, Core, Knowledge},
    model::{Architecture, Correction, Fit, Network, distillation, floats},
    random::Random,
    rate::{self, Rate},
    rehearsal::{
        Rehearsal, Rehearse, Replay, Training,
        double::{DoubleKeys, DoublePerturbation, Forward},
    },
    state::{Persist, State},
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
    section: "bic",
    keys: OwnKeys::of::<BicKeys>().mixing(DoubleKeys::mixes),
    build: Bic::build,
    ..REHEARSAL
};

keys! {
    /// Own keys of `bic`; the defaults are those of the i-Blurry code base.
    struct BicKeys {
        /// Share of the memory that is never trained on and fits the correction.
        val_frac: f64 = 0.1, at_least(0), below(1);
        /// What logits are divided by when the network is compared with its teacher.
        temperature: f64 = 2.0, above(0);
        /// Passes over the samples set aside when the correction is fitted.
        fit_epochs: usize = 256, capped(1_000_000, "no run would come to an end");
        /// Learning rate of that fit.
        fit_lr: f64 = 0.001, above(0);
        /// Largest norm of the gradient of all weights together.
        clip: f64 = 10.0, above(0);
        /// Perturbed activations and heads.
        double: DoubleKeys = DoubleKeys::default();
    }
}

/// Samples of one step of the fit.
const FIT_ROWS: usize = 100;

/// Replay with a teacher and corrected answers.
pub struct Bic {
    keys: BicKeys,
    seed: u64,
    form: (Architecture, Device),
    double: DoublePerturbation,
    validation: Validation,
    teacher: Option<Network>,
    task: Task,
    /// The correction that answers, by the network's revision and the samples met.
    fitted: Cache<(u64, bool, u64), Option<Correction>>,
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
    fn build(setup: &Setup) -> Result<Box<dyn Method>> {
        let own: BicKeys = setup.own();
        let aside = (own.val_frac * setup.memory as f64).round() as usize;
        let memory = Memory::new(&setup.memory_scheme, setup.memory - aside, setup.seed)?;
        let architecture = setup.architecture()?;
        let double = DoublePerturbation::new(setup, &own.double)?;
        let rate: Box<dyn Rate> = match double.pima(setup, &memory, &own.double.pima)? {
            Some(pima) => Box::new(pima),
            None => rate::build(setup)?,
        };
        let validation = Validation::new(aside, setup.seed);
        let replay = Replay::with(setup, memory, rate)?.setting_aside(validation.most());
        let bic = Self {
            keys: own,
            seed: setup.seed,
            form: (architecture, device::named(&setup.device)?),
            double,
            validation,
            teacher: None,
            task: Task::default(),
            fitted: Cache::default(),
        };
        Ok(Rehearsal::boxed(replay, bic))
    }

    /// A task that is over gives way to the next when its first sample comes.
    fn enter_task(&mut self) {
        if std::mem::take(&mut self.task.over) {
            self.task.earlier += 1;
            self.task.classes.clear();
        }
    }

    fn copy_teacher(&mut self, core: &Core) {
        // In the first task there is nothing to be taught.
        if self.task.earlier > 0 || self.task.over {
            self.teacher = Some(core.model.network().clone());
        }
    }

    /// The correction for the present network, fitted when first asked for.
    fn correction(&self, core: &Core) -> Arc<Option<Correction>> {
        let key = (core.model.revision(), core.model.average().is_some(), self.task.samples);
        self.fitted.get(key, || self.fit(core))
    }

    fn fit(&self, core: &Core) -> Option<Correction> {
        let Task { earlier, classes, samples, .. } = &self.task;
        let aside = self.validation.whole()?;
        if *earlier == 0 || classes.is_empty() {
            return None;
        }
        let labels: Vec<usize> = aside.iter().map(|sample| sample.class).collect();
        let images = core.model.images(core.batcher.stored(aside.iter()), core.batcher.size());
        let logits = self.double.heads.mean_logits(&core.model, core.model.answering().features(images));
        let fit = Fit { epochs: self.keys.fit_epochs, batch: FIT_ROWS, rate: self.keys.fit_lr };
        let mut random = Random::named(self.seed, &format!("bias-fit-{samples}"));
        Some(Correction::fitted(classes.clone(), &logits, &labels, fit, &mut random))
    }
}

impl Rehearse for Bic {
    fn new_class(&mut self, core: &Core) {
        self.enter_task();
        self.copy_teacher(core);
        let class = core.model.heads().classes();
        self.task.classes.push(class);
        self.validation.new_class(class + 1);
    }

    fn arrive(&mut self, core: &Core, Arrival { sample, .. }: Arrival) -> Option<Sample> {
        self.enter_task();
        self.task.samples += 1;
        if self.validation.wants(sample.class) {
            self.validation.take(sample, core.model.heads().classes());
            return None;
        }
        Some(sample)
    }

    fn step(&mut self, training: &mut Training<'_>, batch: Batch) -> Result<f64> {
        let mut pass = training.model.pass();
        let forward = self.double.forward(&mut pass, &batch);
        let mut loss = forward.losses.mean();
        if let Some(teacher) = self.teacher.as_ref().filter(|_| self.task.earlier > 0) {
            let taught = taught(teacher, self.task.before.as_ref(), &forward);
            loss = loss + distillation(forward.logits.clone(), taught, self.keys.temperature);
        }
        let loss = training.taught_perturbed(loss, &forward);

        let mut outcome = pass.backward(&loss);
        outcome.clip(self.keys.clip);
        let loss = training.apply(outcome, &batch)?;

        self.double.learned(training, &batch, forward);
        Ok(loss)
    }

    fn task_end(&mut self, core: &Core, _memory: &Memory) {
        self.task.before = self.correction(core).as_ref().clone();
        self.task.over = true;
        self.copy_teacher(core);
    }

    fn predict(&self, core: &Core, images: &[Image], _task: Option<usize>) -> Result<Vec<Scores>> {
        let (mut logits, shape) = self.double.logits(core, images);
        if let Some(correction) = &*self.correction(core) {
            correction.apply(&mut logits, shape[2]);
        }
        Ok(self.double.scores(logits, shape))
    }

    fn double(&self) -> Option<&DoublePerturbation> {
        Some(&self.double)
    }

    fn double_mut(&mut self) -> Option<&mut DoublePerturbation> {
        Some(&mut self.double)
    }

    fn check_loaded(&self, core: &Core, _memory: &Memory) -> Result<()> {
        let known = core.model.heads().classes();
        if let Some(class) = self.task.classes.iter().find(|&&class| class >= known) {
            let problem = format!("names class {class} of {known}");
            return Err(Error::BadState { key: "method.task".into(), problem });
        }
        if let Some(teacher) = self.teacher.as_ref().filter(|teacher| teacher.heads().classes() > known) {
            let problem = format!("knows {} classes of {known}", teacher.heads().classes());
            return Err(Error::BadState { key: "method.teacher".into(), problem });
        }
        Ok(())
    }

    fn extra_parameters(&self) -> Parameters {
        let teacher = self.teacher.as_ref().map_or(0, Network::parameters);
        Parameters { state: teacher, ..Parameters::default() }
    }
}

impl Persist for Bic {
    fn save(&self, state: &mut State) {
        state.save_part("validation", &self.validation);
        state.put("task", &self.task);
        state.put("taught", &self.teacher.is_some());
        if let Some(teacher) = &self.teacher {
            state.save_part("teacher", teacher);
        }
    }

    fn load(&mut self, state: &State) -> Result<()> {
        state.load_part("validation", &mut self.validation)?;
        self.task = state.get_counted("task")?;
        self.teacher = None;
        if state.get("taught")? {
            let (architecture, device) = &self.form;
            let mut teacher = Network::blank(*architecture, self.double.heads.count(), device);
            state.load_part("teacher", &mut teacher)?;
            self.teacher = Some(teacher);
        }
        Ok(())
    }
}

/// Logits [heads, rows, classes] of the teacher on a batch, disturbed like the network's own and corrected as the
/// teacher's answers were.
fn taught(teacher: &Network, correction: Option<&Correction>, forward: &Forward) -> Tensor<3> {
    let logits = teacher.logits_with(forward.images.clone(), &mut |depth, x| forward.disturb(depth, x));
    let Some(correction) = correction else { return logits };
    let (shape, device) = (logits.dims(), logits.device());
    let mut numbers = floats(logits);
    correction.apply(&mut numbers, shape[2]);
    Tensor::from_data(TensorData::new(numbers, shape), &device)
}
