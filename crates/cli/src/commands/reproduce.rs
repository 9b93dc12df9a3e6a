//! `dpcl reproduce`: the paper's tables and figures, from the plan over the runs to a page with the paper's numbers beside
//! ours. What has to be run is said by `matrix.rs`; who runs it is the conductor here or a cluster.

mod data;
mod figures;
mod listing;
mod slurm;
mod state;
mod tables;

use std::{
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
};

use dpcl::folder::Every;
use dpcl_report::paper::Sheet;

use super::run;
use crate::{
    conductor::{self, Asked, Outcome, Shares},
    estimate::{self, Estimate},
    failure::{self, Usage},
    grid::Grid,
    invocation,
    matrix::{Experiment, MATRIX, Scale, Wanted},
    output,
    seeds::Seeds,
    show, signals,
};

/// Reproduce the paper's tables and figures, here or on a cluster
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// `list`, or tables and figures by name, or `all`
    #[arg(value_name = "list|ID", required = true)]
    ids: Vec<String>,

    /// How large the runs are
    #[arg(long, value_enum, default_value = "small")]
    scale: Scale,

    /// Seeds: `7`, `1,2,5` or `1..3` [default: the paper's; 1..3 at mid and
    /// small, 1 at smoke]
    #[arg(long)]
    seeds: Option<Seeds>,

    /// Only these rows, by label or by the paper's name
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    methods: Vec<String>,

    /// Only these columns, by the paper's name or by our stream's; separate
    /// them by semicolons
    #[arg(long, value_name = "NAMES", value_delimiter = ';')]
    columns: Vec<String>,

    /// Where records and tables go: OUT/SCALE/…
    #[arg(long, value_name = "DIR", default_value = "reproduced")]
    out: PathBuf,

    /// Where the data sets lie [default: $DPCL_DATA, else ./data]
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,

    /// Show the plan and an estimate, or the script for a cluster, and stop
    #[arg(long)]
    dry_run: bool,

    /// Show what is done, running and failed, make the tables, start nothing
    #[arg(long, conflicts_with = "dry_run")]
    status: bool,

    /// Runs at a time [default: as many as cores and memory allow]
    #[arg(long, value_name = "COUNT")]
    jobs: Option<usize>,

    /// Threads of each run [default: cores / jobs]
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,

    /// Write a checkpoint every N samples, or every N seconds
    #[arg(long, value_name = "EVERY", default_value_t)]
    checkpoint_every: Every,

    /// Who makes the runs
    #[arg(long, value_enum, default_value = "local")]
    engine: Engine,

    #[command(flatten)]
    cluster: slurm::Resources,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Engine {
    /// Processes on this machine
    Local,
    /// A Slurm cluster, as one job array
    Slurm,
}

const EXAMPLES: &str = "\
Runs that several tables share are made once. Given again, the same command
keeps what is finished and goes on with the rest; with any engine the records
are the same. Tables (Markdown, LaTeX, HTML) and figures (SVG) go beside them.

Examples:
  dpcl reproduce list
  dpcl reproduce all --scale smoke          everything in minutes, no data needed
  dpcl reproduce ablation --scale small --data-dir ~/data
  dpcl reproduce main --scale small --columns 'CIFAR100;CIFAR100-SC' --dry-run
  dpcl reproduce main --scale paper --engine slurm --time 24:00:00 --mem 8G
  dpcl reproduce main --scale paper --engine slurm --status
  dpcl reproduce main --scale paper --engine slurm --cancel";

/// Plans, runs, compares.
pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    if arguments.ids.iter().any(|id| id == "list") {
        output::data(&listing::text())?;
        return Ok(failure::DONE);
    }
    let experiments = MATRIX.find(&arguments.ids)?;
    let wanted = Wanted {
        scale: arguments.scale,
        seeds: arguments.seeds.clone(),
        methods: arguments.methods.clone(),
        columns: arguments.columns.clone(),
        out: arguments.out.clone(),
        data_dir: arguments.data_dir.clone(),
    };
    let (grid, sheets) = MATRIX.lay_out(&experiments, &wanted)?;
    let project = Project { arguments, wanted, experiments, grid, sheets };
    match arguments.engine {
        Engine::Local if arguments.cluster.cancel => Err(Usage::with_hint(
            "there is nothing to cancel on this machine",
            "Ctrl-C stops runs made here; for a cluster add `--engine slurm`",
        )
        .into()),
        Engine::Local => project.local(),
        Engine::Slurm => slurm::execute(&project),
    }
}

/// What was asked for, laid out.
struct Project<'a> {
    arguments: &'a Arguments,
    wanted: Wanted,
    experiments: Vec<&'a Experiment>,
    grid: Grid,
    sheets: Vec<Sheet>,
}

impl Project<'_> {
    fn local(&self) -> anyhow::Result<u8> {
        if self.arguments.status {
            output::data(&state::text(&self.grid, &|_| None)?)?;
            return self.present();
        }
        data::check(&self.grid)?;
        let estimate = self.estimate(self.shares(None))?;
        let shares = self.shares(Some(&estimate));
        let estimate = Estimate { shares, ..estimate };
        output::talk(self.heading());
        estimate.lines(&[self.wanted.folder()]).into_iter().for_each(output::talk);
        if self.arguments.dry_run {
            return Ok(failure::DONE);
        }
        self.grid.runs.iter().try_for_each(|run| run.folder.status(&run.setup).map(drop))?;
        let outcomes = self.conduct(shares)?;
        let failures = run::tell_failures(&self.grid.runs, &outcomes);
        if outcomes.iter().any(|outcome| matches!(outcome, Outcome::Interrupted)) {
            output::talk("interrupted: the same command goes on where it stopped");
            return Ok(failure::INTERRUPTED);
        }
        self.present()?;
        Ok(if failures.is_empty() { failure::DONE } else { failure::FAILED })
    }

    fn conduct(&self, shares: Shares) -> anyhow::Result<Vec<Outcome>> {
        let stop = Arc::new(AtomicBool::new(false));
        signals::set_on_signal_then_exit(&stop)?;
        let titles = self.grid.runs.iter().map(title).collect();
        let mut audience = show::audience(titles);
        let asked = Asked { command: &invocation::command(), every: self.arguments.checkpoint_every };
        Ok(conductor::conduct(&self.grid.runs, shares, &asked, &stop, &mut *audience))
    }

    fn estimate(&self, shares: Shares) -> anyhow::Result<Estimate> {
        estimate::of(&self.grid.runs, shares, &mut |label| output::talk(format!("measuring {label}")))
    }

    /// As many processes as the cores take, and, once it is known what a run needs, as memory takes.
    fn shares(&self, estimate: Option<&Estimate>) -> Shares {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let most = estimate.and_then(data::jobs_in_memory);
        let jobs = match (self.arguments.jobs.filter(|&jobs| jobs > 0), most) {
            (Some(jobs), Some(most)) if jobs > most => {
                output::talk(format!("--jobs {jobs} would need more memory than is free: {most} at a time"));
                Some(most)
            }
            (Some(jobs), _) => Some(jobs),
            (None, Some(most)) if most < cores => Some(most),
            (None, _) => None,
        };
        Shares::new(self.grid.runs.len(), cores, jobs, self.arguments.threads.filter(|&threads| threads > 0))
    }

    fn heading(&self) -> String {
        let names: Vec<&str> = self.experiments.iter().map(|experiment| experiment.id.as_str()).collect();
        format!("{} at the scale `{}`", names.join(", "), self.wanted.scale.name())
    }

    /// Makes figures, tables and pages of what is on record.
    fn present(&self) -> anyhow::Result<u8> {
        let figures = figures::make(self)?;
        tables::write(self, &figures)?;
        Ok(failure::DONE)
    }
}

/// Runs of several streams share their labels.
fn title(run: &crate::grid::Planned) -> String {
    let folder = run.folder.path().parent().and_then(|folder| folder.file_name());
    let stream = folder.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    format!("{stream}/{}", run.title)
}
