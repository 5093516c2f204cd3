//! Moving the centre: cores made orthogonal one after the other, the train left as it is.

use decompose_common::linalg::qr;

use crate::train::{Train, core_of, left_matrix, right_matrix};

impl Train {
    /// Makes core `k` right-orthogonal; what it carried goes into its left neighbour.
    ///
    /// Time `O(I_k r^3)`.
    ///
    /// # Panics
    ///
    /// If there is no left neighbour.
    pub fn shift_left(&mut self, k: usize) {
        let rest = self.make_right_orthogonal(k);
        let previous = &self.cores[k - 1];
        let (left, extent, _) = previous.dim();
        let moved = left_matrix(previous.view()).dot(&rest);
        self.cores[k - 1] = core_of(moved, (left, extent, rest.ncols()));
    }

    /// Makes all cores but the first right-orthogonal.  Time `O(sum I_k r^3)`.
    pub fn centre_first(&mut self) {
        (1..self.order()).rev().for_each(|k| self.shift_left(k));
    }

    /// Makes core `k` left-orthogonal and returns the matrix that is left over: the train is the
    /// same if it multiplies the right neighbour.
    pub(crate) fn make_left_orthogonal(&mut self, k: usize) -> ndarray::Array2<f64> {
        let (left, extent, _) = self.cores[k].dim();
        let (q, rest) = qr(left_matrix(self.cores[k].view()));
        let rank = q.ncols();
        self.cores[k] = core_of(q, (left, extent, rank));
        rest
    }

    /// Makes core `k` right-orthogonal and returns the matrix that is left over: the train is the
    /// same if the left neighbour is multiplied by it.
    pub(crate) fn make_right_orthogonal(&mut self, k: usize) -> ndarray::Array2<f64> {
        let (_, extent, right) = self.cores[k].dim();
        let (q, rest) = qr(right_matrix(self.cores[k].view()).t());
        let rank = q.ncols();
        self.cores[k] = core_of(q.reversed_axes(), (rank, extent, right));
        rest.reversed_axes()
    }

    /// Returns how far the cores before `centre` are from left- and those behind it from
    /// right-orthogonal: the largest entry of `Q^T Q - 1`.  Time `O(sum I_k r^3)`.
    pub fn orthogonality_defect(&self, centre: usize) -> f64 {
        let defect = |k: usize| {
            let core = self.cores[k].view();
            let gram = match k < centre {
                true => left_matrix(core).t().dot(&left_matrix(core)),
                false => right_matrix(core).dot(&right_matrix(core).t()),
            };
            let off = |((a, b), x): ((usize, usize), &f64)| (x - f64::from(u8::from(a == b))).abs();
            gram.indexed_iter().map(off).fold(0.0, f64::max)
        };
        (0..self.order()).filter(|&k| k != centre).map(defect).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop_assert, proptest};

    use crate::bonds;
    use crate::train::Train;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Moving the centre changes no value, and cores are orthonormal to 1e-12.
        #[test]
        fn the_gauge_is_no_part_of_the_tensor(
            extents in proptest::collection::vec(1_u64..6, 2..6), rank in 1_usize..7, seed: u64
        ) {
            let ranks = bonds::possible(&vec![rank; extents.len() - 1], &extents);
            let mut train = Train::random(&extents, &ranks, seed);
            let before = train.head(extents.len());
            train.centre_first();
            prop_assert!(train.orthogonality_defect(0) < 1e-12);
            let after = train.head(extents.len());
            let size = before.iter().fold(1e-300_f64, |m, x| m.max(x.abs()));
            let off = before.iter().zip(&after).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            prop_assert!(off < 1e-12 * size.max(1.0), "{}", off);
        }
    }
}
