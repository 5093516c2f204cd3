//! The results, to files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use decompose_common::memory;
use decompose_common::progress::Screen;
use decompose_core::compute::Tensor;
use decompose_core::contract::ResultForm;
use decompose_core::einsum::{Access, Assignment, Extents};
use decompose_core::schedule::has_pattern_of;
use decompose_formats::io::{
    Aside, Base, Format, Overwrite, check_list, is_matrix_market, place_all, write_aside,
};
use decompose_formats::{DenseTensor, FormatError, Value};
use ndarray_npy::{WritableElement, WriteNpyExt};

use crate::convert::check_output;
use crate::einsum::args::{EinsumArgs, OutputArgs, OutputFile};
use crate::einsum::memory::{REMEDY_LIST, REMEDY_STEP};
use crate::einsum::operands::Files;
use crate::einsum::program::Program;
use crate::failure::Failure;
use crate::schedule::{refuse_array, result_form};

/// Bytes gathered before they go to the system.
const BUFFER: usize = 1 << 20;

/// The results that are written, each with its file.
pub(crate) struct Outputs<'a> {
    files: Vec<(&'a str, &'a Path)>,
    /// Forms that the user gave.
    forms: Vec<(&'a str, ResultForm)>,
    args: &'a OutputArgs,
}

/// Files that are whole, and take their places when all results are computed.
#[derive(Default)]
pub(crate) struct Written {
    files: Vec<Aside>,
    /// What is said of each.
    told: Vec<String>,
}

impl Written {
    /// Gives all files their names, or none of them.
    pub(crate) fn place(self, screen: &Screen) -> Result<(), Failure> {
        place_all(self.files)?;
        self.told.iter().for_each(|line| screen.line(line));
        Ok(())
    }
}

impl<'a> Outputs<'a> {
    /// Gives results their files, and refuses, before any work, those that they cannot be written to.
    pub(crate) fn new(
        program: &'a Program,
        operands: &Files<'_>,
        EinsumArgs { search, output: args, .. }: &'a EinsumArgs,
    ) -> Result<Outputs<'a>, Failure> {
        let last = program.last().map_or("", |assignment| &assignment.output.tensor);
        let mut files: Vec<(&str, &Path)> = Vec::new();
        for OutputFile { name, file } in &args.out {
            let name = name.as_deref().unwrap_or(last);
            let Some(assignment) = program.assignment(name) else {
                let have: Vec<&str> =
                    program.assignments.iter().map(|own| own.output.tensor.as_str()).collect();
                return Err(Failure::input(format!("`{program}` does not compute `{name}`"))
                    .help(format!("it computes {}", have.join(", "))));
            };
            check(assignment, operands, file, args)?;
            if let Some((_, other)) = files.iter().find(|(_, other)| are_one(other, file)) {
                let (file, other) = (file.display(), other.display());
                return Err(Failure::input(format!(
                    "{file} is to hold two results, and {other} is the same file"
                ))
                .help("give each result a file of its own"));
            }
            files.push((name, file));
        }
        let mut forms = Vec::new();
        for assignment in &program.assignments {
            let output = &assignment.output;
            let form = result_form(output, &search.format)?;
            if form == Some(ResultForm::Dense) && pattern(assignment, operands).is_some() {
                return Err(refuse_array(&assignment.named(output)));
            }
            forms.extend(form.map(|form| (&*output.tensor, form)));
        }
        let outputs = Outputs { files, forms, args };
        let reads = program.reads();
        for assignment in &program.assignments {
            let output = &assignment.output;
            let lost = !reads.contains_key(&output.tensor) && outputs.of(&output.tensor).is_none();
            if lost && !output.indices.is_empty() {
                let several = program.assignments.len() > 1;
                let name = if several { format!("{}=", output.tensor) } else { String::new() };
                let output = assignment.named(output);
                return Err(Failure::input(format!("where does {output} go?"))
                    .help(format!("give the file with --out {name}FILE")));
            }
        }
        Ok(outputs)
    }

    fn of(&self, name: &str) -> Option<&Path> {
        self.files.iter().find(|(own, _)| *own == name).map(|(_, file)| *file)
    }

    /// Returns the form that the user gave `name`, or that its file has; `None` if it has none.
    pub(crate) fn form(&self, name: &str) -> Option<ResultForm> {
        let of_file = || {
            let array = is_npy(self.of(name)?).unwrap_or(false);
            Some(if array { ResultForm::Dense } else { ResultForm::Sparse })
        };
        self.given_form(name).or_else(of_file)
    }

    /// Returns the form that the user gave `name`.
    pub(crate) fn given_form(&self, name: &str) -> Option<ResultForm> {
        self.forms.iter().find(|(own, _)| *own == name).map(|(_, form)| *form)
    }

    /// Refuses, before any work, results that memory does not hold as the arrays that their files are; `tensors` are the
    /// operands.
    pub(crate) fn check_arrays<V: Value>(
        &self,
        program: &Program,
        tensors: &BTreeMap<String, Tensor<V>>,
    ) -> Result<(), Failure> {
        let mut shapes: BTreeMap<&str, Vec<u64>> =
            tensors.iter().map(|(name, tensor)| (name.as_str(), tensor.extents())).collect();
        for assignment in &program.assignments {
            let mut extents = Extents::default();
            for access in assignment.inputs() {
                let shape = shapes.get(access.tensor.as_str()).into_iter().flatten();
                access.indices.iter().zip(shape).for_each(|(&index, &extent)| {
                    extents.set(index, extent);
                });
            }
            let Access { tensor, indices } = &assignment.output;
            let shape: Vec<u64> = indices.iter().map(|&index| extents.of(index)).collect();
            let file = self.of(tensor).is_some_and(|file| is_npy(file).unwrap_or(false));
            if file || self.form(tensor) == Some(ResultForm::Dense) {
                let bytes = V::BYTES as u64;
                let cells = shape.iter().fold(bytes, |n, &extent| n.saturating_mul(extent));
                let what = || format!("{} as an array", assignment.named(&assignment.output));
                memory::foresee(cells, what, REMEDY_LIST)?;
            }
            shapes.insert(tensor, shape);
        }
        Ok(())
    }

    /// Writes the result `name`, if it has a file, beside its place; indices of a list count as `base` says.
    pub(crate) fn write<V: Value + WritableElement>(
        &self,
        (name, result): (&str, &Tensor<V>),
        base: Option<Base>,
        written: &mut Written,
        screen: &mut Screen,
    ) -> Result<(), Failure> {
        for (_, file) in self.files.iter().filter(|(own, _)| *own == name) {
            let writing = || write(result, file, self.args, base);
            let (aside, seconds) = screen.phase("write", writing);
            written.files.push(aside?);
            written.told.push(format!("write    {}; {seconds:.2} s", file.display()));
        }
        Ok(())
    }
}

/// Refuses a file that the result of `assignment` cannot be written to.
fn check(
    assignment: &Assignment,
    operands: &Files<'_>,
    out: &Path,
    args: &OutputArgs,
) -> Result<(), Failure> {
    check_output(out, overwrite(args))?;
    let (output, modes) = (assignment.named(&assignment.output), assignment.output.indices.len());
    let scalar = modes == 0;
    let file = out.display();
    let is_array = is_npy(out)?;
    let refuse = |why: String, help: &str| Err(Failure::input(why).help(help));
    match (is_array, pattern(assignment, operands)) {
        (true, Some(operand)) => refuse(
            format!("{output} is sparse, as {operand}, but {file} is a dense array"),
            "write it to .tns, .mtx, .ttx or .dtb",
        ),
        (false, _) if scalar => {
            refuse(format!("{output} is a single number"), "write it to .npy, or leave out --out")
        }
        (false, _) if is_matrix_market(out) && modes != 2 => refuse(
            format!("{output} is no matrix, but {file} is a Matrix Market file"),
            "write it to .ttx, .tns or .dtb",
        ),
        (false, _) => Ok(check_list(modes, out, &args.list.options(out, None, overwrite(args)))?),
        (true, None) => Ok(()),
    }
}

/// Returns the operand whose pattern the result of a single product has, if there is one.
fn pattern(assignment: &Assignment, operands: &Files<'_>) -> Option<String> {
    let [summand] = assignment.summands.as_slice() else { return None };
    let expr = assignment.product(0);
    let inputs = summand.inputs.iter().enumerate();
    let sparse: Vec<usize> = inputs
        .filter(|(_, access)| operands.is_sparse(&access.tensor))
        .map(|(input, _)| input)
        .collect();
    let own = sparse.iter().find(|&&input| has_pattern_of(&expr, input, &sparse))?;
    Some(assignment.named(&summand.inputs[*own]))
}

/// Writes a result beside `out`.
fn write<V: Value + WritableElement>(
    result: &Tensor<V>,
    out: &Path,
    args: &OutputArgs,
    base: Option<Base>,
) -> Result<Aside, Failure> {
    if is_npy(out)? {
        let bytes = if result.is_sparse() { result.bytes_to_fill() } else { 0 };
        memory::foresee(bytes, || format!("the array {}", out.display()), REMEDY_LIST)?;
        return write_array(&result.to_dense(), out, overwrite(args));
    }
    let what = || format!("the list of non-zeros {}", out.display());
    memory::foresee(result.bytes_to_list(), what, REMEDY_STEP)?;
    let list = result.non_zeros()?;
    let options = args.list.options(out, base, overwrite(args));
    match write_aside(&list, out, &options) {
        Err(FormatError::NoEntries(file)) => {
            let why = format!("the result is zero everywhere, and {file} cannot be empty");
            Err(Failure::input(why).help("write it to .tns, .mtx or .ttx"))
        }
        written => Ok(written?),
    }
}

fn write_array<V: Value + WritableElement>(
    array: &DenseTensor<V>,
    out: &Path,
    overwrite: Overwrite,
) -> Result<Aside, Failure> {
    let npy = |file: &mut File| {
        let mut file = BufWriter::with_capacity(BUFFER, file);
        array.write_npy(&mut file).map_err(io::Error::other)?;
        file.flush()?;
        file.get_ref().sync_all()
    };
    Ok(Aside::new(out, overwrite, npy)?)
}

/// Tells whether two paths name one file, which need not exist.
fn are_one(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok();
        path.canonicalize().ok().or_else(|| Some(folder?.join(path.file_name()?)))
    };
    a == b || place(a).is_some_and(|place_of_a| place(b) == Some(place_of_a))
}

fn overwrite(args: &OutputArgs) -> Overwrite {
    if args.overwrite { Overwrite::Replace } else { Overwrite::Refuse }
}

fn is_npy(out: &Path) -> Result<bool, Failure> {
    Ok(Format::of_path(out)?.0 == Format::Npy)
}
