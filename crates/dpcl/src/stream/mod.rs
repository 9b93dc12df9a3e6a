//! In which order images arrive.
//!
//! A [`Scenario`] turns the labels of a data set into a [`Schedule`]: ordered lists of training positions, one a
//! task. The learner sees only their concatenation; tasks are for the evaluator.
//!
//! The way there is the same for every scenario: [`cut()`] says which samples exist, a seeded order of the classes is
//! cut into tasks, and the scenario deals the samples out. The order of the classes depends on the seed and on whether
//! superclasses stay together, on nothing else.

mod arrivals;
mod cut;
mod disjoint;
mod iblurry;
mod plan;
mod rm_blurry;
mod settings;
mod split_export;
mod split_file;
mod split_import;
mod superclass;

pub use arrivals::{Arrivals, Credit, Due};
pub use cut::{Parts, cut};
pub use settings::{BlurryOrder, StreamSettings, SuperclassOrder};
pub use split_export::export;
pub use split_file::{task_file_name, test_file_name};

use crate::config::choices;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::random::Random;

/// One task of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Positions in the training split, in order of arrival.
    pub samples: Vec<usize>,
    /// Classes whose test images make up this task's test set (disjoint and major classes).
    pub classes: Vec<usize>,
}

/// A whole stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The tasks in order.
    pub tasks: Vec<Task>,
    /// Classes in the seed's order (position = published label id). Classes that the scenario leaves out are not
    /// in it; those of tasks after `first_tasks` are.
    pub class_order: Vec<usize>,
}

/// Rule by which samples are dealt to tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scenario {
    /// Every class belongs to one task.
    Disjoint,
    /// As disjoint, with whole superclasses in one task.
    Superclass,
    /// I-blurry without disjoint classes.
    Blurry,
    /// Some classes belong to one task; of the others, some samples stray.
    IBlurry,
    /// Every task gives some samples to the other tasks by independent draws.
    RmBlurry,
    /// All samples in one task, for data that have none.
    Shuffled,
}

choices!(
    Scenario: Disjoint = "disjoint", Superclass = "superclass", Blurry = "blurry", IBlurry = "i-blurry",
    RmBlurry = "rm-blurry", Shuffled = "shuffled",
);

impl Scenario {
    /// All of them, in the order they are listed.
    pub const ALL: [Self; 6] =
        [Self::Disjoint, Self::Superclass, Self::Blurry, Self::IBlurry, Self::RmBlurry, Self::Shuffled];

    /// One line for a list.
    pub fn about(self) -> &'static str {
        match self {
            Self::Disjoint => "every class belongs to one task",
            Self::Superclass => "disjoint, with the classes of a superclass in one task",
            Self::Blurry => "m per cent of all samples are dealt out again over all tasks",
            Self::IBlurry => "n per cent of the classes are disjoint, the others blurry",
            Self::RmBlurry => "every task gives m per cent of its samples to the other tasks",
            Self::Shuffled => "no tasks: all classes at once, in any order",
        }
    }

    /// How many tasks it makes where so many are asked for.
    fn tasks(self, asked: usize) -> usize {
        if self == Self::Shuffled { 1 } else { asked }
    }

    /// The scenario called `name`.
    ///
    /// # Errors
    /// When there is none.
    pub fn find(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|scenario| scenario.name() == name).ok_or_else(|| Error::UnknownName {
            kind: "scenario",
            name: name.to_owned(),
            known: Self::ALL.iter().map(|scenario| scenario.name().to_owned()).collect(),
        })
    }
}

/// Lays out the stream of a data set whose training split was cut into `parts` with the same settings.
///
/// Same arguments, same schedule; the seed alone decides every draw.
///
/// # Errors
/// When the settings do not suit the data set (more tasks than classes, no superclasses, …) or a split file cannot
/// be used.
pub fn schedule(dataset: &Dataset, parts: &Parts, settings: &StreamSettings, seed: u64) -> Result<Schedule> {
    settings.check()?;
    let mut schedule = match &settings.split {
        Some(folder) => split_import::import(folder, dataset, parts, settings, seed)?,
        None => generate(&dataset.classes, dataset.superclasses.as_deref(), parts, settings, seed)?,
    };
    schedule.tasks.truncate(settings.first_tasks.unwrap_or(settings.tasks));
    Ok(schedule)
}

fn generate(
    names: &[String],
    superclasses: Option<&[usize]>,
    parts: &Parts,
    settings: &StreamSettings,
    seed: u64,
) -> Result<Schedule> {
    let mut random = Random::named(seed, "class-order");
    let units = match settings.scenario {
        Scenario::Superclass => superclass::units(superclasses, settings.superclass_order, &mut random)?,
        _ => random.permutation(parts.train.len()).into_iter().map(|class| vec![class]).collect(),
    };
    let units = existing(units, names, parts, settings)?;
    let tasks = settings.scenario.tasks(settings.tasks);
    if units.len() < tasks {
        let kind = if settings.scenario == Scenario::Superclass { "superclasses" } else { "classes" };
        let problem = format!("{tasks} tasks need at least as many {kind}, and there are {}", units.len());
        return Err(Error::bad_key("tasks", problem));
    }

    let order = units.concat();
    let plans = match settings.scenario {
        Scenario::Disjoint | Scenario::Superclass | Scenario::Shuffled => disjoint::plan(&units, tasks),
        Scenario::Blurry => iblurry::plan(&order, order.len(), tasks, 0.0),
        Scenario::IBlurry => iblurry::plan(&order, order.len(), tasks, settings.n),
        Scenario::RmBlurry => rm_blurry::plan(&order, tasks),
    };
    let samples = match settings.scenario {
        Scenario::Disjoint | Scenario::Superclass | Scenario::Shuffled => {
            disjoint::fill(&plans, &parts.train, seed)
        }
        Scenario::Blurry | Scenario::IBlurry => iblurry::fill(&plans, &parts.train, settings, seed),
        Scenario::RmBlurry => rm_blurry::fill(&plans, &parts.train, settings, seed),
    };
    let class_order = plan::label_order(&plans);
    let tasks = plans.iter().zip(samples).map(|(plan, samples)| Task { samples, classes: plan.classes() });
    Ok(Schedule { tasks: tasks.collect(), class_order })
}

/// What is left of the ordered units (classes, or groups of them) when classes without training samples and those
/// after the first `classes` do not exist. A superclass at the border keeps the classes that do.
fn existing(
    mut units: Vec<Vec<usize>>,
    names: &[String],
    parts: &Parts,
    settings: &StreamSettings,
) -> Result<Vec<Vec<usize>>> {
    for unit in &mut units {
        unit.retain(|&class| parts.has(class));
    }
    let available: usize = units.iter().map(Vec::len).sum();
    let mut wanted = settings.classes.unwrap_or(available);
    if wanted > available {
        let problem = format!("{wanted} classes are asked for, and only {available} have training samples");
        return Err(Error::bad_key("classes", problem));
    }
    for unit in &mut units {
        unit.truncate(wanted);
        wanted -= unit.len();
    }
    units.retain(|unit| !unit.is_empty());
    check_left(units.iter().flatten(), names, parts)?;
    Ok(units)
}

/// Refuses a holdout that leaves a class of the stream with nothing to learn from.
fn check_left<'a>(
    mut classes: impl Iterator<Item = &'a usize>,
    names: &[String],
    parts: &Parts,
) -> Result<()> {
    match classes.find(|&&class| parts.train[class].is_empty()) {
        None => Ok(()),
        Some(&class) => {
            let problem = format!("leaves no training sample of class `{}` to learn from", names[class]);
            Err(Error::bad_key("holdout", problem))
        }
    }
}

#[cfg(test)]
mod split_tests;
#[cfg(test)]
mod tests;
