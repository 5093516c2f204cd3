//! Arrays that are either owned or views of a mapped file.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use bytemuck::Pod;
use memmap2::Mmap;
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};

/// A read-only run of numbers: a `Vec`, or a piece of a mapped file shared without copying.
#[derive(Clone)]
pub struct Array<T: Pod>(Storage<T>);

#[derive(Clone)]
enum Storage<T: Pod> {
    Owned(Vec<T>),
    Mapped { map: Arc<Mmap>, offset: usize, len: usize },
}

impl<T: Pod> Array<T> {
    /// Views `len` numbers of a mapped file from byte `offset`; `None` when the range leaves the
    /// file or is not aligned for `T`.
    pub fn mapped(map: &Arc<Mmap>, offset: usize, len: usize) -> Option<Array<T>> {
        let end = offset.checked_add(len.checked_mul(size_of::<T>())?)?;
        bytemuck::try_cast_slice::<u8, T>(map.get(offset..end)?).ok()?;
        Some(Array(Storage::Mapped { map: Arc::clone(map), offset, len }))
    }

    /// Returns the numbers as a `Vec`, copying them only if they are mapped.
    pub fn into_vec(self) -> Vec<T> {
        match self.0 {
            Storage::Owned(vec) => vec,
            Storage::Mapped { .. } => self.to_vec(),
        }
    }

    /// Returns an owned copy, made by all threads: fresh memory is slow to touch from one.
    pub(crate) fn copy(&self) -> Array<T>
    where
        T: Send + Sync,
    {
        Array::from(self.par_iter().copied().collect::<Vec<T>>())
    }

    /// Returns the numbers for writing, copying them first if they are mapped.
    pub fn make_mut(&mut self) -> &mut [T] {
        if let Storage::Mapped { .. } = self.0 {
            self.0 = Storage::Owned(self.to_vec());
        }
        match &mut self.0 {
            Storage::Owned(vec) => vec,
            Storage::Mapped { .. } => &mut [],
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
            Storage::Mapped { map, offset, len } => {
                bytemuck::cast_slice(&map[*offset..*offset + *len * size_of::<T>()])
            }
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
