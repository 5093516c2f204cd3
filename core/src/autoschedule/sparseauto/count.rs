//! How many nests there are, and each of them by number.

use crate::autoschedule::sparseauto::program::{Question, Solver};
use crate::autoschedule::sparseauto::sections::{Around, ComponentPlan, Inner, SectionPlan, Space};
use crate::autoschedule::work::Work;
use crate::cost::symbolic::Monomial;
use crate::einsum::IndexSet;
use crate::nest::Forest;
use crate::path::Path;

/// How many nests there are; saturates.
struct Count;

impl Question for Count {
    type Answer = u128;

    fn none(&self) -> u128 {
        0
    }

    fn is_none(&self, count: &u128) -> bool {
        *count == 0
    }

    fn term(&mut self, _: Monomial, _: usize, _: Inner) -> u128 {
        1
    }

    fn may_store(&self, _: IndexSet) -> bool {
        true
    }

    fn stored(&mut self, nests: &u128, _: IndexSet) -> u128 {
        *nests
    }

    fn both(&mut self, a: &u128, b: &u128) -> u128 {
        a.saturating_mul(*b)
    }

    fn either(&mut self, a: &mut u128, b: &u128) {
        *a = a.saturating_add(*b);
    }

    fn work(&self, _: &u128, _: &u128) -> u64 {
        1
    }
}

/// All nests of a space in one order, counted and found without a list.
pub struct Nests<'s, 'a> {
    solver: Solver<'s, 'a, Count>,
    count: u128,
    next: u128,
}

impl<'s, 'a> Nests<'s, 'a> {
    /// Counts the nests of `space`.
    pub fn of(space: &'s Space<'a>) -> Nests<'s, 'a> {
        Nests::within(space, u64::MAX)
    }

    /// Counts the nests of `space` in at most `work` choices, and some of them where these end.
    pub fn within(space: &'s Space<'a>, work: u64) -> Nests<'s, 'a> {
        let mut solver = Solver::new(space, Count, Work::new(work));
        let count = solver.solve();
        Nests { solver, count, next: 0 }
    }

    /// Tells whether the work ended before all nests were counted.
    pub fn is_cut(&self) -> bool {
        self.solver.work.is_spent()
    }

    /// Returns how many there are; saturates.
    pub fn total(&self) -> u128 {
        self.count
    }

    /// Returns nest `number`, counted from 0; `None` behind the last.
    pub fn nth(&mut self, number: u128) -> Option<(Path, Forest)> {
        let all = self.solver.space.all();
        let plan = (number < self.count).then(|| self.section(all, Around::NOTHING, number))?;
        Some(self.solver.space.nest(&plan?))
    }

    fn section(&mut self, sources: usize, around: Around, mut number: u128) -> Option<SectionPlan> {
        let space = self.solver.space;
        for (at, partition) in space.lists[sources].partitions.iter().enumerate() {
            let count = self.solver.partition(sources, at, around).unwrap_or(0);
            if number >= count {
                number -= count;
                continue;
            }
            let mut parts = Vec::new();
            for part in &partition.parts {
                let made = self.solver.section(part.sources, around);
                parts.push(self.section(part.sources, around, number % made)?);
                number /= made;
            }
            let root = Box::new(self.component(partition.root, around, number)?);
            return Some(SectionPlan { partition: at, parts, root });
        }
        None
    }

    fn component(
        &mut self,
        sources: usize,
        around: Around,
        mut number: u128,
    ) -> Option<ComponentPlan> {
        let space = self.solver.space;
        let indices = space.lists[sources].indices;
        if indices == around.loops {
            return Some(ComponentPlan::Term);
        }
        for index in (indices - around.loops).iter() {
            let Some(inside) = space.inside(sources, around, index) else { continue };
            let count = self.solver.section(sources, inside);
            if number < count {
                return Some(ComponentPlan::Loop(index, self.section(sources, inside, number)?));
            }
            number -= count;
        }
        None
    }
}

impl Iterator for Nests<'_, '_> {
    type Item = (Path, Forest);

    fn next(&mut self) -> Option<(Path, Forest)> {
        let found = self.nth(self.next);
        self.next += u128::from(found.is_some());
        found
    }
}
