//! Measures how long the constraint systems of sparse networks take to solve, beside table 2 of CoNST.
//!
//! ```text
//! cargo run --release -p decompose-core --example constraint_times -- [ROUNDS]
//! ```
//!
//! Of each network the tree with the fewest flops that has a solution with the least bound is solved ROUNDS times (99
//! unless given): posed, and solved with each bound from 1 on.  The last columns are those of the paper (Raje et al.,
//! 2024, table 2): variables, constraints, milliseconds.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Instant;

use decompose_core::autoschedule::constraints::{Layouts, System};
use decompose_core::einsum::{Expr, IndexSet};
use decompose_core::error::CoreError;
use decompose_core::path::{Arity, Path, PathSpace, Wanted, unfactorised};
use decompose_core::schedule::{Format, Pattern, Problem, SparseOperand};

const ROUNDS: usize = 99;

/// The most choices of a solver.
const WORK: u64 = 10_000_000;

/// A name, a network, the number of its sparse operands, and what the paper has.
type Network = (&'static str, &'static str, usize, &'static str);

const NETWORKS: [Network; 8] = [
    ("3-index unrestricted", "F(K,i,m) = I(u,v,K) * C(v,i) * P(u,m)", 3, "19,38,13"),
    ("3-index restricted", "X(K,i,m) = I(u,v,K) * L(K,i) * C(v,i) * P(u,m)", 4, "27,57,15"),
    ("4-index", "R(i,m,j,n) = F(K,i,m) * D(K,M) * F(M,j,n)", 3, "22,46,11"),
    ("MTTKRP", "A(i,r) = T(i,j,k) * B(j,r) * C(k,r)", 1, "17,40,10"),
    ("TTMc", "A(i,y,z) = T(i,j,k) * B(j,y) * C(k,z)", 1, "19,38,10"),
    ("worked example", "R(i,j,k) = A(i,p,q) * B(j,p,r) * C(k,q,r) * D(j,k,r)", 4, ",,"),
    (
        "seven tensors",
        "R(a,d,l) = A(a,b,c) * B(b,d,e) * C(c,e,f) * D(f,g,h) * E(g,i,j) * F(h,i,k) * G(j,k,l)",
        7,
        ",,",
    ),
    // One layout serves all three references, so that the second contraction begins where the first cannot.
    ("triangles", "R = X(i,j) * X(j,k) * X(k,i)", 3, ",,"),
];

fn main() -> ExitCode {
    let rounds = std::env::args().nth(1).map_or(Ok(ROUNDS), |word| word.parse());
    let Some(rounds) = rounds.ok().filter(|&rounds: &usize| rounds > 0) else {
        eprintln!("usage: constraint_times [ROUNDS], a number above 0");
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

fn table(rounds: usize) -> Result<(), Box<dyn std::error::Error>> {
    let mut out = io::stdout();
    let paper = "paper_variables,paper_constraints,paper_ms";
    writeln!(out, "network,variables,constraints,l,median_us,least_us,{paper}")?;
    for (name, text, sparse, paper) in NETWORKS {
        let problem = pose(text, sparse)?;
        let solved = trees(&problem.expr).into_iter().filter_map(|path| {
            let (least, layouts) = solve(&problem, &path)?;
            Some((least, layouts, path))
        });
        let Some((least, layouts, path)) = solved.min_by_key(|(least, ..)| *least) else {
            writeln!(out, "{name},,,,,,{paper}")?;
            continue;
        };
        let mut seconds = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            let start = Instant::now();
            solve(&problem, &path);
            seconds.push(start.elapsed().as_secs_f64() * 1e6);
        }
        seconds.sort_by(f64::total_cmp);
        let system = System::new(&problem, &path, layouts, least);
        let (variables, constraints) = (system.variables().len(), system.constraints().len());
        let (median, fastest) = (seconds[rounds / 2], seconds[0]);
        writeln!(out, "{name},{variables},{constraints},{least},{median:.1},{fastest:.1},{paper}")?;
    }
    Ok(())
}

/// Returns the least bound with a solution, with one layout for all references of a tensor or else with one for each.
fn solve(problem: &Problem, path: &Path) -> Option<(usize, Layouts)> {
    [Layouts::Shared, Layouts::Own].into_iter().find_map(|layouts| {
        let system = System::new(problem, path, layouts, 1);
        let mut bounds = 1..=system.largest().max(1);
        let least = bounds.find(|&bound| system.bounded(bound).solve(WORK).0.is_some())?;
        Some((least, layouts))
    })
}

/// The trees with the fewest flops of dense operands.
fn trees(expr: &Expr) -> Vec<Path> {
    let Some(space) = PathSpace::new(expr, Arity::Binary) else { return vec![unfactorised(expr)] };
    let wanted = Wanted {
        max_depth: usize::MAX,
        iterations: &|loops| 40_u64.saturating_pow(loops.len() as u32),
        links: &|_| true,
        flops_factor: Some(1.0),
        max_paths: 16,
    };
    space.list(&wanted).paths
}

/// A problem whose first inputs are sparse.
fn pose(text: &str, sparse: usize) -> Result<Problem, CoreError> {
    let expr: Expr = text.parse()?;
    let extents = expr.all().iter().map(|index| (index, 40)).collect();
    let operands = expr.inputs.iter().take(sparse).enumerate().map(|(input, access)| {
        let all: IndexSet = access.set();
        let pattern = Pattern::from_iter([(all, 40_u64.pow(all.len() as u32) / 10)]);
        SparseOperand { input, format: Format::csf(access.indices.clone()), pattern }
    });
    Ok(Problem::joining(expr.clone(), extents, operands.collect()))
}
