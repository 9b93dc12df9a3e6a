//! Runs that have no result: what they were and how far they came.

use std::path::PathBuf;

use serde::Serialize;

use crate::format::thousands;
use crate::read::{Record, name_and_seed};
use crate::record::Event;

/// A run that failed, was cut off, or is still going.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Unfinished {
    /// The run's folder.
    pub path: PathBuf,
    /// Label, from the folder's name.
    pub label: String,
    /// Seed, from the folder's name.
    pub seed: Option<u64>,
    /// Stream samples seen by the last event.
    pub samples: u64,
    /// Samples of the whole stream; 0 if the run never began.
    pub stream_samples: u64,
    /// Why it failed, if it said so.
    pub failure: Option<String>,
}

impl Unfinished {
    /// Looks only at what a run without a result has.
    pub fn of(record: &Record) -> Self {
        let (label, seed) = name_and_seed(&record.path);
        let stream_samples = match record.events.first() {
            Some(Event::Start { task_samples, .. }) => {
                task_samples.iter().fold(0_u64, |sum, &samples| sum.saturating_add(samples as u64))
            }
            _ => 0,
        };
        let samples = record.events.iter().filter_map(samples).max().unwrap_or(0);
        Self {
            path: record.path.clone(),
            label,
            seed,
            samples,
            stream_samples,
            failure: record.failure.clone().filter(|text| !text.is_empty()),
        }
    }

    /// How far it came and why it stopped, in one sentence without its name.
    pub fn state(&self) -> String {
        let reached = match self.stream_samples {
            0 => "before its first event".to_owned(),
            all => format!("at sample {} of {}", thousands(self.samples), thousands(all)),
        };
        match &self.failure {
            Some(failure) => {
                format!("failed {reached}: {}", failure.lines().next().unwrap_or("no reason given"))
            }
            None => format!("unfinished, {reached}"),
        }
    }

    /// Label and seed as in the folder's name.
    pub fn name(&self) -> String {
        match self.seed {
            Some(seed) => format!("{} seed {seed}", self.label),
            None => self.label.clone(),
        }
    }
}

fn samples(event: &Event) -> Option<u64> {
    match *event {
        Event::NewClass { samples, .. }
        | Event::Progress { samples, .. }
        | Event::Evaluation { samples, .. }
        | Event::TaskAware { samples, .. }
        | Event::Unaveraged { samples, .. }
        | Event::BadImage { samples, .. }
        | Event::TaskEnd { samples, .. }
        | Event::Memory { samples, .. }
        | Event::Online { samples, .. } => Some(samples),
        Event::Uncertainty(ref uncertainty) => Some(uncertainty.samples),
        Event::Start { .. } | Event::Glimpse { .. } => None,
    }
}
