//! The scheduler of Scorch: a greedy order of the loops, in a fraction of a millisecond.
//!
//! One order of all indices gives the loops around every term and the level orders of the sparse operands.  It is found
//! from extents and numbers of non-zeros.
//!
//! 1. The mode orders of the operands are a graph (`constraints`, lines 11 to 18 of algorithm 1).
//! 2. Indices are ranked by the sparsity of what their loops visit (`filters`, lines 3 to 5, section III-B).
//! 3. Each index is pushed inward while that costs less (`pushes`, lines 6 to 10, with the costs of section III-C in
//!    `costs`).
//! 4. The best order of each path gives a nest.  The buffers between its terms are the workspaces of lines 19 to 25, and
//!    an assembled result has its own.
//!
//! Where the paper leaves something open, or its rule does not fit here:
//!
//! - `C_comp` adds up the iterations of all loops.  The product in the paper counts the innermost ones only, and so
//!   sees no difference between the inner product and Gustavson's algorithm.
//! - The share ρ of a sparse level follows from the number of non-zeros by the coverage of equation 4.
//! - Pushes go inward only, and can end in a local minimum.  They start a second time from the order that suits
//!   the graph without its cheapest cyclic edges; the cheaper end counts.
//! - The paper orders the loops of one product.  Here the costs of a path of several terms add up, and the
//!   cheapest of a few paths comes first.
//! - If a nest breaks a rule, the next best one counts; if all do, loops over the trees stand outside (`sparse_outside`).
//!
//! Source: Yan et al., "Fast Autoscheduling for Sparse ML Frameworks" (Scorch), sections III and V.

mod constraints;
mod costs;
mod filters;
mod pushes;
mod storage;
#[cfg(test)]
mod tests;

use std::time::Instant;

use crate::autoschedule::fallback_nest::sparse_outside;
use crate::autoschedule::level_orders::{ordered, with_tiles};
use crate::autoschedule::paths::no_schedule;
use crate::autoschedule::{
    Breadth, Candidate, OrdersFound, Scheduler, SearchLimits, SearchOutcome, SearchReport,
    StopReason, Storage, finish, rank,
};
use crate::cost::{Machine, estimate};
use crate::einsum::{Index, IndexSet};
use crate::error::CoreError;
use crate::nest::Forest;
use crate::path::{Path, chains, greedy, unfactorised};
use crate::schedule::{OutputForm, Problem};

use constraints::ModeOrders;
use costs::Judge;
use pushes::{Pushed, push};
use storage::Stores;

/// The scheduler `scorch`: the greedy order of the loops of Scorch, with the levels of the operands in the same order.
pub(super) struct Scorch;

impl Scheduler for Scorch {
    fn name(&self) -> &'static str {
        "scorch"
    }

    fn search_within(
        &self,
        problem: &Problem,
        machine: &Machine,
        limits: &SearchLimits,
    ) -> Result<SearchOutcome, CoreError> {
        let start = Instant::now();
        let stores = Stores::given(problem);
        let chosen = chosen(&Judge::new(problem, &stores, machine.greedy), limits);
        let mut candidates = Vec::new();
        for one in &chosen {
            candidates.extend(candidate(problem, &one.path, &one.pushed.loops, machine)?);
        }
        if candidates.is_empty() {
            let one = unfactorised(&problem.expr);
            let nests = chosen.iter().map(|one| &one.path).chain([&one]);
            let nests = nests.flat_map(|path| sparse_outside(problem, path, machine)).collect();
            candidates = rank(problem, machine, nests)?;
        }
        if candidates.is_empty() {
            return Err(no_schedule(problem));
        }
        Ok(SearchOutcome { candidates, report: report(&chosen, start) })
    }

    fn search_storages(
        &self,
        problem: &Problem,
        storages: &[Storage],
        machine: &Machine,
        limits: &SearchLimits,
    ) -> Result<OrdersFound, CoreError> {
        let start = Instant::now();
        let stores = Stores::any(problem, storages);
        let judge = Judge::new(problem, &stores, machine.greedy);
        let chosen = chosen(&judge, limits);
        let mut candidates = Vec::new();
        for one in &chosen {
            let lead = stores.lead(problem, &one.pushed.order);
            let Some(storage) = lead.and_then(|lead| storages.get(lead.storage?)) else { continue };
            let posed = storage.problem(problem);
            let found = candidate(&posed, &one.path, &one.pushed.loops, machine)?;
            candidates.extend(found.map(|found| ordered(&posed, storage, found, machine)));
        }
        let mut report = report(&chosen, start);
        let mut refused = None;
        for storage in storages.iter().take_while(|_| chosen.is_empty() || candidates.is_empty()) {
            let posed = storage.problem(problem);
            match self.search_within(&posed, machine, limits) {
                Ok(found) => {
                    let one = |candidate| ordered(&posed, storage, candidate, machine);
                    candidates.extend(found.candidates.into_iter().map(one));
                    report.explored += found.report.explored;
                    report.paths = report.paths.max(found.report.paths);
                    break;
                }
                Err(error) => refused = Some(error),
            }
        }
        with_tiles(problem, &mut candidates, machine, limits);
        if candidates.is_empty() {
            return Err(refused.unwrap_or_else(|| CoreError::NoSchedule {
                expr: problem.expr.to_string(),
                why: "no order of the levels was given".into(),
            }));
        }
        report.seconds = start.elapsed().as_secs_f64();
        Ok(OrdersFound { candidates, report })
    }
}

/// The best order of the loops of a path.
struct Chosen {
    path: Path,
    pushed: Pushed,
}

/// Returns the best order of each path that has one, the cheapest first.  The paths share the work that `limits` allow, of
/// which each order of the loops takes as much as a nest.
fn chosen(judge: &Judge, limits: &SearchLimits) -> Vec<Chosen> {
    let graph = mode_orders(judge);
    let natural = graph.sorted(&named(judge.problem));
    let ranked = filters::by_sparsity(judge.problem, &natural);
    let mut starts = vec![ranked.clone(), graph.sorted(&ranked), natural];
    starts.dedup();
    if let Stores::Any { storages, .. } = judge.stores
        && starts.iter().all(|start| judge.stores.lead(judge.problem, start).is_none())
    {
        let suits = |order: &Vec<Index>| judge.stores.lead(judge.problem, order).is_some();
        starts.extend(storages.iter().map(|storage| suited(storage, &ranked)).find(suits));
    }
    let mut chosen: Vec<Chosen> = Vec::new();
    let paths = paths(judge);
    let most = limits.max_work / SearchLimits::NEST_CHOICES / (paths.len() * starts.len()) as u64;
    for path in paths {
        let mut best: Option<Pushed> = None;
        let (mut priced, mut cut) = (0, false);
        for start in &starts {
            let pushed = push(judge, &path, start.clone(), &ranked, most as usize);
            let Some(pushed) = pushed else { continue };
            priced += pushed.priced;
            cut |= pushed.cut;
            if best.as_ref().is_none_or(|best| pushed.price.is_less(&best.price)) {
                best = Some(pushed);
            }
        }
        chosen.extend(best.map(|pushed| Chosen { path, pushed: Pushed { priced, cut, ..pushed } }));
    }
    chosen.sort_by(|a, b| {
        let (a, b) = (&a.pushed.price, &b.pushed.price);
        a.over_bound.cmp(&b.over_bound).then(a.total().total_cmp(&b.total()))
    });
    chosen
}

/// The graph of the mode orders of all tensors with sparse levels, without cycles.
fn mode_orders(judge: &Judge) -> ModeOrders {
    let problem = judge.problem;
    let mut graph = ModeOrders::default();
    for (at, x) in problem.sparse.iter().enumerate() {
        graph.add(x.levels(), judge.transposition(at));
    }
    if problem.output == OutputForm::Assembled {
        graph.add(&problem.expr.output.indices, judge.sorting_of_result());
    }
    graph.break_cycles();
    graph
}

/// Returns `ranked` in an order that keeps that of the levels of `storage`.
fn suited(storage: &Storage, ranked: &[Index]) -> Vec<Index> {
    let mut graph = ModeOrders::default();
    storage.operands.iter().for_each(|(_, order)| graph.add(order.levels(), 1.0));
    graph.break_cycles();
    graph.sorted(ranked)
}

/// All indices: those of the sparse operands by level, then those of the output, then the others.
fn named(problem: &Problem) -> Vec<Index> {
    let mut order: Vec<Index> = Vec::new();
    let levels = problem.sparse.iter().flat_map(|x| x.levels()).copied();
    let levels: Vec<Index> = levels.chain(problem.expr.output.indices.iter().copied()).collect();
    for index in levels.into_iter().chain(problem.expr.all().iter()) {
        if !order.contains(&index) && problem.expr.all().contains(index) {
            order.push(index);
        }
    }
    order
}

/// The paths whose loops are ordered: those along the levels of the first tree, two greedy ones, and that of one term.
fn paths(judge: &Judge) -> Vec<Path> {
    let problem = judge.problem;
    let fits = |result: IndexSet| problem.allows_buffer(result - problem.walked(result));
    // The bits of positive numbers are ordered as the numbers are.
    let count = |loops| judge.joined(loops).to_bits();
    let smallest =
        greedy(&problem.expr, &|result, loops| (!fits(result), count(result), count(loops)));
    let fewest =
        greedy(&problem.expr, &|result, loops| (!fits(result), count(loops), count(result)));
    let along = problem.leader().map(|x| chains(&problem.expr, x.input, x.levels()));
    let one = unfactorised(&problem.expr);
    let mut paths: Vec<Path> = Vec::new();
    for path in along.into_iter().flatten().chain([smallest, fewest, one]) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
    paths
}

/// Completes and judges the nest of `loops`; `None` if it breaks a rule.
fn candidate(
    problem: &Problem,
    path: &Path,
    loops: &[Vec<Index>],
    machine: &Machine,
) -> Result<Option<Candidate>, CoreError> {
    let schedule = finish(problem, path.clone(), Forest::fused(loops), machine);
    match schedule.verify(problem) {
        Ok(()) => {
            let cost = estimate(problem, &schedule, machine);
            Ok(Some(Candidate { schedule, cost }))
        }
        Err(CoreError::Illegal { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

fn report(chosen: &[Chosen], start: Instant) -> SearchReport {
    SearchReport {
        scheduler: Scorch.name(),
        breadth: Breadth::All,
        paths: chosen.len(),
        pruned: 0,
        explored: chosen.iter().map(|one| one.pushed.priced).sum(),
        seconds: start.elapsed().as_secs_f64(),
        stop: match chosen.iter().any(|one| one.pushed.cut) {
            true => StopReason::Work,
            false => StopReason::Enough,
        },
        solved: None,
    }
}
