//! The stream protocol that rehearsal methods share: a stream buffer that earns training steps, a memory that is drawn
//! from at each step and offered the buffer afterwards, and a learning-rate rule.

use crate::{
    batch::{Batch, ahead},
    config::Config,
    error::{Error, Result},
    memory::{Memory, Sample, load_images, save_images},
    model::Model,
    rate::{self, Rate},
    state::{Persist, State},
    stream::{Full, StreamBuffer},
};

use super::{Core, Step};

/// Stream buffer, memory and rate of one method.
pub struct Replay {
    buffer: StreamBuffer<Sample>,
    /// What is kept of the stream.
    pub memory: Memory,
    /// How fast to learn.
    pub rate: Box<dyn Rate>,
    memory_rows: usize,
}

impl Replay {
    /// Half of each batch is stream, half memory; `slots` overrides the configured memory size.
    ///
    /// # Errors
    /// When the scheme or rate named in the configuration does not exist.
    pub fn new(config: &Config, slots: Option<usize>) -> Result<Self> {
        let settings = &config.settings;
        let missing = |key: &str| Error::bad_key(key, "has no value: the configuration was not resolved");
        let batch = settings.batch.ok_or_else(|| missing("batch"))?;
        let updates = settings.updates.ok_or_else(|| missing("updates"))?;
        let slots = slots.or(settings.memory).ok_or_else(|| missing("memory"))?;
        let scheme = settings.memory_scheme.as_deref().ok_or_else(|| missing("memory_scheme"))?;
        let rate = settings.rate.as_deref().ok_or_else(|| missing("rate"))?;
        Ok(Self {
            buffer: StreamBuffer::new(batch / 2, updates),
            memory: Memory::new(scheme, slots, settings.seed)?,
            rate: rate::build(rate, settings)?,
            memory_rows: batch - batch / 2,
        })
    }

    /// A sample arrives: heads grow and the rate hears of a new class; a full buffer is handed out.
    pub fn arrive(&mut self, core: &mut Core, sample: Sample) -> Option<Full<Sample>> {
        if core.meet(sample.class) {
            self.rate.new_class();
        }
        self.buffer.push(sample)
    }

    /// Hands out a partly filled buffer, with the training steps it has earned.
    pub fn flush(&mut self) -> Option<Full<Sample>> {
        self.buffer.flush()
    }

    /// Takes the training steps a buffer has earned. `step` learns from one batch at the given rate and returns its
    /// loss.
    ///
    /// # Errors
    /// When a loss is not finite.
    pub fn iterate(
        &mut self,
        core: &mut Core,
        full: &Full<Sample>,
        mut step: impl FnMut(&mut Model, &Batch, f64) -> f64,
    ) -> Result<Vec<Step>> {
        let Core { model, batcher, .. } = core;
        let rate = &mut self.rate;
        let mut draws =
            (0..full.updates).map(|_| self.memory.draw(self.memory_rows)).collect::<Vec<_>>().into_iter();
        let mut steps = Vec::with_capacity(full.updates);
        let make = || batcher.replay(&full.items, &draws.next().unwrap_or_default());
        ahead(full.updates, make, |batch| {
            let current = rate.rate();
            let loss = step(model, &batch, current);
            if !loss.is_finite() {
                return Err(Error::LossNotFinite { loss, rate: current, labels: batch.labels });
            }
            rate.stepped();
            steps.push(Step { loss, rate: current });
            Ok(())
        })?;
        Ok(steps)
    }

    /// Offers every sample of a buffer to the memory, in order of arrival.
    pub fn remember(&mut self, full: &Full<Sample>) {
        for sample in &full.items {
            self.memory.offer(sample, 0.0);
        }
    }
}

impl Persist for Replay {
    fn save(&self, state: &mut State) {
        let classes: Vec<usize> = self.buffer.items().iter().map(|sample| sample.class).collect();
        save_images("buffer.images", self.buffer.items().iter().map(|sample| &sample.image), state);
        state.put("buffer.classes", &classes);
        state.put("buffer.credit", &self.buffer.credit());
        state.save_part("memory", &self.memory);
        state.save_part("rate", &*self.rate);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        let classes: Vec<usize> = state.get("buffer.classes")?;
        let images = load_images("buffer.images", state)?;
        let items = images.into_iter().zip(classes).map(|(image, class)| Sample { image, class }).collect();
        self.buffer.restore(items, state.get("buffer.credit")?);
        state.load_part("memory", &mut self.memory)?;
        state.load_part("rate", &mut *self.rate)
    }
}
