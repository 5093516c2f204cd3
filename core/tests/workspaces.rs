//! Workspaces of assembled outputs: what is added is summed up and comes back in order, however much it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use decompose_core::contract::preview;
use decompose_core::einsum::{Expr, Extents, IndexSet};
use decompose_core::lower::{Assembly, Program, Room};
use decompose_core::schedule::{
    Format, OutputForm, Pattern, Problem, Schedule, SparseOperand, Workspace,
};

/// Copies a matrix whose rows have so many cells.
fn program(workspace: &str, columns: u64) -> Program {
    let expr: Expr = "Z(i,k) = W(i,k)".parse().expect("an expression");
    let mut extents = Extents::default();
    let levels = expr.output.indices.clone();
    extents.set(levels[0], 3);
    extents.set(levels[1], columns);
    let all: IndexSet = levels.iter().copied().collect();
    let pattern = Pattern::from_iter([(all, 3 * columns)]);
    let format = Format::csf(levels);
    let text = format!(
        "path W\nnest i{{ k{{ T1 }} }}\nlayout i k\nworkspace {workspace}\nparallel i position assemble\n"
    );
    let x = SparseOperand { input: 0, format, pattern };
    let posed = Problem::new(expr, extents, x);
    let problem = Problem { output: OutputForm::Assembled, ..posed };
    let schedule = Schedule::parse(&text, &problem.expr).expect("a schedule");
    preview(&problem, &schedule).expect("a legal schedule")
}

#[test]
fn cells_are_summed_up_and_sorted_however_many_are_met() {
    const CELLS: u64 = 1 << 20;
    for (kind, name) in
        [(Workspace::Dense, "dense"), (Workspace::Hashed, "hashed"), (Workspace::List, "list")]
    {
        let room = Arc::new(Room::unlimited());
        let mut assembly = Assembly::<f64>::new(kind, &program(name, CELLS), room).unwrap();
        let mut want = Vec::new();
        for (row, products) in [3, 100_000, 40, 0, 2_000].into_iter().enumerate() {
            let mut sums = BTreeMap::<u64, f64>::new();
            for product in 0..products {
                // Most cells come several times.
                let cell = (product * product + 7 * row as u64) % 50_021 * 16;
                assembly.add(cell, product as f64);
                *sums.entry(cell).or_default() += product as f64;
            }
            assert!(assembly.append(&[row as u64]));
            want.extend(sums);
        }
        let blocks = assembly.take().blocks;
        let met: Vec<(u64, f64)> = blocks
            .iter()
            .flat_map(|block| block.cells().zip(block.values.iter().copied()))
            .collect();
        assert_eq!(met, want, "{name}");
    }
}

#[test]
fn a_workspace_for_which_there_is_no_memory_stops_the_kernel() {
    const BYTES: u64 = 4 << 20;
    for (kind, name) in [(Workspace::Hashed, "hashed"), (Workspace::List, "list")] {
        let room = Arc::new(Room::new(BYTES, 16));
        let mut assembly = Assembly::<f64>::new(kind, &program(name, 1 << 30), room).expect("room");
        (0..1000).for_each(|cell| assembly.add(cell, 1.0));
        assert!(assembly.append(&[0]), "{name}");
        // The cells alone take more than there is.
        (0..BYTES / 8).for_each(|cell| assembly.add(cell, 1.0));
        assert!(!assembly.append(&[1]) && assembly.is_full(), "{name}");
        assert_eq!(assembly.take().len(), 1000, "{name}");
    }
}
