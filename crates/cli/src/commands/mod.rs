//! The subcommands, a file each: its arguments, its help and what it does. `dpcl` reads arguments nowhere else.

mod bench;
mod check;
mod completions;
mod data;
mod inspect;
mod list;
mod predict;
mod presets;
mod report;
mod reproduce;
mod run;
mod run_one;
mod running;
#[cfg(feature = "serve")]
mod serve;
mod split;

use clap::{Parser, Subcommand};

/// Learn image classes from a stream seen once, and measure what is remembered
#[derive(Debug, Parser)]
#[command(name = "dpcl", version, max_term_width = 80, after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  dpcl run                            compare methods on embedded images
  dpcl run --seeds 1..3 --jobs 2      three seeds each, two runs at a time
  dpcl report runs/default            the table again, and report.html
  dpcl list methods                   what can be named
  dpcl data fetch cifar100            get a data set
Results go to stdout, everything else to stderr.
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.";

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Arguments),
    #[command(hide = true, about = "Make one run in this process; started by `dpcl run`")]
    RunOne(run_one::Arguments),
    Report(report::Arguments),
    Reproduce(reproduce::Arguments),
    Predict(predict::Arguments),
    #[cfg(feature = "serve")]
    Serve(serve::Arguments),
    Inspect(inspect::Arguments),
    List(list::Arguments),
    Check(check::Arguments),
    Bench(bench::Arguments),
    Data(data::Arguments),
    Split(split::Arguments),
    Presets(presets::Arguments),
    Completions(completions::Arguments),
}

impl Arguments {
    /// Does what was asked; gives the exit code.
    pub fn execute(&self) -> anyhow::Result<u8> {
        match &self.command {
            Command::Run(arguments) => run::execute(arguments),
            Command::RunOne(arguments) => run_one::execute(arguments),
            Command::Report(arguments) => report::execute(arguments),
            Command::Reproduce(arguments) => reproduce::execute(arguments),
            Command::Predict(arguments) => predict::execute(arguments),
            #[cfg(feature = "serve")]
            Command::Serve(arguments) => serve::execute(arguments),
            Command::Inspect(arguments) => inspect::execute(arguments),
            Command::List(arguments) => list::execute(arguments),
            Command::Check(arguments) => check::execute(arguments),
            Command::Bench(arguments) => bench::execute(arguments),
            Command::Data(arguments) => data::execute(arguments),
            Command::Split(arguments) => split::execute(arguments),
            Command::Presets(arguments) => presets::execute(arguments),
            Command::Completions(arguments) => completions::execute(arguments),
        }
    }
}

/// The definition of all arguments, for completions.
pub fn definition() -> clap::Command {
    <Arguments as clap::CommandFactory>::command()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_arguments_are_consistent() {
        super::definition().debug_assert();
    }
}
