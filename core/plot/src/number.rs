//! Numbers as text, the same in all figures.

/// Returns `value` with `digits` significant digits, in scientific notation where that is shorter.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return minus(format!("{value}"));
    }
    // The exponent after rounding: 0.9999 has that of 1.
    let rounded = format!("{value:.*e}", digits.saturating_sub(1));
    let exponent = rounded.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0);
    if !(-4..6).contains(&exponent) {
        return scientific(value, digits);
    }
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    minus(format!("{value:.decimals$}"))
}

/// Returns `value` as mantissa times a power of ten with up to `digits` digits, `1` left out:
/// `10⁻³`, `2.5×10⁷`.
pub(crate) fn scientific(value: f64, digits: usize) -> String {
    let text = format!("{value:.*e}", digits.saturating_sub(1));
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = match mantissa.split_once('.') {
        Some(_) => mantissa.trim_end_matches('0').trim_end_matches('.'),
        None => mantissa,
    };
    let power = format!("10{}", superscript(exponent));
    match mantissa {
        "1" => power,
        "-1" => format!("−{power}"),
        _ => minus(format!("{mantissa}×{power}")),
    }
}

/// Returns a count in the form `950`, `12.5 k`, `20 M`, `3 G`.
pub(crate) fn count(value: f64) -> String {
    let (scaled, suffix) = si(value, value.abs());
    if suffix.is_empty() {
        return minus(format!("{value}"));
    }
    let text = format!("{scaled:.1}");
    minus(format!("{}{suffix}", text.strip_suffix(".0").unwrap_or(&text)))
}

/// Returns `value` divided by the thousand, million, ... that suits numbers up to `largest`, and
/// its suffix; below ten thousand numbers stay whole.
pub(crate) fn si(value: f64, largest: f64) -> (f64, &'static str) {
    match largest {
        l if l < 1e4 => (value, ""),
        l if l < 1e6 => (value / 1e3, " k"),
        l if l < 1e9 => (value / 1e6, " M"),
        _ => (value / 1e9, " G"),
    }
}

/// Returns a number of bytes with its unit and up to three significant digits: `400 B`,
/// `6.25 KiB`, `20 MiB`.
pub(crate) fn bytes(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (mut value, mut unit) = (bytes as f64 / 1024.0, "KiB");
    for larger in ["MiB", "GiB", "TiB"] {
        // What would be rounded to 1024 takes the larger unit.
        if value >= 1023.5 {
            (value, unit) = (value / 1024.0, larger);
        }
    }
    let decimals = (2 - decade(value)).clamp(0, 2) as usize;
    let text = format!("{value:.decimals$}");
    let text = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} {unit}")
}

/// Returns a share in percent: `<0.1 %`, `3.4 %`, `56 %`.
pub(crate) fn percent(share: f64) -> String {
    match 100.0 * share {
        p if !p.is_finite() => "–".to_owned(),
        0.0 => "0 %".to_owned(),
        p if p > 0.0 && p < 0.1 => "<0.1 %".to_owned(),
        p if p < 9.95 => format!("{p:.1} %"),
        p => format!("{p:.0} %"),
    }
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimeUnit {
    /// Its length in seconds.
    pub(crate) seconds: f64,
    /// Its symbol.
    pub(crate) symbol: &'static str,
}

impl TimeUnit {
    /// Returns the unit in which times up to `largest` seconds read best.
    pub(crate) fn suiting(largest: f64) -> TimeUnit {
        let (seconds, symbol) = match largest {
            l if l >= 3.0 * 3600.0 => (3600.0, "h"),
            l if l >= 600.0 => (60.0, "min"),
            l if l >= 1.0 || l <= 0.0 => (1.0, "s"),
            l if l >= 1e-3 => (1e-3, "ms"),
            _ => (1e-6, "µs"),
        };
        TimeUnit { seconds, symbol }
    }
}

/// Returns a time with its unit and three significant digits: `1.23 s`, `45.6 ms`.
pub(crate) fn time(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "–".to_owned();
    }
    let unit = TimeUnit::suiting(seconds);
    let value = seconds / unit.seconds;
    if value >= 1e6 || value > 0.0 && value < 1e-3 {
        return format!("{} {}", scientific(value, 3), unit.symbol);
    }
    let decimals = if value == 0.0 { 0 } else { (2 - decade(value)).clamp(0, 2) as usize };
    format!("{value:.decimals$} {}", unit.symbol)
}

/// Returns the power of ten at or below `|value|`, which is finite and not zero.
pub(crate) fn decade(value: f64) -> i32 {
    value.abs().log10().floor() as i32
}

/// Returns `text` with the sign of mathematics instead of the hyphen.
pub(crate) fn minus(text: String) -> String {
    text.replace('-', "−")
}

fn superscript(digits: &str) -> String {
    digits
        .chars()
        .map(|digit| match digit {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            other => other.to_digit(10).and_then(|d| char::from_u32(0x2070 + d)).unwrap_or(other),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::bytes;
    use super::count;
    use super::percent;
    use super::scientific;
    use super::significant;
    use super::time;

    #[test]
    fn numbers_read_well() {
        assert_eq!(significant(0.123_456, 4), "0.1235");
        assert_eq!(significant(-12_345.6, 3), "−12346");
        assert_eq!(significant(2.5e-9, 3), "2.5×10⁻⁹");
        assert_eq!(significant(0.0, 3), "0");
        assert_eq!(significant(0.99996, 3), "1.00");
        assert_eq!(scientific(1e-10, 1), "10⁻¹⁰");
        assert_eq!(count(20_000_000.0), "20 M");
        assert_eq!(count(12_092.0), "12.1 k");
        assert_eq!(count(9184.0), "9184");
        assert_eq!(bytes(400), "400 B");
        assert_eq!(bytes(6400), "6.25 KiB");
        assert_eq!(bytes(200 << 10), "200 KiB");
        assert_eq!(bytes((1 << 20) - 1), "1 MiB");
        assert_eq!(bytes(u64::MAX), "16777216 TiB");
        assert_eq!(percent(0.0004), "<0.1 %");
        assert_eq!(percent(0.567), "57 %");
        assert_eq!(time(0.0), "0 s");
        assert_eq!(time(0.045_61), "45.6 ms");
        assert_eq!(time(123.4), "123 s");
        assert_eq!(time(1e300), "2.78×10²⁹⁶ h");
        assert_eq!(time(1e-12), "10⁻⁶ µs");
        assert_eq!(significant(1e300, 3), "10³⁰⁰");
    }
}
