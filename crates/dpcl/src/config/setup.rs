//! From a configuration as it is written to one that can be run: every default is settled, then everything is checked.
//!
//! What a run starts from unless configured is known by the data set ([`data::DatasetInfo`]), by the method
//! ([`MethodInfo`]) and, for colours and crops, by the opened data alone.

use toml::Table;

use super::{
    Config, Declared, Keys, Kind, Value,
    settings::{Settings, Settled, Setup, USUAL_TASKS},
};
use crate::{
    data::{self, Dataset, Policy},
    error::{Error, Result},
    memory::Memory,
    methods::{self, MethodInfo},
    model::{Architecture, Family, MODELS},
    rate,
    stream::Scenario,
};

/// Side of the images that networks for ImageNet are made for.
const IMAGENET_SIZE: usize = 224;

/// Images smaller than this are augmented as CIFAR's are, unless the data set knows better.
const SMALL: usize = 64;

impl Config {
    /// Settles every default and checks the result, as far as can be told without data.
    ///
    /// # Errors
    /// When a name is unknown, or a value cannot be run or does not go with another.
    pub fn check(&self) -> Result<Setup> {
        self.settle(None)
    }

    /// The same, with what the opened data say of themselves.
    ///
    /// # Errors
    /// As for [`Config::check`].
    pub fn check_with(&self, dataset: &Dataset) -> Result<Setup> {
        self.settle(Some(dataset))
    }

    fn settle(&self, dataset: Option<&Dataset>) -> Result<Setup> {
        let method = methods::find(&self.settings.method)?;
        let own = self.sections.get(method.section).cloned().unwrap_or_default();
        let own = method.keys.complete(method.section, own)?;
        let settled = settled(&self.settings, method, &own, dataset)?;
        let open = match dataset {
            None => self.settings.left_to_the_data()?,
            Some(_) => Vec::new(),
        };
        let mut setup = Setup::new(self.settings.clone(), settled, open);
        setup.check()?;
        setup.check_names()?;
        setup.own = own;
        // Other methods' tables say nothing about this run, but a slip in them is a slip.
        for other in methods::all().into_iter().filter(|other| other.section != method.section) {
            if let Some(section) = self.sections.get(other.section) {
                other.keys.complete(other.section, section.clone())?;
            }
        }
        // A method refuses what does not go together when it is built, which needs no data.
        (method.build)(&setup)?;
        Ok(setup)
    }
}

/// The values that data set, network and method have for keys left open.
fn settled(
    given: &Settings,
    method: &'static MethodInfo,
    own: &Table,
    opened: Option<&Dataset>,
) -> Result<Settled> {
    let dataset = data::info(&given.dataset)?;
    let protocol = &dataset.protocol;
    let for_imagenet =
        MODELS.iter().any(|model| model.name == given.model && model.family == Family::Imagenet);
    let size = given.size.unwrap_or(if for_imagenet { IMAGENET_SIZE } else { dataset.size });
    let size = opened.map_or(size, |opened| opened.size);
    let scheme = given.memory_scheme.as_deref().unwrap_or(method.memory_scheme);
    let rate = given.rate.as_deref().unwrap_or(method.rate);
    // Activations that are mixed take the place of images that are.
    let cutmix = if (method.keys.mixes)(own) { 0.0 } else { method.cutmix };
    let policy = if size < SMALL { Policy::Cifar10 } else { Policy::Imagenet };
    Ok(Settled {
        method,
        tasks: tasks(given, opened.map_or(dataset.classes, |opened| Some(opened.classes.len()))),
        holdout: given.holdout.or(opened.and_then(|opened| opened.findings.holdout)),
        label: given.label.clone().unwrap_or_else(|| method.name.to_owned()),
        size,
        memory: if scheme == "none" { 0 } else { given.memory.unwrap_or(protocol.memory) },
        memory_scheme: scheme.to_owned(),
        imp_period: given.imp_period.unwrap_or(protocol.imp_period),
        rate: rate.to_owned(),
        batch: given.batch.unwrap_or(protocol.batch),
        updates: given.updates.unwrap_or(protocol.updates),
        lr: given.lr.unwrap_or(method.lr),
        head_keep_adam: given.head_keep_adam.unwrap_or(method.keep_adam),
        average: given.average.unwrap_or(method.average),
        asymmetric: given.asymmetric.unwrap_or(method.asymmetric),
        autoaugment: given.autoaugment.unwrap_or(opened.map_or(policy, |opened| opened.policy)),
        mean: given.mean.unwrap_or(opened.map_or([0.5; 3], |opened| opened.mean)),
        std: given.std.unwrap_or(opened.map_or([0.25; 3], |opened| opened.std)),
        pad_crop: given.pad_crop.unwrap_or(opened.map_or(size / 8, |opened| opened.padding)),
        cutmix_prob: given.cutmix_prob.unwrap_or(cutmix),
        eval_period: given.eval_period.unwrap_or(protocol.eval_period),
    })
}

/// How many tasks there are: what is learned beside what was known before, or without order, is one.
fn tasks(given: &Settings, classes: Option<usize>) -> usize {
    if given.scenario == Scenario::Shuffled {
        return 1;
    }
    let most = [classes, given.classes].into_iter().flatten().min().unwrap_or(USUAL_TASKS);
    given.tasks.unwrap_or(if given.from.is_some() { 1 } else { USUAL_TASKS.min(most).max(1) })
}

impl Settings {
    /// Keys left open whose values only the data know, and the checksum of a file that nobody has opened.
    fn left_to_the_data(&self) -> Result<Vec<&'static str>> {
        // Classes and halves of one's own images are not known beforehand.
        let own = data::info(&self.dataset)?.classes.is_none();
        let open = [
            ("tasks", own && self.tasks.is_none()),
            ("holdout", own && self.holdout.is_none()),
            ("autoaugment", self.autoaugment.is_none()),
            ("mean", self.mean.is_none()),
            ("std", self.std.is_none()),
            ("pad_crop", self.pad_crop.is_none()),
            ("from_checksum", self.from.is_some() && self.from_checksum.is_none()),
        ];
        Ok(open.into_iter().filter_map(|(key, open)| open.then_some(key)).collect())
    }
}

impl Setup {
    /// The method's own keys.
    ///
    /// # Panics
    /// When they are not the keys that the method's registry entry names.
    pub fn own<T: Keys>(&self) -> T {
        T::read(self.own.clone()).expect("a method reads the keys that its entry names, which were checked")
    }

    /// The network.
    ///
    /// # Errors
    /// When no network has that name or the width cannot be had.
    pub fn architecture(&self) -> Result<Architecture> {
        Architecture::named(&self.model, self.width, self.bn_eps, self.bn_momentum)
    }

    /// Whether only the data know the value of a key, and nobody has opened them: it then has a stand-in, which is not
    /// recorded.
    pub fn is_open(&self, key: &str) -> bool {
        self.open.contains(&key)
    }

    /// Whether memory or rate ask for the losses of stored samples, so that `imp_period` says how often.
    pub fn measures_losses(&self) -> bool {
        let memory = Memory::new(&self.memory_scheme, 0, self.seed);
        let rate = rate::build(self);
        memory.is_ok_and(|memory| memory.needs_losses()) || rate.is_ok_and(|rate| rate.needs_losses())
    }

    /// Every key with its value, the method's own in a table of its name: what is recorded of a run. A key that says
    /// nothing about it is left out.
    pub fn to_table(&self) -> Table {
        let mut table = self.table().expect("a setup was checked, so TOML has a form for every value");
        table.retain(|key, _| !self.is_open(key));
        if !self.measures_losses() {
            table.remove("imp_period");
        }
        if !self.own.is_empty() {
            table.insert(self.method.section.to_owned(), self.own.clone().into());
        }
        table
    }

    /// The same as TOML text.
    pub fn to_toml(&self) -> String {
        super::text(&self.to_table())
    }

    /// The configuration that says all this.
    pub fn config(&self) -> Config {
        Config::from_table(self.to_table()).expect("what a setup writes is a configuration")
    }
}

impl Value for &'static MethodInfo {
    fn kind() -> Kind {
        Kind::Choice(methods::all().iter().map(|info| info.name).collect())
    }

    fn read(value: &toml::Value) -> Option<Self> {
        methods::find(value.as_str()?).ok()
    }

    fn written(&self) -> Result<Option<toml::Value>, String> {
        Ok(Some(self.name.into()))
    }
}

/// A method's table of own keys, as the registry knows it.
#[derive(Clone, Copy)]
pub struct OwnKeys {
    /// Every key there is, with its default.
    pub list: fn() -> Vec<super::Key>,
    /// Whether, with these keys, training activations are mixed: images are then not.
    pub mixes: fn(&Table) -> bool,
    read: fn(Table) -> Result<Table>,
}

impl OwnKeys {
    /// Those of a method that has none.
    pub const NONE: Self = Self {
        list: Vec::new,
        mixes: |_| false,
        read: |table| match table.keys().next() {
            Some(key) => Err(Error::UnknownKey { key: key.clone(), known: Vec::new() }),
            None => Ok(table),
        },
    };

    /// Those that a struct declares.
    pub const fn of<T: Keys>() -> Self {
        Self { list: T::keys, mixes: |_| false, read: complete::<T> }
    }

    /// The same for a method that can mix activations.
    pub const fn mixing(self, mixes: fn(&Table) -> bool) -> Self {
        Self { mixes, ..self }
    }

    /// The table called `section` with every key in it, checked; errors name the table.
    pub(super) fn complete(&self, section: &str, mut table: Table) -> Result<Table> {
        let whole = super::spelling::renew_keys(&mut table, &(self.list)()).and_then(|()| (self.read)(table));
        whole.map_err(|error| match error {
            Error::BadKey { key, problem } => Error::bad_key(format!("{section}.{key}"), problem),
            Error::UnknownKey { key, known } => Error::UnknownKey {
                key: format!("{section}.{key}"),
                known: known.into_iter().map(|known| format!("{section}.{known}")).collect(),
            },
            Error::UnknownValue { key, name, known } => {
                Error::UnknownValue { key: format!("{section}.{key}"), name, known }
            }
            error => error,
        })
    }
}

fn complete<T: Keys>(table: Table) -> Result<Table> {
    let keys = T::read(table)?;
    Declared::check(&keys)?;
    keys.table()
}
