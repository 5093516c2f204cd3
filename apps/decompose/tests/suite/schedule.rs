//! `decompose schedule`: what it tells, and what it refuses.

use std::fs;
use std::path::Path;

use serde_json::Value as Json;

use crate::common::{data, decompose, names};
use crate::frontier::BRANCHED;

/// Runs `decompose schedule`; it must succeed.  Returns both streams.
pub(crate) fn schedule(folder: &Path, words: &str) -> (String, String) {
    let mut command = decompose(folder);
    command.arg("schedule").args(words.split_whitespace());
    let output = command.assert().success().get_output().clone();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

/// Runs `decompose schedule`; it must refuse and say `expected`.
pub(crate) fn refuse(folder: &Path, words: &str, expected: &[&str]) {
    let mut command = decompose(folder);
    command.arg("schedule").args(words.split_whitespace());
    let output = command.assert().code(2).get_output().clone();
    let stderr = String::from_utf8(output.stderr).unwrap();
    for text in expected {
        assert!(stderr.contains(text), "`{words}` should say `{text}`:\n{stderr}");
    }
    assert!(output.stdout.is_empty(), "`{words}` wrote to standard output");
}

pub(crate) fn zones() -> String {
    format!("--tensor X={}", data("tz-transitions.tns.gz").display())
}

pub(crate) fn sun() -> String {
    format!("--tensor X={}", data("sun-elevation.tns.gz").display())
}

#[test]
fn kernels_are_explained_on_real_tensors() {
    let dir = tempfile::tempdir().unwrap();
    for kernel in ["mttkrp:4:2", "ttmc:4:1", "tttp:4", "tttc:4", "ttv:4:1"] {
        let (text, _) = schedule(dir.path(), &format!("{kernel} {} --rank 8", zones()));
        for word in ["19,686 non-zeros", "sparse", "predicted", "naive flops", "search   spttn"] {
            assert!(text.contains(word), "{kernel}: {word}: {text}");
        }
        assert!(text.contains("space covered") && text.contains("48 trees"), "{text}");
    }
}

#[test]
fn both_notations_and_an_assumed_pattern() {
    let dir = tempfile::tempdir().unwrap();
    let facts = "--extents i=100,j=200,k=300 --nnz 5000 --dense r=16 --tree 1-2-3";
    let (einsum, said) = schedule(dir.path(), &format!("ijk,jr,kr->ir {facts}"));
    let (taco, _) = schedule(dir.path(), &format!("Y(i,r)=X(i,j,k)*A(j,r)*B(k,r) {facts}"));
    let steady = |text: &str| -> String {
        text.lines().filter(|line| !line.starts_with("search")).collect()
    };
    assert_eq!(steady(&einsum), steady(&taco));
    assert_eq!(said.matches("spread evenly").count(), 1, "{said}");
}

#[test]
fn one_object_for_programs() {
    let dir = tempfile::tempdir().unwrap();
    let (text, _) = schedule(dir.path(), &format!("ttmc:3:1 {} -r 8 --json --all", sun()));
    let json: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(json["sparse"][0]["nnz"], 66576);
    assert_eq!(json["extents"]["s"], 8);
    assert_eq!(json["choice"]["how"], "predicted");
    assert_eq!(json["search"]["stop"], "complete");
    let candidates = json["candidates"].as_array().unwrap();
    let seconds = |at: usize| candidates[at]["predicted_seconds"].as_f64().unwrap();
    assert!(candidates.len() > 12);
    assert!((1..candidates.len()).all(|at| seconds(at - 1) <= seconds(at)));
}

#[test]
fn a_schedule_comes_back_from_its_text() {
    let dir = tempfile::tempdir().unwrap();
    for tree in ["auto", "3-1-2", "2-1+3"] {
        let words = format!("mttkrp:3:2 {} -r 16", sun());
        let (first, _) = schedule(dir.path(), &format!("{words} --tree {tree} --emit nest"));
        fs::write(dir.path().join("s.txt"), &first).unwrap();
        let (again, _) = schedule(dir.path(), &format!("{words} --schedule s.txt --emit nest"));
        assert_eq!(first, again);
        let (text, _) = schedule(dir.path(), &format!("{words} --schedule s.txt"));
        assert!(text.contains("given in s.txt"), "{text}");
    }
    let words = format!("mttkrp:3:1 {} -r 16", sun());
    let (ir, _) = schedule(dir.path(), &format!("{words} --emit ir"));
    assert!(ir.starts_with("program A1(i,r)") && ir.contains("over lanes r"), "{ir}");
    let (c, _) = schedule(dir.path(), &format!("{words} --emit c"));
    assert!(c.contains("#include") && c.contains("for ("), "{c}");
}

#[test]
fn an_illegal_schedule_is_refused_with_its_rule() {
    let dir = tempfile::tempdir().unwrap();
    let legal = "path X*A3 T1*A2\nnest i{ j{ k{ r{ T1 } } r{ T2 } } }\nlayout i j k\nbuffer dense\n\
                 parallel i position boundary\n";
    let cases: &[(&str, &str, &str)] = &[
        ("T1*A2", "T1*A3", "rule 1"),
        ("r{ T2 }", "r{ T1 }", "rule 2"),
        ("k{ r{ T1 } }", "k{ T1 }", "rule 3"),
        ("layout i j k", "layout i j", "rule 4"),
        ("layout i j k", "layout i k j", "rule 5"),
        ("parallel i", "parallel j", "rule 7"),
        ("buffer dense", "buffer sparse", "rule 10"),
        ("nest i{", "nest i", "needs a body"),
        ("path X*A3", "path X*A9", "there is no operand `A9`"),
        ("buffer dense", "colour red", "line 4 of the schedule"),
        ("position boundary", "position privatise split 4", "rule 10"),
        ("position boundary", "position maybe", "owner|boundary|privatise|positions"),
    ];
    let words = format!("mttkrp:3:1 {} -r 16 --schedule s.txt", sun());
    fs::write(dir.path().join("s.txt"), legal).unwrap();
    schedule(dir.path(), &words);
    for (from, to, expected) in cases {
        fs::write(dir.path().join("s.txt"), legal.replace(from, to)).unwrap();
        refuse(dir.path(), &words, &[expected, "s.txt"]);
    }
    // What a search may not choose, a user may.
    let wide = "path X*A3 T1*A2\nnest i{ j{ k{ r{ T1 } } } } i{ j{ r{ T2 } } }\nlayout i j k\n\
                buffer dense\nparallel i position boundary\n";
    fs::write(dir.path().join("s.txt"), wide).unwrap();
    let (text, _) = schedule(dir.path(), &words);
    assert!(text.contains("buffer T1: i,j,r, 19 × 73 × 16 elements"), "{text}");
    refuse(dir.path(), &format!("{words} --tree 1-2-3"), &["--tree"]);
}

#[test]
fn the_family_of_the_processor_can_be_named() {
    let dir = tempfile::tempdir().unwrap();
    let words = ["schedule", "mttkrp:3:1", "--nnz", "90", "--extents", "i=9,j=9,k=9", "-r", "64"];
    let on = |family: &str| {
        let mut command = decompose(dir.path());
        command.args(words).args(["--threads", "2", "--json"]).env("DECOMPOSE_MACHINE", family);
        command.assert()
    };
    let seconds = |family: &str| -> f64 {
        let shown = on(family).success().get_output().stdout.clone();
        let json: Json = serde_json::from_slice(&shown).unwrap();
        json["candidates"][0]["predicted_seconds"].as_f64().unwrap()
    };
    assert_ne!(seconds("Zen"), seconds("Xeon"));
    let warned = |family: &str| {
        let said = on(family).success().get_output().stderr.clone();
        String::from_utf8(said).unwrap().contains("kernels may be slower than they could be")
    };
    assert_eq!(["Zen", "Xeon", "Neutral"].map(warned), [false, false, true]);
    let refused = on("Pentium").code(2).get_output().stderr.clone();
    let refused = String::from_utf8(refused).unwrap();
    assert!(refused.contains("DECOMPOSE_MACHINE=Pentium names no family"), "{refused}");
}

#[test]
fn expressions_of_any_size_are_scheduled_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let extents: Vec<String> =
        "ijklmnopqstuvwxyzabcdefgh".chars().map(|i| format!("{i}=20")).collect();
    let facts = format!("--nnz 1000 -r 2 --extents {}", extents.join(","));
    for kernel in ["mttkrp:25:13", "ttmc:25:1", "tttp:25", "tttc:25"] {
        let (text, _) = schedule(dir.path(), &format!("{kernel} {facts}"));
        assert!(text.contains("greedy paths") || text.contains("work limit reached"), "{text}");
    }
}

#[test]
fn schedules_of_papers_are_judged_by_name() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["ttmc3-spttn", "ttmc3-sparseauto"] {
        let file = data(&format!("schedules/{name}.txt"));
        let words = format!("ttmc:3 {} -r 16 --schedule {}", sun(), file.display());
        let (text, _) = schedule(dir.path(), &words);
        assert!(text.contains("each thread has a copy of the output"), "{text}");
    }
}

#[test]
fn a_measured_choice_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let words = format!("ttmc:3:2 {} --threads 1 -r 4", sun());
    refuse(
        dir.path(),
        "mttkrp:2:1 --extents i=9,j=9 --nnz 9 -r 4 --scheduler measured",
        &["nothing was measured yet", "--tensor X=FILE"],
    );
    let figures = "--plot nest.svg --plot-race race";
    let measure = format!("{words} --measure --top 3 --budget 0.1 {figures}");
    let (text, said) = schedule(dir.path(), &measure);
    assert!(text.contains("measured  runs") && said.contains("keep     "), "{text}{said}");
    assert_eq!(names(dir.path()), ["nest.png", "nest.svg", "race.png", "race.svg"]);
    refuse(dir.path(), &measure, &["nest.svg", "--overwrite"]);
    let (text, _) = schedule(dir.path(), &format!("{words} --scheduler measured"));
    assert!(text.contains("measured earlier"), "{text}");
    let other = format!("{}5 --scheduler measured --budget 0.1", words.trim_end_matches('4'));
    let (text, said) = schedule(dir.path(), &other);
    assert!(!text.contains("measured earlier") && said.contains("measure  "), "{text}{said}");
}

#[test]
fn questions_that_make_no_sense() {
    let dir = tempfile::tempdir().unwrap();
    let x = sun();
    let cases: &[(String, &[&str])] = &[
        ("magic:3".into(), &["`magic` is no kernel", "mttkrp"]),
        ("ijk,jr,kr".into(), &["`ijk,jr,kr`"]),
        ("mttkrp:30:1 -r 4".into(), &["an order is between 1 and 25"]),
        ("Y(i)=X(i,j)+X(j,i)".into(), &["is not a single product", "a schedule is about one"]),
        ("Y(i)=X(i,_)*u(_)".into(), &["`_` is no index"]),
        ("spmv --extents _=3".into(), &["`_=3` is no index with its extent"]),
        (format!("{}->", ('a'..='z').collect::<String>()), &["26 modes", "up to 25 are supported"]),
        ("mttkrp:3:1 -r 4".into(), &["`i` has no extent", "--tensor X=FILE"]),
        ("spmv --extents i=3,j=3".into(), &["how many non-zeros has X?"]),
        ("spmv --extents i=3,j=3 --nnz 10".into(), &["9 cells, not 10", "give --nnz 9 at most"]),
        ("spmv --extents i=3,j=3 --nnz 0".into(), &["`0` is no number of non-zeros"]),
        (
            "Y(row)=X(row,col)*u(col) --extents row=3,col=3,i=4 --nnz 4".into(),
            &["no index `i`", "its indices are row, col"],
        ),
        ("Y(row)=X(row,col)*u(col) --extents row=3 --nnz 4".into(), &["index `col` has no extent"]),
        (format!("mttkrp:3:1 {x} -r 2 --extents i=73,j=19"), &["up to 19 x 73 x 48 for i, j, k"]),
        (
            "Y(i)=X(i,j)*a(j)*b(j)*c(j)*d(j)*e(j)*f(j) --extents i=3,j=3 --nnz 4 \
             --scheduler sparseauto --frontier"
                .into(),
            &["up to 6 operands", "`const` schedule more"],
        ),
        (
            "spmv --extents i=3,j=3 --nnz 4 --scheduler sparseauto --assume i<j --assume j<i"
                .into(),
            &["no sizes keep all ranges and assumptions", "leave out one"],
        ),
        ("spmv --extents i=3,j=3 --nnz 4 --scheduler sparseauto --row 1".into(), &["--emit"]),
        (
            "spmv --extents i=3,j=3 --nnz 4 --scheduler sparseauto --row 99 --emit nest".into(),
            &["there is no row 99", "--frontier lists"],
        ),
        (
            "spmv --extents i=3,j=3 --nnz 4 --plot nodir/x.svg".into(),
            &["there is no folder nodir", "make the folder first"],
        ),
        ("spmm --extents i=3,j=3 --nnz 4".into(), &["`r`", "--rank 16"]),
        ("spmv --extents i=3,j=3,q=2 --nnz 4".into(), &["no index `q`"]),
        ("spmv --extents i=3,j=3,j=4 --nnz 4".into(), &["3 in the options but to 4"]),
        ("spmv --extents i=0 --nnz 4".into(), &["`0` is no extent"]),
        (
            format!("mttkrp:3:1 --tensor Q={}", data("x").display()),
            &["no operand `Q`", "X, A2, A3"],
        ),
        (format!("spmv {x}"), &["is of order 3 but X(i,j) has 2 indices"]),
        (format!("mttkrp:3:1 {x} -r 2 --extents i=5"), &["runs to 19 in", "but to 5"]),
        (format!("mttkrp:3:1 {x} -r 2 --tree 2-1"), &["does not list each of the 3 modes"]),
        (format!("mttkrp:3:1 {x} -r 2 --tree 2-1-1"), &["`2-1-1` is no tree"]),
        (
            format!("mttkrp:3:1 {x} -r 2 --scheduler magic"),
            &["spttn, exhaustive, scorch, const, sparseauto, partition, const-z3 or measured"],
        ),
        (format!("mttkrp:3:1 {x} -r 2 --schedule absent"), &["cannot read absent"]),
        (format!("mttkrp:3:1 {x} -r 2 --budget soon --measure"), &["is no time"]),
        ("spmv --extents i=3,j=3 --nnz 4 --frontier".into(), &["add --scheduler sparseauto"]),
        ("spmv --extents i=3,j=3 --nnz 4 --smt z3".into(), &["add --scheduler sparseauto"]),
        (
            "spmv --extents i=3,j=3 --nnz 4 --scheduler sparseauto --range q=1:2".into(),
            &["no index `q`; the indices are i, j"],
        ),
        (
            "spmv --extents i=3,j=3 --nnz 4 --scheduler sparseauto --range i=2:1".into(),
            &["ends before it begins"],
        ),
        (
            "spmv --extents i=3,j=3 --nnz 4 --scheduler sparseauto --stage 6".into(),
            &["`6` is no stage"],
        ),
        ("spmv --extents i=3,j=3 --nnz 4 --measure".into(), &["--measure runs", "--tensor X=FILE"]),
    ];
    for (words, expected) in cases {
        refuse(dir.path(), words, expected);
    }
    // The last slices of a file without a header may be empty.
    let (text, _) = schedule(dir.path(), &format!("mttkrp:3:1 {x} -r 2 --extents i=25"));
    assert!(text.contains("25 x 73 x 48"), "{text}");
}

#[test]
fn a_figure_that_cannot_be_written_costs_no_answer() {
    let dir = tempfile::tempdir().unwrap();
    // A folder stands where the file is to go.
    fs::create_dir(dir.path().join("f.svg")).unwrap();
    fs::write(dir.path().join("f.svg").join("kept"), "").unwrap();
    for option in ["--plot", "--plot-frontier"] {
        let mut command = decompose(dir.path());
        let words = format!("{BRANCHED} --frontier {option} f.svg --overwrite");
        command.arg("schedule").args(words.split_whitespace());
        let output = command.assert().code(3).get_output().clone();
        let text = String::from_utf8(output.stdout).unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("stages choose") && said.contains("a figure is missing"), "{said}");
    }
}

#[test]
fn no_more_candidates_are_measured_than_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    for scheduler in ["const", "spttn"] {
        let words = format!(
            "mttkrp:3:1 {} -r 4 --scheduler {scheduler} --measure --top 2 --budget 0.01 --json",
            sun()
        );
        let told: Json = serde_json::from_str(&schedule(dir.path(), &words).0).unwrap();
        assert_eq!(told["candidates"].as_array().unwrap().len(), 2, "{scheduler}");
    }
}

#[test]
fn an_operand_has_one_file() {
    let dir = tempfile::tempdir().unwrap();
    let twice = sun() + " " + &sun();
    refuse(dir.path(), &format!("Y(i)=X(i,j,k) {twice}"), &["`X` is given twice"]);
}

#[test]
fn a_kernel_that_runs_once_pays_for_its_trees() {
    let dir = tempfile::tempdir().unwrap();
    let words = format!("mttkrp:3:2 {} --rank 8 --json", sun());
    let of = |words: &str| {
        let told: Json = serde_json::from_str(&schedule(dir.path(), words).0).unwrap();
        told["candidates"][0]["storing_seconds"].as_f64().unwrap()
    };
    assert_eq!(of(&words), 0.0);
    assert!(of(&format!("{words} --once")) > 0.0);
}
