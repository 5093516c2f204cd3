//! Limits of the machine and the work of a plan.

use decompose_core::contract::Request;
use decompose_core::cost::Machine;
use decompose_core::kernels::{mttkrp, tttp};
use decompose_core::runtime::Toolchain;
use decompose_core::sweep::{Merging, PlanOptions, Step, TreeLayout, Trees, plan, plan_kernels};
use decompose_formats::mix::mix;
use decompose_formats::{Coo, Csf, ModeOrder, PatternCounts};

use crate::bench::roofline::touches::touches;
use crate::bench::roofline::{Bound, Caches, Limits, TablePlace, Work};

const RANK: usize = 16;

fn options() -> PlanOptions {
    PlanOptions {
        rank: RANK,
        value_bytes: 8,
        threads: 1,
        memory: None,
        sweeps: 50,
        trees: Trees::ChoosePlain,
        merging: Merging::Never,
        panels: None,
        updates: vec![0, 1, 2],
    }
}

/// A tensor of 30 x 20 x 25 with about 900 entries.
pub(super) fn tensor() -> Coo<f64> {
    let entries: Vec<u64> = (0..15_000).filter(|&at| mix(at).is_multiple_of(16)).collect();
    let column = |of: fn(u64) -> u64| entries.iter().map(|&at| of(at) as u32).collect::<Vec<_>>();
    let coords: [Vec<u32>; 3] =
        [column(|at| at / 500), column(|at| at / 25 % 20), column(|at| at % 25)];
    let values = vec![1.0; entries.len()];
    Coo::new(vec![30, 20, 25], coords.into_iter().map(Into::into).collect(), values).unwrap()
}

/// No caches: every row comes in but the one before.
const NO_CACHES: Caches = Caches { threads: 1, l1_bytes: 0, l2_bytes: 0, l3_bytes: 0 };
const LARGE: Caches = Caches { threads: 2, l1_bytes: 0, l2_bytes: 1 << 30, l3_bytes: 1 << 30 };

/// The work of each MTTKRP on the tree that the plan gives it.
fn works(caches: &Caches) -> Vec<(Step, Csf<f64>, Work)> {
    let coo = tensor();
    let case = PatternCounts::of(&coo);
    let request = Request::new(mttkrp(3, 0), 0, &case, &shapes(&coo)).unwrap();
    let pattern = request.sparse.into_iter().next().unwrap().pattern;
    let plan = plan(coo.extents(), &pattern, &options(), Machine::here()).unwrap();
    let steps = plan.steps().map(|(_, step)| step.clone());
    let steps = steps.map(|step| {
        let tree = Csf::build(coo.clone(), &plan.kernels.trees[step.tree].order).unwrap();
        let work = Work::of(&step.problem, &step.candidate.schedule, &tree, caches);
        (step, tree, work)
    });
    steps.collect()
}

fn shapes(coo: &Coo<f64>) -> Vec<Vec<u64>> {
    let rows = coo.extents().iter().skip(1).map(|&extent| vec![extent, RANK as u64]);
    std::iter::once(coo.extents().to_vec()).chain(rows).collect()
}

#[test]
fn work_is_counted_by_hand() {
    for (step, tree, work) in works(&NO_CACHES) {
        let nodes: Vec<f64> = tree.levels().iter().map(|l| l.coords.len() as f64).collect();
        // Each term multiplies and adds once for each component in each of its iterations.
        let terms = &step.candidate.schedule.path.terms;
        let orders = step.candidate.schedule.nest.orders(terms.len()).unwrap();
        let depth = |order: &Vec<_>| order.len() - 1;
        let flops: f64 =
            orders.iter().map(|order| 2.0 * nodes[depth(order) - 1] * RANK as f64).sum();
        assert_eq!(work.flops, flops, "{}", step.problem.expr);
        let touched = touches(&step.problem, &step.candidate.schedule);
        assert_eq!(touched.len(), 3, "{touched:?}");
        // Siblings differ, and a node that follows another's child may repeat its coordinate.
        let row = (RANK * 8) as f64;
        let visits = touched.iter().map(|t| nodes[t.level] * t.moves as f64 * row).sum::<f64>();
        let rows = work.near_bytes - tree.bytes() as f64;
        assert!(rows <= visits && rows > 0.5 * visits, "{rows} of {visits}");
        assert_eq!(work.far_bytes, work.streamed_bytes + work.scattered_bytes);
        assert_eq!(work.far_bytes, work.middle_bytes);
        assert!(work.far_bytes <= work.near_bytes);
    }
}

#[test]
fn what_fits_stays() {
    for (step, _, work) in works(&LARGE) {
        let moved = (work.far_bytes, work.streamed_bytes, work.scattered_bytes);
        assert_eq!(moved, (0.0, 0.0, 0.0), "{}", step.problem.expr);
        assert!(work.flops > 0.0 && work.near_bytes > 0.0);
    }
}

#[test]
fn values_at_positions_are_written() {
    let coo = tensor();
    let rows = coo.extents().iter().map(|&extent| vec![extent, RANK as u64]);
    let shapes: Vec<Vec<u64>> = std::iter::once(coo.extents().to_vec()).chain(rows).collect();
    let request = Request::new(tttp(3), 0, &PatternCounts::of(&coo), &shapes).unwrap();
    let natural = TreeLayout::new(ModeOrder::natural(3), 1);
    let problem = request.problem(&natural);
    let plan = plan_kernels(coo.extents(), &[problem], &options(), Machine::here()).unwrap();
    let step = &plan.steps[0];
    let nnz = coo.nnz() as f64;
    let tree = Csf::build(coo, &plan.trees[0].order).unwrap();
    let work = Work::of(&step.problem, &step.candidate.schedule, &tree, &NO_CACHES);
    assert!(work.streamed_bytes >= tree.bytes() as f64 + 8.0 * nnz);
    assert!(touches(&step.problem, &step.candidate.schedule).iter().all(|t| t.moves == 1));
}

#[test]
fn the_machine_has_limits() {
    let toolchain = Toolchain::detect();
    // Small caches: arrays and tables stay small.
    let machine = Machine { l2_bytes: 1 << 16, l3_bytes: 1 << 18, ..Machine::here().clone() };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let limits = pool.install(|| Limits::measure::<f64>(RANK, &machine, &toolchain));
    if let Toolchain::Interpreter(why) = &toolchain {
        assert!(limits.unwrap_err().to_string().contains(why));
        return;
    }
    let limits = limits.unwrap();
    assert_eq!((limits.threads, limits.value_bytes, limits.row_bytes), (2, 8, 128));
    // No processor on sale is outside these: 0.1 to 10,000 GFLOP/s, 0.1 to 100,000 GB/s.
    assert!((1e8..1e13).contains(&limits.flops), "{limits:?}");
    assert!((1e8..1e14).contains(&limits.read) && (1e8..1e14).contains(&limits.triad));
    let places: Vec<TablePlace> = limits.gathers.iter().map(|gather| gather.place).collect();
    assert_eq!(places, [TablePlace::L1, TablePlace::L2, TablePlace::L3, TablePlace::Memory]);
    for gather in &limits.gathers {
        assert!((1e8..1e14).contains(&gather.bytes_per_second), "{gather:?}");
        assert!((gather.nanoseconds_a_line() * gather.bytes_per_second - 64e9).abs() < 1.0);
    }
    let (_, _, work) = works(&NO_CACHES).remove(0);
    let once = Bound::of(&work, &limits);
    let thrice = Bound::of(&work.times(3), &limits);
    assert!(once.seconds > 0.0 && (thrice.seconds / once.seconds - 3.0).abs() < 1e-9);
}
