//! The constraint system behind a schedule.

use decompose_core::autoschedule::constraints::{Explained, explain};
use decompose_formats::counted;

use crate::failure::Failure;
use crate::schedule::choose::Pick;

/// Returns the system that a schedule is a solution of.
pub(crate) fn explained(pick: &Pick) -> Result<Explained, Failure> {
    explain(&pick.problem, &pick.schedule).ok_or_else(|| {
        Failure::input("the loops of this schedule are no solution of the constraints of its tree")
            .help("`--scheduler const` finds one that is")
    })
}

/// Returns the system as a script of SMT-LIB.
pub(crate) fn smt(pick: &Pick) -> Result<String, Failure> {
    let declared = explained(pick)?.system.smt();
    Ok(format!("(set-logic QF_LIA)\n{declared}(check-sat)\n(get-model)\n"))
}

/// Returns how large the system is, how long it takes to solve, and what its solution says; nothing if the loops keep no
/// such system.
pub(crate) fn section(pick: &Pick) -> String {
    let Some(found) = explain(&pick.problem, &pick.schedule) else { return String::new() };
    let Explained { system, solution, least, seconds } = found;
    let variables = counted(system.variables().len(), "variable", "variables");
    let constraints = counted(system.constraints().len(), "constraint", "constraints");
    let milliseconds = seconds * 1e3;
    let name = "constraints";
    let mut text = format!(
        "\n{name:<22}{variables}, {constraints}; l = {least} solved in {milliseconds:.3} ms\n"
    );
    if system.bound > least {
        text += &format!("{:<22}the schedule keeps l = {}\n", "", system.bound);
    }
    text + &solution.text(&system)
}
