//! A sum of products by one kernel, told on the screen.

use std::time::Instant;

use decompose_core::autoschedule::{default_scheduler, scheduler};
use decompose_core::compute::{Tensor, Term, plan_terms, scale_terms, trees_of_terms};
use decompose_core::contract::{Contraction, Planned, StoredTrees};
use decompose_core::cost::Machine;
use decompose_core::error::CoreError;
use decompose_formats::Value;

use crate::einsum::kernel::Kernels;
use crate::einsum::memory::EinsumForecast;
use crate::failure::Failure;
use crate::schedule::args::Search;
use crate::schedule::table;

/// Computes the sum of `terms` by one kernel; `None` if their schedules do not go together, if that takes more memory than
/// there is, or if the user asked for schedules of single products.
pub(super) fn sum<V: Value>(
    kernels: &mut Kernels<'_, V>,
    terms: &mut Vec<Term<V>>,
    stored: &mut StoredTrees<V>,
) -> Result<Option<Tensor<V>>, Failure> {
    let search = &kernels.args.search;
    let bounded = search.max_buffer_dims.is_some() || search.max_buffer_bytes.is_some();
    let scheduler = match search.scheduler {
        _ if bounded => return Ok(None),
        Some(Search::Measured) => return Ok(None),
        Some(Search::Named(name)) => scheduler(name).unwrap_or(default_scheduler()),
        None => default_scheduler(),
    };
    let machine = Machine { threads: kernels.threads, ..Machine::here().clone() };
    let plan = || plan_terms(terms, scheduler, &machine);
    let (planned, seconds) = kernels.screen.phase("search", plan);
    let Some(planned) = planned? else { return Ok(None) };
    let forecast = forecast(kernels, &planned, terms, stored);
    if !forecast.fits() {
        return Ok(None);
    }
    tell(kernels, &planned, terms, seconds);
    scale_terms(terms, kernels)?;
    forecast.build()?;
    let toolchain = kernels.toolchain();
    let (built, seconds) = kernels.screen.phase("build", || -> Result<_, CoreError> {
        let trees = trees_of_terms(&planned, terms, stored)?;
        let start = Instant::now();
        let made = Contraction::summing(&planned, trees, &toolchain)?;
        Ok((made, start.elapsed().as_secs_f64()))
    });
    let (mut contraction, kernel_seconds) = built?;
    let elements = contraction.estimate_elements(&[])?;
    forecast.with_elements(elements).run()?;
    let result = kernels.run(&mut contraction, &[], ("trees", seconds, kernel_seconds))?;
    if let Some((_, first)) = planned.first() {
        kernels.tell_result(&result, first, elements);
    }
    Ok(Some(result))
}

/// Predicts the memory of the sum.
fn forecast<V: Value>(
    kernels: &Kernels<'_, V>,
    planned: &[(usize, Planned)],
    terms: &[Term<V>],
    stored: &StoredTrees<V>,
) -> EinsumForecast {
    let trees = planned.iter().map(|(at, plan)| {
        let Term { known, tensors, .. } = &terms[*at];
        let list = |input: usize| match tensors.get(input) {
            Some(Tensor::Sparse(list)) => Some(list),
            _ => None,
        };
        kernels.tree_bytes((plan, known), list, stored)
    });
    let trees = trees.fold(0, u64::saturating_add);
    EinsumForecast::of_sum::<V>(planned, trees, kernels.threads, kernels.args.output.max_memory)
}

/// Tells the schedule of each product.
fn tell<V: Value>(
    kernels: &Kernels<'_, V>,
    planned: &[(usize, Planned)],
    terms: &[Term<V>],
    seconds: f64,
) {
    let screen = &kernels.screen;
    for (place, (at, plan)) in planned.iter().enumerate() {
        let (expr, factor) = (&plan.problem.expr, terms[*at].factor);
        let mut factors: Vec<String> = expr.inputs.iter().map(ToString::to_string).collect();
        if factor.abs() != 1.0 {
            factors.insert(0, factor.abs().to_string());
        }
        let first = if place == 0 { format!("sum      {} =", expr.output) } else { " ".repeat(8) };
        let sign = match (place, factor < 0.0) {
            (0, false) => "",
            (_, true) => "- ",
            (_, false) => "+ ",
        };
        screen.line(format!("{first} {sign}{}", factors.join(" * ")));
        let (label, trees) = (table::label(plan), plan.trees_typed());
        screen.line(format!("         schedule {label} on {trees}"));
    }
    let predicted: f64 = planned.iter().map(|(_, plan)| plan.seconds).sum();
    let storing: f64 = planned.iter().map(|(_, plan)| plan.storing).sum();
    screen.line(format!(
        "         one kernel, {predicted:.2e} s predicted, {storing:.2e} s to build the trees; searched in {:.2} ms",
        seconds * 1e3
    ));
}
