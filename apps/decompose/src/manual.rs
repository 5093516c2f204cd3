//! Completions and manual pages, made from the command line's own description.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::{Cli, Done};
use crate::failure::Failure;
use crate::stdout;

/// Prints the completions for a shell.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Prints the manual page, or writes the pages of all commands.
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Write one page a command into this folder instead.
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Prints completions.
///
/// # Errors
///
/// If standard output cannot be written.
pub(crate) fn completions(args: &CompletionsArgs) -> Result<Done, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "decompose", &mut script);
    stdout::bytes(&script)?;
    Ok(Done::Complete)
}

/// Prints or writes manual pages.
///
/// # Errors
///
/// If they cannot be written.
pub(crate) fn man(args: &ManArgs) -> Result<Done, Failure> {
    match &args.out {
        None => {
            let mut page = Vec::new();
            let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
            rendered.map_err(|error| Failure::internal(error.to_string()))?;
            stdout::bytes(&page)?;
        }
        Some(folder) => {
            let refused = |e| {
                Failure::input(format!("cannot write manual pages to {}: {e}", folder.display()))
            };
            std::fs::create_dir_all(folder).map_err(refused)?;
            clap_mangen::generate_to(Cli::command(), folder).map_err(refused)?;
        }
    }
    Ok(Done::Complete)
}
