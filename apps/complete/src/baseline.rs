//! Predictions without a model: what a model has to beat.

use decompose_formats::Coo;

use crate::config::Biases;
use crate::loss::Loss;
use crate::metrics::Scores;
use crate::scaling::EntryUnit;

/// A prediction from the training entries alone and its errors.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Baseline {
    /// What is predicted.
    pub name: String,
    /// Its errors on the training entries.
    pub train: Scores,
    /// Its errors on the validation entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub val: Option<Scores>,
    /// Its errors on the test entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test: Option<Scores>,
}

/// Predicts every entry by the mean of the training entries, and by the mean of those with the same
/// index in a mode (the mean of all where there is none), mode by mode.
///
/// Time `O(N nnz)` for a tensor of order N.
pub fn baselines(
    loss: Loss,
    train: &Coo<f64>,
    val: Option<&Coo<f64>>,
    test: Option<&Coo<f64>>,
) -> Vec<Baseline> {
    // Squares of large entries would overflow.
    let unit = EntryUnit::of(loss, train.values(), Biases::None);
    let (train, measured) = (&*unit.measured(train), unit.loss(loss));
    let parts = [val, test].map(|part| part.map(|part| unit.measured(part)));
    let global = train.sum() / train.nnz().max(1) as f64;
    let judge = |name: String, mean: &dyn Fn(&Coo<f64>, usize) -> f64| {
        let scores = |tensor: &Coo<f64>| {
            let means: Vec<f64> = (0..tensor.nnz()).map(|entry| mean(tensor, entry)).collect();
            unit.scores(loss, Scores::of_means(measured, tensor.values(), &means))
        };
        let [val, test] = parts.each_ref().map(|part| part.as_deref().map(scores));
        Baseline { name, train: scores(train), val, test }
    };
    let mut all = vec![judge("mean of all".into(), &|_, _| global)];
    for mode in 0..train.order() {
        let means = mode_means(train, mode, global);
        let mean = |tensor: &Coo<f64>, entry| means[tensor.coords(mode).get(entry) as usize];
        all.push(judge(format!("mean by mode {}", mode + 1), &mean));
    }
    all
}

/// The mean of each slice of a mode; `global` for an empty one.
fn mode_means(tensor: &Coo<f64>, mode: usize, global: f64) -> Vec<f64> {
    let mut sums = vec![(0.0, 0_u64); tensor.extents()[mode] as usize];
    for (row, &value) in tensor.coords(mode).iter().zip(tensor.values()) {
        let (sum, count) = &mut sums[row as usize];
        *sum += value;
        *count += 1;
    }
    let mean = |(sum, count): (f64, u64)| if count > 0 { sum / count as f64 } else { global };
    sums.into_iter().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use decompose_formats::Coo;

    use super::baselines;
    use crate::loss::Loss;

    #[test]
    fn slices_without_entries_take_the_mean_of_all() {
        let coords = |i: Vec<u32>, j: Vec<u32>| vec![i.into(), j.into()];
        let train = Coo::new(vec![3, 2], coords(vec![0, 0, 1], vec![0, 1, 0]), vec![1.0, 3.0, 5.0]);
        let test = Coo::new(vec![3, 2], coords(vec![0, 2], vec![0, 1]), vec![2.0, 4.0]).unwrap();
        let found = baselines(Loss::Gaussian, &train.unwrap(), None, Some(&test));
        let rmse: Vec<f64> = found.iter().map(|b| b.test.unwrap().rmse).collect();
        // Predictions: 3 and 3; 2 and 3; 3 and 3.
        for (found, expected) in rmse.iter().zip([1.0, 0.5_f64.sqrt(), 1.0]) {
            // Squares are of entries over their largest: rounding differs.
            assert!((found - expected).abs() < 1e-15 * 4.0, "{found} {expected}");
        }
        assert_eq!(rmse.len(), 3);
        assert!(found[0].val.is_none());
    }
}
