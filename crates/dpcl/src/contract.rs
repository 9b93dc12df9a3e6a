//! What every method promises, as checks that can be run on any of them, one's own included.
//!
//! [`check`] takes the keys that configure a method and puts it through small runs on the built-in images:
//!
//! - it beats chance, and takes the training steps that were foreseen;
//! - the same seed gives the same record, another seed another learner on another stream;
//! - it stays in its memory budget, and answers with probabilities;
//! - a saved learner goes on exactly as one that was never saved, and so does a run that was cut off anywhere;
//! - answering changes nothing, and evaluating more often does not change what is learned.
//!
//! ```no_run
//! dpcl::contract::check("method = 'er'").unwrap();
//! ```

mod cut;

use std::sync::atomic::AtomicBool;

use dpcl_report::record::{Event, RunResult, Uncertainty};

use crate::{
    config::Config,
    data::{self, Dataset, Image},
    error::Error,
    learner::{Learner, Observation, Shape},
    method::{Answers, Knowledge},
    methods,
    run::{Progress, Run, Watch},
};

/// A promise that a method does not keep.
#[derive(Debug, thiserror::Error)]
#[error("{method}: {promise}: {how}")]
pub struct Broken {
    /// Name of the method.
    pub method: String,
    /// What was promised.
    pub promise: &'static str,
    /// What was found instead.
    pub how: String,
}

/// What a check gives: nothing, or how a promise is broken.
type Kept = Result<(), String>;

/// Checks everything that a method promises; `keys` is TOML that names it and sets what of its own keys is not left to
/// the defaults.
///
/// # Errors
/// The first promise that is broken.
pub fn check(keys: &str) -> Result<(), Broken> {
    let subject = Subject::new(keys).map_err(|error| broken("", "can be configured", &error))?;
    let first = subject.record(&subject.config);
    let first = first.map_err(|how| broken(&subject.name, "a run comes to its end", &how))?;
    let promises: [(&'static str, &dyn Fn() -> Kept); 9] = [
        ("a run beats chance", &|| subject.beats_chance(&first)),
        ("the same seed gives the same record", &|| subject.repeats(&first)),
        ("another seed is another run", &|| subject.differs_with_the_seed()),
        ("the memory keeps to its budget", &|| subject.stays_in_its_budget()),
        ("a saved learner goes on exactly", &|| subject.resumes_exactly()),
        ("a run that was cut off leaves the same record", &|| subject.survives_cuts()),
        ("answering changes nothing", &|| subject.is_not_changed_by_answering()),
        ("evaluating more often does not change training", &|| subject.ignores_evaluation(&first)),
        ("probabilities are probabilities", &|| subject.answers_with_probabilities()),
    ];
    for (promise, kept) in promises {
        kept().map_err(|how| broken(&subject.name, promise, &how))?;
    }
    Ok(())
}

fn broken(method: &str, promise: &'static str, how: &dyn std::fmt::Display) -> Broken {
    Broken { method: method.to_owned(), promise, how: how.to_string() }
}

/// A method in a run that is small and still learns: four classes of the built-in images in two tasks.
struct Subject {
    name: String,
    answers: Answers,
    knowledge: Knowledge,
    config: Config,
}

/// A sample of the stream: image, class, task.
type Shown = (Image, usize, usize);

/// A run's events and result.
type Recorded = (Vec<Event>, RunResult);

/// The run's keys; one thread, for so small a network is faster with it.
const SMALL: &str = "classes = 4\ntasks = 2\nper_class = 32\nholdout = 20\nmodel = 'slim'\nwidth = 6\nbatch = 8\nmemory = 24\nupdates = 1.0\n\
                     eval_period = 32\nautoaugment = 'none'\nlr = 0.002\nthreads = 1";

/// Samples of its stream.
const SAMPLES: u64 = 128;

impl Subject {
    fn new(keys: &str) -> Result<Self, Error> {
        let read = |text: &str| {
            let table = text.parse::<toml::Table>();
            table.map_err(|error| Error::BadConfig { problem: error.message().to_owned() })
        };
        let (mut table, given) = (read(SMALL)?, read(keys)?);
        if let Some(key) =
            ["classes", "tasks", "per_class", "holdout"].into_iter().find(|key| given.contains_key(*key))
        {
            return Err(Error::bad_key(key, "says how long the stream is, which the checks know"));
        }
        table.extend(given);
        let config = Config::from_table(table)?;
        let info = methods::find(&config.settings.method)?;
        let name = config.settings.label.clone().unwrap_or_else(|| info.name.to_owned());
        Ok(Self { name, answers: info.answers, knowledge: info.knowledge, config })
    }

    fn record(&self, config: &Config) -> Result<Recorded, String> {
        let run = Run::open(config).map_err(told)?;
        let mut events = Vec::new();
        let mut event = |event: &Event| {
            events.push(event.clone());
            Ok(())
        };
        let (mut taken, mut planned) = (0, 0);
        let mut progress = |progress: &Progress| (taken, planned) = (progress.updates, progress.planned);
        let stop = AtomicBool::new(false);
        let mut watch =
            Watch { event: &mut event, progress: &mut progress, keep: &mut |_, _, _| Ok(()), stop: &stop };
        let result = run.execute(&mut watch).map_err(told)?;
        ensure(taken <= planned && 10 * taken > 9 * planned, || {
            format!("{taken} training steps were taken and {planned} foreseen")
        })?;
        Ok((events, result))
    }

    /// The stream's samples with their tasks, and the data set they come from.
    fn samples(&self) -> Result<(Dataset, Vec<Shown>), String> {
        let run = Run::open(&self.config).map_err(told)?;
        let dataset = data::open(&self.config.settings.dataset, None, None).map_err(told)?;
        let tasks = run.schedule().tasks.iter().enumerate();
        let order = tasks.flat_map(|(task, of)| of.samples.iter().map(move |&position| (position, task)));
        let sample = |(position, task): (usize, usize)| {
            let image = dataset.train.images.image(position)?;
            Ok((image, dataset.train.labels[position], task))
        };
        let samples = order.map(sample).collect::<Result<_, Error>>().map_err(told)?;
        Ok((dataset, samples))
    }

    fn learner(&self, config: &Config) -> Result<Learner, String> {
        Learner::new(config, Shape { channels: 3, height: 32, width: 32 }).map_err(told)
    }

    fn beats_chance(&self, (events, result): &Recorded) -> Kept {
        let chance = 0.25;
        let last = result.metrics.a_last.unwrap_or(0.0);
        ensure(last > chance + 0.05, || format!("{:.1} % right of four classes", 100.0 * last))?;
        same("samples of the stream", &result.samples, &SAMPLES)?;
        let before_the_end = self.answers != Answers::End;
        same("whether forgetting is measured", &result.metrics.fm.is_some(), &before_the_end)?;
        same("whether there is an any-time curve", &result.metrics.a_auc.is_some(), &before_the_end)?;
        let told_tasks = self.knowledge == Knowledge::TaskIds;
        same(
            "whether answers with task ids are judged",
            &result.metrics.acc_task_ids.is_some(),
            &told_tasks,
        )?;

        let summary = |event: &Event| match event {
            Event::Uncertainty(uncertainty) => Some(uncertainty.clone()),
            _ => None,
        };
        let summaries: Vec<Uncertainty> = events.iter().filter_map(summary).collect();
        same("summaries of how sure it was", &summaries.len(), &if before_the_end { 2 } else { 1 })?;
        let last_risk = summaries.last().and_then(|last| last.by_confidence.last().copied());
        let wrong = last_risk.map_or(0.0, |kept| 1.0 - kept.correct as f64 / kept.kept as f64);
        ensure((wrong - (1.0 - last)).abs() < 1e-12, || format!("{wrong} wrong of all answers, {last} right"))
    }

    fn repeats(&self, first: &Recorded) -> Kept {
        let again = self.record(&self.config)?;
        same_events(&first.0, &again.0)?;
        same("metrics", &first.1.metrics, &again.1.metrics)
    }

    /// Another seed orders the stream otherwise; and on one and the same stream it gives another network that learns
    /// other things.
    fn differs_with_the_seed(&self) -> Kept {
        let mut other = self.config.clone();
        other.settings.seed += 1;
        let order = |config: &Config| Run::open(config).map(|run| run.schedule().clone()).map_err(told);
        ensure(order(&self.config)? != order(&other)?, || "the stream is the same".into())?;

        let (_, samples) = self.samples()?;
        let (mut one, mut another) = (self.learner(&self.config)?, self.learner(&other)?);
        let weights = |learner: &Learner| learner.state().part("core.model.encoder").arrays;
        ensure(weights(&one) != weights(&another), || "the network begins the same".into())?;
        for (image, class, task) in &samples {
            one.observe_in(*task, image, *class).map_err(told)?;
            another.observe_in(*task, image, *class).map_err(told)?;
        }
        for learner in [&mut one, &mut another] {
            learner.task_end().and_then(|()| learner.finish()).map_err(told)?;
        }
        ensure(weights(&one) != weights(&another), || "the network ends the same".into())?;
        let slots = |learner: &Learner| learner.memory().map(|memory| memory.slots().to_vec());
        let chooses = one.memory().is_some_and(|memory| memory.capacity() > 0 && !memory.goes_by_order());
        ensure(!chooses || slots(&one) != slots(&another), || "the same samples are stored".into())
    }

    fn stays_in_its_budget(&self) -> Kept {
        let (_, samples) = self.samples()?;
        let mut learner = self.learner(&self.config)?;
        for (image, class, task) in &samples[..80] {
            learner.observe_in(*task, image, *class).map_err(told)?;
            let Some(memory) = learner.memory() else { continue };
            let stored = memory.slots().len();
            let slots = self.config.settings.memory.unwrap_or(0);
            ensure(stored <= slots, || format!("{stored} samples in {slots} slots"))?;
            same("slots of all classes", &memory.histogram().iter().sum::<usize>(), &stored)?;
        }
        Ok(())
    }

    fn resumes_exactly(&self) -> Kept {
        let (dataset, samples) = self.samples()?;
        let (mut whole, mut first) = (self.learner(&self.config)?, self.learner(&self.config)?);
        let teach = |learner: &mut Learner, (image, class, task): &Shown| {
            learner.observe_in(*task, image, *class).map_err(told)
        };
        // 45 samples leave some behind that wait for their batch.
        for sample in &samples[..45] {
            teach(&mut whole, sample)?;
            teach(&mut first, sample)?;
        }
        let mut second = self.learner(&self.config)?;
        second.restore(&first.state()).map_err(told)?;
        drop(first);
        for sample in &samples[45..100] {
            let [one, other]: [Observation; 2] = [teach(&mut whole, sample)?, teach(&mut second, sample)?];
            same("training steps", &one, &other)?;
        }
        ensure(whole.state() == second.state(), || "its state differs later".into())?;
        let image = dataset.test.images.image(0).map_err(told)?;
        same("answers", &whole.predict(&image).map_err(told)?, &second.predict(&image).map_err(told)?)
    }

    fn is_not_changed_by_answering(&self) -> Kept {
        let (dataset, samples) = self.samples()?;
        let image = dataset.test.images.image(3).map_err(told)?;
        let (mut asked, mut left_alone) = (self.learner(&self.config)?, self.learner(&self.config)?);
        for (sample, class, task) in &samples[..60] {
            asked.observe_in(*task, sample, *class).map_err(told)?;
            left_alone.observe_in(*task, sample, *class).map_err(told)?;
            let first = asked.predict(&image).map_err(told)?;
            same("an answer given twice", &asked.predict(&image).map_err(told)?, &first)?;
        }
        ensure(asked.state() == left_alone.state(), || "predicting left a trace".into())
    }

    fn ignores_evaluation(&self, (events, _): &Recorded) -> Kept {
        let mut often = self.config.clone();
        often.settings.eval_period = Some(16);
        let training = |events: &[Event]| -> Vec<Event> {
            events.iter().filter(|event| matches!(event, Event::Progress { .. })).cloned().collect()
        };
        same_events(&training(events), &training(&self.record(&often)?.0))
    }

    fn answers_with_probabilities(&self) -> Kept {
        let (dataset, samples) = self.samples()?;
        let image = dataset.test.images.image(0).map_err(told)?;
        let mut learner = self.learner(&self.config)?;
        let early = learner.predict(&image);
        ensure(matches!(early, Err(Error::NoClassYet)), || {
            format!("it answers before it learns: {early:?}")
        })?;
        for (image, class, task) in &samples[..30] {
            learner.observe_in(*task, image, *class).map_err(told)?;
        }
        learner.flush().map_err(told)?;
        let answer = learner.predict(&image).map_err(told)?;
        let total: f32 = answer.probabilities.iter().map(|(_, probability)| probability).sum();
        ensure((total - 1.0).abs() < 1e-4, || format!("they sum to {total}"))?;
        ensure(answer.disagreement >= 0.0, || format!("disagreement is {}", answer.disagreement))?;
        same("classes", &answer.probabilities.len(), &learner.labels().len())
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is handed to `map_err`")]
fn told(error: Error) -> String {
    error.to_string()
}

fn ensure(kept: bool, how: impl FnOnce() -> String) -> Kept {
    if kept { Ok(()) } else { Err(how()) }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Kept {
    ensure(found == expected, || format!("{what}: {found:?}, expected {expected:?}"))
}

fn same_events(one: &[Event], other: &[Event]) -> Kept {
    let differs = one.iter().zip(other).find(|(one, other)| one != other);
    ensure(one.len() == other.len() && differs.is_none(), || match differs {
        Some((one, other)) => format!("{} became {}", one.line().trim_end(), other.line().trim_end()),
        None => format!("{} events became {}", one.len(), other.len()),
    })
}
