//! Spectra: singular values or eigenvalues by number, and how many of them were kept.

use crate::axes::Area;
use crate::axes::Axis;
use crate::axes::Panel;
use crate::canvas::Canvas;
use crate::canvas::Stroke;
use crate::canvas::TextStyle;
use crate::error::PlotError;
use crate::legend::Entry;
use crate::legend::Sign;
use crate::legend::draw_legend;
use crate::number::count;
use crate::number::percent;
use crate::save::Figure;
use crate::scale::Scale;
use crate::scale::ScaleKind;
use crate::scale::range;
use crate::series::Look;
use crate::series::draw_series;
use crate::style::MUTED;
use crate::style::PALETTE;
use crate::style::TITLE;

const FIGURE: &str = "spectra";
const MARGIN: f64 = 14.0;
/// Values below this part of the largest are rounding and would stretch the axis.
const ROUNDING: f64 = 1e-16;

/// Falling values on a logarithmic axis, a line for each bond or mode; those that were kept in
/// colour with markers, those that were dropped in grey.
#[derive(Clone, Debug, Default)]
pub struct Spectra {
    /// What was decomposed and how.
    pub title: String,
    /// What the values are: `singular value`.
    pub value_name: String,
    /// The lines.
    pub spectra: Vec<Spectrum>,
}

/// One line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spectrum {
    /// Its name: `bond 1`.
    pub name: String,
    /// The values, falling.
    pub values: Vec<f64>,
    /// How many of them were kept.
    pub kept: usize,
    /// How many there are, known or not.
    pub all: usize,
    /// The share of the sum of squares that was not kept, where it is known though not all values are.
    pub left_out: Option<f64>,
}

impl Figure for Spectra {
    fn size(&self) -> (u32, u32) {
        (800, 440)
    }

    fn draw(&self, canvas: &mut Canvas) -> Result<(), PlotError> {
        let (width, height) = (f64::from(canvas.size.0), f64::from(canvas.size.1));
        let room = width - 2.0 * MARGIN;
        let all = || self.spectra.iter().flat_map(|spectrum| spectrum.values.iter().copied());
        let largest = range(all()).map_or(0.0, |(_, largest)| largest);
        let shown = |value: f64| ScaleKind::Log.shows(value) && value > ROUNDING * largest;
        let y = Scale::around(ScaleKind::Log, all().filter(|&value| shown(value)))
            .ok_or_else(|| PlotError::empty(FIGURE, "no value is above zero"))?;
        let counts = self.spectra.iter().map(|spectrum| {
            spectrum.values.iter().take_while(|&&value| shown(value)).count() as f64
        });
        let x = Scale::from_zero(counts);
        let title = TextStyle::new(TITLE).bold();
        canvas.text((MARGIN, 26.0), title.fit(&self.title, room), title);
        let top = draw_legend(canvas, (MARGIN, 42.0), room, &self.entries()) + 10.0;
        let area = Area { left: MARGIN, top, width: room, height: height - top - 8.0 };
        let (x, y) = (Axis::whole(x, 9, "number"), Axis::new(y, 6, self.value_name.clone()));
        let panel = Panel::draw(canvas, area, &x, &y);
        for (at, spectrum) in self.spectra.iter().enumerate() {
            let values = spectrum.values.iter().take_while(|&&value| shown(value)).zip(1..);
            let points: Vec<_> =
                values.map(|(&value, number)| panel.point(f64::from(number), value)).collect();
            let kept = spectrum.kept.min(points.len());
            let grey = Stroke { width: 1.2, color: MUTED };
            canvas.line(points[kept.saturating_sub(1)..].to_vec(), grey);
            draw_series(canvas, &points[..kept], look(at));
        }
        Ok(())
    }
}

impl Spectra {
    fn entries(&self) -> Vec<Entry> {
        let entry = |(at, spectrum): (usize, &Spectrum)| {
            let Look { color, marker } = look(at);
            let (kept, all) = (spectrum.kept, spectrum.all.max(spectrum.values.len()));
            let mut note = match kept >= all {
                true => format!("rank {kept}"),
                false => format!("rank {kept} of {}", count(all as f64)),
            };
            if let Some(left_out) = spectrum.left_out.filter(|_| kept < all) {
                note += &format!(", {} of squares beyond", percent(left_out));
            }
            let sign = Sign::Marker(marker.unwrap_or(0));
            Entry { note, sign, ..Entry::new(color, spectrum.name.clone()) }
        };
        self.spectra.iter().enumerate().map(entry).collect()
    }
}

/// Colours repeat after the palette, with other markers.
fn look(at: usize) -> Look {
    let color = PALETTE.get(at % PALETTE.len()).copied().unwrap_or(MUTED);
    Look { color, marker: Some(at % 5) }
}
