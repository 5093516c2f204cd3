//! The system: contractions, tensors, and the bound on intermediates.

use crate::einsum::{Index, IndexSet};
use crate::path::{Path, Source, term_text};
use crate::schedule::Problem;

/// The constraint system of a contraction tree.
///
/// Its variables are the positions of the assignments, of the modes in the layout of each tensor, and of the loops
/// around each assignment; [`System::constraints`] lists what they must keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// The tensors with a layout: the inputs and the result.  Intermediates are dense workspaces, and have none.
    pub tensors: Vec<Tensor>,
    /// The contractions, children before parents.
    pub contractions: Vec<Contraction>,
    /// The most indices over which an intermediate is stored.
    pub bound: usize,
}

/// A tensor with a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its name.
    pub name: String,
    /// The number of its modes.
    pub order: usize,
    /// Its modes from the root, if they are not to be chosen.
    pub given: Option<Vec<usize>>,
}

/// A contraction of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contraction {
    /// The assignment as text.
    pub text: String,
    /// The indices of its loops.
    pub indices: IndexSet,
    /// The tensors with a layout that it reads or writes.
    pub references: Vec<Reference>,
    /// The indices of its result.
    pub result: IndexSet,
    /// The contraction that reads its result; `None` for the root of the tree.
    pub consumer: Option<usize>,
}

/// A reference to a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Which tensor of the system.
    pub tensor: usize,
    /// The index of each of its modes.
    pub indices: Vec<Index>,
}

/// Who decides the layouts of the sparse operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layouts {
    /// The problem: its levels are constants.
    Given,
    /// The system, one for all references of a tensor.
    Shared,
    /// The system, one for each reference: a tensor may be stored twice.
    Own,
}

impl System {
    /// Poses the system of the tree of `path` for `problem`, with intermediates of `bound` indices at most.
    ///
    /// A result that has the pattern of the leader is written as that is laid out: the last contraction refers to it
    /// too.
    pub fn new(problem: &Problem, path: &Path, layouts: Layouts, bound: usize) -> System {
        let expr = &problem.expr;
        let mut tensors: Vec<Tensor> = Vec::new();
        let names = expr.operand_names();
        let mut of_input = Vec::with_capacity(names.len());
        for (input, access) in expr.inputs.iter().enumerate() {
            let sparse = problem.sparse.iter().find(|x| x.input == input);
            let modes = modes(problem, input);
            let given = sparse.filter(|_| layouts == Layouts::Given).map(|x| {
                let mode = |level| modes.iter().position(|index| index == level);
                x.levels().iter().filter_map(mode).collect::<Vec<usize>>()
            });
            let one = layouts == Layouts::Shared && sparse.is_some();
            let name = if one { &access.tensor } else { &names[input] };
            let tensor = Tensor { name: name.clone(), order: modes.len(), given };
            let at = tensors.iter().position(|other| one && *other == tensor);
            of_input.push(at.unwrap_or(tensors.len()));
            if at.is_none() {
                tensors.push(tensor);
            }
        }
        let result = tensors.len();
        let (name, order) = (expr.output.tensor.clone(), expr.output.indices.len());
        tensors.push(Tensor { name, order, given: None });
        let last = path.terms.len() - 1;
        let contractions = path.terms.iter().enumerate().map(|(at, term)| {
            let read = term.inputs.iter().filter_map(|source| match *source {
                Source::Input(input) => {
                    let indices = modes(problem, input);
                    Some(Reference { tensor: of_input[input], indices })
                }
                Source::Term(_) => None,
            });
            let mut references: Vec<Reference> = read.collect();
            if at == last {
                let indices = expr.output.indices.clone();
                references.push(Reference { tensor: result, indices });
                let leader = problem.leader().filter(|_| problem.has_pattern_output());
                let led = leader.map(|x| {
                    let indices = modes(problem, x.input);
                    Reference { tensor: of_input[x.input], indices }
                });
                let led = led.filter(|own| !references.contains(own));
                references.extend(led);
            }
            Contraction {
                text: term_text(path, expr, at),
                indices: term.indices,
                references,
                result: term.output,
                consumer: path.consumer(at),
            }
        });
        let contractions = contractions.collect();
        System { tensors, contractions, bound }
    }

    /// Returns this system with another bound.
    pub fn bounded(&self, bound: usize) -> System {
        System { bound, ..self.clone() }
    }

    /// Returns the most indices of an intermediate: with this bound the constraints on fusion ask for nothing.
    pub fn largest(&self) -> usize {
        let inner = self.contractions.iter().filter(|one| one.consumer.is_some());
        inner.map(|one| one.result.len()).max().unwrap_or(0)
    }

    /// Returns how many outermost loops the producer of an intermediate shares with its consumer.
    pub(super) fn fused(&self, producer: usize) -> usize {
        let one = &self.contractions[producer];
        one.consumer.map_or(0, |_| one.result.len().saturating_sub(self.bound))
    }

    /// Tells which tensors restrict the order of loops: those with a layout that is given, or with several references.
    pub(super) fn restricting(&self) -> Vec<bool> {
        let references = || self.contractions.iter().flat_map(|one| &one.references);
        let times = |tensor: usize| references().filter(|one| one.tensor == tensor).count();
        let restricts = |(at, tensor): (usize, &Tensor)| tensor.given.is_some() || times(at) > 1;
        self.tensors.iter().enumerate().map(restricts).collect()
    }
}

/// The index of each mode of an input, and that of the blocks in which it is stored.
fn modes(problem: &Problem, input: usize) -> Vec<Index> {
    let mut modes = problem.expr.inputs[input].distinct();
    let sparse = problem.sparse.iter().find(|x| x.input == input);
    if sparse.is_some_and(|x| x.in_blocks()) {
        modes.push(Index::BLOCK);
    }
    modes
}
