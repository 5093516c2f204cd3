//! Words that depend on a number.

/// Returns `count` with the word for it.
///
/// # Example
///
/// ```
/// use decompose_formats::counted;
///
/// assert_eq!(counted(1_usize, "entry", "entries"), "1 entry");
/// assert_eq!([0_u64, 2].map(|n| counted(n, "entry", "entries")), ["0 entries", "2 entries"]);
/// ```
pub fn counted(count: impl TryInto<u64>, one: &str, many: &str) -> String {
    // A count beyond 64 bits is no 1.
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {}", if count == 1 { one } else { many })
}
