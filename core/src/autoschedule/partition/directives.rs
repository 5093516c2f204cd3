//! Templates as decisions of a [`Schedule`], as far as one can hold them.
//!
//! | commands | line of a schedule | support |
//! |---|---|---|
//! | all levels fused and cut in positions, threads over the pieces | `parallel i position boundary` | lowered |
//! | threads over the whole first level | `parallel i position owner` | lowered |
//! | the first level cut, threads over the pieces | `parallel i coordinate owner` | held |
//! | a dense index cut, with the loop over the pieces outermost | `tile k K0` | held |
//! | whole loops in another order | `nest` | lowered |
//! | all else | | missing |
//!
//! A held line prints and parses, and [`Schedule::verify`] refuses it because lowering cannot translate it.  Threads over
//! lowered lines have pieces of which the runtime chooses the size; `K0` is then not used.
//!
//! [`Schedule`]: crate::schedule::Schedule
//! [`Schedule::verify`]: crate::schedule::Schedule::verify

use crate::autoschedule::partition::mapping::{LoopId, Units};
use crate::autoschedule::partition::split_schedule::Group;
use crate::autoschedule::partition::strategies::{Command, Part};
use crate::autoschedule::partition::templates::Template;
use crate::einsum::Index;
use crate::schedule::Space;

/// How far a decision goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Support {
    /// A schedule holds it and lowering translates it.
    Lowered,
    /// A schedule holds it and lowering refuses it.
    Held,
    /// A schedule cannot hold it.
    Missing,
}

/// A decision of a template.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// The line of a schedule's text; for a missing one, what it has to say.
    pub text: String,
    /// How far it goes.
    pub support: Support,
}

fn line(text: String, support: Support) -> Line {
    Line { text, support }
}

/// Returns the decisions of a template for a processor; those for a GPU are all missing.
///
/// ```
/// use decompose_core::autoschedule::partition::{
///     IterationSpace, Mapping, SplitSchedule, Support, Template, lines,
/// };
///
/// let text = ".fuse(i, j, x0).pos(x0, x1).split(x1, x2, x3, K0)";
/// let split = SplitSchedule::named(&IterationSpace::spmv(), text).expect("positions");
/// let mapping = Mapping::parse("x2 x3; threads x2", &split)?;
/// let lines = lines(&Template { split, mapping });
/// assert_eq!(lines[0].text, "parallel i position boundary");
/// assert_eq!(lines[0].support, Support::Lowered);
/// # Ok::<(), String>(())
/// ```
pub fn lines(template: &Template) -> Vec<Line> {
    let Units::Cpu { threads, vector } = template.mapping.units else {
        return vec![line(template.mapping.text(&template.split), Support::Missing)];
    };
    let mut lines: Vec<Line> = threads.iter().map(|one| parallel(template, one)).collect();
    for (place, group) in template.split.groups.iter().enumerate() {
        let by_threads = |one: LoopId| template.split.loops[one.place()].group == place;
        let outer = threads.iter().find(|&one| by_threads(one));
        let outer = outer.map(|one| template.split.loops[one.place()].part);
        lines.extend(cut(template, place, group).filter(|_| outer != Some(Part::Outer)));
    }
    lines.extend(interleaved(template));
    lines.extend(vector.map(|vector| {
        line(format!("vector {}", template.split.loops[vector.place()].name), Support::Missing)
    }));
    lines
}

/// The decision on the loop that threads share.
fn parallel(template: &Template, one: LoopId) -> Line {
    let split = &template.split;
    let part = &split.loops[one.place()];
    let group = &split.groups[part.group];
    let first = group.indices[0];
    let levels = |root: Index| split.space.sparse().find(|x| x.levels[0].index == root);
    match (levels(first), group.command, part.part) {
        (Some(tensor), Some(_), Part::Outer) if group.is_fused() => {
            let all = tensor.levels.len() == group.indices.len();
            let support = if all { Support::Lowered } else { Support::Missing };
            let last =
                if all { String::new() } else { format!(" of {} levels", group.indices.len()) };
            line(format!("parallel {first} position boundary{last}"), support)
        }
        (Some(_), None, _) => line(format!("parallel {first} position owner"), Support::Lowered),
        (Some(_), Some(_), Part::Outer) => {
            line(format!("parallel {first} coordinate owner"), Support::Held)
        }
        _ => line(format!("parallel {}", part.name), Support::Missing),
    }
}

/// The decision on a group whose pieces threads do not share.
fn cut(template: &Template, place: usize, group: &Group) -> impl Iterator<Item = Line> {
    let split = &template.split;
    let outermost = template.mapping.order.first().map(|one| &split.loops[one.place()]);
    let outermost = outermost.is_some_and(|one| (one.group, one.part) == (place, Part::Outer));
    let of = |command: Command| {
        let factor = split.factor_of(place).map_or(String::new(), |at| format!("K{at}"));
        let letters: String = group.indices.iter().map(|index| index.letter()).collect();
        let dense = !group.is_fused() && !split.space.is_compressed(group.indices[0]);
        if dense && outermost && command == Command::Split {
            return line(format!("tile {letters} {factor}"), Support::Held);
        }
        let space = match group.space {
            Space::Position => "position",
            Space::Coordinate => "coordinate",
        };
        line(format!("{command} {letters} {space} {factor}"), Support::Missing)
    };
    group.command.map(of).into_iter()
}

/// The decision on an order that keeps the two loops of a cut apart, or turns them.
fn interleaved(template: &Template) -> Option<Line> {
    let split = &template.split;
    let parts = |one: &LoopId| &split.loops[one.place()];
    let order = &template.mapping.order;
    let apart = order.iter().map(parts).enumerate().any(|(at, one)| {
        let next = order.get(at + 1).map(parts);
        let together = next.is_some_and(|next| (next.group, next.part) == (one.group, Part::Inner));
        one.part == Part::Outer && !together
    });
    let names: Vec<&str> = order.iter().map(|one| parts(one).name.as_str()).collect();
    apart.then(|| line(format!("reorder {}", names.join(" ")), Support::Missing))
}

#[cfg(test)]
mod tests {
    use super::{Support, lines};
    use crate::autoschedule::partition::{IterationSpace, Mapping, SplitSchedule, Template};

    fn of(split: &str, mapping: &str) -> Vec<(String, Support)> {
        let split = SplitSchedule::named(&IterationSpace::spmm(), split).unwrap();
        let mapping = Mapping::parse(mapping, &split).unwrap();
        let lines = lines(&Template { split, mapping });
        lines.into_iter().map(|line| (line.text, line.support)).collect()
    }

    #[test]
    fn what_a_schedule_holds_is_named_as_it_prints() {
        let one = |text: &str, support| vec![(text.to_owned(), support)];
        let empty = of("", "i j k; threads i");
        assert_eq!(empty, one("parallel i position owner", Support::Lowered));
        let rows = of(".split(i, x0, x1, K0)", "x0 x1 j k; threads x0");
        assert_eq!(rows, one("parallel i coordinate owner", Support::Held));
        let columns = of(".split(k, x0, x1, K0)", "x0 i j x1; threads i");
        let expected = [
            ("parallel i position owner".to_owned(), Support::Lowered),
            ("tile k K0".to_owned(), Support::Held),
            ("reorder x0 i j x1".to_owned(), Support::Missing),
        ];
        assert_eq!(columns, expected);
        let fibres = of(".pos(j, x0).split(x0, x1, x2, K0)", "i x2 x1 k; threads i; vector k");
        let expected = [
            ("parallel i position owner".to_owned(), Support::Lowered),
            ("split j position K0".to_owned(), Support::Missing),
            ("reorder i x2 x1 k".to_owned(), Support::Missing),
            ("vector k".to_owned(), Support::Missing),
        ];
        assert_eq!(fibres, expected);
    }
}
