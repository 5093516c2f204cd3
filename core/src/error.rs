//! What can go wrong between an expression and a running kernel.

use thiserror::Error;

use crate::schedule::Rule;

/// An error of this crate; messages quote the input and say what to do.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CoreError {
    /// A text that is no expression.
    #[error(
        "`{text}` is not an expression: {why}; write it as `A(i,r) = X(i,j,k) * B(j,r) * C(k,r)` or `ijk,jr,kr->ir`"
    )]
    Expression {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// A text that is no loop nest.
    #[error("`{text}` is not a loop nest: {why}; write it as `i{{ j{{ T1 }} T2 }}`")]
    Nest {
        /// The text.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// A line that is no decision of a schedule.
    #[error("line {line} of the schedule, `{text}`: {why}")]
    ScheduleText {
        /// The line, counted from 1.
        line: usize,
        /// Its text.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// An index that cannot be cut into pieces.
    #[error("`{split}`: {why}")]
    Split {
        /// The command.
        split: String,
        /// What stands in the way.
        why: String,
    },
    /// A schedule that breaks a rule.
    #[error("the schedule breaks {rule} ({found})")]
    Illegal {
        /// The rule.
        rule: Rule,
        /// Where and how.
        found: String,
    },
    /// No schedule satisfies the limits of the problem.
    #[error("no schedule for `{expr}`: {why}")]
    NoSchedule {
        /// The expression.
        expr: String,
        /// What stands in the way.
        why: String,
    },
    /// A solver of constraints that is another program, and is absent or fails.
    #[error("{solver} cannot be asked: {why}")]
    Solver {
        /// The program.
        solver: String,
        /// What stands in the way, and the remedy.
        why: String,
    },
    /// Operands that do not fit the kernel they are given to.
    #[error("operand {operand}: {why}")]
    Operand {
        /// The operand's name.
        operand: String,
        /// What does not fit.
        why: String,
    },
    /// Sets of modes that cannot be merged.
    #[error("modes {sets} cannot be merged: {why}")]
    Merge {
        /// The sets, modes counted from 1.
        sets: String,
        /// What sets can be.
        why: String,
    },
    /// More memory would be needed than is allowed.
    #[error("{what} needs {need} but {limit} is allowed; raise the limit or lower the rank")]
    Memory {
        /// What needs it.
        what: String,
        /// How much, for people.
        need: String,
        /// The limit, for people.
        limit: String,
    },
    /// A result that takes more memory than is left.
    #[error(
        "there is no memory for the result of `{output}`: up to {elements} non-zeros would fit into what is left"
    )]
    ResultMemory {
        /// The expression.
        output: String,
        /// The most non-zeros that would fit, if they came from short rows.
        elements: u64,
    },
    /// A fault of this program, not of its input.
    #[error("internal error: {0}; please report it")]
    Internal(String),
    /// A tensor could not be made or converted.
    #[error(transparent)]
    Format(#[from] decompose_formats::FormatError),
}
