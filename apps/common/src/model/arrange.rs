//! The normal form of a model: unit columns, components by falling weight, fixed signs.

use decompose_formats::{Matrix, Value};
use rayon::prelude::{ParallelIterator, ParallelSlice, ParallelSliceMut};

use crate::model::CpModel;

/// Rows summed by one task; fixed, so that sums do not depend on the number of threads.
const TASK_ROWS: usize = 4096;

/// What [`CpModel::arrange`] does beyond scaling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// Sorts the components by falling weight and fixes their signs.
    Sorted,
    /// Leaves order and signs as computed.
    AsComputed,
}

/// What is known of a column.
#[derive(Clone, Copy, Default)]
struct ColumnOrder {
    square: f64,
    /// The entry largest in magnitude, the first of several.
    extreme: f64,
}

impl<V: Value> CpModel<V> {
    /// Scales every column to 2-norm 1, the norms going into the weights, and arranges.
    ///
    /// Signs: in each component, the factors whose largest entry in magnitude is negative are
    /// flipped two by two, so that the component stays the same; if their number is odd, that of
    /// the last mode keeps its sign.  Equal weights keep their order; a zero column stays zero,
    /// with weight 0.  Two passes over the factors, time `O(sum I_n * R)`.
    pub fn arrange(&mut self, arrangement: Arrangement) {
        let columns: Vec<Vec<ColumnOrder>> = self.factors.iter().map(columns).collect();
        for (r, weight) in self.weights.iter_mut().enumerate() {
            *weight *= columns.iter().map(|mode| mode[r].square.sqrt()).product::<f64>();
        }
        let mut order: Vec<usize> = (0..self.rank()).collect();
        let mut scales: Vec<Vec<f64>> =
            columns.iter().map(|mode| mode.iter().map(inverse_norm).collect()).collect();
        if arrangement == Arrangement::Sorted {
            order.sort_by(|&a, &b| self.weights[b].total_cmp(&self.weights[a]));
            fix_signs(&columns, &mut scales);
        }
        for (factor, scales) in self.factors.iter_mut().zip(&scales) {
            rewrite(factor, &order, scales);
        }
        self.weights = order.iter().map(|&r| self.weights[r]).collect();
    }
}

fn inverse_norm(column: &ColumnOrder) -> f64 {
    if column.square > 0.0 { column.square.sqrt().recip() } else { 1.0 }
}

/// Negates pairs of scales of one component where the extreme entry is negative.
fn fix_signs(columns: &[Vec<ColumnOrder>], scales: &mut [Vec<f64>]) {
    for r in 0..columns[0].len() {
        let negative: Vec<usize> =
            (0..columns.len()).filter(|&mode| columns[mode][r].extreme < 0.0).collect();
        for &mode in &negative[..negative.len() / 2 * 2] {
            scales[mode][r] = -scales[mode][r];
        }
    }
}

fn columns<V: Value>(factor: &Matrix<V>) -> Vec<ColumnOrder> {
    let (stride, rank) = (factor.stride(), factor.cols());
    let tasks: Vec<Vec<ColumnOrder>> = factor
        .as_slice()
        .par_chunks(TASK_ROWS * stride)
        .map(|rows| {
            let mut columns = vec![ColumnOrder::default(); rank];
            for row in rows.chunks_exact(stride) {
                for (column, value) in columns.iter_mut().zip(row) {
                    let value = value.to_f64();
                    column.square += value * value;
                    if value.abs() > column.extreme.abs() {
                        column.extreme = value;
                    }
                }
            }
            columns
        })
        .collect();
    let mut total = vec![ColumnOrder::default(); rank];
    for task in &tasks {
        for (total, part) in total.iter_mut().zip(task) {
            total.square += part.square;
            if part.extreme.abs() > total.extreme.abs() {
                total.extreme = part.extreme;
            }
        }
    }
    total
}

/// Scales the columns, then puts column `order[k]` at place `k`.
fn rewrite<V: Value>(factor: &mut Matrix<V>, order: &[usize], scales: &[f64]) {
    let stride = factor.stride();
    factor.as_mut_slice().par_chunks_mut(TASK_ROWS * stride).for_each(|rows| {
        let mut old = vec![V::default(); order.len()];
        for row in rows.chunks_exact_mut(stride) {
            old.copy_from_slice(&row[..order.len()]);
            for (to, &from) in row.iter_mut().zip(order) {
                *to = V::from_f64(old[from].to_f64() * scales[from]);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(rows: &[&[f64]]) -> Matrix<f64> {
        let mut matrix = Matrix::zeros(rows.len(), rows[0].len()).unwrap();
        for (i, row) in rows.iter().enumerate() {
            matrix.row_mut(i).copy_from_slice(row);
        }
        matrix
    }

    #[test]
    fn columns_are_scaled_sorted_and_signed() {
        let a = matrix(&[&[3.0, 0.0, -4.0], &[-4.0, 0.0, 3.0]]);
        let b = matrix(&[&[0.0, 1.0, -2.0], &[-1.0, 1.0, 0.0]]);
        let mut model = CpModel::new(vec![1.0, 7.0, 1.0], vec![a, b]).unwrap();
        model.arrange(Arrangement::Sorted);
        assert_eq!(model.weights(), [10.0, 5.0, 0.0]);
        assert_eq!(model.factors()[0].row(0), [0.8, -0.6000000000000001, 0.0]);
        assert_eq!(model.factors()[1].row(0)[0], 1.0);
        assert_eq!(model.factors()[1].row(1)[1], 1.0);
    }

    #[test]
    fn an_odd_sign_stays_with_the_last_mode() {
        let modes = || vec![matrix(&[&[-1.0]]), matrix(&[&[-1.0]]), matrix(&[&[-1.0]])];
        let mut model = CpModel::new(vec![1.0], modes()).unwrap();
        model.arrange(Arrangement::Sorted);
        let signs: Vec<f64> = model.factors().iter().map(|factor| factor.row(0)[0]).collect();
        assert_eq!(signs, [1.0, 1.0, -1.0]);
        let mut model = CpModel::new(vec![1.0], modes()).unwrap();
        model.arrange(Arrangement::AsComputed);
        assert_eq!(model.factors()[0].row(0), [-1.0]);
    }
}
