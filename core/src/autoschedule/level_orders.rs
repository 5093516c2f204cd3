//! Searches that choose the order of the sparse operands' levels too.
//!
//! The order of the levels decides which loops can be fused, which rows are gathered and who owns
//! the rows of the output.  If the caller can store the operands in other orders, every storage is a
//! problem of its own; their schedules are ranked together by predicted seconds on all threads,
//! since an order whose root the output lacks needs private copies of it.
//!
//! Of several operands each may be the one that is cut into tasks.

use std::time::Instant;

use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};

use crate::autoschedule::tiling::{Tiled, tiled};
use crate::autoschedule::{Candidate, Scheduler, SearchLimits, SearchOutcome, SearchReport};
use crate::cost::{Machine, on_threads, storing_seconds};
use crate::einsum::{Extents, Index, IndexSet};
use crate::error::CoreError;
use crate::schedule::{Format, OutputForm, Pattern, Problem, SparseOperand, Split, has_pattern_of};

/// How all sparse operands of a problem are stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Storage {
    /// Each sparse input with its order; the first is cut into tasks.
    pub operands: Vec<(usize, Format)>,
}

impl Storage {
    /// Stores input `input`, the only sparse one, in `order`.
    pub fn of(input: usize, order: Format) -> Storage {
        Storage { operands: vec![(input, order)] }
    }

    /// Returns `problem` with its sparse operands stored so.
    ///
    /// Its bounds and options stay; an output that has all indices of the first operand has its pattern.
    pub fn problem(&self, problem: &Problem) -> Problem {
        let stored = self.operands.iter().filter_map(|(input, format)| {
            let operand = problem.sparse.iter().find(|x| x.input == *input)?.clone();
            Some(SparseOperand { format: format.clone(), ..operand })
        });
        // Where the operand could have given its pattern, the list was asked for.
        let inputs: Vec<usize> = problem.sparse.iter().map(|x| x.input).collect();
        let asked = inputs.first().is_some_and(|&x| has_pattern_of(&problem.expr, x, &inputs));
        let (expr, extents) = (problem.expr.clone(), problem.extents.clone());
        let posed = Problem::joining(expr, extents, stored.collect());
        let assembled =
            problem.output == OutputForm::Assembled && (asked || !posed.has_pattern_output());
        let output = if assembled { OutputForm::Assembled } else { posed.output };
        Problem { sparse: posed.sparse, output, ..problem.clone() }
    }

    /// Returns `problem` with indices cut as `splits` say and its sparse operands stored so; levels may have the pieces of
    /// positions among them or not.
    ///
    /// # Errors
    ///
    /// [`CoreError::Split`] if an index cannot be cut.
    pub fn problem_with(&self, problem: &Problem, splits: &[Split]) -> Result<Problem, CoreError> {
        let (pieces, parts): (Vec<Split>, Vec<Split>) =
            splits.iter().partition(|split| split.cuts_positions());
        let numbers = |index: &Index| pieces.iter().any(|split| split.outer == *index);
        let mut stored = self.clone();
        for (_, format) in &mut stored.operands {
            *format = format.only(|index| !numbers(&index));
        }
        stored.problem(&problem.split(&parts)?).split(&pieces)
    }
}

/// The most storages of several sparse operands that are searched.
const MOST_STORAGES: usize = 96;

/// The most operands of all orders of a tree's levels together for which all these orders are searched.
const MOST_TERMS: usize = 1_920;

/// Returns the ways to store the sparse operands of `problem` that are worth a search.
///
/// Those of a single operand are its [`storage_orders`], or if all orders of five levels with more than sixteen operands
/// would be searched those that there are of more levels.  Of several operands each may come first whose pattern the
/// output can have, or each if there is none such.  With an order of its levels go all orders of the others while
/// no more than 96 storages come of it, and else those in which the others have their levels in the order of
/// the loops that are there already.
pub fn storages(problem: &Problem) -> Vec<Storage> {
    let orders = |x: &SparseOperand| level_orders(x.levels(), &problem.extents, &x.pattern);
    if let [x] = problem.sparse.as_slice() {
        let all = (1..=x.levels().len()).fold(1, usize::saturating_mul);
        let orders = match all.saturating_mul(problem.expr.inputs.len()) <= MOST_TERMS {
            true => orders(x),
            false => few_orders(x.levels(), &problem.extents, &x.pattern),
        };
        return fused(orders).map(|order| Storage::of(x.input, order)).collect();
    }
    let inputs: Vec<usize> = problem.sparse.iter().map(|x| x.input).collect();
    let keeps = |x: &&SparseOperand| has_pattern_of(&problem.expr, x.input, &inputs);
    let any = problem.sparse.iter().any(|x| keeps(&x));
    let leaders: Vec<&SparseOperand> = problem.sparse.iter().filter(|x| !any || keeps(x)).collect();
    let all: usize = problem.sparse.iter().map(|x| orders(x).len()).fold(1, usize::saturating_mul);
    let each = all.saturating_mul(leaders.len()) <= MOST_STORAGES;
    let mut found = Vec::new();
    for leader in leaders {
        let others = problem.sparse.iter().filter(|x| x.input != leader.input);
        let operands: Vec<&SparseOperand> = std::iter::once(leader).chain(others).collect();
        let mut partial: Vec<Vec<(usize, Format)>> = vec![Vec::new()];
        for (at, x) in operands.into_iter().enumerate() {
            let choices = if at == 0 || each { orders(x) } else { Vec::new() };
            let longer = |before: Vec<(usize, Format)>| {
                let follow = choices.is_empty().then(|| following(x, &before));
                let choices: Vec<Vec<Index>> = choices.iter().cloned().chain(follow).collect();
                choices.into_iter().map(move |levels| {
                    let order = Format::csf(levels);
                    before.iter().cloned().chain([(x.input, order)]).collect::<Vec<_>>()
                })
            };
            partial = partial.into_iter().flat_map(longer).collect();
        }
        found.extend(partial.into_iter().map(|operands| Storage { operands }));
    }
    found.truncate(MOST_STORAGES);
    found
}

/// Returns the levels of `x` in the order in which those of the operands `before` come, and then its own.
fn following(x: &SparseOperand, before: &[(usize, Format)]) -> Vec<Index> {
    let mut levels: Vec<Index> = Vec::new();
    let looped = before.iter().flat_map(|(_, order)| order.levels()).chain(x.levels());
    for &level in looped.filter(|level| x.levels().contains(level)) {
        if !levels.contains(&level) {
            levels.push(level);
        }
    }
    levels
}

/// A schedule with the storage that it is for.
#[derive(Clone, Debug)]
pub struct OrderedCandidate {
    /// How the sparse operands are stored; both parts of an index that is cut are levels.
    pub storage: Storage,
    /// The schedule, with its predicted cost on one core.
    pub candidate: Candidate,
    /// Predicted seconds on the threads of the machine.
    pub seconds: f64,
    /// Predicted seconds to build the trees, where they count ([`Problem::storing`]); zero otherwise.
    pub storing: f64,
    /// Bytes of private copies of the output.
    pub side_bytes: u64,
}

impl OrderedCandidate {
    /// Returns the seconds by which candidates are ranked: those of the kernel, and to build trees where these count.
    pub fn total(&self) -> f64 {
        self.seconds + self.storing
    }

    /// Returns `base`, of which the search was asked, with its operands stored and its indices cut as the candidate says.
    ///
    /// # Panics
    ///
    /// If `base` is another problem.
    pub fn problem(&self, base: &Problem) -> Problem {
        let cut = self.storage.problem_with(base, &self.candidate.schedule.splits);
        cut.expect("the splits of a candidate were judged")
    }
}

/// What a search over orders found.
#[derive(Clone, Debug)]
pub struct OrdersFound {
    /// Legal schedules of all orders, best first; never empty.
    pub candidates: Vec<OrderedCandidate>,
    /// What the searches saw together.
    pub report: SearchReport,
}

/// Up to this many levels, every order is searched.
const ALL_ORDERS: usize = 5;

/// Returns the orders of `indices` worth a search.
///
/// All orders of up to five levels.  Above, that of `indices`, along which a chain of operands is open at one end, and for
/// each root two: the others by increasing extent, and by adding at each level the index with the fewest nodes, which makes
/// the smallest tree that a greedy choice finds.  At order 6 that is 13 orders of 720.
pub fn level_orders(indices: &[Index], extents: &Extents, pattern: &Pattern) -> Vec<Vec<Index>> {
    if indices.len() > ALL_ORDERS {
        return few_orders(indices, extents, pattern);
    }
    let mut orders = Vec::new();
    permutations(indices, &mut Vec::new(), &mut orders);
    orders
}

/// Returns those of [`level_orders`] of more than five levels.
fn few_orders(indices: &[Index], extents: &Extents, pattern: &Pattern) -> Vec<Vec<Index>> {
    let mut orders = vec![indices.to_vec()];
    for &root in indices {
        let mut by_extent: Vec<Index> = indices.iter().copied().filter(|&i| i != root).collect();
        by_extent.sort_by_key(|&index| extents.of(index));
        by_extent.insert(0, root);
        let by_nodes = fewest_nodes(root, indices, extents, pattern);
        for order in [by_nodes, by_extent] {
            if !orders.contains(&order) {
                orders.push(order);
            }
        }
    }
    orders
}

/// Returns the ways to store a sparse operand over `indices` that are worth a search: each of
/// [`level_orders`] as plain CSF and, above two levels, with its last two levels fused, which spares
/// short fibres their loops.
pub fn storage_orders(indices: &[Index], extents: &Extents, pattern: &Pattern) -> Vec<Format> {
    fused(level_orders(indices, extents, pattern)).collect()
}

/// Returns each order as plain CSF and, above two levels, with its last two levels fused.
fn fused(orders: Vec<Vec<Index>>) -> impl Iterator<Item = Format> {
    let stored = |levels: Vec<Index>| {
        let fusings = if levels.len() > 2 { 1..=2 } else { 1..=1 };
        fusings.map(move |fused| Format::with_fused(levels.clone(), fused))
    };
    orders.into_iter().flat_map(stored)
}

/// Searches `problem` with its sparse operands stored in each way of `storages`, which share the work that `limits`
/// allow.
///
/// # Errors
///
/// [`CoreError::NoSchedule`] if there is no schedule on any order.
pub(super) fn search_each<S: Scheduler + ?Sized>(
    scheduler: &S,
    problem: &Problem,
    storages: &[Storage],
    machine: &Machine,
    limits: &SearchLimits,
) -> Result<OrdersFound, CoreError> {
    let start = Instant::now();
    let mut candidates = Vec::new();
    let mut report: Option<SearchReport> = None;
    let mut refused = None;
    let shared = limits.shared(storages.len());
    // The results keep the order of `storages`.
    let searched: Vec<_> = storages
        .par_iter()
        .map(|storage| {
            let problem = storage.problem(problem);
            let found = scheduler.search_within(&problem, machine, &shared)?;
            let OrdersFound { candidates, report } = on_storage(&problem, storage, found, machine);
            Ok((candidates, report))
        })
        .collect();
    for result in searched {
        match result {
            Ok((found, seen)) => {
                candidates.extend(found);
                report = Some(together(report, seen));
            }
            Err(error @ CoreError::NoSchedule { .. }) => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    candidates.sort_by(|a, b| a.total().total_cmp(&b.total()));
    with_tiles(problem, &mut candidates, machine, limits);
    match (report, refused) {
        (Some(report), _) => {
            let seconds = start.elapsed().as_secs_f64();
            Ok(OrdersFound { candidates, report: SearchReport { seconds, ..report } })
        }
        (None, Some(error)) => Err(error),
        (None, None) => Err(CoreError::NoSchedule {
            expr: problem.expr.to_string(),
            why: "no order of the levels was given".into(),
        }),
    }
}

/// Puts the first of `candidates` with its dense loops in tiles before it, if tiles are allowed and worth it.
pub(super) fn with_tiles(
    problem: &Problem,
    candidates: &mut Vec<OrderedCandidate>,
    machine: &Machine,
    limits: &SearchLimits,
) {
    let Some(best) = candidates.first().filter(|_| limits.tiles) else { return };
    let Some(Tiled { problem, candidate }) =
        tiled(&best.problem(problem), &best.candidate, machine)
    else {
        return;
    };
    let one = ordered(&problem, &best.storage, candidate, machine);
    if one.total() < best.total() {
        candidates.insert(0, one);
    }
}

/// Prices what was found on one storage on all threads.
pub(super) fn on_storage(
    problem: &Problem,
    storage: &Storage,
    found: SearchOutcome,
    machine: &Machine,
) -> OrdersFound {
    let one = |candidate| ordered(problem, storage, candidate, machine);
    let candidates = found.candidates.into_iter().map(one).collect();
    OrdersFound { candidates, report: found.report }
}

pub(super) fn ordered(
    problem: &Problem,
    storage: &Storage,
    candidate: Candidate,
    machine: &Machine,
) -> OrderedCandidate {
    let (schedule, cost) = (&candidate.schedule, &candidate.cost);
    let threaded = on_threads(problem, schedule, cost, machine, machine.threads);
    let (seconds, side_bytes) = (threaded.seconds, threaded.side_bytes);
    let (storage, storing) = (storage.clone(), storing_seconds(problem, machine));
    OrderedCandidate { storage, candidate, seconds, storing, side_bytes }
}

/// Adds up the reports of two searches.
fn together(before: Option<SearchReport>, now: SearchReport) -> SearchReport {
    let Some(before) = before else { return now };
    SearchReport {
        breadth: before.breadth.max(now.breadth),
        paths: before.paths.saturating_add(now.paths),
        pruned: before.pruned.saturating_add(now.pruned),
        explored: before.explored + now.explored,
        stop: before.stop.max(now.stop),
        solved: None,
        ..now
    }
}

fn permutations(indices: &[Index], order: &mut Vec<Index>, orders: &mut Vec<Vec<Index>>) {
    if order.len() == indices.len() {
        orders.push(order.clone());
        return;
    }
    for &index in indices {
        if !order.contains(&index) {
            order.push(index);
            permutations(indices, order, orders);
            order.pop();
        }
    }
}

/// The order from `root` that adds at each level the index with the fewest nodes.
fn fewest_nodes(
    root: Index,
    indices: &[Index],
    extents: &Extents,
    pattern: &Pattern,
) -> Vec<Index> {
    let mut order = vec![root];
    loop {
        let prefix: IndexSet = order.iter().copied().collect();
        let rest = indices.iter().copied().filter(|index| !order.contains(index));
        match rest.min_by_key(|&index| pattern.count(prefix.with(index), extents)) {
            Some(next) => order.push(next),
            None => return order,
        }
    }
}
