//! The kernel cache, the way without a compiler, and the partition of trees.

mod common;

use common::{corpus, multiply};
use decompose_core::cost::Machine;
use decompose_core::runtime::{Compiler, Cut, KernelCache, Toolchain, partition};
use decompose_core::sweep::{BuildReport, Engine, Merging, PlanOptions, Trees, plan};
use decompose_formats::{Csf, ModeOrder};

fn build(toolchain: &Toolchain) -> (Engine<f64>, BuildReport) {
    let corpus = corpus();
    let case = corpus.tensor.iter().find(|case| case.name == "order-3").expect("a case");
    let options = PlanOptions {
        rank: 11,
        value_bytes: 8,
        threads: 2,
        memory: None,
        sweeps: 20,
        trees: Trees::Choose,
        merging: Merging::Choose,
        panels: None,
        updates: (0..case.extents.len()).collect(),
    };
    let plan = plan(&case.extents, &case.pattern(), &options, Machine::here()).expect("a plan");
    Engine::build(case.coo(), &plan, toolchain).expect("an engine")
}

fn compiler() -> Option<Compiler> {
    let toolchain = Toolchain::detect();
    let found = toolchain.compiler().inspect_err(|why| eprintln!("skipped: {why}"));
    found.ok().cloned()
}

#[test]
fn a_warm_start_compiles_nothing() {
    let Some(compiler) = compiler() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let toolchain = Toolchain::Native(compiler.with_cache(folder.path().to_owned()));
    let (_, cold) = build(&toolchain);
    assert!(cold.compiled > 0 && cold.interpreted.is_none(), "{cold:?}");
    let (engine, warm) = build(&toolchain);
    assert_eq!((warm.compiled, warm.cached), (0, cold.compiled + cold.cached));
    for kernel in engine.kernels() {
        let source = &kernel.origin().expect("compiled").source;
        let text = std::fs::read_to_string(source).expect("the kept source");
        assert!(text.starts_with(&format!("// {}", kernel.program().title)));
    }
}

#[test]
fn a_temporary_folder_stands_for_a_cache_that_cannot_be_written() {
    let Some(compiler) = compiler() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let gone = folder.path().join("gone");
    let toolchain = Toolchain::Native(compiler.with_cache(gone.clone()));
    let (mut engine, report) = build(&toolchain);
    assert!(report.compiled > 0 && report.interpreted.is_none(), "{report:?}");
    let (_, again) = build(&toolchain);
    assert_eq!(again.compiled, 0, "a kernel is compiled once a process");
    let corpus = corpus();
    let case = corpus.tensor.iter().find(|case| case.name == "order-3").expect("a case");
    let mut factors = case.factors(11);
    multiply(&mut engine, 0, &mut factors).expect("a result");
    for (have, want) in factors[0].row(0).iter().zip(&case.mttkrp(0, 11)) {
        assert!((have - want).abs() <= 1e-12 * want.abs().max(1.0), "{have} for {want}");
    }
    let why = KernelCache::close().expect("a reason");
    assert!(why.contains(&gone.display().to_string()), "{why}");
}

#[test]
fn factors_that_do_not_fit_are_refused() {
    let (mut engine, _) = build(&Toolchain::Interpreter("not needed".into()));
    let corpus = corpus();
    let case = corpus.tensor.iter().find(|case| case.name == "order-3").expect("a case");
    let error =
        multiply(&mut engine, 0, &mut case.factors(10)).expect_err("another rank").to_string();
    assert!(error.contains("factor 1") && error.contains("20 x 10"), "{error}");
    assert!(multiply(&mut engine, 3, &mut case.factors(11)).is_err(), "no fourth mode");
}

#[test]
fn a_plan_that_exceeds_memory_is_refused_with_numbers() {
    let corpus = corpus();
    let case = corpus.tensor.iter().find(|case| case.name == "order-3").expect("a case");
    let options = PlanOptions {
        rank: 4,
        value_bytes: 8,
        threads: 1,
        memory: Some(100),
        sweeps: 20,
        trees: Trees::Choose,
        merging: Merging::Choose,
        panels: None,
        updates: (0..case.extents.len()).collect(),
    };
    let error = plan(&case.extents, &case.pattern(), &options, Machine::here());
    let message = error.expect_err("too little memory").to_string();
    assert!(message.contains("MiB") && message.contains("raise the limit"), "{message}");
    let enough = PlanOptions { memory: Some(30_000), ..options };
    let lean = plan(&case.extents, &case.pattern(), &enough, Machine::here()).expect("a plan");
    assert!(lean.tree_bytes() + lean.side_bytes() <= 30_000);
}

#[test]
fn tasks_cover_every_non_zero_and_every_row_once() {
    for case in corpus().tensor {
        let order = ModeOrder::natural(case.extents.len());
        let tree = Csf::build(case.coo::<f64>(), &order).expect("a tree");
        let leaf = tree.levels().len() - 1;
        for parts in [1, 2, 3, 7, 64] {
            for cut in [Cut::Anywhere, Cut::Roots] {
                let tasks = partition(&tree, parts, cut);
                let (mut leaves, mut rows) = (0, 0);
                for task in &tasks {
                    assert_eq!(task.nodes[leaf].start, leaves, "{} in {parts}", case.name);
                    assert_eq!(task.rows.start, rows, "{} in {parts}", case.name);
                    assert!(cut == Cut::Anywhere || !task.continues);
                    (leaves, rows) = (task.nodes[leaf].end, task.rows.end);
                }
                assert_eq!(leaves, tree.values().len() as u64, "{}", case.name);
                assert_eq!(rows, case.extents[0], "{}", case.name);
            }
        }
    }
}
