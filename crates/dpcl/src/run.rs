//! The one loop: predict, then learn, each sample once; evaluate when due; write down what happened.
//!
//! Only here are tasks known, and only for the evaluator and for methods that declare that they need task ends.

mod bad_image;

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use dpcl_report::{
    metrics::{accuracy, metrics},
    record::{BadImages, ClassCount, EvaluationKind, Event, FORMAT, RunResult},
};

use crate::{
    config::Config,
    data::{self, Ahead, Dataset},
    error::{Error, Result},
    eval::TestSet,
    learner::{Label, Learner, Shape},
    memory::Memory,
    methods::{Knowledge, Step},
    process,
    stream::{self, Parts, Schedule},
};

/// Where a run stands, for people watching.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Progress {
    /// Stream samples seen.
    pub samples: u64,
    /// Stream samples in all.
    pub total: u64,
    /// Training steps taken.
    pub updates: u64,
    /// Loss of the last step.
    pub loss: Option<f64>,
    /// Learning rate of the last step.
    pub rate: Option<f64>,
    /// Accuracy on the classes met, at the last evaluation.
    pub accuracy: Option<f64>,
}

/// Who watches a run and can stop it.
pub struct Watch<'a> {
    /// Called with every event, in order; what it returns ends the run if it is an error.
    pub event: &'a mut dyn FnMut(&Event) -> Result<()>,
    /// Called after every sample and evaluation.
    pub progress: &'a mut dyn FnMut(&Progress),
    /// Set from elsewhere to stop between two samples.
    pub stop: &'a AtomicBool,
}

/// A run ready to start: configuration complete, data open, stream laid out.
pub struct Run {
    config: Config,
    dataset: Dataset,
    parts: Parts,
    schedule: Schedule,
}

impl Run {
    /// Opens the data and lays out the stream. The resolved configuration gets the data set's own values for what it
    /// leaves open.
    ///
    /// # Errors
    /// When the configuration cannot be run or the data cannot be found or read.
    pub fn open(config: &Config) -> Result<Self> {
        let mut config = config.resolve()?;
        let settings = &mut config.settings;
        let (directory, size) = (settings.data_dir.as_deref(), settings.size);
        let dataset = data::open_with(&settings.dataset, directory, size, settings.on_bad_image)?;
        settings.size = Some(dataset.size);
        settings.mean.get_or_insert(dataset.mean);
        settings.std.get_or_insert(dataset.std);
        settings.autoaugment.get_or_insert(dataset.policy);
        settings.pad_crop.get_or_insert(dataset.padding);
        let stream = settings.stream();
        let parts = stream::cut(&dataset.train.labels, dataset.classes.len(), &stream)?;
        let schedule = stream::schedule(&dataset, &parts, &stream, settings.seed)?;
        Ok(Self { config, dataset, parts, schedule })
    }

    /// The configuration with every value named.
    pub fn config(&self) -> &Config {
        &self.config
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
        let size = self.dataset.size;
        let shape = Shape { channels: 3, height: size, width: size };
        let learner = Learner::new(&self.config, shape)?;
        Execution {
            run: self,
            test: TestSet::new(&self.dataset, &self.parts, self.config.settings.on_bad_image),
            learner,
            events: Vec::new(),
            unreported: Vec::new(),
            online: (0, 0),
            accuracy: None,
            evaluating: Duration::ZERO,
        }
        .execute(watch)
    }
}

/// A run under way.
struct Execution<'a> {
    run: &'a Run,
    test: TestSet,
    learner: Learner,
    events: Vec<Event>,
    /// Steps since the last progress event.
    unreported: Vec<Step>,
    /// Stream samples predicted before they were learned, and how many rightly.
    online: (u64, u64),
    accuracy: Option<f64>,
    evaluating: Duration,
}

/// Stream images decoded ahead of the learner.
const IMAGES_AHEAD: usize = 64;

/// Progress events in a whole run, about.
const PROGRESS_POINTS: u64 = 200;

impl Execution<'_> {
    fn execute(mut self, watch: &mut Watch<'_>) -> Result<RunResult> {
        let begin = Instant::now();
        let schedule = &self.run.schedule;
        let order: Vec<usize> = schedule.tasks.iter().flat_map(|task| task.samples.iter().copied()).collect();
        let total = order.len() as u64;
        self.emit(self.start(), watch)?;

        let images = Ahead::new(Arc::clone(&self.run.dataset.train.images), order, IMAGES_AHEAD);
        let mut images = images.into_iter();
        for (number, task) in schedule.tasks.iter().enumerate() {
            for &position in &task.samples {
                match images.next().ok_or(Error::Interrupted)? {
                    Ok(image) => {
                        self.sample(&image, self.run.dataset.train.labels[position], total, watch)?;
                    }
                    Err(problem) => self.pass_over(position, problem, watch)?,
                }
            }
            self.end_task(number, watch)?;
        }
        self.refuse_nothing_learned(total)?;
        if let Some(glimpse) = self.glimpse() {
            self.emit(glimpse, watch)?;
        }
        Ok(self.result(begin.elapsed()))
    }

    /// One stream sample: predict if asked, learn, report, evaluate if due.
    fn sample(&mut self, image: &data::Image, class: usize, total: u64, watch: &mut Watch<'_>) -> Result<()> {
        if watch.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        if self.run.config.settings.online {
            self.predict_first(image, class)?;
        }
        let observation = self.learner.observe(image, class)?;
        let samples = self.learner.samples();
        if observation.new_class {
            self.emit(Event::NewClass { samples, class }, watch)?;
        }
        self.unreported.extend(observation.steps);
        if samples.is_multiple_of((total / PROGRESS_POINTS).max(1)) {
            self.report_steps(watch)?;
        }
        let period = self.run.config.settings.eval_period.unwrap_or(0);
        if period > 0 && samples.is_multiple_of(period) {
            self.evaluate(EvaluationKind::Period, watch)?;
        }
        let last = self.unreported.last().copied().or_else(|| last_progress(&self.events));
        (watch.progress)(&Progress {
            samples,
            total,
            updates: self.learner.updates(),
            loss: last.map(|step| step.loss),
            rate: last.map(|step| step.rate),
            accuracy: self.accuracy,
        });
        Ok(())
    }

    fn end_task(&mut self, task: usize, watch: &mut Watch<'_>) -> Result<()> {
        self.report_steps(watch)?;
        let samples = self.learner.samples();
        self.emit(Event::TaskEnd { task, samples }, watch)?;
        self.learner.task_end()?;
        self.evaluate(EvaluationKind::TaskEnd(task), watch)?;
        if let Some(memory) = self.learner.memory() {
            let slots = memory
                .histogram()
                .into_iter()
                .enumerate()
                .map(|(class, slots)| (self.class(class), slots))
                .collect();
            self.emit(Event::Memory { samples, slots }, watch)?;
        }
        if self.run.config.settings.online {
            let (samples, correct) = self.online;
            self.emit(Event::Online { samples, correct }, watch)?;
        }
        Ok(())
    }

    fn predict_first(&mut self, image: &data::Image, class: usize) -> Result<()> {
        let right = match self.learner.predict(image) {
            Ok(prediction) => prediction.label == class.into(),
            Err(Error::NoClassYet) => false,
            Err(error) => return Err(error),
        };
        self.online = (self.online.0 + 1, self.online.1 + u64::from(right));
        Ok(())
    }

    fn report_steps(&mut self, watch: &mut Watch<'_>) -> Result<()> {
        let Some(last) = self.unreported.last().copied() else { return Ok(()) };
        let loss = self.unreported.iter().map(|step| step.loss).sum::<f64>() / self.unreported.len() as f64;
        self.unreported.clear();
        let event = Event::Progress {
            samples: self.learner.samples(),
            updates: self.learner.updates(),
            loss,
            rate: last.rate,
            counters: self.learner.counters(),
        };
        self.emit(event, watch)
    }

    fn evaluate(&mut self, kind: EvaluationKind, watch: &mut Watch<'_>) -> Result<()> {
        let begin = Instant::now();
        let classes = match self.events.last() {
            // A task may end where the period comes round: the same learner gives the same answers.
            Some(Event::TaskEnd { .. }) if self.learner.knowledge() == Knowledge::None => self.judged_now(),
            _ => None,
        };
        let classes = match classes {
            Some(classes) => classes,
            None => {
                let answers = self.test.evaluate(&self.learner)?;
                self.note_unread(&answers.unread, watch)?;
                answers.classes
            }
        };
        self.evaluating += begin.elapsed();
        self.accuracy = accuracy(&classes);
        let (samples, updates) = (self.learner.samples(), self.learner.updates());
        self.emit(Event::Evaluation { samples, updates, kind, classes }, watch)
    }

    /// The counts of an evaluation made since the last sample.
    fn judged_now(&self) -> Option<Vec<ClassCount>> {
        let now = self.learner.samples();
        self.events.iter().rev().find_map(|event| match event {
            Event::Evaluation { samples, classes, .. } if *samples == now => Some(classes.clone()),
            _ => None,
        })
    }

    fn emit(&mut self, event: Event, watch: &mut Watch<'_>) -> Result<()> {
        (watch.event)(&event)?;
        self.events.push(event);
        Ok(())
    }

    fn start(&self) -> Event {
        let tasks = &self.run.schedule.tasks;
        Event::Start {
            format: FORMAT,
            classes: self.run.dataset.classes.clone(),
            task_classes: tasks.iter().map(|task| task.classes.clone()).collect(),
            task_samples: tasks.iter().map(|task| task.samples.len()).collect(),
        }
    }

    /// A contact sheet of up to ten stored images of up to ten classes.
    fn glimpse(&self) -> Option<Event> {
        const PER_CLASS: usize = 10;
        let mut rows: Vec<Vec<&data::Image>> = vec![Vec::new(); self.learner.labels().len().min(PER_CLASS)];
        for sample in self.learner.memory().into_iter().flat_map(Memory::slots) {
            if let Some(row) = rows.get_mut(sample.class)
                && row.len() < PER_CLASS
            {
                row.push(&sample.image);
            }
        }
        let images: Vec<data::Image> = rows.concat().into_iter().cloned().collect();
        if images.is_empty() {
            return None;
        }
        let png = data::png(&data::tile(&images, PER_CLASS));
        Some(Event::Glimpse { png: BASE64_STANDARD.encode(png) })
    }

    fn class(&self, met: usize) -> usize {
        match &self.learner.labels()[met] {
            Label::Number(number) => *number as usize,
            Label::Name(_) => met,
        }
    }

    fn result(&self, elapsed: Duration) -> RunResult {
        let settings = &self.run.config.settings;
        RunResult {
            format: FORMAT,
            method: settings.method.clone(),
            label: settings.label.clone().unwrap_or_else(|| settings.method.clone()),
            dataset: self.run.dataset.name.clone(),
            scenario: settings.scenario.name().to_owned(),
            model: settings.model.clone(),
            seed: settings.seed,
            metrics: metrics(&self.events),
            updates: self.learner.updates(),
            samples: self.learner.samples(),
            bad_images: BadImages::of(&self.events),
            train_seconds: (elapsed - self.evaluating).as_secs_f64(),
            eval_seconds: self.evaluating.as_secs_f64(),
            peak_memory_bytes: process::peak_memory_bytes(),
            isa: dpcl_kernels::isa_name().to_owned(),
            threads: process::threads(settings.threads),
            knowledge: self.learner.knowledge().name().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

fn last_progress(events: &[Event]) -> Option<Step> {
    events.iter().rev().find_map(|event| match event {
        Event::Progress { loss, rate, .. } => Some(Step { loss: *loss, rate: *rate }),
        _ => None,
    })
}
