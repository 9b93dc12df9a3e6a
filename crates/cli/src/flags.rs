//! Flags that set configuration keys, shared by every command that takes a configuration. They become a table laid
//! over the file's; the long names of the i-Blurry family of programs are accepted for the same keys.

use std::{ffi::OsStr, path::PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use toml::{Table, Value};

use crate::{presets::PRESETS, seeds::Seeds, variant};

/// Flags of a run, all optional: what is not given comes from the configuration.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Flags {
    #[command(flatten)]
    learning: Learning,
    #[command(flatten)]
    stream: Stream,
    #[command(flatten)]
    network: Network,

    /// Set any key, as in `--set lr=0.001`
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Configuration")]
    set: Vec<String>,
}

/// Flags of a stream alone, for commands that learn nothing.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct StreamFlags {
    /// One stream a seed: `1..3` (inclusive) or `1,2,5`
    #[arg(long, aliases = ["seed", "rnd_seed"])]
    seeds: Option<Seeds>,

    #[command(flatten)]
    stream: Stream,

    /// Set any key, as in `--set blurry_order=chunk-last`
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Configuration")]
    set: Vec<String>,
}

impl From<&StreamFlags> for Flags {
    fn from(flags: &StreamFlags) -> Self {
        let learning = Learning { seeds: flags.seeds.clone(), ..Learning::default() };
        Self { learning, stream: flags.stream.clone(), set: flags.set.clone(), ..Self::default() }
    }
}

#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Learning")]
struct Learning {
    /// How to learn; several, with commas, are compared. A preset or TOML file of one method counts as one
    #[arg(long, alias = "mode", value_delimiter = ',', value_parser = methods(), hide_possible_values = true)]
    method: Vec<String>,

    /// One run a seed: `1..3` (inclusive) or `1,2,5`
    #[arg(long, aliases = ["seed", "rnd_seed"])]
    seeds: Option<Seeds>,

    /// Memory slots
    #[arg(long, alias = "memory_size", value_name = "SLOTS")]
    memory: Option<u32>,

    /// What the memory keeps
    #[arg(long, value_name = "NAME", value_parser = memories(), hide_possible_values = true)]
    memory_scheme: Option<String>,

    /// Learning-rate rule
    #[arg(long, value_name = "NAME", value_parser = rates(), hide_possible_values = true)]
    rate: Option<String>,

    /// Training batch: half stream, half memory
    #[arg(long, alias = "batchsize", value_name = "IMAGES")]
    batch: Option<u32>,

    /// Training steps per stream sample, as 3 or 0.25
    #[arg(long, alias = "online_iter", value_name = "STEPS")]
    updates: Option<f64>,

    /// Samples between evaluations; 0 for task ends only
    #[arg(long, alias = "eval_period", value_name = "SAMPLES")]
    eval_period: Option<u32>,

    /// Also predict each sample before learning it
    #[arg(long)]
    online: bool,
}

#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Stream")]
struct Stream {
    /// Which images
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,

    /// Where they lie: the set's folder or its parent [default: $DPCL_DATA, else ./data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// An image that cannot be read: `fail`, or `skip` and count it
    #[arg(long, value_name = "WHAT", value_parser = dpcl::data::OnBadImage::NAMES, hide_possible_values = true)]
    on_bad_image: Option<String>,

    /// Order of arrival
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,

    /// Per cent of classes that are disjoint (i-blurry)
    #[arg(long, value_name = "PERCENT")]
    n: Option<f64>,

    /// Per cent of blurry classes' samples that are mixed
    #[arg(long, value_name = "PERCENT")]
    m: Option<f64>,

    /// Number of tasks
    #[arg(long, alias = "n_tasks", value_name = "COUNT")]
    tasks: Option<u32>,

    /// Only the first classes of the seed's order exist
    #[arg(long, value_name = "COUNT")]
    classes: Option<u32>,

    /// Stop after so many tasks
    #[arg(long, value_name = "COUNT")]
    first_tasks: Option<u32>,

    /// Only the first training samples of each class exist
    #[arg(long, value_name = "COUNT")]
    per_class: Option<u32>,

    /// Test on the last training samples of each class
    #[arg(long, value_name = "COUNT")]
    holdout: Option<u32>,

    /// A folder of split files to run instead
    #[arg(long, value_name = "DIR")]
    split: Option<PathBuf>,
}

#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Network")]
struct Network {
    /// Network; `slim` is a ResNet18 of width 20
    #[arg(long, alias = "model_name", value_name = "NAME", value_parser = models(), hide_possible_values = true)]
    model: Option<String>,

    /// Channels of the network's first group
    #[arg(long, value_name = "CHANNELS")]
    width: Option<u32>,

    /// Height and width of the images fed to it
    #[arg(long, value_name = "PIXELS")]
    size: Option<u32>,
}

impl Flags {
    /// The keys that were given, `--set` over the flags.
    pub fn table(&self) -> anyhow::Result<Table> {
        let mut table = Table::new();
        let learning = &self.learning;
        if !learning.method.is_empty() {
            table.insert("method".into(), Value::from(learning.method.clone()));
        }
        let seeds = learning.seeds.as_ref();
        let seeds = seeds.map(|seeds| seeds.0.iter().map(|&seed| seed as i64).collect::<Vec<_>>());
        put(&mut table, "seeds", seeds);
        put(&mut table, "memory", learning.memory);
        put(&mut table, "memory_scheme", learning.memory_scheme.clone());
        put(&mut table, "rate", learning.rate.clone());
        put(&mut table, "batch", learning.batch);
        put(&mut table, "updates", learning.updates);
        put(&mut table, "eval_period", learning.eval_period);
        put(&mut table, "online", learning.online.then_some(true));
        put(&mut table, "model", self.network.model.clone());
        put(&mut table, "width", self.network.width);
        put(&mut table, "size", self.network.size);
        self.stream.put(&mut table);
        crate::layers::lay(&mut table, crate::layers::assignments(&self.set)?);
        Ok(table)
    }
}

impl Stream {
    fn put(&self, table: &mut Table) {
        put(table, "dataset", self.dataset.clone());
        put(table, "data_dir", path(self.data_dir.as_ref()));
        put(table, "on_bad_image", self.on_bad_image.clone());
        put(table, "scenario", self.scenario.clone());
        put(table, "n", self.n);
        put(table, "m", self.m);
        put(table, "tasks", self.tasks);
        put(table, "classes", self.classes);
        put(table, "first_tasks", self.first_tasks);
        put(table, "per_class", self.per_class);
        put(table, "holdout", self.holdout);
        put(table, "split", path(self.split.as_ref()));
    }
}

fn put(table: &mut Table, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        table.insert(key.to_owned(), value.into());
    }
}

fn path(path: Option<&PathBuf>) -> Option<String> {
    path.map(|path| path.to_string_lossy().into_owned())
}

/// Names of methods and of presets that stand for one, or the path of a TOML file that does.
#[derive(Clone)]
struct Methods(PossibleValuesParser);

fn methods() -> Methods {
    let methods = dpcl::methods::all().into_iter().map(|info| info.name);
    let variants = PRESETS.iter().map(|preset| preset.name).filter(|name| variant::read(name).is_ok());
    Methods(PossibleValuesParser::new(methods.chain(variants)))
}

impl TypedValueParser for Methods {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        match value.to_str().filter(|asked| variant::is_file(asked)) {
            Some(path) => Ok(path.to_owned()),
            None => self.0.parse_ref(command, argument, value),
        }
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

fn memories() -> PossibleValuesParser {
    PossibleValuesParser::new(dpcl::memory::SCHEMES.iter().map(|info| info.name))
}

fn rates() -> PossibleValuesParser {
    PossibleValuesParser::new(dpcl::rate::RATES.iter().map(|info| info.name))
}

fn models() -> PossibleValuesParser {
    PossibleValuesParser::new(dpcl::model::MODELS.iter().map(|info| info.name))
}
