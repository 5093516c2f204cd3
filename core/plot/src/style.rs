//! The one look of all figures: colours, sizes of text, widths of lines.
//!
//! Colours are those of Okabe and Ito, "Color Universal Design" (2008), which stay apart for
//! readers with any common colour blindness; yellow, which fades on white, is left out, and black is
//! a dark grey, which does not outweigh the others.
//! Lengths are in *points*: a figure is about 800 points wide, that is two columns of a paper.

/// A colour, as red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Color(pub(crate) u8, pub(crate) u8, pub(crate) u8);

impl Color {
    /// Returns this colour mixed with white: `share` 1 is the colour, 0 is white.
    pub(crate) fn tint(self, share: f64) -> Color {
        self.mix(WHITE, share)
    }

    /// Returns `share` of this colour and the rest of `other`.
    pub(crate) fn mix(self, other: Color, share: f64) -> Color {
        let blend =
            |a: u8, b: u8| (f64::from(a) * share + f64::from(b) * (1.0 - share)).round() as u8;
        Color(blend(self.0, other.0), blend(self.1, other.1), blend(self.2, other.2))
    }

    /// Returns the colour of text that can be read on this background (luma of ITU-R BT.601).
    pub(crate) fn text_on(self) -> Color {
        let luma =
            0.299 * f64::from(self.0) + 0.587 * f64::from(self.1) + 0.114 * f64::from(self.2);
        if luma < 140.0 { WHITE } else { INK }
    }
}

/// Background.
pub(crate) const WHITE: Color = Color(255, 255, 255);
/// Text and axes.
pub(crate) const INK: Color = Color(34, 34, 34);
/// Secondary text.
pub(crate) const SOFT_INK: Color = Color(96, 96, 96);
/// Grid lines.
pub(crate) const GRID: Color = Color(226, 226, 226);
/// Frame of a panel.
pub(crate) const FRAME: Color = Color(120, 120, 120);
/// What stands back: the runs beyond the palette, the remainder of a stack.
pub(crate) const MUTED: Color = Color(178, 178, 178);

/// Colours of series, in order of use.
pub(crate) const PALETTE: [Color; 7] = [
    Color(0, 114, 178),
    Color(213, 94, 0),
    Color(0, 158, 115),
    Color(204, 121, 167),
    Color(230, 159, 0),
    Color(86, 180, 233),
    Color(70, 70, 70),
];

/// Returns the colour of stack part or bar `at`; past the palette, paler turns of it.
pub(crate) fn fill_color(at: usize) -> Color {
    let turn = at / PALETTE.len();
    PALETTE[at % PALETTE.len()].tint(0.55_f64.powi(turn.min(3) as i32))
}

/// Size of the figure's title.
pub(crate) const TITLE: f64 = 15.0;
/// Size of axis names and panel titles.
pub(crate) const LABEL: f64 = 12.0;
/// Size of tick labels, legends and notes.
pub(crate) const SMALL: f64 = 11.0;
/// Size of dense lists, the smallest text of any figure.
pub(crate) const TINY: f64 = 9.5;

/// Width of a data line.
pub(crate) const DATA_LINE: f64 = 1.8;
/// Width of grid and frame lines.
pub(crate) const THIN_LINE: f64 = 0.8;
/// Radius of a marker.
pub(crate) const MARKER: f64 = 3.2;
/// Height of a capital letter over the size of its text, in DejaVu Sans.
pub(crate) const CAP_HEIGHT: f64 = 0.73;
