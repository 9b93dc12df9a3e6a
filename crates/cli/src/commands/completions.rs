//! `dpcl completions`: a script that teaches a shell the arguments.

use clap_complete::Shell;

use crate::{failure, output};

/// Print shell completions
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Which shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  dpcl completions bash > ~/.local/share/bash-completion/completions/dpcl
  dpcl completions zsh > ~/.zfunc/_dpcl
  dpcl completions fish > ~/.config/fish/completions/dpcl.fish";

/// Prints the script.
pub fn execute(arguments: &Arguments) -> anyhow::Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::definition(), "dpcl", &mut script);
    output::data(&String::from_utf8_lossy(&script))?;
    Ok(failure::DONE)
}
