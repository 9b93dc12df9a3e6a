//! `dpcl data`: getting data sets and looking into them.

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::Subcommand;
use dpcl::{
    Error,
    data::{self, Dataset, Inspection, OnBadImage, Opening, Pictures},
};

use super::list::Format;
use crate::{
    completing,
    failure::{self, Usage},
    grid, output, show,
};

/// Download data sets and look into them
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  dpcl list datasets                  which there are
  dpcl data fetch cifar100            download into $DPCL_DATA, else ./data
  dpcl data inspect cifar100          counts, classes and a contact sheet
  dpcl data inspect ~/photos          the same of a folder of your own images";

const FETCH: &str = "\
A file that is there and right is not fetched again; a broken download is taken
up where it stopped. `DPCL_MIRROR` replaces the official address.";

#[derive(Debug, Subcommand)]
enum Action {
    /// Download a data set's official files, resuming and verifying
    #[command(after_help = FETCH)]
    Fetch {
        /// Its name
        #[arg(add = completing::datasets())]
        name: String,
        /// Where to [default: $DPCL_DATA, else ./data]
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
    },
    /// Print counts, sizes and a class histogram; write a contact sheet
    Inspect {
        /// A data set's name, or the path of its folder or archive
        #[arg(value_name = "NAME|PATH", add = completing::datasets())]
        what: String,
        /// Where named sets lie [default: $DPCL_DATA, else ./data]
        #[arg(long, value_name = "DIR")]
        data_dir: Option<PathBuf>,
        /// The contact sheet [default: NAME.png]
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// How to show the counts
        #[arg(long, value_enum, default_value_t = Format::Text)]
        format: Format,
    },
}

/// Fetches or inspects.
pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    match &arguments.action {
        Action::Fetch { name, data_dir } => fetch(name, data_dir.as_deref())?,
        Action::Inspect { what, data_dir, output, format } => {
            inspect(what, data_dir.as_deref(), output.as_deref(), *format)?;
        }
    }
    Ok(failure::DONE)
}

fn fetch(name: &str, data_dir: Option<&Path>) -> anyhow::Result<()> {
    let into = data_dir.map_or_else(grid::data_dir, Path::to_owned);
    let bar = show::download();
    let mut told = String::new();
    let found = data::fetch(name, &into, &mut |progress| {
        if told != progress.file {
            progress.file.clone_into(&mut told);
            bar.suspend(|| output::talk(progress.file));
        }
        if let Some(total) = progress.total {
            bar.set_length(total);
        }
        bar.set_position(progress.done);
    });
    bar.finish_and_clear();
    let found = found?;
    output::talk(format!(
        "{name} is complete and verified; `--dataset {name}` finds it below {}",
        into.display()
    ));
    output::data(&format!("{}\n", found.display()))
}

/// Images a class on the contact sheet, and classes on it.
const SHEET: (usize, usize) = (10, 20);

fn inspect(what: &str, data_dir: Option<&Path>, output: Option<&Path>, format: Format) -> anyhow::Result<()> {
    let dataset = open(what, data_dir)?;
    let inspection = data::inspect(&dataset);
    let pictures = data::pictures(&dataset);
    let text = match format {
        Format::Text => histogram(&inspection, pictures.as_ref(), output::data_width()),
        Format::Json => {
            let mut facts = serde_json::to_value(&inspection).context("cannot write JSON")?;
            facts["pictures"] = serde_json::to_value(&pictures).context("cannot write JSON")?;
            serde_json::to_string_pretty(&facts).context("cannot write JSON")? + "\n"
        }
    };
    output::data(&text)?;
    let sheet = data::contact_sheet(&dataset, SHEET.0, SHEET.1);
    let path = output.map_or_else(|| format!("{}.png", inspection.name).into(), Path::to_owned);
    write_sheet(&path, output.is_some(), &data::png(&sheet))?;
    output::talk(format!("contact sheet: {}", path.display()));
    let unreadable = pictures.map(|pictures| pictures.unreadable).unwrap_or_default();
    if unreadable.is_empty() {
        return Ok(());
    }
    let problems = unreadable.into_iter().map(|bad| format!("{}: {}", bad.file, bad.problem)).collect();
    Err(Error::BadImages { problems }.into())
}

/// Only a file that was asked for by name is replaced.
fn write_sheet(path: &Path, named: bool, bytes: &[u8]) -> anyhow::Result<()> {
    let file = OpenOptions::new().write(true).create(named).truncate(named).create_new(!named).open(path);
    let mut file = file.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let problem = format!("{} is there already", path.display());
            Usage::with_hint(problem, "say where the contact sheet goes with `--output`").into()
        }
        _ => anyhow::Error::new(error).context(format!("cannot create {}", path.display())),
    })?;
    file.write_all(bytes).with_context(|| format!("cannot write {}", path.display()))
}

fn open(what: &str, data_dir: Option<&Path>) -> anyhow::Result<Dataset> {
    // What cannot be read is told with everything else.
    let opening = Opening { on_bad_image: OnBadImage::Skip, ..Opening::default() };
    let named = data::list().iter().any(|info| info.name == what);
    if named && !Path::new(what).exists() {
        let directory = data_dir.map_or_else(grid::data_dir, Path::to_owned);
        return Ok(data::open_as(what, Some(&directory), &opening)?);
    }
    let path = Path::new(what);
    if !path.exists() {
        // Neither a name nor a path: say which names there are.
        data::info(what)?;
    }
    Ok(data::open_as(data::recognise(path)?.name, Some(path), &opening)?)
}

/// What the pictures are like on disk, and what becomes of them.
fn on_disk(pictures: &Pictures, size: usize) -> String {
    let Pictures { count, smallest, largest, wide, tall, .. } = pictures;
    let of = |[height, width]: [usize; 2]| format!("{width} × {height}");
    let sizes =
        if smallest == largest { of(*smallest) } else { format!("{} to {}", of(*smallest), of(*largest)) };
    let square = count - wide - tall;
    format!(
        "pictures of {sizes} pixels: {wide} wide, {tall} tall, {square} square; all are served as {size} × {size}, \
         squashed unless a run says otherwise (--fit crop, --fit pad)"
    )
}

fn histogram(inspection: &Inspection, pictures: Option<&Pictures>, width: usize) -> String {
    let Inspection { name, size, train, test, classes, .. } = inspection;
    let mut text = format!("{name}: {train} training and {test} test images of {size} × {size} pixels\n");
    let notes = pictures.map(|pictures| on_disk(pictures, *size));
    for note in notes.iter().chain(&inspection.findings.notes) {
        output::wrap(note, width).iter().for_each(|line| text.push_str(&format!("{line}\n")));
    }
    let superclasses = inspection.superclasses.map(|count| format!(" in {count} superclasses"));
    text.push_str(&format!("{} classes{}\n", classes.len(), superclasses.unwrap_or_default()));
    let show = |values: [f32; 3]| values.map(|value| format!("{value:.4}")).join(" ");
    text.push_str(&format!("mean {}, std {}\n\n", show(inspection.mean), show(inspection.std)));

    let most = classes.iter().map(|class| class.train).max().unwrap_or(0).max(1);
    let column = classes.iter().map(|class| class.name.chars().count()).max().unwrap_or(0).clamp(5, 24);
    let numbers = 16;
    let longest = width.saturating_sub(column + numbers + 2).clamp(4, 40);
    text.push_str(&format!("{:<column$} {:>7} {:>7}\n", "class", "train", "test"));
    for class in classes {
        let short: String = class.name.chars().take(column).collect();
        let bar = "█".repeat((class.train * longest).div_ceil(most));
        text.push_str(format!("{short:<column$} {:>7} {:>7} {bar}", class.train, class.test).trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion_and_within_the_width() {
        let class = |name: &str, train, test| data::ClassCount { name: name.into(), train, test };
        let inspection = Inspection {
            name: "toy".into(),
            size: 8,
            train: 30,
            test: 3,
            superclasses: None,
            mean: [0.5; 3],
            std: [0.25; 3],
            policy: data::Policy::None,
            classes: vec![class("cat", 20, 2), class("dog", 10, 1), class("eel", 0, 0)],
            findings: data::Findings::default(),
        };
        let text = histogram(&inspection, None, 43);
        let bars: Vec<usize> =
            text.lines().skip(5).map(|line| line.chars().filter(|&letter| letter == '█').count()).collect();
        assert_eq!(bars, [20, 10, 0]);
        assert!(text.lines().skip(3).all(|line| line.chars().count() <= 43), "{text}");
    }
}
