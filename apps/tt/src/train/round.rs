//! Rounding: the smallest train near a given one.
//!
//! With the centre at core `k` the singular values of its `r_(k-1) I_k x r_k` matrix are those of
//! the tensor's unfolding at bond `k`.  Dropping those at the end costs their norm, whatever the
//! other bonds do, and the squares of `N - 1` such errors add up to at most the square of the
//! whole: `delta = eps / sqrt(N - 1) ||T||` a bond keeps a bound of `eps ||T||`.
//! Source: Oseledets 2011, algorithm 2 and theorem 2.2.

use decompose_common::CommonError;
use decompose_common::linalg::svd;
use decompose_formats::Unit;
use ndarray::{Array2, ArrayView1, Axis, s};

use crate::train::{Train, core_of, left_matrix, right_matrix};

/// How far a list of singular values is cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cut {
    /// The most values that are kept.
    pub max_rank: usize,
    /// The most that the norm of the values dropped may be, unless `max_rank` asks for more.
    pub tail: f64,
    /// This many are kept, of values that are not zero, even if `tail` would drop them.
    pub least: usize,
}

/// What is known of a bond.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Bond {
    /// The singular values of the unfolding, falling, before the cut.
    pub spectrum: Vec<f64>,
    /// How many were kept.
    pub rank: usize,
}

impl Bond {
    /// Returns the norm of the singular values that were dropped.
    pub fn dropped(&self) -> f64 {
        tail_norm(&self.spectrum, self.rank)
    }
}

impl Cut {
    /// Makes the cut of bond `bond` that keeps a train of `order` modes and norm `norm` within a
    /// relative error of `eps`.
    pub fn within(eps: f64, norm: f64, order: usize, max_rank: usize) -> Cut {
        let bonds = order.saturating_sub(1).max(1) as f64;
        Cut { max_rank, tail: eps / bonds.sqrt() * norm, least: 1 }
    }

    /// Makes the cut that keeps `max_rank` values and drops only zeros below that.
    pub fn at(max_rank: usize) -> Cut {
        Cut { max_rank, tail: 0.0, least: 1 }
    }

    /// Returns how many of `values`, falling, are kept: at least one, and none that is zero to
    /// `noise` times the largest.
    pub fn rank(&self, values: &[f64], noise: f64) -> usize {
        let floor = noise * values.first().copied().unwrap_or(0.0);
        let real = values.iter().take_while(|&&value| value > floor).count();
        let most = self.max_rank.min(real).max(1);
        let mut square = 0.0;
        let mut rank = values.len();
        while rank > 1 {
            square += values[rank - 1] * values[rank - 1];
            if square.sqrt() > self.tail {
                break;
            }
            rank -= 1;
        }
        rank.max(self.least).min(most)
    }
}

/// A train that was rounded.
#[derive(Clone, Debug)]
pub struct Rounding {
    /// The train, its centre at the last core.
    pub train: Train,
    /// What was found at each bond.
    pub bonds: Vec<Bond>,
}

impl Train {
    /// Rounds the train by one cut a bond.
    ///
    /// The error is at most the root of the sum of the squares of [`Bond::dropped`].  Time
    /// `O(sum I_k r^3)`.
    ///
    /// # Errors
    ///
    /// [`CommonError::NotFinite`] if a core holds an infinite or undefined number.
    ///
    /// # Panics
    ///
    /// If there is not one cut a bond.
    pub fn round(mut self, cuts: &[Cut]) -> Result<Rounding, CommonError> {
        assert_eq!(cuts.len() + 1, self.order(), "one cut a bond");
        let unit = self.take_unit();
        self.centre_first();
        let mut bonds = Vec::with_capacity(cuts.len());
        for (k, cut) in cuts.iter().enumerate() {
            let (left, extent, _) = self.cores[k].dim();
            let (u, values, vt) = svd(left_matrix(self.cores[k].view()))?;
            let values = values.to_vec();
            let cut = Cut { tail: unit.divide(cut.tail), ..*cut };
            let rank = cut.rank(&values, f64::EPSILON);
            let weights = ArrayView1::from(&values[..rank]).insert_axis(Axis(1));
            let kept = &vt.slice(s![..rank, ..]) * &weights;
            let next = &self.cores[k + 1];
            let (_, next_extent, right) = next.dim();
            let moved: Array2<f64> = kept.dot(&right_matrix(next.view()));
            self.cores[k] = core_of(u.slice(s![.., ..rank]).to_owned(), (left, extent, rank));
            self.cores[k + 1] = core_of(moved, (rank, next_extent, right));
            let spectrum = values.into_iter().map(|value| unit.multiply(value)).collect();
            bonds.push(Bond { spectrum, rank });
        }
        if let Some(centre) = self.cores.last_mut() {
            centre.mapv_inplace(|x| unit.multiply(x));
        }
        Ok(Rounding { train: self, bonds })
    }

    /// Returns the singular values of the tensor's unfolding at each bond, falling.
    ///
    /// Time `O(sum I_k r^3)`.
    ///
    /// # Errors
    ///
    /// [`CommonError::NotFinite`] if a core holds an infinite or undefined number.
    pub fn spectra(&self) -> Result<Vec<Vec<f64>>, CommonError> {
        let keep = Cut::at(usize::MAX);
        let rounding = self.clone().round(&vec![keep; self.order() - 1])?;
        Ok(rounding.bonds.into_iter().map(|bond| bond.spectrum).collect())
    }
}

/// Returns the norm of the values from number `rank` on.
pub(crate) fn tail_norm(values: &[f64], rank: usize) -> f64 {
    let dropped = &values[rank.min(values.len())..];
    let unit = Unit::of::<f64>(dropped.first().copied().unwrap_or(0.0));
    let square: f64 = dropped.iter().rev().map(|&x| unit.divide(x).powi(2)).sum();
    unit.multiply(square.sqrt())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{ProptestConfig, prop_assert, proptest};

    use super::*;
    use crate::bonds;

    #[test]
    fn cuts_keep_what_they_promise() {
        let values = [3.0, 2.0, 1.0, 1e-20];
        let rank = |tail, max_rank| Cut { max_rank, tail, least: 1 }.rank(&values, 1e-16);
        assert_eq!([rank(0.0, 9), rank(0.0, 2), rank(1.0, 9), rank(2.3, 9)], [3, 2, 2, 1]);
        assert_eq!([rank(99.0, 9), Cut::at(5).rank(&[0.0, 0.0], 0.0)], [1, 1]);
        let least = |least| Cut { max_rank: 9, tail: 99.0, least }.rank(&values, 1e-16);
        assert_eq!([least(2), least(8)], [2, 3]);
        let bond = Bond { spectrum: vec![5.0, 4.0, 3.0], rank: 1 };
        assert_eq!(bond.dropped(), 5.0);
    }

    #[test]
    fn a_sum_with_itself_rounds_back() {
        // Twice the same train side by side: every bond has double the rank it needs.
        let train = Train::random(&[4, 5, 6, 3], &[2, 3, 2], 3);
        let doubled = train.cores().iter().enumerate().map(|(k, core)| {
            let (left, extent, right) = core.dim();
            let (rows, cols) = (if k == 0 { 1 } else { 2 }, if k == 3 { 1 } else { 2 });
            let shape = (left * rows, extent, right * cols);
            ndarray::Array3::from_shape_fn(shape, |(a, i, b)| {
                let same = rows == 1 || cols == 1 || a / left == b / right;
                if same { core[(a % left, i, b % right)] } else { 0.0 }
            })
        });
        let doubled = Train::new(doubled.collect()).unwrap();
        assert_eq!(doubled.ranks(), [4, 6, 4]);
        let keep = Cut { max_rank: usize::MAX, tail: 1e-12, least: 1 };
        let rounded = doubled.clone().round(&[keep; 3]).unwrap().train;
        assert_eq!(rounded.ranks(), [2, 3, 2]);
        let (a, b) = (rounded.head(4), train.head(4) * 2.0);
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-12));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// The error of a rounding stays under the bound, and is what the bonds say it is at most.
        #[test]
        fn the_error_is_under_the_bound(
            extents in proptest::collection::vec(1_u64..6, 2..6), rank in 1_usize..7, seed: u64,
            eps in 0.01_f64..0.9
        ) {
            let ranks = bonds::possible(&vec![rank; extents.len() - 1], &extents);
            let train = Train::random(&extents, &ranks, seed);
            let norm = train.norm_squared().sqrt();
            let cut = Cut::within(eps, norm, extents.len(), usize::MAX);
            let rounded = train.clone().round(&vec![cut; ranks.len()]).unwrap();
            let (a, b) = (train.head(extents.len()), rounded.train.head(extents.len()));
            let error = (&a - &b).iter().map(|x| x * x).sum::<f64>().sqrt();
            prop_assert!(error <= eps * norm * (1.0 + 1e-12), "{} {}", error, eps * norm);
            let dropped = rounded.bonds.iter().map(|b| b.dropped().powi(2)).sum::<f64>().sqrt();
            prop_assert!(error <= dropped + 1e-12 * norm, "{} {}", error, dropped);
            prop_assert!(rounded.train.orthogonality_defect(ranks.len()) < 1e-12);
        }
    }
}
