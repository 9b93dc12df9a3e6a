//! Samples that wait for their batch, those of one task at a time: for methods that learn every task by itself.
//!
//! What waits when a task ends is learned then, before the task is evaluated; if nobody says that it ended, before the
//! first sample of another.

use crate::{
    config::Setup,
    error::{Error, Result},
    memory::{Sample, Samples},
    method::{Arrival, Core, Step},
    state::{Persist, State},
    stream::{Arrivals, Due},
};

/// A method that learns every task by itself. It says what it does with samples that are due; when they are is decided
/// here.
pub trait LearnsByTask {
    /// Samples that wait.
    fn waiting(&mut self) -> &mut ByTask;

    /// A sample of this class and task has come; nothing of another task waits any more.
    fn meet(&mut self, core: &mut Core, task: usize, class: usize);

    /// Takes the training steps that samples of the present task have earned.
    ///
    /// # Errors
    /// When a step cannot be taken, such as on a loss that is not finite.
    fn learn(&mut self, core: &mut Core, due: &Due<Sample>, steps: &mut Vec<Step>) -> Result<()>;

    /// The present task has ended, and all of it has been learned.
    fn settle(&mut self, _core: &mut Core) {}

    /// Takes in one sample; returns the steps it set off.
    ///
    /// # Errors
    /// As for `learn`.
    fn take_in(&mut self, core: &mut Core, Arrival { sample, task }: Arrival) -> Result<Vec<Step>> {
        let task = task.expect("a learner tells the task of every sample to methods that want it");
        let mut steps = Vec::new();
        if let Some(due) = self.waiting().turn_to(task) {
            self.learn(core, &due, &mut steps)?;
        }
        self.meet(core, task, sample.class);
        if let Some(due) = self.waiting().push(sample) {
            self.learn(core, &due, &mut steps)?;
        }
        Ok(steps)
    }

    /// Learns what waits.
    ///
    /// # Errors
    /// As for `learn`.
    fn learn_waiting(&mut self, core: &mut Core) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        if let Some(due) = self.waiting().flush() {
            self.learn(core, &due, &mut steps)?;
        }
        Ok(steps)
    }

    /// Learns what waited when the task ended, if one has since this was asked last.
    ///
    /// # Errors
    /// As for `learn`.
    fn learn_ended(&mut self, core: &mut Core) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        if let Some(due) = self.waiting().ended() {
            if let Some(due) = due {
                self.learn(core, &due, &mut steps)?;
            }
            self.settle(core);
        }
        Ok(steps)
    }
}

/// Waiting samples of one task.
pub struct ByTask {
    arrivals: Arrivals<Sample>,
    /// Whose samples wait.
    task: Option<usize>,
    /// Whether that task has ended and what waits is still to be learned.
    over: bool,
}

impl ByTask {
    /// None yet. As many make a batch as everywhere in the stream's half of one.
    pub fn new(setup: &Setup) -> Self {
        Self { arrivals: Arrivals::new(setup.batch / 2, setup.updates), task: None, over: false }
    }

    /// A sample of `task` comes next: what waits of another is due before it.
    pub fn turn_to(&mut self, task: usize) -> Option<Due<Sample>> {
        let same = self.task == Some(task);
        self.task = Some(task);
        if same { None } else { self.flush() }
    }

    /// Takes a sample in; hands all out when they are enough.
    pub fn push(&mut self, sample: Sample) -> Option<Due<Sample>> {
        self.arrivals.push(sample)
    }

    /// Hands out what waits.
    pub fn flush(&mut self) -> Option<Due<Sample>> {
        self.arrivals.flush()
    }

    /// The task has ended: what waits is due when it is asked for.
    pub fn end(&mut self) {
        self.over = true;
    }

    /// Whether a task has ended since this was asked last, and what waited when it did.
    pub fn ended(&mut self) -> Option<Option<Due<Sample>>> {
        std::mem::take(&mut self.over).then(|| self.flush())
    }

    /// Samples that wait, and whose task they are of.
    pub fn waiting(&self) -> (Option<usize>, &[Sample]) {
        (self.task, self.arrivals.items())
    }
}

impl Persist for ByTask {
    fn save(&self, state: &mut State) {
        Samples::from(self.arrivals.items()).save(state);
        state.put("credit", &self.arrivals.credit());
        state.put("task", &self.task);
        state.put("over", &self.over);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        let mut samples = Samples::default();
        samples.load(state)?;
        let credit = state.get("credit")?;
        if !self.arrivals.could_stand_at(samples.len(), credit) {
            let problem = "is not what its samples earn with this `batch` and these `updates`".into();
            return Err(Error::BadState { key: "credit".into(), problem });
        }
        self.task = state.get("task")?;
        if self.task.is_none() && !samples.is_empty() {
            let problem = "is none, and samples of it wait".into();
            return Err(Error::BadState { key: "task".into(), problem });
        }
        self.over = state.get("over")?;
        self.arrivals.restore(samples.0, credit);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::Config, data::Image};

    fn sample(class: usize) -> Sample {
        Sample::new(Image { height: 1, width: 1, pixels: vec![0; 3].into() }, class)
    }

    fn waiting() -> ByTask {
        ByTask::new(&Config::from_toml("batch = 8\nupdates = 0.5").unwrap().check().unwrap())
    }

    fn classes(due: Option<Due<Sample>>) -> Option<(Vec<usize>, usize)> {
        due.map(|due| (due.items.iter().map(|sample| sample.class).collect(), due.updates))
    }

    #[test]
    fn samples_of_two_tasks_never_share_a_batch() {
        let mut by_task = waiting();
        for class in 0..3 {
            assert_eq!(classes(by_task.turn_to(0)), None);
            assert_eq!(classes(by_task.push(sample(class))), None);
        }
        assert_eq!(classes(by_task.turn_to(1)), Some((vec![0, 1, 2], 1)), "half a step is left over");
        for class in 3..6 {
            assert_eq!(classes(by_task.push(sample(class))), None);
        }
        assert_eq!(classes(by_task.push(sample(6))), Some((vec![3, 4, 5, 6], 2)));
        assert_eq!(classes(by_task.turn_to(0)), None, "nothing waits");
    }

    #[test]
    fn what_waits_at_a_task_end_is_due_once() {
        let mut by_task = waiting();
        by_task.turn_to(0);
        by_task.push(sample(0));
        assert!(by_task.ended().is_none());
        by_task.end();
        assert_eq!(by_task.ended().map(classes), Some(Some((vec![0], 0))));
        assert!(by_task.ended().is_none());
        by_task.end();
        assert_eq!(by_task.ended().map(classes), Some(None));
    }

    #[test]
    fn it_survives_saving_and_refuses_what_cannot_be() {
        let mut by_task = waiting();
        by_task.turn_to(2);
        by_task.push(sample(0));
        by_task.end();
        let mut state = State::default();
        by_task.save(&mut state);
        let mut again = waiting();
        again.load(&state).unwrap();
        assert_eq!(again.waiting(), by_task.waiting());
        assert_eq!(again.ended().map(classes), Some(Some((vec![0], 0))));

        let mut homeless = state.clone();
        homeless.put("task", &None::<usize>);
        assert!(waiting().load(&homeless).unwrap_err().to_string().contains("`task`"));
        let mut rich = state;
        rich.put("credit", &serde_json::json!({ "samples": 90, "updates": 0 }));
        assert!(waiting().load(&rich).unwrap_err().to_string().contains("`credit`"));
    }
}
