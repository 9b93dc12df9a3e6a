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
    /// Half of each batch is stream, half memory.
    ///
    /// # Errors
    /// When the scheme or rate named in the configuration does not exist or needs the disagreement of heads.
    pub fn new(config: &Config) -> Result<Self> {
        let settings = &config.settings;
        let slots = settings.memory.ok_or_else(|| missing("memory"))?;
        let memory = Memory::new(scheme_name(config)?, slots, settings.seed)?;
        let rate = rate::build(rate_name(config)?, settings)?;
        refuse_disagreement(config, &memory, &*rate)?;
        Self::with(config, memory, rate)
    }

    /// The same with a memory and a rate that are already set up.
    ///
    /// # Errors
    /// When the configuration was not resolved.
    pub fn with(config: &Config, memory: Memory, rate: Box<dyn Rate>) -> Result<Self> {
        let batch = config.settings.batch.ok_or_else(|| missing("batch"))?;
        let updates = config.settings.updates.ok_or_else(|| missing("updates"))?;
        let buffer = StreamBuffer::new(batch / 2, updates);
        Ok(Self { buffer, memory, rate, memory_rows: batch - batch / 2 })
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
        self.iterate_with(core, full, |model, batch, _, rate| step(model, batch, rate.rate()))
    }

    /// The same for steps that also tell the memory and the rate what they saw.
    ///
    /// # Errors
    /// When a loss is not finite.
    pub fn iterate_with(
        &mut self,
        core: &mut Core,
        full: &Full<Sample>,
        mut step: impl FnMut(&mut Model, &Batch, &mut Memory, &mut dyn Rate) -> f64,
    ) -> Result<Vec<Step>> {
        let Core { model, batcher, .. } = core;
        let Self { memory, rate, memory_rows, .. } = self;
        let mut draws = (0..full.updates).map(|_| memory.draw(*memory_rows)).collect::<Vec<_>>().into_iter();
        let mut steps = Vec::with_capacity(full.updates);
        let make = || batcher.replay(&full.items, &draws.next().unwrap_or_default());
        ahead(full.updates, make, |batch| {
            let current = rate.rate();
            let loss = step(model, &batch, memory, &mut **rate);
            if !loss.is_finite() {
                let step = steps.len();
                return Err(Error::LossNotFinite { loss, rate: current, labels: batch.labels, step });
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

/// The configured memory scheme.
///
/// # Errors
/// When the configuration was not resolved.
pub fn scheme_name(config: &Config) -> Result<&str> {
    config.settings.memory_scheme.as_deref().ok_or_else(|| missing("memory_scheme"))
}

/// The configured rate.
///
/// # Errors
/// When the configuration was not resolved.
pub fn rate_name(config: &Config) -> Result<&str> {
    config.settings.rate.as_deref().ok_or_else(|| missing("rate"))
}

/// Refuses schemes and rates that decide by disagreement, for methods that have none to tell them.
///
/// # Errors
/// When the memory or the rate is such a one.
pub fn refuse_disagreement(config: &Config, memory: &Memory, rate: &dyn Rate) -> Result<()> {
    let problem = |name: &str, instead: &str| {
        let method = &config.settings.method;
        format!("`{name}` needs heads that disagree, which `{method}` as configured has not; try `{instead}`")
    };
    if memory.needs_disagreement() {
        return Err(Error::bad_key("memory_scheme", problem(scheme_name(config)?, "rm")));
    }
    if rate.needs_disagreement() {
        return Err(Error::bad_key("rate", problem(rate_name(config)?, "exp-reset")));
    }
    Ok(())
}

fn missing(key: &str) -> Error {
    Error::bad_key(key, "has no value: the configuration was not resolved")
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
        if images.len() != classes.len() {
            let problem = format!("holds {} images and {} classes", images.len(), classes.len());
            return Err(Error::BadState { key: "buffer.classes".into(), problem });
        }
        let credit = state.get("buffer.credit")?;
        if !self.buffer.could_stand_at(images.len(), credit) {
            let problem = "is not what its samples earn with this `batch` and these `updates`".into();
            return Err(Error::BadState { key: "buffer.credit".into(), problem });
        }
        let items = images.into_iter().zip(classes).map(|(image, class)| Sample { image, class }).collect();
        self.buffer.restore(items, credit);
        state.load_part("memory", &mut self.memory)?;
        state.load_part("rate", &mut *self.rate)
    }
}
