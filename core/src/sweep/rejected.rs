//! What a plan was preferred to.

use std::fmt;

/// The most alternatives that a choice remembers.
pub(super) const MOST: usize = 3;

/// An alternative that was priced and not taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Rejected {
    /// The trees, the merged modes or how factors are stored.
    pub what: String,
    /// Seconds of a sweep as they were compared, the building of trees spread over the sweeps; of sets of trees with
    /// the handicap of blocks.  Panels of factors must be better by more than a little, so they may take fewer.
    pub seconds: f64,
    /// Bytes of its trees; `None` where a bound from below on its seconds was enough to reject it.
    pub bytes: Option<u64>,
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rejected { what, seconds, bytes } = self;
        match bytes {
            Some(bytes) => write!(f, "rejected {what}: {seconds:.2e} s, trees of {bytes} bytes"),
            None => write!(f, "rejected {what}: at least {seconds:.2e} s"),
        }
    }
}

/// Returns the few of `all` that take the least seconds, the best first.
pub(super) fn nearest(all: impl IntoIterator<Item = Rejected>) -> Vec<Rejected> {
    let mut all: Vec<Rejected> = all.into_iter().collect();
    all.sort_by(|a, b| a.seconds.total_cmp(&b.seconds).then_with(|| a.what.cmp(&b.what)));
    all.truncate(MOST);
    all
}
