//! `decompose einsum`: an expression computed from files.

mod args;
mod dense;
mod memory;
mod operands;
mod write;

use std::sync::Arc;
use std::time::Instant;

use decompose_common::memory::{left, limit, set_limit};
use decompose_common::progress::{Screen, Verbosity};
use decompose_core::autoschedule::SearchLimits;
use decompose_core::contract::{Contraction, Request, ResultForm, count_products};
use decompose_core::error::CoreError;
use decompose_core::runtime::Toolchain;
use decompose_formats::io::Base;
use decompose_formats::{Coo, Csf, DenseTensor, Matrix, PatternCounts, Value};
use ndarray_npy::WritableElement;

use crate::cli::Done;
use crate::einsum::memory::EinsumForecast;
use crate::einsum::operands::{Files, Operands};
use crate::einsum::write::Outcome;
use crate::failure::Failure;
use crate::run::args::Precision;
use crate::run::memory::tell_peak;
use crate::schedule::choose::{Chooser, Pick, Selection};
use crate::schedule::decide::{self, Effort, When};
use crate::schedule::input::Known;
use crate::schedule::{expr, start_threads, table};
use crate::stdout;

pub(crate) use crate::einsum::args::EinsumArgs;

/// Runs the command.
///
/// # Errors
///
/// Bad options or input before anything is written; a fault of the machine or this program.
pub(crate) fn run(args: &EinsumArgs) -> Result<Done, Failure> {
    set_limit(limit(args.output.max_memory));
    let threads = start_threads(&args.search)?;
    match args.search.precision {
        Precision::F64 => run_in::<f64>(args, threads),
        Precision::F32 => run_in::<f32>(args, threads),
    }
}

fn run_in<V: Value + WritableElement>(args: &EinsumArgs, threads: usize) -> Result<Done, Failure> {
    let verbosity = if args.output.quiet { Verbosity::Quiet } else { Verbosity::Normal };
    let mut screen = Screen::new(verbosity);
    let expr = expr::parse(&args.expr)?;
    let known = Known::given(&expr, args.operands.extents.iter())?;
    let files = Files::new(&expr, &args.operands)?;
    write::check(&expr, &files.sparse, &args.output)?;
    screen.line(format!("einsum   {expr}; threads {threads}, {}", V::NAME));
    let operands = files.read::<V>(&expr, known, &mut screen)?;
    let count = |(input, list): &(usize, Coo<V>)| {
        (*input, screen.phase("count", || PatternCounts::of(list)).0)
    };
    let counts: Vec<(usize, PatternCounts)> = operands.tensors.iter().map(count).collect();
    let counted: Vec<(usize, &PatternCounts)> =
        counts.iter().map(|(input, counts)| (*input, counts)).collect();
    let mut request = Request::joining(expr, &counted, &operands.shapes)?;
    request.value_bytes = V::BYTES;
    // A list of one sparse operand's product with dense ones is mostly as long as the array.
    if request.sparse.len() > 1 && args.output.out.as_deref().is_some_and(write::is_list) {
        request.result = ResultForm::Sparse;
        request.products = products(&request, &operands.tensors);
    }
    let chooser = Chooser::new(&request, &args.search, threads)?;
    let effort = Effort {
        limits: SearchLimits::default(),
        measure: When::Asked,
        top: decide::MEASURED,
        budget_seconds: decide::BUDGET_SECONDS,
    };
    let plan = decide::plan(&chooser, &operands.tensors, &effort, &mut screen)?;
    tell_plan(&plan, &screen);
    let pick = plan.choice();
    let forecast = EinsumForecast::new(pick, &operands.tensors, threads, args.output.max_memory);
    forecast.check()?;
    let base = operands.base;
    let outcome = compute(pick, operands, (args, forecast), &mut screen)?;
    finish(&request, (outcome, base), args, &mut screen)
}

/// Counts the products of a join of two operands; of more only an estimate is known.
fn products<V: Value>(request: &Request, tensors: &[(usize, Coo<V>)]) -> Option<u64> {
    let [(first, left), (second, right)] = tensors else { return None };
    let access = |input: &usize| &request.expr.inputs[*input];
    Some(count_products((access(first), left), (access(second), right)))
}

fn tell_plan(plan: &Selection, screen: &Screen) {
    let pick = plan.choice();
    let tree = if pick.trees.len() == 1 { "tree" } else { "trees" };
    screen.line(format!("schedule {} on {tree} {}", table::label(pick), pick.trees_typed()));
    let how = crate::schedule::how(plan).replace('\n', "\n         ");
    screen.line(format!("         {:.2e} s predicted\n{how}", pick.seconds));
}

/// Builds the tree and the kernel and runs it.
fn compute<V: Value>(
    pick: &Pick,
    operands: Operands<V>,
    (args, forecast): (&EinsumArgs, EinsumForecast),
    screen: &mut Screen,
) -> Result<Outcome<V>, Failure> {
    let toolchain = match args.output.no_codegen {
        true => Toolchain::Interpreter("--no-codegen was given".into()),
        false => Toolchain::detect(),
    };
    let Operands { mut tensors, dense, .. } = operands;
    forecast.build()?;
    let (built, seconds) = screen.phase("build", || -> Result<_, CoreError> {
        let mut trees = Vec::with_capacity(pick.trees.len());
        for (x, layout) in pick.problem.sparse.iter().zip(&pick.trees) {
            let at = tensors.iter().position(|(input, _)| *input == x.input);
            let at =
                at.ok_or_else(|| CoreError::Internal("an operand that was not read".into()))?;
            let (_, tensor) = tensors.swap_remove(at);
            trees.push(Arc::new(Csf::build(tensor, &layout.order)?.fuse(layout.fused)));
        }
        let start = Instant::now();
        let made = Contraction::joining(&pick.problem, &pick.schedule, trees, &toolchain)?;
        Ok((made, start.elapsed().as_secs_f64()))
    });
    let (mut contraction, kernel_seconds) = built?;
    forecast.run()?;
    let packed = pack(&contraction, dense)?;
    let packed: Vec<&Matrix<V>> = packed.iter().collect();
    if let Some(why) = contraction.kernel().interpreted() {
        screen.warn(format!("the kernel runs in the interpreter, many times slower: {why}"));
    }
    let tree = if pick.trees.len() == 1 { "tree" } else { "trees" };
    let tree_seconds = seconds - kernel_seconds;
    screen.line(format!("build    {tree} {tree_seconds:.2} s, kernel {kernel_seconds:.2} s"));
    if contraction.is_assembled() {
        let most = left().unwrap_or(u64::MAX);
        let (list, seconds) = screen.phase("run", || contraction.assemble(&packed, most));
        let list = list?;
        screen.line(format!("run      {seconds:.3e} s"));
        return Ok(Outcome::List(list));
    }
    let mut output = contraction.output()?;
    let (ran, seconds) = screen.phase("run", || contraction.run(&packed, &mut output));
    ran?;
    screen.line(format!("run      {seconds:.3e} s"));
    Ok(match (contraction.dense(&output), contraction.pattern(&output)) {
        (Some(array), _) => Outcome::Dense(array),
        (None, Some(list)) => Outcome::List(list?),
        (None, None) => return Err(Failure::internal("a result of neither form")),
    })
}

/// Packs the dense operands, each given up as soon as it is copied.
fn pack<V: Value>(
    contraction: &Contraction<V>,
    dense: Vec<DenseTensor<V>>,
) -> Result<Vec<Matrix<V>>, Failure> {
    let packed = dense.into_iter().enumerate().map(|(at, array)| contraction.pack(at, &array));
    Ok(packed.collect::<Result<_, _>>()?)
}

/// Writes the result and tells what came out.
fn finish<V: Value + WritableElement>(
    request: &Request,
    (outcome, base): (Outcome<V>, Option<Base>),
    args: &EinsumArgs,
    screen: &mut Screen,
) -> Result<Done, Failure> {
    if let (Outcome::Dense(array), true) = (&outcome, request.expr.output.indices.is_empty()) {
        let value = array.first().map_or(0.0, |value| value.to_f64());
        stdout::line(format!("{} = {value:?}", request.expr.output))?;
    }
    if let Some(out) = &args.output.out {
        let writing = || write::write(outcome, (out, &args.output), base);
        let (written, seconds) = screen.phase("write", writing);
        written?;
        screen.line(format!("write    {}; {seconds:.2} s", out.display()));
    }
    tell_peak(screen);
    Ok(Done::Complete)
}
