//! Answers that are judged: before a sample is learned, if asked for, and when an evaluation is due.

use std::time::Instant;

use dpcl_report::{
    metrics::accuracy,
    record::{EvaluationKind, Event},
    uncertainty::summarise,
};

use super::{Execution, Moment, Watch};
use crate::{
    data,
    error::{Error, Result},
    eval::Judgement,
    method::Knowledge,
};

/// What an evaluation found, and of which learner.
pub(super) struct Judged {
    /// Samples it had seen.
    samples: u64,
    judgement: Judgement,
    /// The same of the weights that learn, where their average answers.
    unaveraged: Option<Judgement>,
}

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

    /// Judges the learner on the test images; one that is told task ids with them as well. A run that is stopped
    /// meanwhile keeps the learner and makes the whole evaluation when it goes on.
    pub(super) fn evaluate(&mut self, kind: EvaluationKind, watch: &mut Watch<'_>) -> Result<()> {
        match self.judge(kind, watch).map_err(|error| self.explain(error)) {
            Err(Error::Interrupted) => {
                self.keep(Moment::Stopping(self.standing.samples), watch)?;
                Err(Error::Interrupted)
            }
            judged => judged,
        }
    }

    fn judge(&mut self, kind: EvaluationKind, watch: &mut Watch<'_>) -> Result<()> {
        self.learner.check_finite()?;
        let begin = Instant::now();
        let (samples, updates) = (self.standing.samples, self.updates());
        let Judged { judgement, unaveraged, .. } = match self.judged.take() {
            // A task may end where the period comes round: the same learner gives the same answers.
            Some(judged) if judged.samples == samples && self.learner.knowledge() == Knowledge::None => {
                judged
            }
            _ => {
                let judgement = self.test.evaluate(&self.learner, watch.stop)?;
                let unaveraged = self.test.evaluate_unaveraged(&self.learner, watch.stop)?;
                self.note_unread(&judgement.unread, watch)?;
                Judged { samples, judgement, unaveraged }
            }
        };
        let aware = match self.learner.knowledge() {
            Knowledge::TaskIds => {
                let tasks = &self.run.schedule.tasks;
                Some(self.test.evaluate_in_tasks(&self.learner, tasks, watch.stop)?)
            }
            Knowledge::None | Knowledge::TaskEnds => None,
        };
        self.standing.evaluating += begin.elapsed().as_secs_f64();
        self.standing.accuracy = accuracy(&judgement.classes);
        let classes = judgement.classes.clone();
        self.emit(Event::Evaluation { samples, updates, kind, classes }, watch)?;
        if let Some(classes) = aware {
            self.emit(Event::TaskAware { samples, kind, classes }, watch)?;
        }
        let at_task_end = matches!(kind, EvaluationKind::TaskEnd(_));
        if at_task_end {
            self.emit(Event::Uncertainty(summarise(samples, &judgement.answers)), watch)?;
        }
        if let Some(Judgement { classes, answers, .. }) = &unaveraged {
            let uncertainty = at_task_end.then(|| summarise(samples, answers));
            let classes = classes.clone();
            self.emit(Event::Unaveraged { samples, updates, kind, classes, uncertainty }, watch)?;
        }
        self.judged = Some(Judged { samples, judgement, unaveraged });
        self.standing.unjudged = false;
        Ok(())
    }
}
