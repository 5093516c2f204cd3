//! The fonts: how wide a text is, and which pixels it covers.
//!
//! DejaVu Sans has the Greek letters, superscripts and signs of our labels, and being embedded it
//! gives the same figure on machines without fonts.  What it lacks, such as Chinese, Japanese and Korean,
//! is taken from the first font of the system that is known to have it, and is a box where there is none.
//! We place glyphs ourselves because plotters' own text drops the left bearing of each glyph and rounds
//! every advance to whole pixels.

use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::sync::OnceLock;

use ab_glyph::Font;
use ab_glyph::FontArc;
use ab_glyph::GlyphId;
use ab_glyph::point;

use crate::canvas::Weight;

/// How the names of font files with large repertoires begin, in lower case, best first.
const LARGE_FONTS: [&str; 18] = [
    "notosanscjk", "notosanssc", "notosansjp", "notosanskr", "sourcehansans", "wqy-microhei",
    "wqy-zenhei", "droidsansfallback", "ipag", "vlgothic", "nanumgothic", "unifont", "arialuni",
    "arial unicode", "pingfang", "hiragino", "msyh", "msgothic",
];

/// Returns the embedded font of a weight; `None` only if the embedded file were damaged.
fn embedded(weight: Weight) -> Option<&'static FontArc> {
    static REGULAR: OnceLock<Option<FontArc>> = OnceLock::new();
    static BOLD: OnceLock<Option<FontArc>> = OnceLock::new();
    let load = |bytes| FontArc::try_from_slice(bytes).ok();
    match weight {
        Weight::Regular => REGULAR.get_or_init(|| load(dejavu::sans::regular())).as_ref(),
        Weight::Bold => BOLD.get_or_init(|| load(dejavu::sans::bold())).as_ref(),
    }
}

/// Returns the system's font for what the embedded one lacks, looked up once and only if it is needed.
fn system() -> Option<&'static FontArc> {
    static FOUND: OnceLock<Option<FontArc>> = OnceLock::new();
    let load = || {
        let load = |path: PathBuf| FontArc::try_from_vec(fs::read(path).ok()?).ok();
        large_fonts(&font_folders()).into_iter().find_map(load)
    };
    FOUND.get_or_init(load).as_ref()
}

/// Returns where systems keep fonts.
fn font_folders() -> Vec<PathBuf> {
    let fixed = [
        "/usr/share/fonts",
        "/usr/local/share/fonts",
        "/System/Library/Fonts",
        "/Library/Fonts",
        "C:\\Windows\\Fonts",
    ];
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let own = home.iter().flat_map(|home| [home.join(".local/share/fonts"), home.join(".fonts")]);
    fixed.into_iter().map(PathBuf::from).chain(own).collect()
}

/// Returns the font files with large repertoires below `folders`, best first.
fn large_fonts(folders: &[PathBuf]) -> Vec<PathBuf> {
    /// Folders that are looked into at most: fonts are few folders deep.
    const MOST_FOLDERS: usize = 2000;
    let mut found = Vec::new();
    let mut open = folders.to_vec();
    let mut seen = 0;
    while let Some(folder) = open.pop().filter(|_| seen < MOST_FOLDERS) {
        seen += 1;
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(_) => found.extend(rated(&entry.path())),
                Err(_) => {}
            }
        }
    }
    found.sort();
    found.into_iter().map(|(_, path)| path).collect()
}

/// Returns a font file with how far from the best it is; `None` if it is not known to be large.
fn rated(path: &Path) -> Option<((usize, bool), PathBuf)> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    let is_font = [".ttf", ".ttc", ".otf", ".otc"].iter().any(|ending| name.ends_with(ending));
    let family = LARGE_FONTS.iter().position(|family| name.starts_with(family))?;
    is_font.then(|| ((family, !name.contains("regular")), path.to_owned()))
}

/// One character and where it comes from.
struct Glyph {
    font: &'static FontArc,
    id: GlyphId,
    /// Its advance in em.
    advance: f64,
}

/// Returns the glyph of a character; that of a missing one is a box.
fn glyph(character: char, weight: Weight) -> Option<Glyph> {
    let own = embedded(weight)?;
    let id = own.glyph_id(character);
    let font = match is_drawn(id) {
        true => own,
        false => system().filter(|font| is_drawn(font.glyph_id(character))).unwrap_or(own),
    };
    let id = font.glyph_id(character);
    let advance = f64::from(font.h_advance_unscaled(id) / font.units_per_em().unwrap_or(2048.0));
    // Viewers of SVG files, which have fonts of their own, give such characters a whole em.
    let advance = if !is_drawn(id) && character >= '\u{1100}' { 1.0 } else { advance };
    Some(Glyph { font, id, advance })
}

/// Tells whether a font has a glyph: number 0 is that of what it lacks.
fn is_drawn(id: GlyphId) -> bool {
    id.0 != 0
}

/// Returns the first character of `text` that no font here has.
pub(crate) fn missing(text: &str, weight: Weight) -> Option<char> {
    text.chars().find(|&c| !glyph(c, weight).is_some_and(|glyph| is_drawn(glyph.id)))
}

/// Returns the width of `text` in em.
pub(crate) fn width(text: &str, weight: Weight) -> f64 {
    text.chars().map(|c| glyph(c, weight).map_or(0.6, |glyph| glyph.advance)).sum()
}

/// Calls `pixel(x, y, coverage)` for the pixels of `text` set with `em` pixels per em, its base
/// line starting at the origin; `x` grows along the text, `y` downwards.
pub(crate) fn cover(text: &str, weight: Weight, em: f64, mut pixel: impl FnMut(i32, i32, f32)) {
    let mut pen = 0.0;
    for Glyph { font, id, advance } in text.chars().filter_map(|c| glyph(c, weight)) {
        // What `ab_glyph` wants is the height of a line.
        let height = em as f32 * font.height_unscaled() / font.units_per_em().unwrap_or(2048.0);
        let glyph = id.with_scale_and_position(height, point(pen as f32, 0.0));
        pen += advance * em;
        if let Some(outline) = font.outline_glyph(glyph) {
            let corner = outline.px_bounds().min;
            outline.draw(|x, y, coverage| {
                pixel(corner.x as i32 + x as i32, corner.y as i32 + y as i32, coverage);
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{large_fonts, missing, width};
    use crate::canvas::Weight;

    #[test]
    fn characters_without_a_glyph_are_boxes_of_their_width() {
        assert_eq!(missing("λ Σ 10⁻³ …", Weight::Bold), None);
        // Private use: no font means anything by it.
        assert_eq!(missing("a\u{10fffd}b", Weight::Regular), Some('\u{10fffd}'));
        let mut drawn = 0;
        super::cover("\u{10fffd}", Weight::Regular, 20.0, |_, _, coverage| {
            drawn += usize::from(coverage > 0.5);
        });
        assert!(drawn > 20, "a box of {drawn} pixels");
        for text in ["東", "京", "한", "\u{10fffd}"] {
            assert!((0.9..1.1).contains(&width(text, Weight::Regular)), "{text}");
        }
    }

    #[test]
    fn fonts_are_found_best_first() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("opentype/noto");
        fs::create_dir_all(&deep).unwrap();
        for name in ["NotoSansCJK-Bold.ttc", "NotoSansCJK-Regular.ttc", "NotoSans-Regular.ttf"] {
            fs::write(deep.join(name), "").unwrap();
        }
        fs::write(dir.path().join("wqy-zenhei.ttc"), "").unwrap();
        fs::write(dir.path().join("wqy-zenhei.txt"), "").unwrap();
        let found = large_fonts(&[dir.path().to_owned(), dir.path().join("absent")]);
        let names: Vec<_> = found.iter().filter_map(|path| path.file_name()).collect();
        assert_eq!(names, ["NotoSansCJK-Regular.ttc", "NotoSansCJK-Bold.ttc", "wqy-zenhei.ttc"]);
    }
}
