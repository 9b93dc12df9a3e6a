//! What rehearsal methods share. A [`Rehearse`] is a method's own part: its step, and what it remembers beyond the
//! samples it stores. A [`Rehearsal`] does the rest: samples wait for their batch and earn training steps, the memory is
//! drawn from and written, the learning rate moves, and everything is saved.
//!
//! What the configuration adds to any loss is an [`Objective`]. Beside it lie parts that several methods hold: perturbed
//! activations and heads ([`double`]), training on a fixed set of samples ([`offline`]), samples that wait by task
//! ([`by_task`]), a memory that is chosen anew at task ends ([`rebuild`]).

pub mod by_task;
pub mod double;
mod objective;
pub mod offline;
pub mod rebuild;
mod refresh;
pub mod replay;

use objective::Asked;
pub use objective::Objective;
pub(crate) use objective::{group_loss, rows_loss};
pub use replay::{Replay, Training};

use double::{DoublePerturbation, HistoryCheck};

use std::{collections::BTreeMap, ops::Range};

use burn::tensor::Tensor;
use dpcl_report::record::{Parameters, Remark};

use crate::{
    answers::Scores,
    batch::{Batch, Recipe},
    data::Image,
    error::Result,
    memory::{Memory, Place, Sample},
    method::{Arrival, Core, Method, Step, scores},
    model::Pass,
    rate::Rate,
    state::{Persist, State},
    stream::Due,
};

/// What a rehearsal method adds to the others.
pub trait Rehearse: Persist + Send + Sync {
    /// One training step on one batch: forward, loss, [`Training::step`]. Returns the loss.
    ///
    /// # Errors
    /// When the loss is not finite.
    fn step(&mut self, training: &mut Training<'_>, batch: Batch) -> Result<f64>;

    /// Which stored samples a batch holds, given the usual number of memory rows.
    fn recipe(&self, rows: usize) -> Recipe {
        Recipe::plain(rows)
    }

    /// A class is about to be met for the first time; the heads do not know it yet.
    fn new_class(&mut self, _core: &Core) {}

    /// A sample has arrived. What it gives back joins the stream's part of a batch; what it keeps only earns its steps.
    fn arrive(&mut self, _core: &Core, arrival: Arrival) -> Option<Sample> {
        Some(arrival.sample)
    }

    /// The disagreement on a stream row of the last step, where it was measured: what the sample is offered to the
    /// memory with.
    fn disagreement(&mut self, _row: usize) -> Option<f64> {
        None
    }

    /// The sample of a stream row of the last step was offered to the memory.
    fn offered(&mut self, _row: usize, _place: Place) {}

    /// The memory was chosen anew at a task end: what was stored with samples by their slots no longer goes with them.
    fn refilled(&mut self, _memory: &Memory) {}

    /// The stream's part of a batch was learned and is to be stored. True where the method has seen to that itself; what it
    /// leaves is offered to the memory.
    ///
    /// # Errors
    /// When what it learns meanwhile runs away.
    fn store(
        &mut self,
        _core: &mut Core,
        _memory: &mut Memory,
        _rate: &mut dyn Rate,
        _samples: &[Sample],
    ) -> Result<bool> {
        Ok(false)
    }

    /// A task ended, and the memory is as it was left then; only for methods that are told.
    fn task_end(&mut self, _core: &Core, _memory: &Memory) {}

    /// Its perturbed activations and heads, for methods that hold them; these then answer, are counted, saved and
    /// checked.
    fn double(&self) -> Option<&DoublePerturbation> {
        None
    }

    /// The same, to load: they are saved with what all methods share.
    fn double_mut(&mut self) -> Option<&mut DoublePerturbation> {
        None
    }

    /// As [`Method::predict`].
    ///
    /// # Errors
    /// When images cannot be answered.
    fn predict(&self, core: &Core, images: &[Image], _task: Option<usize>) -> Result<Vec<Scores>> {
        Ok(match self.double() {
            Some(double) => double.answer(core, images),
            None => scores(core.logits(images)),
        })
    }

    /// Refuses a loaded state that does not go with the network or the memory.
    ///
    /// # Errors
    /// [`crate::Error::BadState`] for what does not fit.
    fn check_loaded(&self, _core: &Core, _memory: &Memory) -> Result<()> {
        Ok(())
    }

    /// Numbers of its own beside the network, the memory and the heads' distributions.
    fn extra_parameters(&self) -> Parameters {
        Parameters::default()
    }

    /// Counts of its own worth recording, cumulative; those of the rate and of the perturbations are added.
    fn counters(&self) -> Vec<(String, u64)> {
        Vec::new()
    }

    /// As [`Method::remarks`].
    fn remarks(&self) -> Vec<Remark> {
        Vec::new()
    }
}

/// A rehearsal method, whole.
pub struct Rehearsal<R> {
    replay: Replay,
    own: R,
}

impl<R: Rehearse + 'static> Rehearsal<R> {
    /// A method from its own part and what it shares with the others.
    pub fn boxed(replay: Replay, own: R) -> Box<dyn Method> {
        Box::new(Self { replay, own })
    }
}

impl<R: Rehearse> Rehearsal<R> {
    fn learn(&mut self, core: &mut Core, due: Option<Due<Sample>>) -> Result<Vec<Step>> {
        match due {
            Some(due) => self.replay.learn(core, &due, &mut self.own),
            None => Ok(Vec::new()),
        }
    }
}

impl<R: Rehearse> Method for Rehearsal<R> {
    fn new_class(&mut self, core: &mut Core) {
        self.own.new_class(core);
        core.grow();
        self.replay.rate.new_class();
    }

    fn observe(&mut self, core: &mut Core, arrival: Arrival) -> Result<Vec<Step>> {
        let due = match self.own.arrive(core, arrival) {
            Some(sample) => self.replay.arrivals.push(sample),
            None => {
                self.replay.arrivals.set_aside();
                None
            }
        };
        self.learn(core, due)
    }

    fn flush(&mut self, core: &mut Core) -> Result<Vec<Step>> {
        let due = self.replay.arrivals.flush();
        self.learn(core, due)
    }

    fn waiting(&self) -> usize {
        self.replay.arrivals.items().len()
    }

    fn task_end(&mut self, core: &mut Core) -> Result<()> {
        self.own.task_end(core, &self.replay.memory);
        self.replay.task_end(core, &mut self.own);
        Ok(())
    }

    fn predict(&self, core: &Core, images: &[Image], task: Option<usize>) -> Result<Vec<Scores>> {
        self.own.predict(core, images, task)
    }

    fn heads(&self) -> usize {
        self.own.double().map_or(1, |double| double.heads.count())
    }

    fn check_loaded(&self, core: &Core) -> Result<()> {
        if let Some(double) = self.own.double() {
            double.heads.check_loaded(core.model.heads())?;
        }
        self.own.check_loaded(core, &self.replay.memory)
    }

    fn memory(&self) -> Option<&Memory> {
        Some(&self.replay.memory)
    }

    fn check_histories(&self, core: &Core) -> Option<HistoryCheck> {
        self.own.double()?.check_histories(core, &self.replay.memory)
    }

    fn extra_parameters(&self) -> Parameters {
        let own = self.own.extra_parameters();
        let heads = self.own.double().map(DoublePerturbation::parameters).unwrap_or_default();
        Parameters {
            network: own.network + heads.network,
            state: own.state + heads.state,
            history: own.history + heads.history,
        }
    }

    fn counters(&self) -> BTreeMap<String, f64> {
        let rate = self.replay.rate.counters().into_iter().map(|(name, count)| (name.to_owned(), count));
        let double = self.own.double().map(DoublePerturbation::counters).unwrap_or_default();
        let all = rate.chain(double).chain(self.own.counters());
        all.map(|(name, count)| (name, count as f64)).collect()
    }

    fn remarks(&self) -> Vec<Remark> {
        self.own.remarks()
    }
}

/// Where perturbed activations and heads are saved.
const PERTURBED: &str = "perturbed";

impl<R: Rehearse> Persist for Rehearsal<R> {
    fn save(&self, state: &mut State) {
        self.replay.save(state);
        if let Some(double) = self.own.double() {
            state.save_part(PERTURBED, double);
        }
        self.own.save(state);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.replay.load(state)?;
        if let Some(double) = self.own.double_mut() {
            state.load_part(PERTURBED, double)?;
        }
        self.own.load(state)
    }
}

/// Training logits of a batch, [heads, rows, classes].
pub fn forward(pass: &mut Pass, batch: &Batch) -> Tensor<3> {
    let features = pass.features(pass.images(batch.images.clone(), batch.size));
    pass.logits(features)
}

/// Mean cross-entropy of a batch, in CutMix form where it was cut and mixed.
pub fn batch_loss(logits: Tensor<3>, batch: &Batch) -> Tensor<1> {
    let rows = batch.labels.len();
    let groups = batch.groups();
    if groups.len() < 2 {
        return rows_loss(logits, batch, 0..rows);
    }
    let share = |group: Range<usize>| {
        let share = group.len() as f64 / rows as f64;
        group_loss(logits.clone(), batch, group).mul_scalar(share)
    };
    let shares = groups.into_iter().map(share);
    shares.reduce(|sum, loss| sum + loss).expect("there are two groups or more")
}
