//! What a run leaves on disk, as types: the interface between the learner that writes records, this crate that
//! reads them, and other people's scripts.
//!
//! A run is a folder with `config.toml` (checked, every key in it), `events.jsonl` (one [`Event`] a line, flushed as it goes),
//! `result.json` (one [`RunResult`], written last) and `checkpoint/`. A file `lock` in it says nothing: the process
//! that makes the run holds it locked.

mod measured;

pub use measured::{ClassCount, ConfidenceBin, Kept, Metrics, Parameters, Uncertainty};

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

/// Version of the record layout; readers refuse a newer one.
pub const FORMAT: u32 = 1;

/// The checked configuration of a run, in TOML. A comment line `# command: …` holds the command that made it.
pub const CONFIG_FILE: &str = "config.toml";
/// The events of a run, one JSON object a line.
pub const EVENTS_FILE: &str = "events.jsonl";
/// The end of a finished run.
pub const RESULT_FILE: &str = "result.json";
/// Why a run failed, as plain text; absent while it runs, and from runs that were merely cut off.
pub const ERROR_FILE: &str = "error.txt";

/// One line of `events.jsonl`. Nothing in it depends on time, threads or paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run begins; always the first line.
    Start {
        /// Record layout version.
        format: u32,
        /// Class names of the data set; class numbers elsewhere index this list.
        classes: Vec<String>,
        /// For each task, the classes of its test set.
        task_classes: Vec<Vec<usize>>,
        /// For each task, how many stream samples it has.
        task_samples: Vec<usize>,
    },
    /// A class was met for the first time.
    NewClass {
        /// Stream samples seen, this one included.
        samples: u64,
        /// The class, an index into the data set's list.
        class: usize,
    },
    /// Averages over the training steps since the previous line of this kind.
    Progress {
        /// Stream samples seen so far.
        samples: u64,
        /// Training steps so far.
        updates: u64,
        /// Mean training loss over those steps; `null` where it was not a number.
        #[serde(deserialize_with = "number_or_null")]
        loss: f64,
        /// Learning rate that the last of them was taken with.
        #[serde(deserialize_with = "number_or_null")]
        rate: f64,
        /// Counters a method wants on record (memory accepts, rate ups, …), cumulative.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "numbers_or_null")]
        counters: BTreeMap<String, f64>,
    },
    /// An evaluation of the classes met so far.
    Evaluation {
        /// Stream samples seen so far.
        samples: u64,
        /// Training steps so far.
        updates: u64,
        /// Why it was made.
        kind: EvaluationKind,
        /// For each class met so far: its number, correct answers, test images.
        classes: Vec<ClassCount>,
    },
    /// The evaluation before it once more, with the task of every image told; only of methods that are told task ids.
    TaskAware {
        /// Stream samples seen so far.
        samples: u64,
        /// Why it was made.
        kind: EvaluationKind,
        /// For each class met so far: its number, correct answers, test images.
        classes: Vec<ClassCount>,
    },
    /// The evaluation before it once more, answered with the weights that learn; only of learners whose average answers.
    Unaveraged {
        /// Stream samples seen so far.
        samples: u64,
        /// Training steps so far.
        updates: u64,
        /// Why it was made.
        kind: EvaluationKind,
        /// For each class met so far: its number, correct answers, test images.
        classes: Vec<ClassCount>,
        /// How sure the answers were, and how rightly; at task ends.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uncertainty: Option<Uncertainty>,
    },
    /// An image could not be read and was left out (`on_bad_image = "skip"`). A test image is tried again at every
    /// evaluation and written down once.
    BadImage {
        /// Stream samples seen so far, this one not included.
        samples: u64,
        /// Where it was missed.
        part: Part,
        /// Its position in the data set's list of training or test images.
        position: usize,
        /// What it is called inside its set, where images are files of their own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        file: Option<String>,
    },
    /// A task ended (before its evaluation).
    TaskEnd {
        /// Which one, from 0.
        task: usize,
        /// Stream samples seen so far.
        samples: u64,
    },
    /// How many memory slots each class holds; written at task ends.
    Memory {
        /// Stream samples seen so far.
        samples: u64,
        /// Class and its slots.
        slots: Vec<(usize, usize)>,
    },
    /// Online accuracy so far: each sample predicted before it is learned (only when asked for).
    Online {
        /// Stream samples predicted.
        samples: u64,
        /// Right predictions.
        correct: u64,
    },
    /// How sure the answers of the task-end evaluation before it were, and how rightly.
    Uncertainty(Uncertainty),
    /// A short glimpse of the memory's images at the end of the run.
    Glimpse {
        /// PNG contact sheet, base64.
        png: String,
    },
}

impl Event {
    /// The event as it stands in the log, line break included.
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("an event is plain data with string keys") + "\n"
    }
}

/// JSON has no NaN: serde writes a diverged number as `null`, and a record of it must stay readable.
fn number_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

fn numbers_or_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, f64>, D::Error> {
    let numbers = BTreeMap::<String, Option<f64>>::deserialize(deserializer)?;
    Ok(numbers.into_iter().map(|(name, number)| (name, number.unwrap_or(f64::NAN))).collect())
}

/// What a record without the entry means.
fn any_time() -> String {
    "any-time".to_owned()
}

fn is_any_time(answers: &str) -> bool {
    answers == any_time()
}

/// Why an evaluation was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EvaluationKind {
    /// The evaluation period came round.
    Period,
    /// The given task ended.
    TaskEnd(usize),
}

/// What an image is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// To be learned.
    Stream,
    /// To be tested on.
    Test,
}

/// How many images could not be read and were left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BadImages {
    /// Of the stream.
    pub stream: u64,
    /// Of the test set.
    pub test: u64,
}

impl BadImages {
    /// Counts them in a run's events.
    pub fn of(events: &[Event]) -> Self {
        let mut counts = Self::default();
        for event in events {
            match event {
                Event::BadImage { part: Part::Stream, .. } => counts.stream += 1,
                Event::BadImage { part: Part::Test, .. } => counts.test += 1,
                _ => {}
            }
        }
        counts
    }

    /// Whether there are none.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// What a table has to say below it of a run, or of several that have it in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// What follows the name of one run.
    pub one: String,
    /// What follows the names of several.
    pub several: String,
}

impl Remark {
    /// The whole memory is measured only every few training steps.
    pub fn measured_every(updates: u64) -> Self {
        Self {
            one: format!("measures its memory every {updates} updates"),
            several: format!("measure their memory every {updates} updates"),
        }
    }
}

/// A configuration's keys, dotted, with their values as text: what [`RunResult::setting`] and [`RunResult::group`] are
/// made of.
pub fn dotted(config: &toml::Table) -> BTreeMap<String, String> {
    let mut flat = BTreeMap::new();
    flatten("", config, &mut flat);
    flat
}

fn flatten(prefix: &str, table: &toml::Table, flat: &mut BTreeMap<String, String>) {
    for (key, value) in table {
        let dotted = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
        match value {
            toml::Value::Table(inner) => flatten(&dotted, inner, flat),
            toml::Value::String(text) => drop(flat.insert(dotted, text.clone())),
            other => drop(flat.insert(dotted, other.to_string())),
        }
    }
}

/// `result.json`: the end of a finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Record layout version.
    pub format: u32,
    /// Method name.
    pub method: String,
    /// Name shown in tables: the method's or the preset's.
    pub label: String,
    /// Data set name.
    pub dataset: String,
    /// Scenario name.
    pub scenario: String,
    /// Network name, as in the configuration.
    pub model: String,
    /// Run seed.
    pub seed: u64,
    /// The numbers.
    pub metrics: Metrics,
    /// Training steps made.
    pub updates: u64,
    /// Stream samples seen.
    pub samples: u64,
    /// Images that were left out because they could not be read.
    #[serde(default, skip_serializing_if = "BadImages::is_none")]
    pub bad_images: BadImages,
    /// Wall-clock seconds spent learning.
    pub train_seconds: f64,
    /// Wall-clock seconds spent evaluating.
    pub eval_seconds: f64,
    /// Multiply-adds of convolutions and linear layers in learning, forward and backward, evaluation left out; absent
    /// from older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multiply_adds: Option<u64>,
    /// Peak resident memory of the run's process.
    pub peak_memory_bytes: u64,
    /// Numbers the learner holds; absent from older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Parameters>,
    /// Instruction set of the kernels that ran.
    pub isa: String,
    /// Threads used.
    pub threads: usize,
    /// What the method is told beyond images and labels: "none", "task-ends" or "task-ids".
    pub knowledge: String,
    /// When its answers are what it has learned: "any-time", "task-ends" or "end".
    #[serde(default = "any_time", skip_serializing_if = "is_any_time")]
    pub answers: String,
    /// Program version.
    pub version: String,
    /// Keys that say which stream was learned, dotted, with their values: runs that differ here are not compared.
    /// Absent from older records, as is [`RunResult::group`].
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub setting: BTreeMap<String, String>,
    /// Keys that say how it was learned: runs that differ here, or in the label, are not averaged.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub group: BTreeMap<String, String>,
    /// Keys that came later than the first records, dotted, with the values that records without them stand for. Other
    /// records are completed by it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub absent: BTreeMap<String, String>,
    /// What every table with this run has to say of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<Remark>,
    /// Checksum of the whole record as the run left it, filled in when it is written; empty in early records.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub checksum: String,
}
