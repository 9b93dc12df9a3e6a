//! The stream protocol that rehearsal methods share: a stream buffer that earns training steps, a memory that is drawn
//! from at each step and offered the buffer afterwards, and a learning-rate rule.

use crate::{
    batch::{Batch, Batcher, ahead},
    config::Setup,
    error::{Error, Result},
    memory::{Drawn, Memory, Sample, load_images, save_images},
    model::Model,
    rate::{self, Rate},
    state::{Persist, State},
    stream::{Full, StreamBuffer},
};

use super::{
    Core, Step,
    rebuild::{self, Rebuild},
    refresh::Refresh,
};

/// Stream buffer, memory and rate of one method.
pub struct Replay {
    buffer: StreamBuffer<Sample>,
    /// What is kept of the stream.
    pub memory: Memory,
    /// How fast to learn.
    pub rate: Box<dyn Rate>,
    memory_rows: usize,
    /// Measures the losses of stored samples, where memory or rate ask for them.
    refresh: Option<Refresh>,
    rebuild: Option<Rebuild>,
}

impl Replay {
    /// Half of each batch is stream, half memory.
    ///
    /// # Errors
    /// When the scheme or rate named in the configuration does not exist or needs the disagreement of heads.
    pub fn new(setup: &Setup) -> Result<Self> {
        let (memory, rate) = Self::parts(setup)?;
        Self::with(setup, memory, rate)
    }

    /// The memory and the rate that the configuration names, for a method without heads that disagree.
    ///
    /// # Errors
    /// As for [`Replay::new`].
    pub fn parts(setup: &Setup) -> Result<(Memory, Box<dyn Rate>)> {
        let memory = Memory::new(&setup.memory_scheme, setup.memory, setup.seed)?;
        let rate = rate::build(setup)?;
        refuse_disagreement(setup, &memory, &*rate)?;
        Ok((memory, rate))
    }

    /// The same as [`Replay::with`] for methods that call [`Replay::task_end`], so that the memory can be rebuilt there.
    ///
    /// # Errors
    /// When a rebuild of a memory is asked for that has none.
    pub fn told_task_ends(setup: &Setup, memory: Memory, rate: Box<dyn Rate>) -> Result<Self> {
        Ok(Self { rebuild: Rebuild::new(setup)?, ..Self::halves(setup, memory, rate)? })
    }

    /// The same with a memory and a rate that are already set up.
    ///
    /// # Errors
    /// When a rebuild at task ends is asked for.
    pub fn with(setup: &Setup, memory: Memory, rate: Box<dyn Rate>) -> Result<Self> {
        rebuild::refuse(setup)?;
        Self::halves(setup, memory, rate)
    }

    fn halves(setup: &Setup, memory: Memory, rate: Box<dyn Rate>) -> Result<Self> {
        Self::with_rows(setup, memory, rate, [setup.batch / 2, setup.batch - setup.batch / 2])
    }

    /// The same with another cut: training steps follow every so many stream samples, on so many memory samples.
    ///
    /// # Errors
    /// When the rate follows the losses of a memory that keeps nothing.
    pub fn with_rows(
        setup: &Setup,
        memory: Memory,
        rate: Box<dyn Rate>,
        [stream_rows, memory_rows]: [usize; 2],
    ) -> Result<Self> {
        let refresh = Refresh::wanted(setup, &memory, &*rate)?;
        let buffer = StreamBuffer::new(stream_rows, setup.updates);
        Ok(Self { buffer, memory, rate, memory_rows, refresh, rebuild: None })
    }

    /// The same for a method that keeps up to `most` samples from the buffer, by [`Replay::arrive_unused`].
    pub fn setting_aside(self, most: usize) -> Self {
        Self { buffer: self.buffer.setting_aside(most), ..self }
    }

    /// A sample arrives: heads grow and the rate hears of a new class; a full buffer is handed out.
    pub fn arrive(&mut self, core: &mut Core, sample: Sample) -> Option<Full<Sample>> {
        self.meet(core, sample.class);
        self.buffer.push(sample)
    }

    /// A sample arrives that is not trained on itself; it earns its training steps like any other.
    pub fn arrive_unused(&mut self, core: &mut Core, class: usize) {
        self.meet(core, class);
        self.buffer.set_aside();
    }

    fn meet(&mut self, core: &mut Core, class: usize) {
        if core.meet(class) {
            self.rate.new_class();
        }
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
        let make =
            |batcher: &mut Batcher, stream: &[Sample], drawn: Vec<Drawn>| batcher.replay(stream, &drawn);
        self.iterate_made(core, full, Memory::draw, make, |model, batch, memory, rate| {
            let current = rate.rate();
            let loss = step(model, &batch, memory, rate);
            memory.trained(&batch.slots);
            finite(loss, current, batch.labels)
        })
    }

    /// The same for batches of another shape. `draw` asks the memory for what one batch needs, given the usual number
    /// of memory rows; this is done for all batches first, for the memory does not change while they are learned.
    /// `make` turns it and the stream samples into a batch, on another thread and ahead of `step`.
    ///
    /// # Errors
    /// Those of `step`, which has to refuse a loss that is not finite.
    pub fn iterate_made<D: Send, B: Send>(
        &mut self,
        core: &mut Core,
        full: &Full<Sample>,
        mut draw: impl FnMut(&mut Memory, usize) -> D,
        mut make: impl FnMut(&mut Batcher, &[Sample], D) -> B + Send,
        mut step: impl FnMut(&mut Model, B, &mut Memory, &mut dyn Rate) -> Result<f64>,
    ) -> Result<Vec<Step>> {
        let Core { model, batcher, .. } = core;
        let Self { memory, rate, memory_rows, refresh, .. } = self;
        let mut refresh = refresh.as_mut().map(|refresh| refresh.begin(batcher));
        let draws: Vec<D> = (0..full.updates).map(|_| draw(memory, *memory_rows)).collect();
        let mut draws = draws.into_iter();
        let mut steps = Vec::with_capacity(full.updates);
        let make = || draws.next().map(|drawn| make(batcher, &full.items, drawn));
        ahead(full.updates, make, |batch| {
            let Some(batch) = batch else { return Ok(()) };
            let current = rate.rate();
            let loss = step(model, batch, memory, &mut **rate).map_err(|error| error.at_step(steps.len()))?;
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

    /// Offers every sample of a buffer to the memory, in order of arrival.
    pub fn remember(&mut self, full: &Full<Sample>) {
        for sample in &full.items {
            let place = self.memory.offer(sample, None);
            if let Some(rebuild) = &mut self.rebuild {
                rebuild.offered(sample, place, self.memory.slots().len());
            }
        }
    }

    /// A task ended: the memory is rebuilt if it is to be.
    pub fn task_end(&mut self, core: &Core) {
        if let Some(rebuild) = &mut self.rebuild {
            rebuild.task_end(core, &mut self.memory);
        }
    }
}

/// The loss of a step taken at `rate` on a batch of `labels`, if training has not run away.
///
/// # Errors
/// When it is not finite.
pub fn finite(loss: f64, rate: f64, labels: Vec<usize>) -> Result<f64> {
    if loss.is_finite() { Ok(loss) } else { Err(Error::LossNotFinite { loss, rate, labels, step: 0 }) }
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

impl Persist for Replay {
    fn save(&self, state: &mut State) {
        let classes: Vec<usize> = self.buffer.items().iter().map(|sample| sample.class).collect();
        save_images("buffer.images", self.buffer.items().iter().map(|sample| &sample.image), state);
        state.put("buffer.classes", &classes);
        state.put("buffer.credit", &self.buffer.credit());
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
