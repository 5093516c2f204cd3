//! Statistics of sparse tensors: what schedules are judged by and what a person asks first.
//!
//! The count of a set of modes is the number of distinct tuples that the coordinates of the
//! non-zeros take in these modes, nnz(X_ij) for the modes i and j.  A tree sorted by `i-j-k` has
//! nnz(X_i), nnz(X_ij), nnz(X_ijk) nodes on its levels.

mod bitmap;
mod coverage;
mod forecast;
mod patterns;
mod sketch;
mod slices;
mod tensor;
mod text;
mod tuples;

pub use crate::stats::coverage::Coverage;
pub use crate::stats::forecast::{cp_bytes, csf_bytes, tucker_bytes};
pub use crate::stats::patterns::{Certainty, Count, PatternCounts};
pub use crate::stats::slices::SliceStats;
pub(crate) use crate::stats::slices::slice_counts;
pub use crate::stats::tensor::{TensorStats, ValueKind, ValueStats};
pub(crate) use crate::stats::text::bytes;
pub use crate::stats::text::grouped;
