//! What is declared of a configuration key: name, meaning, kind of value, default, range, flag, role, old spellings.
//!
//! A struct of keys is declared once, with [`keys!`](super::declare::keys); everything else about a key (reading and
//! writing it, refusing values out of range, flags, lists, which runs are compared) is derived from the [`Key`]s that
//! the declaration gives.

use super::{range::Range, value::Kind};

/// One key of a configuration.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its name in files, in `--set` and in records.
    pub name: &'static str,
    /// What it says, in a line.
    pub help: String,
    /// What values it takes.
    pub kind: Kind,
    /// Its value where nobody gives one.
    pub default: Standard,
    /// Which numbers can be run.
    pub range: Range,
    /// Its flag on the command line, if it has one of its own.
    pub flag: Option<Flag>,
    /// What it changes.
    pub role: Role,
    /// Old spellings, still read.
    pub aliases: &'static [&'static str],
    /// Values that had another name before, still read: the old name and today's.
    pub old_values: &'static [(&'static str, &'static str)],
    /// What a record stands for that lacks it: it came later than the first records.
    pub absent: Option<toml::Value>,
}

/// The value of a key where nobody gives one.
#[derive(Clone, Debug, PartialEq)]
pub enum Standard {
    /// Always the same.
    Value(toml::Value),
    /// Something else says, such as the data set.
    Of(&'static str),
    /// There is none.
    Nothing,
}

/// What a key changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Which stream is learned: runs that differ here are not compared.
    Stream,
    /// How it is learned: runs that differ here are compared, and never averaged.
    Learning,
    /// What the learner began with; sets runs apart as [`Role::Learning`] does.
    Origin,
    /// What the run is called.
    Name,
    /// Nothing that is learned, though another value is another run.
    Incidental,
    /// Nothing but where files lie and how the machine is used: another value is still the same run.
    Surroundings,
}

impl Role {
    /// Whether runs that differ here may not be averaged.
    pub fn sets_groups_apart(self) -> bool {
        matches!(self, Self::Learning | Self::Origin)
    }
}

/// A flag of the command line. Its long name is the key's, with hyphens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flag {
    /// Under which heading it is listed.
    pub heading: Heading,
    /// What its value is called; empty for switches.
    pub value: &'static str,
    /// Further long names, those of the i-Blurry family of programs.
    pub aliases: &'static [&'static str],
}

/// Headings that flags are listed under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heading {
    /// How it is learned.
    Learning,
    /// What is learned.
    Stream,
    /// With which network.
    Network,
}

impl Heading {
    /// The heading itself.
    pub fn name(self) -> &'static str {
        match self {
            Self::Learning => "Learning",
            Self::Stream => "Stream",
            Self::Network => "Network",
        }
    }
}

impl Key {
    /// A key that changes how it is learned, takes any value and has no flag; `help` is its doc comment, line by line.
    #[must_use]
    pub fn new(name: &'static str, help: &[&str]) -> Self {
        let help = help.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        Self {
            name,
            help: help.trim_end_matches('.').to_owned(),
            kind: Kind::Text,
            default: Standard::Nothing,
            range: Range::default(),
            flag: None,
            role: Role::Learning,
            aliases: &[],
            old_values: &[],
            absent: None,
        }
    }

    /// It is called otherwise than the field that holds it.
    #[must_use]
    pub fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    /// It had these names before.
    #[must_use]
    pub fn once(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// Some of its values had other names before: the old name and today's.
    #[must_use]
    pub fn once_valued(self, old_values: &'static [(&'static str, &'static str)]) -> Self {
        Self { old_values, ..self }
    }

    /// Something else says its value where nobody gives one.
    pub(crate) fn unless_given(self, whose: &'static str) -> Self {
        Self { default: Standard::Of(whose), ..self }
    }

    /// It takes one of these names.
    #[must_use]
    pub fn one_of(self, names: impl IntoIterator<Item = &'static str>) -> Self {
        Self { kind: Kind::Choice(names.into_iter().collect()), ..self }
    }

    /// The smallest value.
    #[must_use]
    pub fn at_least(self, least: impl Into<f64>) -> Self {
        Self { range: self.range.at_least(least.into()), ..self }
    }

    /// What every value is above.
    #[must_use]
    pub fn above(self, bound: impl Into<f64>) -> Self {
        Self { range: self.range.above(bound.into()), ..self }
    }

    /// The largest value.
    #[must_use]
    pub fn at_most(self, most: impl Into<f64>) -> Self {
        Self { range: self.range.at_most(most.into()), ..self }
    }

    /// A largest value that nobody comes near, and why there is one: it is told to those who ask for more.
    #[must_use]
    pub fn capped(self, most: impl Into<f64>, reason: &'static str) -> Self {
        Self { range: self.range.capped(most.into(), reason), ..self }
    }

    /// What every value is below.
    #[must_use]
    pub fn below(self, bound: impl Into<f64>) -> Self {
        Self { range: self.range.below(bound.into()), ..self }
    }

    /// It is listed as a flag.
    pub(crate) fn flag(self, heading: Heading, value: &'static str) -> Self {
        Self { flag: Some(Flag { heading, value, aliases: &[] }), ..self }
    }

    /// Its flag has further long names.
    pub(crate) fn flag_aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { flag: self.flag.map(|flag| Flag { aliases, ..flag }), ..self }
    }

    /// What it changes, if not how it is learned.
    pub(crate) fn role(self, role: Role) -> Self {
        Self { role, ..self }
    }

    /// It came later than the first records; those without it stand for this value.
    #[must_use]
    pub fn absent_as(self, value: impl Into<toml::Value>) -> Self {
        Self { absent: Some(value.into()), ..self }
    }

    /// Its flag's long name.
    pub fn long(&self) -> String {
        self.name.replace('_', "-")
    }

    /// Its default, for people.
    pub fn default_text(&self) -> String {
        match &self.default {
            Standard::Value(toml::Value::String(text)) => text.clone(),
            Standard::Value(value) => value.to_string(),
            Standard::Of(whose) => (*whose).to_owned(),
            Standard::Nothing => "none".to_owned(),
        }
    }

    /// What values it takes, for people.
    pub fn values_text(&self) -> String {
        match self.range.text() {
            Some(range) => format!("{}, {range}", self.kind),
            None => self.kind.to_string(),
        }
    }
}
