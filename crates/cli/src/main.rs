//! The `dpcl` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    dpcl_cli::main()
}
