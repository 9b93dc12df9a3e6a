//! The samples that BiC never trains on.

use crate::{
    error::{Error, Result},
    memory::{Sample, Samples},
    random::Random,
    state::{Persist, State},
};

/// Samples that are never trained on: the same number of every class.
pub struct Validation {
    budget: usize,
    /// Samples a class may have.
    quota: usize,
    /// Whether every class has them; nothing is taken until the next new class.
    full: bool,
    samples: Samples,
    random: Random,
}

impl Validation {
    /// Room for `budget` samples in all.
    pub fn new(budget: usize, seed: u64) -> Self {
        let random = Random::named(seed, "validation");
        Self { budget, quota: 0, full: false, samples: Samples::default(), random }
    }

    /// Samples it can ever take: the first share of the first, second, third … class.
    pub fn most(&self) -> usize {
        (1..=self.budget).map(|classes| self.budget / classes).sum()
    }

    /// A class is met, which makes `classes` of them: every share shrinks, at random.
    pub fn new_class(&mut self, classes: usize) {
        self.quota = self.budget / classes;
        self.full = false;
        for class in 0..classes {
            let own: Vec<usize> =
                (0..self.samples.len()).filter(|&index| self.samples[index].class == class).collect();
            let excess = own.len().saturating_sub(self.quota);
            let mut leaving: Vec<usize> =
                self.random.distinct(own.len(), excess).into_iter().map(|index| own[index]).collect();
            leaving.sort_unstable();
            leaving.into_iter().rev().for_each(|index| drop(self.samples.0.remove(index)));
        }
    }

    /// Whether a sample of that class is to be set aside.
    pub fn wants(&self, class: usize) -> bool {
        let count = self.samples.iter().filter(|sample| sample.class == class).count();
        !self.full && count < self.quota
    }

    /// Sets a sample aside; `classes` are known.
    pub fn take(&mut self, sample: Sample, classes: usize) {
        self.samples.0.push(sample);
        self.full = self.samples.len() == self.quota * classes;
    }

    /// The samples set aside, once every class has its share.
    pub fn whole(&self) -> Option<&[Sample]> {
        (self.full && !self.samples.is_empty()).then_some(&self.samples)
    }
}

impl Persist for Validation {
    fn save(&self, state: &mut State) {
        self.samples.save(state);
        state.put("quota", &self.quota);
        state.put("full", &self.full);
        state.put("random", &self.random);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.samples.load(state)?;
        if self.samples.len() > self.budget {
            let problem = format!("holds {} samples for {}", self.samples.len(), self.budget);
            return Err(Error::BadState { key: "classes".into(), problem });
        }
        self.quota = state.get_counted("quota")?;
        if self.quota > self.budget {
            let problem = format!("is {}, more than there is room for", self.quota);
            return Err(Error::BadState { key: "quota".into(), problem });
        }
        self.full = state.get("full")?;
        self.random = state.get("random")?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Image;

    fn sample(class: usize) -> Sample {
        Sample::new(Image { height: 1, width: 1, pixels: vec![class as u8; 3].into() }, class)
    }

    /// A sample of that class arrives; says whether it is set aside.
    fn offer(validation: &mut Validation, known: &mut usize, class: usize) -> bool {
        if class == *known {
            *known += 1;
            validation.new_class(*known);
        }
        let wanted = validation.wants(class);
        if wanted {
            validation.take(sample(class), *known);
        }
        wanted
    }

    #[test]
    fn the_first_samples_are_set_aside_and_shares_shrink() {
        let (mut validation, mut known) = (Validation::new(6, 1), 0);
        let count = |validation: &Validation, class| {
            validation.samples.iter().filter(|sample| sample.class == class).count()
        };
        let aside = (0..8).filter(|_| offer(&mut validation, &mut known, 0)).count();
        assert_eq!((aside, validation.full), (6, true));
        assert!(offer(&mut validation, &mut known, 1));
        assert_eq!((count(&validation, 0), count(&validation, 1)), (3, 1));
        assert!(!offer(&mut validation, &mut known, 0), "its share is full");
        assert_eq!((0..4).filter(|_| offer(&mut validation, &mut known, 1)).count(), 2);
        assert!(validation.full);
        let mut ever = 6 + 3;
        for class in 2..7 {
            let aside = (0..5).filter(|_| offer(&mut validation, &mut known, class)).count();
            let quota = 6 / known;
            assert_eq!(aside, quota);
            ever += aside;
            assert!(
                validation.samples.len() <= 6 && (0..known).all(|class| count(&validation, class) <= quota)
            );
        }
        assert_eq!(ever, validation.most());
        assert!(validation.samples.is_empty(), "seven classes have no share of six samples");
    }
}
