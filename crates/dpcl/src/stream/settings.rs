//! What shapes a stream, as it stands in a configuration.

use std::path::PathBuf;

use super::Scenario;
use crate::{
    config::{Declared as _, Settings, choices},
    error::{Error, Result},
};

/// The keys of a stream. Those a scenario has no use for are ignored by it.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSettings {
    /// Rule by which samples are dealt to tasks.
    pub scenario: Scenario,
    /// How many tasks the rule makes, at least 1.
    pub tasks: usize,
    /// Per cent of the classes that stay in one task (i-blurry), 0..=100.
    pub n: f64,
    /// Per cent of the other classes' samples that change task (blurry, i-blurry, rm-blurry), 0..=100.
    pub m: f64,
    /// Where in a task the samples that came from elsewhere stand (blurry, i-blurry, rm-blurry).
    pub blurry_order: BlurryOrder,
    /// Order of the superclasses (superclass).
    pub superclass_order: SuperclassOrder,
    /// Only this number of classes, the first of the seed's order exist, at least 1.
    pub classes: Option<usize>,
    /// Only this number of training samples of every class, the first ones, exist, at least 1.
    pub per_class: Option<usize>,
    /// The stream stops after this number of tasks, at least 1; those are what they would be in the whole stream.
    pub first_tasks: Option<usize>,
    /// This number of training samples of every class, the last ones, are the test set, at least 1. They are taken from the whole
    /// class, before `per_class` cuts what is left.
    pub holdout: Option<usize>,
    /// A folder of split files that says which sample comes when, in place of the scenario's own draws.
    pub split: Option<PathBuf>,
}

/// Where in a task the samples that came from elsewhere stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlurryOrder {
    /// Anywhere.
    #[default]
    Shuffled,
    /// After all others, as in the published CIFAR-100 split with n = 0 and m = 10.
    ChunkLast,
}

/// Order of the superclasses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SuperclassOrder {
    /// Drawn with the run's seed.
    #[default]
    Seeded,
    /// By number.
    A,
    /// The first shuffled order of the benchmark of 20 tasks.
    B,
    /// The second.
    C,
    /// The third.
    D,
    /// The fourth.
    E,
}

choices!(BlurryOrder: Shuffled = "shuffled", ChunkLast = "chunk-last");

choices!(
    SuperclassOrder: Seeded = "seeded", A = "a" | "A", B = "b" | "B", C = "c" | "C", D = "d" | "D", E = "e" | "E",
);

impl Default for StreamSettings {
    fn default() -> Self {
        Settings::default().stream()
    }
}

impl StreamSettings {
    /// Refuses values that no data set can be streamed with.
    ///
    /// # Errors
    /// Names the key.
    pub fn check(&self) -> Result<()> {
        Settings::of_stream(self).check()?;
        match self.first_tasks {
            Some(first) if first > self.tasks => {
                let problem = format!("there are only {} tasks to take the first {first} of", self.tasks);
                Err(Error::bad_key("first_tasks", problem))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn more_tasks_than_there_are_cannot_be_the_first() {
        let settings = StreamSettings { first_tasks: Some(6), ..StreamSettings::default() };
        assert_eq!(
            settings.check().unwrap_err().to_string(),
            "configuration key `first_tasks`: there are only 5 tasks to take the first 6 of"
        );
        StreamSettings::default().check().unwrap();
    }

    #[test]
    fn keys_read_as_people_write_them() {
        let text = "scenario = 'i-blurry'\nblurry_order = 'chunk-last'\nsuperclass_order = 'B'\nm = 30";
        let settings = Config::from_toml(text).unwrap().settings.stream();
        assert_eq!(settings.scenario, Scenario::IBlurry);
        assert_eq!(settings.blurry_order, BlurryOrder::ChunkLast);
        assert_eq!(settings.superclass_order, SuperclassOrder::B);
        assert_eq!(settings.m, 30.0);
    }
}
