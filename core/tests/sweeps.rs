//! Sweeps that share work between kernels, against the definition, exactly: all numbers are small
//! integers.

mod common;

use common::{Case, check_entries, corpus, multiply};
use decompose_core::cost::{Family, Machine};
use decompose_core::einsum::Extents;
use decompose_core::error::CoreError;
use decompose_core::kernels::{self, mode_index};
use decompose_core::runtime::Toolchain;
use decompose_core::schedule::{Pattern, Problem};
use decompose_core::sweep::{
    Engine, Merging, MttkrpSweep, PlanOptions, SearchedKernels, SweepPlan, TreeLayout, Trees, plan,
    plan_kernels, posed,
};
use decompose_formats::mix::mix;
use decompose_formats::{Matrix, ModeOrder, PatternCounts};

const RANK: usize = 26;

fn plan_of(case: &Case, merging: Merging) -> Result<SweepPlan, CoreError> {
    plan_in(case, merging, None)
}

fn options(case: &Case, merging: Merging, panels: Option<usize>) -> PlanOptions {
    PlanOptions {
        rank: RANK,
        value_bytes: 8,
        threads: rayon::current_num_threads(),
        memory: None,
        sweeps: 20,
        trees: Trees::Choose,
        merging,
        panels,
        updates: (0..case.extents.len()).collect(),
    }
}

fn plan_in(case: &Case, merging: Merging, panels: Option<usize>) -> Result<SweepPlan, CoreError> {
    plan(&case.extents, &case.pattern(), &options(case, merging, panels), Machine::here())
}

fn engine(
    case: &Case,
    merging: Merging,
    panels: Option<usize>,
    toolchain: &Toolchain,
) -> Engine<f64> {
    let plan = plan_in(case, merging, panels).expect("a plan");
    Engine::build(case.coo(), &plan, toolchain).expect("an engine").0
}

/// Fills a factor with integers from -2 to 2 that differ with `round`.
fn refill(factor: &mut Matrix<f64>, round: usize) {
    for row in 0..factor.rows() {
        for (at, value) in factor.row_mut(row).iter_mut().enumerate() {
            *value = ((row * 7 + at * 3 + round * 5 + row * at) % 5) as f64 - 2.0;
        }
    }
}

fn definition(case: &Case, factors: &[Matrix<f64>], mode: usize) -> Vec<f64> {
    let mut result = vec![0.0; case.extents[mode] as usize * RANK];
    for (at, value) in case.entries() {
        let row = &mut result[at[mode] as usize * RANK..][..RANK];
        for (r, sum) in row.iter_mut().enumerate() {
            let others = (0..at.len()).filter(|&m| m != mode);
            *sum += others.fold(value, |x, m| x * factors[m].row(at[m] as usize)[r]);
        }
    }
    result
}

/// Updates modes in the order `updates`, each factor being replaced after its product.
fn check(case: &Case, engine: &mut Engine<f64>, updates: &[usize], what: &str) {
    check_entries(case, engine);
    let mut factors: Vec<Matrix<f64>> = case.factors(RANK);
    factors.iter_mut().enumerate().for_each(|(mode, factor)| refill(factor, mode));
    engine.forget();
    for (round, &mode) in updates.iter().enumerate() {
        let want = definition(case, &factors, mode);
        multiply(engine, mode, &mut factors).expect("a result");
        let have = (0..factors[mode].rows()).flat_map(|row| factors[mode].row(row).to_vec());
        let have: Vec<f64> = have.collect();
        assert_eq!(have, want, "{} mode {mode}, update {round}, {what}", case.name);
        refill(&mut factors[mode], round + case.extents.len());
    }
}

/// All ways to merge one set of modes, or two.
fn merges(order: usize) -> Vec<Vec<Vec<usize>>> {
    let sets = (1_u64..1 << order)
        .map(|bits| (0..order).filter(|mode| bits >> mode & 1 == 1).collect::<Vec<usize>>())
        .filter(|set| set.len() > 1 && set.len() < order);
    let sets: Vec<Vec<usize>> = sets.collect();
    let mut all: Vec<Vec<Vec<usize>>> = sets.iter().map(|set| vec![set.clone()]).collect();
    for (at, one) in sets.iter().enumerate() {
        let apart = sets[at + 1..].iter().filter(|two| one.iter().all(|mode| !two.contains(mode)));
        all.extend(apart.map(|two| vec![one.clone(), two.clone()]));
    }
    all
}

#[test]
fn merged_modes_change_no_result() {
    let corpus = corpus();
    let toolchains = [Toolchain::detect(), Toolchain::Interpreter("a test".into())];
    for case in corpus.tensor.iter().filter(|case| case.extents.len() < 6) {
        let order = case.extents.len();
        let sweeps: Vec<usize> = (0..2 * order).map(|at| at % order).collect();
        let jumps: Vec<usize> = (0..3 * order).map(|at| (at * at + at / 3) % order).collect();
        for merged in merges(order) {
            for (toolchain, threads) in toolchains.iter().zip([2, 1]) {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                pool.expect("threads").install(|| {
                    let what = format!("{merged:?}");
                    let mut engine = engine(case, Merging::Given(merged.clone()), None, toolchain);
                    check(case, &mut engine, &sweeps, &what);
                    check(case, &mut engine, &jumps, &what);
                });
            }
        }
    }
}

#[test]
fn panels_change_no_result() {
    let corpus = corpus();
    let toolchains = [Toolchain::detect(), Toolchain::Interpreter("a test".into())];
    for case in corpus.tensor.iter().filter(|case| case.extents.len() < 6) {
        let order = case.extents.len();
        let sweeps: Vec<usize> = (0..2 * order).map(|at| at % order).collect();
        let plain = plan_of(case, Merging::Never).expect("a plan");
        assert_eq!(plain.panels, [RANK], "short rows stay whole");
        let first = (order > 2).then(|| Merging::Given(vec![vec![0, 1]]));
        for merging in [Merging::Never].into_iter().chain(first) {
            let plan = plan_in(case, merging.clone(), Some(8)).expect("a plan");
            assert_eq!(plan.panels, [8, 8, 8, 2]);
            for (toolchain, threads) in toolchains.iter().flat_map(|t| [(t, 1), (t, 2), (t, 5)]) {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
                pool.expect("threads").install(|| {
                    let what = format!("{merging:?} in panels on {threads} threads");
                    let mut engine = engine(case, merging.clone(), Some(8), toolchain);
                    check(case, &mut engine, &sweeps, &what);
                });
            }
        }
    }
}

/// Rows of a thousand columns are gathered at random from factors beyond the second-level cache.
#[test]
fn long_rows_are_stored_in_panels() {
    let extents = [1 << 14, 1 << 14, 1 << 14];
    let counts = PatternCounts::uniform(&extents, 40_000_000);
    let modes: Vec<_> = (0..3).map(mode_index).collect();
    let options = PlanOptions {
        rank: 1000,
        value_bytes: 8,
        threads: 2,
        memory: None,
        sweeps: 50,
        trees: Trees::Choose,
        merging: Merging::Never,
        panels: None,
        updates: vec![0, 1, 2],
    };
    let plan_of = |options: &PlanOptions| {
        plan(&extents, &Pattern::of(&counts, &modes), options, Machine::here()).expect("a plan")
    };
    let (chosen, whole) =
        (plan_of(&options), plan_of(&PlanOptions { panels: Some(1000), ..options.clone() }));
    assert_eq!(whole.panels, [1000]);
    assert!(chosen.panels.len() > 1 && chosen.panels.iter().sum::<usize>() == 1000);
    assert!(chosen.seconds() < whole.seconds());
    let text = chosen.to_string();
    assert!(text.starts_with("factors in panels of 32 + "), "{text}");
    assert!(text.contains("\n  alternative factors in whole rows: "), "{text}");
}

#[test]
fn a_plan_says_what_it_was_preferred_to() {
    let corpus = corpus();
    for case in corpus.tensor.iter().filter(|case| case.extents.len() >= 3) {
        let plan = plan_of(case, Merging::Choose).expect("a plan");
        let text = plan.to_string();
        for part in plan.parts() {
            let seconds: Vec<f64> = part.alternatives.iter().map(|other| other.seconds).collect();
            assert!(!seconds.is_empty() && seconds.is_sorted(), "{}: {text}", case.name);
            // Sets that take the same differ by the rounding of their sums.
            assert!(seconds[0] >= part.weighed * (1.0 - 1e-12), "{}: {text}", case.name);
            let (bytes, first) = (part.tree_bytes, &part.alternatives[0]);
            assert!(text.contains(&format!(
                "({bytes} bytes) of {}, compared at {:.2e} s",
                part.considered, part.weighed
            )));
            assert!(text.contains(&format!("alternative {}: {:.2e} s", first.what, first.seconds)));
        }
        let merges = |what: &str| what == "no merging" || what.ends_with(" merged");
        let other = plan.alternatives.iter().any(|other| merges(&other.what));
        assert!(other || plan.merges.is_empty(), "{}: {text}", case.name);
    }
}

#[test]
fn modes_with_few_tuples_are_merged() {
    let corpus = corpus();
    let named = |name: &str| corpus.tensor.iter().find(|case| case.name == name);
    let case = named("order-5").expect("a case");
    for threads in [1, 2] {
        let plan = plan_of(case, Merging::Choose).expect("a plan");
        let plain = plan_of(case, Merging::Never).expect("a plan");
        assert!(plain.merges.is_empty());
        assert!(plan.seconds() <= plain.seconds(), "{threads} threads");
        assert_eq!(plan.plain_seconds, plain.seconds());
    }
}

/// What a plan may take of what the best plan takes that a search of everything finds.
const NEAR_BEST: f64 = 1.03;

#[test]
fn no_partition_of_the_modes_is_predicted_to_take_much_less() {
    let tensors: [(&[u64], u64); 3] = [
        (&[60, 50, 20_000, 30_000], 4_000_000),
        (&[180, 24, 1_100, 1_700], 3_000_000),
        (&[40, 30, 20_000, 9, 60_000], 2_000_000),
    ];
    for (extents, nnz) in tensors {
        let order = extents.len();
        let counts = PatternCounts::uniform(extents, nnz);
        let modes: Vec<_> = (0..order).map(mode_index).collect();
        let pattern = Pattern::of(&counts, &modes);
        let planned = |merging| {
            // Over so many sweeps building costs nothing, so that predicted seconds are all there is to compare.
            let options = PlanOptions {
                rank: 32,
                value_bytes: 8,
                threads: 2,
                memory: None,
                sweeps: 1 << 60,
                trees: Trees::Choose,
                merging,
                panels: None,
                updates: (0..order).collect(),
            };
            plan(extents, &pattern, &options, &Family::Zen.machine()).expect("a plan")
        };
        let chosen = planned(Merging::Choose);
        assert!(!chosen.merges.is_empty(), "{extents:?}: few tuples, and nothing merged");
        let sets = |bits: u32| (0..order).filter(|mode| bits >> mode & 1 == 1).collect::<Vec<_>>();
        let sets = (1_u32..1 << order).map(sets);
        let sets: Vec<_> = sets.filter(|set| (2..order).contains(&set.len())).collect();
        let one = sets.iter().map(|set| vec![set.clone()]);
        let apart =
            |a: &[usize], b: &[usize]| a[0] < b[0] && a.iter().all(|mode| !b.contains(mode));
        let pairs = sets.iter().flat_map(|a| {
            let others = sets.iter().filter(|b| apart(a, b));
            others.map(|b| vec![a.clone(), b.clone()]).collect::<Vec<_>>()
        });
        let mut compared = 0;
        for merged in one.chain(pairs) {
            let given = planned(Merging::Given(merged));
            if given.merges.iter().all(|merge| merge.tuples <= nnz / 2) {
                let (chosen, given) = (chosen.seconds(), given.seconds());
                assert!(chosen <= NEAR_BEST * given, "{extents:?}: {chosen} {given}");
                compared += 1;
            }
        }
        assert_eq!(compared + 1, chosen.considered, "{extents:?}");
    }
}

#[test]
fn sweeps_of_ttmcs_of_five_modes_are_near_the_best_of_all_orders() {
    let extents = [70, 900, 50, 400, 110];
    let order = extents.len();
    let counts = PatternCounts::uniform(&extents, 200_000);
    let modes: Vec<_> = (0..order).map(mode_index).collect();
    let pattern = Pattern::of(&counts, &modes);
    let problem = |mode| {
        let ranks = (0..order).map(|mode| (kernels::mode_rank_index(order, mode), 4));
        let all = modes.iter().copied().zip(extents).chain(ranks).collect();
        posed(kernels::ttmc(order, Some(mode)), all, pattern.clone(), 8)
    };
    let problems: Vec<_> = (0..order).map(problem).collect();
    let machine = Family::Zen.machine();
    let options = |trees| PlanOptions {
        rank: 0,
        value_bytes: 8,
        threads: 2,
        memory: None,
        // Over so many sweeps building costs nothing.
        sweeps: 1 << 60,
        trees,
        merging: Merging::Never,
        panels: None,
        updates: Vec::new(),
    };
    let planned = |problems: &[Problem], trees: Trees| {
        plan_kernels(&extents, problems, &options(trees), &machine).expect("a plan")
    };
    let all = all_trees(order);
    assert_eq!(all.len(), 240);
    let (chosen, best) = (planned(&problems, Trees::Choose), planned(&problems, Trees::Given(all)));
    assert!(chosen.considered == 240 && chosen.searched < 1200, "{}", chosen.searched);
    assert!(chosen.seconds() <= NEAR_BEST * best.seconds());

    // Some of the kernels, which keep their numbers, as if nothing else had been asked for.
    for trees in [Trees::Choose, Trees::ChoosePlain, Trees::Rooted] {
        let options = options(trees.clone());
        let searched = SearchedKernels::new(&extents, &problems, &options, &machine);
        let searched = searched.expect("schedules");
        let some = searched.plan(&[1, 3]).expect("a plan");
        assert!(matches!(searched.plan(&[5]), Err(CoreError::Internal(_))));
        let two = [problems[1].clone(), problems[3].clone()];
        let alone = planned(&two, trees);
        assert!(some.seconds() <= NEAR_BEST * alone.seconds());
        assert!(alone.seconds() <= NEAR_BEST * some.seconds());
        assert_eq!(some.steps.iter().map(|step| step.mode).collect::<Vec<_>>(), [1, 3]);
    }
}

/// Every tree of `order` modes, plain and with its last two levels fused.
fn all_trees(order: usize) -> Vec<TreeLayout> {
    let numbers = 0..order.pow(order as u32);
    let levels = |number: usize| (0..order).map(move |at| number / order.pow(at as u32) % order);
    let orders = numbers.filter_map(|number| ModeOrder::new(levels(number).collect()));
    orders.flat_map(|order| [1, 2].map(|fused| TreeLayout::new(order.clone(), fused))).collect()
}

#[test]
fn kernels_run_near_the_best_of_all_trees() {
    let mut ratios = Vec::new();
    for seed in 0..24 {
        let draw = |salt: u64, below: u64| mix(seed * 1000 + salt) % below;
        let order = 3 + draw(0, 2) as usize;
        // Four to half a million slices, as likely of every size.
        let extent = |mode: u64| (4.0 * f64::exp2(draw(1 + mode, 170) as f64 / 10.0)) as u64;
        let extents: Vec<u64> = (0..order as u64).map(extent).collect();
        let cells: f64 = extents.iter().map(|&extent| extent as f64).product();
        let nnz = f64::exp2(12.0 + draw(9, 100) as f64 / 10.0).min(cells / 2.0).ceil();
        let modes: Vec<_> = (0..order).map(mode_index).collect();
        let pattern = Pattern::of(&PatternCounts::uniform(&extents, nnz as u64), &modes);
        let rank = [4, 8, 16, 50][draw(10, 4) as usize];
        let mut all: Extents = modes.iter().copied().zip(extents.iter().copied()).collect();
        all.set(kernels::rank_index(), rank);
        for mode in 0..order {
            all.set(kernels::mode_rank_index(order, mode), rank.min(8));
        }
        let ttmc = draw(11, 2) == 1;
        let expr = |mode| match ttmc {
            true => kernels::ttmc(order, Some(mode)),
            false => kernels::mttkrp(order, mode),
        };
        let problem = |mode| posed(expr(mode), all.clone(), pattern.clone(), 8);
        let problems: Vec<Problem> = (0..order).map(problem).collect();
        let family = [Family::Zen, Family::Xeon][draw(12, 2) as usize];
        let planned = |trees: Trees| {
            let options = PlanOptions {
                rank: 0,
                value_bytes: 8,
                threads: 2,
                memory: None,
                // Over so many sweeps building costs nothing.
                sweeps: 1 << 60,
                trees,
                merging: Merging::Never,
                panels: None,
                updates: Vec::new(),
            };
            plan_kernels(&extents, &problems, &options, &family.machine()).expect("a plan")
        };
        let best = planned(Trees::Given(all_trees(order)));
        let ratio = planned(Trees::ChooseUnblocked).seconds() / best.seconds();
        assert!(ratio < 1.15, "{seed}, {extents:?}, TTMc {ttmc}, {rank} columns: {ratio}");
        ratios.push(ratio);
    }
    let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
    assert!(mean < NEAR_BEST, "{mean}: {ratios:?}");
}

#[test]
fn sets_that_cannot_be_merged_are_refused() {
    let corpus = corpus();
    let case = corpus.tensor.iter().find(|case| case.extents.len() == 4).expect("a case");
    let bad: [&[&[usize]]; 5] =
        [&[&[0]], &[&[0, 1, 2, 3]], &[&[0, 1], &[1, 2]], &[&[1, 0]], &[&[2, 4]]];
    for sets in bad {
        let sets = sets.iter().map(|set| set.to_vec()).collect();
        let error = plan_of(case, Merging::Given(sets)).expect_err("no plan").to_string();
        assert!(error.contains("apart from each other"), "{error}");
    }
}
