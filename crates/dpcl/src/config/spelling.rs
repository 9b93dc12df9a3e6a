//! Old spellings of keys and of values: read everywhere, written nowhere.

use toml::{Table, Value};

use super::{Key, Keys, Settings};
use crate::{
    error::{Error, Result},
    methods,
};

/// Gives every key of a configuration, and every value, the name it has today, in the methods' own tables too.
///
/// # Errors
/// When a table has a key under two names.
pub fn renew(table: &mut Table) -> Result<()> {
    renew_keys(table, &Settings::keys())?;
    for method in methods::all() {
        if let Some(Value::Table(section)) = table.get_mut(method.section) {
            renew_keys(section, &(method.keys.list)()).map_err(|error| match error {
                Error::BadKey { key, problem } => {
                    Error::bad_key(format!("{}.{key}", method.section), problem)
                }
                error => error,
            })?;
        }
    }
    Ok(())
}

/// Adds to a recorded configuration what it says by lacking keys that came later. A method's keys are missed only where
/// it has a table.
pub(super) fn add_absent(table: &mut Table) {
    let add = |table: &mut Table, keys: Vec<Key>| {
        for key in keys {
            let named =
                |table: &Table| [key.name].iter().chain(key.aliases).any(|name| table.contains_key(*name));
            if let Some(value) = key.absent.clone().filter(|_| !named(table)) {
                table.insert(key.name.to_owned(), value);
            }
        }
    };
    add(table, Settings::keys());
    for method in methods::all() {
        if let Some(Value::Table(section)) = table.get_mut(method.section) {
            add(section, (method.keys.list)());
        }
    }
}

/// Gives the keys of one table and their values the names they have today.
pub(super) fn renew_keys(table: &mut Table, keys: &[Key]) -> Result<()> {
    for key in keys {
        for alias in key.aliases {
            let Some(value) = table.remove(*alias) else { continue };
            if table.contains_key(key.name) {
                let problem = format!("is another name of `{}`; give only one of the two", key.name);
                return Err(Error::bad_key(*alias, problem));
            }
            table.insert(key.name.to_owned(), value);
        }
        if let Some(Value::String(value)) = table.get_mut(key.name)
            && let Some((_, today)) = key.old_values.iter().find(|(old, _)| value == old)
        {
            *value = (*today).to_owned();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn renewed(text: &str) -> Result<Table, String> {
        let mut table = text.parse().unwrap();
        renew(&mut table).map(|()| table).map_err(|error| error.to_string())
    }

    #[test]
    fn old_names_are_todays_names() {
        let old =
            "updates_per_sample = 2.0\nrm_rebuild = true\n[dpcl]\nmi_pass = 'clean'\nmi_heads = 'current'";
        let new = "updates = 2.0\nrebuild = true\n[dpcl]\ndisagreement_pass = 'clean'\ndisagreement_heads = 'current'";
        assert_eq!(renewed(old), Ok(new.parse().unwrap()));
        assert_eq!(renewed(new), Ok(new.parse().unwrap()));
        assert_eq!(Config::from_toml(old).unwrap(), Config::from_toml(new).unwrap());
    }

    #[test]
    fn one_value_has_one_name() {
        let error = renewed("updates = 1.0\nupdates_per_sample = 2.0").unwrap_err();
        assert!(error.contains("`updates_per_sample`") && error.contains("only one"), "{error}");
        let error = renewed("[dpcl]\nmi_pass = 'clean'\ndisagreement_pass = 'clean'").unwrap_err();
        assert!(error.contains("`dpcl.mi_pass`") && error.contains("`disagreement_pass`"), "{error}");
    }

    #[test]
    fn a_memory_that_was_called_otherwise_is_the_same() {
        let scheme = |text: &str| Config::from_toml(text).unwrap().check().unwrap().memory_scheme;
        assert_eq!(scheme("memory_scheme = 'rm'"), "balanced");
        assert_eq!(scheme("memory_scheme = 'balanced'"), "balanced");
        assert_eq!(renewed("memory_scheme = 'rm'"), renewed("memory_scheme = 'balanced'"));
    }

    #[test]
    fn what_a_record_says_by_lacking_a_key_is_read() {
        let record = |text: &str| Config::from_recorded_toml(text).unwrap();
        let settings = record("method = 'er'").settings;
        assert_eq!((settings.rebuild, settings.average), (false, Some(0)));
        let settings = record("method = 'ewc++'\nrm_rebuild = true\naverage = 100").settings;
        assert_eq!((settings.rebuild, settings.average), (true, Some(100)));
    }
}
