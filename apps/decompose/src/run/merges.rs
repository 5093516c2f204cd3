//! The memory in which modes of a list become one.
//!
//! ```text
//! sort     list + memory of the sort
//! levels   list + the upper levels of its tree, each with a bit an entry
//! columns  values and last level + upper levels + the columns of the merged list + the tuples
//! trees    merged list, of which the last tree is made + trees but the last + memory of a sort, or upper
//!          levels of the last
//! ```
//!
//! The stages follow `Csf::merge` and `Csf::build_all`.

use decompose_core::einsum::IndexSet;
use decompose_core::kernels::mode_index;
use decompose_core::schedule::Pattern;
use decompose_core::sweep::{SweepPlan, TreePlan};
use decompose_formats::{Coo, ModeOrder, Value, Width};
use decompose_tucker::TuckerPlan;

use crate::run::memory::Forecast;

/// A list, modes of which become one.
#[derive(Clone)]
struct List<'a> {
    extents: &'a [u64],
    pattern: &'a Pattern,
    nnz: u64,
    value_bytes: u64,
    /// What a sort of it takes.
    sorting: u64,
    /// The modes of each column.
    columns: Vec<Vec<usize>>,
}

/// What is held while columns of a list become one, beside the list that is kept.
struct Stages {
    /// While the tree is made.
    tree: u64,
    /// While the tree becomes two lists.
    lists: u64,
    /// Thereafter, of the tuples.
    tuples: u64,
}

/// Predicts the memory of the trees of a sweep with merges: the list becomes shorter with each, and the trees
/// are built from what is left.
pub(crate) fn of_sweep<V: Value>(
    before: Forecast,
    tensor: &Coo<V>,
    pattern: &Pattern,
    plan: &SweepPlan,
) -> Forecast {
    let mut list = List::new(tensor, pattern);
    let (mut building, mut tuples) = (before.narrowing(tensor), 0);
    for merge in &plan.merges {
        let (merged, stages) = list.merge(&merge.modes, Kept::No);
        let own = list.bytes() + list.sorting;
        building = building.max(tuples + own.max(stages.tree).max(stages.lists));
        tuples += stages.tuples;
        list = merged;
    }
    let inner: u64 = plan.merges.iter().map(|merge| merge.kernels.tree_bytes).sum();
    building = building.max(tuples.max(inner) + list.building(&plan.kernels));
    before.with_built(plan.tree_bytes(), plan.side_bytes(), list.sorting, building)
}

/// Predicts the memory of the trees of a Tucker decomposition with merges: the list is kept until the trees of
/// each are built.
pub(crate) fn of_ttmc<V: Value>(
    before: Forecast,
    tensor: &Coo<V>,
    pattern: &Pattern,
    plan: &TuckerPlan,
) -> Forecast {
    let list = List::new(tensor, pattern);
    // The list is as wide as it was read.
    let kept = before.list;
    let (mut building, mut built) = (0, 0);
    for merge in &plan.merges {
        let (merged, stages) = list.merge(&merge.modes, Kept::Yes);
        let trees = merged.building(&merge.partial) + stages.tuples;
        let most = list.sorting.max(stages.tree).max(stages.lists).max(trees);
        building = building.max(kept + built + most);
        built += merge.tree_bytes();
    }
    if !plan.kernels.steps.is_empty() {
        let direct = before.narrowing(tensor).max(list.building(&plan.kernels));
        building = building.max(built + direct);
    }
    before.with_built(plan.tree_bytes(), plan.side_bytes(), list.sorting, building)
}

/// Whether a list is kept beside its tree.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Yes,
    No,
}

impl<'a> List<'a> {
    fn new<V: Value>(tensor: &'a Coo<V>, pattern: &'a Pattern) -> List<'a> {
        List {
            extents: tensor.extents(),
            pattern,
            nnz: tensor.nnz() as u64,
            value_bytes: V::BYTES as u64,
            sorting: tensor.sort_bytes(None),
            columns: (0..tensor.order()).map(|mode| vec![mode]).collect(),
        }
    }

    /// The tuples of coordinates that occur in `modes`.
    fn count(&self, modes: &[usize]) -> u64 {
        let set: IndexSet = modes.iter().map(|&mode| mode_index(mode)).collect();
        let extents = self.extents.iter().enumerate();
        let extents = extents.map(|(mode, &extent)| (mode_index(mode), extent)).collect();
        self.pattern.count(set, &extents).min(self.nnz)
    }

    /// The bytes of a coordinate of `column`.
    fn width(&self, column: &[usize]) -> u64 {
        let extent = match column {
            [mode] => self.extents[*mode],
            merged => self.count(merged),
        };
        Width::below(extent).bytes() as u64
    }

    fn bytes(&self) -> u64 {
        let widths: u64 = self.columns.iter().map(|column| self.width(column)).sum();
        self.nnz * (widths + self.value_bytes)
    }

    /// Merges `modes`, which become the first column, as `Csf::merge` does.
    fn merge(&self, modes: &[usize], kept: Kept) -> (List<'a>, Stages) {
        let inside = |column: &&Vec<usize>| column.iter().all(|mode| modes.contains(mode));
        let (first, rest): (Vec<&Vec<usize>>, Vec<&Vec<usize>>) =
            self.columns.iter().partition(inside);
        let order: Vec<&Vec<usize>> = first.iter().chain(&rest).copied().collect();
        let (last, upper) = order.split_last().expect("a tensor has modes");
        let pointer = Width::below(self.nnz + 1).bytes() as u64;
        let mut prefix = Vec::new();
        let levels = upper.iter().map(|column| {
            prefix.extend_from_slice(column);
            self.count(&prefix) * (self.width(column) + pointer)
        });
        let levels: u64 = levels.sum();
        let bits = self.nnz / 8 * upper.len() as u64;
        let leaves = self.nnz * (self.width(last) + self.value_bytes);
        let columns: Vec<Vec<usize>> =
            [modes.to_vec()].into_iter().chain(rest.into_iter().cloned()).collect();
        let merged = List { columns, ..self.clone() };
        // The last column and the values are those of the tree.
        let expanded = merged.bytes() - leaves;
        let number = merged.width(modes);
        let widths: u64 = first.iter().map(|column| self.width(column)).sum();
        let tuples = self.count(modes) * (widths + number + self.value_bytes);
        let list = match kept {
            Kept::Yes => leaves,
            Kept::No => self.bytes(),
        };
        let lists = leaves + levels + expanded + tuples;
        (merged, Stages { tree: list + levels + bits, lists, tuples })
    }

    /// What is held while the trees of `plan` are built from the list, which is given up.
    fn building(&self, plan: &TreePlan) -> u64 {
        let natural = ModeOrder::natural(self.columns.len());
        let sorts = plan.trees.iter().any(|tree| tree.order != natural || tree.blocks.is_some());
        let sorting = if sorts { self.sorting } else { 0 };
        let list = self.bytes();
        let last = plan.tree_bytes / plan.trees.len().max(1) as u64;
        let narrowest = self.columns.iter().map(|column| self.width(column)).min().unwrap_or(0);
        // Values and a column at least are those of the list.
        let shared = self.nnz * (self.value_bytes + narrowest);
        let before = if plan.trees.len() > 1 { list.saturating_sub(shared) } else { 0 };
        let upper = last.saturating_sub(shared) + self.nnz / 8 * self.columns.len() as u64;
        before + list + (plan.tree_bytes - last) + sorting.max(upper)
    }
}
