//! Who decides a system: the solver of this crate, or another program.

use std::cell::Cell;
use std::time::Instant;

use crate::autoschedule::SearchLimits;
use crate::autoschedule::constraints::solve::{End, Rank};
use crate::autoschedule::constraints::{Solution, System, Variable};
use crate::autoschedule::smt::{self, Answer, Model, Smt};
use crate::autoschedule::work::Work;
use crate::error::CoreError;

/// Who is asked for solutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Solver {
    /// The solver of this crate: it finds all of them.
    Own,
    /// A process of `z3`, as in the paper: it finds one.
    Process,
}

/// A solver that is there.
pub(super) enum Ready {
    Own,
    /// The process, and the seconds that are left to it.
    Process(Smt, Cell<f64>),
}

impl Solver {
    /// Returns the solver with the time that `limits` allow.
    ///
    /// # Errors
    ///
    /// [`CoreError::Solver`] if the program is absent.
    pub(super) fn ready(self, limits: &SearchLimits) -> Result<Ready, CoreError> {
        Ok(match self {
            Solver::Own => Ready::Own,
            Solver::Process => Ready::Process(smt::require()?, Cell::new(limits.solver_seconds)),
        })
    }
}

impl Ready {
    /// Tells whether all solutions of a system can be visited.
    pub(super) fn enumerates(&self) -> bool {
        matches!(self, Ready::Own)
    }

    /// Says so if the time of the process ended.
    ///
    /// # Errors
    ///
    /// [`CoreError::Solver`] with the remedy.
    pub(super) fn in_time(&self) -> Result<(), CoreError> {
        match self {
            Ready::Process(_, left) if left.get() <= 0.0 => Err(CoreError::Solver {
                solver: smt::PROGRAM.to_owned(),
                why: "its time ended before it found a schedule; allow it more seconds".to_owned(),
            }),
            _ => Ok(()),
        }
    }

    /// Returns a solution of `system`, that of this crate the first in the order of `rank`.
    ///
    /// If there is none, the second value tells whether time or work ended before it was certain.
    ///
    /// # Errors
    ///
    /// [`CoreError::Solver`] if the program fails, or its solution breaks a constraint.
    pub(super) fn first(
        &self,
        system: &System,
        rank: Rank<'_>,
        work: &mut Work,
    ) -> Result<(Option<Solution>, End), CoreError> {
        let Ready::Process(smt, left) = self else { return Ok(system.first(rank, work)) };
        if left.get() <= 0.0 {
            return Ok((None, End::Cut));
        }
        let start = Instant::now();
        let answer = smt.ask(&system.smt(), left.get());
        left.set(left.get() - start.elapsed().as_secs_f64());
        match answer? {
            Answer::Sat(model) => Ok((Some(system.solution_of(&model)?), End::Stopped)),
            Answer::Unsat => Ok((None, End::All)),
            Answer::Unknown => Ok((None, End::Cut)),
        }
    }
}

impl System {
    /// Returns the solution that a model of [`System::smt`] stands for.
    ///
    /// # Errors
    ///
    /// [`CoreError::Solver`] with the first constraint that it breaks.
    pub fn solution_of(&self, model: &Model) -> Result<Solution, CoreError> {
        let place = |variable: Variable| model.place(&self.name(variable));
        let layout = |tensor: usize| {
            let mut modes: Vec<usize> = (0..self.tensors[tensor].order).collect();
            modes.sort_by_key(|&mode| place(Variable::Mode(tensor, mode)));
            modes
        };
        let mut sequence: Vec<usize> = (0..self.contractions.len()).collect();
        sequence.sort_by_key(|&at| place(Variable::Assignment(at)));
        let loops = self.contractions.iter().enumerate().map(|(at, one)| {
            let mut all: Vec<_> = one.indices.iter().collect();
            all.sort_by_key(|&index| place(Variable::Loop(at, index)));
            all
        });
        let loops = loops.collect();
        let layouts = (0..self.tensors.len()).map(layout).collect();
        let solution = Solution { sequence, loops, layouts };
        self.check(&solution).map_err(|broken| CoreError::Solver {
            solver: smt::PROGRAM.to_owned(),
            why: format!("its values break `{}`", self.line(&broken)),
        })?;
        Ok(solution)
    }
}
