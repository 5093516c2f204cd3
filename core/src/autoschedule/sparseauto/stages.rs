//! The five stages that leave a few of all nests (SparseAuto, sections 5.2 and 5.3).
//!
//! | stage | leaves |
//! |---|---|
//! | 1 | nests that store results over few indices |
//! | 2 | depths of loops and memory that no other pair beats |
//! | 3 | time and memory, as polynomials, that no other pair beats for all sizes of a domain |
//! | 4 | the fewest iterations of those whose buffers fit half of the last-level cache |
//! | 5 | the fewest strides of innermost loops, then the fewest swapped indices |
//!
//! Stages 1 and 2 count nests by depths.  Stage 3 takes what a dynamic program over sections keeps
//! ([`Method::Searched`]), or all costs ([`Method::Listed`]); both leave the same.

use std::time::Instant;

use crate::autoschedule::finish;
use crate::autoschedule::smt::Smt;
use crate::autoschedule::sparseauto::accesses::{Accesses, accesses};
use crate::autoschedule::sparseauto::asked::{Asked, ask};
use crate::autoschedule::sparseauto::costs::{Costs, Kept, NestCost, frontier};
use crate::autoschedule::sparseauto::count::Nests;
use crate::autoschedule::sparseauto::program::Solver;
use crate::autoschedule::sparseauto::sections::{MOST_OPERANDS, Space};
use crate::autoschedule::sparseauto::terms::Terms;
use crate::autoschedule::work::Work;
use crate::cost::Machine;
use crate::cost::symbolic::{Assumption, Domain, Polynomial, Range, Symbols};
use crate::einsum::IndexSet;
use crate::error::CoreError;
use crate::nest::Forest;
use crate::path::Path;
use crate::schedule::Problem;

/// How stage 3 finds the costs that it compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Method {
    /// Costs that another one of the same depths beats are left out of every section.
    #[default]
    Searched,
    /// All costs of all nests.
    Listed,
}

/// What the stages are asked.
#[derive(Clone, Debug)]
pub struct Stages {
    /// Results are stored over fewer indices than this.
    pub memory_depth: usize,
    /// Ranges of sizes; a size without one is any.
    pub ranges: Vec<Range>,
    /// Relations between sizes.
    pub assumptions: Vec<Assumption>,
    /// How stage 3 finds costs.
    pub method: Method,
    /// A solver that is asked the comparisons of stage 3 too.
    pub smt: Option<Smt>,
    /// The most choices that are priced.
    pub max_work: u64,
}

impl Default for Stages {
    /// Memory depth below 3, any sizes.
    fn default() -> Stages {
        Stages {
            memory_depth: 3,
            ranges: Vec::new(),
            assumptions: Vec::new(),
            method: Method::Searched,
            smt: None,
            max_work: 20_000_000,
        }
    }
}

/// What a stage left.
#[derive(Clone, Debug)]
pub struct StageReport {
    /// Its number; 0 before the first one.
    pub stage: usize,
    /// The nests that are left; saturates.
    pub nests: u128,
    /// The different pairs of time and memory that they have, if they are known.
    pub costs: Option<usize>,
    /// The seconds that it took.
    pub seconds: f64,
}

/// A cost that stage 3 left.
#[derive(Clone, Debug)]
pub struct FrontierPoint {
    /// The most loops around a term.
    pub loop_depth: usize,
    /// The most indices over which a result is stored.
    pub memory_depth: usize,
    /// The iterations of all terms.
    pub time: Polynomial,
    /// The elements of all buffers.
    pub memory: Polynomial,
    /// The nests that have it.
    pub nests: u128,
    /// The iterations for the extents and counts of the problem.
    pub iterations: f64,
    /// The elements of the buffers for its extents.
    pub elements: f64,
    /// One of its nests, the one with the best accesses.
    pub example: (Path, Forest),
    /// The accesses of that.
    pub accesses: Accesses,
    /// The last stage that it passed: 3, 4 or 5.
    pub passed: usize,
}

/// What all stages did.
#[derive(Clone, Debug)]
pub struct Staged {
    /// What each left, all nests first.
    pub stages: Vec<StageReport>,
    /// What stage 3 left, the fewest iterations first.
    pub frontier: Vec<FrontierPoint>,
    /// The chosen one, by position in the frontier: the first that passed stage 5.
    pub chosen: usize,
    /// The names of the variables.
    pub symbols: Symbols,
    /// Pairs of polynomials that could not be compared; both of a pair were kept.
    pub undecided: usize,
    /// What the solver says of the comparisons, if one was asked.
    pub asked: Option<Asked>,
    /// Whether the work ended before all nests were priced.
    pub cut: bool,
}

/// Nests of one cost whose accesses are compared.
const MOST_NESTS: usize = 512;

/// Takes the nests of `problem` through the stages, for the caches of `machine`.
///
/// # Errors
///
/// [`CoreError::NoSchedule`] for more than six operands, for sizes that the problem lacks, and if nothing is left;
/// [`CoreError::Solver`] if the solver fails.
pub fn staged(problem: &Problem, machine: &Machine, asked: &Stages) -> Result<Staged, CoreError> {
    let refused = |why: String| CoreError::NoSchedule { expr: problem.expr.to_string(), why };
    let many =
        || refused(format!("sparseauto tabulates the nests of up to {MOST_OPERANDS} operands"));
    let start = Instant::now();
    let space = Space::new(problem).ok_or_else(many)?;
    let domain = Domain::of(&space.symbols, &asked.ranges, &asked.assumptions).map_err(refused)?;
    let domain = domain.ok_or_else(many)?;
    let generated = Nests::of(&space).total();
    let mut stages = vec![report(0, generated, None, start)];

    let start = Instant::now();
    let few = |stored: IndexSet| stored.len() < asked.memory_depth;
    let depths = stage_1(&space, &domain, &few);
    let left = depths.iter().map(|(_, nests)| nests).fold(0u128, |n, m| n.saturating_add(*m));
    let mut listed = (asked.method == Method::Listed)
        .then(|| solved(&space, &domain, (Kept::All, &few), asked.max_work));
    let costs = listed.as_ref().map(|found| pairs(&found.costs));
    stages.push(report(1, left, costs, start));

    let start = Instant::now();
    let best = stage_2(&depths);
    let left = depths.iter().filter(|(depth, _)| best.contains(depth)).map(|(_, nests)| nests);
    let left = left.fold(0u128, |n, m| n.saturating_add(*m));
    let of_depth = |costs: &[(NestCost, u128)]| -> Vec<(NestCost, u128)> {
        costs.iter().copied().filter(|(c, _)| best.contains(&(c.loops, c.dims))).collect()
    };
    let costs = listed.as_ref().map(|found| pairs(&of_depth(&found.costs)));
    stages.push(report(2, left, costs, start));

    let start = Instant::now();
    let mut found = match listed.take() {
        Some(found) => found,
        None => solved(&space, &domain, (Kept::Undominated, &few), asked.max_work),
    };
    let costs = of_depth(&found.costs);
    let costs = frontier(&mut found.solver.question.terms, &costs);
    let left = costs.iter().fold(0u128, |n, (_, nests)| n.saturating_add(*nests));
    stages.push(report(3, left, Some(pairs(&costs)), start));
    let terms = &found.solver.question.terms;
    let undecided = terms.unknown;
    let answers = asked.smt.as_ref().map(|smt| ask(terms, smt)).transpose()?;

    let mut points = found.points(problem, machine, &costs);
    if points.is_empty() {
        return Err(refused("no nest stores as little as is asked".into()));
    }
    let start = Instant::now();
    stage_4(&mut points, problem, machine);
    stages.push(passed(4, &points, start));
    let start = Instant::now();
    let chosen = stage_5(&mut points);
    stages.push(passed(5, &points, start));
    let cut = found.solver.work.is_spent();
    drop(found);
    let symbols = space.symbols.clone();
    Ok(Staged { stages, frontier: points, chosen, symbols, undecided, asked: answers, cut })
}

fn report(stage: usize, nests: u128, costs: Option<usize>, start: Instant) -> StageReport {
    StageReport { stage, nests, costs, seconds: start.elapsed().as_secs_f64() }
}

fn passed(stage: usize, points: &[FrontierPoint], start: Instant) -> StageReport {
    let left = points.iter().filter(|point| point.passed >= stage);
    let nests = left.clone().fold(0u128, |n, point| n.saturating_add(point.nests));
    report(stage, if stage == 5 { 1 } else { nests }, Some(left.count()), start)
}

/// The different pairs of time and memory.
fn pairs(costs: &[(NestCost, u128)]) -> usize {
    let mut pairs: Vec<(u32, u32)> = costs.iter().map(|(c, _)| (c.time, c.memory)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs.len()
}

/// Depths of loops and memory.
type Depths = (u8, u8);

/// Stage 1: counts the nests that store results as `may_store` says, by the depths of their loops and memory.
fn stage_1(
    space: &Space<'_>,
    domain: &Domain,
    may_store: &dyn Fn(IndexSet) -> bool,
) -> Vec<(Depths, u128)> {
    let question = Costs { terms: Terms::new(domain.clone()), kept: Kept::Depths, may_store };
    let counts = Solver::new(space, question, Work::new(u64::MAX)).solve();
    counts.iter().map(|(cost, nests)| ((cost.loops, cost.dims), *nests)).collect()
}

/// Stage 2: the depths that no other ones beat.
fn stage_2(depths: &[(Depths, u128)]) -> Vec<Depths> {
    let beats = |(l, m): Depths, (k, n): Depths| l <= k && m <= n && (l, m) != (k, n);
    let best =
        depths.iter().filter(|(depth, _)| !depths.iter().any(|(other, _)| beats(*other, *depth)));
    best.map(|(depth, _)| *depth).collect()
}

/// The costs of a space, and the answers that they come of.
struct Found<'s, 'a, 'm> {
    solver: Solver<'s, 'a, Costs<'m>>,
    costs: Vec<(NestCost, u128)>,
}

fn solved<'s, 'a, 'm>(
    space: &'s Space<'a>,
    domain: &Domain,
    (kept, may_store): (Kept, &'m dyn Fn(IndexSet) -> bool),
    max_work: u64,
) -> Found<'s, 'a, 'm> {
    let question = Costs { terms: Terms::new(domain.clone()), kept, may_store };
    let mut solver = Solver::new(space, question, Work::new(max_work));
    let costs = solver.solve().to_vec();
    Found { solver, costs }
}

impl Found<'_, '_, '_> {
    /// Returns the points of `costs` that have a legal nest, the fewest iterations first.
    fn points(
        &mut self,
        problem: &Problem,
        machine: &Machine,
        costs: &[(NestCost, u128)],
    ) -> Vec<FrontierPoint> {
        let free =
            Problem { max_buffer_dims: usize::MAX, max_buffer_bytes: u64::MAX, ..problem.clone() };
        let mut points = Vec::new();
        for (cost, nests) in costs {
            let nests_of = self
                .solver
                .plans(cost, MOST_NESTS)
                .into_iter()
                .map(|plan| self.solver.space.nest(&plan));
            let legal = nests_of.filter(|(path, nest)| {
                finish(&free, path.clone(), nest.clone(), machine).verify(&free).is_ok()
            });
            let judged = legal
                .filter_map(|(path, nest)| Some((accesses(problem, &path, &nest)?, (path, nest))));
            let Some((accesses, example)) = judged.min_by_key(|(accesses, _)| *accesses) else {
                continue;
            };
            let (terms, symbols) = (&self.solver.question.terms, &self.solver.space.symbols);
            let (time, memory) = (terms.get(cost.time).clone(), terms.get(cost.memory).clone());
            points.push(FrontierPoint {
                loop_depth: usize::from(cost.loops),
                memory_depth: usize::from(cost.dims),
                iterations: symbols.value(&time, problem),
                elements: symbols.value(&memory, problem),
                time,
                memory,
                nests: *nests,
                example,
                accesses,
                passed: 3,
            });
        }
        points.sort_by(|a, b| {
            a.iterations.total_cmp(&b.iterations).then(a.elements.total_cmp(&b.elements))
        });
        points
    }
}

/// Buffers may take one part in this many of the last-level cache.
const CACHE_PARTS: u64 = 2;

/// Returns the memory that buffers may take on a machine: half of the last-level cache.
pub fn buffer_bytes(machine: &Machine) -> u64 {
    machine.l3_bytes / CACHE_PARTS
}

/// Iterations that differ by no more than they are rounded are the same.
const SAME: f64 = 1.0 + 1e-9;

/// Stage 4: marks those with the fewest iterations of those whose buffers fit half of the last-level cache; of all, those
/// with the smallest buffers, if none does.
fn stage_4(points: &mut [FrontierPoint], problem: &Problem, machine: &Machine) {
    let room = buffer_bytes(machine) as f64 / problem.value_bytes as f64;
    let least = points.iter().map(|point| point.elements).fold(f64::INFINITY, f64::min);
    let room = room.max(least);
    let fit = |point: &FrontierPoint| point.elements <= room;
    let fewest = points.iter().filter(|point| fit(point)).map(|point| point.iterations);
    let fewest = fewest.fold(f64::INFINITY, f64::min) * SAME;
    let left = points.iter_mut().filter(|point| fit(point) && point.iterations <= fewest);
    left.for_each(|point| point.passed = 4);
}

/// Stage 5: marks the one with the best accesses of those that are left, and returns its position.
fn stage_5(points: &mut [FrontierPoint]) -> usize {
    let left = points.iter().enumerate().filter(|(_, point)| point.passed == 4);
    let best = left.min_by_key(|(_, point)| point.accesses).map_or(0, |(at, _)| at);
    points[best].passed = 5;
    best
}
