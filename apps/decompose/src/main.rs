//! The command line of the suite: it parses, calls and prints, and computes nothing itself.

mod cli;
mod convert;
mod cp;
mod einsum;
mod failure;
mod generate;
mod input;
mod labels;
mod manual;
mod pattern;
mod plot;
mod run;
mod schedule;
mod stats;
mod stdout;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
