//! Matrix Market: `%%MatrixMarket matrix coordinate real general`, and TensorMarket, the same with
//! `tensor` for any order (Boisvert, Pozo, Remington: "The Matrix Market exchange formats", 1996).

use rayon::prelude::*;

use crate::array::Array;
use crate::error::FormatError;
use crate::io::options::Base;
use crate::io::report::Dialect;
use crate::io::text::prelude;
use crate::io::text::prelude::Form;
use crate::io::text::prelude::Line;
use crate::io::text::prelude::Lines;
use crate::io::text::prelude::Prelude;
use crate::io::text::prelude::Trouble;
use crate::io::text::row;
use crate::io::text::row::Coordinate;
use crate::io::text::row::Layout;
use crate::io::text::row::ValueColumn;
use crate::value::Value;

/// Which entries of a matrix a file leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symmetry {
    /// None.
    General,
    /// `(j, i)`, equal to `(i, j)`.
    Symmetric,
    /// `(j, i)`, the negative of `(i, j)`.
    Skew,
}

/// Reads the banner and the size line, which is `first`.
pub(super) fn read(lines: &Lines<'_>, first: Line<'_>) -> Result<Prelude, Trouble> {
    let banner = lines.banner.unwrap_or_default().to_ascii_lowercase();
    let words: Vec<&[u8]> = row::fields(&banner).skip(1).collect();
    let refuse = |what: &str| {
        let what = format!("Matrix Market {what} is not read");
        let remedy = "export it as `coordinate real general`";
        Trouble::from(FormatError::Unsupported { file: lines.file.to_owned(), what, remedy })
    };
    let [object, layout, field, symmetry] = words[..] else {
        return Err(refuse("banner with other than four words after %%MatrixMarket"));
    };
    let form = match layout {
        b"coordinate" => Form::List,
        b"array" => Form::Array,
        _ => return Err(refuse("form other than coordinate or array")),
    };
    let values = match field {
        b"real" | b"double" | b"integer" => ValueColumn::Present,
        b"pattern" if form == Form::List => ValueColumn::Absent,
        _ => return Err(refuse("complex or unknown field")),
    };
    let symmetry = match symmetry {
        b"general" => Symmetry::General,
        b"symmetric" if object == b"matrix" => Symmetry::Symmetric,
        b"skew-symmetric" if object == b"matrix" => Symmetry::Skew,
        _ => return Err(refuse("Hermitian, unknown or tensor symmetry")),
    };
    let mut extents = prelude::integers(first.text);
    let fields = row::fields(first.text).count();
    let counted = usize::from(form == Form::List);
    let fits = match object {
        b"matrix" => fields == 2 + counted,
        b"tensor" => fields > counted,
        _ => return Err(refuse("object other than matrix or tensor")),
    };
    if !fits || extents.len() != fields {
        let why = match form {
            Form::List => "expected the size line, all extents and the number of entries",
            Form::Array => "expected the size line, all extents",
        };
        return Err(lines.header_fault(first, why.to_owned()));
    }
    let entries = if form == Form::List { extents.pop() } else { None };
    let extents = lines.extents(first, extents)?;
    if symmetry != Symmetry::General && extents[0] != extents[1] {
        return Err(lines.header_fault(first, "a symmetric matrix must be square".to_owned()));
    }
    let prelude = lines.headed(Dialect::MatrixMarket, extents);
    let layout = Layout { values, ..prelude.layout };
    Ok(Prelude { layout, symmetry, form, ..prelude }.declare(entries, Base::One))
}

/// Adds the entries that a symmetric file leaves out, behind those it lists.
pub(super) fn mirror<I, V>(columns: &mut [Array<I>], values: &mut Array<V>, symmetry: Symmetry)
where
    I: Coordinate,
    V: Value,
{
    let sign = match symmetry {
        Symmetry::General => return,
        Symmetry::Symmetric => V::from_f64(1.0),
        Symmetry::Skew => V::from_f64(-1.0),
    };
    let [rows, cols] = columns else { return };
    let off: Vec<usize> =
        (0..values.len()).into_par_iter().filter(|&entry| rows[entry] != cols[entry]).collect();
    let mirrored: (Vec<I>, Vec<I>) = off.iter().map(|&entry| (cols[entry], rows[entry])).unzip();
    rows.extend(&mirrored.0);
    cols.extend(&mirrored.1);
    values.extend(&off.iter().map(|&entry| values[entry] * sign).collect::<Vec<V>>());
}
