//! `dpcl report`: records as a table, a file for other programs, or a page.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::ValueEnum;
use dpcl::folder;
use dpcl_report::{Report, against::Asked, read};

use crate::{
    failure::{self, Usage},
    output,
};

/// Show recorded runs as a table, a page or data
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Folders of runs, or folders that hold such folders
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,

    /// How to show them [default: by the file's ending, else a table, with
    /// report.html in DIR; of several, report-A-B.html beside the first]
    #[arg(long, value_enum)]
    format: Option<Format>,

    /// What a line of CSV is of: runs that differ in their seed only, or one
    /// evaluation of a run
    #[arg(long, value_enum, default_value = "group")]
    each: Each,

    /// Write every run's curves for TensorBoard into a folder, and nothing else
    #[arg(long, value_name = "DIR", conflicts_with_all = ["format", "output"])]
    tensorboard: Option<PathBuf>,

    /// Write to a file instead of stdout
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Show runs whose average answers a second time, as the weights that
    /// learn would have answered
    #[arg(long)]
    unaveraged: bool,

    /// Compare every row with this one, seed by seed: its name in the table, or
    /// how only that begins
    #[arg(long, value_name = "ROW")]
    against: Option<String>,

    /// A difference worth knowing of, in points of percent: the comparison says
    /// how many seeds would show it
    #[arg(long, value_name = "POINTS", default_value_t = 3.0, value_parser = points, requires = "against")]
    margin: f64,

    /// What to compare [default: acc, fm, a_auc and, where measured, ece]
    #[arg(long, value_name = "METRIC", value_delimiter = ',', requires = "against")]
    metric: Vec<String>,
}

fn points(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|points: &f64| points.is_finite() && *points > 0.0)
        .ok_or_else(|| "must be a number above 0, such as 3 or 0.5".to_owned())
}

const EXAMPLES: &str = "\
Examples:
  dpcl report runs/default
  dpcl report runs/a runs/b --format markdown
  dpcl report runs --output runs.csv
  dpcl report runs --format json | jq .settings
  dpcl report runs --format csv --each evaluation
  dpcl report runs --tensorboard curves
  dpcl report runs/small --against er --margin 2";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Each {
    Group,
    Evaluation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Table,
    Markdown,
    Latex,
    Csv,
    Json,
    Html,
}

impl Format {
    /// What people expect in a file of that name.
    fn for_file(path: &Path) -> anyhow::Result<Self> {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("md") => Ok(Self::Markdown),
            Some("tex") => Ok(Self::Latex),
            Some("csv") => Ok(Self::Csv),
            Some("json") => Ok(Self::Json),
            Some("html") => Ok(Self::Html),
            Some("txt") => Ok(Self::Table),
            _ => {
                let problem = format!("the ending of {} does not say what to write", path.display());
                let hint = "endings: .md, .tex, .csv, .json, .html, .txt; any other with `--format`";
                Err(Usage::with_hint(problem, hint).into())
            }
        }
    }
}

/// Names of folders that a page's name is made of; more would be too long for a file's name.
const NAMED: usize = 3;

/// Where the page goes: into the folder; with several, beside the first, under the names of all.
fn page_path(folders: &[PathBuf]) -> PathBuf {
    let [first, others @ ..] = folders else { return "report.html".into() };
    if others.is_empty() {
        return first.join("report.html");
    }
    let whole = |folder: &Path| folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let name = |folder: &PathBuf| {
        let whole = whole(folder);
        whole.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy().into_owned())
    };
    let mut names: Vec<String> = folders.iter().take(NAMED).map(name).collect();
    if folders.len() > NAMED {
        names.push(format!("{}-more", folders.len() - NAMED));
    }
    let parent = match first.parent() {
        Some(parent) if first.file_name().is_some() => parent.to_owned(),
        _ => whole(first).parent().map(Path::to_owned).unwrap_or_default(),
    };
    parent.join(format!("report-{}.html", names.join("-")))
}

/// Shows the report.
pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let format = match (arguments.format, &arguments.output) {
        (Some(format), _) => format,
        (None, Some(path)) => Format::for_file(path)?,
        (None, None) => Format::Table,
    };
    let report = load(arguments)?;
    if let Some(folder) = &arguments.tensorboard {
        return tensorboard(&report, folder);
    }
    let lines = |format: Format| match arguments.each {
        Each::Evaluation if format != Format::Csv => Err(Usage::with_hint(
            "only CSV can have a line an evaluation",
            "add `--format csv`, or leave out `--each`",
        )),
        Each::Evaluation => Ok(true),
        Each::Group => Ok(false),
    };
    let export = |report: &Report, format: Format, colour: bool| {
        Ok::<_, Usage>(if lines(format)? { report.evaluations() } else { export(report, format, colour) })
    };
    match (&arguments.output, arguments.format) {
        (Some(path), _) => {
            let text = export(&report, format, true)?;
            fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
            output::talk(format!("wrote {}", path.display()));
        }
        (None, Some(Format::Table)) => output::styled_data(&export(&report, format, false)?)?,
        (None, Some(_)) => output::data(&export(&report, format, false)?)?,
        (None, None) => {
            output::styled_data(&export(&report, format, false)?)?;
            let path = page_path(&arguments.folders);
            folder::write_whole(&path, report.html().as_bytes()).context("cannot write the report")?;
            output::talk(format!("\nreport: {}", path.display()));
        }
    }
    Ok(failure::DONE)
}

fn tensorboard(report: &Report, folder: &Path) -> anyhow::Result<u8> {
    let files = report.tensorboard();
    for (path, bytes) in &files {
        let path = folder.join(path);
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
        fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    }
    output::talk(format!(
        "wrote {} runs; look at them with: tensorboard --logdir {}",
        files.len(),
        folder.display()
    ));
    Ok(failure::DONE)
}

fn load(arguments: &Arguments) -> anyhow::Result<Report> {
    let records = read::find(&arguments.folders)?;
    let mut report =
        if arguments.unaveraged { Report::with_unaveraged(records) } else { Report::new(records) };
    let runs = || report.settings.iter().flat_map(|setting| &setting.groups).flat_map(|group| &group.runs);
    if arguments.unaveraged && !runs().any(|run| run.is_unaveraged) {
        output::talk("no average answers in these runs: --unaveraged adds nothing");
    }
    if let Some(against) = &arguments.against {
        let (metrics, margin) = (arguments.metric.clone(), arguments.margin);
        report.compare(&Asked { against: against.clone(), metrics, margin })?;
    }
    Ok(report)
}

fn export(report: &Report, format: Format, to_file: bool) -> String {
    match format {
        Format::Table if !to_file && output::data_is_watched() => {
            report.terminal(output::data_width(), output::data_colour())
        }
        Format::Table => report.plain(output::data_width()),
        Format::Markdown => report.markdown(),
        Format::Latex => report.latex(),
        Format::Csv => report.csv(),
        Format::Json => report.json(),
        Format::Html => report.html(),
    }
}
