//! The chunks that a partition makes, by running its loops (section 2.3, theorem 1 and corollary 1.1).
//!
//! A partition is a number for each element; elements of one number are a chunk.  Partitions of several indices project
//! to one of the whole space: elements are together that are together in each index.

use std::collections::HashMap;
use std::hash::Hash;

use crate::autoschedule::partition::strategies::{Command, Part, Strategy};

/// Returns the chunk of each element of `0..extent`.
///
/// The last chunks are short, or missing, where `factor` does not divide `extent`.
///
/// ```
/// use decompose_core::autoschedule::partition::{Chunks, Command, Strategy, chunk_numbers};
///
/// let contiguous = Strategy::Cut(Command::Split, Chunks::Contiguous);
/// assert_eq!(chunk_numbers(8, contiguous, 4), [0, 0, 0, 0, 1, 1, 1, 1]);
/// let strided = Strategy::Cut(Command::Split, Chunks::Strided);
/// assert_eq!(chunk_numbers(8, strided, 4), [0, 1, 2, 3, 0, 1, 2, 3]);
/// ```
///
/// # Panics
///
/// If `factor` is 0.
pub fn chunk_numbers(extent: u64, strategy: Strategy, factor: u64) -> Vec<u64> {
    assert!(factor > 0, "a factor of 0 cuts nothing");
    let Some(command) = strategy.command() else { return (0..extent).collect() };
    let (outer, inner) = match command {
        Command::Split => (extent.div_ceil(factor), factor),
        Command::Divide => (factor, extent.div_ceil(factor)),
    };
    let mut chunks = vec![0; extent as usize];
    for x0 in 0..outer {
        for x1 in 0..inner {
            let element = x0 * inner + x1;
            if element < extent {
                let by_outer = strategy.chunk_loop() == Part::Outer;
                chunks[element as usize] = if by_outer { x0 } else { x1 };
            }
        }
    }
    chunks
}

/// Returns the partition with its chunks numbered as they come first: equal for equal partitions.
pub fn renumbered<T: Eq + Hash>(chunks: impl IntoIterator<Item = T>) -> Vec<usize> {
    let mut numbers = HashMap::new();
    let mut number = |chunk| {
        let next = numbers.len();
        *numbers.entry(chunk).or_insert(next)
    };
    chunks.into_iter().map(&mut number).collect()
}

/// Returns the partition of the whole space, in row-major order, that partitions of its indices project to.
pub fn projected_chunks(edges: &[Vec<u64>]) -> Vec<usize> {
    let mut points: Vec<Vec<u64>> = vec![Vec::new()];
    for edge in edges {
        let extended = |point: &Vec<u64>| {
            let with = |&chunk: &u64| point.iter().copied().chain([chunk]).collect();
            edge.iter().map(with).collect::<Vec<Vec<u64>>>()
        };
        points = points.iter().flat_map(extended).collect();
    }
    renumbered(points)
}

/// Returns the partition of the whole space, in row-major order, when its indices are fused and cut together.
pub fn fused_chunks(extents: &[u64], strategy: Strategy, factor: u64) -> Vec<usize> {
    renumbered(chunk_numbers(extents.iter().product(), strategy, factor))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use decompose_formats::mix::mix;

    use super::{chunk_numbers, fused_chunks, projected_chunks, renumbered};
    use crate::autoschedule::partition::strategies::{Chunks, Command, Strategy};

    /// The powers of two up to `most`.
    fn powers(most: u64) -> impl Iterator<Item = u64> {
        std::iter::successors(Some(1), |power| Some(power * 2)).take_while(move |&p| p <= most)
    }

    /// All partitions of `0..extent`, without repetitions.
    fn edges(extent: u64) -> Vec<Vec<u64>> {
        let all = Strategy::ALL.into_iter();
        let all = all.flat_map(|s| powers(extent).map(move |k| chunk_numbers(extent, s, k)));
        let mut seen = HashSet::new();
        all.filter(|chunks| seen.insert(renumbered(chunks))).collect()
    }

    /// All partitions of the space that come from partitions of its indices.
    fn independent(extents: &[u64]) -> HashSet<Vec<usize>> {
        let mut choices: Vec<Vec<Vec<u64>>> = vec![Vec::new()];
        for &extent in extents {
            let extended = |chosen: &Vec<Vec<u64>>| {
                let with = |edge| chosen.iter().cloned().chain([edge]).collect();
                edges(extent).into_iter().map(with).collect::<Vec<Vec<Vec<u64>>>>()
            };
            choices = choices.iter().flat_map(extended).collect();
        }
        choices.iter().map(|edges| projected_chunks(edges)).collect()
    }

    fn fused(extents: &[u64]) -> HashSet<Vec<usize>> {
        let points = extents.iter().product();
        let all = Strategy::ALL.into_iter();
        all.flat_map(|s| powers(points).map(move |k| fused_chunks(extents, s, k))).collect()
    }

    /// Random extents that are powers of two, with `points` elements at most.
    fn random_extents(indices: usize, points: u64, case: u64) -> Vec<u64> {
        let mut left = points;
        let mut extents = Vec::new();
        for index in 0..indices {
            let exponents = u64::from(left.ilog2()) + 1;
            let extent = 1 << (mix(case * 31 + index as u64 + 1) % exponents.min(5));
            left /= extent;
            extents.push(extent);
        }
        extents
    }

    #[test]
    fn the_partitions_of_one_index_are_those_of_the_source() {
        let of = |command, chunks| chunk_numbers(8, Strategy::Cut(command, chunks), 4);
        assert_eq!(of(Command::Divide, Chunks::Contiguous), [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(of(Command::Divide, Chunks::Strided), [0, 1, 0, 1, 0, 1, 0, 1]);
        assert_eq!(chunk_numbers(3, Strategy::Whole, 9), [0, 1, 2]);
        let short = Strategy::Cut(Command::Split, Chunks::Contiguous);
        assert_eq!(chunk_numbers(5, short, 2), [0, 0, 1, 1, 2]);
    }

    #[test]
    fn theorem_1_to_fuse_two_dense_indices_reaches_no_other_partition() {
        for case in 0..40 {
            let extents = random_extents(2, 256, case);
            let reached = independent(&extents);
            assert!(fused(&extents).is_subset(&reached), "{extents:?}");
        }
    }

    #[test]
    fn corollary_1_1_nor_does_it_for_more_of_them() {
        for case in 0..40 {
            let extents = random_extents(3 + case as usize % 2, 64, case);
            let reached = independent(&extents);
            assert!(fused(&extents).is_subset(&reached), "{extents:?}");
        }
    }

    #[test]
    fn the_opposite_does_not_hold() {
        // Square tiles are no partition of the fused index.
        assert!(independent(&[4, 4]).len() > fused(&[4, 4]).len());
    }

    #[test]
    fn other_extents_than_powers_of_two_have_their_own_fused_partitions() {
        assert!(!fused(&[3, 3]).is_subset(&independent(&[3, 3])));
    }
}
