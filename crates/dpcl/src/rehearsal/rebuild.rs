//! Rainbow Memory's rebuild, for methods that are told where tasks end: the samples of the task are kept until it ends,
//! and the memory is then chosen anew from them and from what it holds of earlier tasks, by how uncertain the network
//! is of augmented copies of each.
//!
//! Between task ends the memory follows its online scheme. The samples of the task are beyond the memory budget.

use std::collections::BTreeSet;

use crate::{
    config::Setup,
    error::{Error, Result},
    memory::{Memory, Place, Sample, Samples, choose, uncertainty},
    method::{Core, scores},
    random::Random,
    state::{Persist, State},
};

/// Augmented copies of each candidate.
const COPIES: usize = 12;

/// Candidates whose copies go through the network together.
const TOGETHER: usize = 16;

/// The samples of the running task, and what chooses among them.
pub struct Rebuild {
    /// Whether a task has ended before this one.
    later: bool,
    task: Samples,
    /// Slots that hold samples of the running task, which are in `task` as well.
    fresh: BTreeSet<usize>,
    augmentation: Random,
    choice: Random,
}

impl Rebuild {
    /// A rebuild if the configuration asks for one.
    ///
    /// # Errors
    /// When the memory is not `balanced`.
    pub fn new(setup: &Setup) -> Result<Option<Self>> {
        if !setup.rebuild {
            return Ok(None);
        }
        if setup.memory_scheme != "balanced" {
            let problem = format!("rebuilds the memory `balanced`, not `{}`", setup.memory_scheme);
            return Err(Error::bad_key("rebuild", problem));
        }
        Ok(Some(Self {
            later: false,
            task: Samples::default(),
            fresh: BTreeSet::new(),
            augmentation: Random::named(setup.seed, "rebuild-perturbation"),
            choice: Random::named(setup.seed, "rebuild-choice"),
        }))
    }

    /// A sample was offered to the memory; `filled` slots are in use afterwards.
    pub fn offered(&mut self, sample: &Sample, place: Place, filled: usize) {
        self.task.0.push(sample.clone());
        match place {
            Place::Append => self.fresh.insert(filled - 1),
            Place::Replace(slot) => self.fresh.insert(slot),
            Place::Refuse => false,
        };
    }

    /// Chooses the memory anew and forgets the task.
    pub fn task_end(&mut self, core: &Core, memory: &mut Memory) {
        let old = (0..memory.slots().len()).filter(|slot| !self.fresh.contains(slot));
        let mut candidates: Vec<Sample> = old.map(|slot| memory.slots()[slot].clone()).collect();
        candidates.append(&mut self.task.0);
        let uncertainty = self.later.then(|| self.uncertainty(core, &candidates));
        let classes: Vec<usize> = candidates.iter().map(|sample| sample.class).collect();
        let chosen = choose(&classes, uncertainty.as_deref(), memory.capacity(), &mut self.choice);
        memory.refill(chosen.into_iter().map(|position| candidates[position].clone()).collect());
        self.fresh.clear();
        self.later = true;
    }

    /// How far the predictions on augmented copies of each sample differ.
    fn uncertainty(&mut self, core: &Core, samples: &[Sample]) -> Vec<f64> {
        let mut found = Vec::with_capacity(samples.len());
        for part in samples.chunks(TOGETHER) {
            let copies = part.iter().flat_map(|sample| std::iter::repeat_n(&sample.image, COPIES));
            let floats = core.batcher.augmented_by(copies, &mut self.augmentation);
            let logits = core.model.network().logits(core.model.images(floats, core.batcher.size()));
            for answers in scores(logits).chunks(COPIES) {
                let mut votes = vec![0; core.model.heads().classes()];
                answers.iter().for_each(|answer| votes[answer.best()] += 1);
                found.push(uncertainty(&votes));
            }
        }
        found
    }
}

/// Refuses a rebuild, for methods that do not make one.
///
/// # Errors
/// When the configuration asks for it.
pub fn refuse(setup: &Setup) -> Result<()> {
    if setup.rebuild {
        let problem = format!("`{}` does not rebuild its memory; try `ewc++`", setup.method.name);
        return Err(Error::bad_key("rebuild", problem));
    }
    Ok(())
}

impl Persist for Rebuild {
    fn save(&self, state: &mut State) {
        self.task.save(state);
        state.put("later", &self.later);
        state.put("fresh", &self.fresh);
        state.put("perturbation", &self.augmentation);
        state.put("choice", &self.choice);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.task.load(state)?;
        self.later = state.get("later")?;
        self.fresh = state.get("fresh")?;
        self.augmentation = state.get("perturbation")?;
        self.choice = state.get("choice")?;
        Ok(())
    }
}
