//! How long the searches take: `cargo test -p decompose-core --test search_speed -- --ignored
//! --nocapture`.  Ignored by default, since times need an otherwise idle machine.

use std::time::Instant;

use decompose_core::autoschedule::{Found, SCHEDULERS};
use decompose_core::cost::Machine;
use decompose_core::einsum::{Extents, IndexSet};
use decompose_core::kernels;
use decompose_core::schedule::{Pattern, Problem, SparseOperand};

/// A named kernel on a tensor of 100,000 non-zeros in extents of 100, ranks of 16.
fn pose(name: &str) -> Problem {
    let expr = kernels::parse(name).expect("a kernel");
    let levels = expr.inputs[0].indices.clone();
    let sparse: IndexSet = levels.iter().copied().collect();
    let extent = |index| if sparse.contains(index) { 100 } else { 16 };
    let extents: Extents = expr.all().iter().map(|index| (index, extent(index))).collect();
    let pattern = Pattern::from_iter([(sparse, 100_000)]);
    Problem::new(expr, extents, SparseOperand { input: 0, levels, tail: 1, pattern })
}

/// Median seconds of nine searches, and what was found.
fn time(problem: &Problem) -> (f64, Found) {
    let mut times = Vec::new();
    let mut found = None;
    for _ in 0..9 {
        let start = Instant::now();
        found = Some(SCHEDULERS[0].search(problem, Machine::here()).expect("a schedule"));
        times.push(start.elapsed().as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    (times[4], found.expect("searched"))
}

#[test]
#[ignore = "times need an idle machine: run with --ignored"]
fn searches_are_quick() {
    let milliseconds = [
        ("mttkrp:3:1", 5.0),
        ("mttkrp:5:1", 5.0),
        ("mttkrp:5:3", 5.0),
        ("ttmc:5:1", 5.0),
        ("ttmc:5:3", 5.0),
        ("ttmc:5", 50.0),
        ("tttp:5", 50.0),
        ("tttc:6:6", 50.0),
        ("tttc:6:3", 50.0),
        ("tttc:6", 50.0),
        ("tttc:8:8", 500.0),
        ("tttp:8", 500.0),
        ("mttkrp:10:4", 500.0),
        ("mttkrp:15:3", 500.0),
    ];
    for (name, limit) in milliseconds {
        let (seconds, found) = time(&pose(name));
        let nest = &found.candidates[0].schedule.nest;
        eprintln!("{name:12} {:8.3} ms  {}\n    {nest}", seconds * 1e3, found.report);
        assert!(seconds * 1e3 < limit, "{name}: {seconds} s");
    }
}
