//! Initial factors.

mod nvecs;
mod orthonormal;

use decompose_formats::{Matrix, Panels, Value};
use rayon::prelude::{IndexedParallelIterator, ParallelIterator, ParallelSliceMut};

use crate::error::CommonError;
use crate::rng::MatrixRng;

pub use nvecs::{nvecs, unfolding_gram_product};
pub use orthonormal::orthonormal;

/// Makes one factor a mode, `I_n x R`, uniform in `[0, 1)` and determined by `seed`.
///
/// Entry `(i, r)` of mode `n` depends on `(seed, n, i, r)` only.  Time `O(sum I_n * R)`, parallel.
///
/// # Errors
///
/// [`CommonError::Format`] if there is no memory.
pub fn random<V: Value>(
    extents: &[u64],
    rank: usize,
    seed: u64,
) -> Result<Vec<Matrix<V>>, CommonError> {
    let factors = random_panels(extents, &[rank], seed)?;
    factors.into_iter().map(|factor| Ok(factor.join()?)).collect()
}

/// Makes the factors of [`random`], of as many columns as `widths` say, stored in panels of these.
///
/// # Errors
///
/// As [`random`].
pub fn random_panels<V: Value>(
    extents: &[u64],
    widths: &[usize],
    seed: u64,
) -> Result<Vec<Panels<V>>, CommonError> {
    let modes = extents.iter().enumerate();
    modes
        .map(|(mode, &extent)| {
            let mut panels = Panels::zeros(extent as usize, widths)?;
            let mut before = 0;
            for part in panels.parts_mut() {
                fill_random(part, 0, before, MatrixRng::new(seed, mode as u64));
                before += part.cols();
            }
            Ok(panels)
        })
        .collect()
}

/// Fills the columns from `first` on, of a matrix that has `before` columns of another before its own.
fn fill_random<V: Value>(matrix: &mut Matrix<V>, first: usize, before: usize, rng: MatrixRng) {
    let (cols, stride) = (matrix.cols(), matrix.stride());
    matrix.as_mut_slice().par_chunks_exact_mut(stride).enumerate().for_each(|(row, values)| {
        for (col, value) in values.iter_mut().enumerate().take(cols).skip(first) {
            *value = V::from_f64(rng.uniform(row as u64, (before + col) as u64));
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_do_not_depend_on_the_rank_or_precision() {
        let a = random::<f64>(&[5, 7], 3, 42).unwrap();
        let b = random::<f32>(&[5, 9], 11, 42).unwrap();
        for (i, r) in [(0, 0), (4, 2), (3, 1)] {
            assert_eq!(a[1].row(i)[r] as f32, b[1].row(i)[r]);
        }
        assert!(a[0].as_slice().iter().all(|x| (0.0..1.0).contains(x)));
        let padding = a[0].as_slice().chunks(a[0].stride()).map(|row| row[3]);
        assert!(padding.into_iter().all(|x| x == 0.0));
    }

    #[test]
    fn entries_do_not_depend_on_panels() {
        let whole = random::<f64>(&[5, 7], 12, 42).unwrap();
        let panels = random_panels::<f64>(&[5, 7], &[8, 3, 1], 42).unwrap();
        for (panels, whole) in panels.into_iter().zip(whole) {
            assert_eq!(panels.join().unwrap().as_slice(), whole.as_slice());
        }
    }
}
