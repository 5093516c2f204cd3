//! Limits of the machine and the work of a plan.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use decompose_core::contract::Question;
use decompose_core::cost::Machine;
use decompose_core::kernels::{mttkrp, tttp};
use decompose_core::roofline::{Bound, Caches, Limits, Place, Work, touches};
use decompose_core::runtime::{Probe, Probes, RowList, Toolchain};
use decompose_core::sweep::{Merging, PlanOptions, Step, Trees, plan, plan_kernels};
use decompose_formats::{Coo, Csf, Matrix, ModeOrder, PatternCounts};

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

fn tensor() -> Coo<f64> {
    let corpus = common::corpus();
    let case = corpus.tensor.iter().find(|case| case.extents.len() == 3 && case.nonzeros > 100);
    let mut coo = case.unwrap().coo();
    coo.sort(&ModeOrder::natural(3)).unwrap();
    coo
}

/// No caches: every row comes in but the one before.
const NO_CACHES: Caches = Caches { threads: 1, l1_bytes: 0, l2_bytes: 0, l3_bytes: 0 };
const LARGE: Caches = Caches { threads: 2, l1_bytes: 0, l2_bytes: 1 << 30, l3_bytes: 1 << 30 };

/// The work of each MTTKRP on the tree that the plan gives it.
fn works(caches: &Caches) -> Vec<(Step, Csf<f64>, Work)> {
    let coo = tensor();
    let case = PatternCounts::of(&coo);
    let pattern = Question::new(mttkrp(3, 0), 0, &case, &shapes(&coo)).unwrap().pattern;
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
    let question = Question::new(tttp(3), 0, &PatternCounts::of(&coo), &shapes).unwrap();
    let natural = decompose_core::sweep::TreeLayout::new(ModeOrder::natural(3), 1);
    let problem = question.problem(&natural);
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
    let places: Vec<Place> = limits.gathers.iter().map(|gather| gather.place).collect();
    assert_eq!(places, [Place::L1, Place::L2, Place::L3, Place::Memory]);
    for gather in &limits.gathers {
        assert!((1e8..1e14).contains(&gather.bytes_per_second), "{gather:?}");
        assert!((gather.nanoseconds_a_line() * gather.bytes_per_second - 64e9).abs() < 1.0);
    }
    let (_, _, work) = works(&NO_CACHES).remove(0);
    let once = Bound::of(&work, &limits);
    let thrice = Bound::of(&work.times(3), &limits);
    assert!(once.seconds > 0.0 && (thrice.seconds / once.seconds - 3.0).abs() < 1e-9);
}

#[test]
fn probes_compute_and_refuse() {
    let toolchain = Toolchain::detect();
    let Ok(probes) = Probes::new::<f32>(5, &toolchain) else { return };
    let mut table = Matrix::<f32>::zeros(4, 5).unwrap();
    (0..4).for_each(|row| table.row_mut(row).fill(row as f32));
    let rows = RowList::new(vec![3, 1, 3, 2]);
    // Lane 0 of all rows, and the other lanes stand aside.
    for distance in [0, 2] {
        let sum = probes.run(Probe::Gather { table: &table, rows: &rows, distance }).unwrap();
        assert_eq!(sum, 9.0);
    }
    let (a, b) = (table.try_clone().unwrap(), table.try_clone().unwrap());
    probes.run(Probe::Triad { to: &mut table, from: [&a, &b] }).unwrap();
    assert_eq!(table.row(2), [3.0; 5]);
    assert!(probes.run::<f32>(Probe::MultiplyAdd(1)).unwrap() >= 2.0);
    let far = RowList::new(vec![4]);
    assert!(probes.run(Probe::Gather { table: &table, rows: &far, distance: 0 }).is_err());
    let wide = Matrix::<f32>::zeros(4, 50).unwrap();
    assert!(probes.run(Probe::Gather { table: &wide, rows: &rows, distance: 0 }).is_err());
    assert!(probes.run::<f64>(Probe::MultiplyAdd(1)).is_err());
    let short = Matrix::<f32>::zeros(1, 5).unwrap();
    assert!(probes.run(Probe::Triad { to: &mut table, from: [&a, &short] }).is_err());
}
