//! Figures of schedules: loop nests, networks, races and frontiers.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod common;

use decompose_plot::{
    Frontier, FrontierMark, FrontierTime, LoopKind, NestBuffer, NestFigure, NestNode,
    NetworkFigure, NetworkInput, NetworkTensor, NetworkTerm, Race, RaceCandidate, TensorForm, save,
};
use tempfile::tempdir;

use common::{check, svg_words};

/// Returns a loop over a sparse level.
fn sparse(index: &str, body: Vec<NestNode>) -> NestNode {
    let (index, note) = (index.to_owned(), "183 nodes".to_owned());
    NestNode::Loop { index, note, kind: LoopKind::Sparse, body }
}

/// Returns MTTKRP in two terms with the first mode's loop fused.
fn mttkrp() -> NestFigure {
    let first = NestNode::Term("T1(r) += X(i,j,k) * C(k,r)".to_owned());
    let last = NestNode::Term("Y(i,r) += T1(r) * B(j,r)".to_owned());
    let buffer = NestBuffer {
        name: "T1".to_owned(),
        indices: "r".to_owned(),
        extents: vec![50],
        bytes: 400,
        producer: 0,
        consumer: 1,
    };
    NestFigure {
        title: "MTTKRP".to_owned(),
        subtitle: "rank 50".to_owned(),
        roots: vec![sparse("i", vec![sparse("j", vec![sparse("k", vec![first]), last])])],
        buffers: vec![buffer],
    }
}

#[test]
fn nests_show_loops_terms_and_buffers() {
    let words = [
        "MTTKRP",
        "rank 50",
        "sparse loop",
        "183 nodes",
        "T1(r) += X(i,j,k) * C(k,r)",
        "Y(i,r) += T1(r) * B(j,r)",
        "T1: r, 50 elements, 400 B",
    ];
    check(&mttkrp(), &words);
}

/// The network of a transformed integral, with the loops of an MTTKRP.
fn network() -> NetworkFigure {
    let tensor = |name: &str, indices: &str, form| NetworkTensor {
        name: name.to_owned(),
        indices: indices.chars().map(String::from).collect(),
        form,
    };
    let term = |name: &str, inputs: [NetworkInput; 2]| NetworkTerm {
        name: name.to_owned(),
        inputs: inputs.to_vec(),
    };
    let (of, made) = (NetworkInput::Tensor, NetworkInput::Term);
    NetworkFigure {
        tensors: vec![
            tensor("Int", "uvK", TensorForm::Sparse),
            tensor("C", "vi", TensorForm::Dense),
            tensor("P", "um", TensorForm::Sparse),
        ],
        kept: ["K", "i", "m"].map(String::from).to_vec(),
        terms: vec![term("T1(K,i,u)", [of(0), of(1)]), term("F(K,i,m)", [made(0), of(2)])],
        nest: mttkrp(),
    }
}

#[test]
fn networks_show_tensors_indices_and_the_tree_above_the_nest() {
    let words =
        ["Network", "Contraction tree", "Int", "C", "P", "u", "v", "K", "T1(K,i,u)", "F(K,i,m)"];
    check(&network(), &words);
    check(
        &network(),
        &["MTTKRP", "sparse tensor", "dense tensor", "index of the result", "buffer"],
    );
}

#[test]
fn broken_networks_are_refused_with_a_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let refuse = |figure: &NetworkFigure, words: &str| {
        let error = save(figure, dir.path(), "network").unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    };
    refuse(&NetworkFigure::default(), "give one or more of each");
    for broken in [NetworkInput::Tensor(3), NetworkInput::Term(1)] {
        let mut figure = network();
        figure.terms[1].inputs[0] = broken;
        refuse(&figure, "`F(K,i,m)` reads what is not there");
    }
}

#[test]
fn labels_of_buffers_give_indices_extents_and_bytes() {
    #[track_caller]
    fn check(indices: &str, extents: &[u64], bytes: u64, label: &str) {
        let (name, indices, extents) = ("T1".to_owned(), indices.to_owned(), extents.to_vec());
        let buffer = NestBuffer { name, indices, extents, bytes, producer: 0, consumer: 1 };
        assert_eq!(buffer.label(), label);
    }
    check("", &[], 8, "T1: scalar, 1 element, 8 B");
    check("r", &[1], 4, "T1: r, 1 element, 4 B");
    check("s,r", &[16, 50], 6400, "T1: s,r, 16 × 50 elements, 6.25 KiB");
}

#[test]
fn broken_nests_are_refused_with_a_remedy() {
    #[track_caller]
    fn refuse(figure: &NestFigure, words: &str) {
        let error = save(figure, tempdir().unwrap().path(), "nest").unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
    refuse(&NestFigure::default(), "no term; give one or more");
    let mut figure = mttkrp();
    figure.roots.push(sparse("m", Vec::new()));
    refuse(&figure, "loop `m` repeats nothing");
    for (producer, consumer) in [(1, 1), (1, 0), (0, 2), (0, usize::MAX)] {
        let mut figure = mttkrp();
        figure.buffers[0] = NestBuffer { producer, consumer, ..figure.buffers[0].clone() };
        refuse(&figure, "buffer `T1` runs from term");
    }
}

/// Returns the race of these pairs of predicted and measured seconds.
fn race(seconds: &[(f64, f64)], chosen: Option<usize>) -> Race {
    let candidate = |(at, pair): (usize, &(f64, f64))| RaceCandidate {
        label: format!("nest {at}"),
        predicted_seconds: pair.0,
        measured_seconds: pair.1,
    };
    let candidates = seconds.iter().enumerate().map(candidate).collect();
    Race { title: "uber".to_owned(), candidates, chosen }
}

#[test]
fn races_name_the_chosen_and_the_fastest() {
    let seconds = [(0.02, 0.010), (0.01, 0.012), (0.04, 0.050), (0.03, f64::NAN)];
    let words = [
        "3 candidates, 1 left out",
        "chosen: nest 1",
        "10.0 ms predicted, 12.0 ms measured, 1.20 × the fastest",
        "fastest measured: nest 0",
        "other candidates",
        "rank correlation ρ = 0.50",
    ];
    check(&race(&seconds, Some(1)), &words);
    check(&race(&seconds, Some(0)), &["chosen and fastest: nest 0"]);
    check(&race(&seconds, Some(3)), &["chosen: nest 3", "30.0 ms predicted, – measured"]);
    let error = save(&race(&seconds, Some(4)), tempdir().unwrap().path(), "race").unwrap_err();
    assert!(error.to_string().contains("candidate 5 of 4 is chosen"), "{error}");
    let error = save(&race(&[], None), tempdir().unwrap().path(), "race").unwrap_err();
    assert!(error.to_string().contains("give one or more"), "{error}");
}

#[test]
fn frontiers_name_the_chosen_cost() {
    let figure = |costs: &[(f64, f64)], chosen| {
        let mark = |(at, &(time, elements)): (usize, &(f64, f64))| FrontierMark {
            label: format!("nest {at}"),
            elements,
            time,
        };
        let marks = costs.iter().enumerate().map(mark).collect();
        Frontier { title: "A(i,l)".to_owned(), marks, chosen, ..Frontier::default() }
    };
    let costs = [(1e6, 64.0), (4e6, 1.0), (9e6, 0.0), (f64::INFINITY, 2.0), (5.0, f64::NAN)];
    let words = [
        "3 pairs of time and memory, 2 left out without numbers; no buffer is drawn at 0.5",
        "chosen: nest 1",
        "1.00 elements",
        "other nests",
    ];
    check(&figure(&costs, Some(1)), &words);
    check(&figure(&costs[..1], Some(0)), &["1 pair of time and memory"]);
    // A single number of elements stands on an axis of whole numbers.
    let alone = svg_words(&figure(&[(1e6, 1.0), (2e6, 1.0)], Some(0)));
    assert!(alone.contains(&"10".to_owned()), "{alone:?}");
    assert!(!alone.iter().any(|word| word.starts_with("0.")), "{alone:?}");
    // A point has the number of its place, whatever is left out before it.
    let places = [(9e6, 64.0), (f64::NAN, 1.0), (1e6, 300.0)];
    let numbers = svg_words(&figure(&places, Some(0)));
    assert!(numbers.contains(&"3".to_owned()), "{numbers:?}");
    let measured = Frontier { time: FrontierTime::Seconds, ..figure(&costs, Some(1)) };
    check(&measured, &["3 loop nests, 2 left out", "measured time (s)", "other nests"]);
    let folder = tempdir().unwrap();
    let error = save(&figure(&costs, Some(5)), folder.path(), "frontier").unwrap_err();
    assert!(error.to_string().contains("cost 6 of 5 is chosen"), "{error}");
    let error = save(&figure(&costs[3..], None), folder.path(), "frontier").unwrap_err();
    assert!(error.to_string().contains("give one or more"), "{error}");
}
