//! What a run says about itself: its first and last events, its result, and where it went wrong.

use std::collections::BTreeMap;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use dpcl_report::{
    metrics::metrics,
    record::{self, BadImages, Event, FORMAT, Remark, RunResult},
};
use toml::Table;

use super::{Execution, advice::named};
use crate::{
    config::{self, Key, Keys as _, Role, Settings, Setup},
    data,
    error::Error,
    learner::Label,
    memory::Memory,
    method::Step,
    process,
};

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
        let (loss, rate, labels, step) = match error {
            Error::LossNotFinite { loss, rate, labels, step } => (loss, rate, labels, step),
            Error::NotFinite { what } => {
                let (samples, updates) = (self.standing.samples, self.updates());
                return Error::Diverged { what, samples, updates, checkpoint: None };
            }
            other => return other,
        };
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

    /// Multiply-adds of learning; `None` where the operators that ran are not counted.
    fn learned(&self) -> Option<u64> {
        let all = self.standing.multiply_adds + (dpcl_kernels::multiply_adds() - self.counted);
        Some(all.saturating_sub(self.standing.answering)).filter(|&learned| learned > 0)
    }

    /// What tables have to say of the run, of what it was set to do and of what came of it.
    fn remarks(&self) -> Vec<Remark> {
        let mut remarks = remarks(&self.run.setup);
        remarks.extend(self.learner.remarks());
        let names = self.learner.labels().iter().filter(|label| label.number().is_none());
        let strange: Vec<String> = names.map(ToString::to_string).collect();
        if !strange.is_empty() {
            remarks.push(Remark {
                one: format!("was not tested on what it knew before: {}", named(&strange)),
                several: "were not tested on what they knew before".into(),
            });
        }
        let waiting = self.learner.waiting();
        if waiting > 0 && self.run.has_own_images() {
            let images = if waiting == 1 { "image".to_owned() } else { format!("{waiting} images") };
            remarks.push(Remark {
                one: format!("did not learn its last {images}, which never filled half a batch"),
                several: "did not learn their last images, which never filled half a batch".into(),
            });
        }
        remarks
    }

    pub(super) fn result(&self) -> RunResult {
        let setup = &self.run.setup;
        let standing = &self.standing;
        let seconds = standing.seconds + self.begun.elapsed().as_secs_f64();
        RunResult {
            format: FORMAT,
            method: setup.method.name.to_owned(),
            label: setup.label.clone(),
            dataset: self.run.dataset.name.clone(),
            scenario: setup.scenario.name().to_owned(),
            model: setup.model.clone(),
            seed: setup.seed,
            metrics: metrics(&self.events),
            updates: self.updates(),
            samples: standing.samples,
            bad_images: BadImages::of(&self.events),
            train_seconds: seconds - standing.evaluating,
            eval_seconds: standing.evaluating,
            multiply_adds: self.learned(),
            peak_memory_bytes: standing.peak_memory_bytes.max(process::peak_memory_bytes()),
            parameters: Some(self.learner.parameters()),
            isa: dpcl_kernels::isa_name().to_owned(),
            threads: process::threads(setup.threads),
            knowledge: self.learner.knowledge().name().to_owned(),
            answers: self.learner.answers().name().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            setting: dotted(setup, |role| role == Role::Stream),
            group: dotted(setup, Role::sets_groups_apart),
            absent: absent(setup),
            remarks: self.remarks(),
            checksum: String::new(),
        }
    }
}

/// Recorded keys of some roles, dotted, with their values as text.
fn dotted(setup: &Setup, wanted: fn(Role) -> bool) -> BTreeMap<String, String> {
    let keys = record::dotted(&setup.to_table());
    keys.into_iter().filter(|(key, _)| wanted(config::role_of(key))).collect()
}

/// Keys that came later than the first records, dotted, with what records without them stand for.
fn absent(setup: &Setup) -> BTreeMap<String, String> {
    let of = |keys: Vec<Key>| -> Table {
        keys.into_iter().filter_map(|key| Some((key.name.to_owned(), key.absent?))).collect()
    };
    let mut table = of(Settings::keys());
    table.insert(setup.method.section.to_owned(), of((setup.method.keys.list)()).into());
    record::dotted(&table)
}

/// What a table that compares the run with others has to say of its configuration.
fn remarks(setup: &Setup) -> Vec<Remark> {
    // Measuring seldom is cheaper than what the papers did.
    let seldom = setup.measures_losses() && setup.imp_period > 1;
    seldom.then(|| Remark::measured_every(setup.imp_period)).into_iter().collect()
}

/// The last step that an event tells of.
pub(super) fn last_progress(events: &[Event]) -> Option<Step> {
    events.iter().rev().find_map(|event| match event {
        Event::Progress { loss, rate, .. } => Some(Step { loss: *loss, rate: *rate }),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::{Config, OwnKeys, keys},
        methods::{MethodInfo, REHEARSAL},
    };

    keys! {
        /// Keys of which one came later.
        struct OwnLaterKeys {
            /// There from the beginning.
            first: u64 = 3;
            /// Came later.
            later: f64 = 0.5, absent_as(0);
        }
    }

    static LATER: MethodInfo =
        MethodInfo { name: "later", section: "later", keys: OwnKeys::of::<OwnLaterKeys>(), ..REHEARSAL };

    #[test]
    fn a_result_says_what_records_stand_for_that_lack_its_later_keys() {
        let mut setup = Config::default().check().unwrap();
        let said = absent(&setup);
        let expected = [
            ("asymmetric", "false"),
            ("average", "0"),
            ("average_statistics", "averaged"),
            ("fit", "squash"),
            ("rebuild", "false"),
            ("teacher", "0.0"),
            ("teacher_temperature", "1.0"),
        ];
        assert_eq!(said, expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
        let recorded = dotted(&setup, Role::sets_groups_apart);
        assert!(said.keys().all(|key| recorded.contains_key(key)), "{recorded:?}");
        setup.method = &LATER;
        assert_eq!(absent(&setup)["later.later"], "0.0");
        assert_eq!(absent(&setup).len(), 8);
    }
}
