//! The singular vectors of the tensor's unfoldings: what a train says of each mode by itself.

use decompose_common::CommonError;
use decompose_common::linalg::{Guess, leading, leading_of, qr_r};
use decompose_formats::Unit;
use ndarray::{Array2, Array3, ArrayView2, CowArray, Ix3, s};

use crate::train::{Train, core_of, left_matrix, right_matrix, row_major};

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
    /// The unfolding of `L G R` has the vectors of the tensor's if what is before core `G` is `Q L` and what is
    /// behind it `R Q'`, with orthonormal `Q`.  No core but one is copied.  Time as
    /// [`Train::mode_vectors_work`], memory as [`Train::mode_vectors_bytes`].
    ///
    /// # Errors
    ///
    /// [`CommonError::NotFinite`] if a core holds an infinite or undefined number.
    pub fn mode_vectors(&self, most: usize) -> Result<Vec<Array2<f64>>, CommonError> {
        let mut behind = vec![Array2::ones((1, 1))];
        for core in self.cores.iter().skip(1).rev() {
            let rest = &behind[behind.len() - 1];
            let (left, extent, _) = core.dim();
            let moved = left_matrix(ordinary(core).view()).dot(rest);
            let moved = shaped(moved, (left, extent * rest.ncols()));
            behind.push(without_unit(qr_r(moved.t()).reversed_axes()));
        }
        let mut before = Array2::ones((1, 1));
        let mut vectors = Vec::with_capacity(self.order());
        for (core, rest) in self.cores.iter().zip(behind.into_iter().rev()) {
            let (rows, (_, extent, right)) = (before.nrows(), core.dim());
            let moved = before.dot(&right_matrix(ordinary(core).view()));
            let moved = shaped(moved, (rows * extent, right));
            if vectors.len() + 1 < self.order() {
                before = without_unit(qr_r(moved.view()));
            }
            let whole = moved.dot(&rest);
            drop((moved, rest));
            let columns = whole.len() / (rows * extent);
            let unfolded = unfolding(&core_of(whole, (rows, extent, columns)));
            vectors.push(leading_vectors(unfolded.view(), most)?);
        }
        Ok(vectors)
    }

    /// Returns the bytes that [`Train::mode_vectors`] takes at most.
    pub fn mode_vectors_bytes(&self, most: usize) -> u64 {
        let shapes: Vec<[u64; 3]> =
            self.cores.iter().map(|core| [0, 1, 2].map(|axis| core.shape()[axis] as u64)).collect();
        // The columns of what is behind each core, and the numbers of all of it.
        let (mut behind, mut kept) = (vec![1], 1);
        let mut most_in_step = 0;
        for &[left, extent, _] in shapes.iter().skip(1).rev() {
            let columns = extent * behind[behind.len() - 1];
            let size = left.min(columns);
            // The product, its decomposition, and two copies of the triangle.
            most_in_step = most_in_step.max(kept + 2 * left * columns + 2 * left * size);
            behind.push(size);
            kept += left * size;
        }
        let mut before = 1;
        for &[_, extent, right] in &shapes {
            let columns = behind.pop().unwrap_or(1);
            let (moved, whole) = (before * extent * right, before * extent * columns);
            let next = right.min(before * extent);
            let step = (2 * moved + 2 * next * right).max(moved + whole);
            let found = match extent <= FORMED as u64 {
                true => 3 * extent * extent,
                false => 4 * extent * (most + EXTRA_COLUMNS) as u64,
            };
            most_in_step = most_in_step.max(kept + step.max(2 * whole).max(whole + found));
            kept -= right * columns;
            kept += next * right;
            before = next;
        }
        let vectors: u64 = shapes.iter().map(|[_, extent, _]| extent * most as u64).sum();
        8 * (most_in_step + vectors)
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

/// Returns the core, times a power of two if its numbers are far from one: vectors have no unit.
fn ordinary(core: &Array3<f64>) -> CowArray<'_, f64, Ix3> {
    let largest = core.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    match Unit::of::<f64>(largest) {
        Unit::ONE => core.into(),
        unit => core.mapv(|x| unit.divide(x)).into(),
    }
}

/// Returns the matrix, row-major, times a power of two that leaves its largest entry between one and two.
fn without_unit(matrix: Array2<f64>) -> Array2<f64> {
    let largest = matrix.iter().fold(0.0_f64, |largest, x| largest.max(x.abs()));
    let unit = Unit::below(largest);
    let mut matrix = row_major(matrix);
    matrix.mapv_inplace(|x| unit.divide(x));
    matrix
}

/// Returns the numbers of a matrix, row by row, in another shape.
fn shaped(matrix: Array2<f64>, shape: (usize, usize)) -> Array2<f64> {
    row_major(matrix).into_shape_with_order(shape).expect("as many numbers")
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

    #[test]
    fn no_core_but_one_is_copied() {
        // The first core and what is made of it, all triangles, the Gram matrix three times, the vectors.
        let train = Train::random(&[4, 3, 2], &[2, 2], 1);
        assert_eq!(train.mode_vectors_bytes(2), 8 * ((1 + 4 + 4) + 8 + 3 * 16 + (4 + 3 + 2) * 2));
        let train = Train::random(&[60, 50, 40, 30], &[60, 400, 30], 1);
        let (largest, triangle) = (60 * 50 * 400, 400 * 400);
        let numbers = train.mode_vectors_bytes(8) as usize / 8;
        let others = 2 * 60 * 60 + 30 * 30 + 180 * 8;
        assert!((2 * largest..2 * largest + 3 * triangle + others).contains(&numbers), "{numbers}");
    }
}
