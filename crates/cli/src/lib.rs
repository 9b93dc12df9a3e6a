//! The `dpcl` command: the only place that reads arguments, prints or exits.
//!
//! It is a library so that a program with methods of its own can have the whole command:
//! `examples/own_method.rs` registers one and calls [`main`].

#![forbid(unsafe_code)]

mod commands;
mod completing;
mod conductor;
mod conflict;
mod estimate;
mod failure;
mod flags;
mod further;
mod grid;
mod invocation;
mod keys;
mod layers;
mod matrix;
mod meant;
mod message;
mod misread;
mod newest;
mod output;
mod presets;
mod scenario;
mod seeds;
mod show;
mod signals;
mod sweep;
mod told;
mod variant;

use std::process::ExitCode;

use clap::Parser;

/// Does what the command line asks for; the exit code says how it went. Methods that are to be named there have to be
/// registered before.
pub fn main() -> ExitCode {
    completing::answer(commands::definition);
    let arguments = commands::Arguments::try_parse().unwrap_or_else(|error| misread::refuse(&error));
    let outcome = dpcl::device::instruction_set().map_err(Into::into).and_then(|_| arguments.execute());
    let code = outcome.unwrap_or_else(|error| {
        let failure = failure::Failure::from(&error);
        failure.tell();
        failure.code
    });
    ExitCode::from(code)
}
