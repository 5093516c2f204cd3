//! Partition templates: how an iteration space is cut, in which order its loops run, and which run in parallel.
//!
//! ```text
//! expression -> split schedules -> mappings -> trimming passes -> templates -> settings -> schedules
//! ```
//!
//! - `space` holds the indices of an expression and the formats of its tensors' levels.
//! - `strategies` holds the five ways to cut an index, and `chunks` the chunks that each makes.
//! - `cuts` lists the ways to fuse and cut all indices; `split_schedule` is one of them.
//! - `mapping` lists orders of the loops with their parallel ones.
//! - `trimming` applies passes; `order_passes`, `cpu_passes` and `gpu_passes` hold them.
//! - `parameters` lists values of the factors, and `templates` what is left for each split schedule.
//! - `bandit` searches schedules by measuring some of them; `beliefs` holds what it believes.
//! - `table` lets a person pick templates.
//! - `listing` holds the schedules of all templates, and the scheduler `partition`.
//! - `generated` makes a template with a setting a [`Schedule`](crate::schedule::Schedule) of a problem.
//!
//! | word | meaning | in the source |
//! |---|---|---|
//! | group | an index, or several that are fused | index variable |
//! | loop | a group, or the outer or inner part of a cut one | derived index variable |
//! | parents | the levels above a compressed level of the same tensor | corresponding dimension |
//!
//! Source: Wang, "Automatic Optimization of Sparse Tensor Algebra Programs", MIT, 2020, chapters 2 and 3.

mod bandit;
mod beliefs;
mod chunks;
mod cpu_passes;
mod cuts;
mod generated;
mod gpu_passes;
#[cfg(test)]
mod landscapes;
mod listing;
mod mapping;
mod order_passes;
mod parameters;
mod space;
mod split_schedule;
mod strategies;
mod table;
mod templates;
mod trimming;

pub use bandit::{
    Arm, Arms, BanditConfig, BanditReport, BanditStop, Measure, Measured, Point, exhaustive,
    thompson,
};
pub use chunks::{chunk_numbers, fused_chunks, projected_chunks, renumbered};
pub use cpu_passes::{
    CPU_PASSES, one_parallel_loop, outermost_parallel_loop, vector_loop_is_contiguous,
};
pub use cuts::{CompressedCuts, PartitionConfig, split_schedules};
pub use generated::{Base, Generated};
pub use gpu_passes::{
    GPU_PASSES, balanced_loads, contiguous_lanes, fixed_warps, no_tiled_units,
    one_loop_at_each_level, some_setting_is_legal,
};
pub(in crate::autoschedule) use listing::Partition;
pub use listing::{Listed, ListedSplit, ListedTemplate, Listing};
pub use mapping::{
    Choices, LoopId, LoopSet, Mapping, Spread, Target, Units, for_each_mapping, naive,
};
pub use order_passes::{concordant_iteration, no_useless_partition, sparse_iteration};
pub use parameters::{LANES, MOST_WARPS, Parameters, Setting, Sizes, cache_sizes, settings};
pub use space::{IterationSpace, LevelFormat, StoredLevel, StoredTensor};
pub use split_schedule::{Group, Loop, Notation, SplitSchedule};
pub use strategies::{Chunks, Command, Known, Part, Strategy};
pub use table::{Row, TemplateTable};
pub use templates::{Counted, SplitTemplates, Template, WithSettings, count, templates};
pub use trimming::{Pass, PositionLoops, Scene, Trimmed, trim};
