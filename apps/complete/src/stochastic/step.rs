//! The steps of one task: a block of entries with the rows that they touch.

use decompose_core::error::CoreError;
use decompose_core::kernels::MAX_ORDER;
use decompose_core::runtime::{StepBlock, StepList, StepNumbers, Steps};
use decompose_formats::{Matrix, simd};

/// Elements of a row that are handled together: a vector register of the widest kind.
pub(super) const LANES: usize = 8;

/// Elements handled together.
type Lanes = [f64; LANES];

/// What the steps of a pass have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassRule<'a> {
    /// The length of a step: a gradient is multiplied by this.
    pub(crate) step: f64,
    /// Added to the value of the model.
    pub(crate) offset: f64,
    /// By mode, the ridge of the objective `loss + ridge * |A|^2`: an entry bears its share, one
    /// over the entries of its row.
    pub(crate) ridge: &'a [f64],
    /// By mode, 1 for each column that is updated and 0 for one that stays.
    pub(crate) free: &'a [Vec<f64>],
    /// By mode, the least value of an element: 0 where it must not be negative.
    pub(crate) least: &'a [f64],
}

/// The derivative of the loss by the model's value.
#[derive(Clone, Copy)]
pub(crate) enum Slope<'a> {
    /// That of `(x - m)^2`, compiled.
    Squares(&'a Steps),
    /// Any other, of the entry `x` and the model's value `m`.
    Of(&'a (dyn Fn(f64, f64) -> f64 + Sync)),
}

/// The entries of a block and the rows of each mode's part.
pub(super) struct Task<'a> {
    pub(super) list: &'a StepList,
    /// The entry to begin with; the pass goes round.
    pub(super) start: usize,
    pub(super) factors: Vec<&'a mut [f64]>,
    pub(super) shares: Vec<&'a [f64]>,
}

/// Takes a step at every entry of `task`; `free` marks the columns of each mode, padded.
///
/// # Errors
///
/// If the compiled loop was made for another shape.
pub(super) fn visit(
    task: Task<'_>,
    rule: &PassRule<'_>,
    free: &[Matrix<f64>],
    slope: Slope<'_>,
) -> Result<(), CoreError> {
    let free: Vec<&[f64]> = free.iter().map(Matrix::as_slice).collect();
    match slope {
        Slope::Squares(steps) => visit_compiled(task, rule, &free, steps),
        Slope::Of(derivative) => {
            visit_plain(task, rule, &free, derivative);
            Ok(())
        }
    }
}

fn visit_compiled(
    mut task: Task<'_>,
    rule: &PassRule<'_>,
    free: &[&[f64]],
    steps: &Steps,
) -> Result<(), CoreError> {
    let PassRule { step, offset, ridge, least, .. } = *rule;
    let numbers = StepNumbers { step, offset, ridge, least };
    for range in [task.start..task.list.len(), 0..task.start] {
        let factors = task.factors.iter_mut().map(|factor| &mut **factor).collect();
        let (list, shares) = (task.list, task.shares.clone());
        steps.run(StepBlock { list, range, factors, shares, free: free.to_vec() }, &numbers)?;
    }
    Ok(())
}

fn visit_plain(
    mut task: Task<'_>,
    rule: &PassRule<'_>,
    free: &[&[f64]],
    derivative: &(dyn Fn(f64, f64) -> f64 + Sync),
) {
    let stride = free.first().map_or(LANES, |free| free.len());
    let order = task.factors.len();
    let task = &mut task;
    simd::run(|| match order {
        // The usual orders have loops of constant length.
        3 => steps::<3>(task, rule, free, stride, derivative),
        4 => steps::<4>(task, rule, free, stride, derivative),
        _ => steps::<MAX_ORDER>(task, rule, free, stride, derivative),
    });
}

#[inline(always)]
fn steps<const MOST: usize>(
    task: &mut Task<'_>,
    rule: &PassRule<'_>,
    free: &[&[f64]],
    stride: usize,
    derivative: impl Fn(f64, f64) -> f64,
) {
    let order = if MOST == MAX_ORDER { task.factors.len() } else { MOST };
    let Task { list, start, factors, shares } = task;
    let (rows, values) = (list.rows(), list.values());
    let mut at = [0_usize; MOST];
    let mut keep = [0.0; MOST];
    for entry in (*start..values.len()).chain(0..*start) {
        let coords = &rows[entry * order..][..order];
        for n in 0..order {
            let row = coords[n] as usize;
            at[n] = row * stride;
            keep[n] = 2.0 * rule.ridge[n] * shares[n][row] * rule.step;
        }
        let mut sums = [0.0; LANES];
        for chunk in (0..stride).step_by(LANES) {
            let mut product = lanes(factors[0], at[0] + chunk);
            for n in 1..order {
                product = times(product, lanes(factors[n], at[n] + chunk));
            }
            (0..LANES).for_each(|l| sums[l] += product[l]);
        }
        let slope = derivative(values[entry], total(sums) + rule.offset) * rule.step;
        for chunk in (0..stride).step_by(LANES) {
            let mut old = [[0.0; LANES]; MOST];
            // after[n]: the product of the rows of the modes after n.
            let mut after = [[1.0; LANES]; MOST];
            for n in (0..order).rev() {
                old[n] = lanes(factors[n], at[n] + chunk);
                if n > 0 {
                    after[n - 1] = times(after[n], old[n]);
                }
            }
            let mut before = [1.0; LANES];
            for n in 0..order {
                let others = times(before, after[n]);
                before = times(before, old[n]);
                let free = lanes(free[n], chunk);
                let to = &mut factors[n][at[n] + chunk..][..LANES];
                for l in 0..LANES {
                    let change = slope * others[l] + keep[n] * old[n][l];
                    let new = old[n][l] - free[l] * change;
                    to[l] = if new > rule.least[n] { new } else { rule.least[n] };
                }
            }
        }
    }
}

#[inline(always)]
fn lanes(row: &[f64], from: usize) -> Lanes {
    let mut lanes = [0.0; LANES];
    lanes.copy_from_slice(&row[from..from + LANES]);
    lanes
}

#[inline(always)]
fn times(a: Lanes, b: Lanes) -> Lanes {
    let mut product = [0.0; LANES];
    (0..LANES).for_each(|l| product[l] = a[l] * b[l]);
    product
}

/// Adds by halves.
#[inline(always)]
fn total(sums: Lanes) -> f64 {
    let four = [sums[0] + sums[4], sums[1] + sums[5], sums[2] + sums[6], sums[3] + sums[7]];
    (four[0] + four[2]) + (four[1] + four[3])
}
