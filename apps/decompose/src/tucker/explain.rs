//! The plan in full, for `--explain`.

use decompose_formats::{Value, counted};
use decompose_tucker::{Engine, Forming};

use crate::failure::Failure;
use crate::run::kernels::origin;
use crate::stdout;
use crate::tucker::prepare::Facts;

/// Prints the plan and where the generated C of each kernel lies.
///
/// # Errors
///
/// If standard output cannot be written.
pub(crate) fn print<V: Value>(facts: &Facts, engine: &Engine<V>) -> Result<(), Failure> {
    stdout::line(&facts.plan)?;
    for (forming, mode) in facts.plan.forming.iter().zip(1..) {
        stdout::line(match forming {
            Forming::Whole => format!("TTMc of mode {mode}: formed whole, once an iteration"),
            Forming::Windows(rows) => {
                let rows = counted(*rows, "row", "rows");
                format!("TTMc of mode {mode}: formed {rows} at a time, twice an iteration")
            }
        })?;
    }
    for (kernel, (role, ..)) in engine.kernels().zip(facts.plan.steps()) {
        stdout::line(origin(kernel, &role.to_string()))?;
    }
    Ok(())
}
