//! The embedded font: how wide a text is, and which pixels it covers.
//!
//! DejaVu Sans has the Greek letters, superscripts and signs of our labels, and being embedded it
//! gives the same figure on machines without fonts.  We place glyphs ourselves because plotters'
//! own text drops the left bearing of each glyph and rounds every advance to whole pixels.

use std::sync::OnceLock;

use ab_glyph::Font;
use ab_glyph::FontRef;
use ab_glyph::ScaleFont;
use ab_glyph::point;

use crate::plot::canvas::Weight;

/// Returns the font of a weight; `None` only if the embedded file were damaged.
fn font(weight: Weight) -> Option<&'static FontRef<'static>> {
    static REGULAR: OnceLock<Option<FontRef<'static>>> = OnceLock::new();
    static BOLD: OnceLock<Option<FontRef<'static>>> = OnceLock::new();
    let load = |bytes| FontRef::try_from_slice(bytes).ok();
    match weight {
        Weight::Regular => REGULAR.get_or_init(|| load(dejavu::sans::regular())).as_ref(),
        Weight::Bold => BOLD.get_or_init(|| load(dejavu::sans::bold())).as_ref(),
    }
}

/// Returns the height that `ab_glyph` wants for an em of `pixels`.
fn scale(font: &FontRef<'_>, pixels: f32) -> f32 {
    pixels * font.height_unscaled() / font.units_per_em().unwrap_or(2048.0)
}

/// Returns the width of `text` in em.
pub(crate) fn width(text: &str, weight: Weight) -> f64 {
    let Some(font) = font(weight) else { return 0.6 * text.chars().count() as f64 };
    // At 1000 pixels per em, hinting and rounding play no role.
    let scaled = font.as_scaled(scale(font, 1000.0));
    let advance: f32 = text.chars().map(|c| scaled.h_advance(scaled.glyph_id(c))).sum();
    f64::from(advance) / 1000.0
}

/// Calls `pixel(x, y, coverage)` for the pixels of `text` set with `em` pixels per em, its base
/// line starting at the origin; `x` grows along the text, `y` downwards.
pub(crate) fn cover(text: &str, weight: Weight, em: f64, mut pixel: impl FnMut(i32, i32, f32)) {
    let Some(font) = font(weight) else { return };
    let height = scale(font, em as f32);
    let scaled = font.as_scaled(height);
    let mut pen = 0.0;
    for character in text.chars() {
        let id = scaled.glyph_id(character);
        let glyph = id.with_scale_and_position(height, point(pen, 0.0));
        pen += scaled.h_advance(id);
        if let Some(outline) = font.outline_glyph(glyph) {
            let corner = outline.px_bounds().min;
            outline.draw(|x, y, coverage| {
                pixel(corner.x as i32 + x as i32, corner.y as i32 + y as i32, coverage);
            });
        }
    }
}
