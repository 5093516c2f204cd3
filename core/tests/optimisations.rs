//! Kernels and plans that do without optimisations: the same results, and none of what is left out.

mod common;

use common::{Case, corpus, multiply};
use decompose_core::autoschedule::default_scheduler;
use decompose_core::codegen::{emit_c, sizes};
use decompose_core::cost::Machine;
use decompose_core::einsum::{Expr, Extents};
use decompose_core::kernels;
use decompose_core::lower::{LevelStorage, lower};
use decompose_core::optimisation::{Optimisation, Optimisations};
use decompose_core::runtime::Toolchain;
use decompose_core::schedule::{
    Format, Pattern, Prefetch, PrefetchOf, Problem, Schedule, SparseOperand,
};
use decompose_core::sweep::{
    Engine, Merging, MttkrpSweep, PlanOptions, SweepPlan, TreePlan, Trees, plan_limited,
};
use decompose_formats::narrow_ints::Width;

/// Every optimisation left out by itself, and all of them.
fn subsets() -> Vec<Optimisations> {
    let single = Optimisation::ALL.map(|optimisation| Optimisations::all_but([optimisation]));
    single.into_iter().chain([Optimisations::all_but(Optimisation::ALL)]).collect()
}

fn plan_of(case: &Case, rank: usize, merging: Merging, optimisations: Optimisations) -> SweepPlan {
    let options = PlanOptions {
        rank,
        value_bytes: 8,
        threads: rayon::current_num_threads(),
        memory: None,
        sweeps: 20,
        trees: Trees::Choose,
        merging,
        panels: None,
        updates: (0..case.extents.len()).collect(),
    };
    plan_limited(&case.extents, &case.pattern(), &options, optimisations, Machine::here())
        .expect("a plan")
}

/// Results are exact: all numbers are small integers.
fn check(case: &Case, rank: usize, optimisations: Optimisations, toolchain: &Toolchain) {
    let plan = plan_of(case, rank, Merging::Choose, optimisations);
    let (mut engine, report) =
        Engine::<f64>::build(case.coo(), &plan, toolchain).expect("an engine");
    assert_eq!(report.interpreted.is_none(), matches!(toolchain, Toolchain::Native(_)));
    for mode in 0..case.extents.len() {
        let mut factors = case.factors(rank);
        engine.forget();
        multiply(&mut engine, mode, &mut factors).expect("a result");
        let have = (0..factors[mode].rows()).flat_map(|row| factors[mode].row(row).to_vec());
        let have: Vec<f64> = have.collect();
        let want = case.mttkrp(mode, rank);
        let without: Vec<&str> = optimisations.left_out().map(Optimisation::name).collect();
        assert_eq!(have, want, "{} mode {mode}, rank {rank}, without {without:?}", case.name);
    }
}

#[test]
fn results_do_not_depend_on_optimisations() {
    let corpus = corpus();
    let toolchains = [Toolchain::detect(), Toolchain::Interpreter("a test".into())];
    for threads in [1, 2] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            for case in corpus.tensor.iter().filter(|case| case.extents.len() < 6) {
                for optimisations in subsets() {
                    // Rows shorter than a vector, and of one and a part.
                    check(case, 3, optimisations, &toolchains[0]);
                    check(case, 10, optimisations, &toolchains[0]);
                    check(case, 3, optimisations, &toolchains[1]);
                }
                // Rows of more vectors than are written out.
                for optimisation in [Optimisation::Constants, Optimisation::Registers] {
                    check(case, 270, Optimisations::all_but([optimisation]), &toolchains[0]);
                }
            }
        });
    }
}

#[test]
fn plans_do_without() {
    let corpus = corpus();
    let case = corpus.tensor.iter().find(|case| case.name == "order-5").expect("a case");
    let without = |optimisation| {
        let plan = plan_of(case, 16, Merging::Choose, Optimisations::all_but([optimisation]));
        assert!(plan.steps().all(|(_, step)| !step.problem.optimisations.has(optimisation)));
        plan
    };
    assert!(without(Optimisation::Merging).merges.is_empty());
    let prefetches = |schedule: &Schedule| schedule.prefetches.len();
    let prefetched = |plan: &SweepPlan| {
        plan.steps().map(|(_, step)| prefetches(&step.candidate.schedule)).sum::<usize>()
    };
    assert_eq!(prefetched(&without(Optimisation::Prefetch)), 0);
    let plain = |plan: &TreePlan| plan.trees.iter().all(|tree| tree.fused == 1);
    assert!(without(Optimisation::Fusing).parts().all(plain));
    for part in without(Optimisation::Layouts).parts() {
        assert!(plain(part));
        assert_eq!(part.trees.len(), part.steps.len());
        for (mode, step) in part.steps.iter().enumerate() {
            assert_eq!((step.tree, part.trees[mode].order.modes()[0]), (mode, mode));
        }
    }
}

/// The text of a kernel for dense extents of `rank`, but its comments, and the numbers it is given.
fn text(expr: &Expr, rank: u64, schedule: Option<&Schedule>, optimisations: Optimisations) -> Text {
    let levels = expr.inputs[0].indices.clone();
    let extent = |index| if levels.contains(&index) { 10_000 } else { rank };
    let extents: Extents = expr.all().iter().map(|index| (index, extent(index))).collect();
    let sparse = SparseOperand {
        input: 0,
        format: Format::csf(levels.clone()),
        pattern: Pattern::default(),
    };
    let mut problem = Problem::new(expr.clone(), extents, sparse);
    problem.optimisations = optimisations;
    let mut schedule = schedule.cloned().unwrap_or_else(|| {
        let found = default_scheduler().search(&problem, Machine::here()).expect("a schedule");
        found.candidates[0].schedule.clone()
    });
    schedule.prefetches = vec![Prefetch { of: PrefetchOf::Input(1), distance: 16 }];
    let level = LevelStorage { coords: Width::W32, pointers: Width::W32 };
    let stored = vec![level; levels.len()];
    let program = lower(&problem, &schedule, &[stored]).expect("a program");
    let code = emit_c(&program);
    let lines =
        code.lines().filter(|line| !line.starts_with("//")).map(|line| line.to_owned() + "\n");
    Text { schedule, sizes: sizes(&program), code: lines.collect() }
}

struct Text {
    schedule: Schedule,
    code: String,
    sizes: Vec<u64>,
}

#[test]
fn kernels_without_constants_serve_every_rank() {
    for name in ["mttkrp:3:1", "mttkrp:4:2", "ttmc:3:1", "ttmc:4:2", "tttp:3", "tttc:4:2"] {
        let expr = kernels::parse(name).expect("a kernel");
        let generic = Optimisations::all_but([Optimisation::Constants]);
        let one = text(&expr, 16, None, generic);
        let two = text(&expr, 24, Some(&one.schedule), generic);
        assert_eq!(one.code, two.code, "{name}");
        assert!(one.sizes != two.sizes && one.sizes.len() == two.sizes.len(), "{name}");
        assert!(!one.code.contains("16 *") && !one.code.contains("10000"), "{name}:\n{}", one.code);
        let literal = text(&expr, 16, Some(&one.schedule), Optimisations::default());
        assert!(literal.sizes.is_empty(), "{name}");
        assert!(
            literal.code != text(&expr, 24, Some(&one.schedule), Optimisations::default()).code
        );
    }
}

#[test]
fn kernels_without_registers_keep_sums_in_memory() {
    for (name, rank) in [("mttkrp:3:1", 16), ("mttkrp:4:1", 200), ("ttmc:3:1", 16), ("tttc:4:2", 8)]
    {
        let expr = kernels::parse(name).expect("a kernel");
        let full = text(&expr, rank, None, Optimisations::default());
        let optimisations = Optimisations::all_but([Optimisation::Registers]);
        let bare = text(&expr, rank, Some(&full.schedule), optimisations);
        let marks = ["sum_0", "T1_0", "tile_0", "part_0", "_of_0"];
        assert!(marks.iter().any(|mark| full.code.contains(mark)), "{name}:\n{}", full.code);
        assert!(marks.iter().all(|mark| !bare.code.contains(mark)), "{name}:\n{}", bare.code);
        assert!(bare.code.contains("__asm__"), "{name}:\n{}", bare.code);
    }
}
