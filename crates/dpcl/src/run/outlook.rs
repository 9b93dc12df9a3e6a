//! What a run has before it, counted before it starts.

use super::Run;
use crate::{
    error::Result,
    learner::Learner,
    method::{Answers, Knowledge},
};

/// The work and the space that a run will take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// Stream samples to be learned.
    pub samples: u64,
    /// Training steps to be taken.
    pub updates: u64,
    /// Evaluations to be made.
    pub evaluations: u64,
    /// Test images to be answered in all of them together.
    pub answers: u64,
    /// Images answered to measure what the memory holds, where the method asks for that.
    pub remeasured: u64,
    /// Bytes of the record with its checkpoint, about.
    pub bytes: u64,
}

/// Bytes of one class's counts in an evaluation of the event log.
const COUNT_BYTES: u64 = 40;

impl Run {
    /// Counts what learning the whole stream takes. Nothing is learned for it.
    ///
    /// # Errors
    /// When the learner that the run begins with cannot be made.
    pub fn outlook(&self) -> Result<Outlook> {
        let learner = self.first_learner()?;
        let updates = self.planned(&learner, learner.samples());
        let (evaluations, answers, counts) = self.evaluations(&learner);
        let setup = &self.setup;
        let remeasured =
            if setup.measures_losses() { updates / setup.imp_period.max(1) * setup.memory as u64 } else { 0 };
        let parameters = learner.parameters();
        let image = (self.dataset.size * self.dataset.size * 3) as u64;
        // Numbers of four bytes; each that is learned has two moments beside it.
        let checkpoint = 4 * (3 * parameters.network + parameters.state) + setup.memory as u64 * image;
        let samples = self.schedule.tasks.iter().map(|task| task.samples.len() as u64).sum();
        let bytes = checkpoint + counts * COUNT_BYTES;
        Ok(Outlook { samples, updates, evaluations, answers, remeasured, bytes })
    }

    /// Evaluations, test images answered in them, and counts of classes written down.
    fn evaluations(&self, learner: &Learner) -> (u64, u64, u64) {
        let times = self.times_answered(learner);
        let tests = self.test_images();
        let period = if learner.answers() == Answers::End { 0 } else { self.setup.eval_period };
        let mut met = vec![false; tests.len()];
        let (mut images, mut classes, mut samples) = (0, 0, 0_u64);
        let (mut evaluations, mut answers, mut counts) = (0, 0, 0);
        let last = self.schedule.tasks.len().saturating_sub(1);
        for (number, task) in self.schedule.tasks.iter().enumerate() {
            let mut due = 0;
            for &position in &task.samples {
                let class = self.dataset.train.labels[position];
                if !std::mem::replace(&mut met[class], true) {
                    images += tests[class];
                    classes += 1;
                }
                samples += 1;
                if period > 0 && samples.is_multiple_of(period) {
                    due += 1;
                    answers += images * times;
                    counts += classes * times;
                }
            }
            // The end of a task that meets a period is the same learner, unless the method works at task ends.
            let same = due > 0 && samples.is_multiple_of(period) && learner.knowledge() == Knowledge::None;
            if learner.answers() != Answers::End || number == last {
                evaluations += u64::from(!same);
                answers += if same { 0 } else { images * times };
                counts += classes * times;
            }
            evaluations += due;
        }
        (evaluations, answers, counts)
    }

    /// How often each test image is answered in an evaluation: again with the weights that learn, again with its task.
    fn times_answered(&self, learner: &Learner) -> u64 {
        1 + u64::from(self.setup.average > 0) + u64::from(learner.knowledge() == Knowledge::TaskIds)
    }

    /// Test images of each class.
    fn test_images(&self) -> Vec<u64> {
        let mut counts = vec![0; self.dataset.classes.len()];
        match self.parts.heldout() {
            Some(heldout) => {
                heldout.iter().for_each(|&position| counts[self.dataset.train.labels[position]] += 1);
            }
            None => self.dataset.test.labels.iter().for_each(|&label| counts[label] += 1),
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn outlook(keys: &str) -> Outlook {
        let text = format!("per_class = 20\nwidth = 4\nmemory = 10\nbatch = 4\n{keys}");
        Run::open(&Config::from_toml(&text).unwrap()).unwrap().outlook().unwrap()
    }

    #[test]
    fn what_a_run_does_is_counted_before_it_starts() {
        // Ten classes of 20 images in five tasks of 40; the embedded set tests 100 images a class.
        let plain = outlook("method = 'er'\nupdates = 0.5\neval_period = 0");
        assert_eq!((plain.samples, plain.updates, plain.evaluations), (200, 100, 5));
        let run = Run::open(&Config::from_toml("method = 'er'").unwrap()).unwrap();
        let each = run.test_images()[0];
        assert_eq!(plain.answers, each * (2 + 4 + 6 + 8 + 10));
        // Every task end meets the period of 40, and one at 20 samples lies between.
        let period = outlook("method = 'er'\nupdates = 0.5\neval_period = 20");
        assert_eq!(period.evaluations, 10);
        let averaged = outlook("method = 'er'\nupdates = 0.5\neval_period = 0\naverage = 100");
        assert_eq!(averaged.answers, 2 * plain.answers);
        assert!(averaged.bytes > plain.bytes);
    }

    #[test]
    fn methods_that_answer_late_are_evaluated_once() {
        let joint = outlook("method = 'joint'\nupdates = 0.5\neval_period = 20");
        assert_eq!((joint.evaluations, joint.updates), (1, 100));
    }
}
