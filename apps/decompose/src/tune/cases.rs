//! The kernels that are measured, and the generated operands on which they run.

use std::sync::Arc;

use decompose_core::contract::{Request, ResultForm, count_join};
use decompose_core::einsum::{Expr, Index};
use decompose_formats::mix::mix;
use decompose_formats::synth::{Pattern, SynthConfig, Values, generate};
use decompose_formats::{Coo, PatternCounts};

use crate::failure::Failure;

/// Extent of the dense index of kernels of matrices.
const COLUMNS: u64 = 64;

/// Extents of the dense indices of kernels of tensors.
const RANKS: [u64; 2] = [16, 50];

/// Non-zeros of a tensor for each row of the largest matrix.
const NONZEROS_PER_ROW: u64 = 25;

/// The names of the kernels.
pub(super) const NAMES: [&str; 7] = ["spmv", "spmm", "sddmm", "spmspm", "mttkrp", "ttmc", "tttp"];

/// A kernel that is measured.
#[derive(Clone, Copy)]
struct Kernel {
    name: &'static str,
    expr: &'static str,
    /// How many of the first operands are the generated one.
    sparse: usize,
}

/// Kernels of a matrix.
const OF_MATRICES: [Kernel; 4] = [
    Kernel { name: "spmv", expr: "ij,j->i", sparse: 1 },
    Kernel { name: "spmm", expr: "ij,jr->ir", sparse: 1 },
    Kernel { name: "sddmm", expr: "ij,ir,rj->ij", sparse: 1 },
    Kernel { name: "spmspm", expr: "ij,jk->ik", sparse: 2 },
];

/// Kernels of a tensor of order 3.
const OF_TENSORS: [Kernel; 3] = [
    Kernel { name: "mttkrp", expr: "ijk,jr,kr->ir", sparse: 1 },
    Kernel { name: "ttmc", expr: "ijk,jr,ks->irs", sparse: 1 },
    Kernel { name: "tttp", expr: "ijk,ir,jr,kr->ijk", sparse: 1 },
];

/// A kernel on one generated operand, which all its sparse operands are.
pub(super) struct Case {
    /// The kernel.
    pub(super) kernel: &'static str,
    /// The operand and the extent of dense indices.
    pub(super) operand: String,
    /// The sparse operand.
    pub(super) list: Arc<Coo<f64>>,
    /// What is asked.
    pub(super) request: Request,
}

/// Makes the cases of the kernels `names`, one after the other, on matrices of up to `rows` rows.
pub(super) fn all(
    names: &[String],
    rows: u64,
    seed: u64,
) -> impl Iterator<Item = Result<Case, Failure>> {
    let sizes = [(rows / 8, 4), (rows / 4, 8), (rows / 2, 16), (rows, 8)];
    let matrices = sizes.into_iter().flat_map(move |(size, each)| {
        KINDS.into_iter().map(move |kind| (format!("{kind}-{size}-{each}"), kind, size, each))
    });
    let asked = move |kernel: &Kernel| names.iter().any(|name| name == kernel.name);
    let of_matrices = matrices.flat_map(move |(name, kind, size, each)| {
        let list = matrix(kind, size, each, seed).map(Arc::new);
        let kernels = OF_MATRICES.into_iter().filter(asked);
        kernels.map(move |kernel| Case::new(kernel, &name, list.clone()?, COLUMNS))
    });
    let of_tensors = ["uniform", "power-law"].into_iter().flat_map(move |kind| {
        let list = tensor(kind, rows, seed).map(Arc::new);
        let kernels = OF_TENSORS.into_iter().filter(asked);
        let kernels = kernels.flat_map(|kernel| RANKS.map(|rank| (kernel, rank)));
        kernels.map(move |(kernel, rank)| {
            Case::new(kernel, &format!("{kind}-rank-{rank}"), list.clone()?, rank)
        })
    });
    of_matrices.chain(of_tensors)
}

/// Where the non-zeros of a row lie.
const KINDS: [&str; 5] = ["even", "skewed", "band", "blocks", "columns"];

/// Makes a matrix of `size` rows with up to `each` non-zeros each.
fn matrix(kind: &str, size: u64, each: u64, seed: u64) -> Result<Coo<f64>, Failure> {
    let even = |row: u64, at: u64| mix(seed ^ mix(row * 1024 + at)) % size;
    let column = |row: u64, at: u64| match kind {
        "skewed" => even(row, at) * even(row, at) / size,
        "band" => (row + at) % size,
        "blocks" => row / 32 * 32 % size.saturating_sub(32).max(1) + at,
        "columns" => even(row, at) % 64 * (size / 64),
        _ => even(row, at),
    };
    let row_of = |row: u64| (0..each).map(move |at| (row as u32, (column(row, at) % size) as u32));
    let mut places: Vec<(u32, u32)> = (0..size).flat_map(row_of).collect();
    places.sort_unstable();
    places.dedup();
    let (rows, columns): (Vec<u32>, Vec<u32>) = places.into_iter().unzip();
    let values: Vec<f64> = (0..rows.len()).map(|at| 1.0 + (at % 7) as f64).collect();
    Ok(Coo::new(vec![size, size], vec![rows.into(), columns.into()], values)?)
}

/// Makes a tensor of order 3 whose slices are as long as rows of the largest matrix allow.
fn tensor(kind: &str, rows: u64, seed: u64) -> Result<Coo<f64>, Failure> {
    let pattern = match kind {
        "uniform" => Pattern::Uniform,
        _ => Pattern::PowerLaw(vec![1.0; 3]),
    };
    let (extents, nnz) = (vec![rows, rows / 4, rows / 16], NONZEROS_PER_ROW * rows);
    Ok(generate(&SynthConfig { extents, nnz, pattern, values: Values::Ones, seed })?)
}

impl Case {
    fn new(
        kernel: Kernel,
        operand: &str,
        list: Arc<Coo<f64>>,
        columns: u64,
    ) -> Result<Case, Failure> {
        let Kernel { name, expr, sparse } = kernel;
        let expr: Expr = expr.parse()?;
        let counts = PatternCounts::of(&*list);
        let counted: Vec<(usize, &PatternCounts)> = (0..sparse).map(|at| (at, &counts)).collect();
        let of_operand = &expr.inputs[0].indices;
        let extent = |index: &Index| {
            let mode = of_operand.iter().position(|own| own == index);
            mode.map_or(columns, |mode| list.extents()[mode])
        };
        let shape = |input: usize| expr.inputs[input].indices.iter().map(extent).collect();
        let shapes: Vec<Vec<u64>> = (0..expr.inputs.len()).map(shape).collect();
        let mut request = Request::joining(expr, &counted, &shapes)?;
        if let [first, second] = request.expr.inputs.as_slice()
            && sparse == 2
        {
            let output = request.expr.output.set();
            request.join = Some(count_join(&[(first, &*list), (second, &*list)], output));
            request.result = ResultForm::Sparse;
        }
        Ok(Case { kernel: name, operand: operand.to_owned(), list, request })
    }
}
