//! What the kernels of a plan compute, and the plan in words.

use std::fmt;

use decompose_core::sweep::{Step, TreeLayout, TtmcMerge};

use crate::plan::TuckerPlan;

/// What a kernel of a plan computes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The update of this mode, from the tensor or from a partial product.
    Mode(usize),
    /// The core of a nonnegative model.
    Core,
    /// The partial product that these modes share.
    Partial(Vec<usize>),
}

impl TuckerPlan {
    /// Returns the predicted seconds of a sweep's kernels.
    pub fn seconds(&self) -> f64 {
        self.kernels.seconds() + self.merges.iter().map(TtmcMerge::seconds).sum::<f64>()
    }

    /// Returns the bytes of all trees.
    pub fn tree_bytes(&self) -> u64 {
        self.kernels.tree_bytes + self.merges.iter().map(TtmcMerge::tree_bytes).sum::<u64>()
    }

    /// Returns the bytes of private copies of outputs, and of partial products.
    pub fn side_bytes(&self) -> u64 {
        self.kernels.side_bytes + self.merges.iter().map(TtmcMerge::side_bytes).sum::<u64>()
    }

    /// Returns every step, in the order of [`Engine::kernels`](crate::Engine::kernels), with what it
    /// computes and the tree it runs on.
    pub fn steps(&self) -> impl Iterator<Item = (Role, &Step, &TreeLayout)> {
        let order = self.forming.len();
        let direct = self.kernels.steps.iter().map(move |step| {
            let core = order == 0 && step.mode + 1 == self.kernels.steps.len();
            let role = if core { Role::Core } else { Role::Mode(step.mode) };
            (role, step, &self.kernels.trees[step.tree])
        });
        let merged = self.merges.iter().flat_map(|merge| {
            merge.steps().map(|(mode, step)| match mode {
                Some(mode) => (Role::Mode(mode), step, &merge.updates.trees[step.tree]),
                None => (Role::Partial(merge.modes.clone()), step, &merge.partial.trees[step.tree]),
            })
        });
        direct.chain(merged)
    }

    /// Returns the merged modes of each merge, counted from 1, as `1+2`.
    pub fn merged(&self) -> Vec<String> {
        self.merges.iter().map(|merge| Role::Partial(merge.modes.clone()).modes()).collect()
    }
}

impl Role {
    /// Writes the modes, counted from 1, joined by `+`.
    fn modes(&self) -> String {
        let words = |modes: &[usize]| {
            modes.iter().map(|mode| (mode + 1).to_string()).collect::<Vec<_>>().join("+")
        };
        match self {
            Role::Mode(mode) => words(&[*mode]),
            Role::Partial(modes) => words(modes),
            Role::Core => String::new(),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Mode(_) => write!(f, "mode {}", self.modes()),
            Role::Core => write!(f, "the core"),
            Role::Partial(_) => write!(f, "partial of modes {}", self.modes()),
        }
    }
}

impl fmt::Display for TuckerPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kernels)?;
        for (merge, modes) in self.merges.iter().zip(self.merged()) {
            let (tuples, bytes) = (merge.tuples, merge.matrix_bytes);
            writeln!(
                f,
                "merged modes {modes}: {tuples} tuples, partial products of {bytes} bytes, made by"
            )?;
            write!(f, "{}", merge.partial)?;
            writeln!(f, "and used by")?;
            write!(f, "{}", merge.updates)?;
        }
        write!(f, "sweep: predicted {:.2e} s", self.seconds())?;
        if !self.merges.is_empty() {
            write!(f, ", without merging {:.2e} s", self.plain_seconds)?;
        }
        write!(f, "; {} partitions of the modes considered", self.considered)
    }
}
