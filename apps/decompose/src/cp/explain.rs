//! The plan in full, for `--explain`.

use decompose_core::sweep::Engine;
use decompose_formats::Value;

use crate::cp::prepare::Facts;
use crate::failure::Failure;
use crate::run::kernels::origin;
use crate::stdout;

/// Prints the plan and where the generated C of each kernel lies.
///
/// # Errors
///
/// If standard output cannot be written.
pub(crate) fn print<V: Value>(facts: &Facts, engine: &Engine<V>) -> Result<(), Failure> {
    stdout::line(&facts.plan)?;
    for (kernel, (name, _)) in engine.kernels().zip(facts.plan.steps()) {
        stdout::line(origin(kernel, &name))?;
    }
    Ok(())
}
