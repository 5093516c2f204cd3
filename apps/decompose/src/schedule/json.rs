//! A schedule for programs.

use decompose_core::autoschedule::StopReason;
use decompose_core::contract::RaceTime;
use decompose_core::path::term_text;
use decompose_core::schedule::InferredLevel;
use decompose_formats::Value;
use decompose_plot::NestBuffer;
use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::schedule::choose::{How, Pick, Selection};
use crate::schedule::describe::{Expected, expected};
use crate::schedule::input::ScheduleInput;
use crate::schedule::outline::nest_figure;
use crate::schedule::system;

/// Returns everything that `decompose schedule` tells as one object.
pub(crate) fn plan<V: Value>(
    input: &ScheduleInput<V>,
    plan: &Selection,
    threads: usize,
) -> Result<Json, Failure> {
    let request = &input.request;
    let extents: serde_json::Map<String, Json> = request
        .expr
        .all()
        .iter()
        .map(|index| (index.to_string(), json!(request.extents.of(index))))
        .collect();
    let report = plan.report.as_ref().map(|report| {
        json!({
            "scheduler": report.scheduler,
            "breadth": report.breadth.to_string(),
            "trees": plan.trees,
            "paths": report.paths,
            "pruned": report.pruned,
            "explored": report.explored,
            "seconds": report.seconds,
            "stop": stop(report.stop),
            "constraints": report.solved.map(|solved| json!({
                "bound": solved.bound,
                "seconds": solved.seconds,
                "solutions": solved.solutions,
                "gain": solved.gain,
            })),
        })
    });
    let operands = request.sparse.iter().zip(&input.sources);
    let sparse: Vec<Json> = operands
        .map(|(x, (nnz, source))| {
            let operand = &request.expr.inputs[x.input].tensor;
            json!({ "operand": operand, "nnz": nnz, "source": source })
        })
        .collect();
    let race = match &plan.how {
        How::Measured(race) => Some(race),
        _ => None,
    };
    let time = |at: usize| race.and_then(|race| race.times.get(at).copied().flatten());
    let candidates: Vec<Json> =
        plan.picks.iter().enumerate().map(|(at, one)| pick(one, time(at))).collect();
    let (how, seconds) = match &plan.how {
        How::Predicted => ("predicted", None),
        How::Measured(race) => ("measured", race.times[race.winner].map(|t| t.median_seconds)),
        How::Kept(_, seconds) => ("kept", Some(*seconds)),
        How::Given(_) => ("given", None),
    };
    Ok(json!({
        "expression": request.expr.to_string(),
        "extents": extents,
        "sparse": sparse,
        "result": expected(&input.request).map(result),
        "threads": threads,
        "precision": V::NAME,
        "search": report,
        "choice": { "how": how, "candidate": plan.chosen, "measured_seconds": seconds },
        "terms": terms(plan.choice()),
        "buffers": buffers(plan.choice())?,
        "candidates": candidates,
        "constraints": system::json(plan.choice()),
    }))
}

fn result(expected: Expected) -> Json {
    let Expected { estimated, counted, levels, form } = expected;
    let level = |level: &InferredLevel| json!({ "index": level.index.to_string(), "kind": level.kind.word() });
    let levels: Vec<Json> = levels.iter().map(level).collect();
    json!({ "estimated": estimated, "counted": counted, "levels": levels, "form": form.word() })
}

fn stop(stop: StopReason) -> &'static str {
    match stop {
        StopReason::Complete => "complete",
        StopReason::Enough => "enough",
        StopReason::PathLimit => "path-limit",
        StopReason::OperandLimit => "operand-limit",
        StopReason::Work => "work-limit",
    }
}

fn pick(pick: &Pick, time: Option<RaceTime>) -> Json {
    let cost = &pick.cost;
    json!({
        "tree": pick.trees_typed(),
        "schedule": pick.schedule.text(&pick.problem.expr),
        "predicted_seconds": pick.seconds,
        "core_seconds": cost.seconds,
        "storing_seconds": pick.storing,
        "flops": cost.flops,
        "gathered_bytes": cost.gathered_bytes,
        "streamed_bytes": cost.streamed_bytes,
        "buffer_elements": cost.buffer_elements,
        "buffer_dims": cost.buffer_dims,
        "private_bytes": pick.side_bytes,
        "measured_seconds": time.map(|time| time.median_seconds),
        "runs": time.map(|time| time.runs),
    })
}

fn terms(pick: &Pick) -> Vec<Json> {
    let path = &pick.schedule.path;
    let term = |at: usize| {
        let iterations = pick.problem.iterations(path.terms[at].indices);
        json!({
            "term": term_text(path, &pick.problem.expr, at),
            "loops": path.terms[at].indices.len(),
            "iterations": iterations,
            "flops": iterations as f64 * path.terms[at].inputs.len() as f64,
        })
    };
    (0..path.terms.len()).map(term).collect()
}

fn buffers(pick: &Pick) -> Result<Vec<Json>, Failure> {
    let figure = nest_figure(&pick.problem, &pick.schedule)?;
    let one = |buffer: &NestBuffer| {
        json!({
            "name": buffer.name,
            "indices": buffer.indices,
            "extents": buffer.extents,
            "bytes": buffer.bytes,
        })
    };
    Ok(figure.buffers.iter().map(one).collect())
}
