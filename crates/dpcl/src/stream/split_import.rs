//! Reads a stream from split files, so that a published split runs as it is.
//!
//! The files say which sample comes when; which classes are a task's own is not in them and is found out as
//! [`homes`] says. Cuts apply to what the files hold: samples that do not exist are passed over. A disjoint task that is
//! listed class by class, as the published CIFAR-100 one is, lists its samples and not their order: it is shuffled.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use dpcl_report::error::plain_words;

use super::plan::{Plan, share};
use super::split_file::{Entry, Missing, Roll, task_file_name};
use super::{Parts, Scenario, Schedule, StreamSettings, Task, check_left, iblurry, rm_blurry};
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::random::Random;

/// Reads the tasks of the given settings and seed.
pub(super) fn import(
    folder: &Path,
    dataset: &Dataset,
    parts: &Parts,
    settings: &StreamSettings,
    seed: u64,
) -> Result<Schedule> {
    let mut reader = Reader::new(dataset, settings);
    let tasks = settings.scenario.tasks(settings.tasks);
    for task in 0..tasks {
        let path = folder.join(task_file_name(&dataset.name, settings, seed, task));
        // Tasks that will not run are read for the class order, if they are there.
        if task >= settings.first_tasks.unwrap_or(tasks) && !path.exists() {
            break;
        }
        reader.read(path)?;
    }
    let available = (0..dataset.classes.len()).filter(|&class| parts.has(class)).count();
    let homes = homes(&reader.counts(), &reader.label_of, available, settings);
    reader.schedule(&homes, parts, settings, seed)
}

/// What has been read.
struct Reader<'a> {
    dataset: &'a Dataset,
    roll: Roll<'a>,
    classes: HashMap<&'a str, usize>,
    /// Published label of each class, once met.
    label_of: Vec<Option<usize>>,
    /// The task in which each training sample was met.
    met_in: Vec<Option<usize>>,
    repeats: bool,
    tasks: Vec<Vec<usize>>,
}

const LAYOUT: &str = "a split file is a JSON list of {\"file_name\": \"train/<class>/<nnnn>.png\", \
                      \"klass\": \"<class>\", \"label\": <k>}; `filepath` is another name of `file_name`";

impl<'a> Reader<'a> {
    fn new(dataset: &'a Dataset, settings: &StreamSettings) -> Self {
        Self {
            dataset,
            roll: Roll::new("train", &dataset.classes, &dataset.train),
            classes: dataset.classes.iter().map(String::as_str).zip(0..).collect(),
            label_of: vec![None; dataset.classes.len()],
            met_in: vec![None; dataset.train.labels.len()],
            repeats: settings.scenario == Scenario::RmBlurry,
            tasks: Vec::new(),
        }
    }

    /// Reads the next task.
    fn read(&mut self, path: PathBuf) -> Result<()> {
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let hint = "`split` is a folder with one such file a task; scenario, tasks, n, m and the seed \
                            must be those the files were made with";
                return Err(Error::bad_data(path, "there is no such split file", hint));
            }
            Err(error) => return Err(Error::io("read", path, error)),
        };
        let values: Vec<serde_json::Value> = serde_json::from_slice(&bytes).map_err(|error| {
            Error::bad_data(&path, format!("cannot be read: {}", plain_words(&error)), LAYOUT)
        })?;
        let mut samples = Vec::with_capacity(values.len());
        for (index, value) in values.into_iter().enumerate() {
            let bad = |problem: String, hint: &str| {
                Error::bad_data(&path, format!("entry {}: {problem}", index + 1), hint)
            };
            let entry: Entry =
                serde_json::from_value(value).map_err(|error| bad(plain_words(&error), LAYOUT))?;
            let position = self.resolve(&entry).map_err(|(problem, hint)| bad(problem, hint))?;
            samples.push(position);
        }
        self.tasks.push(samples);
        Ok(())
    }

    /// The training position an entry names, or what is wrong with it and what to do.
    fn resolve(&mut self, entry: &Entry) -> Result<usize, (String, &'static str)> {
        let Entry { file_name, klass, label } = entry;
        let &class = self.classes.get(klass.as_str()).ok_or_else(|| {
            let problem = format!("there is no class `{klass}` in {}", self.dataset.name);
            (problem, "split files belong to one data set; check `dataset`")
        })?;
        let position = self.roll.find(class, file_name).map_err(|missing| match missing {
            Missing::NoNumber => (format!("`{file_name}` does not end in a number"), LAYOUT),
            Missing::OutOfRange(count) => (
                format!("`{file_name}` is out of range: class `{klass}` has images 1 to {count}"),
                "the data set here has fewer images than the one the split was made for",
            ),
            Missing::NoSuchFile => (
                format!("no training image is called `{file_name}`"),
                "the data set here is not the one the split was made for",
            ),
        })?;
        if self.dataset.train.labels[position] != class {
            return Err((format!("`{file_name}` is not of class `{klass}`"), LAYOUT));
        }
        self.note_label(class, *label)?;
        self.note_task(position, file_name)?;
        Ok(position)
    }

    fn note_label(&mut self, class: usize, label: usize) -> Result<(), (String, &'static str)> {
        const HINT: &str = "a label is the class's position in the seed's order, the same in all task files";
        let klass = &self.dataset.classes[class];
        match self.label_of[class] {
            Some(known) if known == label => Ok(()),
            Some(known) => Err((format!("class `{klass}` has label {label} here and {known} before"), HINT)),
            None => {
                let count = self.dataset.classes.len();
                if label >= count {
                    let set = &self.dataset.name;
                    return Err((format!("label {label} is out of range: {set} has {count} classes"), HINT));
                }
                if let Some(other) = self.label_of.iter().position(|known| *known == Some(label)) {
                    let other = &self.dataset.classes[other];
                    return Err((format!("label {label} is given to `{klass}` and to `{other}`"), HINT));
                }
                self.label_of[class] = Some(label);
                Ok(())
            }
        }
    }

    fn note_task(&mut self, position: usize, file_name: &str) -> Result<(), (String, &'static str)> {
        const HINT: &str = "every training sample arrives once; remove one of the two";
        let task = self.tasks.len();
        match self.met_in[position].replace(task) {
            Some(earlier) if earlier == task => Err((format!("`{file_name}` is in this file twice"), HINT)),
            Some(earlier) if !self.repeats => Err((format!("`{file_name}` is in task {earlier} too"), HINT)),
            _ => Ok(()),
        }
    }

    /// How many samples of each class each task has.
    fn counts(&self) -> Vec<Vec<usize>> {
        let mut counts = vec![vec![0; self.dataset.classes.len()]; self.tasks.len()];
        for (counts, task) in counts.iter_mut().zip(&self.tasks) {
            for &position in task {
                counts[self.dataset.train.labels[position]] += 1;
            }
        }
        counts
    }

    /// Whether each of several classes is one run of samples; with one sample each there is no telling.
    fn is_class_by_class(&self, samples: &[usize]) -> bool {
        let classes: Vec<usize> =
            samples.iter().map(|&position| self.dataset.train.labels[position]).collect();
        let mut runs: Vec<usize> = classes.chunk_by(|one, next| one == next).map(|run| run[0]).collect();
        let count = runs.len();
        runs.sort_unstable();
        runs.dedup();
        count > 1 && runs.len() == count && samples.len() > count
    }

    /// What the cuts leave of it.
    fn schedule(
        &self,
        homes: &[Option<usize>],
        parts: &Parts,
        settings: &StreamSettings,
        seed: u64,
    ) -> Result<Schedule> {
        let mut class_order: Vec<usize> =
            (0..self.label_of.len()).filter(|&class| self.label_of[class].is_some()).collect();
        class_order.sort_by_key(|&class| self.label_of[class]);
        class_order.truncate(settings.classes.unwrap_or(class_order.len()));
        check_left(class_order.iter(), &self.dataset.classes, parts)?;

        let mut stays = vec![false; self.dataset.train.labels.len()];
        for &class in &class_order {
            parts.train[class].iter().for_each(|&position| stays[position] = true);
        }
        let mut tasks = Vec::with_capacity(self.tasks.len());
        let mut random = Random::named(seed, "in-task-shuffle");
        let running = settings.first_tasks.unwrap_or(settings.tasks);
        for (number, all) in self.tasks.iter().take(running).enumerate() {
            let mut samples: Vec<usize> = all.iter().copied().filter(|&position| stays[position]).collect();
            if samples.is_empty() && !all.is_empty() {
                let key = if settings.classes.is_some() { "classes" } else { "per_class" };
                let problem = format!(
                    "leaves nothing of task {number} of the split files; leave `{key}` out, or export the split with \
                     the same cut"
                );
                return Err(Error::bad_key(key, problem));
            }
            if settings.scenario == Scenario::Disjoint && self.is_class_by_class(all) {
                random.shuffle(&mut samples);
            }
            let at_home = |class: &usize| homes[*class] == Some(number);
            tasks.push(Task { samples, classes: class_order.iter().copied().filter(at_home).collect() });
        }
        Ok(Schedule { tasks, class_order })
    }
}

/// The task to which each class belongs: as the labels say if they follow the published rule (disjoint classes task by
/// task, then blurry ones task by task) and every task has kept what the rule lets it keep; else the task with most
/// samples of the class, the earliest of several.
fn homes(
    counts: &[Vec<usize>],
    label_of: &[Option<usize>],
    available: usize,
    settings: &StreamSettings,
) -> Vec<Option<usize>> {
    let by_label = planned(label_of, available, settings);
    if let Some(homes) = by_label.filter(|homes| keeps_enough(homes, counts, settings.m)) {
        return homes.into_iter().map(|home| home.map(|(task, _)| task)).collect();
    }
    let most = |class: usize| {
        let best = (0..counts.len()).rev().max_by_key(|&task| counts[task][class])?;
        (counts[best][class] > 0).then_some(best)
    };
    (0..label_of.len()).map(most).collect()
}

/// Home of each class and whether it is disjoint, by the scenario's rule applied to the labels.
fn planned(
    label_of: &[Option<usize>],
    available: usize,
    settings: &StreamSettings,
) -> Option<Vec<Option<(usize, bool)>>> {
    let met = label_of.iter().flatten().max()? + 1;
    // I-blurry cuts numbers of classes to multiples of the tasks, so labels alone do not tell how many there were.
    let used = |count: usize| match settings.scenario {
        Scenario::RmBlurry => count,
        _ => count / settings.tasks * settings.tasks,
    };
    let candidates = [settings.classes.unwrap_or(available).min(available), available];
    let count = candidates.into_iter().find(|&count| used(count) >= met).unwrap_or(met);
    let labels: Vec<usize> = (0..count).collect();
    let plans: Vec<Plan> = match settings.scenario {
        Scenario::Disjoint | Scenario::Superclass | Scenario::Shuffled => return None,
        Scenario::Blurry => iblurry::plan(&labels, count, settings.tasks, 0.0),
        Scenario::IBlurry => iblurry::plan(&labels, count, settings.tasks, settings.n),
        Scenario::RmBlurry => rm_blurry::plan(&labels, settings.tasks),
    };
    let home_of = |label: usize| {
        let plan = plans.iter().position(|plan| plan.classes().contains(&label))?;
        Some((plan, plans[plan].disjoint.contains(&label)))
    };
    Some(label_of.iter().map(|label| label.and_then(home_of)).collect())
}

/// Whether disjoint classes are nowhere but at home and each task has at least the share of its other classes' samples
/// that does not stray.
fn keeps_enough(homes: &[Option<(usize, bool)>], counts: &[Vec<usize>], m: f64) -> bool {
    let mut blurry = vec![(0, 0); counts.len()];
    for (class, home) in homes.iter().enumerate() {
        let total: usize = counts.iter().map(|task| task[class]).sum();
        match *home {
            None if total > 0 => return false,
            Some((task, disjoint)) if task < counts.len() => {
                let kept = counts[task][class];
                if disjoint && kept < total {
                    return false;
                }
                blurry[task] = (blurry[task].0 + kept, blurry[task].1 + total);
            }
            _ => {}
        }
    }
    // One sample of slack for a rule that rounds the kept share, not the straying one.
    blurry.iter().all(|&(kept, total)| kept + share(total, m) + 1 >= total)
}
