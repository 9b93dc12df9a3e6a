//! The losses of all stored samples, measured anew every few training steps for memories and rates that ask for
//! them.
//!
//! Images are clean and the network in evaluation mode: a measurement is an evaluation of the memory, without autodiff,
//! and is what such a memory or rate costs.

use std::collections::BTreeSet;

use crate::{
    batch::Batcher,
    config::Setup,
    error::{Error, Result},
    memory::{Memory, Sample},
    model::{Model, cross_entropy_rows, floats},
    rate::Rate,
    state::{Persist, State},
};

/// Stored samples measured at once: many enough to keep every thread busy, few enough for large images.
const ROWS: usize = 128;

/// Counts training steps and says when losses are due.
pub struct Refresh {
    period: u64,
    steps: u64,
}

impl Refresh {
    /// None where neither memory nor rate asks for losses.
    ///
    /// # Errors
    /// When a rate asks for the losses of a memory that keeps nothing.
    pub fn wanted(setup: &Setup, memory: &Memory, rate: &dyn Rate) -> Result<Option<Self>> {
        if rate.needs_losses() && memory.capacity() == 0 {
            let name = &setup.rate;
            let problem = format!(
                "`{name}` follows the losses of stored samples, and there is no memory; try `exp-reset`"
            );
            return Err(Error::bad_key("rate", problem));
        }
        // A scheme or rate that the configuration does not know of is measured for at every step.
        let period = if setup.measures_losses() { setup.imp_period } else { 1 };
        Ok((memory.needs_losses() || rate.needs_losses()).then_some(Self { period, steps: 0 }))
    }

    /// Begins the training steps of one arrival.
    pub fn begin(&mut self, batcher: &Batcher) -> Measuring<'_> {
        // A copy, because the batcher itself makes batches on another thread meanwhile; clean images need no chance.
        Measuring { refresh: self, batcher: batcher.clone(), latest: None }
    }
}

impl Persist for Refresh {
    fn save(&self, state: &mut State) {
        state.put("steps", &self.steps);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.steps = state.get_counted("steps")?;
        Ok(())
    }
}

/// Measurements during the training steps of one arrival.
pub struct Measuring<'a> {
    refresh: &'a mut Refresh,
    batcher: Batcher,
    /// The last losses, and every slot that had changed when they were measured.
    latest: Option<(Vec<f64>, BTreeSet<usize>)>,
}

impl Measuring<'_> {
    /// A training step was taken; measures if that is due, and tells the memory.
    pub fn stepped(&mut self, model: &Model, memory: &mut Memory) {
        self.refresh.steps += 1;
        if !self.refresh.steps.is_multiple_of(self.refresh.period) || memory.slots().is_empty() {
            return;
        }
        let losses = losses(model, &self.batcher, memory);
        let changed = memory.refreshed(&losses);
        let earlier = self.latest.take().map(|(_, changed)| changed);
        self.latest = Some((losses, changed.into_iter().chain(earlier.unwrap_or_default()).collect()));
    }

    /// The steps are over; the rate hears of the latest losses, if there are any.
    pub fn tell(self, rate: &mut dyn Rate) {
        if let Some((losses, changed)) = self.latest {
            rate.refreshed(&losses, &changed);
        }
    }
}

/// Cross-entropy of every stored sample, averaged over heads, in slot order.
fn losses(model: &Model, batcher: &Batcher, memory: &Memory) -> Vec<f64> {
    let part = |samples: &[Sample]| {
        let classes: Vec<usize> = samples.iter().map(|sample| sample.class).collect();
        let images = model.images(batcher.stored(samples.iter()), batcher.size());
        floats(cross_entropy_rows(model.network().logits(images), &classes))
    };
    memory.slots().chunks(ROWS).flat_map(part).map(f64::from).collect()
}
