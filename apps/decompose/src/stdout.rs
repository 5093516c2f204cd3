//! Standard output, whose reader may leave at any time (`decompose ... | head`).

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use crate::failure::Failure;

/// Writes `text` and a line's end to standard output.
///
/// A reader that has gone away is no error: it has seen what it wanted.
pub(crate) fn line(text: impl Display) -> Result<(), Failure> {
    accept(writeln!(io::stdout(), "{text}"))
}

/// Writes raw bytes to standard output.
pub(crate) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    accept(io::stdout().write_all(bytes))
}

/// Writes `value` as one line of JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> Result<(), Failure> {
    match serde_json::to_string(value) {
        Ok(text) => line(text),
        Err(error) => Err(Failure::internal(format!("cannot write JSON: {error}"))),
    }
}

fn accept(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::input(format!("cannot write to standard output: {error}")).while_writing())
        }
        _ => Ok(()),
    }
}
