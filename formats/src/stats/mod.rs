//! Statistics of sparse tensors.
