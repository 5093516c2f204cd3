//! The comparisons of stage 3, put to a solver beside the procedure here.

use std::time::Instant;

use crate::autoschedule::smt::{Answer as Said, Smt};
use crate::autoschedule::sparseauto::terms::Terms;
use crate::cost::symbolic::Answer;
use crate::error::CoreError;

/// The comparisons that a solver was asked too.
#[derive(Clone, Debug)]
pub struct Asked {
    /// What the solver says of itself.
    pub solver: String,
    /// Pairs of polynomials.
    pub pairs: usize,
    /// Those for which both say the same.
    pub agreed: usize,
    /// Those that one of both leaves open.
    pub open: usize,
    /// The seconds of the procedure here.
    pub own_seconds: f64,
    /// The seconds of the solver.
    pub solver_seconds: f64,
}

impl Asked {
    /// Adds up the comparisons of both.
    pub(super) fn and(self, other: &Asked) -> Asked {
        Asked {
            solver: self.solver,
            pairs: self.pairs + other.pairs,
            agreed: self.agreed + other.agreed,
            open: self.open + other.open,
            own_seconds: self.own_seconds + other.own_seconds,
            solver_seconds: self.solver_seconds + other.solver_seconds,
        }
    }
}

/// Seconds for all of them.
const SECONDS: f64 = 60.0;

/// Asks `smt` what was asked of the domain: whether a polynomial is at least another one for all sizes.
pub(super) fn ask(terms: &Terms, smt: &Smt) -> Result<Asked, CoreError> {
    let pairs = &terms.asked;
    let polynomials = || pairs.iter().map(|&(a, b)| (terms.get(a), terms.get(b)));
    let start = Instant::now();
    let own: Vec<Answer> = polynomials().map(|(a, b)| terms.domain.at_least(a, b)).collect();
    let own_seconds = start.elapsed().as_secs_f64();
    let scripts: Vec<String> = polynomials().map(|(a, b)| terms.domain.question(a, b)).collect();
    let start = Instant::now();
    let said = smt.ask_all(&scripts, SECONDS)?;
    let solver_seconds = start.elapsed().as_secs_f64();
    let same = |(own, said): &(&Answer, &Said)| {
        matches!((own, said), (Answer::Always, Said::Unsat) | (Answer::NotAlways, Said::Sat(_)))
    };
    let left_open = |(own, said): &(&Answer, &Said)| {
        matches!((own, said), (Answer::Unknown, _) | (_, Said::Unknown))
    };
    let both = || own.iter().zip(&said);
    Ok(Asked {
        solver: smt.version().to_owned(),
        pairs: pairs.len(),
        agreed: both().filter(same).count(),
        open: both().filter(left_open).count(),
        own_seconds,
        solver_seconds,
    })
}
