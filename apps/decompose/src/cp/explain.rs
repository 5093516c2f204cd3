//! The plan in full, for `--explain`.

use decompose_core::sweep::Engine;
use decompose_formats::Value;

use crate::cp::prepare::Facts;
use crate::failure::Failure;
use crate::stdout;

/// Prints the plan and where the generated C of each kernel lies.
///
/// # Errors
///
/// If standard output cannot be written.
pub(crate) fn print<V: Value>(facts: &Facts, engine: &Engine<V>) -> Result<(), Failure> {
    stdout::line(&facts.plan)?;
    for (kernel, mode) in engine.kernels().zip(1..) {
        stdout::line(match (kernel.origin(), kernel.interpreted()) {
            (Some(origin), _) => {
                let how = match origin.compiled_in {
                    Some(seconds) => format!("compiled in {seconds:.2} s"),
                    None => "from the cache".to_owned(),
                };
                format!("generated C of mode {mode}: {} ({how})", origin.source.display())
            }
            (None, why) => format!("mode {mode} is interpreted: {}", why.unwrap_or("no compiler")),
        })?;
    }
    Ok(())
}
