//! A run that was stopped and resumed is the run that was not, bit by bit.

use std::ops::ControlFlow;

use decompose_common::checkpoint::CheckpointRule;
use decompose_tt::{Method, Ranks, SolverError, Start, TtConfig, saved_history, solve};

use crate::common;

fn config(method: Method, max_iters: usize) -> TtConfig {
    let ranks = match method {
        Method::Als => Ranks::Each(vec![3, 4]),
        _ => Ranks::Error { eps: 0.3, max_rank: Some(6) },
    };
    let mut config = TtConfig::new(method, ranks);
    config.stop.max_iters = max_iters;
    config.stop.tol = 0.0;
    config
}

#[test]
fn resumed_runs_end_in_the_same_train() {
    let coo = common::sparse(&[9, 8, 7], 0.4, 6);
    for method in [Method::Als, Method::Dmrg] {
        let whole = common::run(&coo, Start::Random, &config(method, 7)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let rule = CheckpointRule::new(folder.path(), 2);
        let mut first = config(method, 7);
        first.checkpoint = Some(rule);
        let mut kernels = common::compiled(&coo, &first).unwrap();
        let stopped = solve(&mut kernels, Start::Random, &first, &mut |record| {
            if record.iteration == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(stopped.unwrap().best().iterations, 3);
        let start = Start::Checkpoint(folder.path().to_owned());
        let resumed = common::run(&coo, start, &config(method, 7)).unwrap();
        assert_eq!(resumed.train, whole.train, "{method}");
        assert_eq!(resumed.history.len(), 7);
        let fits = |history: &[decompose_common::history::IterationRecord]| {
            history.iter().map(|record| record.fit).collect::<Vec<f64>>()
        };
        assert_eq!(fits(&resumed.history), fits(&whole.history));
        let saved = saved_history(folder.path(), method, 3).unwrap();
        assert_eq!(fits(&saved), fits(&whole.history)[..3]);
    }
}

#[test]
fn other_options_and_tensors_are_refused() {
    let coo = common::sparse(&[9, 8, 7], 0.4, 6);
    let folder = tempfile::tempdir().unwrap();
    let mut first = config(Method::Als, 2);
    first.checkpoint = Some(CheckpointRule::new(folder.path(), 1));
    common::run(&coo, Start::Random, &first).unwrap();
    let refused = |coo: &decompose_formats::Coo<f64>, config: &TtConfig| {
        let start = Start::Checkpoint(folder.path().to_owned());
        common::run(coo, start, config).unwrap_err()
    };
    let seed = TtConfig { seed: 1, ..config(Method::Als, 3) };
    let ranks = TtConfig { ranks: Ranks::Each(vec![3, 3]), ..config(Method::Als, 3) };
    for (config, message) in [(seed, "seed"), (ranks, "ranks"), (config(Method::Dmrg, 3), "method")]
    {
        let error = refused(&coo, &config);
        assert!(matches!(error, SolverError::Start { .. }), "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
    let other = common::sparse(&[9, 8, 7], 0.4, 5);
    let error = refused(&other, &config(Method::Als, 3)).to_string();
    assert!(error.contains("norm of the tensor"), "{error}");
    let nowhere = Start::Checkpoint(folder.path().join("none"));
    assert!(common::run(&coo, nowhere, &config(Method::Als, 3)).is_err());
}
