//! The newest samples: each takes the place of the oldest.

use super::{Chance, Offer, Place, Scheme, View};
use crate::{
    error::{Error, Result},
    state::{Persist, State},
};

/// Remembers which slot holds the oldest sample.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ring {
    oldest: usize,
}

impl Scheme for Ring {
    fn place(&mut self, view: View<'_>, _offer: Offer, _chance: &mut dyn Chance) -> Place {
        match view.capacity {
            0 => Place::Refuse,
            capacity if view.classes.len() < capacity => Place::Append,
            capacity => {
                let slot = self.oldest;
                self.oldest = (slot + 1) % capacity;
                Place::Replace(slot)
            }
        }
    }

    fn goes_by_order(&self) -> bool {
        true
    }

    fn check_loaded(&self, filled: usize) -> Result<()> {
        if self.oldest == 0 || self.oldest < filled {
            return Ok(());
        }
        let problem = format!("is {} of {filled} filled slots", self.oldest);
        Err(Error::BadState { key: "oldest".into(), problem })
    }
}

impl Persist for Ring {
    fn save(&self, state: &mut State) {
        state.put("oldest", &self.oldest);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.oldest = state.get("oldest")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        data::Image,
        memory::{Memory, Sample},
    };

    fn offer(memory: &mut Memory, class: usize) {
        let image = Image { height: 1, width: 1, pixels: vec![0; 3].into() };
        memory.offer(&Sample::new(image, class), None);
    }

    fn classes(memory: &Memory) -> Vec<usize> {
        memory.slots().iter().map(|sample| sample.class).collect()
    }

    #[test]
    fn the_newest_are_kept_and_saving_keeps_the_order() {
        let mut memory = Memory::new("ring", 3, 1).unwrap();
        (0..5).for_each(|class| offer(&mut memory, class));
        assert_eq!(classes(&memory), [3, 4, 2]);
        let mut state = State::default();
        memory.save(&mut state);
        let mut again = Memory::new("ring", 3, 1).unwrap();
        again.load(&state).unwrap();
        (5..7).for_each(|class| offer(&mut again, class));
        assert_eq!(classes(&again), [6, 4, 5]);
        state.put("scheme.oldest", &3);
        assert!(again.load(&state).unwrap_err().to_string().contains("oldest"));
    }
}
