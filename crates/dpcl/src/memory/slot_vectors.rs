//! Numbers that are stored with samples and go where they go: one vector a filled slot, of any length.

use super::Place;
use crate::{
    error::{Error, Result},
    state::{Array, Elements, Persist, State},
};

/// A vector of each filled memory slot.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotVectors {
    /// Under which name the numbers are saved, and under which the lengths.
    keys: [&'static str; 2],
    vectors: Vec<Vec<f32>>,
}

impl SlotVectors {
    /// None yet; the names are those that numbers and lengths are saved under.
    pub fn saved_as(numbers: &'static str, lengths: &'static str) -> Self {
        Self { keys: [numbers, lengths], vectors: Vec::new() }
    }

    /// The vector of the sample in a slot.
    pub fn get(&self, slot: usize) -> &[f32] {
        &self.vectors[slot]
    }

    /// Follows where the memory put a sample.
    pub fn place(&mut self, place: Place, vector: Vec<f32>) {
        match place {
            Place::Append => self.vectors.push(vector),
            Place::Replace(slot) => self.vectors[slot] = vector,
            Place::Refuse => {}
        }
    }

    /// How many numbers are stored.
    pub fn count(&self) -> usize {
        self.vectors.iter().map(Vec::len).sum()
    }

    /// Refuses loaded vectors that do not go with that many filled slots.
    ///
    /// # Errors
    /// [`Error::BadState`] when there are more or fewer.
    pub fn check_loaded(&self, filled: usize) -> Result<()> {
        if self.vectors.len() == filled {
            return Ok(());
        }
        let problem = format!("holds vectors of {} samples for {filled} filled slots", self.vectors.len());
        Err(Error::BadState { key: format!("method.{}", self.keys[1]), problem })
    }
}

impl Persist for SlotVectors {
    fn save(&self, state: &mut State) {
        let [numbers, lengths] = self.keys;
        state.put(lengths, &self.vectors.iter().map(Vec::len).collect::<Vec<usize>>());
        let flat = self.vectors.concat();
        state.put_array(numbers, Array::floats([flat.len()], flat));
    }

    fn load(&mut self, state: &State) -> Result<()> {
        let [numbers, lengths] = self.keys;
        let lengths: Vec<usize> = state.get(lengths)?;
        let bad = |problem: String| Err(Error::BadState { key: numbers.into(), problem });
        let Elements::F32(flat) = &state.array(numbers)?.elements else {
            return bad("are not floats".into());
        };
        let total = lengths.iter().try_fold(0_usize, |sum, &length| sum.checked_add(length));
        if total != Some(flat.len()) {
            return bad(format!("are {} numbers, and their lengths make another sum", flat.len()));
        }
        let mut rest = &flat[..];
        self.vectors.clear();
        for length in lengths {
            let (vector, after) = rest.split_at(length);
            self.vectors.push(vector.to_vec());
            rest = after;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled() -> SlotVectors {
        let mut stored = SlotVectors::saved_as("numbers", "lengths");
        stored.place(Place::Append, vec![1.0]);
        stored.place(Place::Append, vec![2.0, 3.0]);
        stored.place(Place::Refuse, vec![9.0]);
        stored.place(Place::Replace(0), vec![4.0, 5.0, 6.0]);
        stored.place(Place::Append, Vec::new());
        stored
    }

    #[test]
    fn vectors_follow_their_samples_and_survive_saving() {
        let stored = filled();
        assert_eq!([stored.get(0), stored.get(1), stored.get(2)], [&[4.0, 5.0, 6.0][..], &[2.0, 3.0], &[]]);
        assert_eq!(stored.count(), 5);
        assert!(stored.check_loaded(3).is_ok() && stored.check_loaded(2).is_err());

        let mut state = State::default();
        stored.save(&mut state);
        let mut restored = SlotVectors::saved_as("numbers", "lengths");
        restored.load(&state).unwrap();
        assert_eq!(restored, stored);
    }

    #[test]
    fn lengths_that_are_not_those_of_the_numbers_are_refused() {
        let mut state = State::default();
        filled().save(&mut state);
        for lengths in [vec![3, 1], vec![3, 2, 1], vec![usize::MAX, 6]] {
            state.put("lengths", &lengths);
            assert!(filled().load(&state).is_err(), "{lengths:?}");
        }
    }
}
