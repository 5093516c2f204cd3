//! One tree for several expressions.

use decompose_formats::ModeOrder;
use rayon::prelude::{IntoParallelIterator, ParallelIterator};

use crate::autoschedule::{SearchLimits, default_scheduler, storage_orders};
use crate::contract::Request;
use crate::cost::{Machine, on_threads};
use crate::einsum::Index;
use crate::error::CoreError;
use crate::schedule::Format;
use crate::sweep::TreeLayout;

/// Which trees are considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Roots {
    /// Every order of the modes that is worth a search.
    Any,
    /// Those whose first level is this mode.
    Mode(usize),
}

impl Roots {
    /// Tells whether `order`, of a tensor over `modes`, has such a root.
    fn has(self, order: &Format, modes: &[Index]) -> bool {
        match self {
            Roots::Any => true,
            Roots::Mode(mode) => order.levels().first() == modes.get(mode),
        }
    }
}

/// Up to so many modes every order is searched.
const FEW_MODES: usize = 5;

/// The most searches of a request on an order of more modes.
const MOST_SEARCHES: usize = 400;

/// Returns the storage of the sparse operand on which all `requests` together take the least
/// predicted time on the threads of `machine`, and the predicted seconds of each.
///
/// The requests must be about the same and only sparse operand.  Searches every request on every order, some milliseconds each, in
/// parallel; above five modes on as few orders as 400 searches allow, those of the smallest trees.
///
/// # Errors
///
/// [`CoreError::NoSchedule`] if a request has none, or there is no request.
pub fn best_tree(
    requests: &[Request],
    roots: Roots,
    machine: &Machine,
) -> Result<(TreeLayout, Vec<f64>), CoreError> {
    let none = |why: &str| CoreError::NoSchedule { expr: String::new(), why: why.to_owned() };
    let Some(first) = requests.first() else { return Err(none("nothing was asked")) };
    let [sparse] = first.sparse.as_slice() else { return Err(none("one operand must be sparse")) };
    let modes = first.modes(sparse);
    let mut stored = storage_orders(modes, &first.extents, &sparse.pattern);
    if modes.len() > FEW_MODES {
        stored.retain(|order| roots.has(order, modes));
        let nodes = |order: &Format| -> u64 {
            let prefix = |depth: usize| order.levels()[..depth].iter().copied().collect();
            let depths = 1..=order.levels().len();
            depths.map(|depth| sparse.pattern.count(prefix(depth), &first.extents)).sum()
        };
        stored.sort_by_cached_key(nodes);
        stored.truncate((MOST_SEARCHES / requests.len()).max(1));
    }
    let priced: Vec<Result<(TreeLayout, Vec<f64>), CoreError>> = stored
        .into_par_iter()
        .filter(|stored| roots.has(stored, modes))
        .filter_map(|stored| {
            let mode_of = |index| modes.iter().position(|mode| mode == index);
            let order = stored.levels().iter().map(mode_of).collect::<Option<Vec<usize>>>()?;
            Some(TreeLayout::new(ModeOrder::new(order)?, stored.fused()))
        })
        .map(|tree| {
            let seconds = requests.iter().map(|request| seconds(request, &tree, machine));
            let seconds = seconds.collect::<Result<Vec<f64>, CoreError>>()?;
            Ok((tree, seconds))
        })
        .collect();
    let mut best: Option<(TreeLayout, Vec<f64>)> = None;
    let mut refused = none("there is no order of the modes");
    for offer in priced {
        match offer {
            Ok(offer) => {
                let less = best.as_ref().is_none_or(|best| sum(&offer.1) < sum(&best.1));
                best = if less { Some(offer) } else { best };
            }
            Err(error @ CoreError::NoSchedule { .. }) => refused = error,
            Err(error) => return Err(error),
        }
    }
    best.ok_or(refused)
}

fn seconds(request: &Request, tree: &TreeLayout, machine: &Machine) -> Result<f64, CoreError> {
    let problem = request.problem(tree);
    let limits = SearchLimits::one_of_many(problem.expr.inputs.len());
    let found = default_scheduler().search_within(&problem, machine, &limits)?;
    let none = || CoreError::Internal("a search without candidates".into());
    let best = found.candidates.first().ok_or_else(none)?;
    Ok(on_threads(&problem, &best.schedule, &best.cost, machine, machine.threads).seconds)
}

fn sum(seconds: &[f64]) -> f64 {
    seconds.iter().sum()
}
