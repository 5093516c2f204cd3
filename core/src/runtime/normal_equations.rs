//! Normal equations of the rows of a factor, compiled as kernels are (`normal_equations.c`).
//!
//! ```text
//! N(i) = sum over the entries of slice i of w w^T,   h(i) = sum of x w,
//! w    = the rows of the other modes at the entry, multiplied
//! ```
//!
//! `N` is symmetric, which no expression says, and rows of it are worth forming only in registers: a
//! loop of its own takes less than half the time of the contraction `N(i,r,s) = X(i,j,k) B(j,r) C(k,r)
//! B(j,s) C(k,s)` as it is scheduled.
#![expect(unsafe_code, reason = "calling compiled loops")]

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use decompose_formats::dense::padded;
use decompose_formats::{Coo, Matrix};
use libloading::Library;

use crate::cost::Machine;
use crate::error::CoreError;
use crate::runtime::compiler::Toolchain;
use crate::runtime::kernel::{Entry, open};

static SOURCE: &str = include_str!("normal_equations.c");

/// How many entries ahead rows are asked for.
const AHEAD: usize = 16;

/// The entries of a tensor slice by slice of one mode.
///
/// Memory: `4 N + 8` bytes an entry of a tensor of order `N`.
pub struct SliceList {
    /// The first entry of each slice, and one past the last entry.
    starts: Vec<usize>,
    /// The rows of the other modes, in the order of the modes.
    rows: Vec<u32>,
    values: Vec<f64>,
    /// Where each entry stood in the tensor.
    places: Vec<u32>,
    /// The extents of the other modes.
    extents: Vec<usize>,
}

/// The loop for factors of one rank.
pub struct Slices {
    rank: usize,
    others: usize,
    code: SliceCode,
}

enum SliceCode {
    Native { entry: Entry, _library: Arc<Library> },
    Plain,
}

/// Entries of a slice list, with values in the place of those of the list.
pub struct SliceEntries<'a> {
    /// The list.
    pub list: &'a SliceList,
    /// A value for each entry of the list.
    pub values: &'a [f64],
    /// The entries.
    pub entries: Range<usize>,
}

impl SliceList {
    /// Lists the entries of `tensor` by the slices of `mode`, else in the order of the tensor.
    ///
    /// Time `O(nnz N)`.
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] if a mode has, or there are, 2^32 or more.
    pub fn new(tensor: &Coo<f64>, mode: usize) -> Result<SliceList, CoreError> {
        let (nnz, order) = (tensor.nnz(), tensor.order());
        let longest = tensor.extents().iter().copied().chain([nnz as u64]).max().unwrap_or(0);
        if u32::try_from(longest).is_err() {
            let why = format!("{longest} rows or entries are too many for normal equations");
            return Err(CoreError::Operand { operand: "tensor".into(), why });
        }
        let mut starts = vec![0; tensor.extents()[mode] as usize + 1];
        tensor.coords(mode).iter().for_each(|row| starts[row as usize + 1] += 1);
        for row in 1..starts.len() {
            starts[row] += starts[row - 1];
        }
        let mut next = starts.clone();
        let mut places = vec![0_u32; nnz];
        for (place, row) in tensor.coords(mode).iter().enumerate() {
            places[next[row as usize]] = place as u32;
            next[row as usize] += 1;
        }
        let others: Vec<usize> = (0..order).filter(|&other| other != mode).collect();
        let mut rows = Vec::with_capacity(nnz * others.len());
        for &place in &places {
            rows.extend(others.iter().map(|&m| tensor.coords(m).get(place as usize) as u32));
        }
        let values = places.iter().map(|&place| tensor.values()[place as usize]).collect();
        let extents = others.iter().map(|&other| tensor.extents()[other] as usize).collect();
        Ok(SliceList { starts, rows, values, places, extents })
    }

    /// Returns the number of slices.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Tells whether there is no slice.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the entries of a slice.
    pub fn slice(&self, row: usize) -> Range<usize> {
        self.starts[row]..self.starts[row + 1]
    }

    /// Returns the values of the entries.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns where each entry stood in the tensor.
    pub fn places(&self) -> &[u32] {
        &self.places
    }
}

impl Slices {
    /// Compiles the loop for `rank` columns and tensors of these `extents`; without a compiler a
    /// plain one takes its place.
    ///
    /// Rows are asked for ahead only where the factors outgrow half of the second-level cache:
    /// prefetches of rows that are near made the loop a third slower at rank 10.
    pub fn new(rank: usize, extents: &[u64], toolchain: &Toolchain) -> Slices {
        let (row, others) = (padded(rank, 8), extents.len().saturating_sub(1));
        let bytes = extents.iter().sum::<u64>().saturating_mul(8 * row as u64);
        let ahead = if bytes > Machine::here().l2_bytes / 2 { AHEAD } else { 0 };
        let source = format!(
            "#define OTHERS {others}\n#define RANK {rank}\n#define ROW {row}\n#define LANES {}\n\
             #define AHEAD {ahead}\n{SOURCE}",
            row.min(8)
        );
        let built = toolchain.compiler().map_err(str::to_owned);
        let built = built.and_then(|compiler| compiler.build(&source));
        let built = built.and_then(|built| open(&built.object));
        let code = match built {
            Ok((entry, _library)) => SliceCode::Native { entry, _library },
            Err(_) => SliceCode::Plain,
        };
        Slices { rank, others, code }
    }

    /// Computes `N` and `h` from some `entries`; `factors` are those of the other modes.
    ///
    /// `normal` is `R x R` and `right` a row of `R`, padded as rows of factors are.
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] if an operand has another shape.
    pub fn run(
        &self,
        slice: SliceEntries<'_>,
        factors: &[&Matrix<f64>],
        normal: &mut Matrix<f64>,
        right: &mut Matrix<f64>,
    ) -> Result<(), CoreError> {
        let SliceEntries { list, values, entries } = &slice;
        let row = padded(self.rank, 8);
        let fits = values.len() == list.values.len()
            && entries.start <= entries.end
            && entries.end <= values.len()
            && [factors.len(), list.extents.len()] == [self.others; 2]
            && factors.iter().zip(&list.extents).all(|(f, &e)| f.rows() == e && f.stride() == row)
            && normal.as_slice().len() >= row * row
            && right.as_slice().len() >= row
            && [normal.stride(), right.stride()] == [row; 2];
        if !fits {
            let why = "other shapes than the loop was made for".to_owned();
            return Err(CoreError::Operand { operand: "slices".into(), why });
        }
        match &self.code {
            SliceCode::Plain => plain(slice, factors, normal, right),
            SliceCode::Native { entry, .. } => {
                let mut inputs: Vec<*const c_void> =
                    vec![list.rows.as_ptr().cast(), values.as_ptr().cast()];
                inputs.extend(factors.iter().map(|f| f.as_slice().as_ptr().cast::<c_void>()));
                let task = [entries.start as u64, entries.end as u64];
                // SAFETY: entries are inside the list, whose rows are below the extents that the
                // factors were compared with, as were the lengths of what is written; matrices are
                // aligned to pages.
                unsafe {
                    (*entry)(
                        inputs.as_ptr(),
                        normal.as_mut_slice().as_mut_ptr().cast(),
                        right.as_mut_slice().as_mut_ptr().cast(),
                        ptr::null_mut(),
                        task.as_ptr(),
                    );
                }
            }
        }
        Ok(())
    }
}

/// The same without a compiler.
fn plain(
    slice: SliceEntries<'_>,
    factors: &[&Matrix<f64>],
    normal: &mut Matrix<f64>,
    right: &mut Matrix<f64>,
) {
    let SliceEntries { list, values, entries } = slice;
    normal.as_mut_slice().fill(0.0);
    right.as_mut_slice().fill(0.0);
    let mut w = vec![0.0; right.stride()];
    for entry in entries {
        let rows = &list.rows[entry * factors.len()..][..factors.len()];
        w.fill(1.0);
        for (factor, &row) in factors.iter().zip(rows) {
            let row = &factor.as_slice()[row as usize * factor.stride()..];
            w.iter_mut().zip(row).for_each(|(w, value)| *w *= value);
        }
        for (to, &left) in normal.as_mut_slice().chunks_exact_mut(w.len()).zip(&w) {
            to.iter_mut().zip(&w).for_each(|(to, w)| *to += left * w);
        }
        right.as_mut_slice().iter_mut().zip(&w).for_each(|(h, w)| *h += values[entry] * w);
    }
}
