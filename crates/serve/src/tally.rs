//! What is counted while learning goes on: how often a sample was answered rightly before it was learned, by class and of
//! late; loss, rate and disagreement. It goes by samples, never by time, and is saved with the learner, so that a server
//! that was killed counts on as if nothing had happened.

use std::collections::{BTreeMap, VecDeque};

use dpcl::{Observation, Prediction};
use serde::{Deserialize, Serialize};

/// Samples that "of late" stands for.
const LATE: usize = 500;

/// Points of a curve; when there are more, every other one is dropped and points come half as often.
const POINTS: usize = 256;

/// Bars of the histogram of disagreement, over 0 to [`WIDEST`].
pub const BARS: usize = 20;

/// Disagreement in nats from which on everything is in the last bar.
pub const WIDEST: f64 = 1.0;

/// Counts of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassTally {
    /// Samples learned.
    pub learned: u64,
    /// Samples answered before they were learned.
    pub answered: u64,
    /// Those answered rightly.
    pub right: u64,
}

/// One sample as it was met.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Met {
    right: bool,
    disagreement: f64,
}

/// A point of the curves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Samples learned.
    pub learned: u64,
    /// Share of the late samples that were answered rightly before they were learned.
    pub accuracy: Option<f64>,
    /// Mean loss of the training steps since the point before.
    pub loss: Option<f64>,
    /// Learning rate of the last step.
    pub rate: Option<f64>,
}

/// Losses since the last point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Losses {
    sum: f64,
    count: u64,
    rate: Option<f64>,
}

/// Everything that is counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Counts by class.
    pub classes: BTreeMap<String, ClassTally>,
    /// Samples answered before they were learned.
    pub answered: u64,
    /// Those answered rightly.
    pub right: u64,
    /// Loss of the last training step.
    pub loss: Option<f64>,
    /// Its learning rate.
    pub rate: Option<f64>,
    /// The curves.
    pub curve: Vec<Point>,
    late: VecDeque<Met>,
    losses: Losses,
    stride: u64,
}

impl Tally {
    /// A sample is about to be learned, and this was answered; nothing before the first class is known.
    pub fn met(&mut self, label: &str, answer: Option<&Prediction>) {
        let class = self.classes.entry(label.to_owned()).or_default();
        class.learned += 1;
        let Some(answer) = answer else { return };
        let right = matches!(&answer.label, dpcl::Label::Name(name) if name == label);
        class.answered += 1;
        class.right += u64::from(right);
        self.answered += 1;
        self.right += u64::from(right);
        self.late.push_back(Met { right, disagreement: answer.disagreement });
        if self.late.len() > LATE {
            self.late.pop_front();
        }
    }

    /// It was learned as sample number `learned`.
    pub fn learned(&mut self, learned: u64, observation: &Observation) {
        for step in &observation.steps {
            self.losses.sum += step.loss;
            self.losses.count += 1;
            self.losses.rate = Some(step.rate);
            (self.loss, self.rate) = (Some(step.loss), Some(step.rate));
        }
        if learned.is_multiple_of(self.stride.max(1)) {
            self.point(learned);
        }
    }

    fn point(&mut self, learned: u64) {
        let Losses { sum, count, rate } = std::mem::take(&mut self.losses);
        let loss = (count > 0).then(|| sum / count as f64);
        self.curve.push(Point { learned, accuracy: self.late_accuracy(), loss, rate });
        if self.curve.len() >= POINTS {
            self.stride = self.stride.max(1) * 2;
            let stride = self.stride;
            self.curve.retain(|point| point.learned.is_multiple_of(stride));
        }
    }

    /// Share of all samples that were answered rightly before they were learned.
    pub fn accuracy(&self) -> Option<f64> {
        (self.answered > 0).then(|| self.right as f64 / self.answered as f64)
    }

    /// The same of the last ones.
    pub fn late_accuracy(&self) -> Option<f64> {
        let right = self.late.iter().filter(|met| met.right).count();
        (!self.late.is_empty()).then(|| right as f64 / self.late.len() as f64)
    }

    /// How many of the last samples were disagreed on so much: equal bars from 0 to [`WIDEST`].
    pub fn disagreement(&self) -> [u64; BARS] {
        let mut bars = [0; BARS];
        for met in &self.late {
            let bar = (met.disagreement / WIDEST * BARS as f64) as usize;
            bars[bar.min(BARS - 1)] += 1;
        }
        bars
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dpcl::{Label, method::Step};

    fn answer(label: &str, disagreement: f64) -> Prediction {
        Prediction { label: Label::from(label), probabilities: Vec::new(), disagreement, entropy: 0.0 }
    }

    #[test]
    fn answers_before_learning_are_counted_by_class() {
        let mut tally = Tally::default();
        tally.met("cat", None);
        tally.met("cat", Some(&answer("cat", 0.02)));
        tally.met("dog", Some(&answer("cat", 7.0)));
        assert_eq!((tally.accuracy(), tally.late_accuracy()), (Some(0.5), Some(0.5)));
        assert_eq!(tally.classes["cat"], ClassTally { learned: 2, answered: 1, right: 1 });
        let bars = tally.disagreement();
        assert_eq!((bars[0], bars[BARS - 1], bars.iter().sum::<u64>()), (1, 1, 2));
    }

    #[test]
    fn a_curve_of_a_million_samples_stays_short() {
        let mut tally = Tally::default();
        let observation = Observation { new_class: false, steps: vec![Step { loss: 2.0, rate: 0.5 }] };
        for learned in 1..=1_000_000 {
            tally.learned(learned, &observation);
        }
        assert!((POINTS / 2 - 1..POINTS).contains(&tally.curve.len()), "{}", tally.curve.len());
        let last = tally.curve.last().unwrap();
        assert!(last.learned > 990_000 && last.loss == Some(2.0) && last.rate == Some(0.5), "{last:?}");
    }

    #[test]
    fn it_is_saved_exactly() {
        let mut tally = Tally::default();
        for number in 1..700 {
            tally.met("cat", Some(&answer("cat", 0.1 / f64::from(number))));
            let steps = vec![Step { loss: 1.0 / f64::from(number), rate: 0.1 }];
            tally.learned(number as u64, &Observation { new_class: false, steps });
        }
        let text = serde_json::to_string(&tally).unwrap();
        assert_eq!(serde_json::from_str::<Tally>(&text).unwrap(), tally);
    }
}
