//! How well it answers: right answers per class on test images of the classes met so far, and how sure each was.
//!
//! Evaluation reads a learner and changes nothing in it. Metrics are computed from these counts by the record's
//! readers, never here.

use std::sync::Arc;

use dpcl_report::{record::ClassCount, uncertainty::Answer};

use crate::{
    data::{Ahead, Dataset, Image, ImageSource},
    error::Result,
    learner::Learner,
    stream::Parts,
};

/// Test images by class.
pub struct TestSet {
    images: Arc<dyn ImageSource>,
    positions: Vec<Vec<usize>>,
}

/// What an evaluation found.
#[derive(Clone)]
pub struct Judgement {
    /// Right answers, by class number.
    pub classes: Vec<ClassCount>,
    /// Every answer, in order of the classes' arrival and then of the test images.
    pub answers: Vec<Answer>,
}

/// Images answered at once.
const ROWS: usize = 128;

impl TestSet {
    /// The official test images, or the training images held out from the stream.
    pub fn new(dataset: &Dataset, parts: &Parts) -> Self {
        let classes = dataset.classes.len();
        let mut positions = vec![Vec::new(); classes];
        let images = match parts.heldout() {
            Some(heldout) => {
                heldout.iter().for_each(|&position| positions[dataset.train.labels[position]].push(position));
                Arc::clone(&dataset.train.images)
            }
            None => {
                for (position, &label) in dataset.test.labels.iter().enumerate() {
                    positions[label].push(position);
                }
                Arc::clone(&dataset.test.images)
            }
        };
        Self { images, positions }
    }

    /// Judges answers to the test images of every class the learner has met.
    ///
    /// # Errors
    /// When a test image cannot be read.
    pub fn evaluate(&self, learner: &Learner) -> Result<Judgement> {
        // A class brought along from other data has no test images here.
        let known =
            learner.labels().iter().map(|label| label.number().filter(|&class| class < self.positions.len()));
        let known: Vec<(usize, usize)> =
            known.enumerate().filter_map(|(met, class)| Some((met, class?))).collect();
        let queue: Vec<(usize, usize)> = known
            .iter()
            .enumerate()
            .flat_map(|(row, &(_, class))| self.positions[class].iter().map(move |&position| (row, position)))
            .collect();
        let mut counts: Vec<ClassCount> = known
            .iter()
            .map(|&(_, class)| ClassCount { class, correct: 0, total: self.positions[class].len() as u64 })
            .collect();
        let mut answers = Vec::with_capacity(queue.len());
        let positions = queue.iter().map(|&(_, position)| position).collect();
        let mut decoded = Ahead::new(Arc::clone(&self.images), positions, ROWS);
        for chunk in queue.chunks(ROWS) {
            let images: Vec<Image> = decoded.by_ref().take(chunk.len()).collect::<Result<_>>()?;
            for (scores, &(row, _)) in learner.scores(&images)?.iter().zip(chunk) {
                let best = scores.best();
                let correct = best == known[row].0;
                counts[row].correct += u64::from(correct);
                answers.push(Answer {
                    correct,
                    confidence: f64::from(scores.probabilities[best]),
                    entropy: scores.entropy,
                    disagreement: scores.disagreement,
                });
            }
        }
        counts.sort_by_key(|count| count.class);
        Ok(Judgement { classes: counts, answers })
    }
}
