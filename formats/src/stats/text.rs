//! Statistics as a table for a person.

use std::fmt;

use crate::stats::patterns::{Certainty, Count};
use crate::stats::tensor::{TensorStats, ValueKind, ValueStats};

impl fmt::Display for TensorStats {
    /// Writes facts, one a line, then a table with a line a mode.  Estimates carry a `~`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extents: Vec<String> = self.extents.iter().map(|&extent| grouped(extent)).collect();
        line(f, "order", &self.extents.len().to_string())?;
        line(f, "extents", &extents.join(" x "))?;
        line(f, "non-zeros", &grouped(self.nnz))?;
        line(f, "density", &format!("{:.3e}", self.density))?;
        if let Some(name) = self.frostt_name {
            line(f, "matches", &format!("FROSTT {name} (its extents and non-zeros)"))?;
        }
        line(f, "duplicates", &format!("{} merged", grouped(self.duplicates)))?;
        if let Some(values) = &self.values {
            line(f, "values", &values.to_string())?;
        }
        let prefixes: Vec<String> = self.prefix_counts.iter().map(shown).collect();
        line(f, "tree 1-2-...", &format!("nodes {}", prefixes.join(" > ")))?;
        line(f, "list", &bytes(self.coo_bytes))?;
        line(f, "one tree", &bytes(self.csf_bytes))?;
        writeln!(f)?;
        self.modes(f)
    }
}

impl TensorStats {
    fn modes(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let titles = ["mode", "extent", "empty slices", "fullest slice", "fibres", "a fibre"];
        writeln!(
            f,
            "{:>4} {:>14} {:>14} {:>14} {:>16} {:>9}",
            titles[0], titles[1], titles[2], titles[3], titles[4], titles[5]
        )?;
        for (mode, (slices, fibres)) in self.slices.iter().zip(&self.fibres).enumerate() {
            let mean = self.nnz as f64 / fibres.value.max(1) as f64;
            let (extent, empty) = (grouped(slices.extent), grouped(slices.empty()));
            let (largest, fibres) = (grouped(slices.largest), shown(fibres));
            let mode = mode + 1;
            writeln!(
                f,
                "{mode:>4} {extent:>14} {empty:>14} {largest:>14} {fibres:>16} {mean:>9.2}"
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for ValueStats {
    /// Writes the kind and range, as `counts, 1 to 12, mean 1.52, norm 83.1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ValueStats { min, max, mean, norm, zeros, kind } = self;
        write!(f, "{kind}, {min} to {max}, mean {mean:.4}, norm {norm:.6}")?;
        if *zeros > 0 { write!(f, ", {} explicit zeros", grouped(*zeros)) } else { Ok(()) }
    }
}

impl fmt::Display for ValueKind {
    /// Writes the kind in words.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ValueKind::Binary => "binary",
            ValueKind::Count => "counts",
            ValueKind::Integer => "integers",
            ValueKind::NonNegative => "non-negative reals",
            ValueKind::Real => "reals",
        })
    }
}

fn line(f: &mut fmt::Formatter<'_>, what: &str, text: &str) -> fmt::Result {
    writeln!(f, "{what:<13} {text}")
}

fn shown(count: &Count) -> String {
    let sign = match count.certainty {
        Certainty::Exact => "",
        Certainty::Estimated => "~",
        Certainty::Bound => "<=",
    };
    format!("{sign}{}", grouped(count.value))
}

/// Writes a number in groups of three digits, as `76,879,419`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes a size in the unit that leaves at most four digits before the point.
pub(crate) fn bytes(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut size, mut unit) = (bytes as f64, 0);
    while size >= 1024.0 && unit + 1 < units.len() {
        (size, unit) = (size / 1024.0, unit + 1);
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{size:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::{bytes, grouped};

    #[test]
    fn numbers_are_readable() {
        let shown: Vec<String> = [0, 999, 1000, 76_879_419].map(grouped).into();
        assert_eq!(shown, ["0", "999", "1,000", "76,879,419"]);
        let sizes: Vec<String> = [12, 1024, 3 << 29].map(bytes).into();
        assert_eq!(sizes, ["12 B", "1.0 KiB", "1.5 GiB"]);
    }
}
