//! The costs of all nests, or those that no other one beats.

use std::rc::Rc;

use crate::autoschedule::sparseauto::program::{Question, Solver};
use crate::autoschedule::sparseauto::sections::{Around, ComponentPlan, Inner, SectionPlan};
use crate::autoschedule::sparseauto::terms::{Terms, ZERO};
use crate::cost::symbolic::{Monomial, Polynomial};
use crate::einsum::IndexSet;

/// The cost of a nest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NestCost {
    /// The most loops around a term.
    pub(super) loops: u8,
    /// The most indices over which a result is stored.
    pub(super) dims: u8,
    /// The iterations of all terms, by number of the polynomial.
    pub(super) time: u32,
    /// The elements of all buffers.
    pub(super) memory: u32,
}

/// Which costs are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// All.
    All,
    /// The depths of all: times and memories are left out.
    Depths,
    /// Of the same depths, those that no other one beats in time and memory for all sizes.
    Undominated,
    /// The same with the time of vectors: an iteration of an innermost loop over a level counts as [`LANES`].
    UndominatedLanes,
}

/// Iterations that run together where the innermost loop is over a whole extent: 64 bytes of doubles.
const LANES: usize = 8;

/// What may be stored.
pub(super) type MayStore<'a> = &'a dyn Fn(IndexSet) -> bool;

/// The costs of nests, and how many nests have each.
pub(super) struct Costs<'a> {
    pub(super) terms: Terms,
    pub(super) kept: Kept,
    pub(super) may_store: MayStore<'a>,
}

/// Costs in ascending order, with numbers of nests.
pub(super) type CostList = Rc<Vec<(NestCost, u128)>>;

impl Question for Costs<'_> {
    type Answer = CostList;

    fn none(&self) -> CostList {
        CostList::default()
    }

    fn is_none(&self, costs: &CostList) -> bool {
        costs.is_empty()
    }

    fn asks_inner(&self) -> bool {
        self.kept == Kept::UndominatedLanes
    }

    fn term(&mut self, iterations: Monomial, loops: usize, inner: Inner) -> CostList {
        let one = Polynomial::from(iterations);
        let time = match (self.kept, inner) {
            (Kept::Depths, _) => ZERO,
            (_, Inner::Scalar) => {
                let time = (1..LANES).fold(one.clone(), |sum, _| sum.plus(&one));
                self.terms.number(time)
            }
            _ => self.terms.number(one),
        };
        Rc::new(vec![(NestCost { loops: loops as u8, dims: 0, time, memory: ZERO }, 1)])
    }

    fn may_store(&self, stored: IndexSet) -> bool {
        (self.may_store)(stored)
    }

    fn stored(&mut self, nests: &CostList, stored: IndexSet) -> CostList {
        let nests = Rc::clone(nests);
        let add = |(cost, count): &(NestCost, u128)| (self.with_store(cost, stored), *count);
        merged(nests.iter().map(add).collect())
    }

    fn both(&mut self, a: &CostList, b: &CostList) -> CostList {
        let mut all = Vec::with_capacity(a.len() * b.len());
        for (one, count) in a.iter() {
            for (other, times) in b.iter() {
                all.push((self.joined(one, other), count.saturating_mul(*times)));
            }
        }
        merged(all)
    }

    fn either(&mut self, a: &mut CostList, b: &CostList) {
        match (a.is_empty(), b.is_empty()) {
            (_, true) => {}
            (true, false) => *a = Rc::clone(b),
            (false, false) => *a = merged(a.iter().chain(b.iter()).copied().collect()),
        }
    }

    fn settle(&mut self, costs: &mut CostList) {
        let prunes = matches!(self.kept, Kept::Undominated | Kept::UndominatedLanes);
        if prunes && costs.len() > 1 {
            *costs = Rc::new(self.undominated(costs));
        }
    }

    fn one(&self, costs: &CostList) -> CostList {
        let size = |cost: &NestCost| self.terms.size(cost.time);
        let least = costs.iter().min_by(|(a, _), (b, _)| size(a).total_cmp(&size(b)));
        Rc::new(least.copied().into_iter().collect())
    }

    fn work(&self, a: &CostList, b: &CostList) -> u64 {
        (a.len() * b.len()) as u64
    }
}

/// Sorts costs, and adds up the nests of equal ones.
fn merged(mut costs: Vec<(NestCost, u128)>) -> CostList {
    costs.sort_unstable_by_key(|(cost, _)| *cost);
    costs.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 = kept.1.saturating_add(next.1);
        }
        same
    });
    Rc::new(costs)
}

impl Costs<'_> {
    fn joined(&mut self, a: &NestCost, b: &NestCost) -> NestCost {
        NestCost {
            loops: a.loops.max(b.loops),
            dims: a.dims.max(b.dims),
            time: self.terms.sum(a.time, b.time),
            memory: self.terms.sum(a.memory, b.memory),
        }
    }

    fn with_store(&mut self, cost: &NestCost, stored: IndexSet) -> NestCost {
        let dims = cost.dims.max(stored.len() as u8);
        if self.kept == Kept::Depths {
            return NestCost { dims, ..*cost };
        }
        let memory = self.terms.number(Polynomial::from(Monomial { extents: stored, walked: 0 }));
        let memory = self.terms.sum(cost.memory, memory);
        NestCost { dims, memory, ..*cost }
    }

    /// Returns those of `costs`, which ascend, that no other one of the same depths beats.
    fn undominated(&mut self, costs: &[(NestCost, u128)]) -> Vec<(NestCost, u128)> {
        let mut kept = Vec::with_capacity(costs.len());
        for same in costs.chunk_by(|a, b| (a.0.loops, a.0.dims) == (b.0.loops, b.0.dims)) {
            kept.extend(frontier(&mut self.terms, same));
        }
        kept
    }
}

/// Returns those of `costs` that no other one beats: it takes at least the time and at least the memory of another one, for
/// all sizes.  In ascending order.
pub(super) fn frontier(terms: &mut Terms, costs: &[(NestCost, u128)]) -> Vec<(NestCost, u128)> {
    let alone: Vec<NestCost> = costs.iter().map(|(cost, _)| *cost).collect();
    let kept = unbeaten(terms, &alone);
    let mut kept: Vec<(NestCost, u128)> = kept.into_iter().map(|at| costs[at]).collect();
    kept.sort_unstable_by_key(|(cost, _)| *cost);
    kept
}

/// Returns the positions of those of `costs` that no other one beats; of equal ones the first.
pub(super) fn unbeaten(terms: &mut Terms, costs: &[NestCost]) -> Vec<usize> {
    if costs.len() == 1 {
        return vec![0];
    }
    // Whoever beats another one comes before it.
    let size = |cost: &NestCost| (terms.size(cost.time), terms.size(cost.memory));
    let mut order: Vec<((f64, f64), usize)> =
        costs.iter().enumerate().map(|(at, cost)| (size(cost), at)).collect();
    order.sort_by(|((t, m), at), ((u, n), b)| t.total_cmp(u).then(m.total_cmp(n)).then(at.cmp(b)));
    let mut kept: Vec<usize> = Vec::new();
    for (_, at) in order {
        if !kept.iter().any(|&other| beats(terms, &costs[other], &costs[at])) {
            kept.push(at);
        }
    }
    kept
}

/// Tells whether `other` takes at most the time and at most the memory of `cost` for all sizes.
pub(super) fn beats(terms: &mut Terms, other: &NestCost, cost: &NestCost) -> bool {
    terms.at_least(cost.memory, other.memory) && terms.at_least(cost.time, other.time)
}

impl Solver<'_, '_, Costs<'_>> {
    /// Returns plans with a cost, up to `most` of them; all answers must be known.
    pub(super) fn plans(&mut self, cost: &NestCost, most: usize) -> Vec<SectionPlan> {
        self.section_plans(self.space.all(), self.outside(), cost, most)
    }

    fn section_plans(
        &mut self,
        sources: usize,
        around: Around,
        cost: &NestCost,
        most: usize,
    ) -> Vec<SectionPlan> {
        let space = self.space;
        let mut plans = Vec::new();
        for (number, partition) in space.lists[sources].partitions.iter().enumerate() {
            if plans.len() >= most || !self.is_known(sources, number, around) {
                continue;
            }
            let root = self.component(partition.root, around);
            // The costs of the component and of the parts behind it that add up to the whole.
            let mut choices: Vec<(NestCost, Vec<NestCost>)> =
                root.iter().map(|(cost, _)| (*cost, vec![*cost])).collect();
            for part in &partition.parts {
                let made = self.section(part.sources, around);
                let stored = part.result - around.loops;
                let mut longer = Vec::new();
                for (sum, before) in &choices {
                    for (own, _) in made.iter() {
                        let kept = self.question.with_store(own, stored);
                        let sum = self.question.joined(sum, &kept);
                        longer.push((sum, [before.as_slice(), &[*own]].concat()));
                    }
                }
                choices = longer;
            }
            for (_, costs) in choices.iter().filter(|(sum, _)| sum == cost) {
                let left = most.saturating_sub(plans.len());
                plans.extend(self.combined((sources, number), around, costs, left));
            }
        }
        plans
    }

    /// Tells whether partition `number` was looked at and may be one.
    fn is_known(&self, sources: usize, number: usize, around: Around) -> bool {
        let partition = &self.space.lists[sources].partitions[number];
        let key = |sources: usize| (sources, around);
        self.components.contains_key(&key(partition.root))
            && partition.parts.iter().all(|part| {
                around.loops.is_subset(part.result)
                    && self.question.may_store(part.result - around.loops)
                    && self.sections.contains_key(&key(part.sources))
            })
    }

    /// Plans of a partition whose component and parts have these costs.
    fn combined(
        &mut self,
        (sources, number): (usize, usize),
        around: Around,
        costs: &[NestCost],
        most: usize,
    ) -> Vec<SectionPlan> {
        let partition = &self.space.lists[sources].partitions[number];
        let Some((own, of_parts)) = costs.split_first() else { return Vec::new() };
        let roots = self.component_plans(partition.root, around, own, most);
        let mut lists: Vec<Vec<SectionPlan>> = vec![Vec::new()];
        for (part, cost) in partition.parts.iter().zip(of_parts) {
            let plans = self.section_plans(part.sources, around, cost, most);
            let longer = |list: &Vec<SectionPlan>| {
                plans
                    .iter()
                    .map(|plan| [list.as_slice(), std::slice::from_ref(plan)].concat())
                    .collect::<Vec<_>>()
            };
            lists = lists.iter().flat_map(longer).take(most).collect();
        }
        let whole = |(root, parts): (&ComponentPlan, &Vec<SectionPlan>)| SectionPlan {
            partition: number,
            parts: parts.clone(),
            root: Box::new(root.clone()),
        };
        let pairs = roots.iter().flat_map(|root| lists.iter().map(move |parts| (root, parts)));
        pairs.map(whole).take(most).collect()
    }

    fn component_plans(
        &mut self,
        sources: usize,
        around: Around,
        cost: &NestCost,
        most: usize,
    ) -> Vec<ComponentPlan> {
        let space = self.space;
        let indices = space.lists[sources].indices;
        if indices == around.loops {
            return vec![ComponentPlan::Term];
        }
        let mut plans = Vec::new();
        for index in (indices - around.loops).iter() {
            let Some(inside) = space.inside(sources, around, index) else { continue };
            let known = self.sections.get(&(sources, inside));
            if known.is_some_and(|costs| costs.binary_search_by_key(cost, |(one, _)| *one).is_ok())
            {
                let left = most.saturating_sub(plans.len());
                let inner = self.section_plans(sources, inside, cost, left);
                plans.extend(inner.into_iter().map(|plan| ComponentPlan::Loop(index, plan)));
            }
        }
        plans
    }
}
