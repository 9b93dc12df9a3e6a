//! What a run says about itself: its first and last events, its result, and where it went wrong.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use dpcl_report::{
    metrics::metrics,
    record::{BadImages, Event, FORMAT, RunResult},
};

use super::Execution;
use crate::{data, error::Error, learner::Label, memory::Memory, method::Step, process};

impl Execution<'_> {
    pub(super) fn start(&self) -> Event {
        let tasks = &self.run.schedule.tasks;
        Event::Start {
            format: FORMAT,
            classes: self.run.dataset.classes.clone(),
            task_classes: tasks.iter().map(|task| task.classes.clone()).collect(),
            task_samples: tasks.iter().map(|task| task.samples.len()).collect(),
        }
    }

    /// A contact sheet of up to ten stored images of up to ten classes.
    pub(super) fn glimpse(&self) -> Option<Event> {
        const PER_CLASS: usize = 10;
        let mut rows: Vec<Vec<data::Image>> = vec![Vec::new(); self.learner.labels().len().min(PER_CLASS)];
        for sample in self.learner.memory().into_iter().flat_map(Memory::slots) {
            if let Some(row) = rows.get_mut(sample.class)
                && row.len() < PER_CLASS
            {
                row.push(sample.image.to_bytes().into_owned());
            }
        }
        let images: Vec<data::Image> = rows.concat();
        if images.is_empty() {
            return None;
        }
        let png = data::png(&data::tile(&images, PER_CLASS));
        Some(Event::Glimpse { png: BASE64_STANDARD.encode(png) })
    }

    /// A class as the data set numbers it; one brought along from elsewhere may not be in it.
    pub(super) fn class(&self, met: usize) -> Option<usize> {
        self.learner.labels()[met].number()
    }

    /// Says where in the stream training ran away.
    pub(super) fn explain(&self, error: Error) -> Error {
        let Error::LossNotFinite { loss, rate, labels, step } = error else { return error };
        let name =
            |label: &Label| label.number().and_then(|class| self.run.dataset.classes.get(class)).cloned();
        let name = |class: usize| self.learner.labels().get(class).and_then(name).unwrap_or_default();
        Error::RanAway {
            loss,
            rate,
            samples: self.standing.samples + 1,
            updates: self.updates() + step as u64 + 1,
            classes: labels.into_iter().map(name).collect(),
            checkpoint: None,
        }
    }

    pub(super) fn result(&self) -> RunResult {
        let settings = &self.run.config.settings;
        let standing = &self.standing;
        let seconds = standing.seconds + self.begun.elapsed().as_secs_f64();
        RunResult {
            format: FORMAT,
            method: settings.method.clone(),
            label: settings.label.clone().unwrap_or_else(|| settings.method.clone()),
            dataset: self.run.dataset.name.clone(),
            scenario: settings.scenario.name().to_owned(),
            model: settings.model.clone(),
            seed: settings.seed,
            metrics: metrics(&self.events),
            updates: self.updates(),
            samples: standing.samples,
            bad_images: BadImages::of(&self.events),
            train_seconds: seconds - standing.evaluating,
            eval_seconds: standing.evaluating,
            peak_memory_bytes: standing.peak_memory_bytes.max(process::peak_memory_bytes()),
            parameters: Some(self.learner.parameters()),
            isa: dpcl_kernels::isa_name().to_owned(),
            threads: process::threads(settings.threads),
            knowledge: self.learner.knowledge().name().to_owned(),
            answers: self.learner.answers().name().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            checksum: String::new(),
        }
    }
}

/// The last step that an event tells of.
pub(super) fn last_progress(events: &[Event]) -> Option<Step> {
    events.iter().rev().find_map(|event| match event {
        Event::Progress { loss, rate, .. } => Some(Step { loss: *loss, rate: *rate }),
        _ => None,
    })
}
