//! Answers that are judged: before a sample is learned, if asked for, and when an evaluation is due.

use std::time::Instant;

use dpcl_report::{
    metrics::accuracy,
    record::{EvaluationKind, Event},
    uncertainty::summarise,
};

use super::{Execution, Watch};
use crate::{
    data,
    error::{Error, Result},
    method::Knowledge,
};

impl Execution<'_> {
    /// Answers for a stream sample before it is learned; a method that is told task ids is not told this one.
    pub(super) fn predict_first(&mut self, image: &data::Image, class: usize) -> Result<()> {
        let right = match self.learner.predict(image) {
            Ok(prediction) => prediction.label == class.into(),
            Err(Error::NoClassYet) => false,
            Err(error) => return Err(error),
        };
        let (samples, correct) = self.standing.online;
        self.standing.online = (samples + 1, correct + u64::from(right));
        Ok(())
    }

    /// Judges the learner on the test images; one that is told task ids with them as well.
    pub(super) fn evaluate(&mut self, kind: EvaluationKind, watch: &mut Watch<'_>) -> Result<()> {
        let begin = Instant::now();
        let (samples, updates) = (self.standing.samples, self.updates());
        let judgement = match self.judged.take() {
            // A task may end where the period comes round: the same learner gives the same answers.
            Some((then, judgement)) if then == samples && self.learner.knowledge() == Knowledge::None => {
                judgement
            }
            _ => {
                let judgement = self.test.evaluate(&self.learner)?;
                self.note_unread(&judgement.unread, watch)?;
                judgement
            }
        };
        self.standing.evaluating += begin.elapsed().as_secs_f64();
        self.standing.accuracy = accuracy(&judgement.classes);
        let classes = judgement.classes.clone();
        self.emit(Event::Evaluation { samples, updates, kind, classes }, watch)?;
        if self.learner.knowledge() == Knowledge::TaskIds {
            let begin = Instant::now();
            let classes = self.test.evaluate_in_tasks(&self.learner, &self.run.schedule.tasks)?;
            self.standing.evaluating += begin.elapsed().as_secs_f64();
            self.emit(Event::TaskAware { samples, kind, classes }, watch)?;
        }
        if matches!(kind, EvaluationKind::TaskEnd(_)) {
            self.emit(Event::Uncertainty(summarise(samples, &judgement.answers)), watch)?;
        }
        self.judged = Some((samples, judgement));
        Ok(())
    }
}
