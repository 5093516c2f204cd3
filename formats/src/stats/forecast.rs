//! How much memory models and trees will take.

use crate::dense::matrix_bytes;
use crate::narrow_ints::Width;

/// Returns the bytes of a tree with `counts[l]` nodes on level `l` of extent `extents[l]`, for
/// values of `value_bytes` bytes.
pub fn csf_bytes(extents: &[u64], counts: &[u64], value_bytes: usize) -> u64 {
    let nnz = counts.last().copied().unwrap_or(0);
    let pointer = Width::below(nnz.saturating_add(1)).bytes() as u64;
    let level = |(&extent, &nodes): (&u64, &u64)| nodes * Width::below(extent).bytes() as u64;
    let coords: u64 = extents.iter().zip(counts).map(level).sum();
    let upper = &counts[..counts.len().saturating_sub(1)];
    let pointers: u64 = upper.iter().map(|nodes| (nodes + 1) * pointer).sum();
    coords + pointers + nnz * value_bytes as u64
}

/// Returns the bytes of the matrices of a CP model of rank `rank` while it is fitted: the factors,
/// and one result as large as the largest of them.  Rows are padded, and matrices take whole huge pages, as in
/// [`Matrix`](crate::Matrix); the tensor itself is not included.
pub fn cp_bytes(extents: &[u64], rank: u64, value_bytes: usize) -> u64 {
    let matrices = extents.iter().chain(extents.iter().max());
    let bytes = matrices.map(|&rows| matrix(rows, rank, value_bytes));
    bytes.fold(0, u64::saturating_add)
}

/// Returns the bytes of the arrays of a Tucker model of `ranks` while it is fitted: the factors,
/// the core, and the largest product of the tensor with all factors but one,
/// `I_n * prod_{m != n} R_m` numbers.
pub fn tucker_bytes(extents: &[u64], ranks: &[u64], value_bytes: usize) -> u64 {
    let core = ranks.iter().fold(1, |product: u64, &rank| product.saturating_mul(rank));
    let factor = |(&extent, &rank): (&u64, &u64)| matrix(extent, rank, value_bytes);
    let factors = extents.iter().zip(ranks).map(factor).fold(0, u64::saturating_add);
    let product = |(&extent, &rank): (&u64, &u64)| matrix(extent, core / rank.max(1), value_bytes);
    let largest = extents.iter().zip(ranks).map(product).max().unwrap_or(0);
    let core = core.saturating_mul(value_bytes as u64);
    factors.saturating_add(largest).saturating_add(core)
}

fn matrix(rows: u64, cols: u64, value_bytes: usize) -> u64 {
    matrix_bytes(rows, usize::try_from(cols).unwrap_or(usize::MAX), value_bytes)
}
