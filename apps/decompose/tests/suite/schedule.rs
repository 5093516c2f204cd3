//! `decompose schedule`: what it tells, and what it refuses.

use std::fs;
use std::path::Path;

use ndarray::Array2;
use ndarray_npy::write_npy;
use serde_json::Value as Json;

use crate::common::{data, decompose, names};

/// Runs `decompose schedule`; it must succeed.  Returns both streams.
fn schedule(folder: &Path, words: &str) -> (String, String) {
    let mut command = decompose(folder);
    command.arg("schedule").args(words.split_whitespace());
    let output = command.assert().success().get_output().clone();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

/// Runs `decompose schedule`; it must refuse and say `expected`.
fn refuse(folder: &Path, words: &str, expected: &[&str]) {
    let mut command = decompose(folder);
    command.arg("schedule").args(words.split_whitespace());
    let output = command.assert().code(2).get_output().clone();
    let stderr = String::from_utf8(output.stderr).unwrap();
    for text in expected {
        assert!(stderr.contains(text), "`{words}` should say `{text}`:\n{stderr}");
    }
    assert!(output.stdout.is_empty(), "`{words}` wrote to standard output");
}

fn zones() -> String {
    format!("--tensor X={}", data("tz-transitions.tns.gz").display())
}

fn sun() -> String {
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
        ("i position", "i coordinate", "rule 10"),
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

/// The kernel of SparseAuto's figure 2 on an assumed pattern.
const BRANCHED: &str = "A(l,m,n)=B(i,j,k)*C(i,l)*D(j,m)*E(k,n) --extents i=180,j=80,k=100 --nnz 9000 \
                        --dense l=64,m=16,n=32 --tree 1-2-3 --scheduler sparseauto";

#[test]
fn the_stages_of_sparseauto_are_told_and_drawn() {
    let dir = tempfile::tempdir().unwrap();
    let (text, _) = schedule(dir.path(), &format!("{BRANCHED} --frontier --plot-frontier f.svg"));
    for word in [
        "search   sparseauto",
        "stage            nests",
        "5 accesses ",
        "stages choose",
        "model chooses",
        "l*m*n*nnz(B_ij)",
        "i, ",
        "<t",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert_eq!(names(dir.path()), ["f.png", "f.svg"]);
    let stars = text.lines().filter(|line| line.starts_with('*')).count();
    assert_eq!(stars, 1, "{text}");
    // More is known, and less is left.
    let points = |words: &str| {
        let (text, _) = schedule(dir.path(), &format!("{BRANCHED} --frontier {words}"));
        let line = text.lines().find(|line| line.starts_with("3 frontier")).unwrap().to_owned();
        line.split_whitespace().nth(3).unwrap().parse::<usize>().unwrap()
    };
    let known =
        "--range l=60:70 --range m=16 --range n=32 --range sparsity=0.001:0.01 --assume 3*n<k";
    assert!(points(known) <= points(""), "{text}");
    // The first two stages leave depths, with the nests that the summary counts.
    let left = |stage: &str| {
        let (text, _) = schedule(dir.path(), &format!("{BRANCHED} --stage {stage}"));
        assert!(!text.contains("3 frontier") && !text.contains("marks: "), "{text}");
        let rows = text.lines().skip_while(|line| !line.contains("loops  dims  nests")).skip(1);
        let number = |row: &str| row.split_whitespace().last().unwrap().parse::<u128>().unwrap();
        let rows: Vec<u128> = rows.take_while(|row| !row.is_empty()).map(number).collect();
        let name = if stage == "1" { "1 memory" } else { "2 depths" };
        let counted = text.lines().find(|line| line.starts_with(name)).unwrap();
        let counted = counted.split_whitespace().nth(2).unwrap().parse::<u128>().unwrap();
        assert_eq!(rows.iter().sum::<u128>(), counted, "{text}");
        rows.len()
    };
    assert!(left("1") > left("2") && left("2") > 0);
    // Buffers of fewer dimensions are fewer nests from stage 1 on.
    let nests = |words: &str| {
        let (text, _) = schedule(dir.path(), &format!("{BRANCHED} --json {words}"));
        let told: Json = serde_json::from_str(&text).unwrap();
        told["stages"]["stages"][1]["nests"].as_u64().unwrap()
    };
    assert!(nests("--max-buffer-dims 1") < nests("--max-buffer-dims 2"));
    assert_eq!(nests("--max-buffer-dims 2"), nests(""));
}

#[test]
fn the_choice_of_the_stages_is_measured_beside_that_of_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let facts = sun().replace("X=", "B=") + " --dense l=6,m=5,n=4 --threads 1";
    let words = format!(
        "A(l,m,n)=B(i,j,k)*C(i,l)*D(j,m)*E(k,n) {facts} --scheduler sparseauto --measure --top 1 \
         --budget 0.05"
    );
    let (text, _) = schedule(dir.path(), &words);
    let measured = text.lines().filter(|line| line.ends_with(" s measured")).count();
    assert_eq!(measured, 2, "{text}");
    assert!(text.contains(" right: 0.") || text.contains(" right: 1."), "{text}");
    let (text, _) = schedule(dir.path(), &format!("{words} --json"));
    let told: Json = serde_json::from_str(&text).unwrap();
    let stages = &told["stages"];
    assert_eq!(stages["stages"].as_array().unwrap().len(), 6);
    assert!(stages["stages"][0]["nests"].as_u64().unwrap() > 1_000_000);
    let frontier = stages["frontier"].as_array().unwrap();
    let left = frontier.iter().filter(|point| point["passed"].as_u64() >= Some(3)).count();
    assert_eq!(stages["stages"][3]["costs"], left);
    for point in frontier {
        for text in ["time", "memory", "nest"] {
            assert!(!point[text].as_str().unwrap().is_empty(), "{point}");
        }
        assert!(point["iterations"].as_f64().unwrap() > 0.0, "{point}");
    }
    let chosen = stages["stages_choice"]["point"].as_u64().unwrap() as usize;
    assert_eq!(frontier[chosen]["passed"], 5);
    assert_eq!(stages["agree"], false);
    for choice in ["stages_choice", "model_choice"] {
        let own = &stages[choice];
        assert!(own["measured_seconds"].as_f64().unwrap() > 0.0, "{own}");
        let candidate = &told["candidates"][own["candidate"].as_u64().unwrap() as usize];
        assert_eq!(own["measured_seconds"], candidate["measured_seconds"]);
    }
}

#[test]
fn all_nests_are_ranked_where_all_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let words = "A(i,l)=B(i,j)*C(j,k)*D(k,l) --extents i=40,j=50 --nnz 300 --dense k=8,l=8 --tree 1-2 \
                 --scheduler sparseauto --json --max-buffer-dims 4 --max-buffer-bytes 1G";
    let count = |words: &str| {
        let told: Json = serde_json::from_str(&schedule(dir.path(), words).0).unwrap();
        let all = told["stages"]["stages"][0]["nests"].as_u64().unwrap() as usize;
        (told["candidates"].as_array().unwrap().len(), all)
    };
    let (some, all) = count(words);
    assert!(some < all, "{some} of {all}");
    assert_eq!(count(&format!("{words} --all")), (all, all));
}

#[test]
fn a_solver_is_asked_the_comparisons_of_stage_3() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = decompose(dir.path());
    command.arg("schedule").args(BRANCHED.split_whitespace()).args(["--smt", "z3"]);
    let output = command.assert().get_output().clone();
    let said = String::from_utf8(output.stderr).unwrap();
    if said.contains("there is no such program") {
        eprintln!("skipped: there is no program z3");
        return;
    }
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.contains("comparisons agree")).expect("a line");
    let numbers = line.split([':', ' ']).filter_map(|word| word.parse::<usize>().ok());
    let numbers: Vec<usize> = numbers.collect();
    let [.., agreed, pairs, open] = numbers[..] else { panic!("{line}") };
    assert!(agreed + open == pairs && agreed > 0, "{line}");
}

#[test]
fn the_nest_that_sparseauto_prints_comes_back_with_directives() {
    let dir = tempfile::tempdir().unwrap();
    let directives = "path B*C*D*E\nnest l{ m{ n{ i{ j{ k{ T1 } } } } } }\nloopfuse loc=2 pol=true\n\
                      reorder path={1} order={m,k,n,j}\nloopfuse path={1} loc=2 pol=true\n\
                      layout i j k\nbuffer dense\nbuffer dense\nparallel i position privatise\n";
    fs::write(dir.path().join("s.txt"), directives).unwrap();
    let words =
        BRANCHED.replace("--tree 1-2-3 --scheduler sparseauto", "--schedule s.txt --emit nest");
    let (text, _) = schedule(dir.path(), &words);
    assert!(text.contains("nest     l{ i{ j{ k{ T1 } } } m{ k{ j{ T2 } n{ T3 } } } }"), "{text}");
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
             --scheduler sparseauto"
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
            &["spttn, exhaustive, scorch, const, sparseauto, const-z3 or measured"],
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

/// An order of levels beats the other one in a row of the frontier.
#[test]
fn the_frontier_covers_all_trees_and_has_the_choice_of_the_model() {
    let dir = tempfile::tempdir().unwrap();
    let words = "Y(i,r)=X(i,j)*B(j,k)*C(k,r) --extents i=5000,j=40 --nnz 9000 --dense k=30,r=20 \
                 --scheduler sparseauto --json";
    let told =
        |words: &str| -> Json { serde_json::from_str(&schedule(dir.path(), words).0).unwrap() };
    let all = told(words);
    let rows = |told: &Json| told["stages"]["frontier"].as_array().unwrap().clone();
    let number = |row: &Json, key: &str| row[key].as_f64().unwrap();
    let frontier: Vec<Json> = rows(&all).into_iter().filter(|row| row["beaten"] == false).collect();
    let mut trees: Vec<&str> = frontier.iter().map(|row| row["tree"].as_str().unwrap()).collect();
    trees.sort_unstable();
    trees.dedup();
    assert_eq!(trees, ["1-2", "2-1"]);
    for tree in ["1-2", "2-1"] {
        for row in rows(&told(&format!("{words} --tree {tree}"))) {
            let covered = frontier.iter().any(|one| {
                number(one, "iterations") <= number(&row, "iterations")
                    && number(one, "elements") <= number(&row, "elements")
            });
            assert!(covered || row["model"] == true, "{row}");
        }
    }
    let model: Vec<Json> = rows(&all).into_iter().filter(|row| row["model"] == true).collect();
    let [model] = model.as_slice() else { panic!("{model:?}") };
    assert_eq!(model["schedule"], all["candidates"][0]["schedule"]);
    assert_eq!(model["tree"], all["candidates"][0]["tree"]);
}

#[test]
fn each_row_of_the_frontier_runs() {
    let dir = tempfile::tempdir().unwrap();
    let text: String = (0..60_u64)
        .map(|at| format!("{} {} {} {}\n", at % 7 + 1, at % 6 + 1, at / 12 + 1, at % 5 + 1))
        .collect::<std::collections::BTreeSet<String>>()
        .into_iter()
        .collect();
    fs::write(dir.path().join("x.tns"), text).unwrap();
    for (name, rows, columns) in [("b.npy", 6, 3), ("c.npy", 5, 4)] {
        let array = Array2::from_shape_fn((rows, columns), |(row, c)| ((row + c) % 4) as f64);
        write_npy(dir.path().join(name), &array).unwrap();
    }
    let expr = "Y(i,r,s)=X(i,j,k)*B(j,r)*C(k,s)";
    let words = format!(
        "{expr} --tensor X=x.tns --dense r=3,s=4 --extents i=7,j=6,k=5 --scheduler sparseauto"
    );
    let told: Json =
        serde_json::from_str(&schedule(dir.path(), &format!("{words} --json")).0).unwrap();
    let rows = told["stages"]["frontier"].as_array().unwrap();
    assert!(rows.len() > 2, "{rows:?}");
    let run = |more: &str, out: &str| {
        let mut command = decompose(dir.path());
        let words = format!(
            "--tensor X=x.tns --tensor B=b.npy --tensor C=c.npy {more} --out {out} --overwrite"
        );
        command.arg("einsum").arg(expr).args(words.split_whitespace());
        command.assert().success();
        fs::read(dir.path().join(out)).unwrap()
    };
    let want = run("", "y.npy");
    for (at, row) in rows.iter().enumerate() {
        assert_eq!(row["row"], at + 1);
        let emit = format!("{words} --emit nest --row {}", at + 1);
        let (nest, _) = schedule(dir.path(), &emit);
        assert_eq!(nest.trim_end(), row["schedule"].as_str().unwrap().trim_end());
        fs::write(dir.path().join("row.txt"), nest).unwrap();
        // Small whole numbers are summed up without rounding.
        assert_eq!(run("--schedule row.txt", "row.npy"), want, "{row}");
    }
}

#[test]
fn sizes_are_named_in_full_and_checked_against_the_tensor() {
    let dir = tempfile::tempdir().unwrap();
    let words = "Y(row,r)=X(row,col)*B(col,r) --extents row=50,col=60 --nnz 90 --dense r=4 \
                 --scheduler sparseauto";
    let (text, said) = schedule(
        dir.path(),
        &format!("{words} --range row=50:500 --range col=60:60 --assume row<col"),
    );
    assert!(text.contains("a = row, b = col") && !said.contains("warning"), "{text}{said}");
    let (_, said) = schedule(dir.path(), &format!("{words} --range row=5:20 --assume col<row"));
    for word in ["--range row=5:20 leaves out", "where it is 50", "\"col<row\" does not hold"] {
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn a_tensor_that_is_multiplied_with_itself_has_its_own_coordinates() {
    let dir = tempfile::tempdir().unwrap();
    let words = "Y(i)=X(i,j)*X(i,j)*u(j) --extents i=100,j=200 --nnz 500 --json";
    let told: Json = serde_json::from_str(&schedule(dir.path(), words).0).unwrap();
    assert_eq!(told["sparse"].as_array().unwrap().len(), 2);
    let last = told["terms"].as_array().unwrap().last().unwrap();
    assert!(last["iterations"].as_u64().unwrap() >= 50, "{last}");
    let all: Vec<u64> = told["terms"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["iterations"].as_u64().unwrap())
        .collect();
    assert!(all.contains(&500), "{all:?}");
    let (text, _) = schedule(dir.path(), words.trim_end_matches(" --json"));
    let line = text.lines().find(|line| line.starts_with("result")).unwrap();
    let estimated: u64 = line.split_whitespace().nth(2).unwrap().parse().unwrap();
    assert!((90..=100).contains(&estimated), "{line}");
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
