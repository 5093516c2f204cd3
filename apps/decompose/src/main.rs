//! The command line of the suite: it parses, calls and prints, and computes nothing itself.

mod bench;
mod cache;
mod cli;
mod complete;
mod convert;
mod cp;
mod einsum;
mod evaluate;
mod experiment;
mod failure;
mod generate;
mod help;
mod input;
mod labels;
mod listing;
mod manual;
mod pattern;
mod plot;
mod rank;
mod run;
mod schedule;
mod stats;
mod stdout;
mod tt;
mod tucker;
mod tune;

use std::process::ExitCode;

use decompose_common::system::Allocator;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    cli::main()
}
