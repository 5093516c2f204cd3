//! Profiles: columns of factor matrices reduced to what a small panel can show.

use ndarray::ArrayView2;

use crate::scale::is_drawable;

/// Most points of a profile; a longer column is reduced to its range in as many equal stretches.
pub(crate) const MOST_POINTS: usize = 400;

/// How many of the largest entries are kept.
pub(crate) const MOST_ENTRIES: usize = 5;

/// What is shown of one column of a factor.
///
/// Of up to 400 entries `low` and `high` both are the values; of more, point `k` holds the least
/// and the largest value of its stretch, so that no spike is lost.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Profile {
    /// Least values.
    pub low: Vec<f64>,
    /// Largest values.
    pub high: Vec<f64>,
    /// The entries of largest magnitude, at most five, largest first; zeros are not listed.
    pub largest: Vec<ProfileEntry>,
}

/// One entry of a column.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileEntry {
    /// Its index, from 0.
    pub index: usize,
    /// Its value.
    pub value: f64,
    /// What the index stands for, if that is known.
    pub label: Option<String>,
}

/// Reduces the columns `columns` of a factor of shape `extent x rank` in one pass over its rows.
///
/// Time `O(extent * columns)`, memory `O(columns)`.  Values that cannot be drawn count as absent.
pub(crate) fn profiles<V>(factor: ArrayView2<'_, V>, columns: &[usize]) -> Vec<Profile>
where
    V: Copy + Into<f64>,
{
    let extent = factor.nrows();
    let points = extent.min(MOST_POINTS);
    let empty = Profile {
        low: vec![f64::INFINITY; points],
        high: vec![f64::NEG_INFINITY; points],
        largest: Vec::new(),
    };
    let mut profiles = vec![empty; columns.len()];
    for point in 0..points {
        // The same rounding for the end of one stretch and the start of the next leaves no gap.
        let bound = |k: usize| (k as u128 * extent as u128 / points as u128) as usize;
        for index in bound(point)..bound(point + 1) {
            for (profile, column) in profiles.iter_mut().zip(columns) {
                let value: f64 = factor[[index, *column]].into();
                if is_drawable(value) {
                    profile.low[point] = profile.low[point].min(value);
                    profile.high[point] = profile.high[point].max(value);
                    profile.offer(index, value);
                }
            }
        }
    }
    profiles.iter_mut().for_each(Profile::close);
    profiles
}

impl Profile {
    /// Keeps an entry if it is among the largest so far.
    fn offer(&mut self, index: usize, value: f64) {
        let full = self.largest.len() == MOST_ENTRIES;
        let least = if full { self.largest[MOST_ENTRIES - 1].value.abs() } else { 0.0 };
        if value.abs() > least {
            let place = self.largest.partition_point(|entry| entry.value.abs() >= value.abs());
            self.largest.insert(place, ProfileEntry { index, value, label: None });
            self.largest.truncate(MOST_ENTRIES);
        }
    }

    /// Shows stretches without any finite value as zero.
    fn close(&mut self) {
        for (low, high) in self.low.iter_mut().zip(&mut self.high) {
            if *low > *high {
                (*low, *high) = (0.0, 0.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ndarray::Array2;

    use super::MOST_POINTS;
    use super::profiles;

    #[test]
    fn no_spike_is_lost() {
        let mut factor = Array2::<f32>::zeros((100_003, 2));
        factor[[77_777, 1]] = -3.0;
        factor[[100_002, 1]] = 2.0;
        factor[[5, 1]] = f32::NAN;
        let profile = profiles(factor.view(), &[1]).remove(0);
        assert_eq!(profile.low.len(), MOST_POINTS);
        assert_eq!(profile.low.iter().copied().fold(0.0, f64::min), -3.0);
        assert_eq!(profile.high[MOST_POINTS - 1], 2.0);
        let largest: Vec<_> = profile.largest.iter().map(|e| (e.index, e.value)).collect();
        assert_eq!(largest, [(77_777, -3.0), (100_002, 2.0)]);
    }

    #[test]
    fn short_columns_stay_as_they_are() {
        let factor = Array2::from_shape_vec((3, 1), vec![1.0, -2.0, 0.5]).unwrap();
        let profile = profiles(factor.view(), &[0]).remove(0);
        assert_eq!(profile.low, [1.0, -2.0, 0.5]);
        assert_eq!(profile.low, profile.high);
    }
}
