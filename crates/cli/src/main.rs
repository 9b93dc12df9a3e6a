//! The `dpcl` program.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    dpcl_cli::main()
}
