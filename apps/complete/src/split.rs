//! Which entries a model is fitted to, chosen by and judged on.

use std::fmt;

use decompose_common::SolverError;
use decompose_common::rng::MatrixRng;
use decompose_formats::{Coo, Duplicates, Ints, ModeOrder, counted};

/// The parts of a tensor's entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Parts {
    /// Those that the model is fitted to.
    pub train: Coo<f64>,
    /// Those that end the fit and choose the model.
    pub val: Option<Coo<f64>>,
    /// Those that judge it.
    pub test: Option<Coo<f64>>,
}

impl Parts {
    /// Returns the value of all entries of all parts, if there are several and they have one.
    pub fn only_value(&self) -> Option<f64> {
        let all =
            || [Some(&self.train), self.val.as_ref(), self.test.as_ref()].into_iter().flatten();
        let (&first, entries) = (self.train.values().first()?, all().map(Coo::nnz).sum::<usize>());
        let equal = all().all(|part| part.all_values(|value| value == first));
        (equal && entries > 1).then_some(first)
    }
}

/// The shares of entries that go to training, validation and test.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Share {
    /// For training.
    pub train: f64,
    /// For validation; may be 0.
    pub val: f64,
    /// For the test; may be 0.
    pub test: f64,
}

/// How entries are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SplitRule {
    /// At random: a hash of seed and coordinates decides, so the order of the file does not matter,
    /// and an entry stays where it is when others are added.
    Random {
        /// The seed.
        seed: u64,
    },
    /// By the index of this mode (from 0): the last indices are the test, those before them the
    /// validation.  An index is never divided.
    Time {
        /// The mode.
        mode: usize,
    },
}

impl Share {
    /// Makes shares of two (training, test) or three (training, validation, test) numbers.
    ///
    /// # Errors
    ///
    /// [`SolverError::Config`] unless they add up to 1 and none is negative, training above 0.
    pub fn new(numbers: &[f64]) -> Result<Share, SolverError> {
        let share = match *numbers {
            [train, test] => Share { train, val: 0.0, test },
            [train, val, test] => Share { train, val, test },
            _ => {
                let why = format!("a split has 2 or 3 shares, not {}", numbers.len());
                return Err(SolverError::Config(why));
            }
        };
        let sum: f64 = numbers.iter().sum();
        let sound = share.train > 0.0 && numbers.iter().all(|&n| n >= 0.0);
        if sound && (sum - 1.0).abs() < 1e-9 {
            return Ok(share);
        }
        let why = format!("split {share} adds up to {sum}; use shares as 0.8,0.1,0.1");
        Err(SolverError::Config(why))
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{}", self.train, self.val, self.test)
    }
}

/// Where an entry goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Destination {
    Train,
    Val,
    Test,
}

/// Divides the entries of `tensor`.
///
/// # Errors
///
/// [`SolverError::Data`] if a part with a share comes out empty.
pub fn split(tensor: &Coo<f64>, share: Share, rule: SplitRule) -> Result<Parts, SolverError> {
    let parts: Vec<Destination> = match rule {
        SplitRule::Random { seed } => at_random(tensor, share, seed),
        SplitRule::Time { mode } => by_time(tensor, share, mode)?,
    };
    let pick = |part, share: f64, name| {
        let picked = tensor.filtered(|entry| parts[entry] == part);
        match (share > 0.0, picked.nnz()) {
            (false, _) => Ok(None),
            (true, 0) => {
                let entries = counted(tensor.nnz(), "entry", "entries");
                let why = format!(
                    "the {name} part is empty: a share of {share} of {entries}; give it more"
                );
                Err(SolverError::Data(why))
            }
            (true, _) => Ok(Some(picked)),
        }
    };
    let val = pick(Destination::Val, share.val, "validation")?;
    let test = pick(Destination::Test, share.test, "test")?;
    let empty = || SolverError::Data("the training part is empty; give it more".into());
    let train = pick(Destination::Train, share.train, "training")?.ok_or_else(empty)?;
    Ok(Parts { train, val, test })
}

fn at_random(tensor: &Coo<f64>, share: Share, seed: u64) -> Vec<Destination> {
    // A stream of its own: the start must not depend on the split.
    let rng = MatrixRng::new(seed, u64::MAX);
    let part = |entry| {
        let coords = (0..tensor.order()).map(|mode| tensor.coords(mode).get(entry));
        let key = coords.fold(0, |key: u64, coord| {
            decompose_formats::mix::mix(key.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ coord)
        });
        match rng.uniform(key, 0) {
            draw if draw < share.train => Destination::Train,
            draw if draw < share.train + share.val => Destination::Val,
            // Shares may add up to a little less than 1.
            _ if share.test > 0.0 => Destination::Test,
            _ if share.val > 0.0 => Destination::Val,
            _ => Destination::Train,
        }
    };
    (0..tensor.nnz()).map(part).collect()
}

fn by_time(tensor: &Coo<f64>, share: Share, mode: usize) -> Result<Vec<Destination>, SolverError> {
    if mode >= tensor.order() {
        let (mode, order) = (mode + 1, tensor.order());
        let why = format!("time mode {mode} of a tensor of {order} modes; modes count from 1");
        return Err(SolverError::Config(why));
    }
    let mut counts = vec![0_u64; tensor.extents()[mode] as usize];
    tensor.coords(mode).iter().for_each(|time| counts[time as usize] += 1);
    let nnz = tensor.nnz() as f64;
    let mut before = 0_u64;
    let part_of: Vec<Destination> = counts
        .iter()
        .map(|&count| {
            // The middle of an index decides where it goes.
            let middle = (before as f64 + count as f64 / 2.0) / nnz;
            before += count;
            match middle {
                _ if middle < share.train => Destination::Train,
                _ if middle < share.train + share.val => Destination::Val,
                _ if share.test > 0.0 => Destination::Test,
                _ => Destination::Val,
            }
        })
        .collect();
    Ok(tensor.coords(mode).iter().map(|time| part_of[time as usize]).collect())
}

/// Returns `tensor` with up to `count` zeros at cells that it does not list, drawn at random.
///
/// So much of a tensor whose unlisted cells are zero is what a completion can be judged on.  Draws
/// that meet a listed cell are not repeated.  Time `O((nnz + count) order)`.
///
/// # Errors
///
/// If there is no memory.
pub fn with_zeros(tensor: &Coo<f64>, count: u64, seed: u64) -> Result<Coo<f64>, SolverError> {
    let rng = MatrixRng::new(seed, u64::MAX - 1);
    let listed = tensor.nnz() as u64;
    let column = |mode: usize| -> Ints {
        let extent = tensor.extents()[mode];
        let draw = |k: u64| (rng.uniform(k, mode as u64) * extent as f64) as u64;
        let all = tensor.coords(mode).iter().chain((0..count).map(draw));
        Ints::collect(all.map(|coord| coord.min(extent - 1)), tensor.coords(mode).width())
    };
    let mut values = tensor.values().to_vec();
    values.resize((listed + count) as usize, 0.0);
    let columns = (0..tensor.order()).map(column).collect();
    let mut all = Coo::new(tensor.extents().to_vec(), columns, values)?;
    all.sort(&ModeOrder::natural(tensor.order()))?;
    all.merge_duplicates(Duplicates::First)?;
    Ok(all)
}

/// Returns how many entries of `part` have the coordinates of one of `train`, and the first of
/// them, counted from 0.
///
/// # Errors
///
/// If the entries cannot be sorted.
pub fn overlap(
    train: &Coo<f64>,
    part: &Coo<f64>,
) -> Result<Option<(usize, Vec<u64>)>, SolverError> {
    let sorted = |tensor: &Coo<f64>| -> Result<Coo<f64>, SolverError> {
        let mut tensor = tensor.clone();
        tensor.sort(&ModeOrder::natural(tensor.order()))?;
        Ok(tensor)
    };
    let (train, part) = (sorted(train)?, sorted(part)?);
    let at = |tensor: &Coo<f64>, entry: usize| -> Vec<u64> {
        (0..tensor.order()).map(|mode| tensor.coords(mode).get(entry)).collect()
    };
    let (mut a, mut found, mut first) = (0, 0, None);
    for b in 0..part.nnz() {
        let coords = at(&part, b);
        while a < train.nnz() && at(&train, a) < coords {
            a += 1;
        }
        if a < train.nnz() && at(&train, a) == coords {
            found += 1;
            first.get_or_insert(coords);
        }
    }
    Ok(first.map(|first| (found, first)))
}

#[cfg(test)]
mod tests {
    use decompose_formats::Coo;

    use super::{Share, SplitRule, overlap, split};

    fn grid(extent: u32) -> Coo<f64> {
        let i: Vec<u32> = (0..extent * extent).map(|k| k / extent).collect();
        let j: Vec<u32> = (0..extent * extent).map(|k| k % extent).collect();
        let values: Vec<f64> = (0..extent * extent).map(f64::from).collect();
        let extents = vec![u64::from(extent); 2];
        Coo::new(extents, vec![i.into(), j.into()], values).unwrap()
    }

    #[test]
    fn a_random_split_covers_and_keeps_shares() {
        let tensor = grid(100);
        let share = Share::new(&[0.8, 0.1, 0.1]).unwrap();
        let parts = split(&tensor, share, SplitRule::Random { seed: 3 }).unwrap();
        let (val, test) = (parts.val.unwrap(), parts.test.unwrap());
        assert_eq!(parts.train.nnz() + val.nnz() + test.nnz(), 10_000);
        // Five standard deviations of a binomial count.
        assert!((parts.train.nnz() as f64 - 8000.0).abs() < 5.0 * 40.0);
        assert!((test.nnz() as f64 - 1000.0).abs() < 5.0 * 30.0);
        assert_eq!(overlap(&parts.train, &test).unwrap(), None);
        assert_eq!(overlap(&tensor, &test).unwrap().unwrap().0, test.nnz());
        let other = split(&tensor, share, SplitRule::Random { seed: 4 }).unwrap();
        assert_ne!(other.train, parts.train);
    }

    #[test]
    fn time_holds_out_the_latest() {
        let parts =
            split(&grid(10), Share::new(&[0.7, 0.1, 0.2]).unwrap(), SplitRule::Time { mode: 1 })
                .unwrap();
        assert_eq!(parts.train.coords(1).max(), Some(6));
        assert!(parts.val.unwrap().coords(1).iter().all(|j| j == 7));
        assert!(parts.test.unwrap().coords(1).iter().all(|j| j >= 8));
    }

    #[test]
    fn bad_shares_are_refused() {
        assert!(Share::new(&[0.8, 0.1]).is_err());
        assert!(Share::new(&[0.0, 1.0]).is_err());
        assert!(Share::new(&[1.2, -0.2]).is_err());
        assert!(Share::new(&[1.0]).is_err());
        let share = Share::new(&[0.999, 0.001]).unwrap();
        let error = split(&grid(2), share, SplitRule::Random { seed: 0 }).unwrap_err();
        assert!(error.to_string().contains("test part is empty"), "{error}");
    }
}
