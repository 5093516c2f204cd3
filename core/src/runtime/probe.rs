//! Loops that measure the machine, compiled as kernels are (`probes.c`).
#![expect(unsafe_code, reason = "calling compiled loops")]

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use decompose_formats::dense::padded;
use decompose_formats::{Matrix, Value};
use libloading::Library;

use crate::error::CoreError;
use crate::runtime::compiler::Toolchain;
use crate::runtime::kernel::{Entry, open};

static SOURCE: &str = include_str!("probes.c");

/// The loops for rows of one length and values of one size.
#[derive(Clone)]
pub struct Probes {
    entry: Entry,
    value_bytes: usize,
    /// Values of a row, padding included.
    row: usize,
    _library: Arc<Library>,
}

/// One measuring loop with what it runs over.
pub enum Probe<'a, V: Value> {
    /// Multiply-adds in vector registers: this many rounds.
    MultiplyAdd(u64),
    /// A sum over all values of a matrix.
    Read(&'a Matrix<V>),
    /// `to = a + b / 2`, over matrices of one shape.
    Triad {
        /// What is written.
        to: &'a mut Matrix<V>,
        /// `a` and `b`.
        from: [&'a Matrix<V>; 2],
    },
    /// A sum of rows of a table.
    Gather {
        /// The table.
        table: &'a Matrix<V>,
        /// Which rows, in which order.
        rows: &'a RowList,
        /// How many rows ahead are asked for; 0: none.
        distance: usize,
    },
}

/// Numbers of rows.
#[derive(Clone, Debug)]
pub struct RowList {
    rows: Vec<u32>,
    /// One more than the largest.
    end: u64,
}

impl RowList {
    /// Takes a list of rows.
    pub fn new(rows: Vec<u32>) -> RowList {
        let end = rows.iter().max().map_or(0, |&last| u64::from(last) + 1);
        RowList { rows, end }
    }

    /// Returns how many rows are listed.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Tells whether no row is listed.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl Probes {
    /// Compiles the loops for rows of `cols` values of type `V`.
    ///
    /// # Errors
    ///
    /// Why there is no compiler, or its message.
    pub fn new<V: Value>(cols: usize, toolchain: &Toolchain) -> Result<Probes, String> {
        let compiler = toolchain.compiler()?;
        let row = padded(cols.max(1), V::BYTES);
        let vector = (row * V::BYTES).min(64);
        let name = if V::BYTES == 4 { "float" } else { "double" };
        let source =
            format!("typedef {name} value;\n#define ROW {row}\n#define VECTOR {vector}\n{SOURCE}");
        let (entry, library) = open(&compiler.build(&source)?.object)?;
        Ok(Probes { entry, value_bytes: V::BYTES, row, _library: library })
    }

    /// Runs a loop; returns the flops of a round for [`Probe::MultiplyAdd`], else a sum.
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] if values, rows or shapes are not those the loops were made for.
    pub fn run<V: Value>(&self, probe: Probe<'_, V>) -> Result<f64, CoreError> {
        self.check(&probe)?;
        let mut out = [V::from_f64(0.5), V::default()];
        let none = ptr::null::<c_void>();
        let start = |matrix: &Matrix<V>| matrix.as_slice().as_ptr().cast::<c_void>();
        let mut written = ptr::null_mut::<c_void>();
        let mut answer = 0;
        let (inputs, task) = match probe {
            Probe::MultiplyAdd(rounds) => {
                answer = 1;
                ([none, none], [0, rounds, 0])
            }
            Probe::Read(from) => ([start(from), none], [1, from.as_slice().len() as u64, 0]),
            Probe::Triad { to, from: [a, b] } => {
                written = to.as_mut_slice().as_mut_ptr().cast();
                ([start(a), start(b)], [2, a.as_slice().len() as u64, 0])
            }
            Probe::Gather { table, rows, distance } => {
                let which = if distance == 0 { 3 } else { 4 };
                let list = rows.rows.as_ptr().cast::<c_void>();
                ([start(table), list], [which, rows.len() as u64, distance as u64])
            }
        };
        // SAFETY: `check` has compared lengths, rows and alignment with what the loops of `SOURCE`
        // read and write; `out` has room for the two values that they may write there, and what
        // `to` points at is borrowed mutably.
        unsafe {
            (self.entry)(
                inputs.as_ptr(),
                out.as_mut_ptr().cast(),
                written,
                ptr::null_mut(),
                task.as_ptr(),
            );
        }
        Ok(out[answer].to_f64())
    }

    fn check<V: Value>(&self, probe: &Probe<'_, V>) -> Result<(), CoreError> {
        let aligned = |matrix: &Matrix<V>| (matrix.as_slice().as_ptr() as usize).is_multiple_of(64);
        let fits = match probe {
            Probe::MultiplyAdd(_) => true,
            Probe::Read(from) => aligned(from),
            Probe::Triad { to, from } => {
                let same = |m: &&Matrix<V>| m.as_slice().len() == to.as_slice().len();
                from.iter().all(same)
            }
            Probe::Gather { table, rows, .. } => {
                let stride = padded(table.cols(), V::BYTES);
                aligned(table) && stride == self.row && rows.end <= table.rows() as u64
            }
        };
        if fits && V::BYTES == self.value_bytes {
            return Ok(());
        }
        let why = "other values, rows or shapes than the loops were made for".to_owned();
        Err(CoreError::Operand { operand: "probe".into(), why })
    }
}

#[cfg(test)]
mod tests {
    use decompose_formats::Matrix;

    use super::{Probe, Probes, RowList};
    use crate::runtime::Toolchain;

    #[test]
    fn probes_compute_and_refuse() {
        let toolchain = Toolchain::detect();
        let Ok(probes) = Probes::new::<f32>(5, &toolchain) else { return };
        let mut table = Matrix::<f32>::zeros(4, 5).unwrap();
        (0..4).for_each(|row| table.row_mut(row).fill(row as f32));
        let rows = RowList::new(vec![3, 1, 3, 2]);
        // Lane 0 of all rows, and the other lanes stand aside.
        for distance in [0, 2] {
            let sum = probes.run(Probe::Gather { table: &table, rows: &rows, distance }).unwrap();
            assert_eq!(sum, 9.0);
        }
        let (a, b) = (table.try_clone().unwrap(), table.try_clone().unwrap());
        probes.run(Probe::Triad { to: &mut table, from: [&a, &b] }).unwrap();
        assert_eq!(table.row(2), [3.0; 5]);
        assert!(probes.run::<f32>(Probe::MultiplyAdd(1)).unwrap() >= 2.0);
        let far = RowList::new(vec![4]);
        assert!(probes.run(Probe::Gather { table: &table, rows: &far, distance: 0 }).is_err());
        let wide = Matrix::<f32>::zeros(4, 50).unwrap();
        assert!(probes.run(Probe::Gather { table: &wide, rows: &rows, distance: 0 }).is_err());
        assert!(probes.run::<f64>(Probe::MultiplyAdd(1)).is_err());
        let short = Matrix::<f32>::zeros(1, 5).unwrap();
        assert!(probes.run(Probe::Triad { to: &mut table, from: [&a, &short] }).is_err());
    }
}
