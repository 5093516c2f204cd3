//! What the user typed, completed by defaults and checked: all that decides a run.

use std::ops::Deref;
use std::path::PathBuf;

use decompose_common::model::ModelFormat;
use decompose_core::optimisation::{Optimisation, Optimisations};
use decompose_core::sweep::{Merging, Trees};
use decompose_cp::{Arrangement, CpConfig, NonNegModes};

use crate::cp::args::{CpArgs, Init};
use crate::cp::compat::{Compat, Defaults, StartRange};
use crate::failure::Failure;
use crate::run::settings::{RunArgs, RunDefaults, RunSettings};

/// All decisions about a run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) run: RunSettings,
    pub(crate) config: CpConfig,
    pub(crate) start: StartFrom,
    pub(crate) range: StartRange,
    pub(crate) compat: Option<Compat>,
    pub(crate) trees: Trees,
    pub(crate) merging: Merging,
    pub(crate) optimisations: Optimisations,
    pub(crate) formats: Vec<ModelFormat>,
}

/// Where a run starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StartFrom {
    /// As `--init` says.
    Init(Init),
    /// From the checkpoint in this folder.
    Checkpoint(PathBuf),
}

impl Deref for Settings {
    type Target = RunSettings;

    fn deref(&self) -> &RunSettings {
        &self.run
    }
}

impl Settings {
    /// Completes and checks what the user typed.
    ///
    /// # Errors
    ///
    /// Options that are missing or exclude each other.
    pub(crate) fn new(args: CpArgs) -> Result<Settings, Failure> {
        let defaults = Defaults::of(args.model.compat);
        let rank = args.model.rank.or(defaults.rank).ok_or_else(|| {
            Failure::input("no rank given; the number of components has no default")
                .help("try `--rank 10`, and compare the fit at other ranks")
        })?;
        let shared_defaults = RunDefaults {
            max_iters: defaults.max_iters,
            tol: defaults.tol,
            seed: defaults.seed,
            suffix: format!("cp-r{rank}"),
        };
        let typed = RunArgs {
            input: args.input.clone(),
            course: &args.model.course,
            compute: &args.compute,
            output: &args.output,
            switches: args.switches,
        };
        let run = RunSettings::new(typed, shared_defaults)?;
        let start = match &run.saved {
            Some(saved) => StartFrom::Checkpoint(saved.clone()),
            None => StartFrom::Init(args.model.init.clone().unwrap_or(defaults.init.clone())),
        };
        let mut formats = vec![ModelFormat::Npz];
        let asked = args.out_format.iter().copied();
        let wanted = if args.out_format.is_empty() { Some(defaults.format) } else { None };
        formats.extend(asked.chain(wanted).filter(|&format| format != ModelFormat::Npz));
        let (trees, merging) = (args.plan.trees()?, args.plan.merging()?);
        let optimisations = Optimisations::all_but(args.without.iter().copied());
        check_optimisations(optimisations, &trees, &merging)?;
        Ok(Settings {
            config: config(&args, &defaults, rank, &run),
            start,
            range: defaults.range,
            compat: args.model.compat,
            merging,
            trees,
            optimisations,
            formats,
            run,
        })
    }
}

/// Refuses plans that have what is to be left out.
fn check_optimisations(
    optimisations: Optimisations,
    trees: &Trees,
    merging: &Merging,
) -> Result<(), Failure> {
    let refused = |name: &str, option: &str| {
        let why = format!("--without {name} leaves out what {option} asks for");
        Err(Failure::input(why).help("give one of them"))
    };
    let lacks = |optimisation| !optimisations.has(optimisation);
    match trees {
        Trees::Given(_) if lacks(Optimisation::Layouts) => return refused("layouts", "--trees"),
        Trees::Given(trees) if lacks(Optimisation::Fusing) && trees.iter().any(|t| t.fused > 1) => {
            return refused("fusing", "--trees");
        }
        Trees::Given(trees)
            if lacks(Optimisation::Blocks) && trees.iter().any(|t| t.blocks.is_some()) =>
        {
            return refused("blocks", "--trees");
        }
        _ => {}
    }
    match merging {
        Merging::Given(_) if lacks(Optimisation::Merging) => refused("merging", "--plan"),
        _ => Ok(()),
    }
}

fn config(args: &CpArgs, defaults: &Defaults, rank: usize, run: &RunSettings) -> CpConfig {
    CpConfig {
        seed: run.seed,
        stop: run.stop,
        reg: args.model.reg,
        nonneg: args.model.nonneg.clone().or(args.model.con.clone()).unwrap_or(NonNegModes::None),
        restarts: run.restarts,
        update_order: args.model.dimorder.clone(),
        arrangement: match args.no_arrange {
            true => Arrangement::AsComputed,
            false => defaults.arrangement,
        },
        checkpoint: run.checkpoint(),
        ..CpConfig::new(rank)
    }
}
