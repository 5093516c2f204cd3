//! The method, watched.

use decompose_common::run_folder::RunFolder;
use decompose_formats::Value;
use decompose_tt::{KernelNote, TtConfig, TtOutcome, history_layout, saved_history};

use crate::cli::Done;
use crate::failure::Failure;
use crate::run::console::Console;
use crate::run::journal::{self, Course};
use crate::tt::prepare::Work;
use crate::tt::settings::Settings;

/// The end of a run.
pub(crate) struct Solved {
    pub(crate) outcome: TtOutcome,
    pub(crate) kernels: Vec<KernelNote>,
    pub(crate) done: Done,
}

/// Runs the method on a tensor of `order` modes.
///
/// # Errors
///
/// As [`journal::watch`].
pub(crate) fn solve<V: Value>(
    settings: &Settings,
    work: Work<V>,
    order: usize,
    folder: Option<&RunFolder>,
    console: &mut Console,
) -> Result<Solved, Failure> {
    let config = TtConfig { checkpoint: settings.checkpoint(), ..settings.config.clone() };
    let method = config.method;
    let saved = settings.saved.as_deref().map(|folder| saved_history(folder, method, order));
    let earlier = saved.transpose()?.unwrap_or_default();
    let checkpoint = config.checkpoint.clone();
    let course = Course { layout: history_layout(method, order), earlier, checkpoint };
    let (outcome, kernels) =
        journal::watch(settings, folder, course, console, |observer| match work {
            Work::Sweeps(mut kernels, start) => {
                let outcome = decompose_tt::solve(&mut kernels, start, &config, observer)?;
                Ok((outcome, kernels.notes()))
            }
            Work::Direct(tensor, counts) => {
                let toolchain = settings.toolchain();
                let solved = decompose_tt::solve_svd(tensor, counts, &config, toolchain, observer)?;
                Ok::<_, decompose_tt::SolverError>((solved.0, solved.1.notes()))
            }
        })?;
    let done = Done::after(&outcome.restarts);
    Ok(Solved { outcome, kernels, done })
}
