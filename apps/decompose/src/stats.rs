//! `decompose stats`: facts about a tensor.

use clap::Args;
use decompose_common::machine::size;
use decompose_common::progress::{Screen, Verbosity};
use decompose_formats::TensorStats;
use serde_json::json;

use crate::cli::Done;
use crate::failure::Failure;
use crate::input::InputArgs;
use crate::run::args::parse_count;
use crate::stdout;

/// Facts about a tensor: extents, non-zeros, fibres, values, memory needed.
///
/// Counts marked ~ are estimates with a standard error of 1.15 %.
#[derive(Args, Debug)]
pub(crate) struct StatsArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Also tell the memory that CP and Tucker models of this rank need.
    #[arg(long, short, value_name = "R", value_parser = parse_count)]
    rank: Option<usize>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
///
/// Bad input, or an output that cannot be written.
pub(crate) fn run(args: &StatsArgs) -> Result<Done, Failure> {
    let mut screen = Screen::new(Verbosity::Normal);
    let mut input = args.input.read::<f64>(&mut screen)?;
    let (merged, _) = input.tidy(args.input.duplicates(), &mut screen)?;
    let (stats, _) = screen.phase("count", || TensorStats::of(&input.tensor, merged));
    let forecasts = args.rank.map(|rank| {
        let rank = rank as u64;
        let ranks = vec![rank; stats.extents.len()];
        (rank, stats.cp_forecast(rank), stats.tucker_forecast(&ranks))
    });
    if args.json {
        let memory =
            forecasts.map(|(rank, cp, tucker)| json!({ "rank": rank, "cp": cp, "tucker": tucker }));
        stdout::json(&json!({ "input": input.report, "stats": stats, "memory": memory }))?;
        return Ok(Done::Complete);
    }
    stdout::line(stats.to_string().trim_end())?;
    if let Some((rank, cp, tucker)) = forecasts {
        stdout::line(format!(
            "\nmemory at rank {rank}: CP {}, Tucker {} (one tree a mode and the matrices)",
            size(cp),
            size(tucker)
        ))?;
    }
    Ok(Done::Complete)
}
