//! GDumb: keep a balanced memory, ignore the stream otherwise, and train a fresh network on the memory whenever an
//! answer is due.
//!
//! Paper: GDumb: A Simple Approach that Questions Our Progress in Continual Learning (ECCV 2020).
//!
//! Loss: mean cross-entropy over uniform batches of the memory, in CutMix form half of the time. Memory: `balanced`, the
//! greedy sampler. Training starts from the network the run began with, at every task end and at the end of the
//! stream.
//!
//! Departures from the paper: as many steps as the stream has earned so far, with the optimiser and rate of the other
//! methods, instead of 256 epochs with warm restarts, so that budgets are equal. Between task ends the last trained
//! network answers; before the first one the answer is the class met first. It is therefore no any-time learner.

use dpcl_report::record::Parameters;

use super::{Method, MethodInfo, REHEARSAL};
use crate::{
    answers::Scores,
    config::Setup,
    data::Image,
    error::{Error, Result},
    memory::Memory,
    method::{Answers, Arrival, Core, Knowledge, Step, scores},
    rehearsal::{
        offline::Offline,
        rebuild,
        replay::{DISAGREEMENT, LOSSES, unmeasured_memory},
    },
    state::{Persist, State},
    stream::Credit,
};

/// How the method is listed and built.
pub const INFO: MethodInfo = MethodInfo {
    name: "gdumb",
    about: "a fresh network trained on a balanced memory alone, at every task end",
    departures: &["as many steps as the stream has earned, with the common optimiser, instead of 256 epochs"],
    knowledge: Knowledge::TaskEnds,
    answers: Answers::TaskEnds,
    section: "gdumb",
    memory_scheme: "balanced",
    build: |setup| Ok(Box::new(Gdumb::new(setup)?)),
    ..REHEARSAL
};

/// A memory, and a network trained on it from time to time.
pub struct Gdumb {
    memory: Memory,
    updates: f64,
    samples: u64,
    /// Classes met; those of the network are the ones it was trained with.
    classes: usize,
    /// Samples seen when the last training began.
    trained_at: u64,
    /// The network the run began with.
    start: State,
    offline: Offline,
}

impl Gdumb {
    fn new(setup: &Setup) -> Result<Self> {
        rebuild::refuse(setup)?;
        let memory = Memory::new(&setup.memory_scheme, setup.memory, setup.seed)?;
        if memory.capacity() == 0 {
            return Err(Error::bad_key("memory", "must be at least 1: gdumb learns from its memory alone"));
        }
        if memory.needs_disagreement() {
            return Err(unmeasured_memory(setup, DISAGREEMENT));
        }
        if memory.needs_losses() {
            return Err(unmeasured_memory(setup, LOSSES));
        }
        Ok(Self {
            memory,
            updates: setup.updates,
            samples: 0,
            classes: 0,
            trained_at: 0,
            start: State::default(),
            offline: Offline::new(setup)?,
        })
    }
}

impl Method for Gdumb {
    /// The heads do not grow: a training starts with all classes met by then.
    fn new_class(&mut self, _core: &mut Core) {
        self.classes += 1;
    }

    fn observe(&mut self, core: &mut Core, Arrival { sample, .. }: Arrival) -> Result<Vec<Step>> {
        if self.samples == 0 {
            core.model.save(&mut self.start);
        }
        self.samples += 1;
        self.memory.offer(&sample, None);
        Ok(Vec::new())
    }

    fn task_end(&mut self, core: &mut Core) -> Result<()> {
        if self.trained_at == self.samples {
            return Ok(());
        }
        self.trained_at = self.samples;
        core.model.load(&self.start)?;
        (0..self.classes).for_each(|_| core.grow());
        self.offline.begin(Credit::earned(self.samples, self.updates))
    }

    fn finish(&mut self, core: &mut Core) -> Result<()> {
        self.task_end(core)
    }

    fn catch_up(&mut self, core: &mut Core) -> Result<Vec<Step>> {
        self.offline.slice(core, self.memory.slots())
    }

    fn planned(&self, ends: &[u64]) -> Option<u64> {
        Some(ends.iter().map(|&samples| Credit::earned(samples, self.updates)).sum())
    }

    fn predict(&self, core: &Core, images: &[Image], _task: Option<usize>) -> Result<Vec<Scores>> {
        if self.trained_at == 0 {
            let mut first_class = vec![0.0; self.classes.max(1)];
            first_class[0] = 1.0;
            return Ok(vec![Scores::of(&[first_class]); images.len()]);
        }
        let mut answers = scores(core.logits(images));
        // Classes met since the last training have no logit.
        answers.iter_mut().for_each(|answer| answer.probabilities.resize(self.classes, 0.0));
        Ok(answers)
    }

    fn check_loaded(&self, core: &Core) -> Result<()> {
        let trained = core.model.heads().classes();
        if self.trained_at > self.samples || trained > self.classes {
            let problem = format!("is {}, of a training with {trained} classes", self.trained_at);
            return Err(Error::BadState { key: "method.trained_at".into(), problem });
        }
        Ok(())
    }

    fn memory(&self) -> Option<&Memory> {
        Some(&self.memory)
    }

    fn extra_parameters(&self) -> Parameters {
        // Without running statistics, as the network itself is counted; heads have no class at the start.
        let encoder = self.start.part("encoder");
        let learnable = encoder.arrays.iter().filter(|(name, _)| !name.contains(".running_"));
        let count: u64 = learnable.map(|(_, array)| array.shape.iter().product::<usize>() as u64).sum();
        Parameters { state: count, ..Parameters::default() }
    }
}

impl Persist for Gdumb {
    fn save(&self, state: &mut State) {
        state.save_part("memory", &self.memory);
        state.put("samples", &self.samples);
        state.put("classes", &self.classes);
        state.put("trained_at", &self.trained_at);
        state.save_part("start", &self.start);
        state.save_part("offline", &self.offline);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        state.load_part("memory", &mut self.memory)?;
        self.samples = state.get_counted("samples")?;
        self.classes = state.get_counted("classes")?;
        self.trained_at = state.get_counted("trained_at")?;
        state.load_part("start", &mut self.start)?;
        state.load_part("offline", &mut self.offline)
    }
}
