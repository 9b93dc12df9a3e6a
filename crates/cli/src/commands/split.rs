//! `dpcl split`: streams as files in the i-Blurry layout, so that a stream can be published and run as it is.

use std::path::PathBuf;

use clap::Subcommand;
use dpcl::{Run, stream};

use crate::{
    completing,
    failure::{self, Usage},
    flags::{Flags, StreamFlags},
    grid::{self, Grid, Wishes},
    output,
};

/// Write streams as split files, or check split files
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    action: Action,
}

const EXAMPLES: &str = "\
Examples:
  dpcl split export small --out splits --n 50 --m 10 --seeds 1..3
  dpcl split check splits small --n 50 --m 10 --seeds 1..3
  dpcl run small --split splits --n 50 --m 10 --seeds 1..3 --name from-files";

#[derive(Debug, Subcommand)]
enum Action {
    /// Write one JSON file a task and seed, and the list of test images
    Export {
        /// Where to; files that say something else are never replaced
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        #[command(flatten)]
        stream: Asked,
    },
    /// Read split files as a run would and say what they hold
    #[command(alias = "import")]
    Check {
        /// Folder of the files
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        #[command(flatten)]
        stream: Asked,
    },
}

#[derive(clap::Args, Debug)]
struct Asked {
    /// TOML file or name of a preset to take the stream's keys from
    #[arg(value_name = "CONFIG|PRESET", add = completing::configurations())]
    config: Option<String>,
    #[command(flatten)]
    flags: StreamFlags,
}

impl Asked {
    fn plan(&self) -> anyhow::Result<Grid> {
        let configs: Vec<String> = self.config.iter().cloned().collect();
        if let Some(sweep) = Flags::from(&self.flags).sweeps()?.first() {
            let problem = format!("`{}` is given several values, and a split is one stream", sweep.key);
            return Err(Usage::with_hint(problem, "give the command once for each value").into());
        }
        let mut grid = grid::plan(&configs, &Flags::from(&self.flags), &Wishes::default())?;
        // The method has no part in a stream.
        let mut seeds = std::collections::BTreeSet::new();
        grid.runs.retain(|run| seeds.insert(run.config.settings.seed));
        Ok(grid)
    }
}

/// Exports or checks.
pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    match &arguments.action {
        Action::Export { out, stream } => {
            for planned in stream.plan()?.runs {
                if planned.config.settings.split.is_some() {
                    return Err(Usage::new("`--split` names files that exist already; leave it out").into());
                }
                let run = Run::open(&planned.config)?;
                let (keys, seed) = (run.setup().stream(), run.setup().seed);
                let paths = stream::export(out, run.dataset(), run.parts(), run.schedule(), &keys, seed)?;
                let lines: String = paths.iter().map(|path| format!("{}\n", path.display())).collect();
                output::data(&lines)?;
            }
        }
        Action::Check { folder, stream } => {
            for mut planned in stream.plan()?.runs {
                planned.config.settings.split = Some(folder.clone());
                let run = Run::open(&planned.config)?;
                output::data(&describe(&run))?;
            }
        }
    }
    Ok(failure::DONE)
}

fn describe(run: &Run) -> String {
    let mut text = format!("seed {}\n", run.setup().seed);
    for (number, task) in run.schedule().tasks.iter().enumerate() {
        let met: std::collections::BTreeSet<usize> =
            task.samples.iter().map(|&position| run.dataset().train.labels[position]).collect();
        text.push_str(&format!(
            "  task {}: {} samples of {} classes, {} its own\n",
            number + 1,
            task.samples.len(),
            met.len(),
            task.classes.len()
        ));
    }
    text
}
