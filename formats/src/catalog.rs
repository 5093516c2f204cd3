//! The published FROSTT tensors: names, extents, non-zeros, addresses.
//!
//! The facts are those of the collection's pages (Smith et al., "FROSTT: The Formidable Repository
//! of Open Sparse Tensors and Tools", 2017, frostt.io); nothing is fetched.

use std::sync::LazyLock;

use crate::error::FormatError;

/// A published tensor.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Preset {
    /// The collection's name for it.
    pub name: &'static str,
    /// The extents of its modes.
    pub extents: Vec<u64>,
    /// The number of its non-zeros.
    pub nnz: u64,
    /// Where it is published.
    pub url: &'static str,
}

/// The extents and non-zeros of a tensor to be generated.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Shape {
    /// The extents of its modes.
    pub extents: Vec<u64>,
    /// The number of its non-zeros.
    pub nnz: u64,
}

static TABLE: &str = include_str!("frostt.csv");

static PRESETS: LazyLock<Vec<Preset>> =
    LazyLock::new(|| TABLE.lines().skip(1).filter_map(parse).collect());

/// Returns all published tensors, by name.
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

/// Returns the published tensor `name`; case and `_` for `-` do not matter.
///
/// # Errors
///
/// [`FormatError::UnknownPreset`], with the names most like it, if there is none.
pub fn find(name: &str) -> Result<&'static Preset, FormatError> {
    let wanted = plain(name);
    if let Some(preset) = presets().iter().find(|preset| plain(preset.name) == wanted) {
        return Ok(preset);
    }
    let mut near: Vec<(usize, &str)> =
        presets().iter().map(|preset| (distance(&wanted, preset.name), preset.name)).collect();
    near.sort();
    let suggestions: Vec<&str> = near.iter().take(3).map(|&(_, name)| name).collect();
    Err(FormatError::UnknownPreset { name: name.to_string(), near: suggestions.join(", ") })
}

/// Returns the published tensor with exactly these extents and non-zeros.
pub fn matches(extents: &[u64], nnz: u64) -> Option<&'static Preset> {
    presets().iter().find(|preset| preset.nnz == nnz && preset.extents == extents)
}

/// Returns the shape of the published tensor `name` with `scale` times its non-zeros.
///
/// Fibres keep their mean lengths: with `N` modes, every extent above [`SMALL_MODE`] is multiplied
/// by `scale` too, which thins slices no more than the tensor, while short modes (hours, days,
/// categories) stay as they are; no extent falls below [`SMALL_MODE`], or above as many cells as
/// hold four times the non-zeros.  At scale 1 the shape is the published one.
///
/// # Errors
///
/// [`FormatError::UnknownPreset`] as [`find`]; [`FormatError::NotATensor`] if `scale` is not above
/// 0 or not finite.
pub fn like(name: &str, scale: f64) -> Result<Shape, FormatError> {
    let preset = find(name)?;
    if !(scale > 0.0 && scale.is_finite()) {
        return Err(FormatError::NotATensor(format!("scale {scale}: give a number above 0")));
    }
    let scaled = |number: u64| ((number as f64 * scale).round() as u64).max(1);
    let resize = |&extent: &u64| {
        if extent <= SMALL_MODE { extent } else { scaled(extent).max(SMALL_MODE) }
    };
    let extents: Vec<u64> = preset.extents.iter().map(resize).collect();
    let cells: f64 = extents.iter().map(|&extent| extent as f64).product();
    let most = if scale == 1.0 { preset.nnz } else { (cells / 4.0).max(1.0) as u64 };
    Ok(Shape { extents, nnz: scaled(preset.nnz).min(most) })
}

/// Modes up to this extent are not scaled by [`like`].
pub const SMALL_MODE: u64 = 100;

fn parse(line: &'static str) -> Option<Preset> {
    let mut fields = line.split(',');
    let (name, order) = (fields.next()?, fields.next()?.parse::<usize>().ok()?);
    let extents: Vec<u64> =
        fields.next()?.split(" x ").map(|extent| extent.parse().ok()).collect::<Option<_>>()?;
    let (nnz, url) = (fields.next()?.parse().ok()?, fields.next()?);
    (extents.len() == order).then_some(Preset { name, extents, nnz, url })
}

fn plain(name: &str) -> String {
    name.trim().to_lowercase().replace('_', "-")
}

/// Least number of letters to insert, delete or change to turn `a` into `b`, where a name that
/// merely continues the other is near.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), plain(b).chars().collect());
    if !a.is_empty() && (b.starts_with(&a) || b.windows(a.len()).any(|part| part == a)) {
        return 1;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}
