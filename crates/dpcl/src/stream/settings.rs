//! What shapes a stream, as it stands in a configuration.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Scenario;
use crate::error::{Error, Result};

/// The keys of a stream. Those a scenario has no use for are ignored by it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
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
    /// Only the first so many classes of the seed's order exist, at least 1.
    pub classes: Option<usize>,
    /// Only the first so many training samples of every class exist, at least 1.
    pub per_class: Option<usize>,
    /// The stream stops after so many tasks, at least 1; those are what they would be in the whole stream.
    pub first_tasks: Option<usize>,
    /// The last so many training samples of every class are the test set, at least 1. They are taken from the whole
    /// class, before `per_class` cuts what is left.
    pub holdout: Option<usize>,
    /// A folder of split files that says which sample comes when, in place of the scenario's own draws.
    pub split: Option<PathBuf>,
}

/// Where in a task the samples that came from elsewhere stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlurryOrder {
    /// Anywhere.
    #[default]
    Shuffled,
    /// After all others, as in the published CIFAR-100 split with n = 0 and m = 10.
    ChunkLast,
}

/// Order of the superclasses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SuperclassOrder {
    /// Drawn with the run's seed.
    #[default]
    Seeded,
    /// By number.
    #[serde(alias = "A")]
    A,
    /// The first shuffled order of the benchmark of 20 tasks.
    #[serde(alias = "B")]
    B,
    /// The second.
    #[serde(alias = "C")]
    C,
    /// The third.
    #[serde(alias = "D")]
    D,
    /// The fourth.
    #[serde(alias = "E")]
    E,
}

impl Default for StreamSettings {
    fn default() -> Self {
        Self {
            scenario: Scenario::Disjoint,
            tasks: 5,
            n: 50.0,
            m: 10.0,
            blurry_order: BlurryOrder::default(),
            superclass_order: SuperclassOrder::default(),
            classes: None,
            per_class: None,
            first_tasks: None,
            holdout: None,
            split: None,
        }
    }
}

impl StreamSettings {
    /// Refuses values that no data set can be streamed with.
    ///
    /// # Errors
    /// Names the first key whose value is out of range.
    pub fn check(&self) -> Result<()> {
        if self.tasks == 0 {
            return Err(Error::bad_key("tasks", "a stream has at least 1 task"));
        }
        for (key, value) in [("n", self.n), ("m", self.m)] {
            if !(0.0..=100.0).contains(&value) {
                return Err(Error::bad_key(key, format!("{value} is not a percentage between 0 and 100")));
            }
        }
        let counts = [
            ("classes", self.classes),
            ("per_class", self.per_class),
            ("first_tasks", self.first_tasks),
            ("holdout", self.holdout),
        ];
        for (key, value) in counts {
            if value == Some(0) {
                return Err(Error::bad_key(key, "must be at least 1; leave it out to cut nothing"));
            }
        }
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

    fn refusal(change: impl FnOnce(&mut StreamSettings)) -> String {
        let mut settings = StreamSettings::default();
        change(&mut settings);
        settings.check().unwrap_err().to_string()
    }

    #[test]
    fn refusals_name_the_key() {
        assert_eq!(
            refusal(|settings| settings.n = 120.0),
            "configuration key `n`: 120 is not a percentage between 0 and 100"
        );
        assert_eq!(
            refusal(|settings| settings.first_tasks = Some(6)),
            "configuration key `first_tasks`: there are only 5 tasks to take the first 6 of"
        );
        assert!(refusal(|settings| settings.m = f64::NAN).contains("`m`"));
        assert!(refusal(|settings| settings.tasks = 0).contains("`tasks`"));
        assert!(refusal(|settings| settings.per_class = Some(0)).contains("`per_class`"));
        assert!(refusal(|settings| settings.holdout = Some(0)).contains("`holdout`"));
        StreamSettings::default().check().unwrap();
    }

    #[test]
    fn keys_read_as_people_write_them() {
        let text = "scenario = 'i-blurry'\nblurry_order = 'chunk-last'\nsuperclass_order = 'B'\nm = 30";
        let settings: StreamSettings = toml::from_str(text).unwrap();
        assert_eq!(settings.scenario, Scenario::IBlurry);
        assert_eq!(settings.blurry_order, BlurryOrder::ChunkLast);
        assert_eq!(settings.superclass_order, SuperclassOrder::B);
        assert_eq!(settings.m, 30.0);
        let error = toml::from_str::<StreamSettings>("task = 3").unwrap_err().to_string();
        assert!(error.contains("unknown field `task`") && error.contains("`tasks`"), "{error}");
    }
}
