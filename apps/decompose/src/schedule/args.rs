//! What the user typed after `decompose schedule`, checked word by word only.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use decompose_common::machine::parse_size;
use decompose_core::autoschedule::names;
use decompose_core::cost::symbolic::{Assumption, Range};
use decompose_core::schedule::Format;
use decompose_core::sweep::TreeLayout;

use crate::failure::Failure;
use crate::input::parse_extent;
use crate::run::args::{Precision, parse_count, parse_seconds, parse_threads};

/// Schedules a product of sparse and dense tensors, and explains the choice.
///
/// EXPR is written as `A(i,r) = X(i,j,k) * B(j,r) * C(k,r)`, as `ijk,jr,kr->ir` (operands X, A, B,
/// ...; result Y), or as a named kernel: mttkrp:ORDER:MODE, ttmc:ORDER:MODE or ttmc:ORDER,
/// tttp:ORDER, tttc:ORDER:MODE or tttc:ORDER, ttv:ORDER:MODE, ttm:ORDER:MODE, sddmm, spmv, spmm.
#[derive(Args, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "one a switch, as typed")]
pub(crate) struct ScheduleArgs {
    /// The expression, or a named kernel such as mttkrp:3:1.
    pub(crate) expr: String,
    #[command(flatten)]
    pub(crate) input: OperandArgs,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    /// List all candidates of all paths with their costs.
    #[arg(long)]
    pub(crate) all: bool,
    /// The most candidates that are listed or measured.  [default: 20 listed, 8 measured]
    #[arg(long, value_name = "K", value_parser = parse_count)]
    pub(crate) top: Option<usize>,
    /// Count the time to build the trees too, as `decompose einsum` does: what is best for a kernel that runs once.
    #[arg(long, conflicts_with = "measure")]
    pub(crate) once: bool,
    /// Run the best candidates on the tensor, keep the fastest for `--scheduler measured`.
    #[arg(long)]
    pub(crate) measure: bool,
    /// The time for all measurements together, and for the program that const-z3 asks (also 90s, 15m).
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse_seconds)]
    pub(crate) budget: f64,
    #[command(flatten)]
    pub(crate) frontier: FrontierArgs,
    #[command(flatten)]
    pub(crate) partition: PartitionArgs,
    #[command(flatten)]
    pub(crate) output: ShowArgs,
}

/// Which templates of `--scheduler partition` are searched, and how.
#[derive(Args, Debug)]
#[command(next_help_heading = "Partition")]
#[expect(clippy::struct_excessive_bools, reason = "one a switch, as typed")]
pub(crate) struct PartitionArgs {
    /// List the templates: split schedule, settings, predicted seconds, and with --measure the measured ones.
    #[arg(long, conflicts_with_all = ["json", "emit"])]
    pub(crate) templates: bool,
    /// Take these rows of --templates only, as 2,5-7.
    #[arg(long, value_name = "ROWS")]
    pub(crate) take: Option<String>,
    /// Measure every schedule, whatever --budget says, in the place of those of which something is to be hoped for.
    #[arg(long, requires = "measure")]
    pub(crate) exhaustive: bool,
    /// Decides which schedules are tried.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) sampling_seed: u64,
    /// Draw the space of schedules, what trimming leaves of it, and with --measure the times: FILE-space, FILE-trimming,
    /// FILE-times.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot_templates: Option<PathBuf>,
}

/// What the stages of `--scheduler sparseauto` are asked, and what is told of them.
#[derive(Args, Debug)]
#[command(next_help_heading = "SparseAuto")]
pub(crate) struct FrontierArgs {
    /// List the time and memory, as polynomials, that no other nest beats for all sizes: on all trees or that
    /// of --tree, of all paths, with results stored over 2 indices or as many as --max-buffer-dims says.
    #[arg(long)]
    pub(crate) frontier: bool,
    /// List what is left after a stage: 1 memory depth and 2 depths by their depths, 3 time and memory,
    /// 4 iterations and 5 accesses as rows of the frontier.
    #[arg(long, value_name = "N", value_parser = parse_stage)]
    pub(crate) stage: Option<usize>,
    /// Emit and draw row N of --frontier in the place of the model's choice; with --emit.
    #[arg(long, value_name = "N", value_parser = parse_count, requires = "emit", conflicts_with = "json")]
    pub(crate) row: Option<usize>,
    /// A range of sizes for which nests are compared, as i=1000:1000000, nnz(B)=1e4:1e6 or sparsity=0.001:0.01.
    #[arg(long, value_name = "SIZE=FROM:TO")]
    pub(crate) range: Vec<Range>,
    /// A relation between sizes for which nests are compared, as `10*j<k`.
    #[arg(long, value_name = "RELATION")]
    pub(crate) assume: Vec<Assumption>,
    /// Put the comparisons of stage 3 to this solver too.
    #[arg(long, value_name = "SOLVER")]
    pub(crate) smt: Option<Solver>,
    /// Draw the memory of the frontier against its time: FILE.svg and FILE.png.  With --measure: that of
    /// the measured nests against their seconds.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot_frontier: Option<PathBuf>,
}

/// What is known of the operands.
#[derive(Args, Debug)]
#[command(next_help_heading = "Operands")]
pub(crate) struct OperandArgs {
    /// A sparse operand and its file, as X=nell-2.tns; once for each.  Without any the first operand
    /// is sparse, wherever it stands, and its non-zeros are taken to be spread evenly.
    #[arg(long, value_name = "NAME=FILE", value_parser = parse_binding)]
    pub(crate) tensor: Vec<Binding>,
    /// Extents of indices, as i=1000,j=200,k=50.
    #[arg(long, value_name = "I=N,...", value_delimiter = ',', value_parser = parse_index_extent)]
    pub(crate) extents: Vec<(String, u64)>,
    /// Extents of indices of dense operands, as r=16,s=32.
    #[arg(long, value_name = "I=N,...", value_delimiter = ',', value_parser = parse_index_extent)]
    pub(crate) dense: Vec<(String, u64)>,
    /// The extent of all other indices that the sparse operands lack.
    #[arg(long, short, value_name = "R", value_parser = parse_extent)]
    pub(crate) rank: Option<u64>,
    /// The number of non-zeros, where there is no file.
    #[arg(long, value_name = "N", value_parser = parse_nonzeros, conflicts_with = "tensor")]
    pub(crate) nnz: Option<u64>,
}

/// How a schedule is found; the same for all commands that search.
#[derive(Args, Debug)]
#[command(next_help_heading = "Search")]
pub(crate) struct SearchArgs {
    /// The search: spttn, exhaustive, scorch, const, sparseauto, partition, const-z3, which asks the program z3, or
    /// measured, which takes the choice of an earlier --measure or measures now.  [default: spttn]
    #[arg(long, value_name = "NAME", value_parser = parse_scheduler)]
    pub(crate) scheduler: Option<Search>,
    /// How the only sparse operand is stored: auto, or its modes from the root, as 2-1-3, the last
    /// ones fused as in 2-1+3.  [default: auto]
    #[arg(long, value_name = "ORDER", value_parser = parse_tree)]
    pub(crate) tree: Option<Tree>,
    /// How a sparse operand is stored, as X=i,j:dense,k: the indices of its levels from the root, each with its kind unless
    /// that is compressed: dense, bitmap, hashed or singleton.  Once for each operand; the others are stored as suits
    /// them.  A result is an array, as Z=i:dense,k:dense, or a list, as Z=i,k; without this it is a list where several
    /// operands are sparse and few elements are expected, and `einsum` takes what the file of --out holds.
    #[arg(long, value_name = "NAME=LEVELS", value_parser = parse_format, conflicts_with = "tree")]
    pub(crate) format: Vec<(String, Format)>,
    /// Take the schedule in this file; see --emit nest of `decompose schedule`.  Its layout says
    /// how the operand is stored, and its buffers may be of any size.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["scheduler", "tree", "format"])]
    pub(crate) schedule: Option<PathBuf>,
    /// The most indices over which a buffer is stored.  [default: 2, or one fewer than the
    /// dense indices of the result if that is more]
    #[arg(long, value_name = "D")]
    pub(crate) max_buffer_dims: Option<usize>,
    /// The most memory of a buffer, as 64K or 1M.  [default: 256K; of sparseauto half of the last-level cache]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_buffer_bytes: Option<u64>,
    /// Threads.  [default: all]
    #[arg(long, short, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<usize>,
    /// The precision of values.
    #[arg(long, value_name = "TYPE", default_value = "f64")]
    pub(crate) precision: Precision,
}

/// What is printed and drawn.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
#[expect(clippy::struct_excessive_bools, reason = "one a switch, as typed")]
pub(crate) struct ShowArgs {
    /// Print one thing only: the schedule as --schedule reads it (nest), the loop program (ir), the
    /// generated C (c), or the constraints that its loops and layouts keep, as text (system) or
    /// SMT-LIB (smt).
    #[arg(long, value_name = "WHAT", conflicts_with = "json")]
    pub(crate) emit: Option<Emit>,
    /// Print one JSON object.
    #[arg(long)]
    pub(crate) json: bool,
    /// Draw the loop nest, and of three operands or more their network and the tree of its contractions:
    /// FILE.svg and FILE.png.
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// Draw predicted against measured seconds of all candidates: FILE.svg and FILE.png.
    #[arg(long, value_name = "FILE", requires = "measure")]
    pub(crate) plot_race: Option<PathBuf>,
    /// Replace figures that exist.
    #[arg(long)]
    pub(crate) overwrite: bool,
}

/// Refuses an operand that has two files.
pub(crate) fn check_given_once(bindings: &[Binding]) -> Result<(), Failure> {
    for (at, binding) in bindings.iter().enumerate() {
        if let Some(before) = bindings[..at].iter().find(|before| before.name == binding.name) {
            let (first, second) = (before.file.display(), binding.file.display());
            let why = format!("operand `{}` is given twice: {first} and {second}", binding.name);
            return Err(Failure::input(why).help("give it one file"));
        }
    }
    Ok(())
}

/// An operand and its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binding {
    pub(crate) name: String,
    pub(crate) file: PathBuf,
}

/// The search that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Search {
    /// The one with this name.
    Named(&'static str),
    /// The choice of a measurement.
    Measured,
}

/// The tree of the sparse operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    /// The best of those worth a search.
    Auto,
    /// This one.
    Given(TreeLayout),
}

/// A solver that is another program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Solver {
    /// The program `z3`.
    Z3,
}

/// What `--emit` prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// The schedule.
    Nest,
    /// The loop program.
    Ir,
    /// The generated C.
    C,
    /// The constraint system of its contraction tree.
    System,
    /// The same as SMT-LIB.
    Smt,
}

/// Parses `NAME=FILE`.
pub(crate) fn parse_binding(text: &str) -> Result<Binding, String> {
    match text.split_once('=') {
        Some((name, file)) if !name.trim().is_empty() && !file.is_empty() => {
            Ok(Binding { name: name.trim().to_owned(), file: file.into() })
        }
        _ => Err(format!("`{text}` is no operand with its file; write it as X=FILE")),
    }
}

/// Parses `i=100`.
pub(crate) fn parse_index_extent(text: &str) -> Result<(String, u64), String> {
    let bad = || format!("`{text}` is no index with its extent; write it as i=100");
    let (word, extent) = text.split_once('=').ok_or_else(bad)?;
    let word = word.trim();
    let named = word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !named {
        return Err(bad());
    }
    Ok((word.to_owned(), parse_extent(extent)?))
}

/// Parses a number of non-zeros.
fn parse_nonzeros(text: &str) -> Result<u64, String> {
    let count = text.trim().parse().ok().filter(|&count: &u64| count > 0);
    count.ok_or_else(|| format!("`{text}` is no number of non-zeros; give an integer from 1 on"))
}

fn parse_scheduler(text: &str) -> Result<Search, String> {
    if text == "measured" {
        return Ok(Search::Measured);
    }
    let known = names().collect::<Vec<_>>().join(", ");
    let found = names().find(|name| *name == text).map(Search::Named);
    found.ok_or_else(|| format!("`{text}` is no scheduler; use {known} or measured"))
}

fn parse_stage(text: &str) -> Result<usize, String> {
    let stage = text.parse().ok().filter(|stage| (1..=5).contains(stage));
    stage.ok_or_else(|| format!("`{text}` is no stage; they count from 1 to 5"))
}

/// Parses `X=i,j:dense`.
fn parse_format(text: &str) -> Result<(String, Format), String> {
    let (name, levels) = text
        .split_once('=')
        .filter(|(name, levels)| !name.is_empty() && !levels.is_empty())
        .ok_or_else(|| format!("`{text}` is no tensor with its levels; write it as X=i,j:dense"))?;
    Ok((name.to_owned(), levels.parse()?))
}

fn parse_tree(text: &str) -> Result<Tree, String> {
    if text == "auto" { Ok(Tree::Auto) } else { text.parse().map(Tree::Given) }
}
