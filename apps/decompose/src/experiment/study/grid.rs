//! Grids: the values that options take in turn, and all their combinations.

use crate::experiment::study::source::{Entry, Section, Setting};
use crate::failure::Failure;

/// The most values of a range.
const MOST_VALUES: usize = 10_000;

/// Options that change together: of several, values of the same place belong together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    /// The names of the options, as typed.
    pub(crate) keys: Vec<String>,
    /// At each place the value of every option.
    pub(crate) places: Vec<Vec<Setting>>,
}

/// Reads `[runs.grid]`: every option an axis of its own.
///
/// # Errors
///
/// A value that is no list and no range.
pub(crate) fn grid(section: Option<Section<'_>>) -> Result<Vec<Axis>, Failure> {
    let entries = section.map(|mut section| section.rest()).unwrap_or_default();
    let axis = |entry: Entry<'_>| {
        let places = values(&entry)?.into_iter().map(|value| vec![value]).collect();
        Ok(Axis { keys: vec![entry.key], places })
    };
    entries.into_iter().map(axis).collect()
}

/// Reads `[[runs.zip]]`: the options of a table are one axis.
///
/// # Errors
///
/// Lists of different lengths.
pub(crate) fn zip(mut section: Section<'_>) -> Result<Axis, Failure> {
    let (mut keys, mut columns): (Vec<String>, Vec<Vec<Setting>>) = Default::default();
    for entry in section.rest() {
        let column = values(&entry)?;
        if let (Some(first), Some(key)) = (columns.first(), keys.first())
            && first.len() != column.len()
        {
            let (here, there) = (column.len(), first.len());
            let why = format!("{here} values stand beside the {there} values of `{key}`");
            return Err(entry
                .fault(why)
                .help("options of a zip have as many values as each other"));
        }
        keys.push(entry.key);
        columns.push(column);
    }
    let Some(first) = columns.first() else {
        return Err(section.fault(format!("{} names no option", section.name)));
    };
    let place = |at: usize| columns.iter().map(|column| column[at].clone()).collect();
    let places = (0..first.len()).map(place).collect();
    Ok(Axis { keys, places })
}

/// Returns all combinations of the places of `axes`; the last axis changes fastest.
pub(crate) fn product(axes: &[Axis]) -> Vec<Vec<(String, Setting)>> {
    axes.iter().fold(vec![Vec::new()], |found, axis| {
        let longer = |before: &Vec<(String, Setting)>, place: &Vec<Setting>| {
            let named = axis.keys.iter().cloned().zip(place.iter().cloned());
            before.iter().cloned().chain(named).collect::<Vec<_>>()
        };
        found
            .iter()
            .flat_map(|before| axis.places.iter().map(|place| longer(before, place)))
            .collect()
    })
}

/// Returns the values of a list or a range.
fn values(entry: &Entry<'_>) -> Result<Vec<Setting>, Failure> {
    if entry.is_list() {
        return entry.items();
    }
    let range = entry.text().ok().and_then(|text| range(&text));
    let numbers = range.ok_or_else(|| {
        entry
            .fault("it is no list and no range")
            .help("write a list as [1, 2, 4], or a range as \"1:20\", \"10:100:10\" or \"1:64:x2\"")
    })?;
    Ok(numbers.into_iter().map(|number| Setting::Word(number.to_string())).collect())
}

/// Returns the seeds that are listed, or the range of them.
///
/// # Errors
///
/// Anything else.
pub(crate) fn seeds(entry: &Entry<'_>) -> Result<Vec<u64>, Failure> {
    let seed = |setting: Setting| match setting {
        Setting::Word(word) => word.parse().ok(),
        Setting::Switch(_) => None,
    };
    let seeds: Option<Vec<u64>> = values(entry)?.into_iter().map(seed).collect();
    seeds.ok_or_else(|| {
        entry.fault("seeds are integers from 0 on").help("write a range as \"0:9\", or a list")
    })
}

/// Returns the numbers of `FROM:TO`, `FROM:TO:STEP` or `FROM:TO:xFACTOR`.
fn range(text: &str) -> Option<Vec<u64>> {
    let words: Vec<&str> = text.split(':').map(str::trim).collect();
    let (from, to, step) = match words[..] {
        [from, to] => (from, to, "1"),
        [from, to, step] => (from, to, step),
        _ => return None,
    };
    let (from, to): (u64, u64) = (from.parse().ok()?, to.parse().ok()?);
    let next = match step.strip_prefix('x') {
        Some(factor) => {
            let factor: u64 = factor.parse().ok().filter(|&factor| factor > 1 && from > 0)?;
            Box::new(move |x: u64| x.checked_mul(factor)) as Box<dyn Fn(u64) -> Option<u64>>
        }
        None => {
            let step: u64 = step.parse().ok().filter(|&step| step > 0)?;
            Box::new(move |x: u64| x.checked_add(step))
        }
    };
    let numbers = std::iter::successors(Some(from), |&x| next(x)).take_while(|&x| x <= to);
    let numbers: Vec<u64> = numbers.take(MOST_VALUES + 1).collect();
    (!numbers.is_empty() && numbers.len() <= MOST_VALUES).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::{Axis, product, range};
    use crate::experiment::study::source::Setting;

    #[test]
    fn ranges_have_both_ends() {
        assert_eq!(range("1:4").unwrap(), [1, 2, 3, 4]);
        assert_eq!(range("10:35:10").unwrap(), [10, 20, 30]);
        assert_eq!(range("1:64:x4").unwrap(), [1, 4, 16, 64]);
        assert_eq!(range("7:7").unwrap(), [7]);
        for wrong in ["", "1", "4:1", "1:4:0", "0:4:x2", "1:4:x1", "a:b", "1:2:3:4", "0:99999999"] {
            assert_eq!(range(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn combinations_count_like_numbers() {
        let word = |text: &str| Setting::Word(text.into());
        let axis = |keys: &[&str], places: &[&[&str]]| Axis {
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            places: places.iter().map(|p| p.iter().map(|w| word(w)).collect()).collect(),
        };
        let axes =
            [axis(&["a"], &[&["1"], &["2"]]), axis(&["b", "c"], &[&["3", "x"], &["4", "y"]])];
        let found = product(&axes);
        let words: Vec<String> = found
            .iter()
            .map(|place| {
                let named = place.iter().map(|(key, value)| match value {
                    Setting::Word(word) => format!("{key}{word}"),
                    Setting::Switch(on) => format!("{key}{on}"),
                });
                named.collect::<String>()
            })
            .collect();
        assert_eq!(words, ["a1b3cx", "a1b4cy", "a2b3cx", "a2b4cy"]);
        assert_eq!(product(&[]), [Vec::new()]);
    }
}
