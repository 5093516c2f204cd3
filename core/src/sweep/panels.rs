//! Whether factors are stored in panels of columns.
//!
//! A panel is a tile of the columns for which all kernels of the sweep run: the smallest that
//! [tiling](crate::autoschedule) tries, and taken when a tile is.  Its kernels gather shorter rows, more of which stay in
//! a cache, and pass over the tensor once a panel.  The sweep is planned with whole factors and, where rows are long,
//! with panels; the seconds decide.

use decompose_formats::panels::listed;

use crate::autoschedule::{LEAST_TILE_BYTES, WORTH_TILES};
use crate::cost::Machine;
use crate::error::CoreError;
use crate::schedule::Pattern;
use crate::sweep::mttkrp_merges::SweepPlan;
use crate::sweep::options::PlanOptions;
use crate::sweep::partitions::{Partitions, Sweep};

/// Panels that are priced at up to so many times what is asked of them are searched.
const NEAR_PANELS: f64 = 1.1;

/// Returns about how many columns a panel has where factors of `rank` columns of `value_bytes` bytes are
/// stored in panels; `rank` where they never are.
pub fn panel_columns(rank: usize, value_bytes: usize) -> usize {
    rank.min(LEAST_TILE_BYTES as usize / value_bytes)
}

/// Plans a sweep of MTTKRPs over a tensor of `extents` whose pattern is `pattern` (counted
/// over [`mode_index`](crate::kernels::mode_index)).
///
/// # Errors
///
/// [`CoreError::Memory`] if not even one tree keeps the limit; [`CoreError::NoSchedule`] if a
/// kernel has none.
pub fn plan(
    extents: &[u64],
    pattern: &Pattern,
    options: &PlanOptions,
    machine: &Machine,
) -> Result<SweepPlan, CoreError> {
    let machine = &options.on_threads(machine);
    let stored = |columns| PlanOptions { panels: Some(columns), ..options.clone() };
    let wide = stored(options.panels.unwrap_or(options.rank));
    let narrow = stored(panel_columns(options.rank, options.value_bytes));
    let sweep = |options| Sweep { extents, pattern, options, machine };
    let mut whole = Partitions::new(sweep(&wide))?;
    let rows = whole.select_best();
    if options.panels.is_some() || narrow.panels == wide.panels {
        return whole.plan(&rows?);
    }
    let mut panels = Partitions::new(sweep(&narrow))?;
    let Ok(rows) = rows else { return panels.select_best().and_then(|parts| panels.plan(&parts)) };
    let below = WORTH_TILES * rows.seconds;
    // Searches find little that is better than a price without a search.
    let mut parts = panels.best()?;
    if parts.seconds < NEAR_PANELS * below {
        parts = panels.select_best()?;
    }
    let in_rows = whole.alternative("factors in whole rows".into(), &rows);
    let columns = listed(&narrow.widths());
    let in_panels = panels.alternative(format!("factors in panels of {columns} columns"), &parts);
    let (mut plan, other) = match parts.seconds < below {
        true => (panels.plan(&parts)?, in_rows),
        false => (whole.plan(&rows)?, in_panels),
    };
    plan.alternatives.push(other);
    Ok(plan)
}
