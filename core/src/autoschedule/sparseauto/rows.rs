//! The rows of the frontier: costs on all trees, each with one of its nests.

use crate::autoschedule::finish;
use crate::autoschedule::sparseauto::accesses::{Accesses, accesses};
use crate::autoschedule::sparseauto::costs::{Costs, NestCost, beats, frontier, unbeaten};
use crate::autoschedule::sparseauto::program::Solver;
use crate::autoschedule::sparseauto::terms::Terms;
use crate::cost::Machine;
use crate::cost::symbolic::{Domain, Monomial, Polynomial, Symbols, Trees};
use crate::nest::{Forest, buffers};
use crate::path::Path;
use crate::schedule::Problem;

/// A cost on a tree, with one of its nests.
#[derive(Clone, Debug)]
pub struct FrontierPoint {
    /// The tree, by position of its problem.
    pub tree: usize,
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
    /// One of its nests: that which was asked for, or the one with the best accesses.
    pub example: (Path, Forest),
    /// The accesses of that.
    pub accesses: Accesses,
    /// The last stage that left it.
    pub passed: usize,
    /// Whether another one beats it.
    pub standing: Standing,
    /// Who listed it.
    pub origin: Origin,
}

/// Whether a cost is on the frontier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No other one is known to take at most its time and at most its memory for all sizes.
    Frontier,
    /// Another one does.
    Beaten,
}

/// Why a row is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The stages left it, or it is on the frontier.
    Searched,
    /// The caller asked what its nest costs.
    Asked,
}

/// A nest whose cost is listed too.
#[derive(Clone, Debug)]
pub struct AskedNest {
    /// The tree, by position of its problem.
    pub tree: usize,
    /// Its terms.
    pub path: Path,
    /// Its loops.
    pub nest: Forest,
}

/// The stage that leaves the depths of all costs.
const MEMORY: usize = 1;

/// The stage that leaves the frontier of the least depths.
pub(super) const FRONTIER: usize = 3;

/// The costs of a tree, and the answers that they come of.
pub(super) struct Found<'s, 'a, 'm> {
    pub(super) solver: Solver<'s, 'a, Costs<'m>>,
    pub(super) costs: Vec<(NestCost, u128)>,
}

/// A cost on a tree.
#[derive(Clone, Debug)]
struct Row {
    tree: usize,
    cost: NestCost,
    nests: u128,
    passed: usize,
    standing: Standing,
}

/// The costs of all trees that are compared.
pub(super) struct Rows {
    rows: Vec<Row>,
    /// The polynomials of all trees in one domain, where it has room for them.
    joined: Option<(Trees, Terms)>,
}

/// Nests of one cost whose accesses are compared.
const MOST_NESTS: usize = 512;

impl Rows {
    /// Compares the costs of all trees, and those of the depths that `is_left` says; keeps what no other one beats.
    pub(super) fn of(
        found: &mut [Found<'_, '_, '_>],
        domain: &Domain,
        max_work: u64,
        is_left: &dyn Fn(&NestCost) -> bool,
    ) -> Rows {
        let mut rows: Vec<Row> = Vec::new();
        for (tree, found) in found.iter_mut().enumerate() {
            let terms = &mut found.solver.question.terms;
            let left: Vec<(NestCost, u128)> =
                found.costs.iter().copied().filter(|(cost, _)| is_left(cost)).collect();
            let left = frontier(terms, &left);
            let all = frontier(terms, &found.costs);
            let beaten = left.iter().filter(|one| !all.contains(one));
            for &(cost, nests) in all.iter().chain(beaten) {
                let passed =
                    if left.iter().any(|(one, _)| *one == cost) { FRONTIER } else { MEMORY };
                let standing = match all.iter().any(|(one, _)| *one == cost) {
                    true => Standing::Frontier,
                    false => Standing::Beaten,
                };
                rows.push(Row { tree, cost, nests, passed, standing });
            }
        }
        let symbols: Vec<Symbols> =
            found.iter().map(|found| found.solver.space.symbols.clone()).collect();
        let several = symbols.len() > 1;
        let joined = several.then(|| Trees::of(&symbols, domain.clone())).flatten();
        let joined = joined.map(|trees| {
            let terms = Terms::new(trees.domain.clone(), max_work);
            (trees, terms)
        });
        let mut rows = Rows { rows, joined };
        rows.compare_trees(found);
        rows
    }

    /// Marks rows that one of another tree beats, and drops those that are beaten and that no stage left.
    fn compare_trees(&mut self, found: &[Found<'_, '_, '_>]) {
        let Some((trees, terms)) = &mut self.joined else { return };
        let costs: Vec<NestCost> = self
            .rows
            .iter()
            .map(|row| joint(trees, terms, row, &found[row.tree].solver.question.terms))
            .collect();
        let mut kept = |is_in: &dyn Fn(&Row) -> bool| -> Vec<usize> {
            let places: Vec<usize> = (0..costs.len()).filter(|&at| is_in(&self.rows[at])).collect();
            let some: Vec<NestCost> = places.iter().map(|&at| costs[at]).collect();
            unbeaten(terms, &some).into_iter().map(|at| places[at]).collect()
        };
        let whole = kept(&|row| row.standing == Standing::Frontier);
        let left = kept(&|row| row.passed == FRONTIER);
        for (at, row) in self.rows.iter_mut().enumerate() {
            if !whole.contains(&at) {
                row.standing = Standing::Beaten;
            }
            if !left.contains(&at) {
                row.passed = MEMORY;
            }
        }
        self.rows.retain(|row| row.standing == Standing::Frontier || row.passed == FRONTIER);
    }

    /// Returns the costs that stage 3 leaves: how many pairs of time and memory, and the nests that have them.
    pub(super) fn left(&self) -> (usize, u128) {
        let left = self.rows.iter().filter(|row| row.passed == FRONTIER);
        let mut pairs: Vec<(usize, u32, u32)> =
            left.clone().map(|row| (row.tree, row.cost.time, row.cost.memory)).collect();
        pairs.sort_unstable();
        pairs.dedup();
        (pairs.len(), left.fold(0u128, |n, row| n.saturating_add(row.nests)))
    }

    /// Returns the pairs of different trees that could not be compared, and whether the work ended.
    pub(super) fn open(&self) -> (usize, bool) {
        self.joined.as_ref().map_or((0, false), |(_, terms)| (terms.unknown, terms.work.cut))
    }

    /// Returns the points of the rows that have a legal nest, the fewest iterations first.
    pub(super) fn points(
        &self,
        found: &mut [Found<'_, '_, '_>],
        machine: &Machine,
    ) -> Vec<FrontierPoint> {
        let points = self.rows.iter().filter_map(|row| {
            let found = &mut found[row.tree];
            let example = found.example(&row.cost, machine)?;
            let terms = &found.solver.question.terms;
            let costs = (terms.get(row.cost.time).clone(), terms.get(row.cost.memory).clone());
            let depths = (usize::from(row.cost.loops), usize::from(row.cost.dims));
            let point = found.point(depths, costs, example);
            let (tree, nests) = (row.tree, row.nests);
            let (passed, standing) = (row.passed, row.standing);
            Some(FrontierPoint { tree, nests, passed, standing, ..point })
        });
        let mut points: Vec<FrontierPoint> = points.collect();
        sort(&mut points);
        points
    }

    /// Returns the point of a nest, and whether one of the rows beats it; `None` if it is no nest of its tree.
    pub(super) fn asked(
        &mut self,
        asked: &AskedNest,
        found: &mut [Found<'_, '_, '_>],
    ) -> Option<FrontierPoint> {
        let own = found.get_mut(asked.tree)?;
        let (problem, symbols) = (own.solver.space.problem, &own.solver.space.symbols);
        let (path, nest) = (&asked.path, &asked.nest);
        let orders = nest.orders(path.terms.len())?;
        let stored = buffers(path, nest)?;
        let sum = |products: Vec<Monomial>| {
            let products = products.into_iter().map(Polynomial::from);
            products.fold(Polynomial::default(), |sum, product| sum.plus(&product))
        };
        let time = sum(orders.iter().map(|order| symbols.iterations(order)).collect());
        let store = |stored| Monomial { extents: stored, walked: 0 };
        let memory = sum(stored.iter().map(|buffer| store(buffer.stored)).collect());
        let loops = orders.iter().map(Vec::len).max().unwrap_or(0);
        let dims = stored.iter().map(|buffer| buffer.stored.iter().count()).max().unwrap_or(0);
        let example = ((path.clone(), nest.clone()), accesses(problem, path, nest)?);
        let terms = &mut own.solver.question.terms;
        let cost = NestCost {
            loops: loops as u8,
            dims: dims as u8,
            time: terms.number(time.clone()),
            memory: terms.number(memory.clone()),
        };
        let standing = self.standing(asked.tree, cost, found);
        let point = found[asked.tree].point((loops, dims), (time, memory), example);
        Some(FrontierPoint { tree: asked.tree, origin: Origin::Asked, standing, ..point })
    }

    fn standing(
        &mut self,
        tree: usize,
        cost: NestCost,
        found: &mut [Found<'_, '_, '_>],
    ) -> Standing {
        let same = |a: &NestCost, b: &NestCost| (a.time, a.memory) == (b.time, b.memory);
        let own = &mut found[tree].solver.question.terms;
        let inside = self.rows.iter().filter(|row| row.tree == tree);
        let mut inside = inside;
        let mut beaten = inside.any(|row| !same(&row.cost, &cost) && beats(own, &row.cost, &cost));
        if let Some((trees, terms)) = &mut self.joined {
            let row =
                |tree, cost| Row { tree, cost, nests: 1, passed: 0, standing: Standing::Frontier };
            let of = |tree: usize| &found[tree].solver.question.terms;
            let cost = joint(trees, terms, &row(tree, cost), of(tree));
            for one in &self.rows {
                let other = joint(trees, terms, one, of(one.tree));
                beaten |= !same(&other, &cost) && beats(terms, &other, &cost);
            }
        }
        if beaten { Standing::Beaten } else { Standing::Frontier }
    }
}

/// The cost of a row by numbers of the joined domain.
fn joint(trees: &Trees, terms: &mut Terms, row: &Row, own: &Terms) -> NestCost {
    let mut number = |cost: u32| terms.number(trees.translated(row.tree, own.get(cost)));
    NestCost { time: number(row.cost.time), memory: number(row.cost.memory), ..row.cost }
}

impl Found<'_, '_, '_> {
    /// Returns a legal nest of a cost, the one with the best accesses.
    fn example(
        &mut self,
        cost: &NestCost,
        machine: &Machine,
    ) -> Option<((Path, Forest), Accesses)> {
        let problem = self.solver.space.problem;
        let free =
            Problem { max_buffer_dims: usize::MAX, max_buffer_bytes: u64::MAX, ..problem.clone() };
        let plans = self.solver.plans(cost, MOST_NESTS).into_iter();
        let nests = plans.map(|plan| self.solver.space.nest(&plan));
        let legal = nests.filter(|(path, nest)| {
            finish(&free, path.clone(), nest.clone(), machine).verify(&free).is_ok()
        });
        let judged =
            legal.filter_map(|(path, nest)| Some((accesses(problem, &path, &nest)?, (path, nest))));
        let (accesses, example) = judged.min_by_key(|(accesses, _)| *accesses)?;
        Some((example, accesses))
    }

    /// Returns the point of a nest with these depths of loops and memory, and with its time and memory.
    fn point(
        &self,
        (loop_depth, memory_depth): (usize, usize),
        (time, memory): (Polynomial, Polynomial),
        (example, accesses): ((Path, Forest), Accesses),
    ) -> FrontierPoint {
        let (symbols, problem) = (&self.solver.space.symbols, self.solver.space.problem);
        FrontierPoint {
            tree: 0,
            loop_depth,
            memory_depth,
            iterations: symbols.value(&time, problem),
            elements: symbols.value(&memory, problem),
            time,
            memory,
            nests: 1,
            example,
            accesses,
            passed: 0,
            standing: Standing::Frontier,
            origin: Origin::Searched,
        }
    }
}

/// Sorts points, the fewest iterations first.
pub(super) fn sort(points: &mut [FrontierPoint]) {
    points.sort_by(|a, b| {
        a.iterations.total_cmp(&b.iterations).then(a.elements.total_cmp(&b.elements))
    });
}
