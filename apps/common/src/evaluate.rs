//! The values of a model at given coordinates, by a scheduled kernel.
//!
//! ```text
//! CP      S(i,j,k) = X(i,j,k) * A1(i,r) * A2(j,r) * A3(k,r)                   TTTP
//! Tucker  S(i,j,k) = X(i,j,k) * G(r,s,t) * U1(i,r) * U2(j,s) * U3(k,t)
//! train   S(i,j,k) = X(i,j,k) * G1(i,a) * G2(a,j,b) * G3(b,k)
//! ```
//!
//! with ones for `X`.  The output has the pattern of the coordinates: nothing of the size of the
//! tensor's box is formed.

use std::sync::Arc;

use decompose_core::autoschedule::{SearchLimits, default_scheduler, storages};
use decompose_core::contract::{Contraction, Request};
use decompose_core::cost::Machine;
use decompose_core::einsum::Expr;
use decompose_core::error::CoreError;
use decompose_core::kernels;
use decompose_core::runtime::Toolchain;
use decompose_core::schedule::Format;
use decompose_core::sweep::TreeLayout;
use decompose_formats::{Array, Coo, Csf, DenseTensor, Ints, Matrix, ModeOrder, PatternCounts};
use ndarray::Axis;

use crate::error::CommonError;
use crate::model::{CpModel, Model};

/// Returns the values of `model` at `coords`, one array of coordinates a mode, in their order;
/// coordinates may repeat.
///
/// Time `O(nnz R)` for CP, `O(nnz r^2)` or less for trains, with a sort of the coordinates; memory
/// twice the list and a copy of the model as the kernel reads it.
///
/// # Errors
///
/// [`CommonError::Format`] if a coordinate is not below its extent or there is no memory;
/// [`CommonError::Core`] if there is no schedule.
pub fn values_at(
    model: &Model<f64>,
    coords: Vec<Ints>,
    toolchain: &Toolchain,
) -> Result<Vec<f64>, CommonError> {
    let count = coords.first().map_or(0, Ints::len);
    // The entries carry their numbers through the sort.
    let numbers: Vec<f64> = (0..count).map(|entry| entry as f64).collect();
    let mut list = Coo::new(model.extents(), coords, numbers)?;
    if let Model::Tt(train) = model {
        list = list.permute_modes(train.order())?;
    }
    let (expr, operands) = parts(model)?;
    let counts = PatternCounts::of(&list);
    let shapes: Vec<Vec<u64>> = std::iter::once(Vec::new())
        .chain(operands.iter().map(|o| o.shape().iter().map(|&n| n as u64).collect()))
        .collect();
    let request = Request::new(expr, 0, &counts, &shapes)?;
    let natural = TreeLayout::new(ModeOrder::natural(list.order()), 1);
    let problem = request.problem(&natural);
    let modes = &request.expr.inputs[0].indices;
    let limits = SearchLimits::one_of_many(problem.expr.inputs.len());
    let machine = Machine::here();
    let found =
        default_scheduler().search_storages(&problem, &storages(&problem), machine, &limits)?;
    let best = &found.candidates[0];
    let stored = best.storage.operands.first().map(|(_, order)| order);
    let stored = stored.ok_or_else(|| CoreError::Internal("a list that is not stored".into()))?;
    let order = mode_order(stored, modes)?;
    list.sort(&order)?;
    let (extents, coords, numbers) = list.into_parts();
    let ones: Array<f64> = vec![1.0; count].into();
    let tree = Csf::build(Coo::new(extents, coords, ones)?, &order)?.fuse(stored.fused());
    let (posed, schedule) = (best.problem(&problem), &best.candidate.schedule);
    let mut contraction = Contraction::build(&posed, schedule, Arc::new(tree), toolchain)?;
    let packed = operands.into_iter().enumerate().map(|(at, o)| contraction.pack(at, &o));
    let packed: Vec<Matrix<f64>> = packed.collect::<Result<_, CoreError>>()?;
    let mut output = contraction.output()?;
    contraction.run(&packed.iter().collect::<Vec<_>>(), &mut output)?;
    let mut values = vec![0.0; count];
    for (value, number) in output.view().iter().zip(numbers.iter()) {
        values[*number as usize] = *value;
    }
    Ok(values)
}

/// Returns the bytes that [`values_at`] works in for `count` coordinates, beside these: their numbers, ones, the
/// upper levels of a tree, the kernel's result and the values in their order, or before these the pairs of a
/// sort; and the model, as it is handed to the kernel and as the kernel reads it.  Saturates.
pub fn values_bytes(model: &Model<f64>, count: usize) -> u64 {
    const ENTRY: u64 = 4 * 8 + 4;
    (count as u64).saturating_mul(ENTRY).saturating_add(model_bytes(model).saturating_mul(2))
}

/// Returns the bytes of the numbers of a model.
fn model_bytes(model: &Model<f64>) -> u64 {
    let factors = |factors: &[Matrix<f64>]| {
        factors.iter().map(|factor| factor.as_slice().len()).sum::<usize>()
    };
    let numbers = match model {
        Model::Cp(model) => factors(model.factors()),
        Model::Tucker(model) => model.core().len() + factors(model.factors()),
        Model::Tt(model) => model.cores().iter().map(|core| core.len()).sum(),
    };
    numbers as u64 * 8
}

/// The kernel of a model and its dense operands.
fn parts(model: &Model<f64>) -> Result<(Expr, Vec<DenseTensor<f64>>), CommonError> {
    Ok(match model {
        Model::Cp(model) => (kernels::tttp(model.factors().len()), weighted(model)),
        Model::Tucker(model) => {
            let factors = model.factors().iter().map(|factor| factor.view().to_owned().into_dyn());
            let operands = std::iter::once(model.core().clone()).chain(factors).collect();
            (kernels::tucker_values(model.factors().len()), operands)
        }
        Model::Tt(model) => {
            let last = model.cores().len() - 1;
            let cores = model.cores().iter().enumerate().map(|(k, core)| {
                let mut core = core.clone().into_dyn();
                // Kernels know no bonds at the ends.
                if k == last {
                    core.index_axis_inplace(Axis(2), 0);
                }
                if k == 0 {
                    core.index_axis_inplace(Axis(0), 0);
                }
                core
            });
            (kernels::train_values(last + 1), cores.collect())
        }
    })
}

/// The factors of a CP model, the weights within the first.
fn weighted(model: &CpModel<f64>) -> Vec<DenseTensor<f64>> {
    let mut factors: Vec<_> =
        model.factors().iter().map(|factor| factor.view().to_owned().into_dyn()).collect();
    for mut row in factors[0].lanes_mut(Axis(1)) {
        row.iter_mut().zip(model.weights()).for_each(|(x, weight)| *x *= weight);
    }
    factors
}

fn mode_order(
    stored: &Format,
    modes: &[decompose_core::einsum::Index],
) -> Result<ModeOrder, CoreError> {
    let found = stored.levels().iter().map(|level| modes.iter().position(|mode| mode == level));
    let found: Option<Vec<usize>> = found.collect();
    let order = found.and_then(ModeOrder::new);
    order.ok_or_else(|| CoreError::Internal("levels of other modes".into()))
}

#[cfg(test)]
mod tests {
    use ndarray::{Array3, ArrayD, IxDyn};

    use super::*;
    use crate::init;
    use crate::model::{TtModel, TuckerModel};
    use crate::rng::MatrixRng;

    const EXTENTS: [u64; 3] = [5, 6, 4];

    fn number(stream: u64, place: usize) -> f64 {
        MatrixRng::new(7, stream).uniform(place as u64, 0) - 0.4
    }

    fn models() -> Vec<Model<f64>> {
        let factors = |ranks: [usize; 3]| -> Vec<Matrix<f64>> {
            let one =
                |(n, &rank): (usize, &usize)| init::random(&EXTENTS, rank, 3).unwrap().remove(n);
            ranks.iter().enumerate().map(one).collect()
        };
        let cp = CpModel::new(vec![2.0, -0.5, 3.0], factors([3; 3])).unwrap();
        let core = ArrayD::from_shape_fn(IxDyn(&[2, 3, 1]), |at| number(1, at[0] * 3 + at[1]));
        let tucker = TuckerModel::new(core, factors([2, 3, 1])).unwrap();
        let core = |shape, stream| {
            Array3::from_shape_fn(shape, |(a, i, b)| number(stream, (a * 9 + i) * 9 + b))
        };
        let order = ModeOrder::new(vec![2, 0, 1]).unwrap();
        let cores = vec![core((1, 4, 2), 2), core((2, 5, 3), 3), core((3, 6, 1), 4)];
        vec![Model::Cp(cp), Model::Tucker(tucker), Model::Tt(TtModel::new(cores, order).unwrap())]
    }

    /// The value of a model at a cell, by its definition.
    fn oracle(model: &Model<f64>, at: [usize; 3]) -> f64 {
        match model {
            Model::Cp(model) => {
                let term = |r: usize| -> f64 {
                    (0..3).map(|n| model.factors()[n].row(at[n])[r]).product::<f64>()
                };
                model.weights().iter().enumerate().map(|(r, weight)| weight * term(r)).sum()
            }
            Model::Tucker(model) => {
                let entry = |(place, core): (IxDyn, &f64)| {
                    core * (0..3).map(|n| model.factors()[n].row(at[n])[place[n]]).product::<f64>()
                };
                model.core().indexed_iter().map(entry).sum()
            }
            Model::Tt(model) => {
                let modes = model.order().modes();
                let row = model.cores().iter().zip(modes).fold(vec![1.0], |row, (core, &mode)| {
                    let (left, _, right) = core.dim();
                    let sum = |b| (0..left).map(|a| row[a] * core[(a, at[mode], b)]).sum();
                    (0..right).map(sum).collect()
                });
                row[0]
            }
        }
    }

    #[test]
    fn values_and_norms_are_those_of_the_definition() {
        for model in models() {
            // Unsorted, with one cell twice.
            let cells: Vec<[usize; 3]> =
                (0..60).map(|n| [n * 7 % 5, n * 11 % 6, n * 3 % 4]).collect();
            let coords = (0..3)
                .map(|m| cells.iter().map(|at| at[m] as u32).collect::<Vec<u32>>().into())
                .collect();
            for toolchain in [Toolchain::detect(), Toolchain::Interpreter("a test".into())] {
                let coords: &Vec<Ints> = &coords;
                let found = values_at(&model, coords.clone(), &toolchain);
                for (found, at) in found.unwrap().iter().zip(&cells) {
                    let want = oracle(&model, *at);
                    assert!(
                        (found - want).abs() < 1e-13,
                        "{:?} {at:?}: {found} {want}",
                        model.kind()
                    );
                }
            }
            let cells = (0..120).map(|n| oracle(&model, [n / 24, n / 4 % 6, n % 4]));
            let norm: f64 = cells.map(|x| x * x).sum();
            assert!((model.norm_squared() / norm - 1.0).abs() < 1e-12, "{:?}", model.kind());
        }
    }

    #[test]
    fn coordinates_outside_are_refused() {
        let coords = vec![vec![5_u32].into(), vec![0_u32].into(), vec![0_u32].into()];
        let error = values_at(&models()[0], coords, &Toolchain::Interpreter("a test".into()));
        assert!(error.unwrap_err().to_string().contains("index 6 in mode 1"));
    }
}
