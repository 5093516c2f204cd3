//! What the user typed after `decompose einsum`, checked word by word only.

use std::path::PathBuf;

use clap::Args;
use decompose_common::machine::parse_size;

use crate::listing::ListArgs;
use crate::schedule::SearchArgs;
use crate::schedule::args::{Binding, parse_binding, parse_index_extent};

/// Computes sums and products of sparse and dense tensors from files.
///
/// EXPR is written as `A(i,r) = X(i,j,k) * B(j,r) * C(k,r)`, as `ijk,jr,kr->ir` (operands X, A, B,
/// ...; result Y), or as a named kernel such as mttkrp:3:1; see `decompose schedule`.  It may be a sum with
/// factors and a function of it, as `Z(i,k) = relu(X(i,j) * Y(j,k) - 2 * W(i,k))`.  A repeated index, as in
/// X(i,i), takes the diagonal.  Functions: relu, abs, exp, log, sqrt, tanh, sigmoid, softmax (over the last
/// index); of a sparse result they act on the elements that are stored.
///
/// Operands are sparse, .tns, .mtx or .ttx (also .gz, .zst, .bz2) or .dtb; or dense, .npy or
/// FILE.npz:MEMBER.
#[derive(Args, Debug)]
pub(crate) struct EinsumArgs {
    /// The expression, or a named kernel such as mttkrp:3:1.
    #[arg(required_unless_present = "program", conflicts_with = "program")]
    pub(crate) expr: Option<String>,
    /// Compute the assignments of this file, one a line; later ones read the results of those before.
    /// A # begins a comment.
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) operands: OperandArgs,
    #[command(flatten)]
    pub(crate) search: SearchArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// The operands.
#[derive(Args, Debug)]
#[command(next_help_heading = "Operands")]
pub(crate) struct OperandArgs {
    /// An operand and its file, as X=nell-2.tns; one for each name of the expression.
    #[arg(long, value_name = "NAME=FILE", value_parser = parse_binding)]
    pub(crate) tensor: Vec<Binding>,
    /// Take this operand, whose file lists non-zeros, as dense.
    #[arg(long, value_name = "NAME")]
    pub(crate) dense: Vec<String>,
    /// Extents of indices, as i=1000,j=200, where files list less.
    #[arg(long, value_name = "I=N,...", value_delimiter = ',', value_parser = parse_index_extent)]
    pub(crate) extents: Vec<(String, u64)>,
}

/// The result.
#[derive(Args, Debug)]
#[command(next_help_heading = "Output")]
#[expect(clippy::struct_excessive_bools, reason = "one a switch, as typed")]
pub(crate) struct OutputArgs {
    /// The file of the result: .npy if it is dense; .tns, .mtx, .ttx or .dtb for its non-zeros.
    /// A single number needs no file.  Of a program the last result, or NAME=FILE, once for each.
    #[arg(long, short, value_name = "[NAME=]FILE", value_parser = parse_output)]
    pub(crate) out: Vec<OutputFile>,
    #[command(flatten)]
    pub(crate) list: ListArgs,
    /// Replace the file if it exists.
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// Show warnings and errors only.
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// The most memory, as 16G or 512M.  [default: what is available]
    #[arg(long, value_name = "SIZE", value_parser = parse_size, help_heading = "Computation")]
    pub(crate) max_memory: Option<u64>,
    /// Compute each product with one kernel, in which intermediate results are no larger than a row.
    #[arg(long, help_heading = "Computation")]
    pub(crate) one_kernel: bool,
    /// Interpret the kernel instead of compiling C.
    #[arg(long, help_heading = "Computation")]
    pub(crate) no_codegen: bool,
}

/// The file of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OutputFile {
    /// Which result; none is the last.
    pub(crate) name: Option<String>,
    pub(crate) file: PathBuf,
}

/// Parses `FILE` or `NAME=FILE`.
fn parse_output(text: &str) -> Result<OutputFile, String> {
    let word = |name: &str| {
        name.starts_with(|c: char| c.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    Ok(match text.split_once('=') {
        Some((name, file)) if word(name) && !file.is_empty() => {
            OutputFile { name: Some(name.to_owned()), file: file.into() }
        }
        Some(("", _)) => return Err(format!("`{text}` names no result; write NAME=FILE or FILE")),
        _ => OutputFile { name: None, file: text.into() },
    })
}
