//! The fastest of the best candidates, found by running them.

use std::collections::BTreeSet;

use decompose_common::interrupt;
use decompose_common::machine::size;
use decompose_common::memory::left;
use decompose_common::progress::Screen;
use decompose_core::autoschedule::HalvingConfig;
use decompose_core::contract::{Choices, Entrant, RaceTime, assembled_bytes, race};
use decompose_core::cost::{Cost, Machine};
use decompose_core::runtime::{Compiler, Toolchain};
use decompose_core::schedule::{OutputForm, Problem, Schedule, SparseOperand};
use decompose_core::sweep::TreeLayout;
use decompose_formats::{Coo, Value};

use crate::failure::Failure;
use crate::schedule::choose::{Chooser, How, Pick, Selection};

/// Measures the first `top` candidates of `plan` on `tensor`, marks the fastest as chosen and keeps
/// it for later runs; the others are dropped.
///
/// An interrupt that is deferred ends the measurement with what was timed, and then nothing is kept.
pub(crate) fn measure<V: Value>(
    mut plan: Selection,
    tensors: &[(usize, Coo<V>)],
    (top, budget_seconds): (usize, f64),
    chooser: &Chooser<'_>,
    screen: &mut Screen,
) -> Result<Selection, Failure> {
    let compiler = compiler()?;
    let choices = Choices::within(compiler.cache().folder());
    plan.picks.truncate(top);
    check_memory(&plan.picks, tensors, &chooser.machine)?;
    let entrant = |pick: &Pick| (pick.problem.clone(), pick.trees.clone());
    let settings: Vec<(Problem, Vec<TreeLayout>)> = plan.picks.iter().map(entrant).collect();
    let entrants: Vec<Entrant<'_>> = plan
        .picks
        .iter()
        .zip(&settings)
        .map(|(pick, (problem, trees))| Entrant { problem, trees, schedule: &pick.schedule })
        .collect();
    let config = HalvingConfig { budget_seconds, ..HalvingConfig::default() };
    let toolchain = Toolchain::Native(compiler);
    let run = || race(tensors.to_vec(), &entrants, &toolchain, &config, &interrupt::requested);
    let (report, seconds) = screen.phase("measure", run);
    let report = report?;
    screen.line(format!("measure  {}; {seconds:.2} s in all", report.halving));
    plan.chosen = report.winner;
    // A schedule that the user gave was compared with no other.
    let searched = plan.report.is_some() && !interrupt::requested();
    if let Some(time) = report.times[report.winner].filter(|_| searched) {
        keep(chooser, &choices, (plan.choice(), time), screen);
    }
    plan.how = How::Measured(Box::new(report));
    Ok(plan)
}

/// Keeps the fastest schedule for later runs, and names its file; that it cannot be kept is a warning.
pub(crate) fn keep(
    chooser: &Chooser<'_>,
    choices: &Choices,
    (fastest, time): (&Pick, RaceTime),
    screen: &mut Screen,
) {
    match chooser.keep(choices, fastest, time.median_seconds) {
        Ok(path) => screen.line(format!("keep     {}", path.display())),
        Err(error) => screen.warn(format!("the choice cannot be kept: {error}")),
    }
}

/// Returns the C compiler, without which nothing is measured.
///
/// # Errors
///
/// There is none.
pub(crate) fn compiler() -> Result<Compiler, Failure> {
    match Toolchain::detect() {
        Toolchain::Native(compiler) => Ok(compiler),
        _ => Err(Failure::input("measuring needs a C compiler, and there is none")
            .help("install gcc or clang, or name one in the variable CC")),
    }
}

/// Refuses candidates whose trees and outputs do not fit memory together.
pub(crate) fn check_memory<V: Value>(
    picks: &[Pick],
    tensors: &[(usize, Coo<V>)],
    machine: &Machine,
) -> Result<(), Failure> {
    let of = |(input, tensor): &(usize, Coo<V>)| {
        let stored = picks.iter().flat_map(|pick| pick.problem.sparse.iter().zip(&pick.trees));
        let own = stored.filter(|(x, _)| x.input == *input).map(|(_, tree)| tree);
        let trees: BTreeSet<&TreeLayout> = own.collect();
        let list = tensor.nnz() as u64 * (4 * tensor.order() + V::BYTES) as u64;
        // A tree is hardly larger than the list; sorting takes a copy of it.
        list.saturating_mul(trees.len() as u64 + 2)
    };
    let trees = tensors.iter().map(of).fold(0, u64::saturating_add);
    let one = |pick: &Pick| {
        dense_bytes(&pick.problem, (&pick.schedule, &pick.cost)).saturating_add(pick.side_bytes)
    };
    let outputs = picks.iter().map(one).max().unwrap_or(0);
    let need = trees.saturating_add(outputs);
    match left().filter(|&limit| need > limit) {
        None => Ok(()),
        Some(limit) => {
            let (need, limit, threads) = (size(need), size(limit), machine.threads);
            Err(Failure::input(format!(
                "measuring {} candidates on {threads} threads needs {need} of memory but {limit} \
                 is available",
                picks.len()
            ))
            .help("measure fewer with --top, on one tree with --tree, or with fewer --threads"))
        }
    }
}

/// Bytes of all dense operands and the output; saturates.
pub(crate) fn dense_bytes(problem: &Problem, predicted: (&Schedule, &Cost)) -> u64 {
    let bytes = |input: usize| problem.buffer_bytes(problem.expr.inputs[input].set());
    let inputs = problem.dense_inputs().map(bytes);
    inputs.fold(output_bytes(problem, predicted), u64::saturating_add)
}

/// Bytes of the output of a schedule with this cost; saturates.
pub(crate) fn output_bytes(problem: &Problem, (schedule, cost): (&Schedule, &Cost)) -> u64 {
    let output = problem.expr.output.set();
    if problem.output == OutputForm::Assembled {
        return assembled_bytes(problem, schedule, cost);
    }
    if !problem.has_pattern_output() {
        return problem.buffer_bytes(output);
    }
    let nodes = |x: &SparseOperand| x.nodes(problem.sparse_indices(), &problem.extents);
    let positions = problem.leader().map_or(0, nodes);
    problem.buffer_bytes(output - problem.sparse_indices()).saturating_mul(positions)
}
