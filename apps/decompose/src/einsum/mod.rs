//! `decompose einsum`: assignments computed from files.

mod args;
mod dense;
mod kernel;
mod memory;
mod operands;
mod program;
mod sum;
mod write;

use decompose_common::memory::{left, limit, set_limit};
use decompose_common::progress::{Screen, Verbosity};
use decompose_core::compute::{Steps, Tensor, Wanted, assign};
use decompose_core::contract::StoredTrees;
use decompose_core::einsum::Assignment;
use decompose_formats::{Value, counted};
use ndarray_npy::WritableElement;

use crate::cli::Done;
use crate::einsum::kernel::Kernels;
use crate::einsum::operands::Files;
use crate::einsum::program::Program;
use crate::einsum::write::{Outputs, Written};
use crate::failure::Failure;
use crate::run::args::Precision;
use crate::run::memory::tell_peak;
use crate::schedule::extents::Known;
use crate::schedule::{operand_formats, start_threads, typed};
use crate::stdout;

pub(crate) use crate::einsum::args::EinsumArgs;
pub(crate) use crate::einsum::program::parse;

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

/// Checks the options as a run does before it reads an operand.
///
/// # Errors
///
/// Bad options, or operands without a file.
pub(crate) fn check(args: &EinsumArgs) -> Result<(), Failure> {
    Posed::of(args, &Program::of(args)?).map(drop)
}

/// Checks the operands as a run does when it has read them.
///
/// # Errors
///
/// Those of [`check`], and operands that do not fit the program or each other.
pub(crate) fn admit(args: &EinsumArgs) -> Result<(), Failure> {
    let program = Program::of(args)?;
    let Posed { known, files, .. } = Posed::of(args, &program)?;
    files.read::<f64>(known, &mut Screen::new(Verbosity::Quiet)).map(drop)
}

/// What is known of a program before an operand is read.
struct Posed<'a> {
    known: Known,
    files: Files<'a>,
    outputs: Outputs<'a>,
}

impl<'a> Posed<'a> {
    fn of(args: &'a EinsumArgs, program: &'a Program) -> Result<Posed<'a>, Failure> {
        check_search(args, program)?;
        let known = Known::given(&program.assignments, args.operands.extents.iter())?;
        let files = Files::new(program, &args.operands)?;
        let outputs = Outputs::new(program, &files, args)?;
        Ok(Posed { known, files, outputs })
    }
}

fn run_in<V: Value + WritableElement>(args: &EinsumArgs, threads: usize) -> Result<Done, Failure> {
    let verbosity = if args.output.quiet { Verbosity::Quiet } else { Verbosity::Normal };
    let mut screen = Screen::new(verbosity);
    let program = Program::of(args)?;
    let Posed { known, files, outputs } = Posed::of(args, &program)?;
    for (at, assignment) in program.assignments.iter().enumerate() {
        let rest =
            if at == 0 { format!("; threads {threads}, {}", V::NAME) } else { String::new() };
        screen.line(format!("{:<9}{assignment}{rest}", if at == 0 { "einsum" } else { "" }));
        if let Some(names) = names(assignment) {
            screen.line(format!("         with {names}"));
        }
    }
    let tensors = files.read::<V>(known, &mut screen)?;
    let base = tensors.base;
    outputs.check_arrays(&program, &tensors.by_name)?;
    let is_result = |name: &str| program.assignment(name).is_some();
    let mut kernels = Kernels {
        args,
        formats: operand_formats(&args.search.format, is_result),
        threads,
        screen: &mut screen,
        tensors: tensors.by_name,
        lists: program.lists(|name| files.is_sparse(name)),
        reads: program.reads(),
        computing: String::new(),
        written: Vec::new(),
    };
    let (mut stored, mut written) = (StoredTrees::default(), Written::default());
    for assignment in &program.assignments {
        let result = compute(assignment, &outputs, &mut stored, &mut kernels)?;
        let name = &assignment.output.tensor;
        warn_of_odd_values(assignment, &result, kernels.screen);
        tell_number(assignment, &result)?;
        outputs.write((name, &result), base, &mut written, kernels.screen)?;
        kernels.keep(name, result);
    }
    written.place(kernels.screen)?;
    tell_peak(&screen);
    Ok(Done::Complete)
}

/// Computes one assignment.
fn compute<V: Value>(
    assignment: &Assignment,
    outputs: &Outputs<'_>,
    stored: &mut StoredTrees<V>,
    kernels: &mut Kernels<'_, V>,
) -> Result<Tensor<V>, Failure> {
    kernels.computing = assignment.to_string();
    let products = 0..assignment.summands.len();
    kernels.written = match assignment.summands.len() {
        1 if assignment.names.iter().next().is_none() => {
            products.map(|at| assignment.product(at).to_string()).collect()
        }
        _ => Vec::new(),
    };
    let EinsumArgs { search, output, .. } = kernels.args;
    let laid_out = search.tree.is_some() || !kernels.formats.is_empty();
    let one = search.schedule.is_some() || laid_out || output.one_kernel;
    let steps = if one { Steps::One } else { Steps::Fastest };
    let name = &assignment.output.tensor;
    let (form, lists_of_one) = (outputs.form(name), outputs.given_form(name).is_some());
    // An intermediate result leaves room for those after it.
    let most_bytes = left().map_or(u64::MAX, |bytes| bytes / 2);
    assign(assignment, Wanted { form, lists_of_one, steps, most_bytes }, stored, kernels)
}

/// Says which letters stand for which names.
fn names(assignment: &Assignment) -> Option<String> {
    let pairs: Vec<String> =
        assignment.names.iter().map(|(index, name)| format!("{index} = {name}")).collect();
    (!pairs.is_empty()).then(|| pairs.join(", "))
}

/// Refuses options about one product where there are several.
fn check_search(args: &EinsumArgs, program: &Program) -> Result<(), Failure> {
    let search = &args.search;
    let is_result = |name: &str| program.assignment(name).is_some();
    let formats = operand_formats(&search.format, is_result);
    let option = match (&search.schedule, &search.tree, formats.first()) {
        (Some(_), ..) => "--schedule".to_owned(),
        (None, Some(_), _) => "--tree".to_owned(),
        (None, None, Some((name, format))) => format!("--format {}", typed(name, format)),
        (None, None, None) => return Ok(()),
    };
    match program.products() {
        1 => Ok(()),
        products => Err(Failure::input(format!(
            "{option} is about one product, but `{program}` has {products}"
        ))),
    }
}

/// Warns of elements that are infinite or no numbers: files with these are refused when they are read.
fn warn_of_odd_values<V: Value>(assignment: &Assignment, result: &Tensor<V>, screen: &Screen) {
    let odd = |value: &&V| !value.to_f64().is_finite();
    let odd = match result {
        Tensor::Dense(array) => array.iter().filter(odd).count(),
        Tensor::Sparse(list) => list.values().iter().filter(odd).count(),
    };
    if odd > 0 {
        let elements = counted(odd, "element", "elements");
        let name = assignment.named(&assignment.output);
        screen.warn(format!(
            "{elements} of {name} infinite or not a number: a logarithm or root of a number below zero, or too \
             large a power"
        ));
    }
}

/// Prints a result that is a single number.
fn tell_number<V: Value>(assignment: &Assignment, result: &Tensor<V>) -> Result<(), Failure> {
    match result {
        Tensor::Dense(array) if assignment.output.indices.is_empty() => {
            let value = array.first().map_or(0.0, |value| value.to_f64());
            stdout::line(format!("{} = {value:?}", assignment.output))
        }
        Tensor::Dense(_) | Tensor::Sparse(_) => Ok(()),
    }
}
