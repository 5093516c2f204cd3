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
        let values = values(&entry)?;
        check_once(&values, &entry)?;
        let places = values.into_iter().map(|value| vec![value]).collect();
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
    let places: Vec<Vec<Setting>> = (0..first.len()).map(place).collect();
    if let Some((first, again)) = repeated(&places) {
        let why = format!(
            "{} has the same values at places {} and {}",
            section.name,
            first + 1,
            again + 1
        );
        return Err(section.fault(why).help(ONCE));
    }
    Ok(Axis { keys, places })
}

/// What to do about values that are given twice.
const ONCE: &str = "give each value once; `repeats` makes every run several times";

/// Refuses a value that is given twice.
fn check_once(values: &[Setting], entry: &Entry<'_>) -> Result<(), Failure> {
    let Some((first, _)) = repeated(values) else { return Ok(()) };
    let value = match &values[first] {
        Setting::Word(word) => word.clone(),
        Setting::Switch(on) => on.to_string(),
    };
    Err(entry.fault(format!("`{value}` is given twice")).help(ONCE))
}

/// Returns the places of two equal values.
fn repeated<T: PartialEq>(values: &[T]) -> Option<(usize, usize)> {
    let again = (1..values.len()).find(|&at| values[..at].contains(&values[at]))?;
    Some((values[..again].iter().position(|value| *value == values[again])?, again))
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
    let text = entry.text().map_err(|_| "it is no list and no range".to_owned());
    let numbers = text.and_then(|text| range(&text)).map_err(|why| {
        entry
            .fault(why)
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
    let listed = values(entry)?;
    check_once(&listed, entry)?;
    let seeds: Option<Vec<u64>> = listed.into_iter().map(seed).collect();
    seeds.ok_or_else(|| {
        entry.fault("seeds are integers from 0 on").help("write a range as \"0:9\", or a list")
    })
}

/// Returns the numbers of `FROM:TO`, `FROM:TO:STEP` or `FROM:TO:xFACTOR`, or why there are none.
fn range(text: &str) -> Result<Vec<u64>, String> {
    let words: Vec<&str> = text.split(':').map(str::trim).collect();
    let (from, to, step) = match words[..] {
        [from, to] => (from, to, "1"),
        [from, to, step] => (from, to, step),
        _ => return Err(format!("`{text}` is no list and no range")),
    };
    let number = |word: &str| {
        let number = word.parse::<u64>();
        number.map_err(|_| format!("`{word}` of the range `{text}` is no integer from 0 on"))
    };
    let (from, to) = (number(from)?, number(to)?);
    if from > to {
        return Err(format!("the range `{text}` begins above its end"));
    }
    let next = match step.strip_prefix('x') {
        Some(factor) => {
            let factor = number(factor)?;
            if factor < 2 || from == 0 {
                let what = if factor < 2 { "its factor is below 2" } else { "it begins at 0" };
                return Err(format!("the range `{text}` never reaches its end: {what}"));
            }
            Box::new(move |x: u64| x.checked_mul(factor)) as Box<dyn Fn(u64) -> Option<u64>>
        }
        None => {
            let step = number(step)?;
            if step == 0 {
                return Err(format!("the range `{text}` never reaches its end: its step is 0"));
            }
            Box::new(move |x: u64| x.checked_add(step))
        }
    };
    let numbers = std::iter::successors(Some(from), |&x| next(x)).take_while(|&x| x <= to);
    let numbers: Vec<u64> = numbers.take(MOST_VALUES + 1).collect();
    match numbers.len() > MOST_VALUES {
        true => Err(format!("the range `{text}` has more than {MOST_VALUES} values")),
        false => Ok(numbers),
    }
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
            assert!(range(wrong).is_err(), "{wrong}");
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
