//! Solutions of a system, and the loops that they mean.

use crate::autoschedule::constraints::constraint::Variable;
use crate::autoschedule::constraints::system::System;
use crate::einsum::Index;
use crate::nest::Forest;
use crate::path::{Path, Source};

/// Values of all variables of a system.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Solution {
    /// The contractions in the order of their assignments.
    pub sequence: Vec<usize>,
    /// The loops around each contraction, outermost first.
    pub loops: Vec<Vec<Index>>,
    /// The modes of each tensor from the root.
    pub layouts: Vec<Vec<usize>>,
}

impl Solution {
    /// Completes the orders of assignments and loops with the layouts that follow from them.
    ///
    /// Each tensor is laid out as the first contraction that refers to it loops over its modes.
    pub fn new(system: &System, sequence: Vec<usize>, loops: Vec<Vec<Index>>) -> Solution {
        let mut layouts = vec![Vec::new(); system.tensors.len()];
        for (one, order) in system.contractions.iter().zip(&loops) {
            for reference in &one.references {
                let mode = |index| reference.indices.iter().position(|own| own == index);
                if layouts[reference.tensor].is_empty() {
                    layouts[reference.tensor] = order.iter().filter_map(mode).collect();
                }
            }
        }
        Solution { sequence, loops, layouts }
    }

    /// Returns the value of a variable; `None` if the system has no such one.
    pub fn value(&self, system: &System, variable: Variable) -> Option<usize> {
        match variable {
            Variable::Assignment(contraction) => {
                self.sequence.iter().position(|&own| own == contraction)
            }
            Variable::Mode(tensor, mode) => {
                self.layouts.get(tensor)?.iter().position(|&own| own == mode)
            }
            Variable::Loop(contraction, index) => {
                let looped = system.contractions.get(contraction)?.indices.contains(index);
                let order = self.loops.get(contraction).filter(|_| looped)?;
                order.iter().position(|&own| own == index)
            }
        }
    }

    /// Returns the terms of `path`, that of the system, in the order of their assignments.
    pub fn path(&self, path: &Path) -> Path {
        let place = |term: usize| self.sequence.iter().position(|&own| own == term);
        let renumbered = |source: &Source| match *source {
            Source::Input(input) => Source::Input(input),
            Source::Term(term) => Source::Term(place(term).unwrap_or(term)),
        };
        let terms = self.sequence.iter().map(|&at| {
            let mut term = path.terms[at].clone();
            term.inputs = term.inputs.iter().map(renumbered).collect();
            term
        });
        Path { terms: terms.collect() }
    }

    /// Returns the fused loops around the assignments in their order: algorithm 1.
    pub fn nest(&self) -> Forest {
        let orders: Vec<Vec<Index>> =
            self.sequence.iter().map(|&at| self.loops[at].clone()).collect();
        Forest::fused(&orders)
    }

    /// Returns the assignments in their order.
    pub fn rows(&self, system: &System) -> Vec<Row> {
        let row = |&at: &usize| {
            let one = &system.contractions[at];
            let laid = one.references.iter().map(|reference| {
                let layout = self.layouts[reference.tensor].iter();
                let indices = layout.map(|&mode| reference.indices[mode].to_string());
                let name = &system.tensors[reference.tensor].name;
                format!("{name}[{}]", indices.collect::<Vec<_>>().join(","))
            });
            let loops = self.loops[at].iter().map(ToString::to_string).collect();
            Row { assignment: one.text.clone(), loops, layouts: laid.collect() }
        };
        self.sequence.iter().map(row).collect()
    }
}

/// An assignment of a solution.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Row {
    /// As `X(i,q) = A(i,p) * B(p,q)`.
    pub assignment: String,
    /// The loops around it, outermost first.
    pub loops: Vec<String>,
    /// The tensors that it refers to with their modes from the root, as `A[p,i]`.
    pub layouts: Vec<String>,
}
