//! What happens at the end of a task before it is evaluated: methods hear of it, if they are of that kind, and do what
//! they have put off until then.

use std::sync::atomic::Ordering;

use dpcl_report::record::Event;

use super::{Ending, Execution, Moment, Watch};
use crate::error::{Error, Result};

/// Steps put off to a task end that share one progress event.
const UNREPORTED_STEPS: usize = 640;

impl Execution<'_> {
    /// Lets the method take the steps it has put off, in slices between which it can be watched, kept and stopped.
    fn catch_up(&mut self, total: u64, watch: &mut Watch<'_>) -> Result<()> {
        loop {
            if watch.stop.load(Ordering::Relaxed) {
                self.keep(Moment::Stopping(self.standing.samples), watch)?;
                return Err(Error::Interrupted);
            }
            let steps = self.learner.catch_up().map_err(|error| self.explain(error))?;
            if steps.is_empty() {
                return self.report_steps(watch);
            }
            self.standing.unreported.extend(steps);
            self.tell(total, watch);
            if self.standing.unreported.len() >= UNREPORTED_STEPS {
                self.report_steps(watch)?;
            }
            self.keep(Moment::Sample(self.standing.samples), watch)?;
        }
    }

    /// Announces the end of a task, and after the last one that of the stream, and lets the method do what it has put
    /// off until then. A run that was stopped on the way goes on where it was.
    pub(super) fn announce(&mut self, task: usize, total: u64, watch: &mut Watch<'_>) -> Result<()> {
        if self.standing.ending == Ending::NotYet {
            self.report_steps(watch)?;
            self.emit(Event::TaskEnd { task, samples: self.standing.samples }, watch)?;
            // Nothing was learned in a task that is only tested, so no method hears of its end.
            if !self.run.schedule.tasks[task].samples.is_empty() {
                self.learner.announce_task_end().map_err(|error| self.explain(error))?;
            }
            self.standing.ending = Ending::Task;
        }
        if self.standing.ending == Ending::Task {
            self.catch_up(total, watch)?;
            if task + 1 == self.run.schedule.tasks.len() {
                self.learner.announce_end().map_err(|error| self.explain(error))?;
            }
            self.standing.ending = Ending::Stream;
        }
        if self.standing.ending == Ending::Stream {
            self.catch_up(total, watch)?;
            self.standing.ending = Ending::Evaluation;
        }
        Ok(())
    }
}
