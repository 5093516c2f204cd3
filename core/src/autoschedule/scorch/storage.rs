//! How the sparse operands are stored for an order of the loops.

use std::collections::HashMap;

use crate::autoschedule::Storage;
use crate::autoschedule::level_nesting::LevelNesting;
use crate::einsum::{Index, IndexSet};
use crate::path::Term;
use crate::schedule::{OutputForm, Problem, has_pattern_of};

/// The ways in which the sparse operands may be stored.
pub(super) enum Stores<'a> {
    /// As the problem has them.
    Given(Box<LevelNesting>),
    /// In one of several ways.
    Any {
        /// These ways.
        storages: &'a [Storage],
        /// Which of them have these levels: those of all sparse operands of the problem, one after the other.
        by_levels: HashMap<Vec<Index>, Vec<usize>>,
    },
}

/// What the storage that goes with an order of the loops means for their cost.
pub(super) struct Lead {
    /// Which way it is, of several.
    pub(super) storage: Option<usize>,
    /// Which sparse operand of the problem leads.
    pub(super) operand: usize,
    /// Its levels.
    pub(super) levels: Vec<Index>,
    /// How the output is stored.
    pub(super) form: OutputForm,
    /// The sparse operands of the problem whose levels have another order than there; a bit each.
    pub(super) transposed: u64,
}

impl<'a> Stores<'a> {
    pub(super) fn given(problem: &Problem) -> Stores<'static> {
        Stores::Given(Box::new(LevelNesting::new(problem)))
    }

    pub(super) fn any(problem: &Problem, storages: &'a [Storage]) -> Stores<'a> {
        let mut by_levels: HashMap<Vec<Index>, Vec<usize>> = HashMap::new();
        for (at, storage) in storages.iter().enumerate() {
            let own = |input: usize| storage.operands.iter().find(|(one, _)| *one == input);
            let stored = problem.sparse.iter().filter_map(|x| own(x.input));
            let levels = stored.flat_map(|(_, order)| order.levels()).copied().collect();
            by_levels.entry(levels).or_default().push(at);
        }
        Stores::Any { storages, by_levels }
    }

    /// Returns the storage for loops ordered as `order`; `None` if none of those that may be chosen has these levels.
    ///
    /// The operand leads whose root is looped first, and of several the one with the fewest non-zeros.  Levels are fused
    /// only if nothing else is allowed.
    pub(super) fn lead(&self, problem: &Problem, order: &[Index]) -> Option<Lead> {
        let Stores::Any { storages, by_levels } = self else {
            let levels = problem.leader().map(|x| x.levels().to_vec()).unwrap_or_default();
            let form = problem.output;
            return Some(Lead { storage: None, operand: 0, levels, form, transposed: 0 });
        };
        let restricted = |levels: &[Index]| -> Vec<Index> {
            order.iter().copied().filter(|index| levels.contains(index)).collect()
        };
        let levels: Vec<Vec<Index>> =
            problem.sparse.iter().map(|x| restricted(x.levels())).collect();
        let place = |input: usize| problem.sparse.iter().position(|x| x.input == input);
        let rank = |&&at: &&usize| {
            let (input, leader) = &storages[at].operands[0];
            let root = leader.levels().first();
            let looped = order.iter().position(|index| Some(index) == root);
            let nonzeros = place(*input).map(|at| {
                let all: IndexSet = leader.levels().iter().copied().collect();
                problem.sparse[at].pattern.count(all, &problem.extents)
            });
            (leader.fused(), looped, nonzeros, at)
        };
        let storage = *by_levels.get(&levels.concat())?.iter().min_by_key(rank)?;
        let input = storages[storage].operands[0].0;
        let operand = place(input)?;
        let inputs: Vec<usize> = problem.sparse.iter().map(|x| x.input).collect();
        let form = match (has_pattern_of(&problem.expr, input, &inputs), problem.output) {
            (true, _) => OutputForm::Pattern,
            (false, OutputForm::Assembled) => OutputForm::Assembled,
            (false, _) => OutputForm::Dense,
        };
        let moved = |at: &usize| levels[*at] != problem.sparse[*at].levels();
        let transposed = (0..levels.len()).filter(moved).fold(0, |set, at| set | 1 << at);
        let levels = levels.into_iter().nth(operand)?;
        Some(Lead { storage: Some(storage), operand, levels, form, transposed })
    }

    /// Returns the loops of `term`, ordered as `order` where its operands allow that; `None` if no order suits them.
    pub(super) fn order_of(&self, term: &Term, order: &[Index]) -> Option<Vec<Index>> {
        let mut left: Vec<Index> =
            order.iter().copied().filter(|&index| term.indices.contains(index)).collect();
        let Stores::Given(nesting) = self else { return Some(left) };
        let (mut own, mut done) = (Vec::with_capacity(left.len()), IndexSet::EMPTY);
        while !left.is_empty() {
            let next = left.iter().position(|&index| nesting.may_loop(term, index, done))?;
            let index = left.remove(next);
            done = done.with(index);
            own.push(index);
        }
        Some(own)
    }
}
