//! A plan put to work.

use decompose_formats::panels::{listed, row_bytes};
use decompose_formats::{Coo, Csf, ModeOrder, Panels, Value};

use crate::error::CoreError;
use crate::runtime::{Kernel, Toolchain, Workload};
use crate::sweep::kernels::{BuildReport, TreeKernels, timed};
use crate::sweep::mode_groups::Held;
use crate::sweep::{MttkrpSweep, SweepPlan, entries_of};

/// The trees and kernels of a sweep, ready to run.
pub struct Engine<V: Value> {
    extents: Vec<u64>,
    norm_squared: f64,
    /// The columns of each panel in which factors are stored.
    columns: Vec<usize>,
    /// The modes of each mode of `outer`.
    groups: Vec<Vec<usize>>,
    /// The kernels of the tensor over the groups.
    outer: TreeKernels<V>,
    merges: Vec<MergedModes<V>>,
}

/// Modes that are taken as one, at work.
struct MergedModes<V: Value> {
    modes: Vec<usize>,
    /// Its place among the groups.
    group: usize,
    /// The kernels of the merged modes, and last that of the tuples.
    kernels: TreeKernels<V>,
    /// One row a tuple.
    matrix: Panels<V>,
    held: Held,
}

impl<V: Value> Engine<V> {
    /// Merges the modes that `plan` merges, builds the trees from `coo`, which must be sorted
    /// without duplicates, and the kernels; the list is freed on the way.
    ///
    /// # Errors
    ///
    /// If the plan was made for another tensor, or memory runs out.
    pub fn build(
        coo: Coo<V>,
        plan: &SweepPlan,
        toolchain: &Toolchain,
    ) -> Result<(Engine<V>, BuildReport), CoreError> {
        let (extents, norm_squared) = (coo.extents().to_vec(), coo.norm_squared());
        let columns = &plan.panels;
        let steps = plan.parts().map(|part| part.steps.len()).sum::<usize>();
        let (kernels, seconds) = (steps * columns.len(), plan.seconds());
        let toolchain = &toolchain.for_kernels(Workload { kernels, order: extents.len(), seconds });
        let (split, seconds) = timed(|| split(coo, plan));
        let (coo, tuples) = split?;
        let mut report = BuildReport { build_seconds: seconds, ..BuildReport::default() };
        let mut merges = Vec::with_capacity(tuples.len());
        for (tuples, merge) in tuples.into_iter().zip(&plan.merges) {
            let matrix = Panels::zeros(tuples.nnz(), columns)?;
            report.side_bytes += (tuples.nnz() * row_bytes(columns, V::BYTES)) as u64;
            let (kernels, built) = TreeKernels::build(tuples, &merge.kernels, columns, toolchain)?;
            report = report.and(built);
            let group = plan.groups.iter().position(|modes| *modes == merge.modes);
            let unknown =
                || CoreError::Internal(format!("a merge of {:?} in no group", merge.modes));
            let group = group.ok_or_else(unknown)?;
            let (modes, held) = (merge.modes.clone(), Held::Nothing);
            merges.push(MergedModes { modes, group, kernels, matrix, held });
        }
        let (outer, built) = TreeKernels::build(coo, &plan.kernels, columns, toolchain)?;
        let (columns, groups) = (columns.clone(), plan.groups.clone());
        Ok((Engine { extents, norm_squared, columns, groups, outer, merges }, report.and(built)))
    }

    /// Returns the kernels, in the order of [`SweepPlan::steps`].
    pub fn kernels(&self) -> impl Iterator<Item = &Kernel> {
        let merges = self.merges.iter().flat_map(|merge| merge.kernels.kernels());
        self.outer.kernels().chain(merges)
    }

    /// Returns the seconds of every run of each kernel so far, in the same order.
    pub fn seconds(&self) -> impl Iterator<Item = &[f64]> {
        let merges = self.merges.iter().flat_map(|merge| merge.kernels.seconds());
        self.outer.seconds().chain(merges)
    }

    /// Returns the tree of each kernel, in the order of [`SweepPlan::steps`].
    pub fn trees(&self) -> impl Iterator<Item = &Csf<V>> {
        let merges = self.merges.iter().flat_map(|merge| merge.kernels.trees());
        self.outer.trees().chain(merges)
    }

    fn check(&self, mode: usize, factors: &[Panels<V>]) -> Result<(), CoreError> {
        if mode >= self.extents.len() || factors.len() != self.extents.len() {
            let (order, count) = (self.extents.len(), factors.len());
            let why = format!("{count} factors, mode {} of a tensor of {order}", mode + 1);
            return Err(CoreError::Operand { operand: "mode".into(), why });
        }
        for (m, (factor, &extent)) in factors.iter().zip(&self.extents).enumerate() {
            let widths: Vec<usize> = factor.widths().collect();
            if factor.rows() as u64 != extent || widths != self.columns {
                let operand = format!("factor {}", m + 1);
                let (rows, have, want) = (factor.rows(), listed(&widths), listed(&self.columns));
                let why = format!("{rows} x {have} where {extent} x {want} is expected");
                return Err(CoreError::Operand { operand, why });
            }
        }
        Ok(())
    }

    /// Runs the outer kernel of `group` into `result`, every other group's factor being at hand.
    fn outer_product(
        &mut self,
        group: usize,
        factors: &[Panels<V>],
        result: &mut Panels<V>,
    ) -> Result<(), CoreError> {
        for merge in self.merges.iter_mut().filter(|merge| merge.group != group) {
            merge.multiply(factors)?;
        }
        let factor = |(at, modes): (usize, &Vec<usize>)| match modes.as_slice() {
            _ if at == group => None,
            [mode] => Some(&factors[*mode]),
            _ => self.merges.iter().find(|merge| merge.group == at).map(|merge| &merge.matrix),
        };
        let others: Vec<&Panels<V>> = self.groups.iter().enumerate().filter_map(factor).collect();
        self.outer.product(group, &others, result)
    }

    /// Makes the partial product of merge `at` unless it is held.
    fn make_partial(&mut self, at: usize, factors: &[Panels<V>]) -> Result<(), CoreError> {
        if self.merges[at].held == Held::Partial {
            return Ok(());
        }
        self.merges[at].held = Held::Nothing;
        let mut matrix = std::mem::replace(&mut self.merges[at].matrix, Panels::zeros(0, &[])?);
        let done = self.outer_product(self.merges[at].group, factors, &mut matrix);
        self.merges[at].matrix = matrix;
        done?;
        self.merges[at].held = Held::Partial;
        Ok(())
    }

    /// Computes the MTTKRP of `mode` into `result`; the factor of that mode is not read.
    fn product(
        &mut self,
        mode: usize,
        factors: &[Panels<V>],
        result: &mut Panels<V>,
    ) -> Result<(), CoreError> {
        match self.merges.iter().position(|merge| merge.modes.contains(&mode)) {
            Some(own) => {
                self.make_partial(own, factors)?;
                self.merges[own].update(mode, factors, result)
            }
            None => {
                let group = self.groups.iter().position(|modes| *modes == [mode]);
                let group = group.ok_or_else(|| no_mode(mode))?;
                self.outer_product(group, factors, result)
            }
        }
    }
}

impl<V: Value> MergedModes<V> {
    /// Makes the matrix the product of the merged modes' factors, unless it is.
    fn multiply(&mut self, factors: &[Panels<V>]) -> Result<(), CoreError> {
        if self.held == Held::Product {
            return Ok(());
        }
        self.held = Held::Nothing;
        let others: Vec<&Panels<V>> = self.modes.iter().map(|&mode| &factors[mode]).collect();
        self.kernels.product(self.modes.len(), &others, &mut self.matrix)?;
        self.held = Held::Product;
        Ok(())
    }

    /// Computes the MTTKRP of one of the merged modes from the partial product.
    fn update(
        &mut self,
        mode: usize,
        factors: &[Panels<V>],
        result: &mut Panels<V>,
    ) -> Result<(), CoreError> {
        let others = self.modes.iter().filter(|&&other| other != mode);
        let others: Vec<&Panels<V>> =
            others.map(|&other| &factors[other]).chain([&self.matrix]).collect();
        let at = self.modes.iter().position(|&other| other == mode);
        let at = at.ok_or_else(|| no_mode(mode))?;
        self.kernels.product(at, &others, result)
    }
}

fn no_mode(mode: usize) -> CoreError {
    CoreError::Internal(format!("the plan has no mode {}", mode + 1))
}

/// Splits the merged modes off: what is left, and the tuples of each merge.
fn split<V: Value>(mut coo: Coo<V>, plan: &SweepPlan) -> Result<(Coo<V>, Vec<Coo<V>>), CoreError> {
    let mut columns: Vec<Vec<usize>> = (0..coo.order()).map(|mode| vec![mode]).collect();
    let mut tuples = Vec::with_capacity(plan.merges.len());
    for merge in &plan.merges {
        let inside = |at: &usize| merge.modes.contains(&columns[*at][0]);
        let (first, rest): (Vec<usize>, Vec<usize>) = (0..columns.len()).partition(inside);
        let order = ModeOrder::new([first.as_slice(), &rest].concat());
        let order = order.ok_or_else(|| CoreError::Internal("modes that cannot merge".into()))?;
        let parts = Csf::build(coo, &order)?.merge(first.len())?;
        columns = [merge.modes.clone()]
            .into_iter()
            .chain(rest.iter().map(|&at| columns[at].clone()))
            .collect();
        coo = parts.rest;
        tuples.push(parts.tuples);
    }
    if columns != plan.groups {
        return Err(CoreError::Internal("groups in another order than planned".into()));
    }
    Ok((coo, tuples))
}

impl<V: Value> MttkrpSweep<V> for Engine<V> {
    fn extents(&self) -> &[u64] {
        &self.extents
    }

    fn norm_squared(&self) -> f64 {
        self.norm_squared
    }

    fn panels(&self, _rank: usize) -> Vec<usize> {
        self.columns.clone()
    }

    fn mttkrp(&mut self, mode: usize, factors: &mut [Panels<V>]) -> Result<(), CoreError> {
        self.check(mode, factors)?;
        let mut result = std::mem::replace(&mut factors[mode], Panels::zeros(0, &[])?);
        let done = self.product(mode, factors, &mut result);
        factors[mode] = result;
        for merge in &mut self.merges {
            merge.held = merge.held.after(mode, &merge.modes);
        }
        done
    }

    fn entries(&self) -> Result<Coo<V>, CoreError> {
        let merged = self.merges.iter().filter_map(|merge| {
            merge.kernels.trees().next().map(|tree| (merge.modes.as_slice(), tree))
        });
        let merged: Vec<_> = merged.collect();
        let tree = self.outer.trees().next();
        let tree = tree.ok_or_else(|| CoreError::Internal("a sweep without trees".into()))?;
        entries_of(tree, &self.extents, &self.groups, &merged)
    }

    fn forget(&mut self) {
        self.merges.iter_mut().for_each(|merge| merge.held = Held::Nothing);
    }
}
