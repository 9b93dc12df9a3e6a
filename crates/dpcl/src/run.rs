//! The one loop: predict, then learn, each sample once; evaluate when due; write down what happened.
//!
//! Only here are tasks known, for the evaluator and for methods that declare that they need task ends or ids.

mod advice;
mod bad_image;
mod elsewhere;
mod ending;
mod evaluating;
mod further;
mod outlook;
mod record;
mod standing;
mod telling;
mod watch;

pub use outlook::Outlook;
pub use record::Recording;
pub use standing::{Ending, Standing};
pub use watch::{Keep, Progress, Watch};

pub use crate::{checkpoint::Moment, folder::Mark};

use std::{
    path::Path,
    sync::{Arc, OnceLock, atomic::Ordering},
    time::Instant,
};

use dpcl_report::record::{EvaluationKind, Event, RunResult};

use evaluating::Judged;
use telling::last_progress;

use crate::{
    checkpoint::Checkpoint,
    config::{Config, Setup},
    data::{self, Ahead, Dataset, Opening, Split, Statistics},
    error::{Error, Result},
    eval::TestSet,
    folder::Trail,
    learner::{Learner, Shape},
    method::Answers,
    process,
    stream::{self, Credit, Parts, Schedule, Task},
};

/// A run ready to start: configuration complete, data open, stream laid out.
pub struct Run {
    setup: Setup,
    dataset: Dataset,
    parts: Parts,
    schedule: Schedule,
    /// Made when it is first asked for: it takes reading the set once.
    print: OnceLock<data::Print>,
    /// Test images from other data.
    elsewhere: Vec<Split>,
}

impl Run {
    /// Opens the data and lays out the stream. What the configuration leaves open gets the data set's own values.
    ///
    /// # Errors
    /// When the configuration cannot be run or the data cannot be found or read.
    pub fn open(config: &Config) -> Result<Self> {
        let asked = config.check()?;
        let given = &config.settings;
        let opening = Opening {
            size: Some(asked.size),
            fit: asked.fit,
            on_bad_image: asked.on_bad_image,
            statistics: given.mean.zip(given.std).map(|(mean, std)| Statistics { mean, std }),
        };
        let dataset = data::open_as(&asked.dataset, asked.data_dir.as_deref(), &opening)?;
        let mut dataset = data::watched(dataset);
        let mut config = config.clone();
        further::name_checksum(&mut config.settings)?;
        let setup = config.check_with(&dataset)?;
        let stream = setup.stream();
        let parts = stream::cut(&dataset.train.labels, dataset.classes.len(), &stream)?;
        let mut schedule = stream::schedule(&dataset, &parts, &stream, setup.seed)?;
        let elsewhere = elsewhere::open(&setup, &mut dataset, &mut schedule)?;
        Ok(Self { setup, dataset, parts, schedule, print: OnceLock::new(), elsewhere })
    }

    /// The configuration with every value settled.
    pub fn setup(&self) -> &Setup {
        &self.setup
    }

    /// The stream.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Which training samples may be learned from and which are held out.
    pub fn parts(&self) -> &Parts {
        &self.parts
    }

    /// The data set.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }

    /// Learns the whole stream.
    ///
    /// # Errors
    /// [`Error::Interrupted`] when stopped; when data cannot be read, training runs away or the watcher fails.
    pub fn execute(&self, watch: &mut Watch<'_>) -> Result<RunResult> {
        let learner = self.first_learner()?;
        let standing = Standing { before: (learner.samples(), learner.updates()), ..Standing::default() };
        self.execution(learner, standing, Vec::new(), Trail::default()).execute(watch)
    }

    /// Learns the rest of the stream, from where a checkpoint was taken; `log` is the text of the event log, at least as
    /// far as it was written then. Events before that are not told again.
    ///
    /// # Errors
    /// As for [`Run::execute`]; when the checkpoint, read from `path`, is not one of this run at an earlier time.
    pub fn resume(
        &self,
        checkpoint: Checkpoint,
        path: &Path,
        log: &[u8],
        watch: &mut Watch<'_>,
    ) -> Result<RunResult> {
        let standing = self.standing(&checkpoint, path)?;
        let Some((events, trail)) = standing.events(log) else {
            let problem = "does not begin with the events before the checkpoint";
            let hint = "restore it, or remove the `checkpoint` folder to start over";
            return Err(Error::bad_data(path, problem, hint));
        };
        let learner = checkpoint.learner().map_err(|error| Error::misfit(path, &error))?;
        // A second copy of every array is not needed while the rest is learned.
        drop(checkpoint);
        self.execution(learner, standing, events, trail).execute(watch)
    }

    fn execution(
        &self,
        learner: Learner,
        standing: Standing,
        events: Vec<Event>,
        trail: Trail,
    ) -> Execution<'_> {
        let test = TestSet::new(&self.dataset, &self.parts, &self.elsewhere, self.setup.on_bad_image);
        let planned = self.planned(&learner, standing.before.0);
        Execution {
            run: self,
            test,
            learner,
            events,
            trail,
            standing,
            planned,
            earlier: 0.0,
            judged: None,
            begun: Instant::now(),
            counted: dpcl_kernels::multiply_adds(),
        }
    }

    /// Training steps this run takes with a learner that had learned `before` samples before it.
    fn planned(&self, learner: &Learner, before: u64) -> u64 {
        let end = |samples: &mut u64, task: &Task| {
            *samples += task.samples.len() as u64;
            Some(*samples)
        };
        let tasks = self.schedule.tasks.iter().filter(|task| !task.samples.is_empty());
        let ends: Vec<u64> = tasks.scan(before, end).collect();
        let earned = |samples| Credit::earned(samples, self.setup.updates);
        learner
            .planned(&ends)
            .unwrap_or_else(|| earned(ends.last().copied().unwrap_or(before)) - earned(before))
    }

    /// What tells its data from others.
    fn print(&self) -> &data::Print {
        self.print.get_or_init(|| data::print(&self.dataset))
    }

    fn shape(&self) -> Shape {
        Shape { channels: 3, height: self.dataset.size, width: self.dataset.size }
    }
}

/// A run under way.
struct Execution<'a> {
    run: &'a Run,
    test: TestSet,
    learner: Learner,
    events: Vec<Event>,
    trail: Trail,
    /// As of the start of this process for times and memory, up to date in everything else.
    standing: Standing,
    /// Training steps expected in all.
    planned: u64,
    /// Share of the work that was done before this process.
    earlier: f64,
    begun: Instant,
    /// The thread's count of multiply-adds then.
    counted: u64,
    /// The last evaluation.
    judged: Option<Judged>,
}

/// Stream images decoded ahead of the learner.
const IMAGES_AHEAD: usize = 64;

/// Progress events in a whole run, about.
const PROGRESS_POINTS: u64 = 200;

impl Execution<'_> {
    fn execute(mut self, watch: &mut Watch<'_>) -> Result<RunResult> {
        let schedule = &self.run.schedule;
        let order = schedule.tasks.iter().flat_map(|task| task.samples.iter().copied());
        let order: Vec<usize> = order.skip(self.behind()).collect();
        let total = (self.behind() + order.len()) as u64;
        self.earlier = self.progress(total).share();
        let start = self.start();
        match self.events.first() {
            None => self.emit(start, watch)?,
            Some(begun) if *begun == start => {}
            Some(_) => {
                let problem = "does not give the stream that the run began with: its files have changed";
                return Err(Error::bad_key("dataset", problem));
            }
        }

        if self.standing.unjudged {
            self.evaluate(EvaluationKind::Period, watch)?;
        }
        let images = Ahead::new(Arc::clone(&self.run.dataset.train.images), order, IMAGES_AHEAD);
        let mut images = images.into_iter();
        let mut first = 0;
        for (number, task) in schedule.tasks.iter().enumerate() {
            let learned = self.behind().saturating_sub(first).min(task.samples.len());
            first += task.samples.len();
            for &position in &task.samples[learned..] {
                if watch.stop.load(Ordering::Relaxed) {
                    self.keep(Moment::Stopping(self.standing.samples), watch)?;
                    return Err(Error::Interrupted);
                }
                let label = self.run.dataset.train.labels[position];
                match images.next().ok_or(Error::Interrupted)? {
                    Ok(image) => self.sample(&image, label, number, total, watch)?,
                    Err(problem) => {
                        self.pass_over(position, problem, watch)?;
                        continue;
                    }
                }
                self.keep(Moment::Sample(self.standing.samples), watch)?;
            }
            if number >= self.standing.tasks {
                self.end_task(number, total, watch)?;
                self.standing.tasks = number + 1;
                self.keep(Moment::Sample(self.standing.samples), watch)?;
            }
        }
        self.refuse_nothing_learned(total)?;
        self.keep(Moment::End(self.standing.samples), watch)?;
        if let Some(glimpse) = self.glimpse() {
            self.emit(glimpse, watch)?;
        }
        Ok(self.result())
    }

    /// One stream sample: predict if asked, learn, report, evaluate if due.
    fn sample(
        &mut self,
        image: &data::Image,
        class: usize,
        task: usize,
        total: u64,
        watch: &mut Watch<'_>,
    ) -> Result<()> {
        if self.run.setup.online {
            self.predict_first(image, class).map_err(|error| self.explain(error))?;
        }
        let observation = self.learner.observe_in(task, image, class).map_err(|error| self.explain(error))?;
        self.standing.samples += 1;
        let samples = self.standing.samples;
        if observation.new_class {
            self.emit(Event::NewClass { samples, class }, watch)?;
        }
        self.standing.unreported.extend(observation.steps);
        if samples.is_multiple_of((total / PROGRESS_POINTS).max(1)) {
            self.report_steps(watch)?;
        }
        let period = self.run.setup.eval_period;
        if period > 0 && samples.is_multiple_of(period) && self.learner.answers() != Answers::End {
            self.standing.unjudged = true;
            self.evaluate(EvaluationKind::Period, watch)?;
        }
        self.tell(total, watch);
        Ok(())
    }

    fn tell(&self, total: u64, watch: &mut Watch<'_>) {
        (watch.progress)(&self.progress(total));
    }

    fn progress(&self, total: u64) -> Progress {
        let last = self.standing.unreported.last().copied().or_else(|| last_progress(&self.events));
        Progress {
            samples: self.standing.samples,
            total,
            updates: self.updates(),
            planned: self.planned,
            earlier: self.earlier,
            loss: last.map(|step| step.loss),
            rate: last.map(|step| step.rate),
            accuracy: self.standing.accuracy,
        }
    }

    /// Offers a checkpoint of this moment.
    fn keep(&mut self, moment: Moment, watch: &mut Watch<'_>) -> Result<()> {
        let snapshot = || {
            let mut standing = self.standing.clone();
            standing.log = self.trail.mark();
            standing.data = Some(self.run.print().clone());
            standing.seconds += self.begun.elapsed().as_secs_f64();
            standing.multiply_adds += dpcl_kernels::multiply_adds() - self.counted;
            standing.peak_memory_bytes = standing.peak_memory_bytes.max(process::peak_memory_bytes());
            let standing = serde_json::to_value(standing).expect("a standing is plain data with string keys");
            Checkpoint {
                config: self.run.setup.config(),
                classes: self.run.dataset.classes.clone(),
                run: Some(standing),
                ..Checkpoint::of(&self.learner)
            }
        };
        (watch.keep)(moment, self.learner.updates(), &snapshot)
    }

    /// Training steps taken by this run.
    fn updates(&self) -> u64 {
        self.learner.updates().saturating_sub(self.standing.before.1)
    }

    fn end_task(&mut self, task: usize, total: u64, watch: &mut Watch<'_>) -> Result<()> {
        self.announce(task, total, watch)?;
        let last = task + 1 == self.run.schedule.tasks.len();
        if last || self.learner.answers() != Answers::End {
            self.evaluate(EvaluationKind::TaskEnd(task), watch)?;
        }
        self.standing.ending = Ending::NotYet;
        if let Some(memory) = self.learner.memory() {
            let slots = memory
                .histogram()
                .into_iter()
                .enumerate()
                .filter_map(|(class, slots)| Some((self.class(class)?, slots)))
                .collect();
            self.emit(Event::Memory { samples: self.standing.samples, slots }, watch)?;
        }
        if self.run.setup.online {
            let (samples, correct) = self.standing.online;
            self.emit(Event::Online { samples, correct }, watch)?;
        }
        Ok(())
    }

    fn report_steps(&mut self, watch: &mut Watch<'_>) -> Result<()> {
        let steps = std::mem::take(&mut self.standing.unreported);
        let Some(last) = steps.last() else { return Ok(()) };
        let event = Event::Progress {
            samples: self.standing.samples,
            updates: self.updates(),
            loss: steps.iter().map(|step| step.loss).sum::<f64>() / steps.len() as f64,
            rate: last.rate,
            counters: self.learner.counters(),
        };
        self.emit(event, watch)
    }

    fn emit(&mut self, event: Event, watch: &mut Watch<'_>) -> Result<()> {
        (watch.event)(&event)?;
        self.trail.add(event.line().as_bytes());
        self.events.push(event);
        Ok(())
    }
}
