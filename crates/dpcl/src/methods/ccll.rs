//! CCLL: a network is trained on the first task and then frozen; every later task calibrates what its layers put out.
//!
//! Paper: Calibrating CNNs for Lifelong Learning (Singh et al., NeurIPS 2020). No public code exists, so that sizes of
//! groups and how modules begin are guesses here.
//!
//! Loss: mean cross-entropy over the task's own columns, in CutMix form half of the time. A layer's output x becomes
//! s ⊙ σ(W·mean(s) + b), s = x + k ∗ x: k has a 3×3 kernel for each channel and begins at zero, W joins channels in groups
//! and begins at zero, the gates σ open with a large b (`calibration.rs`). A later task learns k, W and b, the scales and
//! shifts of the batch norms, whose running statistics are its own too, and its columns. No memory. Rate: exponential
//! decay that starts over at every new column.
//!
//! Told the task of an image it answers with that task's modules and columns: what comes later changes no bit of that.
//! Told none, or a task never met, every task gives the logits of its own columns with its own modules; a class that has
//! columns in several tasks takes the largest. A task that comes again goes on with its own modules, the first one
//! without its convolutions.
//!
//! A task costs 26 numbers a channel, 1.1 % of a ResNet18; the paper says .51 % on ImageNet-100. A gate that is 1 to the
//! last bit has no gradient. With zero kernels and gates of 17 or more a module gives the network's bits; with the
//! default of 6 it begins by letting 99.75 % through.
//!
//! Departures from the paper: a layer is calibrated after its batch norm and ReLU, before a residual is added; CutMix is
//! the protocol's. The batch is the stream's half alone, as that of `finetune`.

mod calibration;
mod task;
#[cfg(test)]
mod tests;

use burn::tensor::Device;
use dpcl_report::record::Parameters;

use self::{calibration::Calibration, task::Task};
use super::{Method, MethodInfo, REHEARSAL};
use crate::{
    answers::Scores,
    batch::{Batch, ahead},
    config::{OwnKeys, Setup, keys},
    data::Image,
    device,
    error::{Error, Result},
    memory::Sample,
    method::{Arrival, Core, Knowledge, Step},
    model::{Adam, Architecture, Heads, Model, Norms},
    rate::Rate,
    rehearsal::{
        Objective, batch_loss,
        by_task::{ByTask, LearnsByTask},
        rebuild,
        replay::{finite, unmeasuring_rate},
    },
    state::{Persist, State},
    stream::Due,
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "ccll",
    about: "a network frozen after the first task; later tasks calibrate its layers, each for itself",
    departures: &[
        "group sizes and starting values are guesses: there is no public code",
        "a layer is calibrated after its batch norm and ReLU",
        "CutMix, as the protocol has it",
    ],
    knowledge: Knowledge::TaskIds,
    section: "ccll",
    memory_scheme: "none",
    keys: OwnKeys::of::<CcllKeys>(),
    build: |setup| Ok(Box::new(Ccll::new(setup)?)),
    ..REHEARSAL
};

keys! {
    /// Own keys of `ccll`; no public code confirms their defaults.
    #[derive(Copy)]
    struct CcllKeys {
        /// Channels whose means a gate looks at, its own among them: the most that divide a layer's channels evenly.
        channel_group: usize = 16, at_least(1), capped(4_096, "no layer has so many channels");
        /// What the gates open with: they let σ(gate) through.
        gate: f64 = 6.0, at_least(0);
    }
}

/// A frozen network, and what every task has to itself.
pub struct Ccll {
    keys: CcllKeys,
    waiting: ByTask,
    rate: Box<dyn Rate>,
    /// Classes met.
    known: usize,
    /// In the order first met; the first has trained the network.
    tasks: Vec<Task>,
    /// The one whose batch norms and columns the network has.
    learning: Option<usize>,
    /// Moments of its calibration.
    optimiser: Adam,
    form: (Architecture, Device),
}

impl Ccll {
    fn new(setup: &Setup) -> Result<Self> {
        if setup.memory_scheme != INFO.memory_scheme {
            return Err(Error::bad_key("memory_scheme", "ccll keeps nothing; use `er` for a memory"));
        }
        rebuild::refuse(setup)?;
        Objective::refuse_asymmetric(setup)?;
        if setup.teacher > 0.0 {
            let problem = "the teacher is an average of the network, and `ccll` freezes its network";
            return Err(Error::bad_key("teacher", problem));
        }
        if setup.average > 0 {
            let problem = "an average would go on moving after `ccll` has frozen its network, and with it what \
                           earlier tasks answer";
            return Err(Error::bad_key("average", problem));
        }
        let device = device::named(&setup.device)?;
        Ok(Self {
            keys: setup.own(),
            waiting: ByTask::new(setup),
            rate: unmeasuring_rate(setup)?,
            known: 0,
            tasks: Vec::new(),
            learning: None,
            optimiser: Adam::new(&device),
            form: (setup.architecture()?, device),
        })
    }

    /// Puts a task's batch norms and columns into the network; a new one begins with those of the first and no column.
    fn enter(&mut self, core: &mut Core, number: usize) {
        let met = self.tasks.iter().position(|task| task.number == number);
        let position = met.unwrap_or(self.tasks.len());
        if met.is_none() {
            let calibration = (position > 0).then(|| self.fresh_calibration());
            self.tasks.push(Task { number, classes: Vec::new(), calibration, aside: None });
        }
        let Some(before) = self.learning.replace(position) else { return };
        if before == position {
            return;
        }
        let (norms, heads) = match self.tasks[position].aside.take() {
            Some(aside) => aside,
            None => (self.base_norms(core), self.blank_heads()),
        };
        self.tasks[before].aside = Some(core.model.exchange(&norms, heads));
        self.optimiser = Adam::new(&self.form.1);
    }

    fn fresh_calibration(&self) -> Calibration {
        let (architecture, device) = &self.form;
        Calibration::fresh(architecture, self.keys.channel_group, self.keys.gate, device)
    }

    /// The batch norms of the first task.
    fn base_norms(&self, core: &Core) -> Norms {
        match &self.tasks[0].aside {
            Some((norms, _)) => norms.clone(),
            None => core.model.encoder().norms(),
        }
    }

    fn blank_heads(&self) -> Heads {
        let (architecture, device) = &self.form;
        Heads::new(1, architecture.features(), device)
    }

    /// One training step: of the whole network in the first task, as long as there is no other, of the modules after.
    fn step(&mut self, model: &mut Model, mut batch: Batch) -> Result<f64> {
        let frozen = self.tasks.len() > 1;
        let task = self.learning.map(|position| &mut self.tasks[position]);
        let task = task.expect("samples wait for their batch after their task was entered");
        let classes = task.columns(&mut batch.labels);
        let mut pass = model.pass_learning(|name| !frozen || Norms::have(name) || name.starts_with("heads."));
        let images = pass.images(batch.images.clone(), batch.size);
        let features = match &task.calibration {
            Some(calibration) => calibration.train(&mut pass, images),
            None => pass.features(images),
        };
        let loss = batch_loss(pass.logits(features), &batch);

        let mut outcome = pass.backward(&loss);
        let rate = self.rate.rate();
        let loss = finite(outcome.loss, rate, &classes)?;
        if let (Some(calibration), Some(gradients)) = (&mut task.calibration, outcome.further.pop()) {
            self.optimiser.step(calibration.weights_mut(), gradients, rate);
        }
        model.update(outcome, rate);
        Ok(loss)
    }
}

impl LearnsByTask for Ccll {
    fn waiting(&mut self) -> &mut ByTask {
        &mut self.waiting
    }

    fn meet(&mut self, core: &mut Core, task: usize, class: usize) {
        self.enter(core, task);
        if self.learning.is_some_and(|position| self.tasks[position].meet(class)) {
            core.grow();
            self.rate.new_class();
        }
    }

    fn learn(&mut self, core: &mut Core, due: &Due<Sample>, steps: &mut Vec<Step>) -> Result<()> {
        let Core { model, batcher, .. } = core;
        ahead(
            due.updates,
            || batcher.of(&due.items),
            |batch| {
                let rate = self.rate.rate();
                let loss = self.step(model, batch).map_err(|error| error.at_step(steps.len()))?;
                self.rate.stepped();
                steps.push(Step { loss, rate });
                Ok(())
            },
        )
    }
}

impl Method for Ccll {
    /// Columns are the tasks' own: one is added once it is known whose.
    fn new_class(&mut self, _core: &mut Core) {
        self.known += 1;
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
        let told = self.tasks.iter().find(|known| task == Some(known.number));
        let asked = told.map_or(&self.tasks[..], std::slice::from_ref);
        let rows = core.model.images(core.batcher.clean(images), core.batcher.size());
        let logits: Vec<Vec<f32>> = asked.iter().map(|task| task.logits(core, rows.clone())).collect();
        let of_row = |row: usize| {
            let columns = asked.iter().zip(&logits).flat_map(move |(task, logits)| {
                let own = &logits[row * task.classes.len()..];
                task.classes.iter().copied().zip(own.iter().copied())
            });
            Scores::of_columns(self.known, columns)
        };
        Ok((0..images.len()).map(of_row).collect())
    }

    fn classes(&self, _core: &Core) -> usize {
        self.known
    }

    fn check_loaded(&self, core: &Core) -> Result<()> {
        let bad = |key: &str, problem: String| Err(Error::BadState { key: format!("method.{key}"), problem });
        let numbers: Vec<usize> = self.tasks.iter().map(|task| task.number).collect();
        if (1..numbers.len()).any(|position| numbers[..position].contains(&numbers[position])) {
            return bad("tasks", "has a task twice".into());
        }
        for (position, task) in self.tasks.iter().enumerate() {
            let heads = task.aside.as_ref().map_or(core.model.heads(), |(_, heads)| heads);
            if let Some(problem) = task.problem(heads) {
                return bad(&format!("task{position}.classes"), problem);
            }
        }
        let learning = self.learning.map(|position| &self.tasks[position]);
        if let Some(calibration) = learning.and_then(|task| task.calibration.as_ref()) {
            self.optimiser.check_loaded(calibration.weights())?;
        }
        let (of, waiting) = self.waiting.waiting();
        let fit = |sample: &Sample| learning.is_some_and(|task| task.classes.contains(&sample.class));
        if of != learning.map(|task| task.number) || !waiting.iter().all(fit) {
            return bad("waiting.task", "is not the one that is being learned".into());
        }
        Ok(())
    }

    fn extra_parameters(&self) -> Parameters {
        Parameters { network: self.tasks.iter().map(Task::parameters).sum(), ..Parameters::default() }
    }
}

impl Persist for Ccll {
    fn save(&self, state: &mut State) {
        state.save_part("waiting", &self.waiting);
        state.save_part("rate", &*self.rate);
        state.put("known", &self.known);
        state.put("tasks", &self.tasks.len());
        state.put("learning", &self.learning);
        state.save_part("optimiser", &self.optimiser);
        for (position, task) in self.tasks.iter().enumerate() {
            state.save_part(&format!("task{position}"), task);
        }
    }

    fn load(&mut self, state: &State) -> Result<()> {
        state.load_part("waiting", &mut self.waiting)?;
        state.load_part("rate", &mut *self.rate)?;
        self.known = state.get("known")?;
        self.learning = state.get("learning")?;
        state.load_part("optimiser", &mut self.optimiser)?;
        self.tasks.clear();
        let count: usize = state.get("tasks")?;
        if self.learning.is_some() != (count > 0) || self.learning.is_some_and(|position| position >= count) {
            let problem = format!("is {:?} of {count} tasks", self.learning);
            return Err(Error::BadState { key: "learning".into(), problem });
        }
        for position in 0..count {
            let aside = (self.learning != Some(position))
                .then(|| (Norms::blank(&self.form.0, &self.form.1), self.blank_heads()));
            let calibration = (position > 0).then(|| self.fresh_calibration());
            let mut task = Task { number: 0, classes: Vec::new(), calibration, aside };
            state.load_part(&format!("task{position}"), &mut task)?;
            self.tasks.push(task);
        }
        Ok(())
    }
}
