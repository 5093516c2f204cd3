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
//! ([`Method::Searched`]), or all costs ([`Method::Listed`]); both leave the same.  The stages take the nests on all
//! trees together.
//!
//! The *frontier* is found on the way: the costs that stage 1 leaves and that no other one beats, whatever their depths.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::autoschedule::smt::Smt;
use crate::autoschedule::sparseauto::asked::{Asked, ask};
use crate::autoschedule::sparseauto::costs::{Costs, Kept, NestCost};
use crate::autoschedule::sparseauto::count::Nests;
use crate::autoschedule::sparseauto::program::Solver;
use crate::autoschedule::sparseauto::rows::{
    AskedNest, FRONTIER, Found, FrontierPoint, Rows, sort,
};
use crate::autoschedule::sparseauto::sections::{MOST_OPERANDS, Space};
use crate::autoschedule::sparseauto::terms::Terms;
use crate::autoschedule::work::Work;
use crate::cost::Machine;
use crate::cost::symbolic::{Assumption, Domain, Range, Symbols};
use crate::einsum::IndexSet;
use crate::error::CoreError;
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
    /// The most choices that are priced, and the most products that comparisons evaluate.
    pub max_work: u64,
    /// A nest whose cost is listed beside the frontier.
    pub nest: Option<AskedNest>,
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
            nest: None,
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

/// Nests of the same depths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthReport {
    /// The most loops around a term.
    pub loops: usize,
    /// The most indices over which a result is stored.
    pub dims: usize,
    /// How many nests have them; saturates.
    pub nests: u128,
    /// The last stage that leaves them: 1 or 2.
    pub passed: usize,
}

/// What all stages did.
#[derive(Clone, Debug)]
pub struct Staged {
    /// What each left, all nests first.
    pub stages: Vec<StageReport>,
    /// The depths of what stage 1 left, in ascending order.
    pub depths: Vec<DepthReport>,
    /// The frontier of all depths, what stage 3 left, and the nest that was asked for, the fewest iterations first.
    pub frontier: Vec<FrontierPoint>,
    /// The chosen one, by position in the frontier: the first that passed stage 5.
    pub chosen: usize,
    /// The names of the variables on each tree.
    pub symbols: Vec<Symbols>,
    /// Pairs of polynomials that could not be compared; both of a pair were kept.
    pub undecided: usize,
    /// What the solver says of the comparisons, if one was asked.
    pub asked: Option<Asked>,
    /// Whether the work ended before all nests were priced.
    pub cut: bool,
}

impl Staged {
    /// Writes the time of a point.
    pub fn time(&self, point: &FrontierPoint) -> String {
        self.symbols.get(point.tree).map_or(String::new(), |symbols| symbols.text(&point.time))
    }

    /// Writes the memory of a point.
    pub fn memory(&self, point: &FrontierPoint) -> String {
        self.symbols.get(point.tree).map_or(String::new(), |symbols| symbols.text(&point.memory))
    }
}

/// Takes the nests of a problem through the stages, for the caches of `machine`; `trees` are the problem on each tree.
///
/// # Errors
///
/// [`CoreError::NoSchedule`] for more than six operands, for sizes that the problem lacks, and if nothing is left;
/// [`CoreError::Solver`] if the solver fails.
pub fn staged(trees: &[Problem], machine: &Machine, asked: &Stages) -> Result<Staged, CoreError> {
    let expr = trees.first().map_or(String::new(), |problem| problem.expr.to_string());
    let refused = |why: String| CoreError::NoSchedule { expr: expr.clone(), why };
    let many = || {
        refused(format!(
            "sparseauto tabulates the nests of up to {MOST_OPERANDS} operands; \
             `spttn`, `scorch` and `const` schedule more"
        ))
    };
    let start = Instant::now();
    let spaces: Vec<Space<'_>> =
        trees.iter().map(Space::new).collect::<Option<Vec<_>>>().ok_or_else(many)?;
    let domain = |space: &Space<'_>| Domain::of(&space.symbols, &asked.ranges, &asked.assumptions);
    let domains: Vec<Option<Domain>> =
        spaces.iter().map(domain).collect::<Result<_, _>>().map_err(refused)?;
    let domains: Vec<Domain> = domains.into_iter().collect::<Option<_>>().ok_or_else(many)?;
    let first = domains.first().ok_or_else(|| refused("there is no tree".into()))?;
    let generated = spaces.iter().map(|space| Nests::of(space).total());
    let mut stages = vec![report(0, generated.fold(0, u128::saturating_add), None, start)];

    let few = |stored: IndexSet| stored.len() < asked.memory_depth;
    let max_work = (asked.max_work / trees.len() as u64).max(1);
    let search = |kept: Kept| -> Vec<Found<'_, '_, '_>> {
        let pairs = spaces.iter().zip(&domains);
        pairs.map(|(space, domain)| solved(space, domain, (kept, &few), max_work)).collect()
    };
    let start = Instant::now();
    let depths = stage_1(&spaces, &domains, &few);
    let left = depths.iter().map(|(_, nests)| nests).fold(0u128, |n, m| n.saturating_add(*m));
    let listed = (asked.method == Method::Listed).then(|| search(Kept::All));
    let costs = |is_left: &dyn Fn(&NestCost) -> bool| {
        listed.as_ref().map(|found| found.iter().map(|one| pairs(&one.costs, is_left)).sum())
    };
    stages.push(report(1, left, costs(&|_| true), start));

    let start = Instant::now();
    let best = stage_2(&depths);
    let left = depths.iter().filter(|(depth, _)| best.contains(depth)).map(|(_, nests)| nests);
    let left = left.fold(0u128, |n, m| n.saturating_add(*m));
    let is_best = |cost: &NestCost| best.contains(&(cost.loops, cost.dims));
    stages.push(report(2, left, costs(&is_best), start));

    let start = Instant::now();
    let mut found = listed.unwrap_or_else(|| search(Kept::Undominated));
    let mut rows = Rows::of(&mut found, first, max_work, &is_best);
    let (costs, left) = rows.left();
    stages.push(report(3, left, Some(costs), start));
    let answers = asked.smt.as_ref().map(|smt| ask_all(&found, smt)).transpose()?;

    let mut points = rows.points(&mut found, machine);
    if points.is_empty() {
        return Err(refused(format!(
            "no nest stores its results over fewer than {} indices; raise --max-buffer-dims",
            asked.memory_depth
        )));
    }
    let own = asked.nest.as_ref().and_then(|nest| rows.asked(nest, &mut found));
    points.extend(own);
    sort(&mut points);
    let start = Instant::now();
    stage_4(&mut points, &trees[0], machine);
    stages.push(passed(4, &points, start));
    let start = Instant::now();
    let chosen = stage_5(&mut points);
    stages.push(passed(5, &points, start));
    let (open, ended) = rows.open();
    let terms = || found.iter().map(|found| &found.solver.question.terms);
    let undecided = open + terms().map(|terms| terms.unknown).sum::<usize>();
    let cut = ended
        || terms().any(|terms| terms.work.cut)
        || found.iter().any(|found| found.solver.work.is_spent());
    drop(found);
    Ok(Staged {
        stages,
        depths: depth_reports(&depths, &best),
        frontier: points,
        chosen,
        symbols: spaces.iter().map(|space| space.symbols.clone()).collect(),
        undecided,
        asked: answers,
        cut,
    })
}

fn report(stage: usize, nests: u128, costs: Option<usize>, start: Instant) -> StageReport {
    StageReport { stage, nests, costs, seconds: start.elapsed().as_secs_f64() }
}

fn passed(stage: usize, points: &[FrontierPoint], start: Instant) -> StageReport {
    let left = points.iter().filter(|point| point.passed >= stage);
    let nests = left.clone().fold(0u128, |n, point| n.saturating_add(point.nests));
    report(stage, if stage == 5 { 1 } else { nests }, Some(left.count()), start)
}

/// The different pairs of time and memory of those that are left.
fn pairs(costs: &[(NestCost, u128)], is_left: &dyn Fn(&NestCost) -> bool) -> usize {
    let left = costs.iter().filter(|(cost, _)| is_left(cost));
    let mut pairs: Vec<(u32, u32)> = left.map(|(c, _)| (c.time, c.memory)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs.len()
}

/// Depths of loops and memory.
type Depths = (u8, u8);

/// Stage 1: counts the nests that store results as `may_store` says, by the depths of their loops and memory.
fn stage_1(
    spaces: &[Space<'_>],
    domains: &[Domain],
    may_store: &dyn Fn(IndexSet) -> bool,
) -> Vec<(Depths, u128)> {
    let mut all: BTreeMap<Depths, u128> = BTreeMap::new();
    for (space, domain) in spaces.iter().zip(domains) {
        let terms = Terms::new(domain.clone(), u64::MAX);
        let question = Costs { terms, kept: Kept::Depths, may_store };
        let counts = Solver::new(space, question, Work::new(u64::MAX)).solve();
        for (cost, nests) in counts.iter() {
            let all = all.entry((cost.loops, cost.dims)).or_default();
            *all = all.saturating_add(*nests);
        }
    }
    all.into_iter().collect()
}

fn depth_reports(depths: &[(Depths, u128)], best: &[Depths]) -> Vec<DepthReport> {
    let one = |&((loops, dims), nests): &(Depths, u128)| DepthReport {
        loops: usize::from(loops),
        dims: usize::from(dims),
        nests,
        passed: if best.contains(&(loops, dims)) { 2 } else { 1 },
    };
    depths.iter().map(one).collect()
}

/// Stage 2: the depths that no other ones beat.
fn stage_2(depths: &[(Depths, u128)]) -> Vec<Depths> {
    let beats = |(l, m): Depths, (k, n): Depths| l <= k && m <= n && (l, m) != (k, n);
    let best =
        depths.iter().filter(|(depth, _)| !depths.iter().any(|(other, _)| beats(*other, *depth)));
    best.map(|(depth, _)| *depth).collect()
}

fn solved<'s, 'a, 'm>(
    space: &'s Space<'a>,
    domain: &Domain,
    (kept, may_store): (Kept, &'m dyn Fn(IndexSet) -> bool),
    max_work: u64,
) -> Found<'s, 'a, 'm> {
    let question = Costs { terms: Terms::new(domain.clone(), max_work), kept, may_store };
    let mut solver = Solver::new(space, question, Work::new(max_work));
    let costs = solver.solve().to_vec();
    Found { solver, costs }
}

/// Puts the comparisons on all trees to a solver.
fn ask_all(found: &[Found<'_, '_, '_>], smt: &Smt) -> Result<Asked, CoreError> {
    let mut all: Option<Asked> = None;
    for found in found {
        let one = ask(&found.solver.question.terms, smt)?;
        all = Some(match all {
            None => one,
            Some(before) => before.and(&one),
        });
    }
    all.ok_or_else(|| CoreError::Internal("no tree".into()))
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
    let left = points.iter().filter(|point| point.passed == FRONTIER);
    let least = left.map(|point| point.elements).fold(f64::INFINITY, f64::min);
    let room = room.max(least);
    let fit = |point: &FrontierPoint| point.passed == FRONTIER && point.elements <= room;
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
