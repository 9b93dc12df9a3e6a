//! Flags that say how runs are made and where, shared by `run` and `check`.

use std::path::PathBuf;

use dpcl::folder::Every;

use crate::{
    failure::Usage,
    flags::Flags,
    further,
    grid::{self, Grid, Wishes},
};

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Running")]
pub struct Running {
    /// Threads of each run [default: cores / jobs]
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,

    /// Runs at a time [default: as many as there are cores]
    #[arg(long, value_name = "COUNT")]
    jobs: Option<usize>,

    /// Where records go: OUT/NAME/LABEL-seedK [default: runs]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// The grid's folder in it [default: the preset or file]
    #[arg(long)]
    name: Option<String>,

    /// Write a checkpoint every N samples, or every N seconds
    #[arg(long, value_name = "EVERY", default_value_t)]
    pub checkpoint_every: Every,

    /// Go on with the runs on record in a run's or grid's folder
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,

    /// Begin with the learner of a checkpoint or a run's folder
    #[arg(long, value_name = "FILE|RUN")]
    from: Option<PathBuf>,
}

impl Running {
    /// The grid that configurations and flags ask for, or the one on record that is to go on.
    pub fn grid(&self, configs: &[String], flags: &Flags) -> anyhow::Result<Grid> {
        let Self { threads, jobs, out, name, from, resume, .. } = self;
        let wishes = Wishes {
            out: out.clone(),
            name: name.clone(),
            jobs: jobs.filter(|&jobs| jobs > 0),
            threads: threads.filter(|&threads| threads > 0),
            from: from.clone(),
        };
        match resume {
            Some(folder) => {
                refuse_beside_resume(self, configs, flags)?;
                further::resume(folder, &flags.table()?, &wishes)
            }
            None => grid::plan(configs, flags, &wishes),
        }
    }
}

/// What is on record says everything about a run but where its data lie and how it is made.
fn refuse_beside_resume(running: &Running, configs: &[String], given: &Flags) -> anyhow::Result<()> {
    let Running { out, name, from, .. } = running;
    let flags = given.table()?;
    let swept = given.sweeps()?.into_iter().map(|sweep| sweep.key);
    let key = flags.keys().cloned().chain(swept).find(|key| key != "data_dir");
    let beside = [("out", out.is_some()), ("name", name.is_some()), ("from", from.is_some())];
    let beside = beside.into_iter().find_map(|(flag, given)| given.then(|| flag.to_owned()));
    let Some(beside) = key.or(beside).or(configs.first().cloned()) else { return Ok(()) };
    let problem =
        format!("`{beside}` cannot be given with `--resume`: the record says how the runs are made");
    let hint = "with `--resume` go only --threads, --jobs, --checkpoint-every and --data-dir";
    Err(Usage::with_hint(problem, hint).into())
}
