//! When a fit ends.

use decompose_common::SolverError;

/// When an error counts as settled.
///
/// The rule of SPLATT's `complete`: stop after some epochs without an improvement; here an
/// improvement is relative, so that the unit of the data does not matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Patience {
    /// The least improvement, as a share of the best error so far.  Default 1e-4.
    pub tol: f64,
    /// Epochs without it that end the fit.  Default 20.
    pub epochs: usize,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience { tol: 1e-4, epochs: 20 }
    }
}

impl Patience {
    /// Checks the numbers.
    ///
    /// # Errors
    ///
    /// [`SolverError::Config`] with the one that makes no sense.
    pub(crate) fn check(&self) -> Result<(), SolverError> {
        if !(self.tol >= 0.0 && self.tol < 1.0) {
            let why = format!("tol is {}; use a number from 0 to below 1", self.tol);
            return Err(SolverError::Config(why));
        }
        match self.epochs {
            0 => Err(SolverError::Config("patience is 0; use at least 1 epoch".into())),
            _ => Ok(()),
        }
    }
}

/// The best error so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch {
    /// The least error, and its epoch.
    best: Option<(f64, usize)>,
    /// The error from which improvements are counted, and its epoch.
    mark: Option<(f64, usize)>,
}

/// What an epoch was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The best so far.
    Best,
    /// Not the best.
    Worse,
}

impl Watch {
    pub(crate) fn new() -> Watch {
        Watch { best: None, mark: None }
    }

    /// Takes in the error of an epoch; errors that are no numbers are worse than any.
    pub(crate) fn see(&mut self, epoch: usize, error: f64, patience: &Patience) -> Verdict {
        if self.mark.is_none_or(|(mark, _)| error < mark * (1.0 - patience.tol)) {
            self.mark = Some((error, epoch));
        }
        if self.best.is_none_or(|(best, _)| error < best) {
            self.best = Some((error, epoch));
            return Verdict::Best;
        }
        Verdict::Worse
    }

    /// Tells whether the patience is at its end after `epoch`.
    pub(crate) fn settled(&self, epoch: usize, patience: &Patience) -> bool {
        self.mark.is_some_and(|(_, marked)| epoch >= marked + patience.epochs)
    }

    /// Returns its numbers, for a checkpoint; those that are not known yet are no numbers.
    pub(crate) fn to_numbers(self) -> [f64; 4] {
        let pair =
            |pair: Option<(f64, usize)>| pair.map_or([f64::NAN; 2], |(e, at)| [e, at as f64]);
        let ([a, b], [c, d]) = (pair(self.best), pair(self.mark));
        [a, b, c, d]
    }

    /// Reads what [`Watch::to_numbers`] made.
    pub(crate) fn from_numbers([a, b, c, d]: [f64; 4]) -> Watch {
        let pair = |error, at: f64| (!at.is_nan()).then_some((error, at as usize));
        Watch { best: pair(a, b), mark: pair(c, d) }
    }

    /// Returns the epoch with the least error.
    pub(crate) fn best_epoch(&self) -> usize {
        self.best.map_or(0, |(_, epoch)| epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::{Patience, Verdict, Watch};

    #[test]
    fn small_gains_do_not_count_but_the_best_is_kept() {
        let patience = Patience { tol: 0.1, epochs: 2 };
        let mut watch = Watch::new();
        assert_eq!(watch.see(1, 1.0, &patience), Verdict::Best);
        assert_eq!(watch.see(2, 0.95, &patience), Verdict::Best);
        assert!(!watch.settled(2, &patience));
        assert_eq!(watch.see(3, 0.96, &patience), Verdict::Worse);
        assert!(watch.settled(3, &patience));
        assert_eq!(watch.best_epoch(), 2);
        assert_eq!(watch.see(4, f64::NAN, &patience), Verdict::Worse);
        assert_eq!(watch.see(5, 0.8, &patience), Verdict::Best);
        assert!(!watch.settled(6, &patience));
    }
}
