//! Diagonals of lists.

use crate::coo::Coo;
use crate::coo::mask::Mask;
use crate::error::FormatError;
use crate::modes::ModeOrder;
use crate::value::Value;

/// The entries of a list whose coordinates agree in some modes, counted and not yet taken.
pub struct Diagonal<'a, V: Value> {
    list: &'a Coo<V>,
    mask: Mask,
    /// The first mode of each number.
    first: Vec<usize>,
}

impl<V: Value> Coo<V> {
    /// Counts the entries whose coordinates agree in all modes of the same number in `places`: mode `m` becomes mode
    /// `places[m]`.
    ///
    /// `[0, 0]` is the diagonal of a matrix.  Parallel, time `O(nnz * order)`, memory a bit an entry.
    ///
    /// # Errors
    ///
    /// [`FormatError::NotATensor`] if there is no number for each mode, a number is left out below another one,
    /// or modes that become one differ in extent.
    pub fn diagonal(&self, places: &[usize]) -> Result<Diagonal<'_, V>, FormatError> {
        let fail = |why: String| Err(FormatError::NotATensor(why));
        if places.len() != self.order() {
            return fail(format!("{} places of {} modes", places.len(), self.order()));
        }
        let modes = places.iter().max().map_or(0, |&last| last + 1);
        let first: Vec<usize> =
            (0..modes).filter_map(|place| places.iter().position(|&own| own == place)).collect();
        if first.len() < modes {
            return fail(format!("places {places:?} leave out a mode"));
        }
        let repeated: Vec<(usize, usize)> = places
            .iter()
            .enumerate()
            .map(|(mode, &place)| (first[place], mode))
            .filter(|(first, mode)| first != mode)
            .collect();
        for &(first, mode) in &repeated {
            let (a, b) = (self.extents[first], self.extents[mode]);
            if a != b {
                let (first, mode) = (first + 1, mode + 1);
                return fail(format!("modes {first} and {mode} of extents {a} and {b}"));
            }
        }
        let on_diagonal = |entry: usize| {
            let equal =
                |&(a, b): &(usize, usize)| self.coords[a].get(entry) == self.coords[b].get(entry);
            repeated.iter().all(equal)
        };
        Ok(Diagonal { list: self, mask: self.mask_of(on_diagonal), first })
    }
}

impl<V: Value> Diagonal<'_, V> {
    /// Returns the bytes that [`Diagonal::list`] takes beside the list.
    pub fn bytes(&self) -> u64 {
        let columns = self.first.iter().map(|&mode| self.list.coords[mode].width().bytes());
        (self.mask.count() * (columns.sum::<usize>() + V::BYTES)) as u64
    }

    /// Returns the entries, in their order.  Parallel.
    pub fn list(&self) -> Coo<V> {
        let Diagonal { list, mask, first } = self;
        let coords = first.iter().map(|&mode| mask.compact_ints(&list.coords[mode])).collect();
        let extents = first.iter().map(|&mode| list.extents[mode]).collect();
        let values = mask.compact(|position| list.values[position]);
        // What is left out is given by what comes before it, unless modes change places.
        let natural = list.sorted_by() == Some(&ModeOrder::natural(list.order()));
        match first.is_sorted() && natural && list.distinct {
            true => Coo::ascending(extents, coords, values),
            false => Coo { distinct: list.distinct, ..Coo::fitting(extents, coords, values) },
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::coo::Coo;

    fn cube() -> Coo<f64> {
        let coords = vec![
            vec![0u32, 0, 1, 1].into(),
            vec![0u32, 1, 0, 2].into(),
            vec![0u32, 0, 1, 1].into(),
        ];
        Coo::new(vec![2, 3, 2], coords, vec![1.0, 2.0, 3.0, 4.0]).unwrap()
    }

    #[test]
    fn entries_off_the_diagonal_are_left_out() {
        let mut coo = cube();
        coo.sum_duplicates().unwrap();
        let both = coo.diagonal(&[0, 1, 0]).unwrap().list();
        assert_eq!(both.extents(), [2, 3]);
        assert_eq!(both.values(), [1.0, 2.0, 3.0, 4.0]);
        assert!(both.sorted_by().is_some());
        let swapped = coo.diagonal(&[1, 0, 1]).unwrap().list();
        assert_eq!(swapped.extents(), [3, 2]);
        let matrix = Coo::new(
            vec![2, 2],
            vec![vec![0u32, 0, 1].into(), vec![0u32, 1, 1].into()],
            vec![5.0, 6.0, 7.0],
        );
        let matrix = matrix.unwrap();
        let diagonal = matrix.diagonal(&[0, 0]).unwrap().list();
        assert_eq!((diagonal.extents(), diagonal.values()), (&[2][..], &[5.0, 7.0][..]));
    }

    #[test]
    fn modes_that_do_not_fit_are_refused() {
        let told = cube().diagonal(&[0, 0, 1]).err().map(|error| error.to_string());
        assert!(told.is_some_and(|told| told.contains("2 and 3")));
        assert!(cube().diagonal(&[0, 1]).is_err());
        assert!(cube().diagonal(&[0, 2, 0]).is_err());
    }
}
