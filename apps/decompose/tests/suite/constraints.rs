//! `decompose schedule --scheduler const`: its system, and the networks that it draws.

use std::fs;

use serde_json::Value as Json;

use crate::common::decompose;
use crate::schedule::{schedule, sun};

#[test]
fn a_solver_that_is_absent_is_named_with_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let words = "mttkrp:3:1 --extents i=30,j=20,k=10 --nnz 900 -r 8 --scheduler const-z3";
    let mut command = decompose(dir.path());
    command.arg("schedule").args(words.split_whitespace()).env("PATH", "/no/such/folder");
    let output = command.assert().code(2).get_output().clone();
    let stderr = String::from_utf8(output.stderr).unwrap();
    for word in ["z3 cannot be asked", "no such program in PATH", "apt-get install z3"] {
        assert!(stderr.contains(word), "{word}: {stderr}");
    }
    if decompose_core::autoschedule::smt::solver().is_none() {
        eprintln!("skipped: no z3, which would be asked for a schedule");
        return;
    }
    let (text, _) = schedule(dir.path(), words);
    for word in ["search   const-z3", "l = 1 solved in ", "constraints           l = 1: "] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn networks_are_drawn_with_their_tree() {
    let dir = tempfile::tempdir().unwrap();
    let words = "F(k,i,m)=I(u,v,k)*C(v,i)*P(u,m) --extents u=40,v=40,k=80,i=12,m=40 --nnz 9000 \
                 --scheduler const --plot n.svg";
    let (_, said) = schedule(dir.path(), words);
    assert!(said.contains("n.svg") && said.contains("n.png"), "{said}");
    let svg = fs::read_to_string(dir.path().join("n.svg")).unwrap();
    for word in ["Network", "Contraction tree", "sparse tensor", "F(k,i,m)"] {
        assert!(svg.contains(word), "{word}");
    }
}

#[test]
fn constraints_are_printed_with_their_solution() {
    let dir = tempfile::tempdir().unwrap();
    let words = format!("mttkrp:3:2 {} -r 16", sun());
    let searched = format!("{words} --scheduler const");
    let (text, _) = schedule(dir.path(), &searched);
    for word in
        ["constraints           l = 1: ", " constraints; solved in ", "assignment ", "the best "]
    {
        assert!(text.contains(word), "{word}: {text}");
    }
    let (json, _) = schedule(dir.path(), &format!("{searched} --json"));
    let json: Json = serde_json::from_str(&json).unwrap();
    assert!(json["search"]["constraints"]["gain"].as_f64().unwrap() >= 1.0);
    assert!(json["constraints"]["solved"]["variables"].as_u64().unwrap() > 0);
    // Which solution is the best depends on the processor; a given one has the same system everywhere.
    let given = "path X*A3 T1*A1\nnest i{ j{ k{ r{ T1 } } r{ T2 } } }\nlayout i j k\nbuffer dense\n\
                 parallel i position privatise\n";
    fs::write(dir.path().join("given.txt"), given).unwrap();
    let (system, _) = schedule(dir.path(), &format!("{words} --schedule given.txt --emit system"));
    for word in ["18 variables, ", ", l = 1\n", "ap0 < ap1\n", "0 <= dp_X_2 < 3\n"] {
        assert!(system.contains(word), "{word}: {system}");
    }
    let (json, _) = schedule(dir.path(), &format!("{words} --schedule given.txt --json"));
    let json: Json = serde_json::from_str(&json).unwrap();
    let system = serde_json::json!({ "bound": 1, "variables": 18, "constraints": 46 });
    assert_eq!(json["constraints"]["solved"], system);
    assert_eq!(json["constraints"]["kept"]["bound"], 1);
    let last = &json["constraints"]["solution"][1];
    assert_eq!(last["loops"], serde_json::json!(["i", "j", "r"]));
    let (smt, _) = schedule(dir.path(), &format!("{words} --schedule given.txt --emit smt"));
    assert_eq!(smt.matches("(declare-const ").count(), 18, "{smt}");
    assert!(smt.contains("(assert (< |ap0| |ap1|))") && smt.contains("(check-sat)"), "{smt}");
}
