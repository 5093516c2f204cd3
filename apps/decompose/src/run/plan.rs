//! The options that say how kernels of a sweep are planned, and the memory of sweeps with merges.

use clap::Args;
use decompose_common::machine;
use decompose_common::memory::search;
use decompose_core::error::CoreError;
use decompose_core::sweep::{Merging, PlanOptions, TreeLayout, Trees};
use decompose_formats::ModeOrder;

use crate::failure::Failure;
use crate::run::args::parse_modes;
use crate::run::memory::Forecast;

/// Which trees are kept, and which modes are merged.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Computation")]
pub(crate) struct PlanArgs {
    /// Trees of the tensor to keep: choose, or mode orders as 1-3-2, with fused last levels as
    /// 1-3+2, in blocks by the high bits of each mode as 4.3.5/1-3+2, or by ranges of one mode
    /// as 2:8/1-3+2 (repeatable).
    /// [default: choose]
    #[arg(long, value_name = "ORDER", value_parser = parse_tree)]
    pub(crate) trees: Vec<Tree>,
    /// Modes merged so that kernels share work: auto, none, or sets of modes, as 1+2,3+4.
    /// [default: auto]
    #[arg(long, value_name = "auto|none|MODES", value_parser = parse_merging)]
    pub(crate) plan: Option<Merging>,
}

/// A word of `--trees`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    /// The planner chooses.
    Choose,
    /// This tree is kept.
    Layout(TreeLayout),
}

/// A plan that was tried for a limit on its trees and private copies.
#[derive(Clone, Debug)]
pub(crate) struct Tried<P> {
    pub(crate) plan: P,
    /// The bytes of its trees and private copies.
    pub(crate) bytes: u64,
    /// The memory of the run with it.
    pub(crate) forecast: Forecast,
}

/// The most plans that are tried for a run that fits.
const TRIES: usize = 12;

/// Limits that differ by less than this part of the bytes of the first plan are one.
const LIMIT_STEPS: u64 = 64;

/// Plans the sweeps of a tensor of `order` modes; where the best plan does not fit, ever leaner ones, and last a
/// single tree in the order of the list, which needs no sorting.
///
/// # Errors
///
/// If nothing fits, with the numbers of the best plan and `remedy`; those of `try_plan`.
pub(crate) fn fitting<P>(
    order: usize,
    mut options: PlanOptions,
    remedy: &str,
    mut try_plan: impl FnMut(&PlanOptions) -> Result<Tried<P>, CoreError>,
) -> Result<Tried<P>, Failure> {
    search(order)?;
    let best = try_plan(&options)?;
    if best.forecast.fits() {
        return Ok(best);
    }
    let leaner = within_memory(best.bytes, |memory| {
        options.memory = Some(memory);
        try_plan(&options)
    })?;
    let found = match leaner {
        None if options.trees == Trees::Choose => {
            let plain = TreeLayout::new(ModeOrder::natural(order), 1);
            let (trees, merging) = (Trees::Given(vec![plain]), Merging::Never);
            Some(try_plan(&PlanOptions { trees, merging, memory: None, ..options })?)
        }
        leaner => leaner,
    };
    let fits = found.filter(|found| found.forecast.fits());
    fits.ok_or_else(|| best.forecast.refusal(remedy))
}

/// Looks for a plan that fits and takes about as many bytes as any that does, where one of `bytes` does not fit;
/// `try_plan` makes the plan for a limit on its bytes.
///
/// The limits are halved, so few plans are made.
///
/// # Errors
///
/// Those of `try_plan`; but one that says that nothing keeps the limit asks for a higher one.
pub(crate) fn within_memory<P>(
    bytes: u64,
    mut try_plan: impl FnMut(u64) -> Result<Tried<P>, CoreError>,
) -> Result<Option<Tried<P>>, CoreError> {
    let (mut low, mut high) = (0, bytes.saturating_sub(1));
    let mut best = None;
    for _ in 0..TRIES {
        if high.saturating_sub(low) <= bytes / LIMIT_STEPS {
            break;
        }
        machine::return_free_memory();
        let limit = low + (high - low) / 2;
        match try_plan(limit) {
            Ok(tried) if tried.forecast.fits() => {
                best = Some(tried);
                low = limit;
            }
            Ok(tried) => high = tried.bytes.min(limit).saturating_sub(1),
            Err(CoreError::Memory { .. }) => low = limit,
            Err(error) => return Err(error),
        }
    }
    Ok(best)
}

impl PlanArgs {
    /// Returns which modes are merged.  Given trees are trees of the tensor itself: nothing is merged.
    ///
    /// # Errors
    ///
    /// If both are given.
    pub(crate) fn merging(&self) -> Result<Merging, Failure> {
        let given = self.trees.iter().any(|tree| *tree != Tree::Choose);
        match self.plan.clone().unwrap_or(Merging::Choose) {
            Merging::Given(_) if given => {
                Err(Failure::input("--plan merges modes, but --trees lists trees of single modes")
                    .help("give one of them"))
            }
            _ if given => Ok(Merging::Never),
            merging => Ok(merging),
        }
    }

    /// Returns which trees are kept.
    ///
    /// # Errors
    ///
    /// If `choose` and trees are given.
    pub(crate) fn trees(&self) -> Result<Trees, Failure> {
        let mut layouts: Vec<TreeLayout> = Vec::new();
        for word in &self.trees {
            match word {
                Tree::Choose if self.trees.len() == 1 => return Ok(Trees::Choose),
                Tree::Choose => {
                    return Err(Failure::input("--trees is `choose` or trees, not both"));
                }
                Tree::Layout(layout) if layouts.contains(layout) => {}
                Tree::Layout(layout) => layouts.push(layout.clone()),
            }
        }
        Ok(if layouts.is_empty() { Trees::Choose } else { Trees::Given(layouts) })
    }
}

/// Checks that given trees list the modes of a tensor of `extents`, and number blocks by bits that
/// its coordinates have.
///
/// # Errors
///
/// The tree that does not.
pub(crate) fn check_trees(trees: &Trees, extents: &[u64]) -> Result<(), Failure> {
    let Trees::Given(given) = trees else { return Ok(()) };
    let Some(wrong) = given.iter().find(|tree| !tree.fits(extents)) else { return Ok(()) };
    let order = extents.len();
    Err(Failure::input(match wrong.order.modes().len() == order {
        false => format!("--trees {wrong} does not list each of the {order} modes once"),
        true => format!("--trees {wrong} takes more bits than coordinates below {extents:?} have"),
    }))
}

/// Refuses trees of blocks, of which only MTTKRPs make use.
///
/// # Errors
///
/// The tree that has blocks.
pub(crate) fn refuse_blocks(trees: &Trees) -> Result<(), Failure> {
    match trees {
        Trees::Given(given) if given.iter().any(|tree| tree.blocks.is_some()) => {
            Err(Failure::input(
                "--trees with blocks, as 4.3.5/1-2+3 or 2:8/1-2+3, are for `decompose cp`",
            )
            .help("list the modes only, as 1-2+3"))
        }
        _ => Ok(()),
    }
}

/// Writes trees as they are typed.
pub(crate) fn trees_typed(trees: &Trees) -> Vec<String> {
    match trees {
        Trees::Choose => vec!["choose".into()],
        Trees::ChooseUnblocked => vec!["choose-unblocked".to_owned()],
        Trees::ChoosePlain => vec!["choose-plain".to_owned()],
        Trees::Rooted => vec!["rooted".to_owned()],
        Trees::Given(orders) => orders.iter().map(ToString::to_string).collect(),
    }
}

/// Writes merges as they are typed.
pub(crate) fn merging_typed(merging: &Merging) -> String {
    let set = |set: &Vec<usize>| {
        set.iter().map(|mode| (mode + 1).to_string()).collect::<Vec<_>>().join("+")
    };
    match merging {
        Merging::Choose => "auto".into(),
        Merging::Never => "none".into(),
        Merging::Given(sets) => sets.iter().map(set).collect::<Vec<_>>().join(","),
    }
}

fn parse_merging(text: &str) -> Result<Merging, String> {
    match text {
        "auto" => Ok(Merging::Choose),
        "none" => Ok(Merging::Never),
        sets => {
            let set = |set: &str| {
                let mut modes = parse_modes(set, '+')?;
                modes.sort_unstable();
                Ok(modes)
            };
            let sets = sets.split(',').map(set).collect::<Result<_, String>>();
            sets.map(Merging::Given).map_err(|why| format!("{why}; or say auto or none"))
        }
    }
}

fn parse_tree(text: &str) -> Result<Tree, String> {
    if text == "choose" { Ok(Tree::Choose) } else { text.parse().map(Tree::Layout) }
}

#[cfg(test)]
mod tests {
    use decompose_common::memory::{Limit, LimitSource};

    use super::*;

    fn forecast(peak: u64, most: u64) -> Forecast {
        let limit = Limit { bytes: most, source: LimitSource::Asked };
        Forecast { peak, limit: Some(limit), ..Forecast::default() }
    }

    /// Looks among plans of some bytes, of which those of at most `most` fit; also returns how many were made.
    fn look(plans: &[u64], most: u64) -> (Option<u64>, usize) {
        let mut made = 0;
        let largest = plans.iter().copied().max().unwrap();
        let found = within_memory(largest, |limit| {
            made += 1;
            let within = plans.iter().copied().filter(|&bytes| bytes <= limit).max();
            let short = || CoreError::Memory {
                what: String::new(),
                need: String::new(),
                limit: String::new(),
            };
            let bytes = within.ok_or_else(short)?;
            Ok(Tried { plan: bytes, bytes, forecast: forecast(bytes, most) })
        });
        (found.unwrap().map(|found| found.plan), made)
    }

    #[test]
    fn a_plan_that_fits_is_found_in_few_tries() {
        let plans: Vec<u64> = (1..=1_000_000).collect();
        for most in [40_000, 500_000, 999_000] {
            let (found, made) = look(&plans, most);
            let found = found.unwrap();
            assert!(found <= most && found + 1_000_000 / LIMIT_STEPS >= most, "{found} of {most}");
            assert!(made <= TRIES);
        }
        assert_eq!(look(&[600, 1000], 700).0, Some(600));
        assert_eq!(look(&[600, 1000], 599).0, None);
        assert_eq!(look(&[1000], 999).0, None);
    }

    #[test]
    fn a_plan_that_does_not_keep_its_limit_ends_the_search() {
        let mut made = 0;
        let found = within_memory(1000, |_| {
            made += 1;
            Ok(Tried { plan: (), bytes: 1000, forecast: forecast(1000, 999) })
        });
        assert!(found.unwrap().is_none() && made <= TRIES);
    }
}
