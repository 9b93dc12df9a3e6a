//! What a shell can complete: names that arguments take without being held to them, and lists of names with commas.
//!
//! The shell's script asks the program itself, so that completions know every name that can be given, and the next one
//! after a comma.

use std::ffi::OsStr;

use clap_complete::{
    CompleteEnv,
    engine::{ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _},
};

use crate::presets;

/// What tells the program that a shell asks, and which.
pub const VARIABLE: &str = "DPCL_COMPLETE";

/// Answers a shell that asks for completions, and ends the process then.
pub fn answer(definition: fn() -> clap::Command) {
    CompleteEnv::with_factory(definition).var(VARIABLE).complete();
}

/// Presets and TOML files.
pub fn configurations() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let mut found = beginning(presets::names(), current);
        let toml = PathCompleter::any()
            .filter(|path| path.is_dir() || path.extension().is_some_and(|end| end == "toml"));
        found.extend(toml.complete(current));
        found
    })
}

/// Names of presets.
pub fn preset_names() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| beginning(presets::names(), current))
}

/// Names of data sets, and paths.
pub fn datasets() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let names = dpcl::data::list().iter().map(|info| info.name).collect();
        let mut found = beginning(names, current);
        found.extend(PathCompleter::any().complete(current));
        found
    })
}

fn beginning(names: Vec<&'static str>, current: &OsStr) -> Vec<CompletionCandidate> {
    let current = current.to_string_lossy();
    names.into_iter().filter(|name| name.starts_with(&*current)).map(CompletionCandidate::new).collect()
}
