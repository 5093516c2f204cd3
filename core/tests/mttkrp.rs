//! MTTKRP of every mode against its definition: the corpus, every rank, trees in every order,
//! compiled and interpreted, on several numbers of threads.

mod common;

use common::{Case, Heavy, check_entries, corpus, multiply};
use decompose_core::cost::Machine;
use decompose_core::kernels::mode_index;
use decompose_core::runtime::Toolchain;
use decompose_core::schedule::{Conflict, Pattern};
use decompose_core::sweep::{
    Engine, Merging, PlanOptions, SweepPlan, TreeLayout, Trees, count_blocks, plan,
};
use decompose_formats::{Blocking, Coo, ModeOrder, PatternCounts, Value};

fn interpreter() -> Toolchain {
    Toolchain::Interpreter("the test asks for it".into())
}

fn in_pool<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
    pool.install(work)
}

fn check<V: Value>(case: &Case, rank: usize, trees: Trees, toolchain: &Toolchain) -> SweepPlan {
    let options = PlanOptions {
        rank,
        value_bytes: V::BYTES,
        threads: rayon::current_num_threads(),
        memory: None,
        sweeps: 20,
        trees,
        merging: Merging::Never,
        panels: None,
        updates: (0..case.extents.len()).collect(),
    };
    let mut pattern = case.pattern();
    if let Trees::Given(trees) = &options.trees {
        let (coo, blocks) = (case.coo::<V>(), trees.iter().filter_map(|tree| tree.blocks.clone()));
        count_blocks(&mut pattern, &PatternCounts::of(&coo), &coo, blocks).expect("counts");
    }
    let plan = plan(&case.extents, &pattern, &options, Machine::here()).expect("a plan");
    let (mut engine, report) = Engine::build(case.coo::<V>(), &plan, toolchain).expect("an engine");
    if let Toolchain::Native(_) = toolchain {
        assert_eq!(report.interpreted, None);
    }
    check_entries(case, &engine);
    for mode in 0..case.extents.len() {
        let mut factors = case.factors::<V>(rank);
        multiply(&mut engine, mode, &mut factors).expect("a result");
        let want = case.mttkrp(mode, rank);
        for (row, want) in want.chunks(rank).enumerate() {
            let have: Vec<f64> = factors[mode].row(row).iter().map(|v| v.to_f64()).collect();
            let (name, order) = (&case.name, &plan.kernels.trees[plan.kernels.steps[mode].tree]);
            assert_eq!(have, want, "{name} rank {rank} mode {mode} row {row} on {order}");
        }
        let stride = factors[mode].stride();
        let padding = factors[mode].as_slice().chunks(stride).flat_map(|row| &row[rank..]);
        assert!(padding.copied().all(|v| v.to_f64() == 0.0), "padding stays zero");
    }
    plan
}

#[test]
fn the_corpus_is_what_its_readme_says() {
    for case in corpus().tensor {
        let entries = case.entries();
        assert_eq!(entries.len(), case.nonzeros, "{}", case.name);
        assert_eq!(entries.values().sum::<f64>(), case.sum as f64, "{}", case.name);
        for (mode, &check) in case.checks.iter().enumerate() {
            let result = case.mttkrp(mode, 7);
            let weight = |at: usize| ((at / 7 + 1) * (at % 7 + 1)) as f64;
            let sum: f64 = result.iter().enumerate().map(|(at, v)| weight(at) * v).sum();
            assert_eq!(sum, check as f64, "{} mode {mode}", case.name);
        }
    }
}

#[test]
fn compiled_kernels_equal_the_definition() {
    let corpus = corpus();
    let toolchain = Toolchain::detect();
    for case in &corpus.tensor {
        for &rank in &corpus.ranks {
            for threads in [1, 2, 5] {
                in_pool(threads, || check::<f64>(case, rank, Trees::Choose, &toolchain));
            }
        }
    }
}

#[test]
fn interpreted_kernels_equal_the_definition() {
    let corpus = corpus();
    for case in &corpus.tensor {
        for &rank in &corpus.ranks {
            for threads in [1, 2, 5] {
                in_pool(threads, || check::<f64>(case, rank, Trees::Choose, &interpreter()));
            }
        }
    }
}

#[test]
fn one_tree_of_any_order_serves_all_modes() {
    let corpus = corpus();
    let toolchain = Toolchain::detect();
    for case in &corpus.tensor {
        let modes = case.extents.len();
        for shift in 0..modes {
            let order = ModeOrder::new((0..modes).map(|m| (m + shift) % modes).collect());
            let order = order.expect("a rotation");
            for fused in 1..modes.max(2) {
                let trees = Trees::Given(vec![TreeLayout::new(order.clone(), fused)]);
                for threads in [1, 2] {
                    let work = || {
                        check::<f64>(case, 9, trees.clone(), &toolchain);
                        check::<f64>(case, 200, trees.clone(), &interpreter());
                    };
                    in_pool(threads, work);
                }
            }
        }
    }
}

/// Blockings of a tensor of `extents`: one bit of the longest mode, one of each, all bits; a few ranges of each
/// mode.
fn blockings_of(extents: &[u64]) -> Vec<Blocking> {
    let bits = |extent: u64| (64 - (extent - 1).leading_zeros()) as u8;
    let longest = extents.iter().copied().max().unwrap_or(0);
    let one = extents.iter().map(|&extent| u8::from(extent == longest && extent > 1)).collect();
    let each = extents.iter().map(|&extent| u8::from(extent > 1)).collect();
    let all = extents.iter().map(|&extent| bits(extent)).collect();
    let mut found: Vec<Blocking> = [one, each, all].into_iter().filter_map(Blocking::new).collect();
    found.dedup();
    let ranges = (0..extents.len()).map(|mode| Blocking::of_ranges(mode, 2 + mode as u32 % 4));
    found.extend(ranges.flatten());
    found
}

#[test]
fn one_tree_of_blocks_serves_all_modes() {
    let corpus = corpus();
    let toolchain = Toolchain::detect();
    let mut checked = 0;
    for case in &corpus.tensor {
        let modes = case.extents.len();
        for blocks in blockings_of(&case.extents) {
            for fused in 1..=modes {
                let order = ModeOrder::rooted(fused - 1, &case.extents);
                let tree = TreeLayout { blocks: Some(blocks.clone()), order, fused };
                let trees = Trees::Given(vec![tree]);
                for threads in [1, 2, 5] {
                    in_pool(threads, || check::<f64>(case, 9, trees.clone(), &toolchain));
                }
                in_pool(2, || check::<f64>(case, 50, trees.clone(), &interpreter()));
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "{checked} trees of blocks");
}

#[test]
fn trees_of_blocks_and_of_modes_stand_side_by_side() {
    let corpus = corpus();
    let toolchain = Toolchain::detect();
    for case in corpus.tensor.iter().filter(|case| case.extents.len() > 1) {
        let order = |root| ModeOrder::rooted(root, &case.extents);
        let blocked = blockings_of(&case.extents).into_iter().enumerate();
        let blocked = blocked.map(|(at, blocks)| TreeLayout {
            blocks: Some(blocks),
            order: order(at % case.extents.len()),
            fused: 1,
        });
        let trees: Vec<TreeLayout> = blocked.chain([TreeLayout::new(order(1), 1)]).collect();
        in_pool(2, || check::<f64>(case, 16, Trees::Given(trees.clone()), &toolchain));
    }
}

#[test]
fn private_copies_have_the_rows_that_their_tasks_name() {
    let extents = vec![64_u64, 8, 8];
    let column = |of: fn(u32) -> u32| (0..64 * 64).map(of).collect::<Vec<u32>>().into();
    let coords = vec![column(|at| at / 64), column(|at| at / 8 % 8), column(|at| at % 8)];
    let mut coo = Coo::new(extents.clone(), coords, vec![1.0; 64 * 64]).expect("a tensor");
    coo.sort(&ModeOrder::natural(3)).expect("sorted");
    let counts = PatternCounts::of(&coo);
    let mut pattern = Pattern::of(&counts, &[0, 1, 2].map(mode_index));
    let tree: TreeLayout = "1.0.0/1+2+3".parse().expect("a tree");
    count_blocks(&mut pattern, &counts, &coo, tree.blocks.clone()).expect("counts");
    let options = PlanOptions {
        rank: 16,
        value_bytes: 8,
        threads: 2,
        memory: None,
        sweeps: 20,
        trees: Trees::Given(vec![tree]),
        merging: Merging::Never,
        panels: None,
        updates: vec![0, 1, 2],
    };
    let plan = plan(&extents, &pattern, &options, Machine::here()).expect("a plan");
    in_pool(2, || {
        let (_, report) = Engine::build(coo, &plan, &Toolchain::detect()).expect("an engine");
        // Every cell has an entry: the second task has the upper half of the rows of the first mode.
        assert_eq!(report.side_bytes, (32 + 8 + 8) * 16 * 8);
        assert!(report.side_bytes < plan.side_bytes());
    });
}

#[test]
fn threads_own_the_rows_of_their_ranges() {
    let case = Case { extents: vec![60, 90, 50], draws: 4000, ..corpus_like() };
    let toolchain = Toolchain::detect();
    for (tree, own) in [("2:2/1-2-3", 1), ("3:2/2-1-3", 2), ("3:2/1-2+3", 2), ("1:4/3-2-1", 0)] {
        let tree: TreeLayout = tree.parse().expect("a tree");
        let trees = Trees::Given(vec![tree.clone()]);
        for threads in [1, 2, 3] {
            let plan = in_pool(threads, || {
                check::<f64>(&case, 16, trees.clone(), &interpreter());
                check::<f64>(&case, 16, trees.clone(), &toolchain)
            });
            for (mode, step) in plan.kernels.steps.iter().enumerate() {
                let parallel = step.candidate.schedule.parallel.expect("a parallel loop");
                let owned = parallel.conflict == Conflict::Owner;
                assert_eq!(owned, mode == own, "mode {} on {tree}", mode + 1);
                assert_eq!(step.side_bytes == 0, owned || threads == 1, "mode {}", mode + 1);
            }
        }
    }
}

#[test]
fn tasks_in_blocks_add_copies_in_one_order() {
    // Every third entry is in one row, which many tasks share.
    let heavy = Some(Heavy { mode: 0, index: 7, percent: 33 });
    let case = Case { extents: vec![40, 3000, 500], draws: 330_000, heavy, ..corpus_like() };
    let toolchain = Toolchain::detect();
    let given = |tree: &str| Trees::Given(vec![tree.parse().expect("a tree")]);
    in_pool(2, || check::<f64>(&case, 3, given("0.1.0/1-3+2"), &interpreter()));
    for (tree, rank) in [("0.1.0/1-3+2", 18), ("0.1.0/1-2-3", 9), ("0.1.0/1+2+3", 3)] {
        let plan = in_pool(2, || check::<f64>(&case, rank, given(tree), &toolchain));
        in_pool(2, || assert_same_bits(&case, rank, &plan, &toolchain));
    }
}

/// Checks that products of the first mode whose sums are rounded come out the same, whoever does which task.
fn assert_same_bits(case: &Case, rank: usize, plan: &SweepPlan, toolchain: &Toolchain) {
    let (mut engine, _) = Engine::build(case.coo::<f64>(), plan, toolchain).expect("an engine");
    let mut products = (0..4).map(|_| {
        let mut factors = case.factors::<f64>(rank);
        let values = factors.iter_mut().flat_map(|factor| factor.as_mut_slice());
        values.for_each(|value| *value /= 3.0);
        multiply(&mut engine, 0, &mut factors).expect("a result");
        factors[0].as_slice().iter().map(|value| value.to_bits()).collect::<Vec<u64>>()
    });
    let first = products.next();
    assert!(products.all(|product| Some(product) == first));
}

#[test]
fn single_precision_equals_the_definition() {
    let corpus = corpus();
    let toolchain = Toolchain::detect();
    for case in &corpus.tensor {
        for &rank in &[1, 9, 50] {
            in_pool(2, || {
                check::<f32>(case, rank, Trees::Choose, &toolchain);
                check::<f32>(case, rank, Trees::Choose, &interpreter());
            });
        }
    }
}

#[test]
fn coordinates_of_any_width_equal_the_definition() {
    let toolchain = Toolchain::detect();
    let extents = [(1 << 16) - 1, (1 << 16) + 1, 1 << 16];
    let case = Case { name: "edges".into(), extents: extents.into(), draws: 400, ..corpus_like() };
    for shift in 0..3 {
        let order = ModeOrder::new((0..3).map(|m| (m + shift) % 3).collect()).expect("a rotation");
        for fused in 1..3 {
            let trees = Trees::Given(vec![TreeLayout::new(order.clone(), fused)]);
            in_pool(2, || {
                check::<f64>(&case, 9, trees.clone(), &toolchain);
                check::<f64>(&case, 9, trees.clone(), &interpreter());
            });
        }
    }
}

/// A case without anything special; its checks are not those of its numbers.
fn corpus_like() -> Case {
    corpus().tensor.into_iter().find(|case| case.name == "order-3").expect("a case")
}
