//! How much memory a fit takes.
//!
//! ```text
//! tree of the training entries, with ones, the model's values, and slopes for gradients
//! trees of validation and test entries, with ones and the model's values
//! what the method keeps: lists of the entries by the slices of each mode, a second tree, vectors
//! the blocks of the model, their copies, and what the method makes of them
//! ```

use decompose_formats::dense::matrix_bytes;
use decompose_formats::narrow_ints::Width;

use crate::config::{Algorithm, Biases, CompleteConfig, ModelKind};
use crate::network::Network;

/// Bytes of a number.
const NUMBER: u64 = 8;
/// The most that an entry is sorted in.
const SORTING: u64 = 16;
/// Pairs of vectors that L-BFGS keeps, as vectors; and those of the line search.
const LBFGS_VECTORS: u64 = 2 * 10 + 6;

/// Returns the bytes of a fit to `entries` of a tensor of `extents`, training, validation and test entries, on
/// `threads` threads; the lists of the entries are not counted.  Saturates.
pub fn fit_bytes(
    extents: &[u64],
    entries: [usize; 3],
    config: &CompleteConfig,
    threads: usize,
) -> u64 {
    let order = extents.len() as u64;
    let [train, val, test] = entries.map(|count| count as u64);
    let widths: u64 = extents.iter().map(|&extent| Width::below(extent).bytes() as u64).sum();
    let tree = NUMBER + widths;
    let evaluated = tree + 2 * NUMBER;
    let (kept, vectors) = kept(order, tree, config);
    let begun = tree + SORTING;
    // The baselines predict every entry at the end.
    let fitted = evaluated + kept + NUMBER;
    let of_entries =
        train.saturating_mul(fitted.max(begun)).saturating_add((val + test) * evaluated);
    let blocks = block_bytes(extents, config).saturating_mul(3 + vectors);
    of_entries.saturating_add(blocks).saturating_add(system_bytes(config, order, threads))
}

/// Returns the bytes that the method keeps of training, validation and test entries, of the model's values at
/// them, which are made but not written yet, and of the means that judge it.
pub(crate) fn kept_bytes(extents: &[u64], entries: [usize; 3], config: &CompleteConfig) -> u64 {
    let widths: u64 = extents.iter().map(|&extent| Width::below(extent).bytes() as u64).sum();
    let (kept, _) = kept(extents.len() as u64, NUMBER + widths, config);
    let all: u64 = entries.iter().map(|&count| count as u64).sum();
    (entries[0] as u64).saturating_mul(kept + NUMBER).saturating_add(all.saturating_mul(NUMBER))
}

/// Returns the bytes that a method keeps of an entry, whose tree takes `tree` bytes, and its copies of the
/// model's blocks.
fn kept(order: u64, tree: u64, config: &CompleteConfig) -> (u64, u64) {
    // Normal equations list an entry with its place for each mode.
    let lists = order * (4 * order + NUMBER);
    let cp = matches!(config.model, ModelKind::Cp { .. });
    match config.algorithm {
        Algorithm::Als if cp => (lists, 0),
        Algorithm::Ccd => (tree + lists + 4 * NUMBER, 4),
        Algorithm::Sgd => (4 * order + 2 * NUMBER, 3),
        Algorithm::Adam => (NUMBER, 3),
        Algorithm::Lbfgs => (NUMBER, LBFGS_VECTORS.min(2 * config.max_epochs as u64 + 6)),
        Algorithm::Als | Algorithm::AlsCg => (2 * NUMBER, 3),
    }
}

/// Returns the bytes of the blocks of the model.
fn block_bytes(extents: &[u64], config: &CompleteConfig) -> u64 {
    let network = Network::new(&config.model, extents);
    let blocks = network.blocks().iter().map(|block| {
        let (rows, cols) = block.matrix();
        matrix_bytes(rows as u64, cols, size_of::<f64>())
    });
    blocks.fold(0, u64::saturating_add)
}

/// Returns the bytes of the normal equations of a row, one a thread.
fn system_bytes(config: &CompleteConfig, order: u64, threads: usize) -> u64 {
    let biases = if config.biases == Biases::Modes { order } else { 0 };
    let rank = match (&config.model, config.algorithm) {
        (ModelKind::Cp { rank }, Algorithm::Als) => *rank as u64,
        (ModelKind::Cp { rank }, Algorithm::Ccd) => (config.block.min(*rank)) as u64,
        _ => 0,
    };
    let rank = rank.saturating_add(biases);
    // The matrix, that of the free columns, and its factor.
    rank.saturating_mul(rank).saturating_mul(3 * NUMBER * threads as u64)
}

#[cfg(test)]
mod tests {
    use super::fit_bytes;
    use crate::config::{Algorithm, CompleteConfig, ModelKind};

    #[test]
    fn bytes_follow_entries_and_ranks() {
        let bytes = |algorithm, rank| {
            let config =
                CompleteConfig { algorithm, ..CompleteConfig::new(ModelKind::Cp { rank }) };
            fit_bytes(&[100, 90, 80], [10_000, 1000, 0], &config, 2)
        };
        // A tree of 8 + 3 x 2 bytes, ones and values; three lists of 20 bytes; means.
        let entries = 10_000 * (14 + 16 + 60 + 8) + 1000 * (14 + 16);
        let blocks = 3 * (100 + 90 + 80) * 2 * 8;
        assert_eq!(bytes(Algorithm::Als, 2), entries + blocks + 2 * 2 * 24 * 2);
        assert!(bytes(Algorithm::Als, 65_536) > 65_536_u64.pow(2) * 48);
        assert!(bytes(Algorithm::Sgd, 2) < bytes(Algorithm::Als, 2));
        assert_eq!(bytes(Algorithm::Als, 1 << 40), u64::MAX);
    }
}
