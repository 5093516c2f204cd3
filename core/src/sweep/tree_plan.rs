//! The plan for the kernels of one tensor: its trees, and a schedule for each kernel.

use std::fmt;

use decompose_formats::counted;

use crate::autoschedule::{Candidate, SearchReport};
use crate::schedule::Problem;
use crate::sweep::alternatives::Alternative;
use crate::sweep::layout::TreeLayout;

/// The kernels of one tensor on its trees.
#[derive(Clone, Debug, Default)]
pub struct TreePlan {
    /// The trees to keep.
    pub trees: Vec<TreeLayout>,
    /// One step a kernel: for MTTKRP, by mode.
    pub steps: Vec<Step>,
    /// Bytes of the trees.
    pub tree_bytes: u64,
    /// Bytes of private copies of outputs.
    pub side_bytes: u64,
    /// The trees that it was chosen among.
    pub considered: usize,
    /// The kernels on trees whose schedules were searched.
    pub searched: usize,
    /// Seconds of a sweep as choices weigh them: blocks handicapped, the building of trees spread over the sweeps.
    pub weighed: f64,
    /// The best sets of trees without one of the chosen ones; none where trees are given.
    pub alternatives: Vec<Alternative>,
}

/// One kernel of a sweep.
#[derive(Clone, Debug)]
pub struct Step {
    /// The number of the kernel: for MTTKRP, its mode.
    pub mode: usize,
    /// The tree it runs on, by position in the plan.
    pub tree: usize,
    /// What is scheduled; of factors stored in panels, the kernel for the widest.
    pub problem: Problem,
    /// The schedule with its predicted cost; of factors stored in panels, for all of them.
    pub candidate: Candidate,
    /// What the search saw; `None` where the schedule follows the tree, without a search.
    pub report: Option<SearchReport>,
    /// Predicted seconds on all threads, private copies included; for all panels of the factors.
    pub seconds: f64,
    /// Bytes of private copies, of all panels.
    pub side_bytes: u64,
    /// How often it runs in a sweep.
    pub runs: usize,
}

impl TreePlan {
    /// Returns the predicted seconds of one sweep's kernels.
    pub fn seconds(&self) -> f64 {
        self.steps.iter().map(|step| step.runs as f64 * step.seconds).sum()
    }
}

impl fmt::Display for TreePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (count, bytes, weighed) = (self.trees.len(), self.tree_bytes, self.weighed);
        let (considered, searched) = (self.considered, counted(self.searched, "kernel", "kernels"));
        writeln!(
            f,
            "trees: {count} ({bytes} bytes) of {considered}, compared at {weighed:.2e} s a sweep with building; \
             {searched} searched"
        )?;
        for (at, tree) in self.trees.iter().enumerate() {
            writeln!(f, "  tree {}: modes {tree}", at + 1)?;
        }
        self.alternatives.iter().try_for_each(|other| writeln!(f, "  {other}"))?;
        for step in &self.steps {
            let (mode, tree) = (step.mode + 1, step.tree + 1);
            let runs = if step.runs == 1 { String::new() } else { format!(", {} runs", step.runs) };
            writeln!(f, "mode {mode} on tree {tree}{runs}: {}", step.problem.expr)?;
            for line in step.candidate.schedule.text(&step.problem.expr).lines() {
                writeln!(f, "    {line}")?;
            }
            writeln!(f, "    cost     {}", step.candidate.cost)?;
            let side = step.side_bytes;
            writeln!(f, "    predicted {:.2e} s, private copies {side} B", step.seconds)?;
            match &step.report {
                Some(report) => writeln!(f, "    search   {report}")?,
                None => writeln!(f, "    search   none: the schedule follows the tree")?,
            }
        }
        Ok(())
    }
}
