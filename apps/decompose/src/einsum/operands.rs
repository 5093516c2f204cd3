//! From names and files to operands that fit the expression and each other.

use std::path::Path;

use decompose_common::machine::size;
use decompose_common::memory::left;
use decompose_common::progress::Screen;
use decompose_core::einsum::{Access, Expr};
use decompose_formats::io::Base;
use decompose_formats::{Coo, DenseTensor, Value};

use crate::einsum::args::OperandArgs;
use crate::einsum::dense::{self, FileKind};
use crate::failure::Failure;
use crate::schedule::args::Binding;
use crate::schedule::expr::inputs_called;
use crate::schedule::input::{Known, read_lists};

/// The files of an expression's inputs.
pub(crate) struct Files<'a> {
    /// By input.
    bindings: Vec<&'a Binding>,
    kinds: Vec<FileKind>,
    /// Whether an input's list is to be taken as dense.
    densified: Vec<bool>,
    /// The sparse inputs.
    pub(crate) sparse: Vec<usize>,
}

/// The operands, read.
pub(crate) struct Operands<V: Value> {
    /// The sparse ones, by input.
    pub(crate) tensors: Vec<(usize, Coo<V>)>,
    /// From where indices count in the file of the first, if that is text.
    pub(crate) base: Option<Base>,
    /// The dense ones in the order of the expression.
    pub(crate) dense: Vec<DenseTensor<V>>,
    /// The extents of all inputs, by input.
    pub(crate) shapes: Vec<Vec<u64>>,
}

impl<'a> Files<'a> {
    /// Gives each input of `expr` its file, and finds the sparse ones.
    pub(crate) fn new(expr: &Expr, args: &'a OperandArgs) -> Result<Files<'a>, Failure> {
        let mut bound: Vec<Option<&Binding>> = vec![None; expr.inputs.len()];
        for binding in &args.tensor {
            for input in inputs_called(expr, &binding.name)? {
                if let Some(before) = bound[input].replace(binding) {
                    let (first, second) = (before.file.display(), binding.file.display());
                    let name = &binding.name;
                    let why = format!("operand `{name}` is given twice: {first} and {second}");
                    return Err(Failure::input(why));
                }
            }
        }
        let missing = bound.iter().position(Option::is_none);
        if let Some(input) = missing {
            let name = &expr.inputs[input].tensor;
            return Err(Failure::input(format!("operand `{name}` of `{expr}` has no file"))
                .help(format!("give it with --tensor {name}=FILE")));
        }
        let bindings: Vec<&Binding> = bound.into_iter().flatten().collect();
        let kinds = bindings.iter().map(|binding| FileKind::of(&binding.file));
        let kinds = kinds.collect::<Result<Vec<_>, _>>()?;
        let mut densified = vec![false; kinds.len()];
        for name in &args.dense {
            for input in inputs_called(expr, name)? {
                densified[input] = kinds[input] == FileKind::List;
            }
        }
        let sparse = find_sparse(expr, &kinds, &densified)?;
        Ok(Files { bindings, kinds, densified, sparse })
    }

    /// Reads all files; `known` extents may exceed what lists of non-zeros show.
    pub(crate) fn read<V: Value>(
        &self,
        expr: &Expr,
        mut known: Known,
        screen: &mut Screen,
    ) -> Result<Operands<V>, Failure> {
        let mut dense: Vec<Option<DenseTensor<V>>> = vec![None; expr.inputs.len()];
        let is_array = |input: &usize| self.kinds[*input] != FileKind::List;
        for input in (0..expr.inputs.len()).filter(is_array) {
            let file = &self.bindings[input].file;
            let array = dense::read::<V>(file, &self.kinds[input])?;
            let shape: Vec<u64> = array.shape().iter().map(|&extent| extent as u64).collect();
            learn(&mut known, &expr.inputs[input], &shape, file)?;
            dense[input] = Some(array);
        }
        let lists = (0..expr.inputs.len()).filter(|input| !is_array(input));
        let lists: Vec<(usize, &Path)> =
            lists.map(|input| (input, self.bindings[input].file.as_path())).collect();
        let (mut base, mut tensors) = (None, Vec::new());
        for (input, list) in read_lists::<V>(&lists, expr, &mut known, screen)? {
            if self.densified[input] {
                check_cells::<V>(&list.tensor, &self.bindings[input].file)?;
                dense[input] = Some(dense::densify(&list.tensor));
                continue;
            }
            base = if tensors.is_empty() { list.base() } else { base };
            tensors.push((input, list.tensor));
        }
        let extents =
            |access: &Access| access.indices.iter().filter_map(|&i| known.get(i)).collect();
        let shapes = expr.inputs.iter().map(extents).collect();
        Ok(Operands { tensors, base, dense: dense.into_iter().flatten().collect(), shapes })
    }
}

/// The inputs that are lists of non-zeros and stay so.
fn find_sparse(expr: &Expr, kinds: &[FileKind], densified: &[bool]) -> Result<Vec<usize>, Failure> {
    let lists: Vec<usize> = (0..kinds.len())
        .filter(|&input| kinds[input] == FileKind::List && !densified[input])
        .collect();
    if lists.is_empty() {
        return Err(Failure::input(format!("no operand of `{expr}` is sparse; one must be"))
            .help("`decompose convert A.npy A.tns` lists the non-zeros of a dense one"));
    }
    Ok(lists)
}

/// Records the extents of an operand.
fn learn(known: &mut Known, access: &Access, shape: &[u64], file: &Path) -> Result<(), Failure> {
    let name = file.display().to_string();
    if shape.len() != access.indices.len() {
        let (have, want) = (shape.len(), access.indices.len());
        let why = format!("{name} has {have} axes but {access} has {want} indices");
        return Err(Failure::input(why));
    }
    let mut pairs = access.indices.iter().zip(shape);
    pairs.try_for_each(|(&index, &extent)| known.set(index, extent, &name))
}

/// Refuses to make a list dense that would not fit memory.
fn check_cells<V: Value>(list: &Coo<V>, file: &Path) -> Result<(), Failure> {
    let cells = list.extents().iter().fold(V::BYTES as u64, |n, &extent| n.saturating_mul(extent));
    match left().filter(|&limit| cells > limit) {
        None => Ok(()),
        Some(limit) => {
            let (file, need, limit) = (file.display(), size(cells), size(limit));
            Err(Failure::input(format!(
                "{file} takes {need} as a dense array; {limit} is available"
            )))
        }
    }
}
