//! `dpcl report`: records as a table, a file for other programs, or a page.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::ValueEnum;
use dpcl_report::Report;

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
}

const EXAMPLES: &str = "\
Examples:
  dpcl report runs/default
  dpcl report runs/a runs/b --format markdown
  dpcl report runs --output runs.csv
  dpcl report runs --format json | jq .settings";

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
    let report = dpcl_report::load(&arguments.folders)?;
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
