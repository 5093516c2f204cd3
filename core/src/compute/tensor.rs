//! Operands and results of assignments.

use std::borrow::Cow;

use decompose_formats::{Coo, DenseTensor, Ints, ModeOrder, Value, Width};
use ndarray::IxDyn;

use crate::einsum::Function;
use crate::error::CoreError;

/// A tensor: all elements, or those that are not zero.
#[derive(Clone, Debug)]
pub enum Tensor<V: Value> {
    /// All elements.
    Dense(DenseTensor<V>),
    /// A list of elements; all others are zero.  Elements that are listed may be zero too.
    Sparse(Coo<V>),
}

/// The elements on which a function acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Elements {
    /// All: see [`Tensor::map`].
    All,
    /// Those that are not zero: see [`Tensor::map_non_zeros`].
    NonZeros,
}

impl<V: Value> Tensor<V> {
    /// Returns the extent of each mode.
    pub fn extents(&self) -> Vec<u64> {
        match self {
            Tensor::Dense(array) => array.shape().iter().map(|&extent| extent as u64).collect(),
            Tensor::Sparse(list) => list.extents().to_vec(),
        }
    }

    /// Tells whether it is a list.
    pub fn is_sparse(&self) -> bool {
        matches!(self, Tensor::Sparse(_))
    }

    /// Returns how many elements are stored.
    pub(super) fn stored_elements(&self) -> usize {
        match self {
            Tensor::Dense(array) => array.len(),
            Tensor::Sparse(list) => list.nnz(),
        }
    }

    /// Returns the same tensor for another reader: a list shares its arrays, an array is copied.
    pub fn share(&mut self) -> Tensor<V> {
        match self {
            Tensor::Sparse(list) => Tensor::Sparse(list.share()),
            Tensor::Dense(array) => Tensor::Dense(array.clone()),
        }
    }

    /// Returns the bytes that [`Tensor::share`] takes.
    pub fn bytes_to_share(&self) -> u64 {
        match self {
            Tensor::Sparse(_) => 0,
            Tensor::Dense(array) => (array.len() * V::BYTES) as u64,
        }
    }

    /// Returns the tensor with mode `modes[m]` as mode `m`; no element is moved.
    ///
    /// # Errors
    ///
    /// [`CoreError::Internal`] if `modes` are not all modes of the tensor.
    pub(super) fn with_modes(self, modes: &[usize]) -> Result<Tensor<V>, CoreError> {
        let order = ModeOrder::new(modes.to_vec()).filter(|_| modes.len() == self.extents().len());
        let none = || CoreError::Internal(format!("modes {modes:?} of a tensor"));
        let order = order.ok_or_else(none)?;
        Ok(match self {
            Tensor::Dense(array) => Tensor::Dense(array.permuted_axes(IxDyn(modes))),
            Tensor::Sparse(list) => Tensor::Sparse(list.permute_modes(&order)?),
        })
    }

    /// Returns the tensor with its elements in the order of their coordinates.
    ///
    /// # Errors
    ///
    /// [`CoreError::Format`] if a list cannot be sorted.
    pub(super) fn ordered(self) -> Result<Tensor<V>, CoreError> {
        Ok(match self {
            Tensor::Dense(array) if array.is_standard_layout() => Tensor::Dense(array),
            Tensor::Dense(array) => Tensor::Dense(array.as_standard_layout().into_owned()),
            Tensor::Sparse(mut list) => {
                list.sort(&ModeOrder::natural(list.order()))?;
                Tensor::Sparse(list)
            }
        })
    }

    /// Returns the bytes that [`Tensor::ordered`] takes beside the tensor.
    pub(super) fn bytes_to_order(&self) -> u64 {
        match self {
            Tensor::Dense(array) if array.is_standard_layout() => 0,
            Tensor::Dense(array) => (array.len() * V::BYTES) as u64,
            Tensor::Sparse(list) => list.bytes_to_sort(&ModeOrder::natural(list.order())),
        }
    }

    /// Returns the tensor times `factor`, rounded once an element.
    #[must_use]
    pub(super) fn scaled(self, factor: f64) -> Tensor<V> {
        let times = |value: V| V::from_f64(value.to_f64() * factor);
        match self {
            Tensor::Dense(array) => Tensor::Dense(array.mapv_into(times)),
            Tensor::Sparse(list) => Tensor::Sparse(list.map_values(times)),
        }
    }

    /// Returns the sum with `array`, made where that is.
    ///
    /// # Errors
    ///
    /// [`CoreError::Format`] if the extents differ.
    pub(super) fn added_to(self, mut array: DenseTensor<V>) -> Result<Tensor<V>, CoreError> {
        let shape: Vec<usize> = self.extents().iter().map(|&extent| extent as usize).collect();
        check_extents(array.shape(), &shape)?;
        match self {
            Tensor::Dense(other) => array.zip_mut_with(&other, |a, &b| *a += b),
            Tensor::Sparse(list) => add_list(&mut array, &list),
        }
        Ok(Tensor::Dense(array))
    }

    /// Returns `function` of all elements: in double precision, rounded once.
    ///
    /// A list becomes an array unless the function is zero at zero.
    ///
    /// # Errors
    ///
    /// [`CoreError::Internal`] never, but for a fault of this program.
    pub(super) fn map(self, function: Function) -> Result<Tensor<V>, CoreError> {
        match self {
            Tensor::Sparse(list) if function.keeps_zero() => {
                Ok(Tensor::Sparse(list.map_values(|value| of_element(function, value))))
            }
            tensor => map_rows(tensor.into_dense(), |row| of_row(function, row)),
        }
    }

    /// Returns `function` of the elements that are not zero: in double precision, rounded once.  All others stay zero.
    ///
    /// # Errors
    ///
    /// [`CoreError::Format`] if a list cannot be sorted.
    pub(super) fn map_non_zeros(self, function: Function) -> Result<Tensor<V>, CoreError> {
        match self {
            Tensor::Sparse(mut list) => {
                list.sum_duplicates()?;
                list.drop_zeros();
                map_list(list, function).map(Tensor::Sparse)
            }
            Tensor::Dense(array) => map_rows(array, |row| {
                let places: Vec<usize> =
                    (0..row.len()).filter(|&at| row[at] != V::default()).collect();
                let mut values: Vec<V> = places.iter().map(|&at| row[at]).collect();
                of_row(function, &mut values);
                places.into_iter().zip(values).for_each(|(at, value)| row[at] = value);
            }),
        }
    }

    /// Returns the bytes that a function of some elements takes beside the tensor.
    pub(super) fn bytes_to_map(&self, function: Function, elements: Elements) -> u64 {
        let is_list = elements == Elements::NonZeros;
        // The numbers of a row in double precision, and where they stand.
        let row = 3 * size_of::<f64>() as u64 * self.extents().last().copied().unwrap_or(1);
        match self {
            Tensor::Dense(_) => row.saturating_add(self.bytes_to_order()),
            Tensor::Sparse(list) if is_list || function.keeps_zero() => {
                let values = (list.nnz() * V::BYTES) as u64;
                let row = row.min(3 * size_of::<f64>() as u64 * list.nnz() as u64);
                match function.is_of_rows() {
                    true => values + row,
                    false if is_list && list.zeros() > 0 => values,
                    false => list.bytes_to_map(),
                }
            }
            Tensor::Sparse(_) => row.saturating_add(self.bytes_to_fill()),
        }
    }

    /// Returns the bytes that [`Tensor::to_dense`] takes: those of all cells.  Saturates.
    pub fn bytes_to_fill(&self) -> u64 {
        self.extents().iter().fold(V::BYTES as u64, |n, &extent| n.saturating_mul(extent))
    }

    /// Returns all elements.
    pub fn into_dense(self) -> DenseTensor<V> {
        match self {
            Tensor::Dense(array) => array,
            Tensor::Sparse(list) => filled(&list),
        }
    }

    /// Returns all elements; of an array these are borrowed.
    pub fn to_dense(&self) -> Cow<'_, DenseTensor<V>> {
        match self {
            Tensor::Dense(array) => Cow::Borrowed(array),
            Tensor::Sparse(list) => Cow::Owned(filled(list)),
        }
    }

    /// Returns the elements that are not zero, in the order of their coordinates.
    ///
    /// # Errors
    ///
    /// [`CoreError::Format`] for a tensor without modes, which is no list.
    pub fn non_zeros(&self) -> Result<Cow<'_, Coo<V>>, CoreError> {
        let array = match self {
            Tensor::Dense(array) => array,
            Tensor::Sparse(list) if list.zeros() == 0 => return Ok(Cow::Borrowed(list)),
            Tensor::Sparse(list) => {
                let values = list.values();
                return Ok(Cow::Owned(list.filtered(|entry| values[entry] != V::default())));
            }
        };
        let len = count_non_zeros(array);
        let coords = match width_of(&self.extents()) {
            Width::W64 => columns(array, len, |place| place as u64),
            Width::W16 | Width::W32 => columns(array, len, |place| place as u32),
        };
        let mut values = Vec::with_capacity(len);
        values.extend(array.iter().copied().filter(|&value| value != V::default()));
        Ok(Cow::Owned(Coo::new(self.extents(), coords, values)?))
    }

    /// Returns the bytes that [`Tensor::non_zeros`] takes.
    pub fn bytes_to_list(&self) -> u64 {
        match self {
            Tensor::Dense(array) => {
                let extents = self.extents();
                let row = extents.len() * width_of(&extents).bytes() + V::BYTES;
                (count_non_zeros(array) * row) as u64
            }
            Tensor::Sparse(list) => match list.zeros() {
                0 => 0,
                zeros => list.bytes() / list.nnz() as u64 * (list.nnz() as u64 - zeros),
            },
        }
    }
}

/// Returns the width of the coordinates of an array that becomes a list.
fn width_of(extents: &[u64]) -> Width {
    Width::listed(extents.iter().copied().max().unwrap_or(0))
}

fn count_non_zeros<V: Value>(array: &DenseTensor<V>) -> usize {
    array.iter().filter(|&&value| value != V::default()).count()
}

/// Returns the coordinates of the `len` elements that are not zero, by mode.
fn columns<V: Value, T>(array: &DenseTensor<V>, len: usize, of: impl Fn(usize) -> T) -> Vec<Ints>
where
    Ints: From<Vec<T>>,
{
    let mut columns: Vec<Vec<T>> = (0..array.ndim()).map(|_| Vec::with_capacity(len)).collect();
    for (place, _) in array.indexed_iter().filter(|(_, value)| **value != V::default()) {
        let modes = columns.iter_mut().enumerate();
        modes.for_each(|(mode, column)| column.push(of(place[mode])));
    }
    columns.into_iter().map(Ints::from).collect()
}

/// Returns all cells of a list.
fn filled<V: Value>(list: &Coo<V>) -> DenseTensor<V> {
    let shape: Vec<usize> = list.extents().iter().map(|&n| n as usize).collect();
    let mut array = DenseTensor::from_elem(IxDyn(&shape), V::default());
    add_list(&mut array, list);
    array
}

impl<V: Value> From<Coo<V>> for Tensor<V> {
    fn from(list: Coo<V>) -> Tensor<V> {
        Tensor::Sparse(list)
    }
}

impl<V: Value> From<DenseTensor<V>> for Tensor<V> {
    fn from(array: DenseTensor<V>) -> Tensor<V> {
        Tensor::Dense(array)
    }
}

fn check_extents(a: &[usize], b: &[usize]) -> Result<(), CoreError> {
    match a == b {
        true => Ok(()),
        false => {
            let why = format!("a sum of tensors of {a:?} and {b:?}");
            Err(decompose_formats::FormatError::NotATensor(why).into())
        }
    }
}

fn add_list<V: Value>(array: &mut DenseTensor<V>, list: &Coo<V>) {
    let mut place = vec![0; list.order()];
    for (entry, &value) in list.values().iter().enumerate() {
        for (mode, place) in place.iter_mut().enumerate() {
            *place = list.coords(mode).get(entry) as usize;
        }
        array[IxDyn(&place)] += value;
    }
}

/// Returns the elements of `array` whose coordinates agree in all modes of the same number in `places`.
pub(super) fn dense_diagonal<V: Value>(
    array: &DenseTensor<V>,
    places: &[usize],
) -> Result<DenseTensor<V>, CoreError> {
    let modes = places.iter().max().map_or(0, |&last| last + 1);
    let mut shape = vec![None; modes];
    for (&place, &extent) in places.iter().zip(array.shape()) {
        if shape[place].is_some_and(|before| before != extent) {
            let why = format!("a diagonal of an array of {:?}", array.shape());
            return Err(decompose_formats::FormatError::NotATensor(why).into());
        }
        shape[place] = Some(extent);
    }
    let shape: Vec<usize> = shape.into_iter().flatten().collect();
    Ok(DenseTensor::from_shape_fn(IxDyn(&shape), |at| {
        let place: Vec<usize> = places.iter().map(|&place| at[place]).collect();
        array[IxDyn(&place)]
    }))
}

fn of_element<V: Value>(function: Function, value: V) -> V {
    let mut row = [value.to_f64()];
    function.apply(&mut row);
    V::from_f64(row[0])
}

/// Applies `function` to a row, which may be empty.
fn of_row<V: Value>(function: Function, row: &mut [V]) {
    let mut wide: Vec<f64> = row.iter().map(|value| value.to_f64()).collect();
    function.apply(&mut wide);
    row.iter_mut().zip(wide).for_each(|(value, wide)| *value = V::from_f64(wide));
}

/// Changes each row of `array`, elements that differ in the last mode only.
fn map_rows<V: Value>(
    array: DenseTensor<V>,
    change: impl Fn(&mut [V]),
) -> Result<Tensor<V>, CoreError> {
    let row = array.shape().last().copied().unwrap_or(1);
    let Tensor::Dense(mut array) = Tensor::Dense(array).ordered()? else {
        return Err(CoreError::Internal("an array that is a list".into()));
    };
    let elements = array.as_slice_mut();
    let elements = elements.ok_or_else(|| CoreError::Internal("an array out of order".into()))?;
    elements.chunks_mut(row.max(1)).for_each(change);
    Ok(Tensor::Dense(array))
}

/// Applies `function` to each run of entries that differ in the last mode only; the list is sorted.
fn map_list<V: Value>(list: Coo<V>, function: Function) -> Result<Coo<V>, CoreError> {
    if !function.is_of_rows() {
        return Ok(list.map_values(|value| of_element(function, value)));
    }
    let outer = list.order() - 1;
    let same_row = |a: usize, b: usize| {
        (0..outer).all(|mode| list.coords(mode).get(a) == list.coords(mode).get(b))
    };
    let mut values = list.values().to_vec();
    let mut begin = 0;
    for entry in 1..=values.len() {
        if entry == values.len() || !same_row(begin, entry) {
            of_row(function, &mut values[begin..entry]);
            begin = entry;
        }
    }
    let (extents, coords, _) = list.into_parts();
    Ok(Coo::new(extents, coords, values)?)
}
