//! Rows of a factor, each solved by itself.
//!
//! ```text
//! N(i) = sum over entries of slice i of w w^T,   h(i) = sum of x w,
//! w = the other modes' rows multiplied,          A(i,:) = (N(i) + reg I)^-1 h(i)
//! ```
//!
//! Rows are worked on in groups of about equal work, in parallel; a slice of very many entries is
//! cut into pieces whose sums are added in order.  How slices are grouped and cut does not depend on
//! the number of threads, so neither does the result.

use std::ops::Range;

use decompose_common::SolverError;
use decompose_common::linalg::{descend_nonneg, solve_spd};
use decompose_core::runtime::{SliceEntries, SliceList, Slices};
use decompose_formats::{Coo, Matrix};
use rayon::prelude::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use crate::loss::Range as Sign;

/// Entries of a piece of a slice, and about those of a group.
const PIECE: usize = 1 << 14;
/// What solving for a row counts as, in entries.
const SOLVE: usize = 16;

/// The slices of a mode.
pub(crate) struct SliceRows {
    list: SliceList,
    groups: Vec<Range<usize>>,
}

/// How rows are solved.
pub(crate) struct RowRule {
    /// The columns to solve for.
    free: Vec<usize>,
    /// The columns that stay.
    fixed: Vec<usize>,
    reg: f64,
    sign: Sign,
}

impl RowRule {
    /// Solves for those of `cols` columns that do not stay.
    pub(crate) fn new(
        cols: usize,
        stays: impl Fn(&usize) -> bool,
        reg: f64,
        sign: Sign,
    ) -> RowRule {
        let (fixed, free) = (0..cols).partition(stays);
        RowRule { free, fixed, reg, sign }
    }
}

impl SliceRows {
    /// Lists the slices of `mode`.
    ///
    /// # Errors
    ///
    /// If there are too many entries or rows.
    pub(crate) fn new(tensor: &Coo<f64>, mode: usize) -> Result<SliceRows, SolverError> {
        let list = SliceList::new(tensor, mode)?;
        let (mut groups, mut first, mut work) = (Vec::new(), 0, 0);
        for row in 0..list.len() {
            work += list.slice(row).len() + SOLVE;
            if work >= PIECE || row + 1 == list.len() {
                groups.push(first..row + 1);
                (first, work) = (row + 1, 0);
            }
        }
        Ok(SliceRows { list, groups })
    }

    /// Returns the entries.
    pub(crate) fn list(&self) -> &SliceList {
        &self.list
    }

    /// Solves for all rows of `target`, with `values` in the place of the entries'; `others` are the
    /// factors of the other modes.  Rows without entries become zero, as the ridge wants them.
    ///
    /// # Errors
    ///
    /// If there is no memory, or a system cannot be solved.
    pub(crate) fn solve(
        &self,
        kernel: &Slices,
        values: &[f64],
        others: &[&Matrix<f64>],
        rule: &RowRule,
        target: &mut Matrix<f64>,
    ) -> Result<(), SolverError> {
        let (stride, cols) = (target.stride(), target.cols());
        let mut rest = target.as_mut_slice();
        let mut work = Vec::with_capacity(self.groups.len());
        for group in &self.groups {
            let (rows, after) = rest.split_at_mut(group.len() * stride);
            rest = after;
            work.push((group, rows));
        }
        work.into_par_iter().try_for_each(|(group, rows)| {
            let mut system = System::new(cols)?;
            for (row, target) in group.clone().zip(rows.chunks_exact_mut(stride)) {
                if self.list.slice(row).is_empty() {
                    rule.free.iter().for_each(|&column| target[column] = 0.0);
                    continue;
                }
                self.sum(kernel, values, row, others, &mut system)?;
                system.solve(rule, target)?;
            }
            Ok(())
        })
    }

    /// Computes the system of one row.
    fn sum(
        &self,
        kernel: &Slices,
        values: &[f64],
        row: usize,
        others: &[&Matrix<f64>],
        system: &mut System,
    ) -> Result<(), SolverError> {
        let entries = self.list.slice(row);
        let (normal, right) = (&mut system.normal, &mut system.right);
        let slice = |entries| SliceEntries { list: &self.list, values, entries };
        if entries.len() <= 2 * PIECE {
            return Ok(kernel.run(slice(entries), others, normal, right)?);
        }
        let cols = right.cols();
        let starts: Vec<usize> = entries.clone().step_by(PIECE).collect();
        let piece = |&start: &usize| -> Result<System, SolverError> {
            let mut part = System::new(cols)?;
            let entries = start..entries.end.min(start + PIECE);
            let (normal, right) = (&mut part.normal, &mut part.right);
            kernel.run(slice(entries), others, normal, right)?;
            Ok(part)
        };
        let parts: Vec<System> = starts.par_iter().map(piece).collect::<Result<_, _>>()?;
        add_up(normal, parts.iter().map(|part| &part.normal));
        add_up(right, parts.iter().map(|part| &part.right));
        Ok(())
    }
}

/// Writes the sum of `parts`, added in their order.
fn add_up<'a>(to: &mut Matrix<f64>, parts: impl Iterator<Item = &'a Matrix<f64>>) {
    to.as_mut_slice().fill(0.0);
    for part in parts {
        let pairs = to.as_mut_slice().iter_mut().zip(part.as_slice());
        pairs.for_each(|(to, part)| *to += part);
    }
}

/// The system of a row, and memory to solve it in.
struct System {
    normal: Matrix<f64>,
    right: Matrix<f64>,
    a: Vec<f64>,
    b: Vec<f64>,
    x: Vec<f64>,
    work: Vec<f64>,
}

impl System {
    fn new(cols: usize) -> Result<System, SolverError> {
        let right = Matrix::zeros(1, cols)?;
        let normal = Matrix::zeros(right.stride(), cols)?;
        let [a, b, x, work] = [const { Vec::new() }; 4];
        Ok(System { normal, right, a, b, x, work })
    }

    fn solve(&mut self, rule: &RowRule, row: &mut [f64]) -> Result<(), SolverError> {
        let System { normal, right, a, b, x, work } = self;
        a.clear();
        b.clear();
        for (at, &column) in rule.free.iter().enumerate() {
            let of = normal.row(column);
            a.extend(rule.free.iter().map(|&other| of[other]));
            a[at * rule.free.len() + at] += rule.reg;
            let known: f64 = rule.fixed.iter().map(|&fixed| of[fixed] * row[fixed]).sum();
            b.push(right.row(0)[column] - known);
        }
        match rule.sign {
            Sign::All => {
                solve_spd(a, b, work)?;
                rule.free.iter().zip(&*b).for_each(|(&column, &b)| row[column] = b);
            }
            Sign::NonNegative => {
                x.clear();
                x.extend(rule.free.iter().map(|&column| row[column].max(0.0)));
                descend_nonneg(a, b, x);
                rule.free.iter().zip(&*x).for_each(|(&column, &x)| row[column] = x);
            }
        }
        Ok(())
    }
}
