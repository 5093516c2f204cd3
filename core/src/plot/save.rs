//! From a figure to its two files, which appear complete or not at all.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use tempfile::NamedTempFile;

use crate::plot::canvas::Canvas;
use crate::plot::error::PlotError;
use crate::plot::png::write_png;
use crate::plot::svg::svg;

/// Something that can be drawn.
pub trait Figure {
    /// Returns width and height in points; the PNG file has two pixels per point.
    fn size(&self) -> (u32, u32);

    /// Draws the figure on a canvas of this size.
    ///
    /// # Errors
    ///
    /// [`PlotError::Empty`] if there is nothing to show, [`PlotError::Mismatch`] if parts of the
    /// figure do not fit each other.
    fn draw(&self, canvas: &mut Canvas) -> Result<(), PlotError>;
}

/// Writes `dir/stem.svg` and `dir/stem.png` and returns these paths; makes `dir` where missing.
///
/// Both files are written under temporary names in `dir` and renamed when both are complete, so
/// that a reader never sees half a figure and an error leaves older files as they were.
///
/// # Errors
///
/// Those of [`Figure::draw`]; [`PlotError::Stem`] if `stem` is not a plain file name;
/// [`PlotError::Write`] if the folder or a file cannot be written.
pub fn save(figure: &impl Figure, dir: &Path, stem: &str) -> Result<[PathBuf; 2], PlotError> {
    if stem.is_empty() || stem.starts_with('.') || stem.contains(['/', '\\']) {
        return Err(PlotError::Stem { stem: stem.to_owned() });
    }
    let mut canvas = Canvas::new(figure.size());
    figure.draw(&mut canvas)?;

    let targets = [dir.join(format!("{stem}.svg")), dir.join(format!("{stem}.png"))];
    fs::create_dir_all(dir).map_err(|source| PlotError::Write { path: dir.to_owned(), source })?;
    let vector = temporary(dir, &targets[0], ".svg")?;
    fs::write(vector.path(), svg(&canvas)?)
        .map_err(|source| PlotError::Write { path: targets[0].clone(), source })?;
    let pixels = temporary(dir, &targets[1], ".png")?;
    write_png(&canvas, pixels.path())?;
    publish(vector, &targets[0])?;
    publish(pixels, &targets[1])?;
    Ok(targets)
}

/// Makes an empty file beside `target` that vanishes unless it is published.
fn temporary(dir: &Path, target: &Path, suffix: &str) -> Result<NamedTempFile, PlotError> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".figure-").suffix(suffix);
    // Temporary files are private by default, but figures are for whom the umask allows.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(dir).map_err(|source| PlotError::Write { path: target.to_owned(), source })
}

/// Renames a complete file to its final name.
fn publish(file: NamedTempFile, target: &Path) -> Result<(), PlotError> {
    file.persist(target)
        .map(drop)
        .map_err(|error| PlotError::Write { path: target.to_owned(), source: error.error })
}
