//! A canvas as a PNG file, written row by row as it is drawn.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::plot::canvas::Canvas;
use crate::plot::error::PlotError;
use crate::plot::raster::{Band, PIXELS, refused};

/// Rows of the file that are drawn at a time.
const BAND: usize = 64;

/// Writes the canvas as a PNG file to `path`.
///
/// Holds less than two megabytes for a figure of 800 points' width.
///
/// # Errors
///
/// [`PlotError::Render`] if the drawing library refuses or the file cannot be written.
pub(crate) fn write_png(canvas: &Canvas, path: &Path) -> Result<(), PlotError> {
    let (width, height) = (canvas.size.0 * PIXELS, canvas.size.1 * PIXELS);
    let file = BufWriter::new(File::create(path).map_err(refused)?);
    let mut encoder = png::Encoder::new(file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_compression(png::Compression::Fast);
    let mut header = encoder.write_header().map_err(refused)?;
    let mut rows = header.stream_writer().map_err(refused)?;
    let mut band = Band::new(width);
    let height = height as usize;
    for first in (0..height).step_by(BAND) {
        band.draw(canvas, first..height.min(first + BAND))?;
        rows.write_all(band.shrink()).map_err(refused)?;
    }
    rows.finish().map_err(refused)?;
    header.finish().map_err(refused)
}
