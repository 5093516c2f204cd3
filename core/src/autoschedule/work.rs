//! The work that a search may do.

/// Choices that a search may still price: counted, not timed, so that the same search stops at the same place on any
/// machine.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    left: u64,
    refused: bool,
}

impl Work {
    /// Allows `most` choices.
    pub(super) fn new(most: u64) -> Work {
        Work { left: most, refused: false }
    }

    /// Spends one choice; `false` where none is left.
    pub(super) fn spend(&mut self) -> bool {
        match self.left.checked_sub(1) {
            Some(left) => self.left = left,
            None => self.refused = true,
        }
        !self.refused
    }

    /// Spends some choices; `false` where fewer are left.
    pub(super) fn spend_all(&mut self, choices: u64) -> bool {
        match self.left.checked_sub(choices) {
            Some(left) => self.left = left,
            None => self.refused = true,
        }
        !self.refused
    }

    /// Refuses whatever is asked for from now on.
    pub(super) fn refuse(&mut self) {
        self.refused = true;
    }

    /// Takes off half of what is left.
    pub(super) fn take_half(&mut self) -> Work {
        let half = self.left.div_ceil(2);
        self.left -= half;
        Work::new(half)
    }

    /// Takes off all that is left.
    pub(super) fn take_all(&mut self) -> Work {
        Work::new(std::mem::take(&mut self.left))
    }

    /// Takes back what `part` did not spend.
    pub(super) fn give_back(&mut self, part: Work) {
        self.left += part.left;
    }

    /// Returns how many choices are left.
    pub(super) fn left(self) -> u64 {
        self.left
    }

    /// Tells whether a choice was refused.
    pub(super) fn is_spent(self) -> bool {
        self.refused
    }
}
