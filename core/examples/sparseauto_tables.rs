//! Redraws tables 2, 3 and 4 of SparseAuto for its eight kernels, with the numbers of the paper beside those here.
//!
//! ```text
//! cargo run --release -p decompose-core --example sparseauto_tables -- ROUNDS [RANGE...]
//! ```
//!
//! A range is one of `--range` of `decompose schedule`, such as `i=1000:1000000`; those of sizes that a kernel lacks are left
//! out for it.  Each kernel is searched `ROUNDS` times; seconds are medians, on one core.
//!
//! Prints three tables as Markdown.  The first has the frontier of each kernel: time and memory as polynomials, and a nest.
//! The second has the nests after each stage, with the pairs of time and memory in brackets.  The third has the seconds of
//! each stage.
//!
//! The numbers of nests differ from those of the paper, which counts other spaces: it copies single operands to buffers,
//! and counts orders of operands; here a producer and its consumer share any number of their first common loops.

use std::error::Error;
use std::io::Write;

use decompose_core::autoschedule::sparseauto::{Method, Staged, Stages, staged};
use decompose_core::cost::Machine;
use decompose_core::cost::symbolic::Range;
use decompose_core::einsum::{Expr, Extents, Index};
use decompose_core::schedule::{Branched, Format, Pattern, Problem, SparseOperand};
use decompose_formats::PatternCounts;

/// A kernel of table 2 with the paper's numbers.
struct Kernel {
    name: &'static str,
    expr: &'static str,
    /// Nests generated, and after stages 1, 2 and 3.
    nests: [u64; 4],
    /// Pairs of time and memory after stages 1, 2 and 3.
    pairs: [usize; 3],
    /// Seconds to generate, and of stages 1, 2 and 3.
    seconds: [f64; 4],
}

const KERNELS: [Kernel; 8] = [
    Kernel {
        name: "1 SDDMM, SpMM",
        expr: "A(i,l) = B(i,j) * C(i,k) * D(j,k) * E(j,l)",
        nests: [16_169, 1_472, 1, 1],
        pairs: [255, 1, 1],
        seconds: [0.6314, 0.0130, 1.7232, 0.1215],
    },
    Kernel {
        name: "2 SDDMM, SpMM, GEMM",
        expr: "A(i,m) = B(i,j) * C(i,k) * D(j,k) * E(j,l) * F(l,m)",
        nests: [145_448_232, 207_129, 224, 8],
        pairs: [18_277, 43, 3],
        seconds: [10_740.5, 167.5, 454.1, 1.5],
    },
    Kernel {
        name: "3 SpMMH, GEMM",
        expr: "A(i,l) = B(i,j) * C(j,k) * D(j,k) * E(k,l)",
        nests: [7_426, 692, 2, 2],
        pairs: [133, 1, 1],
        seconds: [0.4759, 0.0037, 0.8967, 0.0480],
    },
    Kernel {
        name: "4 SpMM, GEMM",
        expr: "A(i,l) = B(i,j) * C(j,k) * D(k,l)",
        nests: [258, 128, 2, 2],
        pairs: [34, 1, 1],
        seconds: [0.0546, 0.0005, 0.0566, 0.0497],
    },
    Kernel {
        name: "5 3D TTMC",
        expr: "A(l,m,n) = B(i,j,k) * C(i,l) * D(j,m) * E(k,n)",
        nests: [14_701_776, 30_203, 101, 16],
        pairs: [2_541, 26, 3],
        seconds: [864.3, 71.9, 25.8, 1.5],
    },
    Kernel {
        name: "6 SpTTM, TTM",
        expr: "A(i,l,m) = B(i,j,k) * C(j,l) * D(k,m)",
        nests: [2_561, 352, 3, 3],
        pairs: [60, 1, 1],
        seconds: [0.3046, 0.0062, 0.2382, 0.0500],
    },
    Kernel {
        name: "7 SpTTM, SpTTM",
        expr: "A(i,j,m) = B(i,j,k) * C(k,l) * D(l,m)",
        nests: [109, 46, 1, 1],
        pairs: [13, 1, 1],
        seconds: [0.0353, 0.0003, 0.0466, 0.0483],
    },
    Kernel {
        name: "8 MTTKRP, GEMM",
        expr: "A(i,m) = B(i,k,l) * C(l,j) * D(k,j) * E(j,m)",
        nests: [58_127, 4_715, 5, 2],
        pairs: [728, 2, 1],
        seconds: [4.2, 0.0578, 4.7, 0.1232],
    },
];

/// The kernels whose costs are too many to be listed in a moment.
const LARGE: [usize; 2] = [1, 4];

/// The stage whose costs are listed.
const STAGE_3: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [rounds, ranges @ ..] = words.as_slice() else {
        return Err("sparseauto_tables ROUNDS [RANGE...]".into());
    };
    let rounds: usize = rounds.parse::<usize>()?.max(1);
    let machine = Machine::here();
    let mut tables = [
        String::from("| kernel | time | memory | nest |\n|---|---|---|---|\n"),
        String::from(
            "| kernel | generated | paper | stage 1 | paper | stage 2 | paper | stage 3 | paper |\n|---|---|---|---|---|---|---|---|---|\n",
        ),
        String::from(
            "| kernel | count | stage 1 | stage 2 | stage 3 | all | paper, all |\n|---|---|---|---|---|---|---|\n",
        ),
    ];
    for (at, kernel) in KERNELS.iter().enumerate() {
        let problem = pose(kernel.expr)?;
        let asked = asked(&problem, ranges, machine)?;
        let mut runs = Vec::new();
        for _ in 0..rounds {
            runs.push(staged(std::slice::from_ref(&problem), machine, &asked)?);
        }
        let listed = (!LARGE.contains(&at)).then(|| {
            let asked = Stages { method: Method::Listed, ..asked.clone() };
            staged(std::slice::from_ref(&problem), machine, &asked)
        });
        let listed = listed.transpose()?;
        let found = &runs[0];
        for point in found.frontier.iter().filter(|point| point.passed >= STAGE_3) {
            let (path, nest) = &point.example;
            let nest = Branched::of(&problem.expr, path, nest).map(|one| one.notation(&problem));
            let (time, memory) = (found.time(point), found.memory(point));
            tables[0] += &format!(
                "| {} | {time} | {memory} | {} |\n",
                kernel.name,
                nest.unwrap_or_default()
            );
        }
        tables[1] += &counts(kernel, found, listed.as_ref());
        tables[2] += &seconds(kernel, &runs);
    }
    let mut out = std::io::stdout();
    for table in tables {
        writeln!(out, "{table}")?;
    }
    Ok(())
}

/// The nests after each stage.
fn counts(kernel: &Kernel, found: &Staged, listed: Option<&Staged>) -> String {
    let mut line = format!("| {}", kernel.name);
    for stage in 0..4 {
        let pairs = listed.unwrap_or(found).stages[stage].costs;
        let pairs = pairs.map_or(String::new(), |pairs| format!(" ({pairs})"));
        line += &format!(" | {}{pairs} | {}", found.stages[stage].nests, kernel.nests[stage]);
        if let Some(pairs) = stage.checked_sub(1).map(|stage| kernel.pairs[stage]) {
            line += &format!(" ({pairs})");
        }
    }
    line + " |\n"
}

/// The median seconds of each stage.
fn seconds(kernel: &Kernel, runs: &[Staged]) -> String {
    let median = |of: &dyn Fn(&Staged) -> f64| {
        let mut all: Vec<f64> = runs.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let mut line = format!("| {}", kernel.name);
    for stage in 0..4 {
        line += &format!(" | {:.1e}", median(&|run| run.stages[stage].seconds));
    }
    let all = median(&|run| run.stages[..4].iter().map(|stage| stage.seconds).sum());
    line + &format!(" | {all:.1e} | {:.1e} |\n", kernel.seconds.iter().sum::<f64>())
}

/// The question, with the ranges of sizes that `problem` has.
fn asked(
    problem: &Problem,
    ranges: &[String],
    machine: &Machine,
) -> Result<Stages, Box<dyn Error>> {
    let mut asked = Stages::default();
    for text in ranges {
        let range: Range = text.parse()?;
        let alone = Stages { ranges: vec![range.clone()], ..Stages::default() };
        if staged(std::slice::from_ref(problem), machine, &alone).is_ok() {
            asked.ranges.push(range);
        }
    }
    Ok(asked)
}

/// Poses a kernel on an even pattern.
fn pose(text: &str) -> Result<Problem, Box<dyn Error>> {
    let expr: Expr = text.parse()?;
    let levels = expr.inputs[0].indices.clone();
    let extent = |index: Index| if levels.contains(&index) { 2_000 } else { 64 };
    let extents: Extents = expr.all().iter().map(|index| (index, extent(index))).collect();
    let shape: Vec<u64> = levels.iter().map(|&level| extents.of(level)).collect();
    let pattern = Pattern::of(&PatternCounts::uniform(&shape, 40_000), &levels);
    let sparse = SparseOperand { input: 0, format: Format::csf(levels), pattern };
    Ok(Problem::new(expr, extents, sparse))
}
