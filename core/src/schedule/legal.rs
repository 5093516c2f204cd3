//! The one judge of legality.

use std::fmt;

use crate::einsum::{Index, IndexSet};
use crate::error::CoreError;
use crate::nest::{Place, buffers_at, orders_of};
use crate::path::Source;
use crate::schedule::{
    BufferKind, Conflict, Layout, LevelKind, OutputForm, PrefetchOf, Problem, Schedule, Space,
    SparseOperand, Split, Vectors, Workspace, resolve,
};

/// The rules that every schedule keeps, numbered as messages quote them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// 1. Every input and every intermediate is read exactly once, after it is made.
    Path = 1,
    /// 2. Every term stands in the nest once, in order; no loop is empty or repeats an index.
    Nest = 2,
    /// 3. The loops around a term are its indices, cut as the problem says.  Pieces of nodes stand around the term that
    ///    reads the tree.
    Loops = 3,
    /// 4. Every sparse operand has a layout over its own indices, in the order in which it is stored.  Pieces of nodes
    ///    stand directly above their level.
    Layout = 4,
    /// 5. Around the term that reads a sparse operand, its indices are looped in layout order; so
    ///    they are around the last term if the output has the operand's pattern.  Fused levels
    ///    repeat coordinates, so whoever walks one stands in the same loop as that term.
    LevelOrder = 5,
    /// 6. No buffer stores more indices, or takes more bytes, than the problem allows.
    BufferBound = 6,
    /// 7. The parallel loop walks the first level of the leader.
    Parallel = 7,
    /// 8. Tasks that own rows of the output need the parallel index in it, and no other sparse index
    ///    there if they may share a row, or blocks that are ranges of its rows; they own positions
    ///    exactly if the output has the operand's pattern.
    Conflict = 8,
    /// 9. What is prefetched is a dense input, or an output into which tasks scatter, and its rows are not numbered by a
    ///    dense level, in the order of which they follow.
    Prefetch = 9,
    /// 10. What lowering does not do: fused levels or blocks beside another sparse operand, a dense level that is the
    ///     last or one of the leader and not full, a dense root, bitmaps or tables of the leader, bit slices of modes,
    ///     fused levels above separate ones, sparse buffers of which every cell is met, vectors over no loop, more than
    ///     1,024 tasks with copies of the output, coordinates of blocks as tasks.
    Lowered = 10,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Rule::Path => "every input and intermediate is read exactly once, after it is made",
            Rule::Nest => "every term stands in the nest once, in order, in loops that differ",
            Rule::Loops => "the loops around a term are its indices",
            Rule::Layout => "every sparse operand has a layout over its own indices",
            Rule::LevelOrder => {
                "the levels of a sparse operand are looped in the order of its layout, once"
            }
            Rule::BufferBound => "a buffer takes no more indices and bytes than allowed",
            Rule::Parallel => {
                "the parallel loop walks the first level of the leading sparse operand"
            }
            Rule::Conflict => "tasks own only what no other task writes",
            Rule::Prefetch => "what is prefetched is a dense input or a scattered output",
            Rule::Lowered => "it must be something that lowering can do",
        };
        write!(f, "rule {}: {text}", *self as u8)
    }
}

impl Schedule {
    /// Checks the schedule against every rule.
    ///
    /// # Errors
    ///
    /// [`CoreError::Illegal`] with the first rule that is broken, and where.
    ///
    /// # Panics
    ///
    /// Never: what later rules take for granted, earlier ones check.
    pub fn verify(&self, problem: &Problem) -> Result<(), CoreError> {
        self.check_splits(problem)?;
        let places = self.check_nest(problem)?;
        let orders = orders_of(&places);
        self.check_layouts(problem, &orders)?;
        self.check_buffers(problem, &places)?;
        self.check_parallel(problem, orders.last().map_or(&[][..], Vec::as_slice))?;
        self.check_prefetches(problem)?;
        self.check_lowered(problem)
    }

    fn check_splits(&self, problem: &Problem) -> Result<(), CoreError> {
        let posed = problem.splits.iter().map(|cut| &cut.split);
        // Positions are cut last, wherever their lines stand.
        let (last, first): (Vec<&Split>, Vec<&Split>) =
            self.splits.iter().partition(|split| split.cuts_positions());
        match posed.eq(first.into_iter().chain(last)) {
            true => {}
            false => {
                return broken(Rule::Loops, "other splits than those of the problem".into());
            }
        }
        // Pieces of a level's nodes are found above that level.
        let levels = problem.leader().map_or(&[][..], |x| x.levels());
        for split in self.splits.iter().filter(|split| split.cuts_positions()) {
            let place = levels.iter().position(|&level| level == split.outer);
            if place.is_none_or(|at| at == 0 || levels.get(at + 1) != Some(&split.index)) {
                let why = format!("{} is no level directly above {}", split.outer, split.index);
                return broken(Rule::Layout, why);
            }
        }
        self.check_pieces(problem)
    }

    /// Checks that every loop over pieces of a level's nodes stands around the term that reads the tree: for another term
    /// all pieces are one.
    fn check_pieces(&self, problem: &Problem) -> Result<(), CoreError> {
        let Some(x) = problem.leader() else { return Ok(()) };
        for (at, term) in self.path.terms.iter().enumerate() {
            let reads = term.inputs.contains(&Source::Input(x.input));
            let pieces = self.splits.iter().filter(|split| split.cuts_positions());
            let mut outer = pieces.map(|split| split.outer);
            // The last term walks the tree too where the output has its pattern.
            let kept = problem.has_pattern_output() && at + 1 == self.path.terms.len();
            if !reads && !kept && outer.any(|outer| term.indices.contains(outer)) {
                return broken(Rule::Loops, "pieces of positions around another term".into());
            }
        }
        Ok(())
    }

    fn check_prefetches(&self, problem: &Problem) -> Result<(), CoreError> {
        let dense = |input: usize| {
            input < problem.expr.inputs.len() && problem.sparse.iter().all(|x| x.input != input)
        };
        for prefetch in &self.prefetches {
            match prefetch.of {
                PrefetchOf::Input(input) if !dense(input) => {
                    return broken(Rule::Prefetch, format!("input {}", input + 1));
                }
                PrefetchOf::Output if !problem.scatters() => {
                    return broken(Rule::Prefetch, "the output".into());
                }
                of if self.follows_dense_level(problem, of) => {
                    return broken(Rule::Prefetch, "rows of a dense level, which follow".into());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Tells whether rows are numbered by coordinates of a dense level of the leader.
    fn follows_dense_level(&self, problem: &Problem, of: PrefetchOf) -> bool {
        let set = match of {
            PrefetchOf::Input(input) => problem.expr.inputs[input].set(),
            PrefetchOf::Output => problem.expr.output.set(),
        };
        let mut levels = self.layouts.first().into_iter().flat_map(|layout| layout.format.pairs());
        levels.find(|(index, _)| set.contains(*index)).is_some_and(|(_, k)| k == LevelKind::Dense)
    }

    fn check_nest(&self, problem: &Problem) -> Result<Vec<Vec<Place>>, CoreError> {
        let terms = self.path.terms.len();
        let mut read = vec![0; problem.expr.inputs.len() + terms];
        for (position, term) in self.path.terms.iter().enumerate() {
            for source in &term.inputs {
                let slot = match *source {
                    Source::Input(input) if input < problem.expr.inputs.len() => input,
                    Source::Term(t) if t < position => problem.expr.inputs.len() + t,
                    _ => return broken(Rule::Path, format!("term {}", position + 1)),
                };
                read[slot] += 1;
            }
        }
        let last = read.len() - 1;
        let output = self.path.terms.last().map(|term| term.output);
        if read[..last].iter().any(|&n| n != 1)
            || read[last] != 0
            || output != Some(problem.expr.output.set())
        {
            return broken(Rule::Path, self.path.display(&problem.expr).to_string());
        }
        let Some(places) = self.nest.places(terms) else {
            return broken(Rule::Nest, self.nest.to_string());
        };
        for (position, (loops, term)) in places.iter().zip(&self.path.terms).enumerate() {
            if loops.iter().map(|place| place.1).collect::<IndexSet>() != term.indices {
                let have: String = loops.iter().map(|place| place.1.letter()).collect();
                let why = format!("T{} over {} stands in {have}", position + 1, term.indices);
                return broken(Rule::Loops, why);
            }
        }
        Ok(places)
    }

    fn check_layouts(&self, problem: &Problem, orders: &[Vec<Index>]) -> Result<(), CoreError> {
        if self.layouts.len() != problem.sparse.len() {
            return broken(Rule::Layout, format!("{} layouts", self.layouts.len()));
        }
        for (operand, layout) in problem.sparse.iter().zip(&self.layouts) {
            let access = &problem.expr.inputs[operand.input];
            if problem.sparse.iter().filter(|x| x.input == operand.input).count() > 1 {
                return broken(Rule::Layout, format!("{access} is listed twice"));
            }
            if layout.input.is_some_and(|input| input != operand.input) {
                return broken(Rule::Layout, format!("{access} has the layout of another operand"));
            }
            let levels: IndexSet = layout.format.levels().iter().copied().collect();
            if levels != access.set() {
                return broken(Rule::Layout, format!("{access} has a layout over {levels}"));
            }
            let (csf, fused) = (layout.format.levels(), layout.format.fused());
            if csf.len() != access.indices.len() || !layout.format.is_tree() {
                return broken(Rule::Lowered, format!("{access} is not stored as a tree of modes"));
            }
            if csf != operand.levels() {
                let stored: String = operand.levels().iter().map(|index| index.letter()).collect();
                return broken(Rule::Layout, format!("{access} is stored as {stored}"));
            }
            check_kinds(problem, operand, layout)?;
            if fused != operand.fused() {
                let (want, have) = (operand.fused(), fused);
                return broken(
                    Rule::Layout,
                    format!("{have} levels are fused, {want} are stored so"),
                );
            }
            let reads =
                |term: usize| self.path.terms[term].inputs.contains(&Source::Input(operand.input));
            let reader = (0..self.path.terms.len()).find(|&term| reads(term));
            let order = reader.map_or(&[][..], |term| &orders[term]);
            let walked: Vec<Index> =
                order.iter().copied().filter(|&index| levels.contains(index)).collect();
            if walked != csf {
                let have: String = walked.iter().map(|index| index.letter()).collect();
                return broken(Rule::LevelOrder, format!("{access} is looped as {have}"));
            }
            if fused > 1 {
                self.check_fused(operand, reader)?;
            }
        }
        check_pattern_output(problem, orders.last().map_or(&[][..], Vec::as_slice))
    }

    /// Checks that every loop that walks a fused level is one around the term `reader`.
    fn check_fused(&self, operand: &SparseOperand, reader: Option<usize>) -> Result<(), CoreError> {
        let places = self.nest.places(self.path.terms.len()).expect("a checked nest");
        let own = reader.map_or(&[][..], |reader| &places[reader]);
        let first = operand.levels().len() - operand.fused();
        let buffers = buffers_at(&self.path, &places).expect("a checked nest");
        let carries = self.path.reached_by(operand.input);
        for (term, loops) in places.iter().enumerate() {
            // Without the operand, every repetition would add to what is stored the same once more.
            let repeats = |index| !carries[term] && buffers[term].stored.contains(index);
            let mut walked = 0;
            for place in loops.iter().filter(|(_, index)| operand.levels().contains(index)) {
                if operand.levels().get(walked) != Some(&place.1) {
                    continue;
                }
                if walked >= first && (!own.contains(place) || repeats(place.1)) {
                    return broken(Rule::LevelOrder, format!("{} is looped once more", place.1));
                }
                walked += 1;
            }
        }
        Ok(())
    }

    fn check_buffers(&self, problem: &Problem, places: &[Vec<Place>]) -> Result<(), CoreError> {
        let buffers = buffers_at(&self.path, places).expect("a checked nest");
        if self.buffers.len() != buffers.len() {
            return broken(Rule::BufferBound, format!("{} buffers", self.buffers.len()));
        }
        let allowed = |buffer: &&crate::nest::Buffer| match self.buffers[buffer.term] {
            BufferKind::Dense => problem.allows_buffer(buffer.stored),
            BufferKind::Sparse => problem.allows_sparse_buffer(buffer.stored),
        };
        match buffers.iter().find(|buffer| !allowed(buffer)) {
            Some(buffer) => {
                let name = self.path.name(&problem.expr, buffer.term);
                let (dims, bytes) = (problem.max_buffer_dims, problem.max_buffer_bytes);
                let takes = problem.buffer_bytes(buffer.stored);
                let found = format!("{name} stores {} in {takes} bytes", buffer.stored);
                broken(Rule::BufferBound, format!("{found}; {dims} and {bytes} are allowed"))
            }
            None => Ok(()),
        }
    }

    /// Checks the parallel loop of a nest whose last term stands in the loops `last`.
    fn check_parallel(&self, problem: &Problem, last: &[Index]) -> Result<(), CoreError> {
        let Some(parallel) = self.parallel else { return Ok(()) };
        let first = problem.leader().and_then(|x| x.levels().first());
        if first != Some(&parallel.index) {
            return broken(Rule::Parallel, format!("loop {}", parallel.index));
        }
        let output = &problem.expr.output;
        let assembled = problem.output == OutputForm::Assembled;
        if (parallel.conflict == Conflict::Assemble) != assembled {
            let is = if assembled { "" } else { "not " };
            return broken(Rule::Conflict, format!("{output} is {is}assembled"));
        }
        let owns_positions = parallel.conflict == Conflict::Positions;
        if owns_positions != problem.has_pattern_output() {
            let owned = if owns_positions { "not " } else { "" };
            return broken(Rule::Conflict, format!("{output} is {owned}of the operand's pattern"));
        }
        let units = match parallel.space {
            Space::Position => problem
                .leader()
                .map_or(1, |x| x.nodes(x.levels().iter().copied().collect(), &problem.extents)),
            Space::Coordinate => problem.extents.of(parallel.index),
        };
        let tasks = parallel.tasks.map(|cut| units.div_ceil(cut.size(units)));
        if parallel.conflict == Conflict::Privatise
            && tasks.is_some_and(|tasks| tasks > MOST_COPIES)
        {
            return broken(Rule::Lowered, format!("more than {MOST_COPIES} copies of {output}"));
        }
        let blocks = problem.leader().is_some_and(SparseOperand::in_blocks);
        if parallel.space == Space::Coordinate && blocks {
            return broken(Rule::Lowered, "coordinates of blocks as tasks".into());
        }
        let owns_rows = matches!(parallel.conflict, Conflict::Owner | Conflict::Boundary);
        let ranges = parallel.conflict == Conflict::Owner && problem.owns_ranges(last);
        if owns_rows && !ranges && !output.set().contains(parallel.index) {
            return broken(Rule::Conflict, format!("{output} lacks {}", parallel.index));
        }
        // A shared slice is set aside as one row, so the row must be all that its loop writes.
        let sparse = output.set() & problem.sparse_indices();
        if parallel.conflict == Conflict::Boundary && sparse.len() > 1 {
            return broken(Rule::Conflict, format!("{output} has several sparse indices"));
        }
        Ok(())
    }

    fn check_lowered(&self, problem: &Problem) -> Result<(), CoreError> {
        let plain = |x: &SparseOperand| x.fused() == 1 && !x.in_blocks();
        if problem.sparse.len() > 1 && !problem.sparse.iter().all(plain) {
            let why = "fused levels or blocks beside another sparse operand";
            return broken(Rule::Lowered, why.into());
        }
        self.check_workspace(problem)?;
        self.check_marks(problem)?;
        if let Vectors::Over(index) = self.vectors
            && !problem.expr.all().contains(index)
        {
            return broken(Rule::Lowered, format!("vectors over {index}, which is no loop"));
        }
        Ok(())
    }
}

impl Schedule {
    /// Checks that something of each sparse buffer is met and not all of it.
    fn check_marks(&self, problem: &Problem) -> Result<(), CoreError> {
        if !self.buffers.contains(&BufferKind::Sparse) {
            return Ok(());
        }
        let nest = resolve(problem, self)?;
        for (term, made) in nest.buffers.iter().enumerate() {
            let name = || self.path.name(&problem.expr, term);
            let sparse = self.buffers[term] == BufferKind::Sparse;
            if sparse && made.marks.is_none() {
                let why = match made.order.first() {
                    Some(index) => format!("{} is sparse, and meets every {index}", name()),
                    None => format!("{} is sparse, and stores one number", name()),
                };
                return broken(Rule::Lowered, why);
            }
        }
        Ok(())
    }

    /// Checks that an assembled output, and no other, has a workspace, whose cells have numbers.
    fn check_workspace(&self, problem: &Problem) -> Result<(), CoreError> {
        let output = &problem.expr.output;
        let assembled = problem.output == OutputForm::Assembled;
        if assembled != self.workspace.is_some() {
            let is = if assembled { "" } else { "not " };
            return broken(Rule::Lowered, format!("{output} is {is}assembled"));
        }
        let most = match self.workspace {
            Some(Workspace::Dense) => MOST_WORKSPACE_CELLS,
            Some(Workspace::Hashed | Workspace::List) => u64::MAX - 1,
            None => return Ok(()),
        };
        let orders = self.nest.orders(self.path.terms.len()).unwrap_or_default();
        let cells = problem.workspace_cells(orders.last().map_or(&[][..], Vec::as_slice));
        if output.indices.is_empty() || cells > most {
            let kinds = if cells > most { ", which is hashed or a list" } else { "" };
            let why = format!("{output} in a workspace of {cells} cells{kinds}");
            return broken(Rule::Lowered, why);
        }
        Ok(())
    }
}

/// The most tasks that have a copy of the output each.
const MOST_COPIES: u64 = 1_024;

/// The largest extent of a level with a bitmap or a table: nodes of a fibre, and twice as many places, are counted in 32 bits.
pub(crate) const MOST_LOCATED: u64 = 1 << 31;

/// The most cells of a dense workspace: each thread has one.
pub(crate) const MOST_WORKSPACE_CELLS: u64 = 1 << 22;

fn broken<T>(rule: Rule, found: String) -> Result<T, CoreError> {
    Err(CoreError::Illegal { rule, found })
}

/// Checks that levels of `layout` can be of the kinds that they are.
fn check_kinds(
    problem: &Problem,
    operand: &SparseOperand,
    layout: &Layout,
) -> Result<(), CoreError> {
    let leads = problem.leader().is_some_and(|x| x.input == operand.input);
    let lacks = |at: usize| !operand.is_full(&layout.format, at, problem);
    let last = operand.levels().len() - 1;
    for (at, (index, kind)) in layout.format.pairs().enumerate() {
        let why = match kind {
            LevelKind::Compressed | LevelKind::Singleton => continue,
            LevelKind::Dense if operand.is_fused(at) => "shares its positions with singletons",
            LevelKind::Dense if leads && at == 0 => {
                "is the root of the leader, which is cut into tasks"
            }
            LevelKind::Dense if leads && lacks(at) => {
                "lacks coordinates, and belongs to the leader"
            }
            LevelKind::Dense if at == last && lacks(at) => "lacks coordinates, and is the last",
            LevelKind::Dense => continue,
            _ if leads => "belongs to the leader, which is cut into tasks",
            _ if problem.extents.of(index) > MOST_LOCATED => "has more than 2^31 coordinates",
            _ => continue,
        };
        let access = &problem.expr.inputs[operand.input];
        return broken(Rule::Lowered, format!("level {index} of {access} is {kind} and {why}"));
    }
    Ok(())
}

/// Checks that an output with the operand's pattern has all indices of the tree, and is written by
/// the loops `last` in the tree's order.
fn check_pattern_output(problem: &Problem, last: &[Index]) -> Result<(), CoreError> {
    if !problem.has_pattern_output() {
        return Ok(());
    }
    let (output, sparse) = (&problem.expr.output, problem.sparse_indices());
    if !sparse.is_subset(output.set()) {
        return broken(Rule::Layout, format!("{output} lacks an index of the pattern"));
    }
    let mut around = last.iter().filter(|&&index| sparse.contains(index));
    let levels = problem.leader().map_or(&[][..], |x| x.levels());
    if !levels.iter().all(|level| around.next() == Some(level)) {
        return broken(Rule::LevelOrder, format!("{output} is written in another order"));
    }
    Ok(())
}
