//! What a plan is made for, and what it may choose from.

use decompose_formats::panels::widths;

use crate::cost::Machine;
use crate::sweep::layout::TreeLayout;

/// What a plan is made for.
#[derive(Clone, Debug)]
pub struct PlanOptions {
    /// The number of components; [`plan_kernels`](crate::sweep::plan_kernels) reads the extents of its problems instead.
    pub rank: usize,
    /// Size of a value in bytes: 8 or 4.
    pub value_bytes: usize,
    /// Columns of the panels in which factors are stored, about; `None`: the planner chooses.  See
    /// [`widths`].
    pub panels: Option<usize>,
    /// Threads that will run it.
    pub threads: usize,
    /// The most bytes for trees and private copies together; `None`: no limit.
    pub memory: Option<u64>,
    /// Sweeps over which building a tree is spread.
    pub sweeps: usize,
    /// Which trees are kept.
    pub trees: Trees,
    /// Which modes are merged.
    pub merging: Merging,
    /// The order in which modes are updated.
    pub updates: Vec<usize>,
}

impl PlanOptions {
    /// Returns the columns of each panel of a factor.
    pub(super) fn widths(&self) -> Vec<usize> {
        widths(self.rank, self.value_bytes, self.panels.unwrap_or(self.rank))
    }

    /// Returns `machine` with the threads of these options: what threads have for themselves shares the last-level
    /// cache among as many as run.
    pub(super) fn on_threads(&self, machine: &Machine) -> Machine {
        Machine { threads: self.threads, ..machine.clone() }
    }
}

/// Which modes a plan may merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Merging {
    /// Those that the planner chooses; none where trees are given.
    Choose,
    /// None.
    Never,
    /// Those of these sets, each of several modes, in this order.
    Given(Vec<Vec<usize>>),
}

/// Which trees a plan keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trees {
    /// Those that the planner chooses.
    Choose,
    /// Those that the planner chooses among trees without blocks.
    ChooseUnblocked,
    /// Those that the planner chooses among trees without blocks and fused levels.
    ChoosePlain,
    /// One a kernel: plain CSF rooted at the first mode of its result, the other modes from short to long.
    Rooted,
    /// These, whatever they cost.
    Given(Vec<TreeLayout>),
}

impl Trees {
    /// Tells whether the planner chooses them, and they are not given.
    pub(super) fn are_chosen(&self) -> bool {
        !matches!(self, Trees::Rooted | Trees::Given(_))
    }
}
