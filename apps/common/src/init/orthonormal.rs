//! Orthonormal random factors.

use decompose_formats::{Matrix, Value};

use crate::error::CommonError;
use crate::linalg::{self, fill_centred};
use crate::rng::MatrixRng;

/// Makes one orthonormal factor a mode, `I_n x R_n` with `R_n` at most `I_n`, determined by `seed`.
///
/// # Errors
///
/// [`CommonError::Format`] if there is no memory.
pub fn orthonormal<V: Value>(
    extents: &[u64],
    ranks: &[usize],
    seed: u64,
) -> Result<Vec<Matrix<V>>, CommonError> {
    let modes = extents.iter().zip(ranks).enumerate();
    modes
        .map(|(mode, (&extent, &rank))| {
            let mut factor = Matrix::zeros(extent as usize, rank)?;
            fill_centred(&mut factor, 0, MatrixRng::new(seed, mode as u64));
            let gram = linalg::gram(&factor);
            linalg::orthonormalise(&mut factor, gram)?;
            Ok(factor)
        })
        .collect()
}
