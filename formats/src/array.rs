//! Arrays that are either owned or views of a mapped file.
//!
//! Large arrays made here lie in memory of their own that asks the system for huge pages
//! (`pages`).

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;
use memmap2::MmapMut;
use rayon::iter::{IndexedParallelIterator, ParallelIterator};
use rayon::slice::{ParallelSlice, ParallelSliceMut};

use crate::huge_pages::{self, HUGE_PAGES_FROM};

/// Numbers that one task copies.
const PART: usize = 1 << 16;

/// A read-only run of numbers: owned, shared with other arrays, or a piece of a mapped file.
pub struct Array<T: Pod>(Storage<T>);

enum Storage<T: Pod> {
    Owned(Vec<T>),
    Huge { memory: MmapMut, len: usize },
    Mapped { map: Arc<Mmap>, offset: usize, len: usize },
    Shared(Arc<Array<T>>),
}

impl<T: Pod> Array<T> {
    /// Views `len` numbers of a mapped file from byte `offset`; `None` when the range leaves the
    /// file or is not aligned for `T`.
    pub fn mapped(map: &Arc<Mmap>, offset: usize, len: usize) -> Option<Array<T>> {
        let end = offset.checked_add(len.checked_mul(size_of::<T>())?)?;
        bytemuck::try_cast_slice::<u8, T>(map.get(offset..end)?).ok()?;
        Some(Array(Storage::Mapped { map: Arc::clone(map), offset, len }))
    }

    /// Makes `len` zeros; a page of memory is taken when it is first written.
    ///
    /// Threads that write their own parts first thus share the work of clearing them.
    pub(crate) fn zeros(len: usize) -> Array<T> {
        Array::try_zeros(len).unwrap_or_else(|| Array::from(bytemuck::zeroed_vec(len)))
    }

    /// As [`Array::zeros`]; `None` if the system has no memory for them.
    pub(crate) fn try_zeros(len: usize) -> Option<Array<T>> {
        let bytes = len.checked_mul(size_of::<T>())?;
        if bytes < HUGE_PAGES_FROM {
            return Some(Array::from(bytemuck::allocation::try_zeroed_vec(len).ok()?));
        }
        let memory = MmapMut::map_anon(bytes).ok()?;
        huge_pages::ask_in_order(&memory);
        Some(Array(Storage::Huge { memory, len }))
    }

    /// Makes `len` numbers, zeros, that will all be written: their memory is taken at once.
    pub(crate) fn to_fill(len: usize) -> Array<T> {
        let array = Array::zeros(len);
        if let Storage::Huge { memory, .. } = &array.0 {
            huge_pages::take(memory);
        }
        array
    }

    /// Keeps the first `len` numbers.
    pub(crate) fn truncate(&mut self, len: usize) {
        match &mut self.0 {
            Storage::Owned(vec) => vec.truncate(len),
            Storage::Huge { len: all, .. } | Storage::Mapped { len: all, .. } => {
                *all = len.min(*all);
            }
            Storage::Shared(array) if len < array.len() => {
                *self = Array::from(array[..len].to_vec());
            }
            Storage::Shared(_) => {}
        }
    }

    /// Appends the numbers of `more`.
    pub(crate) fn extend(&mut self, more: &[T]) {
        let mut vec = std::mem::replace(self, Array::from(Vec::new())).into_vec();
        vec.extend_from_slice(more);
        *self = Array::from(vec);
    }

    /// Returns the numbers as a `Vec`, copying them unless they are in one.
    pub fn into_vec(self) -> Vec<T> {
        match self.0 {
            Storage::Owned(vec) => vec,
            Storage::Huge { .. } | Storage::Mapped { .. } | Storage::Shared(_) => self.to_vec(),
        }
    }

    /// Returns an owned copy, made by all threads: fresh memory is slow to touch from one.
    pub(crate) fn copy(&self) -> Array<T>
    where
        T: Send + Sync,
    {
        let mut copy = Array::to_fill(self.len());
        let parts = copy.make_mut().par_chunks_mut(PART);
        parts.zip(self.par_chunks(PART)).for_each(|(to, from)| to.copy_from_slice(from));
        copy
    }

    /// Returns the numbers in memory of their own, so that a file that they are mapped from may go.
    pub(crate) fn into_owned(self) -> Array<T>
    where
        T: Send + Sync,
    {
        match self.0 {
            Storage::Mapped { .. } => self.copy(),
            Storage::Owned(_) | Storage::Huge { .. } | Storage::Shared(_) => self,
        }
    }

    /// Returns an array of the same numbers in the same memory; mapped ones are shared as they are.
    pub(crate) fn share(&mut self) -> Array<T> {
        if let Storage::Owned(_) | Storage::Huge { .. } = self.0 {
            let own = std::mem::replace(self, Array::from(Vec::new()));
            self.0 = Storage::Shared(Arc::new(own));
        }
        self.clone()
    }

    /// Tells whether no other array and no file has the same memory.
    pub(crate) fn is_own(&self) -> bool {
        match &self.0 {
            Storage::Owned(_) | Storage::Huge { .. } => true,
            Storage::Shared(array) => Arc::strong_count(array) == 1,
            Storage::Mapped { .. } => false,
        }
    }

    /// Tells whether the numbers are a piece of a mapped file.
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self.0, Storage::Mapped { .. })
    }

    /// Returns the numbers for writing, copying them first if they are mapped or shared.
    pub fn make_mut(&mut self) -> &mut [T] {
        if !self.is_own() {
            self.0 = Storage::Owned(self.to_vec());
        }
        match &mut self.0 {
            Storage::Owned(vec) => vec,
            Storage::Huge { memory, len } => {
                bytemuck::cast_slice_mut(&mut memory[..*len * size_of::<T>()])
            }
            Storage::Shared(array) => Arc::get_mut(array).map_or(&mut [], Array::make_mut),
            Storage::Mapped { .. } => &mut [],
        }
    }
}

impl<T: Pod> Clone for Array<T> {
    fn clone(&self) -> Array<T> {
        match &self.0 {
            Storage::Mapped { map, offset, len } => {
                Array(Storage::Mapped { map: Arc::clone(map), offset: *offset, len: *len })
            }
            Storage::Shared(array) => Array(Storage::Shared(Arc::clone(array))),
            Storage::Owned(_) | Storage::Huge { .. } => {
                let mut copy = Array::zeros(self.len());
                copy.make_mut().copy_from_slice(self);
                copy
            }
        }
    }
}

impl<T: Pod> From<Vec<T>> for Array<T> {
    fn from(vec: Vec<T>) -> Array<T> {
        Array(Storage::Owned(vec))
    }
}

impl<T: Pod> Deref for Array<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        match &self.0 {
            Storage::Owned(vec) => vec,
            Storage::Huge { memory, len } => bytemuck::cast_slice(&memory[..*len * size_of::<T>()]),
            Storage::Mapped { map, offset, len } => {
                bytemuck::cast_slice(&map[*offset..*offset + *len * size_of::<T>()])
            }
            Storage::Shared(array) => array,
        }
    }
}

impl<T: Pod + PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Array<T>) -> bool {
        **self == **other
    }
}

impl<T: Pod + fmt::Debug> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
