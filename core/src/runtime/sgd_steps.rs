//! Steps of stochastic gradient descent on squared distances, compiled as kernels are (`sgd_steps.c`).
#![expect(unsafe_code, reason = "calling compiled loops")]

use std::ffi::c_void;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use libloading::Library;

use crate::error::CoreError;
use crate::runtime::compiler::Toolchain;
use crate::runtime::kernel::{Entry, open};

static SOURCE: &str = include_str!("sgd_steps.c");

/// The loop for CP models of one order and rank.
#[derive(Clone)]
pub struct Steps {
    entry: Entry,
    shape: StepShape,
    _library: Arc<Library>,
}

/// What is a literal in the compiled loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StepShape {
    /// Modes of the tensor.
    pub order: usize,
    /// Elements of a row of a factor, padding included: a multiple of 8.
    pub row: usize,
    /// Which elements may change.
    pub columns: Columns,
    /// Which values they may have.
    pub values: Values,
}

/// Which columns of the factors change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// All of them.
    All,
    /// Those that are marked.
    Marked,
}

/// Which values elements may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Any.
    All,
    /// Those from the least value of their mode on.
    Bounded,
}

/// A list of entries: the row of each mode, and the value.
#[derive(Clone, Debug, Default)]
pub struct StepList {
    rows: Vec<u32>,
    values: Vec<f64>,
    /// By mode, one more than the largest row.
    ends: Vec<usize>,
}

/// Some entries with what a step at them needs and changes; lists by mode.
pub struct StepBlock<'a> {
    /// The entries.
    pub list: &'a StepList,
    /// Which of them.
    pub range: Range<usize>,
    /// The rows, written to; aligned to 64 bytes.
    pub factors: Vec<&'a mut [f64]>,
    /// What the ridge of each row is multiplied by.
    pub shares: Vec<&'a [f64]>,
    /// 1 for a column that changes, 0 for one that stays; as long as a row, aligned alike.
    pub free: Vec<&'a [f64]>,
}

/// The numbers of a step.
#[derive(Clone, Debug)]
pub struct StepNumbers<'a> {
    /// Its length.
    pub step: f64,
    /// Added to the value of the model.
    pub offset: f64,
    /// The ridge by mode.
    pub ridge: &'a [f64],
    /// The least value of an element by mode.
    pub least: &'a [f64],
}

impl StepList {
    /// Appends an entry; all have as many `rows` as the first.
    pub fn push(&mut self, rows: &[u32], value: f64) {
        self.ends.resize(rows.len(), 0);
        for (end, &row) in self.ends.iter_mut().zip(rows) {
            *end = (*end).max(row as usize + 1);
        }
        self.rows.extend_from_slice(rows);
        self.values.push(value);
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Tells whether no entry is listed.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Returns the rows of all entries, one a mode.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Returns the values of all entries.
    pub fn values(&self) -> &[f64] {
        &self.values
    }
}

impl Steps {
    /// Compiles the loop for `shape`.
    ///
    /// # Errors
    ///
    /// Why there is no compiler, or its message.
    pub fn new(shape: StepShape, toolchain: &Toolchain) -> Result<Steps, String> {
        let compiler = toolchain.compiler()?;
        let StepShape { order, row, columns, values } = shape;
        let (free, bounded) = (columns == Columns::Marked, values == Values::Bounded);
        let source = format!(
            "#define ORDER {order}\n#define ROW {row}\n#define FREE {}\n#define BOUNDED {}\n{SOURCE}",
            u8::from(free),
            u8::from(bounded)
        );
        let (entry, library) = open(&compiler.build(&source)?.object)?;
        Ok(Steps { entry, shape, _library: library })
    }

    /// Takes a step at each entry of `block` in turn.
    ///
    /// # Errors
    ///
    /// [`CoreError::Operand`] if rows, shares, columns or numbers are not those the loop was made
    /// for.
    pub fn run(&self, block: StepBlock<'_>, numbers: &StepNumbers<'_>) -> Result<(), CoreError> {
        if block.range.is_empty() {
            return Ok(());
        }
        self.check(&block, numbers)?;
        let StepBlock { list, range, mut factors, shares, free } = block;
        let mut inputs: Vec<*const c_void> =
            vec![list.rows.as_ptr().cast(), list.values.as_ptr().cast()];
        inputs.extend(shares.iter().chain(&free).map(|slice| slice.as_ptr().cast::<c_void>()));
        let mut written: Vec<*mut f64> = factors.iter_mut().map(|f| f.as_mut_ptr()).collect();
        let decay = numbers.ridge.iter().map(|ridge| 2.0 * ridge * numbers.step);
        let mut scalars: Vec<f64> = vec![numbers.step, numbers.offset];
        scalars.extend(decay.chain(numbers.least.iter().copied()));
        let task = [range.start as u64, range.end as u64];
        // SAFETY: `check` has compared the entries asked for, and the largest row of each mode, with
        // the slices; factors are borrowed mutably, and `scalars` has two numbers a mode after the
        // first two, which the loop only reads.
        unsafe {
            (self.entry)(
                inputs.as_ptr(),
                written.as_mut_ptr().cast(),
                scalars.as_mut_ptr().cast(),
                ptr::null_mut(),
                task.as_ptr(),
            );
        }
        Ok(())
    }

    fn check(&self, block: &StepBlock<'_>, numbers: &StepNumbers<'_>) -> Result<(), CoreError> {
        let StepShape { order, row, .. } = self.shape;
        let StepBlock { list, range, factors, shares, free } = block;
        let aligned = |slice: &[f64]| (slice.as_ptr() as usize).is_multiple_of(64);
        let lengths = [list.ends.len(), factors.len(), shares.len(), free.len()];
        let fits = lengths.iter().all(|&have| have == order)
            && [numbers.ridge.len(), numbers.least.len()] == [order; 2]
            && range.start <= range.end
            && range.end <= list.len()
            && factors.iter().zip(&list.ends).all(|(f, end)| f.len() >= end * row && aligned(f))
            && shares.iter().zip(&list.ends).all(|(shares, &end)| shares.len() >= end)
            && free.iter().all(|free| free.len() >= row && aligned(free));
        if fits {
            return Ok(());
        }
        let why = "other rows, shares or columns than the loop was made for".to_owned();
        Err(CoreError::Operand { operand: "steps".into(), why })
    }
}
