//! `decompose predict` and `decompose eval`: the values of a model of any kind.

mod coords;
mod eval;
mod predict;

use std::path::{Path, PathBuf};

use clap::Args;
use decompose_common::evaluate::values_bytes;
use decompose_common::machine::hardware_threads;
use decompose_common::memory;
use decompose_common::model::{Model, Stored};
use decompose_common::progress::{Screen, Verbosity};
use decompose_core::runtime::Toolchain;

use crate::failure::Failure;
use crate::run;
use crate::run::args::parse_count;
use crate::run::memory::MemoryArgs;

pub(crate) use crate::evaluate::eval::EvalArgs;
pub(crate) use crate::evaluate::predict::PredictArgs;
pub(crate) use eval::{bits, run as eval};
pub(crate) use predict::run as predict;

/// What both commands share.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Computation")]
#[expect(clippy::struct_excessive_bools, reason = "one a switch, as typed")]
pub(crate) struct ComputeArgs {
    /// Threads.  [default: all]
    #[arg(long, short, value_name = "N", value_parser = parse_count)]
    threads: Option<usize>,
    /// Interpret the kernel instead of compiling C.
    #[arg(long)]
    no_codegen: bool,
    /// Replace files that exist.
    #[arg(long, help_heading = "Output")]
    overwrite: bool,
    /// Show warnings and errors only.
    #[arg(long, short, help_heading = "Output")]
    quiet: bool,
    #[command(flatten)]
    memory: MemoryArgs,
}

impl ComputeArgs {
    fn screen(&self) -> Screen {
        Screen::new(if self.quiet { Verbosity::Quiet } else { Verbosity::Normal })
    }

    fn begin(&self) -> Result<(), Failure> {
        self.memory.begin();
        let hardware = hardware_threads();
        run::start_threads(self.threads.unwrap_or(hardware))
    }

    fn toolchain(&self) -> Toolchain {
        match self.no_codegen {
            true => Toolchain::Interpreter("--no-codegen was given".into()),
            false => Toolchain::detect(),
        }
    }
}

/// Foresees the values of `model` at `count` coordinates, beside `held` bytes of them.
///
/// # Errors
///
/// The numbers, if it does not fit.
fn foresee(model: &Model<f64>, count: usize, held: u64) -> Result<(), Failure> {
    let bytes = values_bytes(model, count).saturating_add(held);
    let what = || format!("{count} values of the model");
    Ok(memory::foresee(bytes, what, "raise --max-memory, or give fewer coordinates")?)
}

/// Reads a model and says what it is.
fn read_model(path: &Path, screen: &Screen) -> Result<Stored<f64>, Failure> {
    let stored = Stored::<f64>::read(path)?;
    let (model, meaning) = (&stored.model, &stored.meaning);
    let extents: Vec<String> = model.extents().iter().map(ToString::to_string).collect();
    let (kind, extents) = (model.kind().name(), extents.join(" x "));
    let loss = meaning.loss.as_ref().map(|loss| format!(", {loss} loss")).unwrap_or_default();
    screen.line(format!("model    {}: {kind}, {extents}{loss}", path.display()));
    Ok(stored)
}

/// The model of both commands.
#[derive(Args, Clone, Debug)]
pub(crate) struct ModelArg {
    /// The model: .npz, ktensor, or the folder of a run of cp, tucker, tt or complete.
    #[arg(value_name = "MODEL")]
    model: PathBuf,
}
