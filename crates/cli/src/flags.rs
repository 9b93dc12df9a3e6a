//! Flags that set configuration keys, shared by every command that takes a configuration: one for each key whose
//! declaration has a flag, and those of a grid. They become a table laid over the file's.

use std::{ffi::OsStr, path::PathBuf};

use clap::{
    Arg, ArgAction, ArgMatches, Command,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
    value_parser,
};
use dpcl::{
    Settings,
    config::{Heading, Key, Keys as _, Kind, Role},
};
use toml::{Table, Value};

use crate::{
    layers,
    presets::PRESETS,
    seeds::Seeds,
    sweep::{self, Sweep},
    variant,
};

/// Flags of a run, all optional: what is not given comes from the configuration.
#[derive(Clone, Debug, Default)]
pub struct Flags {
    given: Table,
    swept: Vec<Sweep>,
    set: Vec<String>,
}

/// Flags of a stream alone, for commands that learn nothing.
#[derive(Clone, Debug, Default)]
pub struct StreamFlags(Flags);

impl From<&StreamFlags> for Flags {
    fn from(flags: &StreamFlags) -> Self {
        flags.0.clone()
    }
}

impl Flags {
    /// Keys as if they had been given as flags.
    pub fn of(keys: Table) -> Self {
        Self { given: keys, swept: Vec::new(), set: Vec::new() }
    }

    /// The keys that were given one value, `--set` over the flags.
    pub fn table(&self) -> anyhow::Result<Table> {
        Ok(self.both()?.0)
    }

    /// The keys that were given several.
    pub fn sweeps(&self) -> anyhow::Result<Vec<Sweep>> {
        let sweeps = self.both()?.1;
        sweeps.iter().try_for_each(Sweep::check)?;
        Ok(sweeps)
    }

    fn both(&self) -> anyhow::Result<(Table, Vec<Sweep>)> {
        let (mut table, mut sweeps) = (self.given.clone(), self.swept.clone());
        for assignment in &self.set {
            let one = layers::assignment(assignment)?;
            let key = sweep::dotted(&one);
            sweeps.retain(|sweep| sweep.key != key);
            match Sweep::of_assignment(assignment)? {
                Some(sweep) => sweeps.push(sweep),
                None => layers::lay(&mut table, one),
            }
        }
        // What has several values has no single one below them.
        sweeps.iter().for_each(|sweep| drop(table.remove(&sweep.key)));
        Ok((table, sweeps))
    }

    fn read(matches: &ArgMatches) -> Self {
        let given = |name: &str| matches.try_contains_id(name).unwrap_or(false);
        let mut table = Table::new();
        if given("method")
            && let Some(methods) = matches.get_many::<String>("method")
        {
            table.insert("method".into(), Value::from(methods.cloned().collect::<Vec<_>>()));
        }
        if given("seeds")
            && let Some(Seeds(seeds)) = matches.get_one::<Seeds>("seeds")
        {
            table.insert("seeds".into(), seeds.iter().map(|&seed| seed as i64).collect::<Vec<_>>().into());
        }
        let mut swept = Vec::new();
        if given(DATA)
            && let Some(directories) = matches.get_many::<PathBuf>(DATA)
        {
            // The last is learned; those before it are only tested on.
            let mut before: Vec<Value> =
                directories.map(|path| path.to_string_lossy().into_owned().into()).collect();
            before.pop();
            if !before.is_empty() {
                table.insert("test_dirs".into(), before.into());
            }
        }
        for key in Settings::keys().into_iter().filter(|key| key.flag.is_some() && given(key.name)) {
            let values = values(&key, matches);
            match Sweep::of_flag(key.name, &values) {
                Some(sweep) => swept.push(sweep),
                None => table.extend(values.into_iter().next().map(|value| (key.name.to_owned(), value))),
            }
        }
        let set = matches.get_many::<String>("set").into_iter().flatten().cloned().collect();
        Self { given: table, swept, set }
    }
}

/// The key whose flag can be given several times, which is no sweep.
const DATA: &str = "data_dir";

/// What was given for a key; several values make a sweep.
fn values(key: &Key, matches: &ArgMatches) -> Vec<Value> {
    fn all<T: Clone + Send + Sync + 'static>(
        key: &Key,
        matches: &ArgMatches,
        value: impl Fn(&T) -> Value,
    ) -> Vec<Value> {
        matches.get_many::<T>(key.name).into_iter().flatten().map(value).collect()
    }
    match key.kind {
        Kind::Switch => matches.get_flag(key.name).then(|| true.into()).into_iter().collect(),
        Kind::Count => all(key, matches, |number: &u32| (*number).into()),
        Kind::Number => all(key, matches, |number: &f64| (*number).into()),
        Kind::Path => {
            let paths = all(key, matches, |path: &PathBuf| path.to_string_lossy().into_owned().into());
            paths.into_iter().next_back().into_iter().collect()
        }
        Kind::Text | Kind::Paths | Kind::Numbers(_) | Kind::Counts | Kind::Choice(_) => {
            all(key, matches, |text: &String| text.as_str().into())
        }
    }
}

/// The flag of a key, if its declaration has one.
fn argument(key: &Key) -> Option<Arg> {
    let flag = key.flag?;
    // Where things lie depends on the machine, so that a default is worth a word.
    let help = match key.role {
        Role::Surroundings => format!("{} [default: {}]", key.help, key.default_text()),
        _ => key.help.clone(),
    };
    let argument = Arg::new(key.name)
        .long(key.long())
        .aliases(flag.aliases)
        .help_heading(flag.heading.name())
        .help(help)
        .hide_possible_values(true);
    let valued = |argument: Arg| argument.value_name(flag.value);
    let several = |argument: Arg| valued(argument).value_delimiter(',');
    Some(match &key.kind {
        Kind::Switch => argument.action(ArgAction::SetTrue),
        Kind::Count => several(argument).value_parser(value_parser!(u32)),
        Kind::Number => several(argument).value_parser(value_parser!(f64)),
        Kind::Path if key.name == DATA => {
            valued(argument).action(ArgAction::Append).value_parser(value_parser!(PathBuf))
        }
        Kind::Path => valued(argument).value_parser(value_parser!(PathBuf)),
        Kind::Choice(names) => several(argument).value_parser(one_of(names, key.old_values)),
        Kind::Text | Kind::Paths | Kind::Numbers(_) | Kind::Counts => valued(argument),
    })
}

/// Takes one of the names that a kind of value has.
pub fn choice<T: dpcl::config::Value>() -> PossibleValuesParser {
    match T::kind() {
        Kind::Choice(names) => one_of(&names, &[]),
        _ => one_of(&[], &[]),
    }
}

/// Takes one of these names, or an old one: `old` has each with the name it has today.
fn one_of(names: &[&'static str], old: &[(&'static str, &'static str)]) -> PossibleValuesParser {
    let once = |name: &'static str| old.iter().filter(move |(_, today)| *today == name).map(|(old, _)| *old);
    PossibleValuesParser::new(names.iter().map(|name| PossibleValue::new(*name).aliases(once(name))))
}

fn methods_argument() -> Arg {
    Arg::new("method")
        .long("method")
        .alias("mode")
        .value_name("METHOD")
        .value_delimiter(',')
        .action(ArgAction::Append)
        .value_parser(methods())
        .hide_possible_values(true)
        .help_heading(Heading::Learning.name())
        .help("How to learn; several, with commas, are compared. A preset or TOML file of one method counts as one")
}

fn seeds_argument(what: &str) -> Arg {
    Arg::new("seeds")
        .long("seeds")
        .aliases(["seed", "rnd_seed"])
        .value_name("SEEDS")
        .value_parser(value_parser!(Seeds))
        .help(format!("One {what} a seed: `1..3` (inclusive) or `1,2,5`"))
}

fn set_argument(example: &str) -> Arg {
    Arg::new("set")
        .long("set")
        .value_name("KEY=VALUE")
        .action(ArgAction::Append)
        .help_heading("Configuration")
        .help(format!("Set any key, as in `--set {example}`"))
}

/// Flags of keys, heading by heading.
fn under(headings: &[Heading]) -> Vec<Arg> {
    let keys = Settings::keys();
    let of = |heading: &Heading| {
        let keys = keys.iter().filter(|key| key.flag.is_some_and(|flag| flag.heading == *heading));
        keys.filter_map(argument).collect::<Vec<_>>()
    };
    headings.iter().flat_map(of).collect()
}

impl clap::Args for Flags {
    fn augment_args(command: Command) -> Command {
        command
            .arg(methods_argument())
            .arg(seeds_argument("run").help_heading(Heading::Learning.name()))
            .args(under(&[Heading::Learning, Heading::Stream, Heading::Network]))
            .arg(set_argument("lr=0.001`; several values make a grid: `lr=0.01,0.001"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self::read(matches))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::read(matches);
        Ok(())
    }
}

impl clap::Args for StreamFlags {
    fn augment_args(command: Command) -> Command {
        command
            .arg(seeds_argument("stream"))
            .args(under(&[Heading::Stream]))
            .arg(set_argument("blurry_order=chunk-last"))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for StreamFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self(Flags::read(matches)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
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
        command: &Command,
        argument: Option<&Arg>,
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
