//! `decompose schedule --scheduler sparseauto`: its stages, its frontier, and the schedules of its rows.

use std::fs;

use ndarray::Array2;
use ndarray_npy::write_npy;
use serde_json::Value as Json;

use crate::common::{decompose, names};
use crate::schedule::{schedule, sun};

/// The kernel of SparseAuto's figure 2 on an assumed pattern.
pub(crate) const BRANCHED: &str = "A(l,m,n)=B(i,j,k)*C(i,l)*D(j,m)*E(k,n) --extents i=180,j=80,k=100 --nnz 9000 \
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
