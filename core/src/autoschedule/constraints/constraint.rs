//! The variables and the constraints of a system, one by one.

use std::fmt;

use crate::autoschedule::constraints::Solution;
use crate::autoschedule::constraints::system::{Contraction, System};
use crate::einsum::Index;

/// A variable of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Variable {
    /// `ap`: the position of a contraction's assignment.
    Assignment(usize),
    /// `dp`: the position of a mode in the layout of a tensor.
    Mode(usize, usize),
    /// `lp`: the position of an index among the loops around a contraction's assignment.
    Loop(usize, Index),
}

/// A constraint of a system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constraint {
    /// The variable is below a number.
    Range(Variable, usize),
    /// The variables differ: with their ranges, a permutation.
    Distinct(Vec<Variable>),
    /// A child comes before its parent.
    Before(Variable, Variable),
    /// A layout is given.
    Given(Variable, usize),
    /// If one mode is above another, its loop is outside of the other's.
    Consistent {
        /// The upper mode and the lower one.
        modes: (Variable, Variable),
        /// The outer loop and the inner one.
        loops: (Variable, Variable),
    },
    /// One of the indices of an intermediate is looped at this place around its producer.
    Producer(Vec<Variable>, usize),
    /// If the producer loops over an index at this place, so does the consumer.
    Consumer(Variable, Variable, usize),
    /// If an assignment stands between producer and consumer, and the producer loops over an index at this place, so
    /// does that assignment.
    Between {
        /// Producer, the assignment between, consumer.
        contractions: [usize; 3],
        /// The index.
        index: Index,
        /// The place.
        place: usize,
    },
}

/// The parts of a system, in the order in which it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The order of the assignments.
    Assignments,
    /// The layouts of the tensors.
    Layouts,
    /// The orders of the loops.
    Loops,
    /// Modes and loops agree.
    Consistency,
    /// Producers begin with indices of their results.
    Producers,
    /// Consumers share these loops.
    Consumers,
    /// So does what stands between them.
    Between,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Assignments => "order of assignments",
            Part::Layouts => "order of modes",
            Part::Loops => "order of loops",
            Part::Consistency => "consistency of modes and loops",
            Part::Producers => "producers",
            Part::Consumers => "consumers",
            Part::Between => "assignments between",
        })
    }
}

impl System {
    /// Returns all variables.
    pub fn variables(&self) -> Vec<Variable> {
        let assignments = (0..self.contractions.len()).map(Variable::Assignment);
        let modes =
            self.tensors.iter().enumerate().flat_map(|(at, tensor)| {
                (0..tensor.order).map(move |mode| Variable::Mode(at, mode))
            });
        let loops = (0..self.contractions.len()).flat_map(|at| self.loops(at));
        assignments.chain(modes).chain(loops).collect()
    }

    fn loops(&self, contraction: usize) -> Vec<Variable> {
        let indices = self.contractions[contraction].indices.iter();
        indices.map(|index| Variable::Loop(contraction, index)).collect()
    }

    /// Returns all constraints, each with the part that it belongs to.
    pub fn constraints(&self) -> Vec<(Part, Constraint)> {
        let mut all = Vec::new();
        let assignments: Vec<Variable> =
            (0..self.contractions.len()).map(Variable::Assignment).collect();
        permutation(Part::Assignments, &assignments, &mut all);
        for (at, one) in self.contractions.iter().enumerate() {
            let parent = one.consumer.map(Variable::Assignment);
            let before = parent.map(|parent| Constraint::Before(Variable::Assignment(at), parent));
            all.extend(before.map(|before| (Part::Assignments, before)));
        }
        for (at, tensor) in self.tensors.iter().enumerate() {
            let modes: Vec<Variable> =
                (0..tensor.order).map(|mode| Variable::Mode(at, mode)).collect();
            permutation(Part::Layouts, &modes, &mut all);
            let given = tensor.given.iter().flatten().enumerate();
            all.extend(
                given.map(|(place, &mode)| (Part::Layouts, Constraint::Given(modes[mode], place))),
            );
        }
        for at in 0..self.contractions.len() {
            permutation(Part::Loops, &self.loops(at), &mut all);
        }
        for (at, one) in self.contractions.iter().enumerate() {
            consistency(at, one, &mut all);
        }
        for at in 0..self.contractions.len() {
            self.fusion(at, &mut all);
        }
        all.sort_by_key(|(part, _)| *part);
        all
    }

    /// Adds what the fusion of `producer` with its consumer asks for.
    fn fusion(&self, producer: usize, all: &mut Vec<(Part, Constraint)>) {
        let one = &self.contractions[producer];
        let Some(consumer) = one.consumer else { return };
        let own = |index| Variable::Loop(producer, index);
        for place in 0..self.fused(producer) {
            let loops = one.result.iter().map(own).collect();
            all.push((Part::Producers, Constraint::Producer(loops, place)));
            for index in one.result.iter() {
                let read = Variable::Loop(consumer, index);
                all.push((Part::Consumers, Constraint::Consumer(own(index), read, place)));
            }
            let others =
                (0..self.contractions.len()).filter(|at| *at != producer && *at != consumer);
            for between in others {
                let contractions = [producer, between, consumer];
                all.extend(one.result.iter().map(|index| {
                    (Part::Between, Constraint::Between { contractions, index, place })
                }));
            }
        }
    }

    /// Checks every constraint on `solution`, one after the other, without the solver.
    ///
    /// # Errors
    ///
    /// The first constraint that does not hold.
    pub fn check(&self, solution: &Solution) -> Result<(), Constraint> {
        let broken = self.constraints().into_iter().find(|(_, one)| !one.holds(self, solution));
        broken.map_or(Ok(()), |(_, one)| Err(one))
    }
}

fn permutation(part: Part, variables: &[Variable], all: &mut Vec<(Part, Constraint)>) {
    let range = |&variable| (part, Constraint::Range(variable, variables.len()));
    all.extend(variables.iter().map(range));
    if variables.len() > 1 {
        all.push((part, Constraint::Distinct(variables.to_vec())));
    }
}

fn consistency(at: usize, one: &Contraction, all: &mut Vec<(Part, Constraint)>) {
    for reference in &one.references {
        let modes = || reference.indices.iter().enumerate();
        let of = |(mode, &index): (usize, &Index)| {
            (Variable::Mode(reference.tensor, mode), Variable::Loop(at, index))
        };
        for (upper, outer) in modes().map(of) {
            for (lower, inner) in modes().map(of).filter(|(lower, _)| *lower != upper) {
                let (modes, loops) = ((upper, lower), (outer, inner));
                all.push((Part::Consistency, Constraint::Consistent { modes, loops }));
            }
        }
    }
}

impl Constraint {
    /// Tells whether `solution` keeps it.
    pub(super) fn holds(&self, system: &System, solution: &Solution) -> bool {
        let value = |variable: &Variable| solution.value(system, *variable);
        match self {
            Constraint::Range(variable, below) => value(variable).is_some_and(|v| v < *below),
            Constraint::Distinct(variables) => (1..variables.len())
                .all(|at| variables[..at].iter().all(|x| value(x) != value(&variables[at]))),
            Constraint::Before(first, second) => value(first) < value(second),
            Constraint::Given(variable, place) => value(variable) == Some(*place),
            Constraint::Consistent { modes, loops } => {
                value(&modes.0) >= value(&modes.1) || value(&loops.0) < value(&loops.1)
            }
            Constraint::Producer(loops, place) => loops.iter().any(|x| value(x) == Some(*place)),
            Constraint::Consumer(producer, consumer, place) => {
                value(producer) != Some(*place) || value(consumer) == Some(*place)
            }
            Constraint::Between { contractions: [producer, between, consumer], index, place } => {
                let at = |contraction: &usize| value(&Variable::Assignment(*contraction));
                let looped = |contraction: &usize| value(&Variable::Loop(*contraction, *index));
                let stands = at(producer) < at(between) && at(between) < at(consumer);
                !stands || looped(producer) != Some(*place) || looped(between) == Some(*place)
            }
        }
    }
}
