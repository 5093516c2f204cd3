//! How alike two orders are.

/// Returns Spearman's rank correlation; `None` for fewer than three points or equal values only.
pub(crate) fn rank_correlation(points: &[(f64, f64)]) -> Option<f64> {
    let x = ranks(&points.iter().map(|point| point.0).collect::<Vec<_>>());
    let y = ranks(&points.iter().map(|point| point.1).collect::<Vec<_>>());
    let mean = (points.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| -> f64 {
        a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let spread = (product(&x, &x) * product(&y, &y)).sqrt();
    (points.len() > 2 && spread > 0.0).then(|| product(&x, &y) / spread)
}

/// Returns the rank of each value from 0; equal values share the mean of their ranks.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut done = 0;
    for equal in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = done as f64 + (equal.len() as f64 - 1.0) / 2.0;
        equal.iter().for_each(|at| ranks[*at] = rank);
        done += equal.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::rank_correlation;
    use super::ranks;

    #[test]
    fn ranks_share_ties() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [2.5, 0.0, 2.5, 1.0]);
    }

    #[test]
    fn monotone_pairs_correlate_fully() {
        let points = [(1.0, 10.0), (2.0, 500.0), (9.0, 501.0)];
        assert_eq!(rank_correlation(&points), Some(1.0));
        assert_eq!(rank_correlation(&points[..2]), None);
    }
}
