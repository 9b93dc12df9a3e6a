//! The keys common to all methods, each declared once: as a configuration has them ([`Settings`]) and as they are once
//! everything is settled ([`Setup`]).

use std::path::PathBuf;

use toml::Table;

use super::{
    declare::{Declared, Keys, Part},
    key::{Heading, Key, Role},
};
use crate::{
    data::{self, Fit, OnBadImage, Policy},
    error::Result,
    learner::AverageStatistics,
    memory::SCHEMES,
    methods::{self, MethodInfo},
    model::MODELS,
    rate::RATES,
    stream::{BlurryOrder, Scenario, StreamSettings, SuperclassOrder},
};

/// More threads than any machine this is made for; each costs memory whether it works or not.
const MOST_THREADS: u32 = 1024;

/// A stream of a million samples would take decades, and what counts the steps stays exact.
const MOST_UPDATES: u32 = 1_000_000;

/// Seven times the largest set of pictures that is learned from.
const MOST_SLOTS: u32 = 100_000_000;

/// Images in a batch that no machine has the memory for.
const MOST_ROWS: u32 = 65_536;

/// Side of an image of 12 MB.
const LARGEST_SIDE: u32 = 2_048;

/// Steps that nobody waits for; numbers below it are exact in floating point.
const MOST_AVERAGED: u32 = 1 << 30;

/// Tasks of a stream unless somebody says otherwise.
pub(super) const USUAL_TASKS: usize = 5;

/// The type a key has once everything is settled: the second, where it has one.
macro_rules! settled_type {
    ($raw:ty) => {
        $raw
    };
    ($raw:ty, $checked:ty) => {
        $checked
    };
}

/// The value a key has once everything is settled: somebody's answer, where it needs one.
macro_rules! settled_value {
    ($settings:ident, $settled:ident, $field:ident) => {
        $settings.$field
    };
    ($settings:ident, $settled:ident, $field:ident, $checked:ty) => {
        $settled.$field
    };
}

/// Declares the common keys as [`keys`](super::declare::keys) does. A key that becomes another type has it after an
/// arrow: what it becomes is a field of [`Settled`].
macro_rules! common_keys {
    ($(
        $(#[doc = $help:literal])+
        $field:ident: $raw:ty $(=> $checked:ty)? = $default:expr $(, $fact:ident($($argument:expr),*))*;
    )*) => {
        /// Keys common to all methods, as they are written. `None` means: the data set's or the method's own default.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Settings {
            $( $(#[doc = $help])+ pub $field: $raw, )*
        }

        /// A configuration that has been checked: every key has its value, and the values can be run together.
        #[derive(Clone, Debug)]
        pub struct Setup {
            $( $(#[doc = $help])+ pub $field: settled_type!($raw $(, $checked)?), )*
            /// The method's own keys.
            pub(super) own: Table,
            /// Keys whose values only the data know, and which have stand-ins because nobody has opened them.
            pub(super) open: Vec<&'static str>,
        }

        /// Values of the keys that something else settles.
        pub(super) struct Settled {
            $( $( pub $field: $checked, )? )*
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        impl Setup {
            pub(super) fn new(settings: Settings, settled: Settled, open: Vec<&'static str>) -> Self {
                Self {
                    $( $field: settled_value!(settings, settled, $field $(, $checked)?), )*
                    own: Table::new(),
                    open,
                }
            }
        }

        /// What is declared of each, in the order of the fields.
        fn declarations() -> Vec<Key> {
            vec![$( Key::new(stringify!($field), &[$($help),+])$(.$fact($($argument),*))*, )*]
        }

        impl Declared for Settings {
            fn parts(&self) -> Vec<(Key, &dyn Part)> {
                let fields = [$( &self.$field as &dyn Part, )*];
                declarations().into_iter().zip(fields).collect()
            }

            fn also(&self) -> Result<()> {
                Ok(())
            }
        }

        impl Keys for Settings {
            fn parts_mut(&mut self) -> Vec<(Key, &mut dyn Part)> {
                let fields = [$( &mut self.$field as &mut dyn Part, )*];
                declarations().into_iter().zip(fields).collect()
            }
        }

        impl Declared for Setup {
            fn parts(&self) -> Vec<(Key, &dyn Part)> {
                let fields = [$( &self.$field as &dyn Part, )*];
                declarations().into_iter().zip(fields).collect()
            }

            fn also(&self) -> Result<()> {
                self.refuse_what_does_not_go_together()
            }
        }
    };
}

common_keys! {
    /// How to learn.
    method: String => &'static MethodInfo = "er".into(), one_of(methods::all().iter().map(|info| info.name));
    /// Name shown in tables and folder names.
    label: Option<String> => String = None, unless_given("the method's name"), role(Role::Name);
    /// Seed of every random stream of the run.
    seed: u64 = 1, role(Role::Incidental);

    /// Which images.
    dataset: String = "fashion-mini".into(), one_of(data::list().iter().map(|info| info.name)),
        role(Role::Stream), flag(Heading::Stream, "NAME");
    /// Where they lie: the set's folder or its parent. With `--from` several: the last is learned, the others tested on.
    data_dir: Option<PathBuf> = None, unless_given("$DPCL_DATA, else ./data"), role(Role::Surroundings),
        flag(Heading::Stream, "DIR");
    /// Data whose test images are tested on as well, of classes that a learner taken further knows.
    test_dirs: Vec<PathBuf> = Vec::new(), role(Role::Stream);
    /// A picture that is not square: `squash`, `crop` its middle, or `pad` with black.
    fit: Fit = Fit::Squash, absent_as("squash"), flag(Heading::Stream, "HOW");
    /// An image that cannot be read: `fail`, or `skip` and count it.
    on_bad_image: OnBadImage = OnBadImage::Fail, role(Role::Stream), flag(Heading::Stream, "WHAT");
    /// Order of arrival.
    scenario: Scenario = Scenario::Disjoint, role(Role::Stream), flag(Heading::Stream, "NAME");
    /// Per cent of classes that are disjoint (i-blurry).
    n: f64 = 50.0, at_least(0), at_most(100), role(Role::Stream), flag(Heading::Stream, "PERCENT");
    /// Per cent of blurry classes' samples that are mixed.
    m: f64 = 10.0, at_least(0), at_most(100), role(Role::Stream), flag(Heading::Stream, "PERCENT");
    /// Number of tasks.
    tasks: Option<usize> => usize = None, unless_given("5, or as many as there are classes; 1 with `from`"), at_least(1),
        role(Role::Stream), flag(Heading::Stream, "COUNT"), flag_aliases(&["n_tasks"]);
    /// Whether mixed samples are shuffled in or come last (blurry, i-blurry, rm-blurry).
    blurry_order: BlurryOrder = BlurryOrder::Shuffled, role(Role::Stream);
    /// Seeded or one of the published orders A–E (superclass).
    superclass_order: SuperclassOrder = SuperclassOrder::Seeded, role(Role::Stream);
    /// Only the first classes of the seed's order exist.
    classes: Option<usize> = None, at_least(1), role(Role::Stream), flag(Heading::Stream, "COUNT");
    /// Stop after this number of tasks.
    first_tasks: Option<usize> = None, at_least(1), role(Role::Stream), flag(Heading::Stream, "COUNT");
    /// Only the first training samples of each class exist.
    per_class: Option<usize> = None, at_least(1), role(Role::Stream), flag(Heading::Stream, "COUNT");
    /// Test on the last training samples of each class.
    holdout: Option<usize> => Option<usize> = None, at_least(1), role(Role::Stream), flag(Heading::Stream, "COUNT");
    /// A folder of split files to run instead.
    split: Option<PathBuf> = None, role(Role::Stream), flag(Heading::Stream, "DIR");

    /// Network; `slim` is a ResNet18 of width 20.
    model: String = "resnet18".into(), one_of(MODELS.iter().map(|info| info.name)),
        flag(Heading::Network, "NAME"), flag_aliases(&["model_name"]);
    /// Channels of the network's first group.
    width: Option<usize> = None, unless_given("the network's"), flag(Heading::Network, "CHANNELS");
    /// Height and width of the images fed to it.
    size: Option<usize> => usize = None, unless_given("the network's or the data set's"), at_least(8),
        capped(LARGEST_SIDE, "one image would fill more than 12 MB"),
        flag(Heading::Network, "PIXELS");
    /// A file of encoder weights to start from (safetensors).
    weights: Option<PathBuf> = None, role(Role::Origin);
    /// A checkpoint whose learner the run begins with.
    from: Option<PathBuf> = None, role(Role::Surroundings);
    /// Checksum of that checkpoint, filled in when the run begins.
    from_checksum: Option<String> = None, role(Role::Origin);
    /// Batch-norm epsilon.
    bn_eps: f64 = 1e-6, above(0);
    /// Share of the new batch in batch norm's running statistics.
    bn_momentum: f64 = 0.1, at_least(0), at_most(1);

    /// Memory slots.
    memory: Option<usize> => usize = None, unless_given("the data set's"),
        capped(MOST_SLOTS, "no stream has so many samples to keep"), flag(Heading::Learning, "SLOTS"),
        flag_aliases(&["memory_size"]);
    /// What the memory keeps.
    memory_scheme: Option<String> => String = None, unless_given("the method's"),
        one_of(SCHEMES.iter().map(|info| info.name)), once_valued(&[("rm", "balanced")]),
        flag(Heading::Learning, "NAME");
    /// Training steps between measurements of the loss on every stored sample (memory and rate `clib`).
    imp_period: Option<u64> => u64 = None, unless_given("the data set's"), at_least(1);
    /// Whether the memory `balanced` is chosen anew at task ends, by how uncertain the network is; for methods that are told.
    rebuild: bool = false, once(&["rm_rebuild"]), absent_as(false);
    /// Learning-rate rule.
    rate: Option<String> => String = None, unless_given("the method's"),
        one_of(RATES.iter().map(|info| info.name)), flag(Heading::Learning, "NAME");
    /// Training batch: half stream, half memory.
    batch: Option<usize> => usize = None, unless_given("the data set's"), at_least(2),
        capped(MOST_ROWS, "a batch is in memory at once"), flag(Heading::Learning, "IMAGES"),
        flag_aliases(&["batchsize"]);
    /// Training steps per stream sample, as 3 or 0.25.
    updates: Option<f64> => f64 = None, unless_given("the data set's"), above(0),
        capped(MOST_UPDATES, "no run would come to an end"),
        flag(Heading::Learning, "STEPS"), flag_aliases(&["online_iter"]), once(&["updates_per_sample"]);
    /// Initial learning rate.
    lr: Option<f64> => f64 = None, unless_given("the method's"), above(0);
    /// Factor on the learning rate after each step (exp-reset).
    lr_decay: f64 = 0.9999, above(0);
    /// Whether a new class starts the decay over (exp-reset).
    lr_reset_on_new_class: bool = true;
    /// Whether known classes keep their biases when a head grows.
    head_keep_bias: bool = true;
    /// Whether a head's optimiser moments survive growth.
    head_keep_adam: Option<bool> => bool = None, unless_given("the method's");

    /// Training steps that the answering weights are averaged over; 0 answers with the weights as they are.
    average: Option<u64> => u64 = None, unless_given("the method's"), at_most(MOST_AVERAGED), absent_as(0),
        flag(Heading::Learning, "STEPS");
    /// Where the averaged network has its batch-norm statistics from: averaged as well, or measured on the memory.
    average_statistics: AverageStatistics = AverageStatistics::Averaged, absent_as("averaged");

    /// Weight of what the averaged network teaches on each training batch; 0 is off.
    teacher: f64 = 0.0, at_least(0), absent_as(0.0);
    /// What logits of teacher and network are divided by when they are compared.
    teacher_temperature: f64 = 1.0, above(0), absent_as(1.0);
    /// Whether rows of the stream are scored against the classes of the stream's half only.
    asymmetric: Option<bool> => bool = None, unless_given("the method's"), absent_as(false);

    /// AutoAugment policy.
    autoaugment: Option<Policy> => Policy = None, unless_given("the data set's");
    /// Mean of each colour over the training images, 0 to 1.
    mean: Option<[f32; 3]> => [f32; 3] = None, unless_given("the data set's");
    /// Standard deviation of each colour over the training images, 0 to 1.
    std: Option<[f32; 3]> => [f32; 3] = None, unless_given("the data set's"), above(0);
    /// Pixels of zero padding before a random crop.
    pad_crop: Option<usize> => usize = None, unless_given("the data set's");
    /// Probability that a batch is cut and mixed.
    cutmix_prob: Option<f64> => f64 = None, unless_given("the method's"), at_least(0), at_most(1);
    /// Parameter of CutMix's Beta distribution.
    cutmix_alpha: f64 = 1.0, above(0);

    /// Samples between evaluations; 0 for task ends only.
    eval_period: Option<u64> => u64 = None, unless_given("the data set's"), flag(Heading::Learning, "SAMPLES"),
        flag_aliases(&["eval_period"]);
    /// Also predict each sample before learning it.
    online: bool = false, role(Role::Incidental), flag(Heading::Learning, "");
    /// Where tensors live: `cpu`, or a device this program was built for.
    device: String = "cpu".into();
    /// Threads of the run; 0 uses every core. Does not change results.
    threads: usize = 0, at_most(MOST_THREADS), role(Role::Surroundings);
}

/// The keys that shape a stream, from one struct to another that has them.
macro_rules! stream_keys {
    ($To:ident, $keys:expr, $tasks:expr $(, ..$rest:expr)?) => {
        $To {
            scenario: $keys.scenario,
            tasks: $tasks,
            n: $keys.n,
            m: $keys.m,
            blurry_order: $keys.blurry_order,
            superclass_order: $keys.superclass_order,
            classes: $keys.classes,
            per_class: $keys.per_class,
            first_tasks: $keys.first_tasks,
            holdout: $keys.holdout,
            split: $keys.split.clone(),
            $( ..$rest )?
        }
    };
}

impl Settings {
    /// The part that shapes the stream.
    pub fn stream(&self) -> StreamSettings {
        stream_keys!(StreamSettings, self, self.tasks.unwrap_or(USUAL_TASKS))
    }

    /// Settings with these keys of a stream.
    pub(crate) fn of_stream(stream: &StreamSettings) -> Self {
        stream_keys!(Self, stream, Some(stream.tasks), ..Self::default())
    }
}

impl Setup {
    /// The part that shapes the stream.
    pub fn stream(&self) -> StreamSettings {
        stream_keys!(StreamSettings, self, self.tasks)
    }
}
