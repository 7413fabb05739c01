//! The `pleg` command. All of it is in the library, in `cli`.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    pleg::cli::main()
}
