//! Programs: assignments one after another, of which later ones read the results of those before.
//!
//! ```text
//! # a layer of a graph network, a line an assignment
//! H(i,f) = X(i,k) * W(k,f)
//! Z(i,f) = relu(A(i,j) * H(j,f))
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

use decompose_core::einsum::{Access, Assignment};
use decompose_core::kernels;

use crate::einsum::args::EinsumArgs;
use crate::failure::Failure;

/// Assignments in the order in which they are computed; never empty.
pub(crate) struct Program {
    pub(crate) assignments: Vec<Assignment>,
}

impl Program {
    /// Reads what the user typed.
    pub(crate) fn of(args: &EinsumArgs) -> Result<Program, Failure> {
        match (&args.expr, &args.program) {
            (_, Some(file)) => Program::read(file),
            (Some(text), None) => Program::new(vec![parse(text)?]),
            (None, None) => Err(Failure::internal("neither an expression nor a program")),
        }
    }

    fn read(file: &Path) -> Result<Program, Failure> {
        let name = file.display();
        let text = fs::read_to_string(file)
            .map_err(|error| Failure::input(format!("cannot read {name}: {error}")))?;
        let mut assignments = Vec::new();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let read: Result<Assignment, _> = line.parse();
            let number = at + 1;
            assignments.push(
                read.map_err(|error| Failure::input(format!("{name}, line {number}: {error}")))?,
            );
        }
        if assignments.is_empty() {
            return Err(Failure::input(format!("{name} has no assignment"))
                .help("write one a line, as `Z(i,k) = X(i,j) * Y(j,k)`"));
        }
        Program::new(assignments)
    }

    fn new(assignments: Vec<Assignment>) -> Result<Program, Failure> {
        let program = Program { assignments };
        program.check_names()?;
        Ok(program)
    }

    /// Refuses tensors that are assigned twice or too late, or that have two orders.
    fn check_names(&self) -> Result<(), Failure> {
        let mut first: BTreeMap<&str, &Access> = BTreeMap::new();
        for assignment in &self.assignments {
            for access in assignment.inputs().chain([&assignment.output]) {
                let before = first.entry(&access.tensor).or_insert(access);
                if before.indices.len() != access.indices.len() {
                    let name = &access.tensor;
                    let (a, b) = (before.indices.len(), access.indices.len());
                    return Err(Failure::input(format!("{name} has {a} indices and {b} indices"))
                        .help("a tensor has as many indices wherever it stands"));
                }
            }
        }
        for (at, assignment) in self.assignments.iter().enumerate() {
            let name = &assignment.output.tensor;
            let before = &self.assignments[..at];
            if before.iter().any(|other| other.output.tensor == *name) {
                return Err(Failure::input(format!("{name} is assigned twice"))
                    .help("give each result a name of its own"));
            }
            if before.iter().any(|other| other.inputs().any(|access| access.tensor == *name)) {
                return Err(Failure::input(format!("{name} is read before it is assigned"))
                    .help("put the assignments in the order in which they are computed"));
            }
        }
        Ok(())
    }

    /// Returns the last assignment.
    pub(crate) fn last(&self) -> Option<&Assignment> {
        self.assignments.last()
    }

    /// Returns the assignment of `tensor`.
    pub(crate) fn assignment(&self, tensor: &str) -> Option<&Assignment> {
        self.assignments.iter().find(|assignment| assignment.output.tensor == tensor)
    }

    /// Returns the operands that no assignment computes, each as it stands first.
    pub(crate) fn operands(&self) -> Vec<&Access> {
        let mut operands: Vec<&Access> = Vec::new();
        for access in self.assignments.iter().flat_map(Assignment::inputs) {
            let listed = operands.iter().any(|own| own.tensor == access.tensor);
            if !listed && self.assignment(&access.tensor).is_none() {
                operands.push(access);
            }
        }
        operands
    }

    /// Returns the names of the tensors that are lists, where `is_list` tells it of operands.
    pub(crate) fn lists(&self, is_list: impl Fn(&str) -> bool) -> BTreeSet<String> {
        let operands = self.operands().into_iter().map(|access| access.tensor.clone());
        let mut lists: BTreeSet<String> = operands.filter(|name| is_list(name)).collect();
        for assignment in &self.assignments {
            if assignment.is_list(|name| lists.contains(name)) {
                lists.insert(assignment.output.tensor.clone());
            }
        }
        lists
    }

    /// Returns how often each tensor is read.
    pub(crate) fn reads(&self) -> BTreeMap<String, usize> {
        let mut reads = BTreeMap::new();
        for access in self.assignments.iter().flat_map(Assignment::inputs) {
            *reads.entry(access.tensor.clone()).or_default() += 1;
        }
        reads
    }

    /// Returns how many products there are.
    pub(crate) fn products(&self) -> usize {
        self.assignments.iter().map(|assignment| assignment.summands.len()).sum()
    }
}

/// Reads an assignment, or the name of a kernel.
///
/// # Errors
///
/// A text that is neither.
pub(crate) fn parse(text: &str) -> Result<Assignment, Failure> {
    match text.contains(['=', '>']) {
        true => Ok(text.parse()?),
        false => Ok(kernels::parse(text)?.into()),
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.assignments.iter().map(ToString::to_string).collect();
        f.write_str(&texts.join("; "))
    }
}
