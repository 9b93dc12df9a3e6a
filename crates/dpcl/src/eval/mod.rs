//! How well it answers: right answers per class on test images of the classes met so far, and how sure each was.
//!
//! Evaluation reads a learner and changes nothing in it. Metrics are computed from these counts by the record's
//! readers, never here.

use std::sync::Arc;

use dpcl_report::{record::ClassCount, uncertainty::Answer};

use crate::{
    data::{Ahead, Dataset, ImageSource, OnBadImage},
    error::{Error, Result},
    learner::Learner,
    stream::Parts,
};

/// Test images by class.
pub struct TestSet {
    images: Arc<dyn ImageSource>,
    positions: Vec<Vec<usize>>,
    on_bad_image: OnBadImage,
}

/// What an evaluation found.
#[derive(Clone)]
pub struct Judgement {
    /// Right answers of every class met, by class number; images that could not be read are in no total.
    pub classes: Vec<ClassCount>,
    /// Every answer, in order of the classes' arrival and then of the test images.
    pub answers: Vec<Answer>,
    /// Positions of the test images that could not be read.
    pub unread: Vec<usize>,
}

/// Images answered at once.
const ROWS: usize = 128;

impl TestSet {
    /// The official test images, or the training images held out from the stream.
    pub fn new(dataset: &Dataset, parts: &Parts, on_bad_image: OnBadImage) -> Self {
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
        Self { images, positions, on_bad_image }
    }

    /// Judges answers to the test images of every class the learner has met.
    ///
    /// # Errors
    /// When a test image cannot be read, unless such are to be skipped.
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
        let mut unread = Vec::new();
        for chunk in queue.chunks(ROWS) {
            let (mut images, mut rows) = (Vec::with_capacity(chunk.len()), Vec::with_capacity(chunk.len()));
            for (&(row, position), image) in chunk.iter().zip(decoded.by_ref()) {
                match image {
                    Ok(image) => {
                        images.push(image);
                        rows.push(row);
                    }
                    Err(problem) if self.on_bad_image == OnBadImage::Fail => {
                        return Err(self.bad_image(position, problem));
                    }
                    Err(_) => {
                        counts[row].total -= 1;
                        unread.push(position);
                    }
                }
            }
            for (scores, row) in learner.scores(&images)?.iter().zip(rows) {
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
        unread.sort_unstable();
        Ok(Judgement { classes: counts, answers, unread })
    }

    /// What a test image is called inside its set, if it is a file.
    pub fn file_name(&self, position: usize) -> Option<String> {
        self.images.file_name(position)
    }

    fn bad_image(&self, position: usize, problem: Error) -> Error {
        Error::BadImage { what: format!("test image {position}"), source: Box::new(problem) }
    }
}
