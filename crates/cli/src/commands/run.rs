//! `dpcl run`: makes the runs asked for, each in a process of its own, and shows how they compare.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::Context;
use dpcl::{
    Run,
    folder::{self, Every},
    stream::Scenario,
};

use crate::{
    completing,
    conductor::{self, Asked, Outcome, Shares},
    conflict,
    failure::{self, Failure, Usage},
    flags::Flags,
    further,
    grid::{self, Grid, Planned, Wishes},
    invocation, output, show, signals, told,
};

/// Learn a stream and see what is remembered
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// TOML files or presets [default: the preset `default`]
    #[arg(value_name = "CONFIG|PRESET", add = completing::configurations())]
    configs: Vec<String>,

    #[command(flatten)]
    flags: Flags,

    #[command(flatten)]
    running: Running,
}

#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Running")]
struct Running {
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
    checkpoint_every: Every,

    /// Go on with the runs on record in a run's or grid's folder
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,

    /// Begin with the learner of a checkpoint
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
}

const EXAMPLES: &str = "\
There is one run for each configuration, method and seed, each in a process of
its own. Given again, the same command keeps the runs that finished and goes on
with those that were cut off, from their last checkpoint; the record is the same
as if nothing had happened. Nothing is ever overwritten.

Examples:
  dpcl run                            with and without memory, embedded images
  dpcl run --seeds 1..3               three seeds each: mean ± deviation
  dpcl run --method er --memory 50,100,200 --set lr=0.001,0.0003 --name sweep
                                      every combination, each under its label
  dpcl run small --data-dir ~/data    the small protocol on CIFAR-100
  dpcl run a.toml b.toml --name both  two labelled configurations, one table
  dpcl run --n 50 --m 10 --name half  an i-Blurry stream
  dpcl run --set lr=0.001 --name slow any key of the configuration
  dpcl run --resume runs/small        go on where it stopped, arguments as then
  dpcl run --from otter.ckpt --dataset folder --data-dir new-photos
                                      a learner taken further on new classes
`dpcl list` shows every name, `dpcl check` what a configuration settles on.";

/// Makes the runs.
pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let Running { threads, jobs, out, name, from, resume, checkpoint_every } = &arguments.running;
    let wishes = Wishes {
        out: out.clone(),
        name: name.clone(),
        jobs: jobs.filter(|&jobs| jobs > 0),
        threads: threads.filter(|&threads| threads > 0),
        from: from.clone(),
    };
    let grid = match resume {
        Some(folder) => {
            refuse_beside_resume(arguments)?;
            further::resume(folder, &arguments.flags.table()?, &wishes)?
        }
        None => grid::plan(&arguments.configs, &arguments.flags, &wishes)?,
    };
    conflict::refuse(&grid)?;
    tell_first(&grid);

    let stop = Arc::new(AtomicBool::new(false));
    signals::set_on_signal_then_exit(&stop)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let shares = Shares::new(grid.runs.len(), cores, grid.jobs, grid.threads);
    output::talk(opening(&grid, shares));
    let titles = grid.runs.iter().map(|run| run.title.clone()).collect();
    let outcomes = {
        let mut audience = show::audience(titles);
        let asked = Asked { command: &invocation::command(), every: *checkpoint_every };
        conductor::conduct(&grid.runs, shares, &asked, &stop, &mut *audience)
    };
    close(&grid, &outcomes)
}

/// What is on record says everything about a run but where its data lie and how it is made.
fn refuse_beside_resume(arguments: &Arguments) -> anyhow::Result<()> {
    let Running { out, name, from, .. } = &arguments.running;
    let flags = arguments.flags.table()?;
    let swept = arguments.flags.sweeps()?.into_iter().map(|sweep| sweep.key);
    let key = flags.keys().cloned().chain(swept).find(|key| key != "data_dir");
    let beside = [("out", out.is_some()), ("name", name.is_some()), ("from", from.is_some())];
    let beside = beside.into_iter().find_map(|(flag, given)| given.then(|| flag.to_owned()));
    let Some(beside) = key.or(beside).or(arguments.configs.first().cloned()) else { return Ok(()) };
    let problem =
        format!("`{beside}` cannot be given with `--resume`: the record says how the runs are made");
    let hint = "with `--resume` go only --threads, --jobs, --checkpoint-every and --data-dir";
    Err(Usage::with_hint(problem, hint).into())
}

/// What should be known before the runs are made.
fn tell_first(grid: &Grid) {
    told::ignored(grid).iter().for_each(output::talk);
    // Laying out the stream opens the data; only these scenarios leave something out.
    let deals = [Scenario::Blurry, Scenario::IBlurry, Scenario::RmBlurry];
    let mut seen: Vec<(String, Scenario)> = Vec::new();
    for run in grid.runs.iter().filter(|run| deals.contains(&run.setup.scenario)) {
        let stream = (run.setup.dataset.clone(), run.setup.scenario);
        if !seen.contains(&stream) {
            seen.push(stream);
            // What is wrong with the data, the run itself says.
            let note = Run::open(&run.config).ok().as_ref().and_then(told::left_out);
            note.iter().for_each(|note| output::talk(format!("note: {note} (seed {})", run.setup.seed)));
        }
    }
}

fn opening(grid: &Grid, shares: Shares) -> String {
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let (runs, threads) = (plural(grid.runs.len(), "run"), plural(shares.threads, "thread"));
    let folders: Vec<String> = grid.folders.iter().map(|folder| folder.display().to_string()).collect();
    let folders = folders.join(", ");
    if grid.runs.len() == 1 {
        return format!("{runs} with {threads}, recorded in {folders}");
    }
    format!("{runs}, {} at a time with {threads} each, recorded in {folders}", shares.jobs)
}

fn close(grid: &Grid, outcomes: &[Outcome]) -> anyhow::Result<u8> {
    // Before the table: an old record that cannot be read must not hide them.
    let failures = tell_failures(&grid.runs, outcomes);
    if outcomes.iter().any(|outcome| matches!(outcome, Outcome::Interrupted)) {
        output::talk(
            "interrupted: the same command keeps finished runs and goes on with the others where they stopped",
        );
        return Ok(failure::INTERRUPTED);
    }
    let succeeded = outcomes.iter().any(|outcome| !matches!(outcome, Outcome::Failed(_)));
    if succeeded {
        present(&grid.folders)?;
    }
    if failures.is_empty() {
        output::talk(next_steps(grid));
        return Ok(failure::DONE);
    }
    // A grid of which no run could even start was asked for wrongly.
    let usage = !succeeded && failures.iter().all(|failure| failure.code == failure::USAGE);
    Ok(if usage { failure::USAGE } else { failure::FAILED })
}

/// Prints the table and writes a page beside the runs.
fn present(folders: &[PathBuf]) -> anyhow::Result<()> {
    let report = dpcl_report::load(folders)?;
    output::talk("");
    let table = if output::data_is_watched() {
        report.terminal(output::data_width(), output::data_colour())
    } else {
        report.plain(output::data_width())
    };
    output::styled_data(&table)?;
    output::talk("");
    for folder in folders {
        // One page a folder; with several, each holds its own runs only.
        let page = dpcl_report::load(std::slice::from_ref(folder))?.html();
        output::talk(format!("report: {}", write_page(folder, &page)?.display()));
    }
    Ok(())
}

/// Writes or replaces the page derived from a folder's records.
fn write_page(folder: &Path, page: &str) -> anyhow::Result<PathBuf> {
    let path = folder.join("report.html");
    folder::write_whole(&path, page.as_bytes()).context("cannot write the report")?;
    Ok(path)
}

/// Tells every failure once, with all runs it befell.
fn tell_failures(runs: &[Planned], outcomes: &[Outcome]) -> Vec<Failure> {
    let mut told: Vec<(Failure, Vec<&str>)> = Vec::new();
    for (run, outcome) in runs.iter().zip(outcomes) {
        let Outcome::Failed(failure) = outcome else { continue };
        match told.iter_mut().find(|(known, _)| known == failure) {
            Some((_, titles)) => titles.push(&run.title),
            None => told.push((failure.clone(), vec![&run.title])),
        }
    }
    for (failure, titles) in &told {
        let mut failure = failure.clone();
        let first = failure.chain.first_mut();
        if let Some(first) = first {
            *first = format!("{}: {first}", titles.join(", "));
        }
        failure.tell();
    }
    told.into_iter().map(|(failure, _)| failure).collect()
}

fn next_steps(grid: &Grid) -> String {
    let program = invocation::program();
    let mut steps = Vec::new();
    let seed = grid.runs.first().map(|run| run.setup.seed);
    let again = invocation::arguments_with("--seeds", "1..3");
    // A resumed grid has the seeds on record.
    let resumed = again.contains("--resume");
    if !resumed && grid.runs.iter().all(|run| Some(run.setup.seed) == seed) {
        steps.push(format!("{program} {again}    # mean ± deviation"));
    }
    if grid.folders.iter().all(|folder| folder.ends_with("default")) {
        steps.push(format!("{program} run --method er --memory 50 --name tiny-memory"));
        steps.push(format!("{program} data fetch cifar100    # then: run small"));
    } else {
        let folders: Vec<String> = grid.folders.iter().map(|folder| folder.display().to_string()).collect();
        steps.push(format!("{program} report {} --format markdown", folders.join(" ")));
        steps.push(format!("{program} list methods    # what else to compare"));
    }
    // A command that runs over the edge is no invitation.
    steps.retain(|step| step.chars().count() + 2 <= output::talk_width());
    format!("\nwhat to try next:\n  {}", steps.join("\n  "))
}
