//! The scheduler of Scorch: one loop nest around the whole product, chosen from the structure alone.
//!
//! 1. Indices are sorted by how sparse their coordinates are, and each is pushed inwards while that lowers the cost of
//!    computation, workspace and transpositions together ([`order`], [`costs`]).
//! 2. The orders in which tensors are stored form a graph; the cheapest edge of each cycle is a transposition
//!    ([`constraints`]).  The order that keeps the others is pushed in the same way, and the cheaper of the two is taken.
//! 3. The workspace of an assembled result stands inside the outermost loops over its indices: the producer fills it,
//!    the consumer appends it in order.
//!
//! No statistics are looked at but extents and numbers of non-zeros, and each of the `n` indices has at most `n` places, so a
//! search takes some ten microseconds.  Departures from the paper stand where they are made: [`prior`] and
//! [`costs`].  Unions do not occur, since a sum is computed product by product.
//!
//! Source: Yan, Root, Gale, Broman, Kjolstad, "Fast Autoscheduling for Sparse ML Frameworks" (Scorch), algorithm 1 and
//! section III.

mod constraints;
mod costs;
mod order;
mod prior;

use std::time::Instant;

use crate::autoschedule::orders::{LevelOrder, OrdersFound, Storage, on_storage, search_each};
use crate::autoschedule::scorch::order::{Levels, Order, choose};
use crate::autoschedule::{
    Breadth, Scheduler, SearchLimits, SearchOutcome, SearchReport, StopReason, rank,
};
use crate::cost::Machine;
use crate::einsum::{Index, IndexSet};
use crate::error::CoreError;
use crate::nest::Forest;
use crate::path::{Path, Source, unfactorised};
use crate::schedule::{Problem, has_pattern_of};

/// The scheduler `scorch`: a loop order by structure alone, within a tenth of a millisecond.
pub(super) struct Scorch;

impl Scheduler for Scorch {
    fn name(&self) -> &'static str {
        "scorch"
    }

    fn search_within(
        &self,
        problem: &Problem,
        machine: &Machine,
        _: &SearchLimits,
    ) -> Result<SearchOutcome, CoreError> {
        let start = Instant::now();
        let order = choose(problem, Levels::Fixed).ok_or_else(|| none(problem))?;
        self.outcome(problem, machine, &order, start)
    }

    fn search_storages(
        &self,
        problem: &Problem,
        storages: &[Storage],
        machine: &Machine,
        limits: &SearchLimits,
    ) -> Result<OrdersFound, CoreError> {
        let start = Instant::now();
        let order = choose(problem, Levels::Free).ok_or_else(|| none(problem))?;
        let storage = storage(problem, &order.loops);
        if !storages.contains(&storage) {
            return search_each(self, problem, storages, machine, limits);
        }
        let posed = storage.problem(problem);
        let found = self.outcome(&posed, machine, &order, start)?;
        Ok(on_storage(&posed, &storage, found, machine))
    }
}

impl Scorch {
    fn outcome(
        &self,
        problem: &Problem,
        machine: &Machine,
        order: &Order,
        start: Instant,
    ) -> Result<SearchOutcome, CoreError> {
        let (path, orders) = split(problem, &order.loops);
        let mut candidates = rank(problem, machine, vec![(path, Forest::fused(&orders))])?;
        if candidates.is_empty() {
            // One term needs no buffer, so no bound is in its way.
            let nest = Forest::fused(std::slice::from_ref(&order.loops));
            candidates = rank(problem, machine, vec![(unfactorised(&problem.expr), nest)])?;
        }
        if candidates.is_empty() {
            return Err(none(problem));
        }
        let report = SearchReport {
            scheduler: self.name(),
            breadth: Breadth::All,
            paths: 1,
            pruned: 0,
            explored: order.priced,
            seconds: start.elapsed().as_secs_f64(),
            stop: StopReason::Complete,
        };
        Ok(SearchOutcome { candidates, report })
    }
}

/// Returns the terms inside `loops` with the loops of each.
///
/// What the innermost loops sum up is multiplied by the operands that do not depend on them afterwards: the loops of
/// the producer, of which the workspace is a number, and those of the consumer (algorithm 1, lines 19 to 25).
fn split(problem: &Problem, loops: &[Index]) -> (Path, Vec<Vec<Index>>) {
    let expr = &problem.expr;
    let output = expr.output.set();
    let outer = loops.iter().rposition(|&index| output.contains(index)).map_or(0, |last| last + 1);
    let summed: IndexSet = loops[outer..].iter().copied().collect();
    let depends = |input: &usize| !(expr.inputs[*input].set() & summed).is_empty();
    let (inner, after): (Vec<usize>, Vec<usize>) = (0..expr.inputs.len()).partition(depends);
    let own = inner.iter().fold(IndexSet::EMPTY, |set, &input| set | expr.looped(input));
    // A producer that lacks an outer loop would stand in other loops.
    if after.is_empty() || inner.len() < 2 || own != loops.iter().copied().collect() {
        return (unfactorised(expr), vec![loops.to_vec()]);
    }
    let sources = |inputs: Vec<usize>| inputs.into_iter().map(Source::Input);
    let consumer = std::iter::once(Source::Term(0)).chain(sources(after)).collect();
    let path = Path::of_products(&[sources(inner).collect(), consumer], expr);
    (path, vec![loops.to_vec(), loops[..outer].to_vec()])
}

fn none(problem: &Problem) -> CoreError {
    let why = "no single loop nest walks all sparse operands as they are stored".to_owned();
    CoreError::NoSchedule { expr: problem.expr.to_string(), why }
}

/// Returns the storage whose levels follow `loops`.
///
/// First comes the operand whose pattern the result can have; otherwise the one whose root is the outermost loop, so that tasks
/// own what they write.
fn storage(problem: &Problem, loops: &[Index]) -> Storage {
    let inputs: Vec<usize> = problem.sparse.iter().map(|x| x.input).collect();
    let mut operands: Vec<(usize, LevelOrder)> = problem
        .sparse
        .iter()
        .map(|x| {
            let levels = loops.iter().copied().filter(|index| x.levels.contains(index)).collect();
            (x.input, LevelOrder { levels, fused: 1 })
        })
        .collect();
    let keeps = |(input, _): &(usize, LevelOrder)| has_pattern_of(&problem.expr, *input, &inputs);
    let outermost = |(_, order): &(usize, LevelOrder)| {
        let root = order.levels.first();
        loops.iter().position(|index| Some(index) == root)
    };
    operands.sort_by_key(|operand| (!keeps(operand), outermost(operand)));
    let leader = operands.first().map(|(input, _)| *input);
    // The others stay in the order of the expression, as the storages that are offered have them.
    operands.sort_by_key(|(input, _)| (Some(*input) != leader, *input));
    Storage { operands }
}

#[cfg(test)]
mod tests {
    use super::costs::Costs;
    use super::order::{Levels, choose};
    use super::split;
    use crate::einsum::{Expr, Extents, Index};
    use crate::nest::Forest;
    use crate::schedule::{OutputForm, Pattern, Problem, SparseOperand};

    /// Poses `text` with its inputs `sparse`, each with a thousandth of its cells; all extents are 2,000.
    fn problem(text: &str, sparse: &[usize], output: OutputForm) -> Problem {
        let expr: Expr = text.parse().unwrap();
        let extents: Extents = expr.all().iter().map(|index| (index, 2000)).collect();
        let operand = |&input: &usize| {
            let levels = expr.inputs[input].indices.clone();
            let cells = 2000_u64.pow(levels.len() as u32);
            let counted = (levels.iter().copied().collect(), cells / 1000);
            let pattern = Pattern::from_iter([counted]);
            SparseOperand { input, levels, fused: 1, pattern }
        };
        let sparse = sparse.iter().map(operand).collect();
        let posed = Problem::joining(expr, extents, sparse);
        Problem { output, ..posed }
    }

    fn loops(problem: &Problem) -> String {
        let order = choose(problem, Levels::Free).unwrap();
        order.loops.iter().map(|index| index.letter()).collect()
    }

    #[test]
    fn the_orders_of_the_paper_come_out() {
        let dense = OutputForm::Dense;
        assert_eq!(loops(&problem("ij,j->i", &[0], dense)), "ij");
        assert_eq!(loops(&problem("ij,jk->ik", &[0], dense)), "ijk");
        assert_eq!(loops(&problem("ij,ik,kj->ij", &[0], OutputForm::Pattern)), "ijk");
        // Gustavson's algorithm: the outer product scatters over two modes, and inner products meet nothing.
        assert_eq!(loops(&problem("ij,jk->ik", &[0, 1], OutputForm::Assembled)), "ijk");
    }

    #[test]
    fn what_is_summed_inside_is_multiplied_once() {
        let sampled = problem("ij,ik,kj->ij", &[0], OutputForm::Pattern);
        let (path, orders) = split(&sampled, &crate::einsum::indices("ijk"));
        assert_eq!(path.terms.len(), 2);
        assert_eq!(Forest::fused(&orders).to_string(), "i{ j{ k{ T1 } T2 } }");
        // The product of the dense matrices alone lacks no loop, but nothing is left to multiply it by.
        let plain = problem("ij,jk->ik", &[0], OutputForm::Dense);
        assert_eq!(split(&plain, &crate::einsum::indices("ijk")).0.terms.len(), 1);
    }

    #[test]
    fn an_inner_product_is_a_cliff() {
        let product = problem("ij,jk->ik", &[0, 1], OutputForm::Assembled);
        let costs = Costs::new(&product);
        let order = |text: &str| -> Vec<Index> { crate::einsum::indices(text) };
        let (rows, inner) = (costs.computation(&order("ijk")), costs.computation(&order("ikj")));
        assert!(inner > 100.0 * rows, "{inner} against {rows}");
        assert!(costs.of(&order("jik")) > costs.of(&order("ijk")));
    }

    #[test]
    fn a_cycle_of_orders_is_a_transposition() {
        // The second operand is stored by the other mode: one of the two is transposed.
        let product = problem("ij,ji->", &[0, 1], OutputForm::Dense);
        assert!(choose(&product, Levels::Fixed).is_none());
        assert_eq!(loops(&product).len(), 2);
        let fixed = problem("ij,kj->ik", &[0], OutputForm::Dense);
        let order = choose(&fixed, Levels::Fixed).unwrap();
        let place = |letter| order.loops.iter().position(|index| index.letter() == letter);
        assert!(place('i') < place('j'));
    }
}
