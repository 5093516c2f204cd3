//! Statistics of sparse tensors: what schedules are judged by and what a person asks first.
//!
//! The count of a set of modes is the number of distinct tuples that the coordinates of the
//! non-zeros take in these modes, nnz(X_ij) for the modes i and j.  A tree sorted by `i-j-k` has
//! nnz(X_i), nnz(X_ij), nnz(X_ijk) nodes on its levels.

mod coverage;
mod forecast;
mod patterns;
mod show;
mod sketch;
mod slices;
mod tensor;

use crate::coo::Coo;
use crate::csf::node_counts;
use crate::dims::ModeOrder;
use crate::error::FormatError;
use crate::value::Value;

pub use crate::stats::coverage::Coverage;
pub use crate::stats::forecast::{cp_bytes, csf_bytes, tucker_bytes};
pub use crate::stats::patterns::{Certainty, Count, PatternCounts};
pub use crate::stats::show::grouped;
pub use crate::stats::slices::{SliceStats, slice_stats};
pub use crate::stats::tensor::{TensorStats, ValueKind, ValueStats};

/// Returns the exact counts of the first mode, the first two, ..., all modes of `order`.
///
/// The list must be sorted by `order`; duplicates count once.  Time `O(nnz * order)`, parallel, no
/// memory.
///
/// # Errors
///
/// [`FormatError::NotATensor`] if `order` is not of the list's modes or the list is not sorted by
/// it.
pub fn prefix_counts<V: Value>(coo: &Coo<V>, order: &ModeOrder) -> Result<Vec<u64>, FormatError> {
    coo.check_order(order)?;
    if !coo.is_sorted_by(order) {
        return Err(FormatError::NotATensor(format!("not sorted by {order}: sort it first")));
    }
    let columns = coo.columns();
    Ok(node_counts(&order.modes().iter().map(|&mode| columns[mode]).collect::<Vec<_>>()))
}
