//! Diagonals of lists.

use crate::coo::Coo;
use crate::error::FormatError;
use crate::modes::ModeOrder;
use crate::narrow_ints::Ints;
use crate::value::Value;

impl<V: Value> Coo<V> {
    /// Returns the tensor of the entries whose coordinates agree in all modes of the same number in `places`: mode
    /// `m` becomes mode `places[m]`.
    ///
    /// `[0, 0]` is the diagonal of a matrix.  Parallel, time `O(nnz * order)`.
    ///
    /// # Errors
    ///
    /// [`FormatError::NotATensor`] if there is no number for each mode, a number is left out below another one,
    /// or modes that become one differ in extent.
    pub fn diagonal(&self, places: &[usize]) -> Result<Coo<V>, FormatError> {
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
        let kept = self.filtered(on_diagonal);
        // What is left out is given by what comes before it, unless modes change places.
        let in_order =
            first.is_sorted() && kept.sorted_by() == Some(&ModeOrder::natural(self.order()));
        let distinct = kept.distinct;
        let (_, columns, values) = kept.into_parts();
        let mut columns: Vec<Option<Ints>> = columns.into_iter().map(Some).collect();
        let coords = first.iter().filter_map(|&mode| columns[mode].take()).collect();
        let extents = first.iter().map(|&mode| self.extents[mode]).collect();
        Ok(match in_order && distinct {
            true => Coo::ascending(extents, coords, values),
            false => Coo::fitting(extents, coords, values),
        })
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
        let both = coo.diagonal(&[0, 1, 0]).unwrap();
        assert_eq!(both.extents(), [2, 3]);
        assert_eq!(both.values(), [1.0, 2.0, 3.0, 4.0]);
        assert!(both.sorted_by().is_some());
        let swapped = coo.diagonal(&[1, 0, 1]).unwrap();
        assert_eq!(swapped.extents(), [3, 2]);
        let matrix = Coo::new(
            vec![2, 2],
            vec![vec![0u32, 0, 1].into(), vec![0u32, 1, 1].into()],
            vec![5.0, 6.0, 7.0],
        );
        let diagonal = matrix.unwrap().diagonal(&[0, 0]).unwrap();
        assert_eq!((diagonal.extents(), diagonal.values()), (&[2][..], &[5.0, 7.0][..]));
    }

    #[test]
    fn modes_that_do_not_fit_are_refused() {
        assert!(cube().diagonal(&[0, 0, 1]).unwrap_err().to_string().contains("2 and 3"));
        assert!(cube().diagonal(&[0, 1]).is_err());
        assert!(cube().diagonal(&[0, 2, 0]).is_err());
    }
}
