//! A canvas as a PNG file, compressed row by row as it is drawn.

use std::io::Write;

use crate::canvas::Canvas;
use crate::error::PlotError;
use crate::raster::{Band, PIXELS, refused};

/// Rows of the file that are drawn at a time.
const BAND: usize = 64;

/// Returns the canvas as a PNG file.
///
/// Holds less than two megabytes beside the file for a figure of 800 points' width.
///
/// # Errors
///
/// [`PlotError::Render`] if the drawing library refuses.
pub(crate) fn png(canvas: &Canvas) -> Result<Vec<u8>, PlotError> {
    let (width, height) = (canvas.size.0 * PIXELS, canvas.size.1 * PIXELS);
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
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
    header.finish().map_err(refused)?;
    Ok(file)
}
