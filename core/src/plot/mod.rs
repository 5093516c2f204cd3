//! Figures, as SVG and PNG.
//!
//! A figure is plain data with a [`Figure::draw`]; [`save()`] writes it, or [`render`] and [`Rendered::write`].
//!
//! | figure | shows |
//! |---|---|
//! | [`Convergence`] | fit against iterations and seconds, change of fit against the tolerance |
//! | [`Timing`] | seconds by phase of a run and by component of its iterations |
//! | [`Components`] | the strongest components, one panel for each mode |
//! | [`Curves`] | errors by epoch and time, predicted against observed, residuals |
//! | [`Bars`] | measured values beside bounds and other programs, as bars or lines |
//! | [`Ratios`] | ratios to one configuration, such as everything but one technique to everything |
//! | [`Race`] | predicted against measured seconds of the schedules a search has chosen from |
//! | [`NestFigure`] | the loops around the terms of a kernel, and what is stored between them |
//! | [`Spectra`] | singular values by number, and how many were kept |
//! | [`ScoreMatrix`] | scores between restarts |
//!
//! Phases: a figure draws shapes and texts on a [`Canvas`]; `svg` and `png` replay these through
//! the backends of plotters; `save` renames finished files.  Layout is done in points with the
//! metrics of the embedded DejaVu Sans, so figures are the same on all machines; only characters that
//! it lacks come from a font of the system, and the text of an SVG file from one of the viewer.  Values that are not finite, or beyond 1e300, are never drawn.
//!
//! We do not use the charts of plotters: their ticks, legends and text placement cannot be held to
//! the spacing wanted here, and they draw in whole pixels.

mod axes;
mod bars;
mod canvas;
mod components;
mod convergence;
mod correlation;
mod curves;
mod error;
mod font;
mod labels;
mod legend;
mod matrix;
mod nest;
mod nest_arrows;
mod nest_layout;
mod number;
mod png;
mod profile;
mod profile_panel;
mod race;
mod raster;
mod ratios;
mod save;
mod scale;
mod series;
mod spectra;
mod stack;
mod style;
mod svg;
mod timing;

#[cfg(test)]
mod extreme_tests;
#[cfg(test)]
mod layout_tests;

pub use crate::plot::bars::Bar;
pub use crate::plot::bars::BarGroup;
pub use crate::plot::bars::BarLook;
pub use crate::plot::bars::Bars;
pub use crate::plot::bars::Marks;
pub use crate::plot::canvas::Canvas;
pub use crate::plot::components::ComponentChoice;
pub use crate::plot::components::ComponentFactor;
pub use crate::plot::components::ComponentMode;
pub use crate::plot::components::ComponentOrder;
pub use crate::plot::components::ComponentRow;
pub use crate::plot::components::Components;
pub use crate::plot::components::ModeLook;
pub use crate::plot::components::alive_components;
pub use crate::plot::convergence::Convergence;
pub use crate::plot::convergence::ConvergencePoint;
pub use crate::plot::convergence::ConvergenceRun;
pub use crate::plot::curves::Curve;
pub use crate::plot::curves::CurveLook;
pub use crate::plot::curves::CurveMark;
pub use crate::plot::curves::CurvePanel;
pub use crate::plot::curves::Curves;
pub use crate::plot::error::PlotError;
pub use crate::plot::matrix::ScoreMatrix;
pub use crate::plot::nest::LoopKind;
pub use crate::plot::nest::NestBuffer;
pub use crate::plot::nest::NestFigure;
pub use crate::plot::nest::NestNode;
pub use crate::plot::profile::Profile;
pub use crate::plot::profile::ProfileEntry;
pub use crate::plot::race::Race;
pub use crate::plot::race::RaceCandidate;
pub use crate::plot::ratios::Ratios;
pub use crate::plot::save::Figure;
pub use crate::plot::save::PlotFormat;
pub use crate::plot::save::Rendered;
pub use crate::plot::save::render;
pub use crate::plot::save::save;
pub use crate::plot::scale::ScaleKind;
pub use crate::plot::spectra::Spectra;
pub use crate::plot::spectra::Spectrum;
pub use crate::plot::timing::Timing;
pub use crate::plot::timing::TimingComponent;
pub use crate::plot::timing::TimingPhase;
pub use crate::plot::timing::TimingRun;
