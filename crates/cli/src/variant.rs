//! Variants: a preset or file that stands for a method in a list of methods, so that one grid compares several
//! settings of one method. It sets keys of the run; those of the grid stay the grid's.

use anyhow::Context;
use toml::{Table, Value};

use crate::{
    failure::Usage,
    keys,
    layers::{self, Source},
    presets,
};

/// One entry of a list of methods.
pub struct Variant {
    /// The method itself.
    pub method: String,
    /// What its runs are called unless something else is said.
    pub label: String,
    /// Keys it comes with; none for a plain method.
    pub keys: Table,
}

/// What `asked` stands for. A name that is nothing is left for the reader of configurations to refuse.
pub fn read(asked: &str) -> anyhow::Result<Variant> {
    let is_method = dpcl::methods::find(asked).is_ok();
    if is_method || (presets::find(asked).is_none() && !is_file(asked)) {
        return Ok(Variant { method: asked.to_owned(), label: asked.to_owned(), keys: Table::new() });
    }
    let Source { name, table: mut keys } = layers::read(asked)?;
    let Some(Value::String(method)) = keys.remove("method") else {
        let problem = format!("`{asked}` cannot stand for a method: it does not name a single one");
        return Err(Usage::with_hint(problem, "it needs one line `method = \"…\"`").into());
    };
    dpcl::methods::find(&method).with_context(|| asked.to_owned())?;
    if let Some(key) = keys::OF_GRIDS.into_iter().find(|key| keys.contains_key(*key)) {
        let problem = format!("`{asked}` cannot stand for a method: it sets `{key}`, which is the grid's");
        return Err(Usage::with_hint(problem, "leave that key out, or say it on the command line").into());
    }
    let label = layers::take_text(&mut keys, "label")?.unwrap_or(name);
    Ok(Variant { method, label, keys })
}

/// Whether the entry names a file, which only paths with this ending do.
pub fn is_file(asked: &str) -> bool {
    asked.ends_with(".toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_of_one_method_stands_for_it() {
        let letter = read("dpcl-literal").unwrap();
        assert_eq!((letter.method.as_str(), letter.label.as_str()), ("dpcl", "dpcl-literal"));
        assert_eq!(letter.keys["memory_scheme"].as_str(), Some("pim"));
        let plain = read("er").unwrap();
        assert_eq!((plain.method.as_str(), plain.keys.len()), ("er", 0));
        assert_eq!(read("nothing").unwrap().method, "nothing");
    }

    #[test]
    fn a_file_lends_its_name_and_may_not_speak_for_the_grid() {
        let folder = tempfile::tempdir().unwrap();
        let label = |text: &str| {
            let path = folder.path().join("mine.toml");
            std::fs::write(&path, text).unwrap();
            read(path.to_str().unwrap()).map(|variant| variant.label).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(label("method = 'er'\nlr = 0.1"), Ok("mine".into()));
        assert_eq!(label("method = 'er'\nlabel = 'slow'"), Ok("slow".into()));
        assert!(label("method = ['er', 'dpcl']").unwrap_err().contains("does not name a single one"));
        assert!(label("lr = 0.1").unwrap_err().contains("does not name a single one"));
        assert!(label("method = 'er'\nseeds = [1]").unwrap_err().contains("sets `seeds`"));
        assert!(label("method = 'era'").unwrap_err().contains("mine.toml"));
    }
}
