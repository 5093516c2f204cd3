//! How much two CP models agree: the factor match score.
//!
//! ```text
//! FMS = 1/R * max over matchings s of
//!       sum_r (1 - |lambda_r - mu_s(r)| / max(lambda_r, mu_s(r))) * prod_n |cos(a_n,r , b_n,s(r))|
//! ```
//!
//! with `lambda`, `mu` the norms of the components.  One for equal models, whatever the order,
//! signs and scaling of their components (Acar, Dunlavy, Kolda, J. Chemometrics 25, 2011).  The
//! best matching is found exactly (Hungarian method), not greedily.

use decompose_formats::Value;
use ndarray::Array2;

use crate::linalg;
use crate::model::CpModel;

/// Returns the factor match score of two models; `None` if their ranks or extents differ.
///
/// Time `O(sum I_n * R^2 + R^3)`.
pub fn factor_match_score<V: Value>(a: &CpModel<V>, b: &CpModel<V>) -> Option<f64> {
    if a.rank() != b.rank() || a.extents() != b.extents() {
        return None;
    }
    let rank = a.rank();
    let mut similarity = Array2::from_elem((rank, rank), 1.0);
    let mut norms = [a, b].map(|model| model.weights().iter().map(|w| w.abs()).collect::<Vec<_>>());
    for (left, right) in a.factors().iter().zip(b.factors()) {
        let cross = linalg::cross_gram(left, right);
        let lengths = [left, right].map(|m| linalg::gram(m).diag().mapv(f64::sqrt));
        similarity.indexed_iter_mut().for_each(|((r, s), similarity)| {
            let lengths = lengths[0][r] * lengths[1][s];
            *similarity *= if lengths > 0.0 { cross[(r, s)].abs() / lengths } else { 0.0 };
        });
        for (norms, lengths) in norms.iter_mut().zip(&lengths) {
            norms.iter_mut().zip(lengths).for_each(|(norm, length)| *norm *= length);
        }
    }
    similarity.indexed_iter_mut().for_each(|((r, s), similarity)| {
        let (p, q) = (norms[0][r], norms[1][s]);
        *similarity *= if p == q { 1.0 } else { 1.0 - (p - q).abs() / p.max(q) };
    });
    Some(best_matching(&similarity) / rank as f64)
}

/// Returns the largest sum of entries of the square `gain`, one from each row and column: the
/// Hungarian method with potentials, shortest augmenting path by row.  Time `O(R^3)`.
fn best_matching(gain: &Array2<f64>) -> f64 {
    let n = gain.nrows();
    // Column 0 and row 0 stand for "none"; `row_of[j]` is the row matched to column j.
    let (mut row_potential, mut col_potential) = (vec![0.0; n + 1], vec![0.0; n + 1]);
    let mut row_of = vec![0_usize; n + 1];
    for row in 1..=n {
        let mut way = vec![0_usize; n + 1];
        let mut slack = vec![f64::INFINITY; n + 1];
        let mut done = vec![false; n + 1];
        let mut column = 0;
        row_of[0] = row;
        while row_of[column] != 0 {
            done[column] = true;
            let current = row_of[column];
            let (mut delta, mut next) = (f64::INFINITY, 0);
            for j in (1..=n).filter(|&j| !done[j]) {
                let cost = -gain[(current - 1, j - 1)];
                let reduced = cost - row_potential[current] - col_potential[j];
                if reduced < slack[j] {
                    (slack[j], way[j]) = (reduced, column);
                }
                if slack[j] < delta {
                    (delta, next) = (slack[j], j);
                }
            }
            for j in 0..=n {
                if done[j] {
                    row_potential[row_of[j]] += delta;
                    col_potential[j] -= delta;
                } else {
                    slack[j] -= delta;
                }
            }
            column = next;
        }
        while column != 0 {
            let previous = way[column];
            row_of[column] = row_of[previous];
            column = previous;
        }
    }
    (1..=n).map(|j| gain[(row_of[j] - 1, j - 1)]).sum()
}

#[cfg(test)]
mod tests {
    use ndarray::array;

    use super::*;
    use crate::init;

    #[test]
    fn the_best_matching_beats_the_greedy_one() {
        let gain = array![[0.9, 0.8, 0.0], [0.8, 0.1, 0.0], [0.0, 0.0, 0.3]];
        assert!((best_matching(&gain) - 1.9).abs() < 1e-15);
        assert_eq!(best_matching(&array![[0.5]]), 0.5);
    }

    #[test]
    fn order_sign_and_scale_do_not_matter() {
        let factors = init::random::<f64>(&[6, 5, 4], 3, 1).unwrap();
        let mut other = init::random::<f64>(&[6, 5, 4], 3, 1).unwrap();
        for (mode, matrix) in other.iter_mut().enumerate() {
            for i in 0..matrix.rows() {
                matrix.row_mut(i).rotate_left(1);
                let scale = [-1.0, -4.0, 0.5][mode];
                matrix.row_mut(i).iter_mut().for_each(|x| *x *= scale);
            }
        }
        let a = CpModel::new(vec![1.0, 2.0, 3.0], factors).unwrap();
        let b = CpModel::new(vec![1.0, 1.5, 0.5], other).unwrap();
        assert!((factor_match_score(&a, &b).unwrap() - 1.0).abs() < 1e-12);
        let c = CpModel::new(vec![1.0; 3], init::random(&[6, 5, 4], 3, 2).unwrap()).unwrap();
        let score = factor_match_score(&a, &c).unwrap();
        assert!((0.0..0.99).contains(&score), "{score}");
        let d = CpModel::new(vec![1.0; 2], init::random(&[6, 5, 4], 2, 2).unwrap()).unwrap();
        assert_eq!(factor_match_score(&a, &d), None);
    }
}
