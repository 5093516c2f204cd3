//! From names and files to tensors that fit the program and each other.

use std::collections::BTreeMap;
use std::path::Path;

use decompose_common::memory;
use decompose_common::progress::Screen;
use decompose_core::compute::Tensor;
use decompose_core::einsum::Access;
use decompose_formats::Value;
use decompose_formats::io::Base;

use crate::einsum::args::OperandArgs;
use crate::einsum::dense::{self, FileKind};
use crate::einsum::program::Program;
use crate::failure::Failure;
use crate::schedule::args::{Binding, check_given_once};
use crate::schedule::extents::Known;
use crate::schedule::input::read_lists;

/// The files of a program's operands.
pub(crate) struct Files<'a> {
    operands: Vec<OperandFile<'a>>,
}

/// An operand with its file.
struct OperandFile<'a> {
    access: &'a Access,
    file: &'a Path,
    kind: FileKind,
    form: Form,
}

/// How an operand is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Sparse,
    Dense,
}

/// Tensors by name.
pub(crate) struct Tensors<V: Value> {
    pub(crate) by_name: BTreeMap<String, Tensor<V>>,
    /// From where indices count in the file of the first list, if that is text.
    pub(crate) base: Option<Base>,
}

impl<'a> Files<'a> {
    /// Gives each operand of `program` its file.
    pub(crate) fn new(program: &'a Program, args: &'a OperandArgs) -> Result<Files<'a>, Failure> {
        let operands = program.operands();
        let names = args.tensor.iter().map(|binding| &binding.name);
        names.clone().try_for_each(|name| check_name(name, program, &operands))?;
        check_given_once(&args.tensor)?;
        let bound: BTreeMap<&String, &Binding> = names.zip(&args.tensor).collect();
        args.dense.iter().try_for_each(|name| check_name(name, program, &operands))?;
        let file = |access: &&'a Access| -> Result<OperandFile<'a>, Failure> {
            let name = &access.tensor;
            let binding = bound.get(name).ok_or_else(|| {
                Failure::input(format!("operand `{name}` of `{program}` has no file"))
                    .help(format!("give it with --tensor {name}=FILE"))
            })?;
            let kind = FileKind::of(&binding.file)?;
            let sparse = kind == FileKind::List && !args.dense.contains(name);
            let form = if sparse { Form::Sparse } else { Form::Dense };
            Ok(OperandFile { access, file: &binding.file, kind, form })
        };
        Ok(Files { operands: operands.iter().map(file).collect::<Result<_, _>>()? })
    }

    /// Tells whether the operand called `name` is a list of non-zeros.
    pub(crate) fn is_sparse(&self, name: &str) -> bool {
        let own = self.operands.iter().find(|operand| operand.access.tensor == name);
        own.is_some_and(|operand| operand.form == Form::Sparse)
    }

    /// Reads all files; `known` extents may exceed what lists of non-zeros show.
    pub(crate) fn read<V: Value>(
        &self,
        mut known: Known,
        screen: &mut Screen,
    ) -> Result<Tensors<V>, Failure> {
        let mut by_name = BTreeMap::new();
        let (lists, arrays): (Vec<&OperandFile<'_>>, Vec<&OperandFile<'_>>) =
            self.operands.iter().partition(|operand| operand.kind == FileKind::List);
        for OperandFile { access, file, kind, .. } in arrays {
            let array = dense::read::<V>(file, kind)?;
            let shape: Vec<u64> = array.shape().iter().map(|&extent| extent as u64).collect();
            learn(&mut known, access, &shape, file)?;
            by_name.insert(access.tensor.clone(), Tensor::Dense(array));
        }
        let mut base = None;
        let files: Vec<(&Access, &Path)> =
            lists.iter().map(|operand| (operand.access, operand.file)).collect();
        let mut first = true;
        for (operand, list) in lists.iter().zip(read_lists::<V>(&files, &mut known, screen)?) {
            let tensor = if operand.form == Form::Dense {
                let (list, file) = (Tensor::Sparse(list.tensor), operand.file.display());
                let what = || format!("{file} as a dense array");
                memory::foresee(list.bytes_to_fill(), what, "take it as sparse")?;
                Tensor::Dense(list.into_dense())
            } else {
                base = if first { list.base() } else { base };
                first = false;
                Tensor::Sparse(list.tensor)
            };
            by_name.insert(operand.access.tensor.clone(), tensor);
        }
        Ok(Tensors { by_name, base })
    }
}

fn check_name(name: &str, program: &Program, operands: &[&Access]) -> Result<(), Failure> {
    if operands.iter().any(|access| access.tensor == name) {
        return Ok(());
    }
    let have: Vec<&str> = operands.iter().map(|access| access.tensor.as_str()).collect();
    Err(Failure::input(format!("`{program}` has no operand `{name}`"))
        .help(format!("its operands are {}", have.join(", "))))
}

/// Records the extents of an operand.
fn learn(known: &mut Known, access: &Access, shape: &[u64], file: &Path) -> Result<(), Failure> {
    let name = file.display().to_string();
    if shape.len() != access.indices.len() {
        let (have, want) = (shape.len(), access.indices.len());
        let access = known.named(access);
        let why = format!("{name} has {have} axes but {access} has {want} indices");
        return Err(Failure::input(why));
    }
    let mut modes = shape.iter().enumerate();
    modes.try_for_each(|(mode, &extent)| known.set((&access.tensor, mode), extent, &name))
}
