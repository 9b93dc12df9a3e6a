//! `dpcl run`: makes the runs asked for, each in a process of its own, and shows how they compare.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use anyhow::Context;
use dpcl::{Run, folder, stream::Scenario};
use dpcl_report::format;

use super::running::Running;

use crate::{
    completing,
    conductor::{self, Asked, Outcome, Shares},
    conflict, estimate,
    failure::{self, Failure},
    flags::Flags,
    grid::{Grid, Planned},
    invocation, newest, output, show, signals, told,
};

/// Learn a stream and see what is remembered
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// TOML files, presets or folders of images [default: the preset `default`]
    #[arg(value_name = "CONFIG|PRESET|FOLDER", add = completing::configurations())]
    configs: Vec<String>,

    #[command(flatten)]
    flags: Flags,

    #[command(flatten)]
    running: Running,
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
  dpcl run photos/                    your own images, a folder a class
  dpcl run --from runs/photos/er-seed1 --dataset folder \\
    --data-dir photos --data-dir new  a learner taken further on the classes in
                                      `new`, and tested on those in `photos` too
`dpcl list` shows every name, `dpcl check` what a configuration settles on.";

/// Makes the runs.
pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let (flags, running) = (&arguments.flags, &arguments.running);
    let grid = running.grid(&arguments.configs, flags)?;
    conflict::refuse(&grid)?;
    tell_first(&grid);

    let stop = Arc::new(AtomicBool::new(false));
    signals::set_on_signal_then_exit(&stop)?;
    let shares = grid.shares();
    output::talk(opening(&grid, shares));
    tell_time(&grid, shares);
    let titles = grid.runs.iter().map(|run| run.title.clone()).collect();
    let outcomes = {
        let mut audience = show::audience(titles);
        let asked = Asked { command: &invocation::command(), every: running.checkpoint_every };
        conductor::conduct(&grid.runs, shares, &asked, &stop, &mut *audience)
    };
    close(&grid, &outcomes)
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

/// Updates and time, from a step measured here. What cannot be opened or run says so itself when its turn comes.
fn tell_time(grid: &Grid, shares: Shares) {
    let Ok(estimate) = estimate::of(&grid.runs, shares, &mut |_| ()) else { return };
    let (open, updates) = (estimate.open().count(), estimate.open().map(|run| run.outlook.updates).sum());
    if open > 0 {
        let (updates, time) = (format::thousands(updates), estimate::human(estimate.wall_seconds()));
        output::talk(format!("{updates} updates to make, about {time} by a step measured here"));
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
pub fn tell_failures(runs: &[Planned], outcomes: &[Outcome]) -> Vec<Failure> {
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

/// How the first run's learner is asked, with the checkpoint's real path.
fn ask(grid: &Grid) -> Option<String> {
    let checkpoint = grid.runs.iter().find_map(|run| newest::in_run(run.folder.path()))?;
    let checkpoint = invocation::quote(&checkpoint.display().to_string());
    Some(format!("{} predict --checkpoint {checkpoint} IMAGE", invocation::program()))
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
    // A path is what it is.
    if let Some(ask) = ask(grid) {
        steps.insert(0, ask);
    }
    format!("\nwhat to try next:\n  {}", steps.join("\n  "))
}
