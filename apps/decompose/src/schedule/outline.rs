//! The outline of a schedule: its loops, its terms, and what is stored between them.

use std::iter::once;

use decompose_core::einsum::IndexSet;
use decompose_core::error::CoreError;
use decompose_core::path::{Source, term_text};
use decompose_core::schedule::{
    Intermediate, Loop, LoopNest, Over, Problem, Schedule, Step, TreeLevel, Visited, resolve,
};
use decompose_formats::stats::grouped;
use decompose_plot::{
    LoopKind, NestBuffer, NestFigure, NestNode, NetworkFigure, NetworkInput, NetworkTensor,
    NetworkTerm, TensorForm,
};

/// Returns the loops of `schedule`, its terms, and what is stored between them.
///
/// # Errors
///
/// [`CoreError::Illegal`] if the schedule breaks a rule.
pub(crate) fn nest_figure(problem: &Problem, schedule: &Schedule) -> Result<NestFigure, CoreError> {
    schedule.verify(problem)?;
    let outline = Outline { problem, schedule, nest: resolve(problem, schedule)? };
    Ok(NestFigure {
        title: problem.expr.to_string(),
        subtitle: schedule.path.display(&problem.expr).to_string().replace('\n', "; "),
        roots: outline.nodes(&outline.nest.roots, &mut Vec::new()),
        buffers: outline.buffers(),
    })
}

/// Returns the network of the expression, the tree of the contractions of `schedule`, and its loops.
///
/// # Errors
///
/// As [`nest_figure`].
pub(crate) fn network_figure(
    problem: &Problem,
    schedule: &Schedule,
) -> Result<NetworkFigure, CoreError> {
    let (expr, path) = (&problem.expr, &schedule.path);
    let tensors = expr.operand_names().into_iter().zip(&expr.inputs).enumerate();
    let tensors = tensors.map(|(input, (name, access))| NetworkTensor {
        name,
        indices: access.distinct().iter().map(ToString::to_string).collect(),
        form: match problem.sparse_place(input) {
            Some(_) => TensorForm::Sparse,
            None => TensorForm::Dense,
        },
    });
    let source = |source: &Source| match *source {
        Source::Input(input) => NetworkInput::Tensor(input),
        Source::Term(term) => NetworkInput::Term(term),
    };
    let terms = path.terms.iter().enumerate().map(|(at, term)| {
        let text = term_text(path, expr, at);
        let name = text.split_once(" = ").map_or(text.as_str(), |(name, _)| name).to_owned();
        NetworkTerm { name, inputs: term.inputs.iter().map(source).collect() }
    });
    Ok(NetworkFigure {
        tensors: tensors.collect(),
        kept: expr.output.indices.iter().map(ToString::to_string).collect(),
        terms: terms.collect(),
        nest: nest_figure(problem, schedule)?,
    })
}

struct Outline<'a> {
    problem: &'a Problem,
    schedule: &'a Schedule,
    nest: LoopNest,
}

impl Outline<'_> {
    fn nodes<'a>(&'a self, steps: &[Step], around: &mut Vec<&'a Loop>) -> Vec<NestNode> {
        let one = |step: &Step| match *step {
            Step::Term(term) => {
                let text = term_text(&self.schedule.path, &self.problem.expr, term);
                NestNode::Term(text.replacen(" = ", " += ", 1))
            }
            Step::Loop(number) => {
                let own = &self.nest.loops[number];
                let (kind, what) = self.kind(own);
                around.push(own);
                let count = self.iterations(around);
                let word = if count == 1 { "iteration" } else { "iterations" };
                let iterations = grouped(count);
                let body = self.nodes(&own.body, around);
                around.pop();
                let note = format!("{what}; {iterations} {word}");
                NestNode::Loop { index: own.index.to_string(), note, kind, body }
            }
        };
        steps.iter().map(one).collect()
    }

    /// How a loop runs.
    fn kind(&self, own: &Loop) -> (LoopKind, String) {
        let extent = grouped(self.problem.extents.of(own.index));
        let walked = |at: &Visited| {
            let TreeLevel { tree, level } = match *at {
                Visited::Level(at) => at,
                Visited::Buffer(term) => {
                    let name = self.schedule.path.name(&self.problem.expr, term);
                    return format!("marked cells of {name}");
                }
            };
            let x = &self.problem.sparse[tree];
            let name = &self.problem.expr.operand_names()[x.input];
            // Pieces are of the nodes of the next level, which alone is stored.
            let stored = self.problem.stored(&x.levels()[..level]).count() + 1;
            let pieces = self.problem.position_cut(x.levels()[level]).is_some();
            let pieces = if pieces { "pieces of " } else { "" };
            let kind = self.schedule.layouts[tree].format.kinds()[level].adjective();
            format!("{pieces}{kind}level {stored} of {name}")
        };
        match &own.over {
            Over::Coordinates { lead, located } => {
                let levels: Vec<String> = once(lead).chain(located).map(walked).collect();
                (LoopKind::Sparse, levels.join(" and "))
            }
            Over::Lanes => (LoopKind::Lanes, format!("0..{extent}")),
            Over::Extent => (LoopKind::Dense, format!("0..{extent}")),
        }
    }

    /// How often the innermost of the loops `around` runs its body; saturates.
    fn iterations(&self, around: &[&Loop]) -> u64 {
        let share = around.last().map_or(1.0, |own| own.share);
        if self.problem.sparse.len() > 1 || share < 1.0 {
            return around.last().map_or(1, |own| own.iterations.ceil() as u64);
        }
        let over_level = |own: &&&Loop| matches!(own.over, Over::Coordinates { .. });
        let (walked, dense): (Vec<&Loop>, Vec<&Loop>) = around.iter().partition(over_level);
        let walked: IndexSet = walked.iter().map(|own| own.index).collect();
        let nodes = self.problem.leader().map_or(1, |x| x.nodes(walked, &self.problem.extents));
        let extents = dense.iter().map(|own| self.problem.extents.of(own.index));
        extents.fold(nodes, u64::saturating_mul)
    }

    fn buffers(&self) -> Vec<NestBuffer> {
        let path = &self.schedule.path;
        let one = |Intermediate { buffer, .. }: &Intermediate| {
            let letters: Vec<String> = buffer.stored.iter().map(|i| i.to_string()).collect();
            Some(NestBuffer {
                name: path.name(&self.problem.expr, buffer.term),
                indices: letters.join(","),
                extents: buffer.stored.iter().map(|i| self.problem.extents.of(i)).collect(),
                bytes: self.problem.buffer_bytes(buffer.stored),
                producer: buffer.term,
                consumer: path.consumer(buffer.term)?,
            })
        };
        self.nest.buffers.iter().filter_map(one).collect()
    }
}

#[cfg(test)]
mod tests {
    use decompose_core::autoschedule::default_scheduler;
    use decompose_core::contract::Request;
    use decompose_core::cost::Machine;
    use decompose_core::kernels;
    use decompose_formats::PatternCounts;
    use decompose_plot::{LoopKind, NestNode};

    use super::nest_figure;

    #[test]
    fn loops_are_told_as_they_are_lowered() {
        let counts = PatternCounts::uniform(&[30, 20, 10], 900);
        let shapes = [vec![], vec![20, 16], vec![10, 16]];
        let request = Request::new(kernels::mttkrp(3, 0), 0, &counts, &shapes).unwrap();
        let problem = request.problem(&"1-2-3".parse().unwrap());
        let found = default_scheduler().search(&problem, Machine::here()).unwrap();
        let figure = nest_figure(&problem, &found.candidates[0].schedule).unwrap();
        let mut kinds = Vec::new();
        let mut nodes: Vec<&NestNode> = figure.roots.iter().collect();
        while let Some(node) = nodes.pop() {
            if let NestNode::Loop { index, note, kind, body } = node {
                kinds.push((index.as_str(), *kind));
                assert_eq!(note.contains("level"), *kind == LoopKind::Sparse, "{note}");
                nodes.extend(body);
            }
        }
        assert!(
            kinds.contains(&("i", LoopKind::Sparse)) && kinds.contains(&("r", LoopKind::Lanes))
        );
        assert_eq!(figure.buffers[0].label(), "T1: r, 16 elements, 128 B");
    }
}
