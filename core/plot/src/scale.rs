//! Scales: where a value lies on an axis, and which values are marked there.

use crate::number::decade;
use crate::number::minus;
use crate::number::scientific;
use crate::number::si;

/// Share of the data's range left free at either end of an axis.
const MARGIN: f64 = 0.045;

/// The largest magnitude that is drawn.
const LARGEST: f64 = 1e300;
/// Values that differ by less are the same: steps between them could not be told from zero.
const LEAST_SPREAD: f64 = 1e-303;
/// Most ticks of an axis.
const MOST_TICKS: i64 = 99;

/// A map from values to `0..=1`, from the low end of an axis to its high end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    kind: ScaleKind,
}

/// How a scale spaces values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScaleKind {
    /// By difference.
    #[default]
    Linear,
    /// By ratio; values of zero and below have no place.
    Log,
}

/// A marked value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tick {
    /// The value.
    pub(crate) value: f64,
    /// Its text.
    pub(crate) label: String,
}

impl Scale {
    /// Returns a scale from `low` to `high` exactly, or a little more where both are the same.
    pub(crate) fn exact(kind: ScaleKind, low: f64, high: f64) -> Scale {
        let spread = high - low > (1e-12 * high.abs().max(low.abs())).max(LEAST_SPREAD);
        let spread = spread || kind == ScaleKind::Log && high.ln() - low.ln() > 1e-12;
        let (low, high) = match kind {
            _ if spread => (low, high),
            ScaleKind::Log => (low / 2.0, high * 2.0),
            ScaleKind::Linear if low.abs() < LEAST_SPREAD => (-0.5, 0.5),
            ScaleKind::Linear => (low - 0.05 * low.abs(), high + 0.05 * high.abs()),
        };
        // Room beside extreme values ends with the numbers.
        let (low, high) = match kind {
            ScaleKind::Linear => (low.max(f64::MIN), high.min(f64::MAX)),
            ScaleKind::Log => (low.max(f64::MIN_POSITIVE), high.min(f64::MAX)),
        };
        Scale { low, high, kind }
    }

    /// Returns the linear scale from `low` to `high`, which differ.
    pub(crate) fn span(low: f64, high: f64) -> Scale {
        Scale::exact(ScaleKind::Linear, low, high)
    }

    /// Returns the scale that shows all `values` it can, with a margin; `None` if it can show none.
    pub(crate) fn around(kind: ScaleKind, values: impl IntoIterator<Item = f64>) -> Option<Scale> {
        let (low, high) = range(values.into_iter().filter(|v| kind.shows(*v)))?;
        let tight = Scale::exact(kind, low, high);
        Some(Scale { low: tight.value(-MARGIN), high: tight.value(1.0 + MARGIN), kind })
    }

    /// Returns a linear scale from zero to a little above the largest value; `1` if none is above.
    pub(crate) fn from_zero(values: impl IntoIterator<Item = f64>) -> Scale {
        let (_, largest) = range(values.into_iter().chain([0.0])).unwrap_or_default();
        let high = if largest > LEAST_SPREAD { largest * (1.0 + MARGIN) } else { 1.0 };
        Scale { low: 0.0, high, kind: ScaleKind::Linear }
    }

    /// Returns where `value` lies: 0 at the low end, 1 at the high end, outside beyond them.
    pub(crate) fn place(self, value: f64) -> f64 {
        match self.kind {
            ScaleKind::Linear => (value - self.low) / (self.high - self.low),
            // Differences of logarithms, since the ratio of extreme values is infinite.
            ScaleKind::Log => (value.ln() - self.low.ln()) / (self.high.ln() - self.low.ln()),
        }
    }

    /// Returns the value at `place`, the inverse of [`Scale::place`].
    pub(crate) fn value(self, place: f64) -> f64 {
        match self.kind {
            ScaleKind::Linear => self.low + place * (self.high - self.low),
            ScaleKind::Log => {
                let (low, high) = (self.low.ln(), self.high.ln());
                // Margins of extreme scales end with the numbers.
                (low + place * (high - low)).exp().clamp(f64::MIN_POSITIVE, f64::MAX)
            }
        }
    }

    /// Returns whether `value` has a place on this scale, inside or outside its ends.
    pub(crate) fn shows(self, value: f64) -> bool {
        self.kind.shows(value)
    }

    /// Returns the lowest value.
    pub(crate) fn low(self) -> f64 {
        self.low
    }

    /// Returns about `wanted` ticks at round values.
    pub(crate) fn ticks(self, wanted: usize) -> Vec<Tick> {
        match self.kind {
            ScaleKind::Linear => self.linear_ticks(wanted, 0.0),
            ScaleKind::Log => self.log_ticks(wanted),
        }
    }

    /// Returns a tick at each of these values, as they are written in full.
    pub(crate) fn ticks_at(self, values: &[f64]) -> Vec<Tick> {
        let shown = values.iter().copied().filter(|&value| self.shows(value));
        shown.map(|value| Tick { value, label: minus(format!("{value}")) }).collect()
    }

    /// Returns about `wanted` ticks at whole numbers.
    pub(crate) fn whole_ticks(self, wanted: usize) -> Vec<Tick> {
        self.linear_ticks(wanted, 1.0)
    }

    fn linear_ticks(self, wanted: usize, least: f64) -> Vec<Tick> {
        let step = round_step((self.high - self.low) / wanted.max(1) as f64).max(least);
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        let largest = self.high.abs().max(self.low.abs());
        (first..=last.min(first.saturating_add(MOST_TICKS)))
            .map(|k| k as f64 * step)
            .map(|value| Tick { value, label: linear_label(value, step, largest) })
            .collect()
    }

    fn log_ticks(self, wanted: usize) -> Vec<Tick> {
        let (first, last) = (decade(self.low), decade(self.high) + 1);
        let decades = self.high.log10() - self.low.log10();
        let multiples: &[f64] = match 3.0 * decades {
            thirds if thirds < 2.0 => return self.linear_ticks(wanted, 0.0),
            thirds if thirds < 3.0 && wanted > 4 => &[1.0, 2.0, 3.0, 5.0, 7.0],
            thirds if thirds <= wanted as f64 + 1.0 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let every = (decades / wanted.max(1) as f64).ceil().max(1.0) as i32;
        let values: Vec<f64> = (first..=last)
            .filter(|exponent| exponent.rem_euclid(every) == 0)
            .flat_map(|exponent| multiples.iter().map(move |m| m * 10_f64.powi(exponent)))
            .filter(|value| (-1e-9..=1.0 + 1e-9).contains(&self.place(*value)))
            .collect();
        // One way of writing for all labels of an axis.
        let plain = values.iter().all(|value| (0.9e-3..1.1e4).contains(value));
        let label = |value: f64| match decade(value * 1.000_001) {
            0 | 1 => format!("{value:.0}"),
            exponent if plain => format!("{value:.*}", (-exponent).max(0) as usize),
            _ => scientific(value, 2),
        };
        values.into_iter().map(|value| Tick { value, label: label(value) }).collect()
    }
}

impl ScaleKind {
    /// Returns whether a value has a place on scales of this kind.
    pub(crate) fn shows(self, value: f64) -> bool {
        match self {
            ScaleKind::Linear => is_drawable(value),
            ScaleKind::Log => is_drawable(value) && value >= 1.0 / LARGEST,
        }
    }
}

/// Returns whether a value is a number that figures draw: finite, and not so large that sums and differences of
/// such values are not.
pub(crate) fn is_drawable(value: f64) -> bool {
    value.abs() <= LARGEST
}

/// Returns the least and the largest value that can be drawn, if there is one.
pub(crate) fn range(values: impl IntoIterator<Item = f64>) -> Option<(f64, f64)> {
    values.into_iter().filter(|v| is_drawable(*v)).fold(None, |range, v| match range {
        None => Some((v, v)),
        Some((low, high)) => Some((f64::min(low, v), f64::max(high, v))),
    })
}

/// Returns the number 1, 2 or 5 times a power of ten whose ratio to `step` is nearest to one.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powi(decade(step));
    // The bounds between two neighbours are their geometric means.
    let nice = match step / power {
        mantissa if mantissa < 2_f64.sqrt() => 1.0,
        mantissa if mantissa < 10_f64.sqrt() => 2.0,
        mantissa if mantissa < 50_f64.sqrt() => 5.0,
        _ => 10.0,
    };
    nice * power
}

fn linear_label(value: f64, step: f64, largest: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-3..1e12).contains(&largest) {
        let digits = (decade(value) - decade(step) + 1).clamp(1, 8) as usize;
        return scientific(value, digits);
    }
    let (scaled, suffix) = si(value, largest);
    let decimals = (-decade(si(step * 1.000_001, largest).0)).clamp(0, 12) as usize;
    minus(format!("{scaled:.decimals$}{suffix}"))
}

#[cfg(test)]
mod tests {
    use super::Scale;
    use super::ScaleKind;

    fn check(kind: ScaleKind, (low, high): (f64, f64), wanted: usize, labels: &[&str]) {
        let ticks = Scale::exact(kind, low, high).ticks(wanted);
        let found: Vec<&str> = ticks.iter().map(|tick| tick.label.as_str()).collect();
        assert_eq!(found, labels, "{low}..{high}");
    }

    #[test]
    fn ticks_are_round() {
        check(ScaleKind::Linear, (0.0, 1.0), 5, &["0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        check(ScaleKind::Linear, (0.0, 2e7), 4, &["0", "5 M", "10 M", "15 M", "20 M"]);
        check(ScaleKind::Linear, (-1.5, 1.5), 3, &["−1", "0", "1"]);
        check(ScaleKind::Linear, (0.0, 3e-6), 3, &["0", "10⁻⁶", "2×10⁻⁶", "3×10⁻⁶"]);
        check(ScaleKind::Log, (1e-6, 1.0), 3, &["10⁻⁶", "10⁻⁴", "10⁻²", "1"]);
        check(
            ScaleKind::Log,
            (0.011, 0.04),
            7,
            &["0.015", "0.020", "0.025", "0.030", "0.035", "0.040"],
        );
        check(ScaleKind::Log, (0.15, 1.2), 5, &["0.2", "0.3", "0.5", "0.7", "1"]);
        check(ScaleKind::Log, (1.0, 20.0), 5, &["1", "2", "5", "10", "20"]);
    }

    #[test]
    fn equal_and_odd_values_still_make_a_scale() {
        for value in [0.0, 1.0, -3.0, 1e-300, 1e300, 5e-324] {
            let scale = Scale::around(ScaleKind::Linear, [value, f64::NAN]).unwrap();
            assert!((scale.place(value) - 0.5).abs() < 1e-6, "{value}");
            assert!(scale.ticks(5).len() < 30);
        }
        for kind in [ScaleKind::Linear, ScaleKind::Log] {
            let ends = [1e-300, 1e300, f64::MAX, f64::INFINITY, 5e-324];
            let scale = Scale::around(kind, ends).unwrap();
            let places = [scale.place(1e-300), scale.place(1e300)];
            assert!((0.01..0.05).contains(&places[0]) && (0.95..0.99).contains(&places[1]));
            let ticks = scale.ticks(5);
            assert!((3..12).contains(&ticks.len()), "{ticks:?}");
            let label = if kind == ScaleKind::Log { "1" } else { "4×10²⁹⁹" };
            assert!(ticks.iter().any(|tick| tick.label == label), "{ticks:?}");
        }
        assert_eq!(Scale::around(ScaleKind::Log, [0.0, -1.0, f64::INFINITY]), None);
    }
}
