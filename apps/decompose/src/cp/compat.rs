//! The defaults of other programs, where they differ from ours.
//!
//! | program | iterations | tolerance | rank | start | seed | arranged | model files |
//! |---|---|---|---|---|---|---|---|
//! | ours | 50 | 1e-5 | required | `[0, 1)` | 0 | yes | npz |
//! | SPLATT | 50 | 1e-5 | 10 | `[-3, 3)` | 0 | no | splatt |
//! | Tensor Toolbox | 50 | 1e-4 | required | `[0, 1)` | 0 | yes | ttb |
//! | pyttb | 1000 | 1e-4 | required | `[0, 1)` | 0 | yes | ttb |
//! | GenTen | 100 | 4e-4 | 16 | `[0, 1)` | 12345 | yes | ttb |
//! | TensorLy | 100 | 1e-8 | required | nvecs | 0 | no | npz |
//!
//! Programs that take their seed from the clock get ours: every run can be repeated.  GenTen
//! scales its start to the norm of the tensor, which changes no iterate of least squares beyond
//! its scale.  The numbers are read off the sources of the programs.

use clap::ValueEnum;
use decompose_common::model::ModelFormat;
use decompose_cp::Arrangement;

use crate::cp::args::Init;

/// A program whose defaults can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compat {
    /// SPLATT's `cpd`.
    Splatt,
    /// `cp_als` of the Tensor Toolbox for MATLAB.
    Ttb,
    /// `cp_als` of pyttb.
    Pyttb,
    /// GenTen's `cp-als`.
    Genten,
    /// `parafac` of TensorLy.
    Tensorly,
}

/// The range of random starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StartRange {
    /// `[0, 1)`.
    Unit,
    /// `[-3, 3)`, the first start only.
    PlusMinusThree,
}

/// What holds where the user says nothing.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Defaults {
    pub(crate) max_iters: usize,
    pub(crate) tol: f64,
    pub(crate) rank: Option<usize>,
    pub(crate) init: Init,
    pub(crate) range: StartRange,
    pub(crate) seed: u64,
    pub(crate) arrangement: Arrangement,
    pub(crate) format: ModelFormat,
}

impl Defaults {
    /// Returns the defaults of a program, or ours.
    pub(crate) fn of(compat: Option<Compat>) -> Defaults {
        let ours = Defaults {
            max_iters: 50,
            tol: 1e-5,
            rank: None,
            init: Init::Random,
            range: StartRange::Unit,
            seed: 0,
            arrangement: Arrangement::Sorted,
            format: ModelFormat::Npz,
        };
        let (as_computed, ttb) = (Arrangement::AsComputed, ModelFormat::Ttb);
        match compat {
            None => ours,
            Some(Compat::Splatt) => Defaults {
                rank: Some(10),
                range: StartRange::PlusMinusThree,
                arrangement: as_computed,
                format: ModelFormat::Splatt,
                ..ours
            },
            Some(Compat::Ttb) => Defaults { tol: 1e-4, format: ttb, ..ours },
            Some(Compat::Pyttb) => Defaults { max_iters: 1000, tol: 1e-4, format: ttb, ..ours },
            Some(Compat::Genten) => Defaults {
                max_iters: 100,
                tol: 4e-4,
                rank: Some(16),
                seed: 12345,
                format: ttb,
                ..ours
            },
            Some(Compat::Tensorly) => Defaults {
                max_iters: 100,
                tol: 1e-8,
                init: Init::Nvecs,
                arrangement: as_computed,
                ..ours
            },
        }
    }
}
