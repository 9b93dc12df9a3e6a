//! The paper's experiments as data (`assets/matrix.toml`): which runs a table or figure needs at a scale, and where their
//! records belong. Reads and multiplies out; knows neither how runs are made nor what the paper printed.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::LazyLock,
};

use dpcl_report::paper::{Sheet, SheetColumn, SheetRow};
use serde::Deserialize;
use toml::{Table, Value};

use crate::{
    failure::Usage,
    flags::Flags,
    grid::{self, Grid, Wishes},
    layers::{self, Source},
    meant,
    seeds::Seeds,
};

const TEXT: &str = include_str!("../assets/matrix.toml");

/// All experiments. Its text is compiled in, so a test is enough to know that it can be read.
pub static MATRIX: LazyLock<Matrix> =
    LazyLock::new(|| toml::from_str(TEXT).expect("the matrix is part of the program and tested"));

/// How large runs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Scale {
    /// The paper's full setting: days of a large machine
    Paper,
    /// The paper's stream with the slim network: hours a run
    Mid,
    /// The small protocol: minutes a run
    Small,
    /// Embedded images: seconds a run
    Smoke,
}

impl Scale {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Mid => "mid",
            Self::Small => "small",
            Self::Smoke => "smoke",
        }
    }
}

/// The file as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    seeds: BTreeMap<String, String>,
    smoke: Table,
    streams: BTreeMap<String, BTreeMap<String, Table>>,
    variants: BTreeMap<String, Table>,
    experiment: Vec<Experiment>,
}

/// A table or a figure.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its short name.
    pub id: String,
    /// What it compares.
    pub title: String,
    /// The figure that is drawn beside the table.
    #[serde(default)]
    pub kind: Kind,
    paper_seeds: String,
    metrics: Vec<String>,
    columns: Vec<Vec<String>>,
    rows: Vec<(String, String)>,
    #[serde(default)]
    doubts: Vec<String>,
}

/// What is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Nothing but curves of accuracy.
    #[default]
    Table,
    /// The same, which are then what it is about.
    AnyTime,
    /// Features in a plane.
    TSne,
    /// The loss around the classifier's weights.
    Landscape,
}

/// Which part of the experiments is asked for, and where it goes.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// How large the runs are.
    pub scale: Scale,
    /// Seeds, if not the usual ones.
    pub seeds: Option<Seeds>,
    /// Labels or the paper's names of rows; none for all.
    pub methods: Vec<String>,
    /// The paper's names of columns or our names of streams; none for all.
    pub columns: Vec<String>,
    /// Parent of all records.
    pub out: PathBuf,
    /// Where data sets lie.
    pub data_dir: Option<PathBuf>,
}

impl Wanted {
    /// The folder of everything at this scale.
    pub fn folder(&self) -> PathBuf {
        self.out.join(self.scale.name())
    }
}

impl Matrix {
    /// Every table and figure.
    pub fn experiments(&self) -> &[Experiment] {
        &self.experiment
    }

    /// Those of the given names, `all` for all.
    pub fn find(&self, ids: &[String]) -> anyhow::Result<Vec<&Experiment>> {
        if ids.iter().any(|id| id == "all") {
            return Ok(self.experiment.iter().collect());
        }
        let find = |id: &String| {
            self.experiment.iter().find(|experiment| experiment.id == *id).ok_or_else(|| {
                let known: Vec<&str> =
                    self.experiment.iter().map(|experiment| experiment.id.as_str()).collect();
                let problem = format!("the paper has no table or figure called `{id}` here");
                let hint =
                    format!("known: {}, or all; `dpcl reproduce list` says what they are", known.join(", "));
                let hint = meant::asked(meant::closest(id, &known), Some(hint)).unwrap_or_default();
                Usage::with_hint(problem, hint).into()
            })
        };
        ids.iter().map(find).collect()
    }

    /// The runs of some experiments, each once, seed by seed, so that what is there early can be compared; and their
    /// tables.
    pub fn lay_out(
        &self,
        experiments: &[&Experiment],
        wanted: &Wanted,
    ) -> anyhow::Result<(Grid, Vec<Sheet>)> {
        let sheets =
            experiments.iter().map(|one| self.sheet(one, wanted)).collect::<anyhow::Result<Vec<_>>>()?;
        if sheets.iter().all(|sheet| sheet.columns.is_empty()) {
            let problem = "nothing is left of what was asked for";
            let hint =
                "`dpcl reproduce list` names methods and columns; leave out --methods or --columns for all";
            return Err(Usage::with_hint(problem, hint).into());
        }
        let mut grid =
            Grid { runs: Vec::new(), folders: Vec::new(), jobs: None, threads: None, given: Vec::new() };
        let mut asked = BTreeSet::new();
        for experiment in experiments {
            for seed in self.seeds(experiment, wanted)?.0 {
                for (stream, label) in cells(experiment, wanted) {
                    asked.insert((seed, stream, label));
                }
            }
        }
        for (seed, stream, label) in asked {
            self.add(&mut grid, (stream, label, seed), wanted)?;
        }
        Ok((grid, sheets))
    }

    fn seeds(&self, experiment: &Experiment, wanted: &Wanted) -> anyhow::Result<Seeds> {
        if let Some(seeds) = &wanted.seeds {
            return Ok(seeds.clone());
        }
        let usual = match wanted.scale {
            Scale::Paper => Some(&experiment.paper_seeds),
            scale => self.seeds.get(scale.name()),
        };
        usual.map_or("1", String::as_str).parse().map_err(anyhow::Error::msg)
    }

    fn sheet(&self, experiment: &Experiment, wanted: &Wanted) -> anyhow::Result<Sheet> {
        let seeds = self.seeds(experiment, wanted)?;
        let row = |stream: &str, (name, label): &(String, String)| {
            let folder = |seed: &u64| wanted.folder().join(stream).join(format!("{label}-seed{seed}"));
            let folders = seeds.0.iter().map(folder).collect();
            SheetRow { name: name.clone(), label: label.clone(), folders }
        };
        let columns = experiment.columns(wanted).into_iter().map(|column| {
            let metrics = if column.len() > 2 { column[2..].to_vec() } else { experiment.metrics.clone() };
            let rows: Vec<SheetRow> =
                experiment.rows(wanted).into_iter().map(|of| row(&column[1], of)).collect();
            SheetColumn { name: column[0].clone(), metrics, rows }
        });
        let columns = columns.filter(|column| !column.rows.is_empty()).collect();
        Ok(Sheet {
            id: experiment.id.clone(),
            title: experiment.title.clone(),
            scale: wanted.scale.name().to_owned(),
            columns,
            doubts: experiment.doubts.clone(),
        })
    }

    fn add(
        &self,
        grid: &mut Grid,
        (stream, label, seed): (&str, &str, u64),
        wanted: &Wanted,
    ) -> anyhow::Result<()> {
        let mut table = self.stream(stream, wanted.scale)?;
        if let Some(directory) = &wanted.data_dir {
            table.insert("data_dir".into(), Value::from(directory.to_string_lossy().into_owned()));
        }
        let mut above = self.variants.get(label).cloned().unwrap_or_default();
        let base = match above.remove("base") {
            Some(Value::String(base)) => base,
            _ => label.to_owned(),
        };
        above.insert("method".into(), Value::from(base));
        above.insert("label".into(), Value::from(label));
        above.insert("seed".into(), Value::Integer(seed as i64));
        let source = Source { name: stream.to_owned(), table };
        let wishes = Wishes { out: Some(wanted.folder()), ..Wishes::default() };
        grid::add_source(grid, source, &Flags::of(above), &wishes)
    }

    /// The keys of a stream at a scale.
    fn stream(&self, name: &str, scale: Scale) -> anyhow::Result<Table> {
        let mut keys = self
            .streams
            .get(name)
            .and_then(|scales| scales.get(scale.name()))
            .cloned()
            .ok_or_else(|| Usage::new(format!("`{name}` is not made at the scale `{}`", scale.name())))?;
        let mut table = match keys.remove("preset") {
            Some(Value::String(preset)) => layers::read(&preset)?.table,
            _ => self.smoke.clone(),
        };
        for of_the_grid in ["method", "seed", "seeds", "name", "label"] {
            table.remove(of_the_grid);
        }
        layers::lay_over_source(&mut table, keys);
        Ok(table)
    }
}

impl Experiment {
    /// Its columns: the paper's name, our stream, and further words for what is compared there alone.
    fn columns(&self, wanted: &Wanted) -> Vec<&Vec<String>> {
        let asked = |column: &&Vec<String>| {
            wanted.columns.is_empty() || column[..2].iter().any(|name| named(&wanted.columns, name))
        };
        self.columns.iter().filter(asked).collect()
    }

    fn rows(&self, wanted: &Wanted) -> Vec<&(String, String)> {
        let asked = |(name, label): &&(String, String)| {
            wanted.methods.is_empty() || named(&wanted.methods, name) || named(&wanted.methods, label)
        };
        self.rows.iter().filter(asked).collect()
    }

    /// The paper's names of its columns.
    pub fn column_names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column[0].as_str()).collect()
    }

    /// The labels of its rows, each once.
    pub fn labels(&self) -> Vec<&str> {
        let mut labels: Vec<&str> = Vec::new();
        for (_, label) in &self.rows {
            if !labels.contains(&label.as_str()) {
                labels.push(label);
            }
        }
        labels
    }
}

fn named(asked: &[String], name: &str) -> bool {
    asked.iter().any(|asked| asked.eq_ignore_ascii_case(name))
}

/// Streams and labels of an experiment.
fn cells<'a>(experiment: &'a Experiment, wanted: &Wanted) -> Vec<(&'a str, &'a str)> {
    let rows = experiment.rows(wanted);
    let columns = experiment.columns(wanted);
    columns
        .into_iter()
        .flat_map(|column| {
            rows.iter().map(|(_, label)| (column[1].as_str(), label.as_str())).collect::<Vec<_>>()
        })
        .collect()
}

/// The streams whose runs are in a grid, with one of their runs each.
pub fn streams(grid: &Grid) -> Vec<(&Path, &grid::Planned)> {
    let mut found: Vec<(&Path, &grid::Planned)> = Vec::new();
    for run in &grid.runs {
        let Some(folder) = run.folder.path().parent() else { continue };
        if !found.iter().any(|(known, _)| *known == folder) {
            found.push((folder, run));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(scale: Scale) -> Wanted {
        let (seeds, out) = (None, "out".into());
        Wanted { scale, seeds, methods: Vec::new(), columns: Vec::new(), out, data_dir: None }
    }

    fn all(scale: Scale) -> (Grid, Vec<Sheet>) {
        let experiments = MATRIX.find(&["all".to_owned()]).unwrap();
        MATRIX.lay_out(&experiments, &wanted(scale)).unwrap()
    }

    #[test]
    fn every_cell_is_a_configuration_at_every_scale() {
        for scale in [Scale::Paper, Scale::Mid, Scale::Small, Scale::Smoke] {
            let (grid, sheets) = all(scale);
            let planned: Vec<&Path> = grid.runs.iter().map(|run| run.folder.path()).collect();
            let mut folders = sheets.iter().flat_map(|sheet| &sheet.columns).flat_map(|column| &column.rows);
            assert!(folders.all(|row| row.folders.iter().all(|folder| planned.contains(&folder.as_path()))));
            let distinct: BTreeSet<&&Path> = planned.iter().collect();
            assert_eq!(distinct.len(), planned.len(), "{scale:?}");
            assert!(
                grid.runs
                    .iter()
                    .all(|run| run.setup.label != "dpcl-literal" || run.setup.memory_scheme == "pim")
            );
        }
    }

    #[test]
    fn every_printed_number_has_its_cell() {
        let (_, sheets) = all(Scale::Paper);
        let mut found = 0;
        for sheet in &sheets {
            for column in &sheet.columns {
                for row in &column.rows {
                    let printed = |metric: &String| {
                        dpcl_report::paper::printed(&sheet.id, &column.name, &row.name, metric)
                    };
                    found += column.metrics.iter().filter(|metric| printed(metric).is_some()).count();
                }
            }
        }
        assert_eq!(found, 353);
    }

    #[test]
    fn parts_can_be_asked_for_by_either_name() {
        let part = Wanted {
            methods: vec!["dpcl-literal".into(), "ER".into()],
            columns: vec!["cifar100".into()],
            seeds: Some(Seeds(vec![4])),
            ..wanted(Scale::Small)
        };
        let (grid, sheets) = MATRIX.lay_out(&MATRIX.find(&["main".into()]).unwrap(), &part).unwrap();
        let titles: Vec<&str> = grid.runs.iter().map(|run| run.title.as_str()).collect();
        assert_eq!(titles, ["dpcl-literal-seed4", "er-seed4"]);
        assert_eq!(grid.runs[0].folder.path(), Path::new("out/small/cifar100-5/dpcl-literal-seed4"));
        assert_eq!((sheets[0].columns.len(), sheets[0].columns[0].rows.len()), (1, 2));
        let nothing = Wanted { methods: vec!["nobody".into()], ..part };
        assert!(MATRIX.lay_out(&MATRIX.find(&["main".into()]).unwrap(), &nothing).is_err());
    }

    #[test]
    fn the_papers_values_are_in_the_cells() {
        let (grid, _) = all(Scale::Paper);
        let of = |folder: &str| {
            grid.runs.iter().find(|run| run.folder.path() == Path::new("out/paper").join(folder)).unwrap()
        };
        let main = &of("cifar100-5/er-seed5").setup;
        assert_eq!((main.model.as_str(), main.memory, main.updates, main.batch), ("resnet34", 2000, 3.0, 16));
        let image = &of("imagenet100-20/dro-seed3").setup;
        assert_eq!((image.tasks, image.batch, image.updates, image.size), (20, 64, 0.25, 224));
        let blurry = &of("blurry-0-30/er-seed1").setup;
        assert_eq!((blurry.scenario.name(), blurry.m), ("blurry", 30.0));
        assert_eq!(of("cifar10-500-slots/dro-seed1").setup.cutmix_prob, 0.0);
        assert_eq!(of("cifar100-20-5000-slots/dpcl-literal-seed1").setup.memory, 5000);
        let heads = of("cifar100-5/dpcl-literal-heads-20-seed3").setup.to_toml();
        assert!(heads.contains("heads = 20") && heads.contains("sigma_a = 0.4"), "{heads}");
    }
}
