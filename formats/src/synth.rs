//! Synthetic tensors.
