//! Records sorted into what may be compared and what may be averaged.
//!
//! Runs of one *setting* (data set, scenario, and every key that shapes the stream) are compared in one table. Runs
//! of one setting whose configurations differ in nothing but the seed form a *group*, one row, and only these are
//! averaged. The record says which keys make its setting and its group; no key and no metric is known here.

use std::collections::{BTreeMap, BTreeSet};

use crate::metrics::{AccuracyMatrix, metrics, unaveraged};
use crate::read::Record;
use crate::record::{Event, Metrics, RunResult};
use crate::{later_keys, old_records};

/// Dotted keys and their values as text.
type Config = BTreeMap<String, String>;

/// What is shown under one name, by that name and the configuration behind it.
type Named<T> = BTreeMap<(String, Config), T>;

/// A finished run with what its events amount to.
#[derive(Clone, Debug)]
pub struct Run {
    /// What it left on disk.
    pub record: Record,
    /// Its result file.
    pub result: RunResult,
    /// Computed from the events, which are the truth; the result file's copy is only compared with it.
    pub metrics: Metrics,
    /// Accuracy on each task after each task.
    pub matrix: AccuracyMatrix,
    /// Whether it is what the weights that learn would have answered, beside the run in which their average did.
    pub is_unaveraged: bool,
}

impl Run {
    /// `None` for a run that did not finish.
    pub fn of(record: Record) -> Option<Self> {
        let mut result = record.result.clone()?;
        old_records::complete(&mut result, &record.config);
        let metrics = metrics(&record.events);
        let matrix = AccuracyMatrix::of(&record.events);
        Some(Self { record, result, metrics, matrix, is_unaveraged: false })
    }

    /// The run as if the weights that learn had answered, under a label of its own and at the same cost; `None` where
    /// they did.
    pub fn unaveraged(&self) -> Option<Self> {
        let events = unaveraged(&self.record.events)?;
        let mut run = Self { is_unaveraged: true, ..self.clone() };
        (run.metrics, run.matrix) = (metrics(&events), AccuracyMatrix::of(&events));
        run.record.events = events;
        run.result.metrics = run.metrics;
        run.result.label.push_str(", unaveraged");
        Some(run)
    }

    /// `†` for methods that are told task ends, `‡` for those told task ids, `§` for those that do not answer at any
    /// time.
    pub fn mark(&self) -> &'static str {
        match (self.result.knowledge.as_str(), self.result.answers.as_str()) {
            ("task-ends", "any-time") => "†",
            ("task-ids", "any-time") => "‡",
            (_, "any-time") => "",
            ("task-ends", _) => "†§",
            ("task-ids", _) => "‡§",
            _ => "§",
        }
    }

    /// Whether the record itself said which setting and group it belongs to.
    fn speaks_for_itself(&self) -> bool {
        self.record.result.as_ref().is_some_and(|result| !result.group.is_empty())
    }

    /// Class names of the data set.
    pub fn classes(&self) -> &[String] {
        match self.record.events.first() {
            Some(Event::Start { classes, .. }) => classes,
            _ => &[],
        }
    }

    /// For each task of the stream, how many samples it has.
    pub fn task_samples(&self) -> &[usize] {
        match self.record.events.first() {
            Some(Event::Start { task_samples, .. }) => task_samples,
            _ => &[],
        }
    }
}

/// Runs that differ in their seed only.
#[derive(Clone, Debug)]
pub struct Group {
    /// Label, followed by the keys that tell it from others of the same label, if any.
    pub name: String,
    /// Place among the distinct names of the whole report: the same name has the same colour in every figure.
    pub colour: usize,
    /// By ascending seed, each seed once; never empty.
    pub runs: Vec<Run>,
}

impl Group {
    /// The run with the lowest seed, for what cannot be averaged.
    pub fn first(&self) -> &Run {
        &self.runs[0]
    }

    /// That of its runs.
    pub fn mark(&self) -> &'static str {
        self.first().mark()
    }
}

/// Groups that learned the same stream.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Data set and scenario, followed by the keys that tell it from other settings of the same names, if any.
    pub name: String,
    /// By falling mean ACC.
    pub groups: Vec<Group>,
}

impl Setting {
    /// Seeds per group, if all groups have equally many.
    pub fn seeds(&self) -> Option<usize> {
        let counts: BTreeSet<usize> = self.groups.iter().map(|group| group.runs.len()).collect();
        if counts.len() == 1 { counts.first().copied() } else { None }
    }

    /// One line on the stream and the network, as far as all groups share them.
    pub fn description(&self) -> String {
        let run = self.groups[0].first();
        let (done, all) = (run.matrix.rows.len(), run.task_samples().len());
        let mut parts = vec![match done {
            _ if done == all => plural(all, "task"),
            _ => format!("{done} of {}", plural(all, "task")),
        }];
        let classes: BTreeSet<usize> =
            crate::metrics::final_counts(&run.record.events).iter().map(|count| count.class).collect();
        parts.push(plural(classes.len(), "class"));
        parts.push(plural(run.result.samples as usize, "sample"));
        let models: BTreeSet<&str> =
            self.groups.iter().map(|group| group.first().result.model.as_str()).collect();
        if let (1, Some(model)) = (models.len(), models.first()) {
            parts.push((*model).to_owned());
        }
        if let Some(seeds) = self.seeds() {
            parts.push(plural(seeds, "seed"));
        }
        parts.join(", ")
    }
}

/// Sorts runs into settings and groups; the second part tells of runs left out because their seed is there already.
pub fn sort(mut runs: Vec<Run>) -> (Vec<Setting>, Vec<String>) {
    if runs.iter().any(Run::speaks_for_itself) {
        runs.iter_mut().for_each(|run| old_records::renew(&mut run.result));
    }
    later_keys::complete(&mut runs);
    let mut notes = Vec::new();
    let mut settings: Named<Named<Vec<Run>>> = BTreeMap::new();
    for run in runs {
        let RunResult { dataset, scenario, label, setting, group, .. } = run.result.clone();
        let groups = settings.entry((format!("{dataset}, {scenario}"), setting)).or_default();
        let group = groups.entry((label, group)).or_default();
        match group.iter().find(|other| other.result.seed == run.result.seed) {
            Some(other) => notes.push(repeated(&run, other)),
            None => group.push(run),
        }
    }
    let names = distinct_names(settings.keys());
    let mut sorted: Vec<Setting> = settings
        .into_values()
        .zip(names)
        .map(|(groups, name)| Setting { name, groups: rows(groups) })
        .collect();
    colour(&mut sorted);
    (sorted, notes)
}

fn repeated(run: &Run, other: &Run) -> String {
    let (path, seed) = (run.record.path.display(), run.result.seed);
    format!("{path} repeats seed {seed} of {} and is left out", other.record.path.display())
}

fn rows(groups: Named<Vec<Run>>) -> Vec<Group> {
    let names = distinct_names(groups.keys());
    let mut rows: Vec<Group> = groups
        .into_values()
        .zip(names)
        .map(|(mut runs, name)| {
            runs.sort_by_key(|run| run.result.seed);
            Group { name, colour: 0, runs }
        })
        .collect();
    rows.sort_by(|a, b| mean_accuracy(b).total_cmp(&mean_accuracy(a)).then_with(|| a.name.cmp(&b.name)));
    rows
}

fn mean_accuracy(group: &Group) -> f64 {
    let values: Vec<f64> = group.runs.iter().filter_map(|run| run.metrics.acc).collect();
    crate::statistics::Estimate::of(&values).map_or(f64::NEG_INFINITY, |estimate| estimate.mean)
}

fn colour(settings: &mut [Setting]) {
    let names: BTreeSet<String> =
        settings.iter().flat_map(|setting| &setting.groups).map(|group| group.name.clone()).collect();
    let place: BTreeMap<&String, usize> = names.iter().zip(0..).collect();
    for group in settings.iter_mut().flat_map(|setting| &mut setting.groups) {
        group.colour = place[&group.name];
    }
}

/// Each name, followed in parentheses by the keys whose values differ among the configurations of that name.
fn distinct_names<'a>(keys: impl Iterator<Item = &'a (String, Config)>) -> Vec<String> {
    let keys: Vec<_> = keys.collect();
    let name = |(name, config): &(String, Config)| {
        let alike: Vec<&Config> = keys.iter().filter(|key| key.0 == *name).map(|key| &key.1).collect();
        let differs = |key: &&String| alike.iter().any(|other| other.get(*key) != config.get(*key));
        let of_any: BTreeSet<&String> = alike.iter().flat_map(|config| config.keys()).collect();
        let differing: Vec<String> = of_any
            .into_iter()
            .filter(differs)
            .map(|key| format!("{key} {}", config.get(key).map_or("unset", String::as_str)))
            .collect();
        if differing.is_empty() { name.clone() } else { format!("{name} ({})", differing.join(", ")) }
    };
    keys.iter().map(|key| name(key)).collect()
}

fn plural(count: usize, noun: &str) -> String {
    let ending = match noun {
        _ if count == 1 => "",
        "class" => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", crate::format::thousands(count as u64))
}
