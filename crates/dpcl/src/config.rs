//! One run's configuration: read from TOML, overridden key by key, settled, checked.
//!
//! A [`Config`] is what somebody wrote: keys common to all methods are fields of [`Settings`], a method's own keys live
//! in a table of its name. [`Config::check`] turns it into a [`Setup`], where every key has its value and nothing is
//! left to refuse; everything that runs takes a setup. What there is to know about a key is declared once, where the
//! key is ([`Key`]).

mod check;
mod declare;
mod key;
mod range;
mod settings;
mod setup;
mod spelling;
mod value;

pub use declare::keys;
pub use declare::{Declared, Keys, Part};
pub use key::{Flag, Heading, Key, Role, Standard};
pub use range::Range;
pub use settings::{Settings, Setup};
pub use setup::OwnKeys;
use spelling::add_absent;
pub use spelling::renew;
pub(crate) use value::choices;
pub use value::{Kind, Value};

use std::collections::BTreeMap;

use toml::Table;

use crate::{
    error::{Error, Result},
    methods,
};

/// A configuration as written: the common keys and one table a method.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// Keys common to all methods.
    pub settings: Settings,
    /// Tables of method-specific keys, by section name.
    pub sections: BTreeMap<String, Table>,
}

impl Config {
    /// Reads a configuration from a table, in today's spelling or an older one. A method's own keys are looked at when
    /// the configuration is checked.
    ///
    /// # Errors
    /// When a key is unknown, has a value of another kind or is there under two names.
    pub fn from_table(mut table: Table) -> Result<Self> {
        renew(&mut table)?;
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
        Ok(Self { settings: Settings::read(table)?, sections })
    }

    /// Reads the configuration of a record or a checkpoint, which names every key there was when it was made.
    ///
    /// # Errors
    /// As for [`Config::from_table`].
    pub fn from_record(mut table: Table) -> Result<Self> {
        add_absent(&mut table);
        Self::from_table(table)
    }

    /// Reads a configuration from TOML text.
    ///
    /// # Errors
    /// When it is not TOML or as for [`Config::from_table`].
    pub fn from_toml(text: &str) -> Result<Self> {
        Self::from_table(parse(text)?)
    }

    /// Reads the configuration of a record or a checkpoint from TOML text.
    ///
    /// # Errors
    /// As for [`Config::from_toml`].
    pub fn from_recorded_toml(text: &str) -> Result<Self> {
        Self::from_record(parse(text)?)
    }

    /// The configuration as a table, method sections included.
    ///
    /// # Errors
    /// When TOML has no form for a value, which [`Config::check`] would refuse.
    pub fn to_table(&self) -> Result<Table> {
        let mut table = self.settings.table()?;
        table.extend(self.sections.iter().map(|(name, section)| (name.clone(), section.clone().into())));
        Ok(table)
    }

    /// The configuration as TOML text.
    ///
    /// # Errors
    /// As for [`Config::to_table`].
    pub fn to_toml(&self) -> Result<String> {
        self.to_table().map(|table| text(&table))
    }
}

/// Bytes of a configuration at most: hundreds of times what the longest has. Reading one takes fifty times its length.
pub const LONGEST: usize = 1 << 20;

fn parse(text: &str) -> Result<Table> {
    if text.len() > LONGEST {
        let problem = format!("{} bytes are more than any configuration has ({LONGEST})", text.len());
        return Err(Error::BadConfig { problem });
    }
    text.parse().map_err(|error: toml::de::Error| Error::BadConfig { problem: error.message().to_owned() })
}

fn text(table: &Table) -> String {
    toml::to_string_pretty(table).expect("a table of plain values has a TOML form")
}

/// Whether a folder can be called that on any system, and a line of text hold it.
pub fn is_plain_name(name: &str) -> bool {
    let plain = |letter: char| !letter.is_control() && letter != '/' && letter != '\\';
    !name.is_empty() && !name.starts_with('.') && name.chars().all(plain)
}

/// The role of a recorded key, dotted: a method's own keys say how it is learned.
pub fn role_of(key: &str) -> Role {
    let common = Settings::keys().into_iter().find(|common| common.name == key);
    common.map_or(Role::Learning, |key| key.role)
}
