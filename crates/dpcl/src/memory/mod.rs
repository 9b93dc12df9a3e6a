//! What is kept of the stream.
//!
//! A [`Memory`] is a fixed number of slots and a [`Scheme`] that decides which slot a newcomer gets, if any. Drawing is
//! the same for every scheme: uniform, without replacement. The memory does not know how its samples are used.

mod balanced;
mod cbrs;
mod clib;
mod first;
mod nothing;
mod pim;
mod rebuild;
mod reservoir;
mod ring;
mod samples;
mod schemes;
mod slot_vectors;
mod start;

pub(crate) use balanced::Balanced;
pub(crate) use cbrs::Cbrs;
pub(crate) use clib::Clib;
pub(crate) use first::First;
pub(crate) use nothing::Nothing;
pub(crate) use pim::{Keep, Pim};
#[cfg(test)]
pub(crate) use rebuild::spread;
pub(crate) use rebuild::{choose, uncertainty};
pub(crate) use reservoir::Reservoir;
pub(crate) use ring::Ring;
pub use samples::{Sample, Samples};
pub use schemes::{SCHEMES, SchemeInfo};
pub use slot_vectors::SlotVectors;
pub(crate) use start::Start;

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    error::{Error, Result},
    random::Random,
    state::{Persist, State},
};

/// A source of chance, so that rules can be tested with given numbers.
pub trait Chance {
    /// Uniform in [0, 1).
    fn uniform(&mut self) -> f64;

    /// Uniform integer below `count`.
    fn below(&mut self, count: usize) -> usize {
        ((self.uniform() * count as f64) as usize).min(count.saturating_sub(1))
    }
}

impl Chance for Random {
    fn uniform(&mut self) -> f64 {
        Random::uniform(self)
    }

    fn below(&mut self, count: usize) -> usize {
        Random::below(self, count)
    }
}

/// A stored sample drawn for rehearsal.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    /// The slot it lies in.
    pub slot: usize,
    /// The sample.
    pub sample: Sample,
}

/// A sample that asks for a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Offer {
    /// Its class.
    pub class: usize,
    /// How much the learner's heads disagree on it; schemes that do not weigh samples ignore it.
    pub disagreement: f64,
}

/// Where a newcomer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// A free slot at the end.
    Append,
    /// The slot of a sample that leaves.
    Replace(usize),
    /// Nowhere.
    Refuse,
}

/// What a scheme sees of the memory; index = slot.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Class in each filled slot.
    pub classes: &'a [usize],
    /// Running average of the disagreement on each filled slot.
    pub history: &'a [f64],
    /// Slots in all; fewer filled ones means free slots.
    pub capacity: usize,
}

/// A rule for who stays.
pub trait Scheme: Persist + Send + Sync {
    /// Decides on one offer.
    fn place(&mut self, view: View<'_>, offer: Offer, chance: &mut dyn Chance) -> Place;

    /// Whether it decides by the learner's disagreement, which not every method measures.
    fn needs_disagreement(&self) -> bool {
        false
    }

    /// Whether it needs to hear of the losses of all stored samples, which cost a pass over the memory.
    fn needs_losses(&self) -> bool {
        false
    }

    /// Whether nothing but the order of arrival decides who stays: two learners of one stream then keep the same.
    fn goes_by_order(&self) -> bool {
        false
    }

    /// The samples in these slots were trained on.
    fn trained(&mut self, _slots: &[usize]) {}

    /// Refuses a loaded state that does not go with that many filled slots.
    ///
    /// # Errors
    /// [`Error::BadState`] for what does not fit.
    fn check_loaded(&self, _filled: usize) -> Result<()> {
        Ok(())
    }

    /// The loss of every stored sample in evaluation mode; `changed` slots were filled since they were measured last.
    fn refreshed(&mut self, _losses: &[f64], _changed: &BTreeSet<usize>) {}
}

/// Fixed slots under one scheme.
pub struct Memory {
    capacity: usize,
    slots: Samples,
    history: Vec<f64>,
    /// Slots whose samples nobody has measured the disagreement on yet.
    unmeasured: BTreeSet<usize>,
    /// Slots filled since the losses of all were measured last.
    changed: BTreeSet<usize>,
    scheme: Box<dyn Scheme>,
    start: Start,
    policy: Random,
    draws: Random,
}

impl Memory {
    /// An empty memory of `capacity` slots under the named scheme.
    ///
    /// # Errors
    /// When no scheme has that name.
    pub fn new(scheme: &str, capacity: usize, seed: u64) -> Result<Self> {
        Ok(Self::under(schemes::build(scheme)?, capacity, seed))
    }

    /// An empty memory of `capacity` slots under a scheme that is already set up.
    pub fn under(scheme: Box<dyn Scheme>, capacity: usize, seed: u64) -> Self {
        Self {
            capacity,
            slots: Samples::default(),
            history: Vec::new(),
            unmeasured: BTreeSet::new(),
            changed: BTreeSet::new(),
            scheme,
            start: Start::default(),
            policy: Random::named(seed, "memory-policy"),
            draws: Random::named(seed, "memory-draws"),
        }
    }

    /// The same, whose newcomers' histories start otherwise.
    pub(crate) fn starting(self, start: Start) -> Self {
        Self { start, ..self }
    }

    /// Whether its scheme decides by the learner's disagreement.
    pub fn needs_disagreement(&self) -> bool {
        self.scheme.needs_disagreement()
    }

    /// Whether its scheme decides by the losses of all stored samples.
    pub fn needs_losses(&self) -> bool {
        self.scheme.needs_losses()
    }

    /// Whether nothing but the order of arrival decides who stays.
    pub fn goes_by_order(&self) -> bool {
        self.scheme.goes_by_order()
    }

    /// Slots in all.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// The stored samples, in slot order.
    pub fn slots(&self) -> &[Sample] {
        &self.slots
    }

    /// Offers a sample, with the disagreement on it where that was measured; says where it went.
    pub fn offer(&mut self, sample: &Sample, disagreement: Option<f64>) -> Place {
        let classes: Vec<usize> = self.slots.iter().map(|slot| slot.class).collect();
        let view = View { classes: &classes, history: &self.history, capacity: self.capacity };
        let value = disagreement.unwrap_or(0.0);
        let offer = Offer { class: sample.class, disagreement: value };
        let place = self.scheme.place(view, offer, &mut self.policy);
        self.put(place, sample, disagreement);
        place
    }

    /// Puts a sample where a method says that knows more than the scheme.
    ///
    /// # Panics
    /// When the place is no filled slot, or a further one and none is free.
    pub fn put(&mut self, place: Place, sample: &Sample, disagreement: Option<f64>) {
        let value = disagreement.unwrap_or(0.0);
        let offer = Offer { class: sample.class, disagreement: value };
        let slot = match place {
            Place::Append => {
                assert!(self.slots.len() < self.capacity, "a memory is not filled beyond its slots");
                self.slots.0.push(sample.clone());
                self.history.push(value);
                self.slots.len() - 1
            }
            Place::Replace(slot) => {
                self.slots.0[slot] = sample.clone();
                self.history[slot] = match disagreement {
                    Some(_) => self.start.value(offer, &self.beside(slot)),
                    None => value,
                };
                slot
            }
            Place::Refuse => return,
        };
        self.changed.insert(slot);
        let starts_over = self.start == Start::First && place != Place::Append;
        match disagreement {
            Some(_) if !starts_over => self.unmeasured.remove(&slot),
            _ => self.unmeasured.insert(slot),
        };
    }

    /// Class and history of every other slot that has one, as they stand when a slot is filled anew.
    fn beside(&self, filled: usize) -> Vec<(usize, f64)> {
        if matches!(self.start, Start::Offered | Start::First) {
            return Vec::new();
        }
        let others = (0..self.slots.len()).filter(|&slot| slot != filled && self.is_measured(slot));
        others.map(|slot| (self.slots[slot].class, self.history[slot])).collect()
    }

    /// Whether the sample in a slot has a history of its own.
    pub fn is_measured(&self, slot: usize) -> bool {
        !self.unmeasured.contains(&slot)
    }

    /// Replaces everything stored, as far as there are slots; the samples have no history yet.
    pub fn refill(&mut self, mut samples: Vec<Sample>) {
        samples.truncate(self.capacity);
        self.history = vec![0.0; samples.len()];
        self.unmeasured = (0..samples.len()).collect();
        self.changed = (0..samples.len()).collect();
        self.slots = Samples(samples);
    }

    /// Moves the history of rehearsed slots towards their new disagreement by `rate`; returns the summed difference
    /// between the new values and the old history. A first measurement starts a history and is no difference; none is
    /// returned where there was no other.
    pub fn rehearsed(&mut self, slots: &[usize], disagreement: &[f64], rate: f64) -> Option<f64> {
        let mut change = None;
        for (&slot, &value) in slots.iter().zip(disagreement) {
            let history = &mut self.history[slot];
            if self.unmeasured.remove(&slot) {
                *history = value;
            } else {
                *change.get_or_insert(0.0) += value - *history;
                *history = (1.0 - rate) * *history + rate * value;
            }
        }
        change
    }

    /// The samples in these slots were trained on.
    pub fn trained(&mut self, slots: &[usize]) {
        self.scheme.trained(slots);
    }

    /// Hears the loss of every stored sample in evaluation mode; returns the slots that were filled since it heard of
    /// them last.
    pub fn refreshed(&mut self, losses: &[f64]) -> BTreeSet<usize> {
        let changed = std::mem::take(&mut self.changed);
        self.scheme.refreshed(losses, &changed);
        changed
    }

    /// Running average of the disagreement on each filled slot.
    pub fn history(&self) -> &[f64] {
        &self.history
    }

    /// Draws up to `count` distinct samples, uniformly.
    pub fn draw(&mut self, count: usize) -> Vec<Drawn> {
        let slots = self.draws.distinct(self.slots.len(), count);
        slots.into_iter().map(|slot| Drawn { slot, sample: self.slots[slot].clone() }).collect()
    }

    /// How many slots each class holds; index = class.
    pub fn histogram(&self) -> Vec<usize> {
        let mut counts = Vec::new();
        for slot in self.slots.iter() {
            if counts.len() <= slot.class {
                counts.resize(slot.class + 1, 0);
            }
            counts[slot.class] += 1;
        }
        counts
    }
}

impl Persist for Memory {
    fn save(&self, state: &mut State) {
        self.slots.save(state);
        state.put("history", &self.history);
        state.put("unmeasured", &self.unmeasured);
        state.put("changed", &self.changed);
        state.put("policy", &self.policy);
        state.put("draws", &self.draws);
        state.save_part("scheme", &*self.scheme);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.slots.load(state)?;
        let history: Vec<f64> = state.get("history")?;
        let filled = self.slots.len();
        if history.len() != filled || filled > self.capacity {
            let capacity = self.capacity;
            let problem =
                format!("holds {filled} samples and {} histories for {capacity} slots", history.len());
            return Err(Error::BadState { key: "classes".into(), problem });
        }
        self.history = history;
        self.unmeasured = state.get("unmeasured")?;
        self.changed = state.get("changed")?;
        self.policy = state.get("policy")?;
        self.draws = state.get("draws")?;
        state.load_part("scheme", &mut *self.scheme)?;
        self.scheme.check_loaded(filled)
    }
}

/// The class with most slots, a newcomer's counted as one more; ties go to the lowest class. Only a class that owns
/// a slot can be named.
fn largest_class(classes: &[usize], newcomer: Option<usize>) -> Option<usize> {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    classes.iter().for_each(|&class| *counts.entry(class).or_default() += 1);
    if let Some(count) = newcomer.and_then(|class| counts.get_mut(&class)) {
        *count += 1;
    }
    // Of equal counts `max_by_key` returns the last, so the walk goes downwards.
    counts.into_iter().rev().max_by_key(|&(_, count)| count).map(|(class, _)| class)
}
