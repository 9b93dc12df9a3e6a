//! Layers of configuration: a file or preset, the flags over it, `--set` over those. Each is a table of keys; a later
//! layer wins key by key. What keys mean is checked elsewhere, once, on the merged table.

use std::{fs::File, io::Read as _, path::Path};

use anyhow::Context;
use dpcl::data;
use dpcl_report::record::CONFIG_FILE;
use toml::{Table, Value};

use crate::{failure::Usage, meant, presets};

/// A configuration as asked for: its table and the name its runs are filed under unless they are given another.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// The preset's name or the file's stem.
    pub name: String,
    /// Its keys.
    pub table: Table,
}

/// Reads a preset by name or a file by path. A file wins where both exist only if it is written as a path.
pub fn read(asked: &str) -> anyhow::Result<Source> {
    if let Some(preset) = presets::find(asked) {
        return Ok(Source { name: preset.name.into(), table: parse(preset.text, asked)? });
    }
    let path = Path::new(asked);
    if path.is_dir() {
        return of_images(path);
    }
    if !path.exists() {
        let problem = format!("there is no preset and no file called `{asked}`");
        let hint = format!(
            "presets: {}; or give the path of a TOML file or of a folder of images",
            presets::names().join(", ")
        );
        let hint = meant::asked(meant::closest(asked, &presets::names()), Some(hint)).unwrap_or_default();
        return Err(Usage::with_hint(problem, hint).into());
    }
    let text = read_text(path).with_context(|| format!("cannot read {}", path.display()))?;
    let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    Ok(Source { name: name.unwrap_or_else(|| asked.to_owned()), table: parse(&text, asked)? })
}

/// A file's text, as far as is needed to see that it is too long for a configuration.
fn read_text(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(dpcl::config::LONGEST as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}

/// A folder of images is the configuration that learns it; the folder lends its name.
fn of_images(path: &Path) -> anyhow::Result<Source> {
    if path.join(CONFIG_FILE).exists() {
        let hint =
            format!("to go on with it: --resume {0}; to begin with its learner: --from {0}", path.display());
        return Err(Usage::with_hint(format!("{} is the folder of a run", path.display()), hint).into());
    }
    let info = data::recognise(path)?;
    let text = path.to_str().ok_or_else(|| Usage::new("a folder's path must be valid Unicode"))?;
    let table = [("dataset", info.name), ("data_dir", text)].map(|(key, value)| (key.into(), value.into()));
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = whole.file_name().map(|name| name.to_string_lossy().trim_start_matches('.').to_owned());
    let name = name.filter(|name| !name.is_empty()).unwrap_or_else(|| info.name.to_owned());
    Ok(Source { name, table: Table::from_iter(table) })
}

/// The keys in a text, in today's spelling.
fn parse(text: &str, origin: &str) -> anyhow::Result<Table> {
    if text.len() > dpcl::config::LONGEST {
        let problem = format!("{origin}: more than {} bytes are no configuration", dpcl::config::LONGEST);
        return Err(Usage::with_hint(problem, "give a TOML file of `key = value` lines").into());
    }
    let mut table = text.parse::<Table>().map_err(|error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        Usage::with_hint(
            format!("{origin}, line {line}: {}", error.message()),
            "a configuration is TOML: `key = value` lines, strings in double quotes",
        )
    })?;
    dpcl::config::renew(&mut table).with_context(|| origin.to_owned())?;
    Ok(table)
}

/// Lays what was said on the command line over a file or preset. A network named there comes with its own width and
/// image size: those of the network below it go.
pub fn lay_over_source(below: &mut Table, above: Table) {
    if above.contains_key("model") {
        below.remove("width");
        below.remove("size");
    }
    lay(below, above);
}

/// Lays `above` over `below`, tables key by key. `seed` and `seeds` are two ways to say one thing, so either replaces
/// the other.
pub fn lay(below: &mut Table, above: Table) {
    for (one, other) in [("seed", "seeds"), ("seeds", "seed")] {
        if above.contains_key(one) && !above.contains_key(other) {
            below.remove(other);
        }
    }
    merge(below, above);
}

fn merge(below: &mut Table, above: Table) {
    for (key, value) in above {
        match (below.get_mut(&key), value) {
            (Some(Value::Table(below)), Value::Table(above)) => merge(below, above),
            (_, value) => {
                below.insert(key, value);
            }
        }
    }
}

/// Takes a string out of a table.
pub fn take_text(table: &mut Table, key: &str) -> anyhow::Result<Option<String>> {
    match table.remove(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(dpcl::Error::bad_key(key, "must be a string").into()),
    }
}

/// Reads a `key=value` assignment with a dotted key, in today's spelling. A value that is not TOML is taken as a bare
/// string.
pub fn assignment(assignment: &str) -> anyhow::Result<Table> {
    let Some((key, value)) = assignment.split_once('=') else {
        let problem = format!("`--set {assignment}` has no `=`");
        return Err(Usage::with_hint(problem, "write `--set key=value`, as in `--set lr=0.001`").into());
    };
    let parts: Vec<&str> = key.trim().split('.').collect();
    if parts.iter().any(|part| part.is_empty()) {
        return Err(Usage::new(format!("`--set {assignment}` has an empty key")).into());
    }
    let value = parts.iter().rev().fold(value_of(value.trim()), |value, part| {
        Value::Table(Table::from_iter([((*part).to_owned(), value)]))
    });
    let Value::Table(mut assigned) = value else { return Ok(Table::new()) };
    dpcl::config::renew(&mut assigned)?;
    Ok(assigned)
}

/// Whether a text is a TOML value as it stands.
pub fn is_toml(text: &str) -> bool {
    toml_value(text.trim()).is_some()
}

fn value_of(text: &str) -> Value {
    toml_value(text).unwrap_or_else(|| Value::String(text.to_owned()))
}

fn toml_value(text: &str) -> Option<Value> {
    let parsed = format!("value = {text}").parse::<Table>().ok();
    // A line break would let one assignment smuggle in further keys.
    parsed.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Table {
        text.parse().unwrap()
    }

    fn assignments(list: &[&str]) -> Table {
        let mut table = Table::new();
        list.iter().for_each(|text| lay(&mut table, assignment(text).unwrap()));
        table
    }

    #[test]
    fn later_layers_win_key_by_key() {
        let mut below = table("lr = 0.1\nbatch = 16\n[er]\na = 1\nb = 2");
        lay(&mut below, table("lr = 0.2\n[er]\nb = 3"));
        assert_eq!(below, table("lr = 0.2\nbatch = 16\n[er]\na = 1\nb = 3"));
    }

    #[test]
    fn one_seed_replaces_a_list_of_seeds_and_back() {
        let mut below = table("seeds = [1, 2]");
        lay(&mut below, table("seed = 7"));
        assert_eq!(below, table("seed = 7"));
        lay(&mut below, table("seeds = '1..3'"));
        assert_eq!(below, table("seeds = '1..3'"));
    }

    #[test]
    fn a_network_named_above_comes_with_its_own_width_and_size() {
        let mut below = table("model = 'resnet18'\nwidth = 12\nsize = 28\nlr = 0.1");
        lay_over_source(&mut below, table("lr = 0.2"));
        assert_eq!(below, table("model = 'resnet18'\nwidth = 12\nsize = 28\nlr = 0.2"));
        lay_over_source(&mut below, table("model = 'slim'\nsize = 32"));
        assert_eq!(below, table("model = 'slim'\nsize = 32\nlr = 0.2"));
        let said = assignments(&["width=8", "model=slim"]);
        assert_eq!(said, table("width = 8\nmodel = 'slim'"));
    }

    #[test]
    fn both_names_of_a_key_mean_the_same_key() {
        let mut below = parse("updates = 1.0\n[dpcl]\nmi_pass = 'train'", "a file").unwrap();
        lay(&mut below, assignments(&["updates_per_sample=2", "dpcl.disagreement_pass=clean"]));
        assert_eq!(below, table("updates = 2\n[dpcl]\ndisagreement_pass = 'clean'"));
        let mut below = parse("updates_per_sample = 2", "a file").unwrap();
        lay(&mut below, table("updates = 3"));
        assert_eq!(below, table("updates = 3"));
        let both = parse("updates = 1.0\nupdates_per_sample = 2", "a file").unwrap_err();
        assert!(format!("{both:#}").contains("only one of the two"), "{both:#}");
    }

    #[test]
    fn assignments_read_toml_values_dotted_keys_and_bare_strings() {
        let list =
            ["lr=0.5", "er.window = 3", "er.name=x y", "rate=constant", "mean=[0.5, 0.5, 0.5]", "split=a=b"];
        let read = assignments(&list);
        let expected = "lr = 0.5\nrate = 'constant'\nmean = [0.5, 0.5, 0.5]\nsplit = 'a=b'\n\
                        [er]\nwindow = 3\nname = 'x y'";
        assert_eq!(read, table(expected));
    }

    #[test]
    fn an_assignment_sets_one_key_only() {
        let read = assignments(&["lr=1\nbatch=2"]);
        assert_eq!(read.keys().collect::<Vec<_>>(), ["lr"]);
    }

    #[test]
    fn a_wrong_line_is_named() {
        let error = parse("lr = 1\nbatch = = 2\n", "my.toml").unwrap_err();
        assert!(error.to_string().starts_with("my.toml, line 2:"), "{error}");
    }
}
