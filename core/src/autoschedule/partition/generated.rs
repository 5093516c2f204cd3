//! Templates as schedules of a problem.
//!
//! | commands | lines of a schedule |
//! |---|---|
//! | `.fuse(i, j, x0).pos(x0, x1).split(x1, x2, x3, K0)`, threads over `x2` | `parallel i position boundary split K0` |
//! | `.split(i, x0, x1, K0)`, threads over `x0` around `x1` | `parallel i coordinate owner split K0` |
//! | `.split(k, x0, x1, K0)` | `split k K K0`; the tensors are stored so, if `k` is an index of the sparse operand too |
//! | `.pos(j, x0).split(x0, x1, x2, K0)` | `split j J K0 of A`; with `x2` outside `x1`, `strided` |
//! | an order of the loops | `nest`, and the levels of the trees |
//! | a vector loop | `vectorize k` |
//!
//! Not generated are templates in which
//!
//! - threads share a dense loop: tasks are parts of a tree;
//! - threads share strided positions of all non-zeros: tasks are neighbours;
//! - only some of the levels are fused;
//! - positions are cut of an operand that does not lead;
//! - a vector loop is not innermost, or its nodes are no neighbours: vectors are loaded from neighbours.

use crate::autoschedule::partition::IterationSpace;
use crate::autoschedule::partition::mapping::{LoopId, Units};
use crate::autoschedule::partition::parameters::Setting;
use crate::autoschedule::partition::split_schedule::Group;
use crate::autoschedule::partition::strategies::Part;
use crate::autoschedule::partition::templates::Template;
use crate::autoschedule::{Storage, finish};
use crate::cost::Machine;
use crate::einsum::Index;
use crate::error::CoreError;
use crate::nest::Forest;
use crate::path::{Path, Source};
use crate::schedule::{
    Chunks, Conflict, Cut, Format, Problem, Schedule, Space, Split, TaskCut, Vectors, free_letter,
};

/// A problem whose templates are made schedules.
#[derive(Clone, Copy, Debug)]
pub struct Base<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// In which products it is computed.
    pub path: &'a Path,
    /// The processor.
    pub machine: &'a Machine,
}

/// A template with a setting as a schedule.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The problem, its indices cut and its operands stored as the schedule says.
    pub problem: Problem,
    /// The schedule.
    pub schedule: Schedule,
}

impl Base<'_> {
    /// Returns the space that templates of the problem cut.  A product that is computed before another one pins the loops
    /// over the last level and over dense indices.
    pub fn space(&self) -> IterationSpace {
        let space = IterationSpace::of(self.problem);
        if self.path.terms.len() < 2 {
            return space;
        }
        let levels = self.problem.leader().map_or(&[][..], |x| x.levels());
        let outer = &levels[..levels.len().saturating_sub(1)];
        let pinned: Vec<Index> =
            space.indices().into_iter().filter(|index| !outer.contains(index)).collect();
        space.with_pinned(&pinned)
    }

    /// Returns the schedule of a template with a setting.
    ///
    /// # Errors
    ///
    /// Why no schedule says that.
    pub fn generate(&self, template: &Template, setting: &Setting) -> Result<Generated, String> {
        let decisions = Decisions::of(self, template, setting)?;
        let order = decisions.order(template);
        let illegal = |error: CoreError| error.to_string();
        let cut = self.problem.split(&decisions.splits).map_err(illegal)?;
        let operands = cut.sparse.iter().map(|x| {
            let levels = order.iter().copied().filter(|index| x.levels().contains(index)).collect();
            (x.input, Format::with_fused(levels, x.fused()))
        });
        let storage = Storage { operands: operands.collect() };
        let problem = storage.problem_with(self.problem, &decisions.splits).map_err(illegal)?;
        let products: Vec<Vec<Source>> =
            self.path.terms.iter().map(|term| term.inputs.clone()).collect();
        let path = Path::of_products(&products, &problem.expr);
        let orders = path.terms.iter().map(|term| {
            order.iter().copied().filter(|&index| term.indices.contains(index)).collect()
        });
        let nest = Forest::fused(&orders.collect::<Vec<Vec<Index>>>());
        let mut schedule = finish(&problem, path, nest, self.machine);
        schedule.vectors = decisions.vectors(&problem, template, &order)?;
        if let Some(parallel) = &mut schedule.parallel {
            if !decisions.threads.contains(&parallel.index) {
                return Err("threads share a dense loop".into());
            }
            parallel.tasks = decisions.tasks;
            parallel.space = decisions.space;
            // Rows are not shared, unless it is positions that are cut.
            let whole = decisions.tasks.is_none() || decisions.space == Space::Coordinate;
            if parallel.conflict == Conflict::Boundary && whole {
                parallel.conflict = Conflict::Owner;
            }
        }
        schedule.verify(&problem).map_err(illegal)?;
        Ok(Generated { problem, schedule })
    }
}

/// What a template says of the loops.
struct Decisions {
    /// The indices of each loop; none of one that is made by tasks, several of fused levels.
    letters: Vec<Vec<Index>>,
    splits: Vec<Split>,
    tasks: Option<TaskCut>,
    space: Space,
    /// The indices that threads may share.
    threads: Vec<Index>,
}

impl Decisions {
    fn of(base: &Base<'_>, template: &Template, setting: &Setting) -> Result<Decisions, String> {
        let Units::Cpu { threads, .. } = template.mapping.units else {
            return Err("it is for a GPU".into());
        };
        let mut decisions = Decisions {
            letters: vec![Vec::new(); template.split.loops.len()],
            splits: Vec::new(),
            tasks: None,
            space: Space::Position,
            threads: Vec::new(),
        };
        let mut taken = base.problem.letters();
        for (place, group) in template.split.groups.iter().enumerate() {
            let own = |one: &LoopId| template.split.loops[one.place()].group == place;
            let loops: Vec<LoopId> = template.mapping.order.iter().copied().filter(own).collect();
            let factor = template.split.factor_of(place).and_then(|at| setting.factors.get(at));
            match (group.command, factor, loops.as_slice()) {
                (None, _, [one]) => decisions.letters[one.place()].clone_from(&group.indices),
                (Some(command), Some(&factor), &[first, second]) => {
                    let cut = TaskCut { command, factor };
                    let pair = Pair { template, first, second };
                    if decisions.by_tasks(base, group, &pair, cut)? {
                        continue;
                    }
                    let index = group.indices[0];
                    let outer = free_letter(index, taken).ok_or("there is no letter left")?;
                    taken = taken.with(outer);
                    decisions.by_split(base, group, &pair, (cut, outer))?;
                }
                _ => return Err("a group has other loops than its command makes".into()),
            }
        }
        for one in threads.iter() {
            decisions.threads.extend(decisions.letters[one.place()].clone());
        }
        if let (Some(_), Some(x)) = (decisions.tasks, base.problem.leader()) {
            decisions.threads.extend(x.levels().first());
        }
        Ok(decisions)
    }

    /// Takes a cut as that into tasks, if it is one: pieces of the root, or of all non-zeros.
    fn by_tasks(
        &mut self,
        base: &Base<'_>,
        group: &Group,
        pair: &Pair<'_>,
        cut: TaskCut,
    ) -> Result<bool, String> {
        let levels = base.problem.leader().map_or(&[][..], |x| x.levels());
        let all = group.is_fused() && group.indices == levels;
        let root = !group.is_fused() && levels.first() == Some(&group.indices[0]);
        let tasks = pair.is_outermost() && pair.is_shared_outside();
        if group.is_fused() && !(all && tasks) {
            return Err(
                "threads share strided non-zeros, or only some of the levels are fused".into()
            );
        }
        if !(tasks && (all || root)) {
            return Ok(false);
        }
        self.tasks = Some(cut);
        self.space = if all { Space::Position } else { Space::Coordinate };
        self.letters[pair.second.place()].clone_from(&group.indices);
        Ok(true)
    }

    /// Takes a cut as a split.
    fn by_split(
        &mut self,
        base: &Base<'_>,
        group: &Group,
        pair: &Pair<'_>,
        (TaskCut { command, factor }, outer): (TaskCut, Index),
    ) -> Result<(), String> {
        let (index, space) = (group.indices[0], &pair.template.split.space);
        let positions = group.space == Space::Position && space.is_compressed(index);
        let levels = base.problem.leader().map_or(&[][..], |x| x.levels());
        if positions && !levels.iter().skip(1).any(|level| *level == index) {
            return Err("nodes are cut of an operand that does not lead".into());
        }
        let cut = match (positions, base.problem.leader()) {
            (true, Some(x)) => Cut::Positions { input: x.input, chunks: pair.chunks() },
            _ => Cut::Coordinates,
        };
        // The outer part of strided positions numbers the first nodes.
        let outside = if positions { pair.first } else { pair.outer_part() };
        let inside = if outside == pair.first { pair.second } else { pair.first };
        self.letters[outside.place()] = vec![outer];
        self.letters[inside.place()] = vec![index];
        self.splits.push(Split { index, outer, command, factor, cut });
        Ok(())
    }

    /// The order of all loops.
    fn order(&self, template: &Template) -> Vec<Index> {
        let loops = template.mapping.order.iter();
        loops.flat_map(|one| self.letters[one.place()].iter().copied()).collect()
    }

    /// The loop that becomes vector code.
    fn vectors(
        &self,
        problem: &Problem,
        template: &Template,
        order: &[Index],
    ) -> Result<Vectors, String> {
        let Units::Cpu { vector: Some(vector), .. } = template.mapping.units else {
            return Ok(Vectors::None);
        };
        let &[.., index] = self.letters[vector.place()].as_slice() else {
            return Err("tasks are no vectors".into());
        };
        let strided = problem.splits.iter().map(|own| &own.split).any(|split| {
            let strided = matches!(split.cut, Cut::Positions { chunks: Chunks::Strided, .. });
            strided && (split.index == index || split.outer == index)
        });
        match order.last() == Some(&index) && !strided {
            true => Ok(Vectors::Over(index)),
            false => Err("the vector loop is not innermost, or its nodes are no neighbours".into()),
        }
    }
}

/// The two loops of a cut, in the order in which they run.
struct Pair<'a> {
    template: &'a Template,
    first: LoopId,
    second: LoopId,
}

impl Pair<'_> {
    fn part(&self, one: LoopId) -> Part {
        self.template.split.loops[one.place()].part
    }

    /// The loop over pieces.
    fn outer_part(&self) -> LoopId {
        if self.part(self.first) == Part::Outer { self.first } else { self.second }
    }

    fn chunks(&self) -> Chunks {
        match self.part(self.first) {
            Part::Outer => Chunks::Contiguous,
            _ => Chunks::Strided,
        }
    }

    /// Tells whether the two are the outermost loops, pieces outside.
    fn is_outermost(&self) -> bool {
        self.chunks() == Chunks::Contiguous
            && self.template.mapping.order.get(..2) == Some(&[self.first, self.second])
    }

    /// Tells whether threads share the pieces and nothing else.
    fn is_shared_outside(&self) -> bool {
        match self.template.mapping.units {
            Units::Cpu { threads, .. } => threads.len() == 1 && threads.contains(self.first),
            Units::Gpu { .. } => false,
        }
    }
}
