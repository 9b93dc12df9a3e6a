//! CTN: a base that all tasks share, and a controller that modulates its features for each; both learn in turn, from
//! two memories.
//!
//! Paper: Contextual Transformation Networks for Online Continual Learning (Pham et al., ICLR 2021).
//!
//! The last residual group ends without ReLU; its maps h become ReLU(g ⊙ h + b) + ReLU(h), (g, b) made of the task's
//! embedding and each of length one (`controller.rs`). One linear layer over all classes; every loss sees the columns
//! of a row's task only, those of the classes met in it.
//!
//! Base, plain gradient steps: CE(rows) + CE(replay) + w·KL(stored answers ‖ answers at temperature T), the last two
//! once there is a second task; the gradient of the first is that of the first step in a round. Controller, a plain
//! step at its own rate after every `inner` steps of the base, which make a round: CE over semantic samples of all
//! tasks, the gradient halved and cut at 1 (`round.rs`). Answers are stored with the episodic samples of a task when
//! it ends. Memory: every task has memory / tasks slots, a fifth of them semantic, each part a ring in which the
//! newest sample takes the place of the oldest; more tasks than `tasks` shrink the shares.
//!
//! Told the task of an image it answers with that task's modulation and columns. Told none, or a task never met,
//! every task gives the logits of its columns under its own modulation; of several for one class the largest counts.
//!
//! Departures from the paper's code: rows are the stream's half of a batch, augmented and in CutMix form as
//! everywhere here, those of two tasks apart; a round ends after `inner` of the steps that samples have earned, where
//! the code has two rounds a batch; what joins the batch is the semantic sample displaced, where the code takes the
//! one before it; at most `controller_rows` semantic samples are drawn; answers are stored in evaluation mode; the
//! controller's step leaves running statistics alone; groups before the last end their blocks as the configured
//! network does, where the code has no ReLU there either. `average` averages the base.

mod controller;
mod losses;
mod rings;
mod round;
#[cfg(test)]
mod tests;

use dpcl_report::record::Parameters;
use serde::{Deserialize, Serialize};

use self::{
    controller::Controller,
    rings::{Part, Rings},
};
use super::{Method, MethodInfo, REHEARSAL};
use crate::{
    answers::Scores,
    config::{OwnKeys, Setup, keys},
    data::Image,
    device,
    error::{Error, Result},
    memory::{Memory, Place, Sample, SlotVectors},
    method::{Arrival, Core, Knowledge, Step},
    model::{Architecture, floats},
    random::Random,
    rate::Rate,
    rehearsal::{
        Objective,
        by_task::{ByTask, LearnsByTask},
        rebuild,
        replay::unmeasuring_rate,
    },
    state::{Persist, State},
    stream::Due,
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "ctn",
    about: "features modulated for each task by a controller that learns from a memory of its own",
    departures: &[
        "rounds end after as many steps as samples earn, where the authors take two a batch",
        "augmentation and CutMix, as the protocol has them",
        "the controller sees `ctn.controller_rows` stored samples at most",
    ],
    knowledge: Knowledge::TaskIds,
    section: "ctn",
    memory_scheme: "ring",
    rate: "constant",
    lr: 0.01,
    keys: OwnKeys::of::<CtnKeys>(),
    build: |setup| Ok(Box::new(Ctn::new(setup)?)),
    ..REHEARSAL
};

keys! {
    /// Own keys of `ctn`; the defaults are the authors' for CIFAR-100.
    #[derive(Copy)]
    struct CtnKeys {
        /// Numbers of a task's embedding.
        embedding: usize = 64, at_least(1), at_most(1024);
        /// Learning rate of the controller; that of the base is `lr`.
        controller_lr: f64 = 0.05, above(0);
        /// Steps of the base before each of the controller.
        inner: usize = 2, at_least(1), capped(1_000_000, "no run would come to an end");
        /// Share of a task's slots that the controller learns from.
        semantic: f64 = 0.2, at_least(0), below(1);
        /// Stored samples the controller learns from in a step, at most.
        controller_rows: usize = 64, at_least(1), capped(65_536, "no machine has the memory for more");
        /// Stored samples rehearsed in a step of the base.
        replay: usize = 64, capped(65_536, "no machine has the memory for more");
        /// Weight of the answers stored with them.
        weight: f64 = 100.0, at_least(0);
        /// What logits are divided by when answers are stored and compared.
        temperature: f64 = 5.0, above(0);
    }
}

/// Images answered at once.
const ROWS: usize = 128;

/// A shared base under a controller.
pub struct Ctn {
    keys: CtnKeys,
    waiting: ByTask,
    rate: Box<dyn Rate>,
    controller: Controller,
    memory: Memory,
    rings: Rings,
    /// What each stored sample answered when its task ended: probabilities of the columns the task had then.
    targets: SlotVectors,
    /// In the order first met.
    tasks: Vec<Task>,
    /// Position of the one that is being learned.
    present: usize,
    /// Whether its answers have been stored since it was learned last.
    settled: bool,
    draws: Random,
}

/// What is known of a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Task {
    /// What it was called.
    number: usize,
    /// Classes met in it, which are its columns.
    classes: Vec<usize>,
}

impl Ctn {
    fn new(setup: &Setup) -> Result<Self> {
        if setup.memory_scheme != INFO.memory_scheme {
            let problem = "ctn has a ring for each task and purpose; other schemes do not know tasks";
            return Err(Error::bad_key("memory_scheme", problem));
        }
        if setup.memory == 0 {
            return Err(Error::bad_key(
                "memory",
                "must be at least 1: ctn's controller learns from it alone",
            ));
        }
        rebuild::refuse(setup)?;
        Objective::refuse_asymmetric(setup)?;
        if setup.teacher > 0.0 {
            let problem = "`ctn` is taught by the answers it stores, a task at a time; see `ctn.weight`";
            return Err(Error::bad_key("teacher", problem));
        }
        let keys: CtnKeys = setup.own();
        let device = device::named(&setup.device)?;
        let channels = setup.architecture()?.features();
        Ok(Self {
            keys,
            waiting: ByTask::new(setup),
            rate: unmeasuring_rate(setup)?,
            controller: Controller::fresh(keys.embedding, channels, setup.seed, &device),
            memory: Memory::new(&setup.memory_scheme, setup.memory, setup.seed)?,
            rings: Rings::new(setup.memory, setup.tasks, keys.semantic),
            targets: SlotVectors::saved_as("targets", "target_widths"),
            tasks: Vec::new(),
            present: 0,
            settled: true,
            draws: Random::named(setup.seed, "ctn-draws"),
        })
    }

    fn columns(&self, task: usize) -> &[usize] {
        &self.tasks[task].classes
    }

    /// Turns to the task of a sample.
    fn enter(&mut self, core: &Core, number: usize) {
        let met = self.tasks.iter().position(|task| task.number == number);
        if met == Some(self.present) {
            return;
        }
        self.store_answers(core);
        self.present = met.unwrap_or(self.tasks.len());
        if met.is_none() {
            self.tasks.push(Task { number, classes: Vec::new() });
            self.controller.new_task();
            self.rings.new_task();
        }
    }

    /// Stores what the network answers on the present task's episodic samples.
    fn store_answers(&mut self, core: &Core) {
        if std::mem::replace(&mut self.settled, true) {
            return;
        }
        let slots: Vec<usize> = self.rings.of(self.present, Part::Episodic).collect();
        if slots.is_empty() {
            return;
        }
        let samples = slots.iter().map(|&slot| &self.memory.slots()[slot]);
        let images = core.model.images(core.batcher.stored(samples), core.batcher.size());
        let network = core.model.network();
        let features = self.controller.features(&[self.present], network.maps(images));
        let logits = floats(network.heads().logits(features));
        let columns = &self.tasks[self.present].classes;
        for (slot, row) in slots.into_iter().zip(logits.chunks_exact(network.heads().classes())) {
            let tempered = columns.iter().map(|&column| f64::from(row[column]) / self.keys.temperature);
            let answer = Scores::of_columns(columns.len(), tempered.map(|logit| logit as f32).enumerate());
            self.targets.place(Place::Replace(slot), answer.probabilities);
        }
    }

    /// Answers over the columns of these tasks, each under its own modulation.
    fn answers(&self, core: &Core, images: &[Image], tasks: &[usize]) -> Vec<Scores> {
        let network = core.model.answering();
        let maps = network.maps(core.model.images(core.batcher.clean(images), core.batcher.size()));
        let logits = |task: &usize| {
            let features = self.controller.features(&[*task], maps.clone());
            floats(network.heads().logits(features))
        };
        let logits: Vec<Vec<f32>> = tasks.iter().map(logits).collect();
        let classes = network.heads().classes();
        let of_row = |row: usize| {
            let columns = tasks.iter().zip(&logits).flat_map(move |(&task, logits)| {
                self.columns(task).iter().map(move |&class| (class, logits[row * classes + class]))
            });
            Scores::of_columns(classes, columns)
        };
        (0..images.len()).map(of_row).collect()
    }

    /// Whether a sample of a task could have come to it.
    fn fits(&self, task: usize, sample: &Sample) -> bool {
        self.tasks.get(task).is_some_and(|task| task.classes.contains(&sample.class))
    }
}

impl LearnsByTask for Ctn {
    fn waiting(&mut self) -> &mut ByTask {
        &mut self.waiting
    }

    fn meet(&mut self, core: &mut Core, task: usize, class: usize) {
        self.enter(core, task);
        let classes = &mut self.tasks[self.present].classes;
        if !classes.contains(&class) {
            classes.push(class);
        }
    }

    fn learn(&mut self, core: &mut Core, due: &Due<Sample>, steps: &mut Vec<Step>) -> Result<()> {
        self.learn_in_rounds(core, due, steps)
    }

    fn settle(&mut self, core: &mut Core) {
        self.store_answers(core);
    }
}

impl Method for Ctn {
    fn new_class(&mut self, core: &mut Core) {
        core.grow();
        self.rate.new_class();
    }

    fn architecture(&self, configured: Architecture) -> Architecture {
        configured.open_ended()
    }

    fn observe(&mut self, core: &mut Core, arrival: Arrival) -> Result<Vec<Step>> {
        self.take_in(core, arrival)
    }

    fn flush(&mut self, core: &mut Core) -> Result<Vec<Step>> {
        self.learn_waiting(core)
    }

    fn task_end(&mut self, _core: &mut Core) -> Result<()> {
        self.waiting.end();
        Ok(())
    }

    fn catch_up(&mut self, core: &mut Core) -> Result<Vec<Step>> {
        self.learn_ended(core)
    }

    fn predict(&self, core: &Core, images: &[Image], task: Option<usize>) -> Result<Vec<Scores>> {
        let told = self.tasks.iter().position(|known| task == Some(known.number));
        let asked: Vec<usize> = told.map_or_else(|| (0..self.tasks.len()).collect(), |told| vec![told]);
        Ok(images.chunks(ROWS).flat_map(|images| self.answers(core, images, &asked)).collect())
    }

    fn check_loaded(&self, core: &Core) -> Result<()> {
        let bad = |key: &str, problem: String| Err(Error::BadState { key: format!("method.{key}"), problem });
        let (met, filled) = (self.tasks.len(), self.memory.slots().len());
        if met > 0 && self.present >= met {
            return bad("present", format!("is {} of {met} tasks", self.present));
        }
        let known = core.model.heads().classes();
        for (position, task) in self.tasks.iter().enumerate() {
            let before = &self.tasks[..position];
            let twice = before.iter().any(|other| other.number == task.number)
                || (1..task.classes.len()).any(|at| task.classes[..at].contains(&task.classes[at]));
            if twice || task.classes.is_empty() || task.classes.iter().any(|&class| class >= known) {
                return bad("tasks", format!("has {task:?} among them, with {known} classes met"));
            }
        }
        if self.controller.tasks() != met {
            return bad("controller.tasks", format!("is {} of {met}", self.controller.tasks()));
        }
        if let Some(problem) = self.rings.problem(met, filled) {
            return bad("rings.slots", problem);
        }
        self.targets.check_loaded(filled)?;
        for (slot, task) in [Part::Episodic, Part::Semantic].into_iter().flat_map(|part| self.rings.all(part))
        {
            let stored = self.targets.get(slot).len();
            if !self.fits(task, &self.memory.slots()[slot]) || stored > self.columns(task).len() {
                return bad("rings.slots", format!("has slot {slot} for a task it is not of"));
            }
        }
        let (of, waiting) = self.waiting.waiting();
        let present = self.tasks.get(self.present).map(|task| task.number);
        if of != present || !waiting.iter().all(|sample| self.fits(self.present, sample)) {
            return bad("waiting.task", "is not the one that is being learned".into());
        }
        Ok(())
    }

    fn memory(&self) -> Option<&Memory> {
        Some(&self.memory)
    }

    fn extra_parameters(&self) -> Parameters {
        let (network, history) = (self.controller.parameters(), self.targets.count() as u64);
        Parameters { network, history, ..Parameters::default() }
    }
}

impl Persist for Ctn {
    fn save(&self, state: &mut State) {
        state.save_part("waiting", &self.waiting);
        state.save_part("rate", &*self.rate);
        state.save_part("controller", &self.controller);
        state.save_part("memory", &self.memory);
        state.save_part("rings", &self.rings);
        self.targets.save(state);
        state.put("tasks", &self.tasks);
        state.put("present", &self.present);
        state.put("settled", &self.settled);
        state.put("draws", &self.draws);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        state.load_part("waiting", &mut self.waiting)?;
        state.load_part("rate", &mut *self.rate)?;
        state.load_part("controller", &mut self.controller)?;
        state.load_part("memory", &mut self.memory)?;
        state.load_part("rings", &mut self.rings)?;
        self.targets.load(state)?;
        self.tasks = state.get("tasks")?;
        self.present = state.get("present")?;
        self.settled = state.get("settled")?;
        self.draws = state.get("draws")?;
        Ok(())
    }
}
