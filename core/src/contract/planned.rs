//! A schedule with the trees that it is for.

use std::sync::Arc;

use decompose_formats::{Coo, Csf, ModeOrder, Value};

use crate::autoschedule::OrderedCandidate;
use crate::contract::split::split_list;
use crate::contract::{Contraction, Operand, StoredTrees};
use crate::cost::Cost;
use crate::error::CoreError;
use crate::runtime::Toolchain;
use crate::schedule::{Problem, Schedule, SparseOperand};
use crate::sweep::TreeLayout;

/// A schedule of a request, the trees that it is for, and its costs.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The tree of each sparse operand of the problem.
    pub trees: Vec<TreeLayout>,
    /// The problem on these trees.
    pub problem: Problem,
    /// The schedule.
    pub schedule: Schedule,
    /// Its predicted cost on one core.
    pub cost: Cost,
    /// Predicted seconds on all threads.
    pub seconds: f64,
    /// Predicted seconds to build the trees, where they count ([`Problem::storing`]); zero otherwise.
    pub storing: f64,
    /// Bytes of private copies of the output.
    pub side_bytes: u64,
}

impl Planned {
    /// Takes what a search on the problem `base` found.
    pub fn of(base: &Problem, found: OrderedCandidate) -> Planned {
        let problem = found.problem(base);
        let trees = trees(&problem);
        let OrderedCandidate { candidate, seconds, storing, side_bytes, .. } = found;
        let (schedule, cost) = (candidate.schedule, candidate.cost);
        Planned { trees, problem, schedule, cost, seconds, storing, side_bytes }
    }

    /// Returns the trees, with the names of their operands if there are several.  Levels are numbered by modes, or where an
    /// index is cut have its letters.
    pub fn trees_typed(&self) -> String {
        let names = self.problem.expr.operand_names();
        let splits = self.problem.stored_splits();
        let typed = |x: &SparseOperand, tree: &TreeLayout| {
            if !splits.iter().any(|own| x.levels().contains(&own.split.outer)) {
                return tree.to_string();
            }
            let letters = self.problem.stored(x.levels()).map(|level| level.to_string());
            letters.collect::<Vec<_>>().join("-")
        };
        let one = |(x, tree): (&SparseOperand, &TreeLayout)| match self.trees.len() {
            1 => typed(x, tree),
            _ => format!("{} {}", names[x.input], typed(x, tree)),
        };
        self.problem.sparse.iter().zip(&self.trees).map(one).collect::<Vec<_>>().join(", ")
    }

    /// Builds the tree of each sparse operand unless it is stored; references of an operand that are laid out alike share
    /// one.
    ///
    /// `operands` says what each input is; `None` for a result in between, whose tree nothing else reads.
    ///
    /// # Errors
    ///
    /// [`CoreError::Internal`] if an operand is missing; what [`Csf::build`] refuses.
    pub fn build_trees<V: Value>(
        &self,
        mut lists: Vec<(usize, Coo<V>)>,
        operands: &[Option<Operand>],
        stored: &mut StoredTrees<V>,
    ) -> Result<Vec<Arc<Csf<V>>>, CoreError> {
        let operand = |input: usize| operands.get(input).and_then(Option::as_ref);
        let expr = self.problem.stored_expr();
        let splits = self.problem.stored_splits();
        let mut trees: Vec<Arc<Csf<V>>> = Vec::with_capacity(self.trees.len());
        for (x, layout) in self.problem.sparse.iter().zip(&self.trees) {
            let at = lists.iter().position(|(input, _)| *input == x.input);
            let at = at.ok_or_else(|| CoreError::Internal("an operand without a list".into()))?;
            let access = &expr.inputs[x.input];
            let list = split_list(lists.swap_remove(at).1, access, &self.problem)?;
            let cut = splits.iter().any(|own| x.levels().contains(&own.split.outer));
            // Nothing else reads the tree of an operand that is cut.
            let Some(own) = operand(x.input).filter(|_| !cut) else {
                trees.push(build_tree(list, layout)?);
                continue;
            };
            let mut before = self.problem.sparse.iter().zip(&self.trees).zip(&trees);
            let same =
                before.find(|((y, other), _)| operand(y.input) == Some(own) && *other == layout);
            let tree =
                match same.map(|(_, tree)| Arc::clone(tree)).or_else(|| stored.get(own, layout)) {
                    Some(tree) => tree,
                    None => build_tree(list, layout)?,
                };
            stored.put(own, layout, &tree);
            trees.push(tree);
        }
        Ok(trees)
    }

    /// Builds the trees of `lists`, by input, and the kernel; inputs of one name are one tensor.
    ///
    /// # Errors
    ///
    /// As [`Planned::build_trees`] and [`Contraction::joining`].
    pub fn build<V: Value>(
        &self,
        lists: Vec<(usize, Coo<V>)>,
        toolchain: &Toolchain,
    ) -> Result<Contraction<V>, CoreError> {
        let inputs = self.problem.expr.inputs.iter();
        let operands: Vec<Option<Operand>> = inputs.map(|x| Some(Operand::of(x))).collect();
        let trees = self.build_trees(lists, &operands, &mut StoredTrees::default())?;
        Contraction::joining(&self.problem, &self.schedule, trees, toolchain)
    }
}

fn build_tree<V: Value>(list: Coo<V>, layout: &TreeLayout) -> Result<Arc<Csf<V>>, CoreError> {
    Ok(Arc::new(Csf::build(list, &layout.order)?.fuse(layout.fused)))
}

/// Returns the trees of the sparse operands of `problem`, whose levels are the modes of their inputs; both parts of an index
/// that is cut count as modes.
pub fn trees(problem: &Problem) -> Vec<TreeLayout> {
    let tree = |x: &SparseOperand| {
        let indices: Vec<_> = problem.stored(&problem.expr.inputs[x.input].indices).collect();
        let mode = |level| indices.iter().position(|&index| index == level);
        let modes: Option<Vec<usize>> = problem.stored(x.levels()).map(mode).collect();
        let order = modes.and_then(ModeOrder::new);
        TreeLayout::new(order.unwrap_or_else(|| ModeOrder::natural(indices.len())), x.fused())
    };
    problem.sparse.iter().map(tree).collect()
}
