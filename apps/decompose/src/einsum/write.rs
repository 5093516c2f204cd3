//! The result, to a file.

use std::io;
use std::path::Path;

use decompose_common::files;
use decompose_core::einsum::Expr;
use decompose_core::schedule::has_pattern_of;
use decompose_formats::io::{Base, Format, Overwrite, write as write_list};
use decompose_formats::{Coo, DenseTensor, FormatError, Ints, Value, Width};
use ndarray_npy::{WritableElement, WriteNpyExt};

use crate::convert::check_output;
use crate::einsum::args::OutputArgs;
use crate::failure::Failure;

/// A result.
pub(crate) enum Outcome<V: Value> {
    /// All elements.
    Dense(DenseTensor<V>),
    /// The elements at the positions of a sparse operand, zeros among them.
    List(Coo<V>),
}

/// Refuses, before any work, an output that the result of `expr` cannot be written to.
pub(crate) fn check(expr: &Expr, sparse: &[usize], args: &OutputArgs) -> Result<(), Failure> {
    let output = &expr.output;
    let scalar = output.indices.is_empty();
    let Some(out) = &args.out else {
        return match scalar {
            true => Ok(()),
            false => Err(Failure::input(format!("where does {output} go?"))
                .help("give the file with --out FILE")),
        };
    };
    check_output(out, overwrite(args))?;
    let file = out.display();
    let is_array = is_npy(out)?;
    let pattern = sparse.iter().find(|&&input| has_pattern_of(expr, input, sparse));
    let refuse = |why: String, help: &str| Err(Failure::input(why).help(help));
    match (is_array, pattern) {
        (true, Some(&input)) => refuse(
            format!("{output} is sparse, as {}, but {file} is a dense array", expr.inputs[input]),
            "write it to .tns, .mtx, .ttx or .dtb",
        ),
        (false, _) if scalar => {
            refuse(format!("{output} is a single number"), "write it to .npy, or leave out --out")
        }
        (false, _) if is_mtx(out) && output.indices.len() != 2 => refuse(
            format!("{output} is no matrix, but {file} is a Matrix Market file"),
            "write it to .ttx, .tns or .dtb",
        ),
        _ => Ok(()),
    }
}

/// Writes a result, whose indices count as `base` says where a list counts them.
pub(crate) fn write<V: Value + WritableElement>(
    outcome: Outcome<V>,
    (out, args): (&Path, &OutputArgs),
    base: Option<Base>,
) -> Result<(), Failure> {
    let list = match outcome {
        Outcome::Dense(array) if is_npy(out)? => {
            let npy = |file: &mut io::BufWriter<_>| array.write_npy(file).map_err(io::Error::other);
            return Ok(files::replace(out, npy)?);
        }
        Outcome::List(_) if is_npy(out)? => {
            let why = format!("the schedule assembles a list, but {} is an array", out.display());
            return Err(Failure::input(why)
                .help("write it to .tns, .mtx, .ttx or .dtb, or leave out the line `workspace`"));
        }
        Outcome::Dense(array) => nonzeros(&array)?,
        Outcome::List(list) => without_zeros(list),
    };
    let options = args.list.options(out, base, overwrite(args));
    match write_list(&list, out, &options) {
        Err(FormatError::NoEntries(file)) => {
            let why = format!("the result is zero everywhere, and {file} cannot be empty");
            Err(Failure::input(why).help("write it to .tns, .mtx or .ttx"))
        }
        written => Ok(written?),
    }
}

/// Drops the positions of the sparse operand at which the result is zero.
fn without_zeros<V: Value>(list: Coo<V>) -> Coo<V> {
    if list.zeros() == 0 {
        return list;
    }
    let values = list.values();
    list.filtered(|entry| values[entry] != V::default())
}

/// Lists the elements that are not zero.
fn nonzeros<V: Value>(array: &DenseTensor<V>) -> Result<Coo<V>, Failure> {
    let extents: Vec<u64> = array.shape().iter().map(|&extent| extent as u64).collect();
    let mut coords: Vec<Vec<u64>> = vec![Vec::new(); extents.len()];
    let mut values = Vec::new();
    for (place, &value) in array.indexed_iter() {
        if value != V::default() {
            let modes = coords.iter_mut().enumerate();
            modes.for_each(|(mode, column)| column.push(place[mode] as u64));
            values.push(value);
        }
    }
    let narrow = |(column, &extent): (Vec<u64>, &u64)| -> Ints {
        Ints::collect(column, Width::listed(extent))
    };
    let coords = coords.into_iter().zip(&extents).map(narrow).collect();
    Ok(Coo::new(extents.clone(), coords, values)?)
}

fn overwrite(args: &OutputArgs) -> Overwrite {
    if args.overwrite { Overwrite::Replace } else { Overwrite::Refuse }
}

/// Tells whether `out` lists non-zeros.
pub(crate) fn is_list(out: &Path) -> bool {
    is_npy(out).is_ok_and(|dense| !dense)
}

fn is_npy(out: &Path) -> Result<bool, Failure> {
    Ok(Format::of_path(out)?.0 == Format::Npy)
}

fn is_mtx(out: &Path) -> bool {
    out.to_string_lossy().to_ascii_lowercase().contains(".mtx")
}
