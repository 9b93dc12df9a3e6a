//! How well it answers: right answers per class on test images of the classes met so far, and how sure each was.
//!
//! Evaluation reads a learner and changes nothing in it. Metrics are computed from these counts by the record's
//! readers, never here.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use dpcl_report::{record::ClassCount, uncertainty::Answer};

use crate::{
    answers::Scores,
    data::{Ahead, Dataset, Image, ImageSource, Joined, OnBadImage, Split},
    error::{Error, Result},
    learner::{Label, Learner},
    stream::{Parts, Task},
};

/// Test images by class.
pub struct TestSet {
    images: Arc<dyn ImageSource>,
    positions: Vec<Vec<usize>>,
    on_bad_image: OnBadImage,
}

/// A class met, by the learner's number and the data set's.
#[derive(Clone, Copy)]
struct Known {
    met: usize,
    class: usize,
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

/// What answers for images.
type Answering<'a> = dyn Fn(&[Image]) -> Result<Vec<Scores>> + 'a;

/// Images answered at once.
const ROWS: usize = 128;

impl TestSet {
    /// The official test images, or the training images held out from the stream; after them further ones from elsewhere.
    pub fn new(dataset: &Dataset, parts: &Parts, elsewhere: &[Split], on_bad_image: OnBadImage) -> Self {
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
        if elsewhere.is_empty() {
            return Self { images, positions, on_bad_image };
        }
        let here = if parts.heldout().is_some() { &dataset.train } else { &dataset.test };
        let mut joined = Joined::default();
        joined.add(images, 0..here.labels.len());
        for Split { labels, images } in elsewhere {
            for (&label, position) in labels.iter().zip(joined.len()..) {
                positions[label].push(position);
            }
            joined.add(Arc::clone(images), 0..labels.len());
        }
        Self { images: Arc::new(joined), positions, on_bad_image }
    }

    /// Judges answers to the test images of every class the learner has met.
    ///
    /// # Errors
    /// When a test image cannot be read, unless such are to be skipped; [`Error::Interrupted`] when stopped.
    pub fn evaluate(&self, learner: &Learner, stop: &AtomicBool) -> Result<Judgement> {
        self.evaluate_answers(learner, &|images| learner.scores(images, None), stop)
    }

    /// The same when the weights that learn answer; `None` where these answer anyway.
    ///
    /// # Errors
    /// As for [`TestSet::evaluate`].
    pub fn evaluate_unaveraged(&self, learner: &Learner, stop: &AtomicBool) -> Result<Option<Judgement>> {
        let plain = learner.unaveraged();
        plain.map(|plain| self.evaluate_answers(learner, &|images| plain.scores(images), stop)).transpose()
    }

    fn evaluate_answers(
        &self,
        learner: &Learner,
        answer: &Answering<'_>,
        stop: &AtomicBool,
    ) -> Result<Judgement> {
        let mut judgement = self.judge(&self.known(learner), answer, stop)?;
        judgement.classes.sort_by_key(|count| count.class);
        judgement.unread.sort_unstable();
        Ok(judgement)
    }

    /// Right answers of every class met, by class number, when the learner is told the task of every image. A class
    /// belongs to the task that tests it; one whose task is not in the stream is asked about without.
    ///
    /// # Errors
    /// As for [`TestSet::evaluate`].
    pub fn evaluate_in_tasks(
        &self,
        learner: &Learner,
        tasks: &[Task],
        stop: &AtomicBool,
    ) -> Result<Vec<ClassCount>> {
        let known = self.known(learner);
        let mut counts = Vec::with_capacity(known.len());
        for (number, task) in tasks.iter().enumerate() {
            let of_task: Vec<Known> =
                known.iter().filter(|known| task.classes.contains(&known.class)).copied().collect();
            let answer = |images: &[Image]| learner.scores(images, Some(number));
            counts.extend(self.judge(&of_task, &answer, stop)?.classes);
        }
        let of_none = |known: &&Known| !tasks.iter().any(|task| task.classes.contains(&known.class));
        let strays: Vec<Known> = known.iter().filter(of_none).copied().collect();
        counts.extend(self.judge(&strays, &|images| learner.scores(images, None), stop)?.classes);
        counts.sort_by_key(|count| count.class);
        Ok(counts)
    }

    /// The classes met that have test images here; one brought along from other data has none.
    fn known(&self, learner: &Learner) -> Vec<Known> {
        let classes = learner.labels().iter().map(Label::number).enumerate();
        let here = classes.filter_map(|(met, class)| Some(Known { met, class: class? }));
        here.filter(|known| known.class < self.positions.len()).collect()
    }

    fn judge(&self, known: &[Known], answer: &Answering<'_>, stop: &AtomicBool) -> Result<Judgement> {
        let queue: Vec<(usize, usize)> = known
            .iter()
            .enumerate()
            .flat_map(|(row, known)| self.positions[known.class].iter().map(move |&position| (row, position)))
            .collect();
        let count = |known: &Known| {
            let total = self.positions[known.class].len() as u64;
            ClassCount { class: known.class, correct: 0, total }
        };
        let mut counts: Vec<ClassCount> = known.iter().map(count).collect();
        let mut answers = Vec::with_capacity(queue.len());
        let positions = queue.iter().map(|&(_, position)| position).collect();
        let mut decoded = Ahead::new(Arc::clone(&self.images), positions, ROWS);
        let (mut unread, mut problems) = (Vec::new(), Vec::new());
        for chunk in queue.chunks(ROWS) {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let (mut images, mut rows) = (Vec::with_capacity(chunk.len()), Vec::with_capacity(chunk.len()));
            for (&(row, position), image) in chunk.iter().zip(decoded.by_ref()) {
                match image {
                    Ok(image) => {
                        images.push(image);
                        rows.push(row);
                    }
                    Err(problem) => {
                        counts[row].total -= 1;
                        unread.push(position);
                        problems.push(problem);
                    }
                }
            }
            // Every bad file is named, so the others are looked at too, and need no answers.
            if self.on_bad_image == OnBadImage::Fail && !problems.is_empty() {
                continue;
            }
            for (scores, row) in answer(&images)?.iter().zip(rows) {
                let best = scores.best();
                let correct = best == known[row].met;
                counts[row].correct += u64::from(correct);
                answers.push(Answer {
                    correct,
                    confidence: f64::from(scores.probabilities[best]),
                    entropy: scores.entropy,
                    disagreement: scores.disagreement,
                });
            }
        }
        match problems.len() {
            found if found == 0 || self.on_bad_image == OnBadImage::Skip => {
                Ok(Judgement { classes: counts, answers, unread })
            }
            1 => Err(self.bad_image(unread[0], problems.remove(0))),
            _ => Err(Error::BadImages { problems: problems.iter().map(Error::whole).collect() }),
        }
    }

    /// What a test image is called inside its set, if it is a file.
    pub fn file_name(&self, position: usize) -> Option<String> {
        self.images.file_name(position)
    }

    fn bad_image(&self, position: usize, problem: Error) -> Error {
        Error::BadImage { what: format!("test image {position}"), source: Box::new(problem) }
    }
}
