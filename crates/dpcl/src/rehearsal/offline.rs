//! Training on a fixed set of samples, in slices: what methods do that learn when the stream pauses.
//!
//! A slice is short, so that whoever drives the learner can show progress or stop between two of them. Where the slices
//! are cut changes nothing in what is learned.

use crate::{
    batch::ahead,
    config::Setup,
    error::{Error, Result},
    memory::Sample,
    method::{Core, Step},
    random::Random,
    rate::{self, Rate},
    state::{Persist, State},
};

use super::{
    Objective, batch_loss, forward,
    replay::{finite, unmeasuring_rate},
};

/// Steps in a slice: about as long as somebody who wants to stop has patience with a large network.
const SLICE: u64 = 8;

/// Steps still to take, and what they are taken with.
pub struct Offline {
    batch: usize,
    left: u64,
    draws: Random,
    rate: Box<dyn Rate>,
    /// What a fresh rate is built from.
    setup: Setup,
}

impl Offline {
    /// Nothing to do yet. Batches and rate are the configured ones.
    ///
    /// # Errors
    /// When the rate does not exist or follows disagreement or losses on the memory, which nobody measures here.
    pub fn new(setup: &Setup) -> Result<Self> {
        Objective::refuse_asymmetric(setup)?;
        if setup.teacher > 0.0 {
            let problem = format!("`{}` learns from a fixed set and has none", setup.method.name);
            return Err(Error::bad_key("teacher", problem));
        }
        let rate = unmeasuring_rate(setup)?;
        let draws = Random::named(setup.seed, "offline-draws");
        Ok(Self { batch: setup.batch, left: 0, draws, rate, setup: setup.clone() })
    }

    /// Asks for that many steps, the rate starting over; steps left from before are forgotten.
    ///
    /// # Errors
    /// When the rate cannot be built.
    pub fn begin(&mut self, steps: u64) -> Result<()> {
        self.left = steps;
        self.rate = rate::build(&self.setup)?;
        Ok(())
    }

    /// Takes some of the steps that are left, each on a uniform draw of `samples`; none means that all are taken.
    ///
    /// # Errors
    /// When a loss is not finite.
    pub fn slice(&mut self, core: &mut Core, samples: &[Sample]) -> Result<Vec<Step>> {
        if samples.is_empty() {
            self.left = 0;
        }
        let Self { batch, left, draws, rate, .. } = self;
        let Core { model, batcher, .. } = core;
        let count = (*left).min(SLICE) as usize;
        let mut steps = Vec::with_capacity(count);
        let make = || {
            let drawn = draws.distinct(samples.len(), *batch).into_iter();
            let drawn: Vec<Sample> = drawn.map(|position| samples[position].clone()).collect();
            batcher.of(&drawn)
        };
        ahead(count, make, |batch| {
            let mut pass = model.pass();
            let logits = forward(&mut pass, &batch);
            let loss = batch_loss(logits, &batch);

            let loss = model.step(pass, &loss, rate.rate());
            steps.push(Step { loss: finite(loss, rate.rate(), &batch.labels)?, rate: rate.rate() });
            rate.stepped();
            *left -= 1;
            Ok(())
        })?;
        Ok(steps)
    }
}

impl Persist for Offline {
    fn save(&self, state: &mut State) {
        state.put("left", &self.left);
        state.put("draws", &self.draws);
        state.save_part("rate", &*self.rate);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.left = state.get_counted("left")?;
        self.draws = state.get("draws")?;
        state.load_part("rate", &mut *self.rate)
    }
}
