//! Measures how long the searches take, as the summary of a record has it.
//!
//! ```text
//! cargo run --release -p decompose-core --example search_times -- [ROUNDS]
//! ```
//!
//! Every kernel is searched ROUNDS times (9 unless given) on the given tree and, up to order 6, over all
//! orders of the tree's levels on all threads.  Products of several sparse matrices are searched by every scheduler
//! over all ways to store them, and the form of the result is inferred; the schedule of the default scheduler is
//! lowered and written as C.  The tensor is a description only: 100,000 non-zeros in
//! extents of 100, 110, 120, ..., ranks of 16.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use decompose_core::autoschedule::{SCHEDULERS, SearchLimits, default_scheduler, storages};
use decompose_core::codegen::emit_c;
use decompose_core::contract::preview;
use decompose_core::cost::Machine;
use decompose_core::einsum::{Expr, Extents, IndexSet};
use decompose_core::error::CoreError;
use decompose_core::kernels::{self, mode_index};
use decompose_core::schedule::{Format, OutputForm, Pattern, Problem, SparseOperand, infer};

const RANK: u64 = 16;
const NNZ: u64 = 100_000;
const ROUNDS: usize = 9;
/// The highest order whose levels are put in all orders.
const ORDERS_UP_TO: usize = 6;

/// Kernels of which every mode is searched, with their order.
const EACH_MODE: [(&str, usize); 6] =
    [("mttkrp", 3), ("mttkrp", 5), ("ttmc", 4), ("ttmc", 5), ("tttc", 4), ("tttc", 6)];
/// Kernels of all modes, and single modes of high orders.
const SINGLE: [&str; 10] = [
    "ttmc:4", "ttmc:5", "tttp:4", "tttp:5", "tttc:4", "tttc:6", "tttc:8:8", "tttp:8",
    "mttkrp:10:4", "mttkrp:15:3",
];

/// Kernels of matrices, with how many of their first operands are sparse.
const JOINED: [(&str, &str, usize); 10] = [
    ("spmv", "y(i) = A(i,j) * x(j)", 1),
    ("spmm", "C(i,r) = A(i,j) * B(j,r)", 1),
    ("sddmm", "S(i,j) = A(i,j) * U(i,r) * V(j,r)", 1),
    ("spmspm", "C(i,k) = A(i,j) * B(j,k)", 2),
    ("gcn layer", "Y(i,r) = A(i,j) * H(j,k) * W(k,r)", 1),
    ("attention", "Y(b,h,i,r) = A(b,h,i,j) * V(b,h,j,r)", 1),
    ("linear layer", "Y(r,o) = W(o,i) * X(r,i)", 1),
    ("chain of two and a dense one", "D(i,r) = A(i,j) * B(j,k) * C(k,r)", 2),
    ("chain of three", "D(i,l) = A(i,j) * B(j,k) * C(k,l)", 3),
    ("chain of four", "E(i,m) = A(i,j) * B(j,k) * C(k,l) * D(l,m)", 4),
];

fn main() -> ExitCode {
    let rounds = std::env::args().nth(1).map_or(Ok(ROUNDS), |word| word.parse());
    let Some(rounds) = rounds.ok().filter(|&rounds| rounds > 0) else {
        eprintln!("usage: search_times [ROUNDS], a number above 0");
        return ExitCode::from(2);
    };
    match table(rounds) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the table, a kernel after the other.
fn table(rounds: usize) -> Result<(), Box<dyn std::error::Error>> {
    let modes = EACH_MODE
        .iter()
        .flat_map(|(name, order)| (1..=*order).map(move |mode| format!("{name}:{order}:{mode}")));
    let names: Vec<String> = modes.chain(SINGLE.map(str::to_owned)).collect();
    let mut out = io::stdout();
    writeln!(
        out,
        "program,tensor,rank,threads,precision,quantity,median,lowest,highest,rounds,unit"
    )?;
    for name in names {
        let problem = pose(&name)?;
        let given =
            measure(rounds, || default_scheduler().search(&problem, Machine::here()).map(|_| ()))?;
        writeln!(out, "decompose,described,{RANK},1,f64,search {name},{given}")?;
        let levels = problem.leader().map_or(&[][..], |x| x.levels());
        if levels.len() > ORDERS_UP_TO {
            continue;
        }
        let orders = storages(&problem);
        let limits = SearchLimits::default();
        let all = measure(rounds, || {
            default_scheduler()
                .search_storages(&problem, &orders, Machine::here(), &limits)
                .map(|_| ())
        })?;
        let threads = rayon::current_num_threads();
        writeln!(out, "decompose,described,{RANK},{threads},f64,search {name} all orders,{all}")?;
    }
    for (name, expr, sparse) in JOINED {
        let problem = joined(expr, sparse)?;
        let stored = storages(&problem);
        for (stage, times) in stages(&problem, rounds)? {
            writeln!(out, "decompose,described,{RANK},1,f64,{stage} {name},{times}")?;
        }
        for one in SCHEDULERS {
            let found = measure(rounds, || {
                let limits = SearchLimits::default();
                let found = one.search_storages(&problem, &stored, Machine::here(), &limits);
                found.map(|_| drop(infer(&problem)))
            })?;
            let threads = rayon::current_num_threads();
            let what = format!("{} {name}", one.name());
            writeln!(out, "decompose,described,{RANK},{threads},f64,{what},{found}")?;
        }
    }
    Ok(())
}

/// Measures the stages behind the search, for its first candidate: the loop program, and its C.
fn stages(base: &Problem, rounds: usize) -> Result<[(&'static str, String); 2], CoreError> {
    let limits = SearchLimits::default();
    let found =
        default_scheduler().search_storages(base, &storages(base), Machine::here(), &limits)?;
    let best = &found.candidates[0];
    let problem = best.problem(base);
    let schedule = &best.candidate.schedule;
    let lowered = measure(rounds, || preview(&problem, schedule).map(|_| ()))?;
    let program = preview(&problem, schedule)?;
    let emitted = measure(rounds, || {
        emit_c(&program);
        Ok(())
    })?;
    Ok([("lower", lowered), ("emit C", emitted)])
}

/// Poses `expr` on matrices of extent 10,000 with ten non-zeros a row; a result without a pattern of several sparse ones
/// is assembled.
fn joined(expr: &str, sparse: usize) -> Result<Problem, CoreError> {
    let expr: Expr = expr.parse()?;
    let extent = |letter| if letter == 'r' { RANK } else { NNZ / 10 };
    let extents: Extents = expr.all().iter().map(|i| (i, extent(i.letter()))).collect();
    let operand = |input: usize| {
        let levels = expr.inputs[input].indices.clone();
        let all = levels.iter().copied().collect::<IndexSet>();
        SparseOperand {
            input,
            format: Format::csf(levels),
            pattern: Pattern::from_iter([(all, NNZ)]),
        }
    };
    let operands = (0..sparse).map(operand).collect();
    let posed = Problem::joining(expr, extents, operands);
    let assembled = sparse > 1 && posed.output == OutputForm::Dense;
    let output = if assembled { OutputForm::Assembled } else { posed.output };
    Ok(Problem { output, ..posed })
}

/// Poses the named kernel on the described tensor.
fn pose(name: &str) -> Result<Problem, CoreError> {
    let expr = kernels::parse(name)?;
    let levels = expr.inputs[0].indices.clone();
    let mode_of = |index| (0..levels.len()).find(|&mode| mode_index(mode) == index);
    let extent = |index| mode_of(index).map_or(RANK, |mode| 100 + 10 * mode as u64);
    let extents: Extents = expr.all().iter().map(|index| (index, extent(index))).collect();
    let pattern = Pattern::from_iter([(levels.iter().copied().collect::<IndexSet>(), NNZ)]);
    Ok(Problem::new(
        expr,
        extents,
        SparseOperand { input: 0, format: Format::csf(levels), pattern },
    ))
}

/// Runs `search` in `rounds` and returns the columns from `median` on, in seconds.
fn measure(
    rounds: usize,
    mut search: impl FnMut() -> Result<(), CoreError>,
) -> Result<String, CoreError> {
    let mut seconds = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        let start = Instant::now();
        search()?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    let (median, highest) = (seconds[rounds / 2], seconds[rounds - 1]);
    Ok(format!("{median:.3e},{:.3e},{highest:.3e},{rounds},s", seconds[0]))
}
