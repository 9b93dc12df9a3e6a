//! `dpcl completions`: a script that teaches a shell the arguments.

use anyhow::Context;
use clap_complete::{Shell, env::Shells};

use crate::{completing, failure, output};

/// Print shell completions
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Which shell
    shell: Shell,
}

const EXAMPLES: &str = "\
The script asks `dpcl` itself what can follow: names of methods (also after a
comma), scenarios, presets, data sets, files.

Examples:
  dpcl completions bash > ~/.local/share/bash-completion/completions/dpcl
  dpcl completions zsh > ~/.zfunc/_dpcl
  dpcl completions fish > ~/.config/fish/completions/dpcl.fish";

/// Prints the script.
pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let name = arguments.shell.to_string();
    let shells = Shells::builtins();
    let shell = shells.completer(&name).with_context(|| format!("there are no completions for {name}"))?;
    let mut script = Vec::new();
    shell
        .write_registration(completing::VARIABLE, "dpcl", "dpcl", "dpcl", &mut script)
        .context("cannot write the script")?;
    output::data(&String::from_utf8_lossy(&script))?;
    Ok(failure::DONE)
}
