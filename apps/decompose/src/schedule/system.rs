//! The constraint system behind a schedule.

use decompose_core::autoschedule::constraints::{Explained, System, explain};
use decompose_formats::counted;
use serde_json::{Value as Json, json};

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
    let sizes = |system: &System| {
        let variables = counted(system.variables().len(), "variable", "variables");
        let constraints = counted(system.constraints().len(), "constraint", "constraints");
        format!("{variables}, {constraints}")
    };
    let (solved, milliseconds) = (system.bounded(least), seconds * 1e3);
    let mut text = format!(
        "\n{:<22}l = {least}: {}; solved in {milliseconds:.3} ms\n",
        "constraints",
        sizes(&solved)
    );
    if system.bound > least {
        text +=
            &format!("{:<22}l = {}: {}; kept by this schedule\n", "", system.bound, sizes(&system));
    }
    let heading =
        ["assignment", "loops, outermost first", "layouts, modes from the root"].map(String::from);
    let rows = solution.rows(&system).into_iter();
    let rows = rows.map(|row| [row.assignment, row.loops.join(" "), row.layouts.join(" ")]);
    for [assignment, loops, layouts] in [heading].into_iter().chain(rows) {
        text += &format!("{assignment:<44}  {loops:<24}  {layouts}\n");
    }
    text
}

/// Returns the same for programs; null if the loops keep no such system.
pub(crate) fn json(pick: &Pick) -> Json {
    let Some(found) = explain(&pick.problem, &pick.schedule) else { return Json::Null };
    let Explained { system, solution, least, seconds } = found;
    let of = |bound: usize| {
        let system = system.bounded(bound);
        let (variables, constraints) = (system.variables().len(), system.constraints().len());
        json!({ "bound": bound, "variables": variables, "constraints": constraints })
    };
    json!({
        "solved": of(least),
        "seconds": seconds,
        "kept": of(system.bound),
        "solution": solution.rows(&system),
    })
}
