//! Buffers: the storage that loop fusion leaves to intermediate tensors.
//!
//! Term `p` produces an intermediate `T` for a later term `c`.  The loops they share from the root
//! down are *fused*: each of their iterations rebuilds `T`, so only its other indices are stored.
//!
//! ```text
//! buffer(T) = ind(T) \ prefix(p, c)
//! ```
//!
//! One more fused loop never grows a buffer, but makes `p` and `c` agree on their loop order: the
//! trade behind every search in `crate::autoschedule`.  Theory: Kanakagiri, Solomonik, SPAA 2024,
//! equation 7.

use crate::einsum::{Index, IndexSet};
use crate::nest::{Forest, Place, set_of};
use crate::path::Path;

/// The storage of one intermediate inside its fused loops; no index means a scalar.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Buffer {
    /// The term that produces the intermediate.
    pub term: usize,
    /// The indices over which it is stored.
    pub stored: IndexSet,
    /// The fused loops, outermost first: it is rebuilt in each of their iterations.
    pub fused: Vec<Index>,
}

/// Returns the buffer of every term but the last of a path, in the forest's own structure: loops
/// are fused when they are the same node, not merely over the same index.
///
/// `None` if the forest does not hold the terms of the path.
pub fn buffers(path: &Path, forest: &Forest) -> Option<Vec<Buffer>> {
    buffers_at(path, &forest.places(path.terms.len())?)
}

/// Returns what [`buffers`] does, of terms that stand at `places`.
pub(crate) fn buffers_at(path: &Path, places: &[Vec<Place>]) -> Option<Vec<Buffer>> {
    let last = path.terms.len().checked_sub(1)?;
    (0..last)
        .map(|term| {
            let consumer = path.consumer(term)?;
            let shared = places[term].iter().zip(&places[consumer]);
            let fused: Vec<Index> =
                shared.take_while(|(p, c)| p.0 == c.0).map(|(p, _)| p.1).collect();
            let stored = path.terms[term].output - set_of(&fused);
            Some(Buffer { term, stored, fused })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::buffers;
    use crate::kernels;
    use crate::nest::Forest;
    use crate::path::{Arity, enumerate};

    fn stored(forest: &str) -> String {
        let expr = kernels::mttkrp(3, 0);
        let (paths, _) = enumerate(&expr, Arity::Binary);
        let text = "T1(i,j,r) = X(i,j,k) * A3(k,r)\nA1(i,r) = T1(i,j,r) * A2(j,r)";
        let path = paths.iter().find(|p| p.display(&expr).to_string() == text).unwrap();
        let forest: Forest = forest.parse().unwrap();
        buffers(path, &forest).unwrap()[0].stored.to_string()
    }

    #[test]
    fn less_fusion_stores_more() {
        assert_eq!(stored("i{ j{ k{ r{ T1 } } r{ T2 } } }"), "r");
        assert_eq!(stored("i{ j{ r{ k{ T1 } T2 } } }"), "");
        assert_eq!(stored("i{ j{ k{ r{ T1 } } } j{ r{ T2 } } }"), "jr");
        assert_eq!(stored("i{ j{ k{ r{ T1 } } } } i{ j{ r{ T2 } } }"), "ijr");
    }
}
