//! Which runs a command asks for: configurations × methods × seeds, each with its own folder. Reads the keys that
//! speak about the grid as a whole; those of a single run are the library's.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::Context;
use dpcl::{Config, Setup, data, folder::RunFolder};
use toml::{Table, Value};

use crate::{
    failure::Usage,
    flags::Flags,
    further, keys,
    layers::{self, Source},
    scenario,
    seeds::Seeds,
    sweep::{self, Point, Sweep},
    told,
    variant::{self, Variant},
};

/// What the command line says about the grid as a whole.
#[derive(Clone, Debug, Default)]
pub struct Wishes {
    /// Parent of all records.
    pub out: Option<PathBuf>,
    /// Folder of the grid's records under it.
    pub name: Option<String>,
    /// Runs at a time.
    pub jobs: Option<usize>,
    /// Threads of each run.
    pub threads: Option<usize>,
    /// A checkpoint to begin with.
    pub from: Option<PathBuf>,
}

/// One run to be made.
#[derive(Clone, Debug)]
pub struct Planned {
    /// `<label>-seed<k>`.
    pub title: String,
    /// Where its record goes.
    pub folder: RunFolder,
    /// Its configuration as it was asked for: what is left open, the run settles with its data.
    pub config: Config,
    /// The same, settled as far as can be without data.
    pub setup: Setup,
}

/// Every run asked for, in order.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The runs.
    pub runs: Vec<Planned>,
    /// Folders that hold the runs' folders, each once.
    pub folders: Vec<PathBuf>,
    /// Runs at a time, if anybody said.
    pub jobs: Option<usize>,
    /// Threads a run, if anybody said.
    pub threads: Option<usize>,
    /// Keys that somebody gave, dotted: on the command line or in a file of their own.
    pub given: Vec<String>,
}

/// Reads the configurations, lays the flags over each, and multiplies out.
pub fn plan(asked: &[String], flags: &Flags, wishes: &Wishes) -> anyhow::Result<Grid> {
    let mut sources = asked.iter().map(|asked| layers::read(asked)).collect::<anyhow::Result<Vec<_>>>()?;
    if let Some(from) = &wishes.from {
        let below = further::keys(from)?;
        if sources.is_empty() {
            sources.push(Source { name: further::NAME.into(), table: Table::new() });
        }
        for source in &mut sources {
            let above = std::mem::replace(&mut source.table, below.clone());
            layers::lay(&mut source.table, above);
        }
    }
    if sources.is_empty() {
        sources.push(layers::read("default")?);
    }
    let grid = lay_out(&sources, asked, flags, wishes, Labels::Methods)?;
    let Err(shared) = refuse_shared_folders(&grid.runs) else { return Ok(grid) };
    if sources.len() == 1 {
        return Err(shared);
    }
    let grid = lay_out(&sources, asked, flags, wishes, Labels::Sources)?;
    refuse_shared_folders(&grid.runs).map_err(|_| shared)?;
    Ok(grid)
}

/// How runs without a `label` are called.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Labels {
    /// By their method.
    Methods,
    /// By their configuration's name as well: several of one folder have the same methods.
    Sources,
}

fn lay_out(
    sources: &[Source],
    asked: &[String],
    flags: &Flags,
    wishes: &Wishes,
    labels: Labels,
) -> anyhow::Result<Grid> {
    let Wishes { jobs, threads, .. } = *wishes;
    let mut grid = Grid { runs: Vec::new(), folders: Vec::new(), jobs, threads, given: Vec::new() };
    for (position, source) in sources.iter().enumerate() {
        let own = asked.get(position).filter(|asked| crate::presets::find(asked).is_none());
        if own.is_some() && wishes.from.is_none() {
            grid.given.extend(told::keys(&source.table));
        }
        let added = add(&mut grid, source.clone(), flags, wishes, labels);
        // A preset is right by itself: what is wrong was said in a flag.
        match own {
            Some(asked) => added.with_context(|| asked.clone())?,
            None => added?,
        }
    }
    Ok(grid)
}

fn add(
    grid: &mut Grid,
    source: Source,
    flags: &Flags,
    wishes: &Wishes,
    labels: Labels,
) -> anyhow::Result<()> {
    let Source { name: stem, table: below } = source;
    let above = flags.table()?;
    let sweeps = flags.sweeps()?;
    grid.given.extend(told::keys(&above).into_iter().chain(sweeps.iter().map(|sweep| sweep.key.clone())));
    let mut chosen = above.clone();
    sweeps.iter().for_each(|sweep| layers::lay(&mut chosen, sweep.values[0].clone()));
    let mut table = laid(&below, &Table::new(), &chosen)?;

    let methods = methods(&mut table)?;
    let variants = methods.iter().map(|name| variant::read(name)).collect::<anyhow::Result<Vec<_>>>()?;
    let seeds = seeds(&mut table)?;
    let name = wishes.name.clone().or(layers::take_text(&mut table, "name")?).unwrap_or_else(|| stem.clone());
    if !dpcl::config::is_plain_name(&name) {
        return Err(dpcl::Error::bad_key("name", "must be a plain name: it becomes a folder").into());
    }
    let out = wishes.out.clone().or(layers::take_text(&mut table, "out")?.map(PathBuf::from));
    let out = out.unwrap_or_else(|| "runs".into());
    if let Some(jobs) = count(&mut table, "jobs")? {
        grid.jobs = grid.jobs.or(Some(jobs));
    }
    if let Some(threads) = count(&mut table, "threads")? {
        grid.threads = grid.threads.or(Some(threads));
    }

    let folder = out.join(&name);
    if !grid.folders.contains(&folder) {
        grid.folders.push(folder);
    }
    let layers = Layers { below: &below, above: &above, out: &out, name: &name };
    for (asked, variant) in methods.iter().zip(&variants) {
        let label = match labels {
            Labels::Methods => variant.label.clone(),
            Labels::Sources if variants.len() == 1 => stem.clone(),
            Labels::Sources => format!("{stem}-{}", variant.label),
        };
        let runs = layers.runs(variant, &label, &seeds.0, &sweeps);
        grid.runs.extend(if variant::is_file(asked) { runs.with_context(|| asked.clone())? } else { runs? });
    }
    Ok(())
}

/// What the runs of one configuration have in common.
struct Layers<'a> {
    below: &'a Table,
    above: &'a Table,
    out: &'a Path,
    name: &'a str,
}

impl Layers<'_> {
    /// The runs of one method: a seed each, for every combination of the swept values that it tells apart.
    fn runs(
        &self,
        variant: &Variant,
        label: &str,
        seeds: &[u64],
        sweeps: &[Sweep],
    ) -> anyhow::Result<Vec<Planned>> {
        let first = seeds.first().copied().unwrap_or_default();
        let mut told_apart = Vec::new();
        for sweep in sweeps {
            let others = sweeps.iter().filter(|other| other.key != sweep.key);
            let mut rest = Table::new();
            others.for_each(|other| layers::lay(&mut rest, other.values[0].clone()));
            let settled = |value: &Table| -> anyhow::Result<Table> {
                let mut keys = rest.clone();
                layers::lay(&mut keys, value.clone());
                Ok(self.run(variant, label, first, &Point { keys, suffix: String::new() })?.setup.to_table())
            };
            let settled = sweep.values.iter().map(settled).collect::<anyhow::Result<Vec<_>>>()?;
            if settled.windows(2).any(|pair| pair[0] != pair[1]) {
                told_apart.push(sweep);
            }
        }
        let mut runs = Vec::new();
        for point in sweep::points(&told_apart)? {
            for &seed in seeds {
                runs.push(self.run(variant, label, seed, &point)?);
            }
        }
        Ok(runs)
    }

    fn run(&self, variant: &Variant, label: &str, seed: u64, point: &Point) -> anyhow::Result<Planned> {
        let mut above = self.above.clone();
        layers::lay(&mut above, point.keys.clone());
        let mut table = laid(self.below, &variant.keys, &above)?;
        keys::OF_GRIDS.into_iter().for_each(|key| drop(table.remove(key)));
        table.insert("method".into(), Value::from(variant.method.as_str()));
        let label = layers::take_text(&mut table, "label")?.unwrap_or_else(|| label.to_owned());
        table.insert("label".into(), Value::from(label + &point.suffix));
        table.insert("seed".into(), Value::Integer(seed as i64));
        planned(&table, self.out, self.name)
    }
}

/// A file's or preset's keys, those of a variant over them, those of the command line over both.
fn laid(source: &Table, variant: &Table, above: &Table) -> anyhow::Result<Table> {
    let mut table = source.clone();
    layers::lay_over_source(&mut table, variant.clone());
    let scenario = scenario::inferred(&table, above)?;
    layers::lay_over_source(&mut table, above.clone());
    if let Some(scenario) = scenario {
        table.insert("scenario".into(), Value::from(scenario));
    }
    Ok(table)
}

fn planned(table: &Table, out: &Path, name: &str) -> anyhow::Result<Planned> {
    let mut config = Config::from_table(table.clone()).map_err(keys::explain_unknown)?;
    let settings = &mut config.settings;
    if data::info(&settings.dataset)?.needs_directory && settings.data_dir.is_none() {
        settings.data_dir = Some(data_dir());
    }
    let setup = config.check().map_err(keys::explain_unknown)?;
    let folder = RunFolder::new(out, name, &setup);
    let title = folder.path().file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(Planned { title: title.unwrap_or_default(), folder, config, setup })
}

/// Where data sets lie unless a flag or a file says otherwise.
pub fn data_dir() -> PathBuf {
    std::env::var_os("DPCL_DATA")
        .filter(|value| !value.is_empty())
        .map_or_else(|| "data".into(), PathBuf::from)
}

fn methods(table: &mut Table) -> anyhow::Result<Vec<String>> {
    let wrong = || dpcl::Error::bad_key("method", "must be a name or a list of names");
    let methods: Vec<String> = match table.remove("method") {
        None => vec![dpcl::Settings::default().method],
        Some(Value::String(name)) => name.split(',').map(|name| name.trim().to_owned()).collect(),
        Some(Value::Array(list)) => {
            let name = |value: &Value| value.as_str().map(str::to_owned).ok_or_else(wrong);
            list.iter().map(name).collect::<Result<_, _>>()?
        }
        Some(_) => return Err(wrong().into()),
    };
    if methods.is_empty() {
        return Err(wrong().into());
    }
    Ok(methods)
}

fn seeds(table: &mut Table) -> anyhow::Result<Seeds> {
    if table.contains_key("seed") && table.contains_key("seeds") {
        return Err(dpcl::Error::bad_key("seeds", "`seed` says the same thing; give one of them").into());
    }
    let (key, value) = match (table.remove("seeds"), table.remove("seed")) {
        (Some(value), _) => ("seeds", value),
        (None, Some(value)) => ("seed", value),
        (None, None) => return Ok(Seeds(vec![dpcl::Settings::default().seed])),
    };
    Seeds::of_value(&value).map_err(|problem| dpcl::Error::bad_key(key, problem).into())
}

/// A whole number where 0 means: whatever suits the machine.
fn count(table: &mut Table, key: &str) -> anyhow::Result<Option<usize>> {
    match table.remove(key) {
        None => Ok(None),
        Some(Value::Integer(number)) if number >= 0 => Ok(usize::try_from(number).ok().filter(|&n| n > 0)),
        Some(_) => Err(dpcl::Error::bad_key(key, "must be a whole number").into()),
    }
}

fn refuse_shared_folders(runs: &[Planned]) -> anyhow::Result<()> {
    let mut seen: BTreeMap<_, usize> = BTreeMap::new();
    for run in runs {
        *seen.entry(run.folder.path()).or_default() += 1;
    }
    let Some((path, count)) = seen.into_iter().find(|(_, count)| *count > 1) else { return Ok(()) };
    let problem = format!("{count} runs of this grid would share the folder {}", path.display());
    let hint = "a method is given twice or a `label` covers several methods; give each configuration a `label` of \
                its own, or leave out `--name` so that each gets a folder of its own";
    Err(Usage::with_hint(problem, hint).into())
}
