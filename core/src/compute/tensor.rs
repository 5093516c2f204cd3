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

    /// Returns the elements whose coordinates agree in all modes of the same number in `places`: see
    /// [`Coo::diagonal`].
    ///
    /// # Errors
    ///
    /// [`CoreError::Format`] if modes that become one differ in extent.
    pub fn diagonal(&self, places: &[usize]) -> Result<Tensor<V>, CoreError> {
        match self {
            Tensor::Sparse(list) => Ok(Tensor::Sparse(list.diagonal(places)?)),
            Tensor::Dense(array) => dense_diagonal(array, places).map(Tensor::Dense),
        }
    }

    /// Returns the tensor with mode `modes[m]` as mode `m`; a list is sorted by the new order.
    ///
    /// # Errors
    ///
    /// [`CoreError::Format`] if `modes` are not all modes of the tensor.
    pub fn permuted(self, modes: &[usize]) -> Result<Tensor<V>, CoreError> {
        let order = ModeOrder::new(modes.to_vec()).filter(|_| modes.len() == self.extents().len());
        let none = || CoreError::Internal(format!("modes {modes:?} of a tensor"));
        let order = order.ok_or_else(none)?;
        Ok(match self {
            Tensor::Dense(array) => {
                let array = array.permuted_axes(IxDyn(modes));
                Tensor::Dense(array.as_standard_layout().into_owned())
            }
            Tensor::Sparse(list) => {
                let mut list = list.permute_modes(&order)?;
                list.sort(&ModeOrder::natural(modes.len()))?;
                Tensor::Sparse(list)
            }
        })
    }

    /// Returns the tensor times `factor`, rounded once an element.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Tensor<V> {
        if factor == 1.0 {
            return self;
        }
        let times = |value: V| V::from_f64(value.to_f64() * factor);
        match self {
            Tensor::Dense(array) => Tensor::Dense(array.mapv_into(times)),
            Tensor::Sparse(list) => Tensor::Sparse(list.map_values(times)),
        }
    }

    /// Returns the sum with `other`: a list if both are.
    ///
    /// Time `O(elements)`.
    ///
    /// # Errors
    ///
    /// [`CoreError::Format`] if the extents differ.
    pub fn plus(self, other: Tensor<V>) -> Result<Tensor<V>, CoreError> {
        match (self, other) {
            (Tensor::Sparse(a), Tensor::Sparse(b)) => Ok(Tensor::Sparse(a.plus(b)?)),
            (Tensor::Dense(mut a), Tensor::Dense(b)) => {
                check_extents(a.shape(), b.shape())?;
                a.zip_mut_with(&b, |a, &b| *a += b);
                Ok(Tensor::Dense(a))
            }
            (Tensor::Dense(mut array), Tensor::Sparse(list))
            | (Tensor::Sparse(list), Tensor::Dense(mut array)) => {
                let shape: Vec<usize> = list.extents().iter().map(|&n| n as usize).collect();
                check_extents(array.shape(), &shape)?;
                add_list(&mut array, &list);
                Ok(Tensor::Dense(array))
            }
        }
    }

    /// Returns `function` of all elements: in double precision, rounded once.
    ///
    /// A list becomes an array unless the function is zero at zero.
    ///
    /// # Errors
    ///
    /// [`CoreError::Internal`] never, but for a fault of this program.
    pub fn map(self, function: Function) -> Result<Tensor<V>, CoreError> {
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
    pub fn map_non_zeros(self, function: Function) -> Result<Tensor<V>, CoreError> {
        match self {
            Tensor::Sparse(mut list) => {
                list.sum_duplicates()?;
                let list = Tensor::Sparse(list).non_zeros()?.into_owned();
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

    /// Returns all elements.
    pub fn into_dense(self) -> DenseTensor<V> {
        match self {
            Tensor::Dense(array) => array,
            Tensor::Sparse(list) => {
                let shape: Vec<usize> = list.extents().iter().map(|&n| n as usize).collect();
                let mut array = DenseTensor::from_elem(IxDyn(&shape), V::default());
                add_list(&mut array, &list);
                array
            }
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
        Ok(Cow::Owned(Coo::new(extents.clone(), coords, values)?))
    }
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

fn dense_diagonal<V: Value>(
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
    let shape = array.raw_dim();
    let row = array.shape().last().copied().unwrap_or(1);
    let mut elements: Vec<V> = array.iter().copied().collect();
    elements.chunks_mut(row.max(1)).for_each(change);
    let array = DenseTensor::from_shape_vec(shape, elements);
    array.map(Tensor::Dense).map_err(|error| CoreError::Internal(error.to_string()))
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
