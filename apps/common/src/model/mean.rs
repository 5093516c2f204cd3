//! What a model says of indices that it does not have.

use decompose_formats::{Matrix, Value};
use ndarray::{Array3, Axis};

use crate::error::CommonError;
use crate::model::{CpModel, Model, TtModel, TuckerModel};

impl<V: Value> Model<V> {
    /// Returns the model with one more index at the end of every mode: the mean of the mode's others.
    ///
    /// A model is linear in the parameters of each index, so its value at the new index is the mean
    /// of its values at the indices of the mode, and at new indices in several modes the mean over
    /// all their combinations.  Indices whose parameters are all zero do not count: a fit knew
    /// nothing of them.
    ///
    /// # Errors
    ///
    /// [`CommonError::Format`] if there is no memory.
    pub fn with_means(self) -> Result<Model<V>, CommonError> {
        let all = |factors: Vec<Matrix<V>>| -> Result<Vec<Matrix<V>>, CommonError> {
            factors.iter().map(with_mean_row).collect()
        };
        Ok(match self {
            Model::Cp(model) => {
                let (weights, factors) = model.into_parts();
                Model::Cp(CpModel::new(weights, all(factors)?)?)
            }
            Model::Tucker(model) => {
                let (core, factors) = model.into_parts();
                Model::Tucker(TuckerModel::new(core, all(factors)?)?)
            }
            Model::Tt(model) => {
                let (cores, order) = model.into_parts();
                let cores = cores.iter().map(with_mean_slice).collect();
                Model::Tt(TtModel::new(cores, order)?)
            }
        })
    }
}

fn with_mean_row<V: Value>(factor: &Matrix<V>) -> Result<Matrix<V>, CommonError> {
    let (rows, cols) = (factor.rows(), factor.cols());
    let mut longer = Matrix::zeros(rows + 1, cols)?;
    for row in 0..rows {
        longer.row_mut(row).copy_from_slice(factor.row(row));
    }
    let mean = mean_row((0..rows).map(|row| factor.row(row).to_vec()), cols);
    longer.row_mut(rows).copy_from_slice(&mean);
    Ok(longer)
}

fn with_mean_slice<V: Value>(core: &Array3<V>) -> Array3<V> {
    let (left, extent, right) = core.dim();
    let slices = (0..extent).map(|i| core.index_axis(Axis(1), i).iter().copied().collect());
    let mean = mean_row(slices, left * right);
    Array3::from_shape_fn((left, extent + 1, right), |(l, i, r)| {
        if i < extent { core[[l, i, r]] } else { mean[l * right + r] }
    })
}

/// The mean of the rows that are not all zero.
fn mean_row<V: Value>(rows: impl Iterator<Item = Vec<V>>, cols: usize) -> Vec<V> {
    let (mut sums, mut count) = (vec![0.0; cols], 0_u64);
    for row in rows.filter(|row| row.iter().any(|&value| value != V::default())) {
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value.to_f64());
        count += 1;
    }
    sums.into_iter().map(|sum| V::from_f64(sum / count.max(1) as f64)).collect()
}

#[cfg(test)]
mod tests {
    use decompose_formats::ModeOrder;
    use ndarray::arr2;

    use super::*;

    #[test]
    fn new_indices_are_means_of_the_others() {
        let factor = |rows: &[[f64; 2]]| {
            let mut factor = Matrix::zeros(rows.len(), 2).unwrap();
            rows.iter().enumerate().for_each(|(at, row)| factor.row_mut(at).copy_from_slice(row));
            factor
        };
        // The third row of the first mode is that of an index that no fit has seen.
        let a = factor(&[[1.0, 2.0], [3.0, -1.0], [0.0, 0.0]]);
        let b = factor(&[[0.5, 1.0], [1.5, 2.0]]);
        let model = Model::Cp(CpModel::new(vec![2.0, 1.0], vec![a, b]).unwrap());
        let Model::Cp(longer) = model.with_means().unwrap() else { panic!("another kind") };
        assert_eq!(longer.extents(), [4, 3]);
        assert_eq!(longer.factors()[0].row(3), [2.0, 0.5]);
        assert_eq!(longer.factors()[1].row(2), [1.0, 1.5]);
        assert_eq!(longer.factors()[1].row(1), [1.5, 2.0]);
    }

    #[test]
    fn trains_and_cores_too() {
        let first = Array3::from_shape_fn((1, 2, 2), |(_, i, r)| (i * 4 + r) as f64 + 1.0);
        let last = Array3::from_shape_fn((2, 3, 1), |(r, i, _)| (i + 10 * r) as f64 + 1.0);
        let train = TtModel::new(vec![first.clone(), last], ModeOrder::natural(2)).unwrap();
        let Model::Tt(longer) = Model::Tt(train).with_means().unwrap() else { panic!("a train") };
        assert_eq!(longer.extents(), [3, 4]);
        assert_eq!(longer.cores()[0].slice(ndarray::s![.., ..2, ..]), first);
        // Means of 1, 5 and of 2, 6; of 1, 2, 3 and of 11, 12, 13.
        assert_eq!(longer.cores()[0].slice(ndarray::s![0, 2, ..]).to_vec(), [3.0, 4.0]);
        assert_eq!(longer.cores()[1].slice(ndarray::s![.., 3, 0]).to_vec(), [2.0, 12.0]);
        let mut factor = Matrix::zeros(2, 1).unwrap();
        factor.row_mut(0)[0] = 3.0;
        factor.row_mut(1)[0] = 5.0;
        let core = arr2(&[[2.0]]).into_dyn();
        let factors = vec![factor.try_clone().unwrap(), factor];
        let tucker = Model::Tucker(TuckerModel::new(core, factors).unwrap());
        let Model::Tucker(longer) = tucker.with_means().unwrap() else { panic!("another kind") };
        assert_eq!(longer.factors()[1].row(2), [4.0]);
    }
}
