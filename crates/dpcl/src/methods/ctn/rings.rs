//! Which slots of the memory belong to which task: for each a ring that its base is rehearsed from, episodic, and one
//! that the controller learns from, semantic. In a ring the newest sample takes the place of the oldest.
//!
//! Slots are counted here; samples lie in the memory. Every task has an equal share of them, which shrinks when more
//! tasks come than were expected.

use std::collections::{BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::{
    error::Result,
    memory::Place,
    state::{Persist, State},
};

/// What a slot is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The base is rehearsed from it.
    Episodic,
    /// The controller learns from it.
    Semantic,
}

/// The rings of all tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Rings {
    capacity: usize,
    /// Tasks that share the slots, or as many as have come, if these are more.
    expected: usize,
    /// Share of a task's slots that is semantic.
    semantic: f64,
    slots: Slots,
}

/// Slots in use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Slots {
    /// Of each task the episodic and the semantic ones, oldest first.
    tasks: Vec<[VecDeque<usize>; 2]>,
    /// Filled with samples that no task owns any more.
    free: BTreeSet<usize>,
}

impl Rings {
    /// Rings over `capacity` slots for that many tasks.
    pub fn new(capacity: usize, expected: usize, semantic: f64) -> Self {
        Self { capacity, expected: expected.max(1), semantic, slots: Slots::default() }
    }

    /// A task is met for the first time. What others hold beyond their share is free.
    pub fn new_task(&mut self) {
        self.slots.tasks.push(Default::default());
        let limits = [Part::Episodic, Part::Semantic].map(|part| self.limit(part));
        let Slots { tasks, free } = &mut self.slots;
        for rings in tasks {
            for (ring, limit) in rings.iter_mut().zip(limits) {
                let excess = ring.len().saturating_sub(limit);
                free.extend(ring.drain(..excess));
            }
        }
    }

    /// Slots of a task's ring. A task with two slots has one of each kind.
    pub fn limit(&self, part: Part) -> usize {
        let share = self.capacity / self.expected.max(self.slots.tasks.len());
        let semantic = (self.semantic * share as f64) as usize;
        let least = usize::from(share > 1 && self.semantic > 0.0);
        match part {
            Part::Semantic => semantic.max(least),
            Part::Episodic => share - semantic.max(least),
        }
    }

    /// Where the next sample of a task's ring goes, when `filled` slots of the memory are.
    pub fn place(&mut self, task: usize, part: Part, filled: usize) -> Place {
        let limit = self.limit(part);
        let Slots { tasks, free } = &mut self.slots;
        let ring = &mut tasks[task][part as usize];
        if limit == 0 {
            return Place::Refuse;
        }
        if ring.len() < limit {
            let slot = free.pop_first();
            ring.push_back(slot.unwrap_or(filled));
            return slot.map_or(Place::Append, Place::Replace);
        }
        ring.rotate_left(1);
        Place::Replace(ring[limit - 1])
    }

    /// The slot of a full ring that its next sample will take.
    pub fn oldest(&self, task: usize, part: Part) -> Option<usize> {
        let ring = &self.slots.tasks[task][part as usize];
        ring.front().copied().filter(|_| ring.len() == self.limit(part))
    }

    /// Slots of a task's ring, oldest first.
    pub fn of(&self, task: usize, part: Part) -> impl Iterator<Item = usize> + '_ {
        self.slots.tasks[task][part as usize].iter().copied()
    }

    /// Slots of all tasks' rings of a kind, each with its task.
    pub fn all(&self, part: Part) -> Vec<(usize, usize)> {
        let of = |task| self.of(task, part).map(move |slot| (slot, task));
        (0..self.slots.tasks.len()).flat_map(of).collect()
    }

    /// What is wrong with loaded rings of that many tasks in a memory of that many filled slots.
    pub fn problem(&self, tasks: usize, filled: usize) -> Option<String> {
        let Slots { tasks: rings, free } = &self.slots;
        if rings.len() != tasks {
            return Some(format!("are those of {} tasks, and {tasks} were met", rings.len()));
        }
        let longest = [Part::Episodic, Part::Semantic].map(|part| self.limit(part));
        if rings.iter().any(|rings| rings.iter().zip(longest).any(|(ring, limit)| ring.len() > limit)) {
            return Some("hold more than a task's share".into());
        }
        let owned: Vec<usize> = rings.iter().flatten().flatten().chain(free).copied().collect();
        let distinct: BTreeSet<usize> = owned.iter().copied().collect();
        let whole = distinct.len() == owned.len() && distinct.iter().copied().eq(0..filled);
        (!whole).then(|| format!("name {owned:?} of {filled} filled slots"))
    }
}

impl Persist for Rings {
    fn save(&self, state: &mut State) {
        state.put("slots", &self.slots);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.slots = state.get("slots")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fills a memory in thought: which numbers lie in its slots.
    fn put(rings: &mut Rings, memory: &mut Vec<u32>, task: usize, part: Part, number: u32) {
        match rings.place(task, part, memory.len()) {
            Place::Append => memory.push(number),
            Place::Replace(slot) => memory[slot] = number,
            Place::Refuse => {}
        }
    }

    fn held(rings: &Rings, memory: &[u32], task: usize, part: Part) -> Vec<u32> {
        rings.of(task, part).map(|slot| memory[slot]).collect()
    }

    #[test]
    fn shares_of_a_task() {
        let limits = |capacity, expected| {
            let rings = Rings::new(capacity, expected, 0.2);
            [rings.limit(Part::Episodic), rings.limit(Part::Semantic)]
        };
        assert_eq!(limits(2000, 5), [320, 80]);
        assert_eq!(
            (limits(50, 1), limits(4, 2), limits(3, 2), limits(1, 2)),
            ([40, 10], [1, 1], [1, 0], [0, 0])
        );
        assert_eq!(Rings::new(50, 1, 0.0).limit(Part::Episodic), 50);
    }

    #[test]
    fn the_newest_takes_the_place_of_the_oldest() {
        let (mut rings, mut memory) = (Rings::new(10, 2, 0.2), Vec::new());
        rings.new_task();
        for number in 0..6 {
            put(&mut rings, &mut memory, 0, Part::Episodic, number);
        }
        assert_eq!(held(&rings, &memory, 0, Part::Episodic), [2, 3, 4, 5]);
        assert_eq!(rings.oldest(0, Part::Semantic), None);
        put(&mut rings, &mut memory, 0, Part::Semantic, 6);
        assert_eq!(rings.oldest(0, Part::Semantic).map(|slot| memory[slot]), Some(6));
        put(&mut rings, &mut memory, 0, Part::Semantic, 7);
        assert_eq!(held(&rings, &memory, 0, Part::Semantic), [7]);
        assert_eq!(memory, [4, 5, 2, 3, 7]);
        assert_eq!(rings.problem(1, 5), None);
    }

    #[test]
    fn more_tasks_than_expected_take_the_oldest_slots_of_the_others() {
        let (mut rings, mut memory) = (Rings::new(8, 1, 0.5), Vec::new());
        rings.new_task();
        for number in 0..9 {
            put(&mut rings, &mut memory, 0, Part::Episodic, number);
            put(&mut rings, &mut memory, 0, Part::Semantic, 100 + number);
        }
        for task in 1..3_u32 {
            rings.new_task();
            for number in 0..9 {
                put(&mut rings, &mut memory, task as usize, Part::Episodic, 10 * task + number);
                put(&mut rings, &mut memory, task as usize, Part::Semantic, 110 + number);
            }
            assert!(memory.len() <= 8);
            assert_eq!(rings.problem(task as usize + 1, memory.len()), None);
        }
        // Two slots a task, one of each kind.
        assert_eq!(held(&rings, &memory, 0, Part::Episodic), [8]);
        assert_eq!(held(&rings, &memory, 1, Part::Episodic), [18]);
        assert_eq!(held(&rings, &memory, 2, Part::Episodic), [28]);
        assert_eq!(rings.all(Part::Semantic).len(), 3);
    }

    #[test]
    fn what_is_loaded_is_held_to_the_memory() {
        let (mut rings, mut memory) = (Rings::new(10, 2, 0.2), Vec::new());
        rings.new_task();
        for number in 0..3 {
            put(&mut rings, &mut memory, 0, Part::Episodic, number);
        }
        let mut state = State::default();
        rings.save(&mut state);
        let mut again = Rings::new(10, 2, 0.2);
        again.load(&state).unwrap();
        assert_eq!(again, rings);
        assert!(
            again.problem(2, 3).is_some() && again.problem(1, 2).is_some() && again.problem(1, 4).is_some()
        );
        let with = |text: &str| {
            let mut state = State::default();
            state.put("slots", &serde_json::from_str::<serde_json::Value>(text).unwrap());
            let mut rings = Rings::new(10, 2, 0.2);
            rings.load(&state).unwrap();
            rings.problem(1, 3)
        };
        assert!(with(r#"{"tasks": [[[0, 1], [1]]], "free": [2]}"#).unwrap().contains("[0, 1, 1, 2] of 3"));
        assert!(with(r#"{"tasks": [[[], [0, 1]]], "free": [2]}"#).unwrap().contains("share"));
        assert_eq!(with(r#"{"tasks": [[[0, 1], []]], "free": [2]}"#), None);
    }
}
