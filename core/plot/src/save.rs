//! From a figure to its files, which appear complete or not at all.

use std::fs;
use std::path::Path;
use std::path::PathBuf;

use tempfile::NamedTempFile;

use crate::canvas::Canvas;
use crate::error::PlotError;
use crate::font;
use crate::png::png;
use crate::svg::svg;

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

/// A format of figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlotFormat {
    /// Scalable shapes and texts.
    Svg,
    /// Pixels, two per point.
    Png,
}

impl PlotFormat {
    /// All formats.
    pub const ALL: [PlotFormat; 2] = [PlotFormat::Svg, PlotFormat::Png];

    /// Returns the ending of its files, without the dot.
    pub fn ending(self) -> &'static str {
        match self {
            PlotFormat::Svg => "svg",
            PlotFormat::Png => "png",
        }
    }
}

/// A drawn figure: the content of its files.
#[derive(Clone, Debug)]
pub struct Rendered {
    files: Vec<(PlotFormat, Vec<u8>)>,
    missing: Option<char>,
}

/// Draws a figure in `formats`, in memory.
///
/// # Errors
///
/// Those of [`Figure::draw`]; [`PlotError::Render`] if the drawing library refuses.
pub fn render(
    figure: &(impl Figure + ?Sized),
    formats: &[PlotFormat],
) -> Result<Rendered, PlotError> {
    let mut canvas = Canvas::new(figure.size());
    figure.draw(&mut canvas)?;
    let file = |format: PlotFormat| {
        let content = match format {
            PlotFormat::Svg => svg(&canvas)?.into_bytes(),
            PlotFormat::Png => png(&canvas)?,
        };
        Ok((format, content))
    };
    let texts = canvas.texts.iter().filter(|_| formats.contains(&PlotFormat::Png));
    Ok(Rendered {
        files: formats.iter().copied().map(file).collect::<Result<_, _>>()?,
        missing: texts.filter_map(|text| font::missing(&text.text, text.style.weight)).next(),
    })
}

impl Rendered {
    /// Returns a character of its texts that no font here has: a PNG file shows a box for it.
    pub fn missing(&self) -> Option<char> {
        self.missing
    }

    /// Returns the content of its SVG file, if it was drawn as one.
    pub fn svg(&self) -> Option<&str> {
        let (_, content) = self.files.iter().find(|(format, _)| *format == PlotFormat::Svg)?;
        std::str::from_utf8(content).ok()
    }

    /// Writes `dir/stem.svg` and the others, and returns their paths; makes `dir` where missing.
    ///
    /// All files are written under temporary names in `dir` and renamed when all are complete, so
    /// that a reader never sees half a figure and an error leaves older files as they were.
    ///
    /// # Errors
    ///
    /// [`PlotError::Stem`] if `stem` is not a plain file name; [`PlotError::Write`] if the folder or
    /// a file cannot be written.
    pub fn write(&self, dir: &Path, stem: &str) -> Result<Vec<PathBuf>, PlotError> {
        if stem.is_empty() || stem.starts_with('.') || stem.contains(['/', '\\']) {
            return Err(PlotError::Stem { stem: stem.to_owned() });
        }
        fs::create_dir_all(dir)
            .map_err(|source| PlotError::Write { path: dir.to_owned(), source })?;
        let complete = self.files.iter().map(|(format, content)| {
            let target = dir.join(format!("{stem}.{}", format.ending()));
            let file = temporary(dir, &target, *format)?;
            match fs::write(file.path(), content) {
                Ok(()) => Ok((file, target)),
                Err(source) => Err(PlotError::Write { path: target, source }),
            }
        });
        let complete: Vec<_> = complete.collect::<Result<_, _>>()?;
        complete.into_iter().map(|(file, target)| publish(file, target)).collect()
    }
}

/// Writes `dir/stem.svg` and `dir/stem.png` and returns these paths: [`render`], then
/// [`Rendered::write`].
///
/// # Errors
///
/// Those of both.
pub fn save(
    figure: &(impl Figure + ?Sized),
    dir: &Path,
    stem: &str,
) -> Result<Vec<PathBuf>, PlotError> {
    render(figure, &PlotFormat::ALL)?.write(dir, stem)
}

/// Makes an empty file beside `target` that vanishes unless it is published.
fn temporary(dir: &Path, target: &Path, format: PlotFormat) -> Result<NamedTempFile, PlotError> {
    decompose_formats::io::temporary(dir, &format!(".{}", format.ending()))
        .map_err(|source| PlotError::Write { path: target.to_owned(), source })
}

/// Renames a complete file to its final name.
fn publish(file: NamedTempFile, target: PathBuf) -> Result<PathBuf, PlotError> {
    match file.persist(&target) {
        Ok(_) => Ok(target),
        Err(error) => Err(PlotError::Write { path: target, source: error.error }),
    }
}
