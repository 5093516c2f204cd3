//! `decompose cache`: the compiled kernels that runs keep.

use clap::{Args, Subcommand};
use decompose_common::machine::size;
use decompose_core::runtime::{KernelCache, Usage};
use decompose_formats::counted;
use serde_json::json;

use crate::cli::Done;
use crate::failure::Failure;
use crate::stdout;

/// Shows or clears the cache of compiled kernels.
///
/// Runs compile each kernel once and keep it; the kernels unused for longest go when the cache outgrows --cache-size.
#[derive(Args, Debug)]
pub(crate) struct CacheArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Tell where the cache is, how many kernels it holds, and their size.
    Info {
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
    /// Remove all compiled kernels, and what is known of the compiler and of measured schedules.
    Clear,
}

/// Runs the command.
///
/// # Errors
///
/// A cache that cannot be opened or cleared, or an output that cannot be written.
pub(crate) fn run(args: &CacheArgs) -> Result<Done, Failure> {
    let cache = KernelCache::open().map_err(Failure::input)?;
    let shown = |Usage { kernels, bytes }| {
        format!("{}, {}", counted(kernels, "kernel", "kernels"), size(bytes))
    };
    match args.action {
        Action::Info { json: true } => {
            let Usage { kernels, bytes } = cache.usage();
            stdout::json(&json!({
                "folder": cache.folder(),
                "kernels": kernels,
                "bytes": bytes,
                "limit": KernelCache::limit(),
                "temporary": cache.lasts_for_this_process_only(),
            }))?;
        }
        Action::Info { json: false } => {
            stdout::line(format!("folder   {}", cache.folder().display()))?;
            stdout::line(format!("holds    {}", shown(cache.usage())))?;
            stdout::line(format!("limit    {}", size(KernelCache::limit())))?;
            if let Some(why) = cache.lasts_for_this_process_only() {
                stdout::line(format!("note     kernels are compiled anew in every run: {why}"))?;
            }
        }
        Action::Clear => {
            let removed = cache.clear().map_err(Failure::input)?;
            stdout::line(format!("removed  {}", shown(removed)))?;
        }
    }
    Ok(Done::Complete)
}
