//! The protocol that rehearsal methods share: arriving samples earn training steps, a memory is drawn from at each step
//! and offered the samples afterwards, and a learning-rate rule follows.

use std::cell::Cell;

use burn::tensor::Tensor;

use crate::{
    batch::{Batch, Ingredients, ahead},
    config::Setup,
    error::{Error, Result},
    memory::{Memory, Sample, Samples},
    method::{Core, Step},
    model::{Model, Outcome, Pass},
    rate::{self, Rate},
    state::{Persist, State},
    stream::{Arrivals, Due},
};

use super::{Asked, Objective, Rehearse, double::Forward, rebuild::Rebuild, refresh::Refresh};

/// Waiting samples, memory and rate of one method.
pub struct Replay {
    pub(super) arrivals: Arrivals<Sample>,
    /// What is kept of the stream.
    pub memory: Memory,
    /// How fast to learn.
    pub rate: Box<dyn Rate>,
    memory_rows: usize,
    learns_from: LearnsFrom,
    objective: Objective,
    /// Measures the losses of stored samples, where memory or rate ask for them.
    refresh: Option<Refresh>,
    rebuild: Option<Rebuild>,
}

/// Where the rows of a batch come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LearnsFrom {
    /// Half from the stream, half from the memory, which is offered the stream's half after its last step.
    StreamAndMemory,
    /// All from the memory, which is offered every sample before the steps that it earns.
    Memory,
}

impl Replay {
    /// Half of each batch is stream, half memory; memory and rate are those the configuration names.
    ///
    /// # Errors
    /// When the scheme or rate named in the configuration does not exist or needs the disagreement of heads.
    pub fn new(setup: &Setup) -> Result<Self> {
        let memory = Memory::new(&setup.memory_scheme, setup.memory, setup.seed)?;
        let rate = rate::build(setup)?;
        refuse_disagreement(setup, &memory, &*rate)?;
        Self::with(setup, memory, rate)
    }

    /// The same with a memory and a rate that are already set up.
    ///
    /// # Errors
    /// When a rate asks for losses of a memory that keeps nothing, or a memory is to be rebuilt that cannot be.
    pub fn with(setup: &Setup, memory: Memory, rate: Box<dyn Rate>) -> Result<Self> {
        let rows = [setup.batch / 2, setup.batch - setup.batch / 2];
        Self::made(setup, memory, rate, rows, LearnsFrom::StreamAndMemory)
    }

    /// The same for a method that learns from memory alone, whole batches of it, as every sample arrives.
    ///
    /// # Errors
    /// As for [`Replay::with`].
    pub fn memory_alone(setup: &Setup, memory: Memory, rate: Box<dyn Rate>) -> Result<Self> {
        Objective::refuse_asymmetric(setup)?;
        Self::made(setup, memory, rate, [1, setup.batch], LearnsFrom::Memory)
    }

    fn made(
        setup: &Setup,
        memory: Memory,
        rate: Box<dyn Rate>,
        [stream_rows, memory_rows]: [usize; 2],
        learns_from: LearnsFrom,
    ) -> Result<Self> {
        let refresh = Refresh::wanted(setup, &memory, &*rate)?;
        let (arrivals, rebuild) = (Arrivals::new(stream_rows, setup.updates), Rebuild::new(setup)?);
        let objective = Objective::new(setup)?;
        Ok(Self { arrivals, memory, rate, memory_rows, learns_from, objective, refresh, rebuild })
    }

    /// The same for a method that keeps up to `most` of the arriving samples to itself.
    #[must_use]
    pub fn setting_aside(self, most: usize) -> Self {
        Self { arrivals: self.arrivals.setting_aside(most), ..self }
    }

    /// Takes the training steps that samples have earned, and offers them to the memory.
    pub(super) fn learn(
        &mut self,
        core: &mut Core,
        due: &Due<Sample>,
        own: &mut dyn Rehearse,
    ) -> Result<Vec<Step>> {
        match self.learns_from {
            LearnsFrom::StreamAndMemory => {
                let steps = self.take_steps(core, &due.items, due.updates, own)?;
                if !own.store(core, &mut self.memory, &mut *self.rate, &due.items)? {
                    self.remember(&due.items, own);
                }
                Ok(steps)
            }
            LearnsFrom::Memory => {
                self.remember(&due.items, own);
                self.take_steps(core, &[], due.updates, own)
            }
        }
    }

    /// Takes training steps on `stream` samples and draws from the memory. All draws are made first, for the memory does
    /// not change while they are learned; batches are made on another thread, ahead of the steps.
    fn take_steps(
        &mut self,
        core: &mut Core,
        stream: &[Sample],
        updates: usize,
        own: &mut dyn Rehearse,
    ) -> Result<Vec<Step>> {
        let Core { model, batcher, .. } = core;
        let Self { memory, rate, memory_rows, objective, refresh, .. } = self;
        let mut refresh = refresh.as_mut().map(|refresh| refresh.begin(batcher));
        let recipe = own.recipe(*memory_rows);
        let draws: Vec<Ingredients> = (0..updates).map(|_| recipe.draw(memory)).collect();
        let mut draws = draws.iter();
        let mut steps = Vec::with_capacity(updates);
        let make = || draws.next().map(|drawn| batcher.make(stream, drawn));
        ahead(updates, make, |batch| {
            let Some(batch) = batch else { return Ok(()) };
            let current = rate.rate();
            let left = updates - steps.len() - 1;
            let asked = Cell::default();
            let mut training = Training { model, memory, rate: &mut **rate, objective, asked, left };
            let loss = own.step(&mut training, batch).map_err(|error| error.at_step(steps.len()))?;
            rate.stepped();
            if let Some(refresh) = &mut refresh {
                refresh.stepped(model, memory);
            }
            steps.push(Step { loss, rate: current });
            Ok(())
        })?;
        if let Some(refresh) = refresh {
            refresh.tell(&mut **rate);
        }
        Ok(steps)
    }

    /// Offers samples to the memory, in order of arrival.
    fn remember(&mut self, samples: &[Sample], own: &mut dyn Rehearse) {
        for (row, sample) in samples.iter().enumerate() {
            let place = self.memory.offer(sample, own.disagreement(row));
            own.offered(row, place);
            if let Some(rebuild) = &mut self.rebuild {
                rebuild.offered(sample, place, self.memory.slots().len());
            }
        }
    }

    /// A task ended: the memory is rebuilt if it is to be, of which the method then hears.
    pub(super) fn task_end(&mut self, core: &Core, own: &mut dyn Rehearse) {
        if let Some(rebuild) = &mut self.rebuild {
            rebuild.task_end(core, &mut self.memory);
            own.refilled(&self.memory);
        }
    }
}

/// What one training step works with.
pub struct Training<'a> {
    /// The network.
    pub model: &'a mut Model,
    /// The memory; it keeps its samples until the steps of the present arrival are taken.
    pub memory: &'a mut Memory,
    /// The learning rate.
    pub rate: &'a mut dyn Rate,
    /// What the configuration adds to the loss.
    pub(super) objective: &'a Objective,
    /// What the step has asked of it.
    pub(super) asked: Cell<Asked>,
    /// Steps that follow on the same stream samples.
    pub left: usize,
}

impl Training<'_> {
    /// The loss of a batch with these logits [heads, rows, classes]: cross-entropy, in CutMix form where it was cut and
    /// mixed, and what the configuration adds to it.
    pub fn loss(&self, logits: Tensor<3>, batch: &Batch) -> Tensor<1> {
        self.asked.set(Asked { cross_entropy: true, ..self.asked.get() });
        let loss = self.objective.cross_entropy(logits.clone(), batch);
        self.taught(loss, logits, batch)
    }

    /// A loss of the method's own on a batch with these logits, and what the teacher adds to it, if there is one.
    pub fn taught(&self, loss: Tensor<1>, logits: Tensor<3>, batch: &Batch) -> Tensor<1> {
        self.asked.set(Asked { teacher: true, ..self.asked.get() });
        let images = || self.model.images(batch.images.clone(), batch.size);
        self.objective.taught(self.model, loss, logits, images, &mut |_, x| x)
    }

    /// The same for a pass with perturbed activations: the teacher's are perturbed alike.
    pub fn taught_perturbed(&self, loss: Tensor<1>, forward: &Forward) -> Tensor<1> {
        self.asked.set(Asked { teacher: true, ..self.asked.get() });
        let images = || forward.images.clone();
        let change = &mut |depth, x| forward.disturb(depth, x);
        self.objective.taught(self.model, loss, forward.logits.clone(), images, change)
    }

    /// Takes the optimiser step that a pass and its loss lead to; returns the loss.
    ///
    /// # Errors
    /// When the loss is not finite; network and memory are then as they were.
    pub fn step(&mut self, pass: Pass, loss: &Tensor<1>, batch: &Batch) -> Result<f64> {
        self.apply(pass.backward(loss), batch)
    }

    /// The same with gradients that were already worked out, and perhaps changed.
    ///
    /// # Errors
    /// As for [`Training::step`].
    pub fn apply(&mut self, outcome: Outcome, batch: &Batch) -> Result<f64> {
        let rate = self.rate.rate();
        let loss = finite(outcome.loss, rate, &batch.labels)?;
        self.objective.check(self.asked.take())?;
        self.model.update(outcome, rate);
        self.memory.trained(&batch.slots);
        Ok(loss)
    }
}

/// The loss of a step taken at `rate` on a batch of `labels`, if training has not run away.
///
/// # Errors
/// When it is not finite.
pub fn finite(loss: f64, rate: f64, labels: &[usize]) -> Result<f64> {
    if loss.is_finite() {
        return Ok(loss);
    }
    Err(Error::LossNotFinite { loss, rate, labels: labels.to_vec(), step: 0 })
}

/// Refuses schemes and rates that decide by disagreement, for methods that have none to tell them.
///
/// # Errors
/// When the memory or the rate is such a one.
pub fn refuse_disagreement(setup: &Setup, memory: &Memory, rate: &dyn Rate) -> Result<()> {
    if memory.needs_disagreement() {
        return Err(unmeasured_memory(setup, DISAGREEMENT));
    }
    if rate.needs_disagreement() {
        return Err(unmeasured_rate(setup, DISAGREEMENT));
    }
    Ok(())
}

/// The configured rate, for methods that measure nothing it could follow.
///
/// # Errors
/// When it does not exist, or follows disagreement or the losses of stored samples.
pub fn unmeasuring_rate(setup: &Setup) -> Result<Box<dyn Rate>> {
    let rate = rate::build(setup)?;
    if rate.needs_disagreement() {
        return Err(unmeasured_rate(setup, DISAGREEMENT));
    }
    if rate.needs_losses() {
        return Err(unmeasured_rate(setup, LOSSES));
    }
    Ok(rate)
}

/// What memories and rates that follow disagreement need.
pub const DISAGREEMENT: &str = "heads that disagree";

/// What memories and rates that follow losses need.
pub const LOSSES: &str = "losses measured while the stream comes in";

/// What is wrong with a memory that follows what the method does not measure.
pub fn unmeasured_memory(setup: &Setup, need: &str) -> Error {
    unmeasured(setup, "memory_scheme", &setup.memory_scheme, need, "balanced")
}

/// What is wrong with a rate that follows what the method does not measure.
pub fn unmeasured_rate(setup: &Setup, need: &str) -> Error {
    unmeasured(setup, "rate", &setup.rate, need, "exp-reset")
}

fn unmeasured(setup: &Setup, key: &str, name: &str, need: &str, instead: &str) -> Error {
    let method = setup.method.name;
    let problem = format!("`{name}` needs {need}, which `{method}` as configured has not; try `{instead}`");
    Error::bad_key(key, problem)
}

/// Where waiting samples are saved, and where earlier versions saved them.
const WAITING: [&str; 2] = ["arrivals", "buffer"];

impl Persist for Replay {
    fn save(&self, state: &mut State) {
        let [waiting, _] = WAITING;
        state.save_part(waiting, &Samples::from(self.arrivals.items()));
        state.put(&format!("{waiting}.credit"), &self.arrivals.credit());
        state.save_part("memory", &self.memory);
        state.save_part("rate", &*self.rate);
        if let Some(refresh) = &self.refresh {
            state.save_part("refresh", refresh);
        }
        if let Some(rebuild) = &self.rebuild {
            state.save_part("rebuild", rebuild);
        }
    }

    fn load(&mut self, state: &State) -> Result<()> {
        let [now, earlier] = WAITING;
        let is_earlier = state.values.contains_key(&format!("{earlier}.credit"));
        let waiting = if is_earlier { earlier } else { now };
        let mut samples = Samples::default();
        state.load_part(waiting, &mut samples)?;
        let key = format!("{waiting}.credit");
        let credit = state.get(&key)?;
        if !self.arrivals.could_stand_at(samples.len(), credit) {
            let problem = "is not what its samples earn with this `batch` and these `updates`".into();
            return Err(Error::BadState { key, problem });
        }
        self.arrivals.restore(samples.0, credit);
        state.load_part("memory", &mut self.memory)?;
        state.load_part("rate", &mut *self.rate)?;
        if let Some(refresh) = &mut self.refresh {
            state.load_part("refresh", refresh)?;
        }
        match &mut self.rebuild {
            Some(rebuild) => state.load_part("rebuild", rebuild),
            None => Ok(()),
        }
    }
}
