//! Dense arrays: factor matrices laid out for vector code, and small dense tensors.

use std::ops::Range;

use memmap2::MmapMut;
use ndarray::{ArrayD, ArrayView2, ArrayViewMut2, ShapeBuilder};

use crate::error::FormatError;
use crate::huge_pages::{self, HUGE_PAGE};
use crate::value::Value;

/// Bytes of a cache line.
pub const LINE_BYTES: usize = 64;

/// A dense tensor of any order, row-major: the form of `.npy` files and of test oracles.
pub type DenseTensor<V> = ArrayD<V>;

/// A row-major matrix whose rows are padded with zeros to whole vector registers.
///
/// Row `i` starts at element `i * stride`; the memory is page-aligned, so with a stride of a
/// multiple of 64 bytes each row starts on a cache line.  Columns `cols..stride` are zero and must
/// stay so.  Matrices from half a huge page on take whole ones: gathers of rows then miss the translation
/// buffer less.
pub struct Matrix<V> {
    rows: usize,
    cols: usize,
    stride: usize,
    memory: MmapMut,
    /// Where the elements begin, in bytes.
    start: usize,
    value: std::marker::PhantomData<V>,
}

impl<V: Value> Matrix<V> {
    /// Makes a zero matrix of `rows x cols`; a page of memory is taken when it is first written.
    ///
    /// Threads that write their own rows first thus place them near themselves.
    ///
    /// # Errors
    ///
    /// [`FormatError::NotATensor`] if the system has no such memory.
    pub fn zeros(rows: usize, cols: usize) -> Result<Matrix<V>, FormatError> {
        Matrix::with_pages(rows, cols, huge_pages::ask)
    }

    /// As [`Matrix::zeros`], of a matrix that is written and read in order: no rows are gathered from it.
    pub(crate) fn in_order(rows: usize, cols: usize) -> Result<Matrix<V>, FormatError> {
        Matrix::with_pages(rows, cols, huge_pages::ask_in_order)
    }

    fn with_pages(rows: usize, cols: usize, ask: fn(&MmapMut)) -> Result<Matrix<V>, FormatError> {
        let stride = padded(cols, V::BYTES);
        let bytes = rows.checked_mul(stride).and_then(|n| n.checked_mul(V::BYTES));
        let Some((memory, start)) = bytes.and_then(|bytes| mapped(bytes, ask)) else {
            let why = format!("no memory for a matrix of {rows} x {cols} values");
            return Err(FormatError::NotATensor(why));
        };
        Ok(Matrix { rows, cols, stride, memory, start, value: std::marker::PhantomData })
    }

    /// Makes a copy.
    ///
    /// # Errors
    ///
    /// As [`Matrix::zeros`].
    pub fn try_clone(&self) -> Result<Matrix<V>, FormatError> {
        let mut copy = Matrix::zeros(self.rows, self.cols)?;
        copy.as_mut_slice().copy_from_slice(self.as_slice());
        Ok(copy)
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns, padding excluded.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Returns the distance between rows in elements.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// Returns all elements, padding included: row `i` is `[i * stride..][..cols]`.
    pub fn as_slice(&self) -> &[V] {
        bytemuck::cast_slice(&self.memory[self.start..][..self.rows * self.stride * V::BYTES])
    }

    /// Returns all elements for writing; the padding must stay zero.
    pub fn as_mut_slice(&mut self) -> &mut [V] {
        let bytes = self.rows * self.stride * V::BYTES;
        bytemuck::cast_slice_mut(&mut self.memory[self.start..][..bytes])
    }

    /// Tells the system that `rows` are no longer needed: they may become zero, and their memory free.
    pub(crate) fn release_rows(&mut self, rows: Range<usize>) {
        let byte = |row: usize| self.start + row * self.stride * V::BYTES;
        let bytes = byte(rows.start)..byte(rows.end);
        huge_pages::release(&mut self.memory, bytes);
    }

    /// Returns row `i` without its padding.
    pub fn row(&self, i: usize) -> &[V] {
        &self.as_slice()[i * self.stride..][..self.cols]
    }

    /// Returns row `i` without its padding, for writing.
    pub fn row_mut(&mut self, i: usize) -> &mut [V] {
        let (start, cols) = (i * self.stride, self.cols);
        &mut self.as_mut_slice()[start..][..cols]
    }

    /// Views the matrix as `rows x cols` without padding.
    ///
    /// # Panics
    ///
    /// Never: the shape fits the memory by construction.
    pub fn view(&self) -> ArrayView2<'_, V> {
        let shape = (self.rows, self.cols).strides((self.stride, 1));
        ArrayView2::from_shape(shape, self.as_slice()).expect("the stride covers a row")
    }

    /// Views the matrix as `rows x cols` without padding, for writing.
    ///
    /// # Panics
    ///
    /// Never: the shape fits the memory by construction.
    pub fn view_mut(&mut self) -> ArrayViewMut2<'_, V> {
        let shape = (self.rows, self.cols).strides((self.stride, 1));
        ArrayViewMut2::from_shape(shape, self.as_mut_slice()).expect("the stride covers a row")
    }
}

/// Maps memory for `bytes` that begin with a page; with a huge one if that is worth it.
///
/// Systems place a mapping anywhere in a huge page, so it is one longer than needed; what is not touched takes no memory.
fn mapped(bytes: usize, ask: fn(&MmapMut)) -> Option<(MmapMut, usize)> {
    let whole = usize::try_from(in_whole_pages(bytes as u64)).ok()?;
    if whole < HUGE_PAGE {
        return Some((MmapMut::map_anon(whole.max(1)).ok()?, 0));
    }
    let memory = MmapMut::map_anon(whole.checked_add(HUGE_PAGE)?).ok()?;
    ask(&memory);
    let address = memory.as_ptr().addr();
    Some((memory, address.next_multiple_of(HUGE_PAGE) - address))
}

/// Returns `bytes`, from half a huge page on those of whole ones: no more than half of them is lost.  Saturates.
fn in_whole_pages(bytes: u64) -> u64 {
    let page = HUGE_PAGE as u64;
    let whole = if bytes < page / 2 { Some(bytes) } else { bytes.checked_next_multiple_of(page) };
    whole.unwrap_or(u64::MAX)
}

/// Returns the bytes of memory that a [`Matrix`] of `rows x cols` values of `value_bytes` bytes takes: its rows padded,
/// whole huge pages from half of one on.  Saturates.
pub fn matrix_bytes(rows: u64, cols: usize, value_bytes: usize) -> u64 {
    // Clamped where the product could wrap; nothing near it fits anyway.
    let row = padded(cols.min(usize::MAX >> 8), value_bytes) * value_bytes;
    in_whole_pages(rows.saturating_mul(row as u64))
}

/// Returns the padded length of a row of `cols` values of `bytes` bytes each: whole 64-byte lines,
/// or for rows shorter than a line the next power of two.
pub fn padded(cols: usize, bytes: usize) -> usize {
    let lanes = 64 / bytes;
    if cols <= lanes { cols.next_power_of_two() } else { cols.next_multiple_of(lanes) }
}
