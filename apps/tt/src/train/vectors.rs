//! The singular vectors of the tensor's unfoldings: what a train says of each mode by itself.

use decompose_common::CommonError;
use decompose_common::linalg::{Guess, leading, leading_of};
use ndarray::{Array2, Array3, ArrayView2, s};

use crate::train::{Train, core_of, right_matrix};

/// Up to this extent the Gram matrix of an unfolding is formed.
const FORMED: usize = 512;
/// Squares of singular values below this share of the largest are rounding.
const NOISE: f64 = 1e-13;
/// Products with a block of vectors that the iteration needs, about.
const PRODUCTS: f64 = 30.0;
/// Columns iterated beyond those asked for.
const EXTRA_COLUMNS: usize = 8;

impl Train {
    /// Returns for each core, in train order, the leading left singular vectors of the tensor's unfolding of
    /// its mode: one a column, at most `most` and those that are not rounding, the largest entry of each above
    /// zero.
    ///
    /// While all other cores are orthogonal, the unfolding of a core has the same vectors as that of the
    /// tensor.  Time as [`Train::mode_vectors_work`].
    ///
    /// # Errors
    ///
    /// [`CommonError::NotFinite`] if a core holds an infinite or undefined number.
    pub fn mode_vectors(&self, most: usize) -> Result<Vec<Array2<f64>>, CommonError> {
        let mut train = self.clone();
        // Vectors have no unit.
        train.take_unit();
        train.centre_first();
        let mut vectors = Vec::with_capacity(train.order());
        for k in 0..train.order() {
            vectors.push(leading_vectors(unfolding(&train.cores[k]).view(), most)?);
            if k + 1 < train.order() {
                let rest = train.make_left_orthogonal(k);
                let (_, extent, right) = train.cores[k + 1].dim();
                let moved = rest.dot(&right_matrix(train.cores[k + 1].view()));
                train.cores[k + 1] = core_of(moved, (rest.nrows(), extent, right));
            }
        }
        Ok(vectors)
    }

    /// Returns about how many multiply-adds [`Train::mode_vectors`] takes.
    pub fn mode_vectors_work(&self, most: usize) -> f64 {
        let work = |core: &Array3<f64>| {
            let (left, extent, right) = core.dim();
            let [left, rows, right] = [left, extent, right].map(|n| n as f64);
            let iterated = match extent <= FORMED {
                true => rows,
                false => 2.0 * PRODUCTS * (most + EXTRA_COLUMNS) as f64,
            };
            rows * left * right * (left + right + iterated)
        };
        self.cores().iter().map(work).sum()
    }
}

/// Returns a core as a matrix of its extent times both ranks.
fn unfolding(core: &Array3<f64>) -> Array2<f64> {
    let (left, extent, right) = core.dim();
    let mut unfolding = Array2::zeros((extent, left * right));
    for row in 0..left {
        let columns = row * right..(row + 1) * right;
        unfolding.slice_mut(s![.., columns]).assign(&core.slice(s![row, .., ..]));
    }
    unfolding
}

/// Returns at most `most` leading left singular vectors.
fn leading_vectors(a: ArrayView2<'_, f64>, most: usize) -> Result<Array2<f64>, CommonError> {
    let (rows, columns) = a.dim();
    let count = most.min(rows).min(columns);
    let found = match rows <= FORMED {
        true => leading_of(a.dot(&a.t()).view(), count, Guess::Random(0))?,
        false => {
            let mut product = |q: ArrayView2<'_, f64>| Ok::<_, CommonError>(a.dot(&a.t().dot(&q)));
            leading(rows, count, Guess::Random(0), &mut product)?
        }
    };
    // Of a core of lower rank than its size, what is left is rounding.
    let largest = found.values.first().copied().unwrap_or(0.0);
    let count = found.values.iter().take_while(|&&value| value > NOISE * largest).count();
    let mut vectors = found.vectors.slice_move(s![.., ..count]);
    for mut vector in vectors.columns_mut() {
        let largest =
            vector.iter().copied().fold(0.0_f64, |a, b| if b.abs() > a.abs() { b } else { a });
        vector *= if largest < 0.0 { -1.0 } else { 1.0 };
    }
    Ok(vectors)
}

#[cfg(test)]
mod tests {
    use decompose_common::linalg::svd;
    use ndarray::Array2;

    use super::*;

    /// Returns the unfolding of the first mode of a train of three cores, entry by entry.
    fn first_unfolding(train: &Train) -> Array2<f64> {
        let [a, b, c] = train.cores() else { panic!("three cores") };
        let (n, m, l) = (a.dim().1, b.dim().1, c.dim().1);
        Array2::from_shape_fn((n, m * l), |(i, jk)| {
            let (j, k) = (jk / l, jk % l);
            let ab = a.slice(s![.., i, ..]).dot(&b.slice(s![.., j, ..]));
            ab.dot(&c.slice(s![.., k, ..]))[[0, 0]]
        })
    }

    #[test]
    fn vectors_of_a_mode_are_those_of_the_tensor() {
        for extent in [6, 600] {
            let train = Train::random(&[extent, 5, 4], &[3, 2], 7);
            let (u, _, _) = svd(first_unfolding(&train).view()).unwrap();
            let found = train.mode_vectors(2).unwrap();
            assert_eq!(found[0].dim(), (extent as usize, 2));
            for (mine, exact) in found[0].columns().into_iter().zip(u.columns()) {
                assert!((mine.dot(&exact).abs() - 1.0).abs() < 1e-9, "{}", mine.dot(&exact));
            }
            let dims: Vec<_> = found.iter().skip(1).map(|vectors| vectors.dim()).collect();
            assert_eq!(dims, [(5, 2), (4, 2)]);
        }
    }
}
