//! `dpcl presets`: the compiled-in configurations, shown or copied out to be changed.

use std::{
    fs::OpenOptions,
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::Subcommand;

use crate::{
    completing,
    failure::{self, Usage},
    meant, output,
    presets::{self, Preset},
};

/// Show or copy out the compiled-in configurations
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  dpcl list presets                   which there are
  dpcl presets show small             print one
  dpcl presets copy small             write small.toml here, to be changed
  dpcl run small.toml                 run what was changed";

#[derive(Debug, Subcommand)]
enum Action {
    /// Print a preset
    Show {
        /// Its name
        #[arg(add = completing::preset_names())]
        name: String,
    },
    /// Write a preset as NAME.toml; never replaces a file
    Copy {
        /// Its name
        #[arg(add = completing::preset_names())]
        name: String,
        /// Where to
        #[arg(default_value = ".")]
        dir: PathBuf,
    },
}

/// Shows or copies.
pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    match &arguments.action {
        Action::Show { name } => output::data(find(name)?.text)?,
        Action::Copy { name, dir } => copy(find(name)?, dir)?,
    }
    Ok(failure::DONE)
}

fn find(name: &str) -> anyhow::Result<&'static Preset> {
    presets::find(name).ok_or_else(|| {
        let hint = format!("presets: {}", presets::names().join(", "));
        let hint = meant::asked(meant::closest(name, &presets::names()), Some(hint)).unwrap_or_default();
        Usage::with_hint(format!("there is no preset called `{name}`"), hint).into()
    })
}

fn copy(preset: &Preset, dir: &Path) -> anyhow::Result<()> {
    let path = dir.join(format!("{}.toml", preset.name));
    let file = OpenOptions::new().write(true).create_new(true).open(&path);
    let mut file = file.map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let problem = format!("{} is there already", path.display());
            Usage::with_hint(problem, "name another folder, or move the file away").into()
        }
        _ => anyhow::Error::new(error).context(format!("cannot create {}", path.display())),
    })?;
    file.write_all(preset.text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    output::talk(format!("wrote {}; run it with `dpcl run {}`", path.display(), path.display()));
    Ok(())
}
