//! The `dpcl` command: the only place that reads arguments, prints or exits.

mod commands;
mod conductor;
mod failure;
mod flags;
mod further;
mod grid;
mod invocation;
mod keys;
mod layers;
mod message;
mod output;
mod presets;
mod scenario;
mod seeds;
mod show;
mod signals;
mod variant;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let arguments = commands::Arguments::parse();
    let outcome = dpcl::device::instruction_set().map_err(Into::into).and_then(|_| arguments.execute());
    let code = outcome.unwrap_or_else(|error| {
        let failure = failure::Failure::from(&error);
        failure.tell();
        failure.code
    });
    ExitCode::from(code)
}
