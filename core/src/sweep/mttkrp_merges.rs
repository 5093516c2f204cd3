//! Which modes to merge, so that kernels of a sweep share their work.
//!
//! Every MTTKRP of a sweep runs over all non-zeros.  Where few tuples of coordinates occur in some
//! modes - papers and their authors, senders and receivers - these modes are better taken as one:
//! with a number `n` for each tuple,
//!
//! ```text
//! X(i, j, k, l) = sum over n of S(i, j, n) Y(n, k, l),
//! P(n, r) = sum over k, l of Y(n, k, l) C(k, r) D(l, r)         the partial product,
//! A(i, r) = sum over j, n of S(i, j, n) P(n, r) B(j, r),        and the same for B(j, r),
//! K(n, r) = sum over i, j of S(i, j, n) A(i, r) B(j, r)         stands for A and B elsewhere.
//! ```
//!
//! `P` serves all merged modes, until a factor changes that it contains: a dimension tree (Phan,
//! Tichavsky, Cichocki 2013; Kaya, Ucar 2018) whose inner nodes have as many rows as tuples occur.
//! `P` and `K` are MTTKRPs of `Y` and `S`, as are the updates, so all that was built for trees and
//! kernels of one tensor ([`TreePlan`]) serves here.  The updates and their order are those of the
//! plain sweep; results differ by rounding.  Modes that follow each other in the cycle of updates share
//! one `P`; others need it made again.
//!
//! Which partitions of the modes are considered, [`partitions`](crate::sweep::partitions) says.

use std::fmt;

use decompose_formats::panels::listed;

use crate::schedule::Problem;
use crate::sweep::alternatives::Alternative;
use crate::sweep::problems::at_rank;
use crate::sweep::tree_plan::{Step, TreePlan};

/// The plan of a sweep.
#[derive(Clone, Debug)]
pub struct SweepPlan {
    /// The modes of each mode of `Y`: those of the merges, last one first, then the others.
    pub groups: Vec<Vec<usize>>,
    /// The kernels of `Y`; of the tensor itself if nothing is merged.
    pub kernels: TreePlan,
    /// The columns of each panel of the factors, the widest first; one panel of all columns if factors
    /// are stored whole.
    pub panels: Vec<usize>,
    /// The merges, in the order in which they are made.
    pub merges: Vec<Merge>,
    /// Partitions of the modes that were considered.
    pub considered: usize,
    /// Other partitions of the modes, and the other way to store factors, as far as they were priced.
    pub alternatives: Vec<Alternative>,
    /// Predicted seconds of a sweep's kernels if nothing is merged, where that was planned too.
    pub plain_seconds: f64,
}

/// Modes that are taken as one.
#[derive(Clone, Debug)]
pub struct Merge {
    /// The modes, ascending.
    pub modes: Vec<usize>,
    /// The tuples of coordinates that occur, as far as is known.
    pub tuples: u64,
    /// The kernels of `S`: those of the merged modes, and last that of the tuples.
    pub kernels: TreePlan,
    /// Bytes of the matrix that is `P` or `K`.
    pub matrix_bytes: u64,
}

impl SweepPlan {
    /// Returns the predicted seconds of one sweep's kernels.
    pub fn seconds(&self) -> f64 {
        self.parts().map(TreePlan::seconds).sum()
    }

    /// Returns the bytes of all trees.
    pub fn tree_bytes(&self) -> u64 {
        self.parts().map(|part| part.tree_bytes).sum()
    }

    /// Returns the bytes of private copies of outputs, and of the matrices of merges.
    pub fn side_bytes(&self) -> u64 {
        let matrices: u64 = self.merges.iter().map(|merge| merge.matrix_bytes).sum();
        self.parts().map(|part| part.side_bytes).sum::<u64>() + matrices
    }

    /// Returns the kernels of `Y`, then those of each merge.
    pub fn parts(&self) -> impl Iterator<Item = &TreePlan> {
        std::iter::once(&self.kernels).chain(self.merges.iter().map(|merge| &merge.kernels))
    }

    /// Returns the merged modes of each merge, counted from 1, as `1+2`.
    pub fn merged(&self) -> Vec<String> {
        self.merges.iter().map(|merge| joined(&merge.modes)).collect()
    }

    /// Returns the columns of each panel of the factors, as `32 + 18`, unless they are stored whole.
    pub fn panels_typed(&self) -> Option<String> {
        (self.panels.len() > 1).then(|| listed(&self.panels))
    }

    /// Returns what `step` computes for each panel of the factors.
    pub fn problems(&self, step: &Step) -> impl Iterator<Item = Problem> {
        self.panels.iter().map(|&width| at_rank(&step.problem, width))
    }

    /// Returns every step with a name for what it computes.
    pub fn steps(&self) -> impl Iterator<Item = (String, &Step)> {
        let outer = self.groups.iter().zip(&self.kernels.steps).map(|(group, step)| {
            let name = match group.as_slice() {
                [mode] => format!("mode {}", mode + 1),
                modes => format!("partial of modes {}", joined(modes)),
            };
            (name, step)
        });
        let inner = self.merges.iter().flat_map(|merge| {
            let one = |mode: &usize| format!("mode {}", mode + 1);
            let all = format!("product of modes {}", joined(&merge.modes));
            merge.modes.iter().map(one).chain([all]).zip(&merge.kernels.steps)
        });
        outer.chain(inner)
    }
}

/// Writes modes counted from 1, joined by `+`.
pub(super) fn joined(modes: &[usize]) -> String {
    let words: Vec<String> = modes.iter().map(|mode| (mode + 1).to_string()).collect();
    words.join("+")
}

impl fmt::Display for SweepPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(widths) = self.panels_typed() {
            let widest = self.panels[0];
            writeln!(
                f,
                "factors in panels of {widths} columns; schedules are for {widest}, costs for all:"
            )?;
        }
        if !self.merges.is_empty() {
            let groups: Vec<String> = self.groups.iter().map(|modes| joined(modes)).collect();
            writeln!(f, "over the modes {}:", groups.join(", "))?;
        }
        write!(f, "{}", self.kernels)?;
        for merge in &self.merges {
            let (modes, tuples) = (joined(&merge.modes), merge.tuples);
            let bytes = merge.matrix_bytes;
            writeln!(
                f,
                "merged modes {modes}: {tuples} tuples, a matrix of {bytes} bytes; the tuples are mode {}:",
                merge.modes.len() + 1
            )?;
            write!(f, "{}", merge.kernels)?;
        }
        let (seconds, plain) = (self.seconds(), self.plain_seconds);
        write!(f, "sweep: predicted {seconds:.2e} s")?;
        if !self.merges.is_empty() && plain.is_finite() {
            write!(f, ", without merging {plain:.2e} s")?;
        }
        write!(f, "; {} partitions of the modes considered", self.considered)?;
        self.alternatives.iter().try_for_each(|other| write!(f, "\n  {other}"))
    }
}
