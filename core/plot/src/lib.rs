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
//! | [`Bubbles`] | a space of choices in three levels, and how long each takes |
//! | [`Ratios`] | ratios to one configuration, such as everything but one optimisation to everything |
//! | [`Race`] | predicted against measured seconds of the schedules a search has chosen from |
//! | [`Frontier`] | the memory of loop nests against their iterations or measured seconds |
//! | [`NestFigure`] | the loops around the terms of a kernel, and what is stored between them |
//! | [`NetworkFigure`] | a tensor network and the tree of its contractions above their loops |
//! | [`Spectra`] | singular values by number, and how many were kept |
//! | [`ScoreMatrix`] | scores between restarts |
//!
//! The files, from a value to a file:
//!
//! | files | hold |
//! |---|---|
//! | one a figure, `profile`, `correlation` | the data of a figure and how it is drawn |
//! | `scale`, `number` | places and ticks on an axis; numbers, times and bytes as text |
//! | `axes`, `series`, `legend`, `labels`, `stack`, `style` | the parts that figures share |
//! | `canvas`, `font` | shapes and texts in points; the metrics and outlines of letters |
//! | `svg`, `raster`, `png` | a canvas through the backends of plotters |
//! | `save` | formats, and finished files that are renamed |
//!
//! Layout uses the metrics of the embedded DejaVu Sans, so figures are the same on all machines.  Only
//! characters that it lacks come from a font of the system, and the text of an SVG file from one of the
//! viewer.  Values that are not finite, or beyond 1e300, are never drawn.
//!
//! We do not use the charts of plotters: their ticks, legends and text placement cannot be held to
//! the spacing wanted here, and they draw in whole pixels.

mod axes;
mod bars;
mod bubbles;
mod canvas;
mod components;
mod convergence;
mod correlation;
mod curves;
mod error;
mod font;
mod frontier;
mod labels;
mod legend;
mod matrix;
mod nest;
mod nest_arrows;
mod nest_layout;
mod network;
mod network_layout;
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

pub use crate::bars::Bar;
pub use crate::bars::BarGroup;
pub use crate::bars::BarLook;
pub use crate::bars::Bars;
pub use crate::bars::Marks;
pub use crate::bubbles::BubbleGroup;
pub use crate::bubbles::Bubbles;
pub use crate::canvas::Canvas;
pub use crate::components::ComponentChoice;
pub use crate::components::ComponentFactor;
pub use crate::components::ComponentMode;
pub use crate::components::ComponentOrder;
pub use crate::components::ComponentRow;
pub use crate::components::Components;
pub use crate::components::ModeLook;
pub use crate::components::alive_components;
pub use crate::convergence::Convergence;
pub use crate::convergence::ConvergencePoint;
pub use crate::convergence::ConvergenceRun;
pub use crate::curves::Curve;
pub use crate::curves::CurveLook;
pub use crate::curves::CurveMark;
pub use crate::curves::CurvePanel;
pub use crate::curves::Curves;
pub use crate::curves::CurvesWidth;
pub use crate::error::PlotError;
pub use crate::frontier::Frontier;
pub use crate::frontier::FrontierMark;
pub use crate::frontier::FrontierTime;
pub use crate::matrix::ScoreMatrix;
pub use crate::nest::LoopKind;
pub use crate::nest::NestBuffer;
pub use crate::nest::NestFigure;
pub use crate::nest::NestNode;
pub use crate::network::NetworkFigure;
pub use crate::network::NetworkInput;
pub use crate::network::NetworkTensor;
pub use crate::network::NetworkTerm;
pub use crate::network::TensorForm;
pub use crate::profile::Profile;
pub use crate::profile::ProfileEntry;
pub use crate::race::Race;
pub use crate::race::RaceCandidate;
pub use crate::ratios::Ratios;
pub use crate::save::Figure;
pub use crate::save::PlotFormat;
pub use crate::save::Rendered;
pub use crate::save::render;
pub use crate::save::save;
pub use crate::scale::ScaleKind;
pub use crate::spectra::Spectra;
pub use crate::spectra::Spectrum;
pub use crate::timing::Timing;
pub use crate::timing::TimingComponent;
pub use crate::timing::TimingPhase;
pub use crate::timing::TimingRun;
