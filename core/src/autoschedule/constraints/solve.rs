//! The exact solver: propagation over prefixes of loops, with backtracking where a tensor has several references.
//!
//! Given the order of the assignments, the constraints on producers, consumers and what stands between them say how
//! many outermost loops each pair of neighbours shares, and which indices may stand there.  So the loops form a tree of
//! *steps*: a step chooses one loop for a run of neighbours.  Along a branch the runs shrink and the indices that are allowed
//! grow.  Therefore a step at depth `s` can be completed if and only if more than `s` indices are left for it once
//! those are removed whose layout puts a removed one above them.  That is checked before the first choice.  Where all
//! layouts are given, or no tensor has a second reference, every choice then leads to a solution; otherwise
//! layouts become known choice by choice, and the check is repeated.
//!
//! Solutions are enumerated by how far they depart from the ranked choice of each step, so that those that differ
//! in few choices come first wherever the choices stand (limited discrepancy search: Harvey, Ginsberg, IJCAI 1995).

use std::ops::ControlFlow;

use crate::autoschedule::constraints::Solution;
use crate::autoschedule::constraints::system::{Contraction, Reference, System};
use crate::autoschedule::work::Work;
use crate::einsum::{Index, IndexSet};

/// How well an index suits as the next loop inside loops over a set of indices; less is better.
pub(super) type Rank<'a> = &'a dyn Fn(IndexSet, Index) -> (u8, f64);

/// What is shown every solution: it goes on, with that much more work spent, or breaks off.
pub(super) type Visit<'a> = &'a mut dyn FnMut(&Solution) -> ControlFlow<(), u64>;

/// Why an enumeration ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// There are no more solutions.
    All,
    /// The visitor had enough.
    Stopped,
    /// The work was spent.
    Cut,
}

impl System {
    /// Returns a solution; `None` if there is none, or `work` choices do not suffice to find one.
    ///
    /// Which of the two tells the second value.
    pub fn solve(&self, work: u64) -> (Option<Solution>, End) {
        self.first(&|_, index| (0, index.number() as f64), &mut Work::new(work))
    }

    /// Visits every solution, each once, until `visit` breaks or `work` choices are made.
    pub fn solutions(&self, work: u64, mut visit: impl FnMut(&Solution) -> ControlFlow<()>) -> End {
        let rank = |_, index: Index| (0, index.number() as f64);
        let mut visit = |solution: &Solution| match visit(solution) {
            ControlFlow::Continue(()) => ControlFlow::Continue(0),
            ControlFlow::Break(()) => ControlFlow::Break(()),
        };
        self.each(&rank, &mut Work::new(work), &mut visit)
    }

    /// Returns the first solution in the order of `rank`.
    pub(super) fn first(&self, rank: Rank<'_>, work: &mut Work) -> (Option<Solution>, End) {
        let mut found = None;
        let mut keep = |solution: &Solution| {
            found = Some(solution.clone());
            ControlFlow::Break(())
        };
        let mut search = Search::new(self, rank, work, &mut keep);
        search.left = usize::MAX;
        let end = search.run();
        (found, end)
    }

    /// Visits every solution, those that depart least from `rank` first.
    pub(super) fn each(&self, rank: Rank<'_>, work: &mut Work, visit: Visit<'_>) -> End {
        for departures in 0.. {
            let mut search = Search::new(self, rank, work, visit);
            search.left = departures;
            search.pass = Pass::Exactly;
            match (search.run(), search.more) {
                (End::All, true) => {}
                (end, _) => return end,
            }
        }
        End::All
    }
}

/// Which solutions are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pass {
    /// Those with that many departures at most.
    UpTo,
    /// Those with exactly as many.
    Exactly,
}

/// A run of neighbours in the sequence that share a loop at a depth.
#[derive(Clone, Copy, Debug)]
struct Step {
    first: usize,
    end: usize,
    depth: usize,
    allowed: IndexSet,
}

struct Search<'a> {
    system: &'a System,
    rank: Rank<'a>,
    work: &'a mut Work,
    visit: Visit<'a>,
    pass: Pass,
    /// Departures that are left.
    left: usize,
    /// Whether solutions with more departures may exist.
    more: bool,
    restricting: Vec<bool>,
    /// The contractions in order.
    sequence: Vec<usize>,
    steps: Vec<Step>,
    /// The loops so far around each contraction of the sequence.
    loops: Vec<Vec<Index>>,
    /// The modes from the root of each tensor, as far as they are decided.
    layouts: Vec<Vec<usize>>,
}

/// What a search returns when it ends early.
type Ended = ControlFlow<End>;

impl<'a> Search<'a> {
    fn new(system: &'a System, rank: Rank<'a>, work: &'a mut Work, visit: Visit<'a>) -> Search<'a> {
        let given = system.tensors.iter().map(|tensor| tensor.given.clone().unwrap_or_default());
        Search {
            system,
            rank,
            work,
            visit,
            pass: Pass::UpTo,
            left: 0,
            more: false,
            restricting: system.restricting(),
            sequence: Vec::new(),
            steps: Vec::new(),
            loops: vec![Vec::new(); system.contractions.len()],
            layouts: given.collect(),
        }
    }

    fn run(&mut self) -> End {
        match self.order_next() {
            ControlFlow::Continue(()) => End::All,
            ControlFlow::Break(end) => end,
        }
    }

    fn spend(&mut self) -> Ended {
        if self.work.spend() { ControlFlow::Continue(()) } else { ControlFlow::Break(End::Cut) }
    }

    /// Chooses the next contraction of the sequence.
    fn order_next(&mut self) -> Ended {
        if self.sequence.len() == self.system.contractions.len() {
            return self.loop_from_start();
        }
        let of = |child: usize| self.system.contractions[child].consumer;
        let mut pending =
            (0..self.system.contractions.len()).filter(|c| !self.sequence.contains(c));
        let open: Vec<usize> = pending.by_ref().collect();
        let waits = |one: usize| open.iter().any(|&child| of(child) == Some(one));
        let ready: Vec<usize> = open.iter().copied().filter(|&one| !waits(one)).collect();
        for (departures, &contraction) in ready.iter().enumerate() {
            if departures > self.left {
                self.more = true;
                break;
            }
            self.spend()?;
            self.left -= departures;
            self.sequence.push(contraction);
            let ended = self.order_next();
            self.sequence.pop();
            self.left += departures;
            ended?;
        }
        ControlFlow::Continue(())
    }

    /// Chooses the loops around the sequence.
    fn loop_from_start(&mut self) -> Ended {
        self.steps.clear();
        let shared = self.shared();
        self.add_steps(&shared, (0, self.sequence.len()), 0);
        match self.is_possible(0) {
            true => self.loop_next(0),
            false => ControlFlow::Continue(()),
        }
    }

    /// The spans of the intermediates in the sequence: from producer to consumer, the loops that they share, the indices.
    fn spans(&self) -> Vec<(usize, usize, usize, IndexSet)> {
        let place = |one: usize| self.sequence.iter().position(|&own| own == one);
        let span = |(at, &producer): (usize, &usize)| {
            let one = &self.system.contractions[producer];
            Some((at, place(one.consumer?)?, self.system.fused(producer), one.result))
        };
        self.sequence.iter().enumerate().filter_map(span).collect()
    }

    /// Returns how many loops each contraction of the sequence shares with the next.
    fn shared(&self) -> Vec<usize> {
        let mut shared = vec![0; self.sequence.len()];
        for (first, last, fused, _) in self.spans() {
            shared[first..last].iter_mut().for_each(|gap| *gap = fused.max(*gap));
        }
        shared
    }

    /// Adds the steps of the run `first..end`, whose members share `depth` loops: a depth-first preorder.
    fn add_steps(&mut self, shared: &[usize], (first, end): (usize, usize), depth: usize) {
        let mut start = first;
        while start < end {
            let run = (start..end - 1).take_while(|&at| shared[at] > depth).count();
            let stop = start + run + 1;
            let own = self.contraction(start).indices;
            if own.len() > depth {
                let allowed = self.allowed((start, stop), depth);
                self.steps.push(Step { first: start, end: stop, depth, allowed });
                self.add_steps(shared, (start, stop), depth + 1);
            }
            start = stop;
        }
    }

    /// Returns the indices of a loop at `depth` that the members of a run share.
    fn allowed(&self, (first, end): (usize, usize), depth: usize) -> IndexSet {
        let own = (first..end).map(|at| self.contraction(at).indices);
        let mut allowed = own.reduce(|a, b| a & b).unwrap_or_default();
        for (from, to, fused, result) in self.spans() {
            if fused > depth && from < end && first <= to {
                allowed = allowed & result;
            }
        }
        allowed
    }

    fn contraction(&self, at: usize) -> &'a Contraction {
        &self.system.contractions[self.sequence[at]]
    }

    /// The references of a run to tensors that restrict its loops.
    fn references(&self, step: Step) -> impl Iterator<Item = (usize, &'a Reference)> {
        (step.first..step.end).flat_map(move |at| {
            let references = self.contraction(at).references.iter();
            let restricting = references.filter(|one| self.restricting[one.tensor]);
            restricting.map(move |one| (at, one))
        })
    }

    /// Tells whether enough indices are left for each step from number `from` on.
    fn is_possible(&self, from: usize) -> bool {
        self.steps[from..].iter().all(|step| self.reachable(*step).len() > step.depth)
    }

    /// Returns the allowed indices of a step above which no layout has another one.
    fn reachable(&self, step: Step) -> IndexSet {
        let mut left = step.allowed;
        loop {
            let before = left;
            for (_, reference) in self.references(step) {
                let layout = &self.layouts[reference.tensor];
                let level = |mode: &usize| reference.indices[*mode];
                let above = layout.iter().take_while(|mode| left.contains(level(mode))).count();
                if above < layout.len() {
                    let kept: IndexSet = layout[..above].iter().map(level).collect();
                    let all: IndexSet = reference.indices.iter().copied().collect();
                    left = left - (all - kept);
                }
            }
            if left == before {
                return left;
            }
        }
    }

    /// Chooses the loop of step `number` and all after it.
    fn loop_next(&mut self, number: usize) -> Ended {
        let Some(&step) = self.steps.get(number) else { return self.found() };
        let around: IndexSet = self.loops[step.first].iter().copied().collect();
        let mut open: Vec<Index> = (step.allowed - around).iter().collect();
        open.retain(|&index| self.take(step, index).is_some_and(|n| self.give_back(n)));
        let key = |index: &Index| (self.rank)(around, *index);
        open.sort_by(|a, b| {
            let (a, b) = (key(a), key(b));
            a.0.cmp(&b.0).then(a.1.total_cmp(&b.1))
        });
        for (departures, &index) in open.iter().enumerate() {
            if departures > self.left {
                self.more = true;
                break;
            }
            self.spend()?;
            let Some(decided) = self.take(step, index) else { continue };
            self.left -= departures;
            self.loops[step.first..step.end].iter_mut().for_each(|loops| loops.push(index));
            let ended = match decided.is_empty() || self.is_possible(number + 1) {
                true => self.loop_next(number + 1),
                false => ControlFlow::Continue(()),
            };
            self.loops[step.first..step.end].iter_mut().for_each(|loops| {
                loops.pop();
            });
            self.left += departures;
            self.give_back(decided);
            ended?;
        }
        ControlFlow::Continue(())
    }

    /// Decides the levels that a loop over `index` walks; returns the tensors of which one was open, or `None` if
    /// another level comes first.
    fn take(&mut self, step: Step, index: Index) -> Option<Vec<usize>> {
        let walked = |at: usize, one: &Reference, loops: &[Vec<Index>]| {
            loops[at].iter().filter(|looped| one.indices.contains(looped)).count()
        };
        let mut decided = Vec::new();
        let references: Vec<(usize, &Reference)> = self.references(step).collect();
        for (at, reference) in references {
            let Some(mode) = reference.indices.iter().position(|own| *own == index) else {
                continue;
            };
            let level = walked(at, reference, &self.loops);
            let layout = &mut self.layouts[reference.tensor];
            match layout.get(level) {
                Some(&next) if next == mode => {}
                None if !layout.contains(&mode) => {
                    layout.push(mode);
                    decided.push(reference.tensor);
                }
                _ => {
                    self.give_back(decided);
                    return None;
                }
            }
        }
        Some(decided)
    }

    /// Leaves levels open again; always true.
    fn give_back(&mut self, decided: Vec<usize>) -> bool {
        decided.into_iter().for_each(|tensor| {
            self.layouts[tensor].pop();
        });
        true
    }

    /// Shows a solution to the visitor.
    fn found(&mut self) -> Ended {
        if self.pass == Pass::Exactly && self.left > 0 {
            return ControlFlow::Continue(());
        }
        let mut loops = vec![Vec::new(); self.loops.len()];
        for (&contraction, order) in self.sequence.iter().zip(&self.loops) {
            loops[contraction].clone_from(order);
        }
        let solution = Solution::new(self.system, self.sequence.clone(), loops);
        match (self.visit)(&solution) {
            ControlFlow::Continue(more) if !self.work.spend_all(more) => {
                ControlFlow::Break(End::Cut)
            }
            ControlFlow::Continue(_) => ControlFlow::Continue(()),
            ControlFlow::Break(()) => ControlFlow::Break(End::Stopped),
        }
    }
}
