//! The five strategies to cut an index (section 2.3).
//!
//! ```text
//! split(X, x0, x1, K)     for x0 in 0..|X|/K   for x1 in 0..K
//! divide(X, x0, x1, K)    for x0 in 0..K       for x1 in 0..|X|/K
//! ```
//!
//! Either loop can number the chunks.  Chunks that `x0` numbers are contiguous, those of `x1` are strided.

pub use crate::schedule::{Chunks, Command};

/// The part of a cut loop whose number of iterations is the factor.
pub(super) fn fixed_part(command: Command) -> Part {
    match command {
        Command::Split => Part::Inner,
        Command::Divide => Part::Outer,
    }
}

/// Which part of a group a loop is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// All of it: the group is not cut.
    Whole,
    /// The loop over the pieces.
    Outer,
    /// The loop inside a piece.
    Inner,
}

impl Part {
    /// Tells whether iterations that follow each other are neighbours.
    pub fn is_contiguous(self) -> bool {
        self != Part::Outer
    }
}

/// Whether a number is known before the data are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Known {
    /// It is the factor.
    Fixed,
    /// It follows from the extent.
    DataDependent,
}

/// A way to partition the range of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// No cut: each element is a chunk.
    Whole,
    /// Cut by a command.
    Cut(Command, Chunks),
}

impl Strategy {
    /// All five.
    pub const ALL: [Strategy; 5] = [
        Strategy::Whole,
        Strategy::Cut(Command::Split, Chunks::Contiguous),
        Strategy::Cut(Command::Split, Chunks::Strided),
        Strategy::Cut(Command::Divide, Chunks::Contiguous),
        Strategy::Cut(Command::Divide, Chunks::Strided),
    ];

    /// Returns the command.
    pub fn command(self) -> Option<Command> {
        match self {
            Strategy::Whole => None,
            Strategy::Cut(command, _) => Some(command),
        }
    }

    /// Returns the loop that numbers the chunks.
    pub fn chunk_loop(self) -> Part {
        match self {
            Strategy::Whole => Part::Whole,
            Strategy::Cut(_, Chunks::Contiguous) => Part::Outer,
            Strategy::Cut(_, Chunks::Strided) => Part::Inner,
        }
    }

    /// Returns the strategy whose chunks are numbered by `part` of a loop that `command` cuts.
    ///
    /// A mapping makes this choice: where it runs a loop in parallel, that loop numbers the chunks.
    pub fn of(command: Option<Command>, part: Part) -> Strategy {
        match (command, part) {
            (Some(command), Part::Outer) => Strategy::Cut(command, Chunks::Contiguous),
            (Some(command), Part::Inner) => Strategy::Cut(command, Chunks::Strided),
            _ => Strategy::Whole,
        }
    }

    /// Tells whether the number of chunks is known.
    ///
    /// ```
    /// use decompose_core::autoschedule::partition::{Chunks, Command, Known, Strategy};
    ///
    /// let rows = Strategy::Cut(Command::Split, Chunks::Contiguous);
    /// assert_eq!((rows.count(), rows.size()), (Known::DataDependent, Known::Fixed));
    /// ```
    pub fn count(self) -> Known {
        match self.command() {
            Some(command) if fixed_part(command) == self.chunk_loop() => Known::Fixed,
            _ => Known::DataDependent,
        }
    }

    /// Tells whether the size of the chunks is known.
    pub fn size(self) -> Known {
        match self.command() {
            Some(command) if fixed_part(command) == self.chunk_loop() => Known::DataDependent,
            _ => Known::Fixed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Chunks, Command, Known, Strategy};

    /// "To summarize, a partition can be characterized by three things", section 2.3.
    #[test]
    fn what_is_known_of_the_chunks_is_as_in_the_source() {
        let known = |command, chunks| {
            let strategy = Strategy::Cut(command, chunks);
            (strategy.count(), strategy.size())
        };
        let data_dependent_number = (Known::DataDependent, Known::Fixed);
        let fixed_number = (Known::Fixed, Known::DataDependent);
        assert_eq!(known(Command::Split, Chunks::Contiguous), data_dependent_number);
        assert_eq!(known(Command::Split, Chunks::Strided), fixed_number);
        assert_eq!(known(Command::Divide, Chunks::Strided), data_dependent_number);
        assert_eq!(known(Command::Divide, Chunks::Contiguous), fixed_number);
        for strategy in Strategy::ALL {
            assert_eq!(Strategy::of(strategy.command(), strategy.chunk_loop()), strategy);
        }
    }
}
