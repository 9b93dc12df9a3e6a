//! `dpcl report`: records as a table, a file for other programs, or a page.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::ValueEnum;
use dpcl_report::{Report, against::Asked, read};

use super::run::write_page;
use crate::{failure, output};

/// Show recorded runs as a table, a page or data
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Folders of runs, or folders that hold such folders
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,

    /// How to show them [default: by the file's ending, else a table, with
    /// report.html in the first DIR]
    #[arg(long, value_enum)]
    format: Option<Format>,

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
  dpcl report runs/small --against er --margin 2";

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
    fn for_file(path: &Path) -> Self {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("md") => Self::Markdown,
            Some("tex") => Self::Latex,
            Some("csv") => Self::Csv,
            Some("json") => Self::Json,
            Some("html") => Self::Html,
            _ => Self::Table,
        }
    }
}

/// Shows the report.
pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let report = load(arguments)?;
    match (&arguments.output, arguments.format) {
        (Some(path), format) => {
            let text = export(&report, format.unwrap_or_else(|| Format::for_file(path)), false);
            fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
            output::talk(format!("wrote {}", path.display()));
        }
        (None, Some(format)) => output::data(&export(&report, format, output::data_colour()))?,
        (None, None) => {
            output::data(&export(&report, Format::Table, output::data_colour()))?;
            let page = write_page(&arguments.folders[0], &report.html())?;
            output::talk(format!("\nreport: {}", page.display()));
        }
    }
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

fn export(report: &Report, format: Format, colour: bool) -> String {
    match format {
        Format::Table => report.terminal(output::data_width(), colour),
        Format::Markdown => report.markdown(),
        Format::Latex => report.latex(),
        Format::Csv => report.csv(),
        Format::Json => report.json(),
        Format::Html => report.html(),
    }
}
