//! Several modes as one.
//!
//! The tuples of coordinates that occur in the modes of the first levels are the nodes of the last
//! of these levels.  With a number for each of them the tensor falls into two of lower order,
//!
//! ```text
//! X(i, j, k, l)  =  sum over n of  S(i, j, n) Y(n, k, l),
//! ```
//!
//! where `S` is 1 at the tuples and `Y` has the values.  Nothing is added: each non-zero of `X` is one
//! of `Y`.

use rayon::iter::{IndexedParallelIterator, IntoParallelRefMutIterator, ParallelIterator};

use crate::array::Array;
use crate::coo::Coo;
use crate::csf::{Csf, Level, expand};
use crate::error::FormatError;
use crate::narrow_ints::{Int, Ints, Width, each_width};
use crate::value::Value;

/// A tensor in two parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged<V: Value> {
    /// `S`: the merged modes, in the order of their levels, and as the last mode the tuple's
    /// number; all values are 1.
    pub tuples: Coo<V>,
    /// `Y`: the tuple's number, and the modes of the lower levels in their order.
    pub rest: Coo<V>,
}

impl<V: Value> Csf<V> {
    /// Merges the modes of the first `depth` levels.
    ///
    /// Both lists come out sorted, with the tree's values and last level.  Time `O(nnz * order)`,
    /// parallel.
    ///
    /// # Errors
    ///
    /// [`FormatError::NotATensor`] if there are no two levels to merge with one left, or if one of
    /// them is fused.
    pub fn merge(mut self, depth: usize) -> Result<Merged<V>, FormatError> {
        let plain = self.levels.len() - self.fused();
        if depth < 2 || depth > plain {
            let why = format!("{depth} levels of {plain} plain ones above the last cannot merge");
            return Err(FormatError::NotATensor(why));
        }
        let (modes, nnz) = (self.order.modes(), self.values.len());
        let lower = self.levels.split_off(depth);
        let upper = self.levels;
        let count = upper[depth - 1].coords.len();
        let numbers = numbers(count);
        let extent = |&mode: &usize| self.extents[mode];

        let extents = modes[..depth].iter().map(extent).chain([count as u64]).collect();
        let columns = (0..depth).map(|level| tuple_column(&upper, level));
        let columns = columns.chain([numbers.copy()]).collect();
        let ones: Array<V> = vec![V::from_f64(1.0); count].into();
        let tuples = Coo::ascending(extents, columns, ones);

        let numbered = Level { coords: numbers, pointers: upper[depth - 1].pointers.copy() };
        let mut levels: Vec<Level> = [numbered].into_iter().chain(lower).collect();
        let extents: Vec<u64> =
            [count as u64].into_iter().chain(modes[depth..].iter().map(extent)).collect();
        let above = 0..levels.len() - 1;
        let columns = above.map(|level| expand::column(&levels, level, nnz));
        let mut columns: Vec<Ints> = columns.collect();
        columns.extend(levels.pop().map(|last| last.coords));
        Ok(Merged { tuples, rest: Coo::ascending(extents, columns, self.values) })
    }
}

/// The coordinates at `level` of the nodes of the last of `upper`.
fn tuple_column(upper: &[Level], level: usize) -> Ints {
    let last = upper.len() - 1;
    if level == last {
        return upper[last].coords.copy();
    }
    expand::column(upper, level, upper[last].coords.len())
}

fn numbers(count: usize) -> Ints {
    let mut numbers = Ints::to_fill(count, Width::below(count as u64));
    each_width!(Ints, &mut numbers, array => {
        let numbered = array.make_mut().par_iter_mut().enumerate();
        numbered.for_each(|(number, slot)| *slot = Int::cut(number as u64));
    });
    numbers
}

#[cfg(test)]
mod tests {
    use crate::coo::Coo;
    use crate::csf::Csf;
    use crate::modes::ModeOrder;
    use crate::synth::{Pattern, SynthConfig, Values, generate};

    fn tensor() -> Coo<f64> {
        let config = SynthConfig {
            extents: vec![6, 5, 40, 7],
            nnz: 700,
            pattern: Pattern::Uniform,
            values: Values::Uniform { low: 0.5, high: 2.0 },
            seed: 3,
        };
        generate(&config).unwrap()
    }

    /// The entries of a list by coordinates.
    fn entries(coo: &Coo<f64>) -> Vec<(Vec<u64>, f64)> {
        let at = |p: usize| (0..coo.order()).map(|mode| coo.coords(mode).get(p)).collect();
        (0..coo.nnz()).map(|p| (at(p), coo.values()[p])).collect()
    }

    #[test]
    fn the_parts_multiply_to_the_tensor() {
        let coo = tensor();
        for (modes, depth) in [([0, 1, 2, 3], 2), ([3, 1, 0, 2], 3), ([2, 0, 3, 1], 2)] {
            let order = ModeOrder::new(modes.to_vec()).unwrap();
            let tree = Csf::build(coo.clone(), &order).unwrap();
            let parts = tree.clone().merge(depth).unwrap();
            let tuples = entries(&parts.tuples);
            let number = |t: &(Vec<u64>, f64), n: usize| t.0[depth] == n as u64 && t.1 == 1.0;
            assert!(tuples.iter().zip(0..).all(|(tuple, n)| number(tuple, n)));
            let back = entries(&parts.rest).into_iter().map(|(coords, value)| {
                let tuple = &tuples[coords[0] as usize].0[..depth];
                (tuple.iter().chain(&coords[1..]).copied().collect(), value)
            });
            let sorted = entries(&tree.to_coo()).into_iter().map(|(coords, value)| {
                (modes.iter().map(|&mode| coords[mode]).collect::<Vec<u64>>(), value)
            });
            assert!(back.eq(sorted));
            assert_eq!(parts.rest.extents()[0], tree.prefix_counts()[depth - 1]);
        }
    }

    #[test]
    fn levels_that_cannot_merge_are_refused() {
        let tree = Csf::build(tensor(), &ModeOrder::natural(4)).unwrap();
        assert!(tree.clone().merge(1).is_err());
        assert!(tree.clone().merge(4).is_err());
        assert!(tree.fuse(2).merge(3).is_err());
    }
}
