//! One run's configuration: read from TOML, overridden key by key, resolved, checked.
//!
//! Keys common to all methods are fields of [`Settings`]; a method's own keys live in a table of its name and are
//! checked by the method itself. A resolved configuration names every value, so that a record explains itself.

mod check;

use std::{collections::BTreeMap, path::PathBuf};

use serde::{Deserialize, Serialize};

use crate::{
    data::{OnBadImage, Policy},
    error::{Error, Result},
    method::Knowledge,
    methods::{self, MethodInfo},
    model::{Family, MODELS},
    stream::{BlurryOrder, Scenario, StreamSettings, SuperclassOrder},
};

/// A configuration as written: the common keys and one table a method.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Keys common to all methods.
    pub settings: Settings,
    /// Tables of method-specific keys, by section name.
    pub sections: BTreeMap<String, toml::Table>,
}

/// Keys common to all methods. `None` means: the data set's or the method's own default.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How to learn; see `dpcl list methods`.
    pub method: String,
    /// Name shown in tables and folder names; the method's name unless given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Seed of every random stream of the run.
    pub seed: u64,
    /// Which images; see `dpcl list datasets`.
    pub dataset: String,
    /// Where the data set lies: its own folder or that folder's parent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_dir: Option<PathBuf>,
    /// What to do about an image that cannot be read: `fail`, or `skip` it and count it.
    pub on_bad_image: OnBadImage,

    /// Order of arrival; see `dpcl list scenarios`.
    pub scenario: Scenario,
    /// Number of tasks.
    pub tasks: usize,
    /// Per cent of classes that are disjoint (i-blurry).
    pub n: f64,
    /// Per cent of the blurry classes' samples that are mixed (blurry, i-blurry, rm-blurry).
    pub m: f64,
    /// Whether mixed samples are shuffled in or come last (blurry, i-blurry, rm-blurry).
    pub blurry_order: BlurryOrder,
    /// Seeded or one of the published orders A–E (superclass).
    pub superclass_order: SuperclassOrder,
    /// Only the first so many classes of the seed's order exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub classes: Option<usize>,
    /// Only the first so many training samples of every class exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_class: Option<usize>,
    /// Stop after so many tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_tasks: Option<usize>,
    /// The last so many training samples of every class are the test set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holdout: Option<usize>,
    /// A folder of split files to run instead of a generated stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<PathBuf>,

    /// Network; see `dpcl list models`.
    pub model: String,
    /// Channels of the network's first group, if not the model's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<usize>,
    /// Height and width of the images fed to the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<usize>,
    /// A file of encoder weights to start from (safetensors).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<PathBuf>,
    /// A checkpoint whose learner the run begins with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<PathBuf>,
    /// Checksum of that checkpoint, filled in when the run begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from_checksum: Option<String>,
    /// Batch-norm epsilon.
    pub bn_eps: f64,
    /// Share of the new batch in batch norm's running statistics.
    pub bn_momentum: f64,

    /// Memory slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<usize>,
    /// What the memory keeps; see `dpcl list memories`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_scheme: Option<String>,
    /// Training steps between measurements of the loss on every stored sample (memory and rate `clib`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imp_period: Option<u64>,
    /// Whether the memory `rm` is chosen anew at task ends, by how uncertain the network is (`ewc++`, `bic`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rm_rebuild: bool,
    /// Learning-rate rule; see `dpcl list rates`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Training batch: half stream, half memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// Training steps per stream sample.
    #[serde(alias = "updates_per_sample", skip_serializing_if = "Option::is_none")]
    pub updates: Option<f64>,
    /// Initial learning rate.
    pub lr: f64,
    /// Factor on the learning rate after each step (exp-reset).
    pub lr_decay: f64,
    /// Whether a new class starts the decay over (exp-reset).
    pub lr_reset_on_new_class: bool,
    /// Whether known classes keep their biases when a head grows.
    pub head_keep_bias: bool,
    /// Whether a head's optimiser moments survive growth.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head_keep_adam: Option<bool>,

    /// AutoAugment policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoaugment: Option<Policy>,
    /// Mean of each colour over the training images, 0..1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<[f32; 3]>,
    /// Standard deviation of each colour over the training images, 0..1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub std: Option<[f32; 3]>,
    /// Pixels of zero padding before a random crop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pad_crop: Option<usize>,
    /// Probability that a batch is cut and mixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cutmix_prob: Option<f64>,
    /// Parameter of CutMix's Beta distribution.
    pub cutmix_alpha: f64,

    /// Samples between evaluations; 0 evaluates at task ends only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval_period: Option<u64>,
    /// Predict every stream sample before learning it (one more pass each).
    pub online: bool,
    /// Where tensors live: `cpu`, or a device this program was built for.
    pub device: String,
    /// Threads of the run; 0 uses every core. Does not change results.
    pub threads: usize,
}

impl Default for Settings {
    fn default() -> Self {
        let stream = StreamSettings::default();
        Self {
            method: "er".into(),
            label: None,
            seed: 1,
            dataset: "fashion-mini".into(),
            data_dir: None,
            on_bad_image: OnBadImage::Fail,
            scenario: stream.scenario,
            tasks: stream.tasks,
            n: stream.n,
            m: stream.m,
            blurry_order: stream.blurry_order,
            superclass_order: stream.superclass_order,
            classes: None,
            per_class: None,
            first_tasks: None,
            holdout: None,
            split: None,
            model: "resnet18".into(),
            width: None,
            size: None,
            weights: None,
            from: None,
            from_checksum: None,
            bn_eps: 1e-6,
            bn_momentum: 0.1,
            memory: None,
            memory_scheme: None,
            imp_period: None,
            rm_rebuild: false,
            rate: None,
            batch: None,
            updates: None,
            lr: 3e-4,
            lr_decay: 0.9999,
            lr_reset_on_new_class: true,
            head_keep_bias: true,
            head_keep_adam: None,
            autoaugment: None,
            mean: None,
            std: None,
            pad_crop: None,
            cutmix_prob: None,
            cutmix_alpha: 1.0,
            eval_period: None,
            online: false,
            device: "cpu".into(),
            threads: 0,
        }
    }
}

/// Keys that do not change what a run computes, so that two configurations differing only here are the same run.
pub const NEUTRAL_KEYS: &[&str] = &["data_dir", "from", "threads"];

impl Config {
    /// Reads a configuration from a table; unknown keys are refused with the valid ones named.
    ///
    /// # Errors
    /// When a key is unknown or has a value of another type.
    pub fn from_table(mut table: toml::Table) -> Result<Self> {
        if table.contains_key("updates") && table.contains_key("updates_per_sample") {
            let problem = "is another name of `updates`; give only one of the two";
            return Err(Error::bad_key("updates_per_sample", problem));
        }
        let mut sections = BTreeMap::new();
        for name in methods::section_names() {
            match table.remove(name) {
                None => {}
                Some(toml::Value::Table(section)) => {
                    sections.insert(name.to_owned(), section);
                }
                Some(_) => return Err(Error::bad_key(name, "must be a table of the method's own keys")),
            }
        }
        let settings =
            Settings::deserialize(toml::Value::Table(table.clone())).map_err(|error| blame(table, &error))?;
        Ok(Self { settings, sections })
    }

    /// Reads a configuration from TOML text.
    ///
    /// # Errors
    /// When it is not TOML or as for [`Config::from_table`].
    pub fn from_toml(text: &str) -> Result<Self> {
        let table = text.parse::<toml::Table>().map_err(|error| Error::bad_config(&error, &[]))?;
        Self::from_table(table)
    }

    /// The configuration as a table, method sections included.
    pub fn to_table(&self) -> toml::Table {
        let mut table =
            toml::Table::try_from(&self.settings).expect("settings are plain values with string keys");
        for (name, section) in &self.sections {
            table.insert(name.clone(), toml::Value::Table(section.clone()));
        }
        table
    }

    /// The configuration as TOML text.
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(&self.to_table()).expect("a table of plain values has a TOML form")
    }

    /// Fills in every default that depends on the data set, the model or the method, and checks the result.
    ///
    /// # Errors
    /// When a name is unknown or a value cannot be run.
    pub fn resolve(&self) -> Result<Self> {
        let mut resolved = self.clone();
        let info = methods::find(&self.settings.method)?;
        let settings = &mut resolved.settings;
        let imagenet = settings.dataset == "imagenet100";
        let cifar10 = settings.dataset == "cifar10";
        let family = MODELS.iter().find(|model| model.name == settings.model).map(|model| model.family);
        settings.label.get_or_insert_with(|| info.name.to_owned());
        settings.size.get_or_insert(if family == Some(Family::Imagenet) || imagenet { 224 } else { 32 });
        settings.batch.get_or_insert(if imagenet { 64 } else { 16 });
        settings.updates.get_or_insert(if imagenet {
            0.25
        } else if cifar10 {
            1.0
        } else {
            3.0
        });
        settings.memory.get_or_insert(if cifar10 { 500 } else { 2000 });
        settings.memory_scheme.get_or_insert_with(|| info.memory_scheme.to_owned());
        if settings.memory_scheme.as_deref() == Some("none") {
            settings.memory = Some(0);
        }
        settings.rate.get_or_insert_with(|| info.rate.to_owned());
        if [&settings.memory_scheme, &settings.rate].into_iter().any(|name| name.as_deref() == Some("clib")) {
            settings.imp_period.get_or_insert(if imagenet { 10 } else { 1 });
        } else {
            // Nothing is measured, so the period says nothing about this run.
            settings.imp_period = None;
        }
        settings.head_keep_adam.get_or_insert(info.keep_adam);
        let section = self.sections.get(info.section);
        // Activations that are mixed take the place of images that are.
        let mixed_later = section.and_then(|keys| keys.get("pfi")).and_then(toml::Value::as_bool);
        settings.cutmix_prob.get_or_insert(if mixed_later == Some(true) { 0.0 } else { info.cutmix });
        settings.eval_period.get_or_insert(if imagenet {
            2500
        } else if cifar10 {
            100
        } else {
            500
        });
        settings.check()?;
        settings.check_names()?;
        if settings.rm_rebuild && info.knowledge == Knowledge::None {
            let problem = format!("needs a method that is told where tasks end, and `{}` is not", info.name);
            return Err(Error::bad_key("rm_rebuild", problem));
        }
        let section = resolved.sections.remove(info.section).unwrap_or_default();
        let section = checked(info, section)?;
        // Other methods' tables say nothing about this run, but a slip in them is a slip.
        for other in methods::all() {
            if let Some(section) = resolved.sections.remove(other.section) {
                checked(other, section)?;
            }
        }
        resolved.sections.clear();
        if !section.is_empty() {
            resolved.sections.insert(info.section.to_owned(), section);
        }
        // A method refuses what does not go together when it is built, which needs no data.
        (info.build)(&resolved)?;
        Ok(resolved)
    }
}

/// A method's own table, complete and checked; errors name the table.
fn checked(info: &MethodInfo, section: toml::Table) -> Result<toml::Table> {
    (info.check)(section).map_err(|error| match error {
        Error::BadKey { key, problem } => Error::bad_key(format!("{}.{key}", info.section), problem),
        error => error,
    })
}

/// Names the key that cannot be read: every key has a default, so each can be read alone.
fn blame(table: toml::Table, error: &toml::de::Error) -> Error {
    if !error.message().contains("unknown field") {
        for (key, value) in table {
            let alone = toml::Table::from_iter([(key.clone(), value)]);
            if let Err(error) = Settings::deserialize(toml::Value::Table(alone)) {
                return Error::bad_key(key, error.message());
            }
        }
    }
    Error::bad_config(error, &methods::section_names())
}

impl Settings {
    /// The part that shapes the stream.
    pub fn stream(&self) -> StreamSettings {
        StreamSettings {
            scenario: self.scenario,
            tasks: self.tasks,
            n: self.n,
            m: self.m,
            blurry_order: self.blurry_order,
            superclass_order: self.superclass_order,
            classes: self.classes,
            per_class: self.per_class,
            first_tasks: self.first_tasks,
            holdout: self.holdout,
            split: self.split.clone(),
        }
    }
}
