//! Studies of every command: their plans, their runs and their reports.

use std::fs;
use std::path::Path;

use crate::common::{json, names};
use crate::experiment::{kill_after, run, table, timeless};

/// A study of all commands that fit no CP model.
const COMMANDS: &str = r#"
seeds = [1, 2]
timed = false

[tensors.made]
generate = "low-rank"
dims = [12, 10, 8]
nnz = 300
rank = 2
seed = 4

[tensors.flat]
generate = "uniform"
dims = [30, 20]
nnz = 200

[[runs]]
command = "complete"
tensors = ["made"]
options = { max-iters = 5, threads = 1, no-plots = true, split = "0.8,0.1,0.1" }
grid = { rank = [1, 2], reg = [0.01, 0.1] }

[[runs]]
command = "tucker"
tensors = ["made"]
options = { max-iters = 5, threads = 1, no-plots = true }
grid = { ranks = ["2,2,2", "3,3,3"], method = ["hooi", "hosvd"] }

[[runs]]
command = "tt"
tensors = ["made"]
options = { max-iters = 5, threads = 1, no-plots = true }
grid = { ranks = ["2,2", "3,3"] }

[[runs]]
command = "einsum"
tensors = ["flat"]
expression = "Y(i,j) = X(i,k) * B(j,k)"
operands = { B = "b.tns" }
grid = { scheduler = ["spttn", "scorch"], precision = ["f64", "f32"] }

[[runs]]
name = "norm"
command = "einsum"
tensors = ["flat"]
expression = "s() = X(i,k) * X(i,k)"

[[runs]]
command = "schedule"
tensors = ["made"]
expression = "mttkrp:3:1"
zip = [{ rank = [4, 8], top = [1, 2] }]
"#;

/// Writes the study and the other operand of its products.
fn write(folder: &Path) {
    fs::write(folder.join("study.toml"), COMMANDS).unwrap();
    fs::write(folder.join("b.tns"), "1 1 2\n7 20 3\n").unwrap();
}

/// Reads the record of the run whose folder's name begins with `begin`.
fn folder_of(runs: &Path, begin: &str) -> std::path::PathBuf {
    let found: Vec<String> =
        names(runs).into_iter().filter(|name| name.starts_with(begin)).collect();
    assert_eq!(found.len(), 1, "{begin}: {found:?}");
    runs.join(&found[0])
}

#[test]
fn every_command_is_planned_run_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    let (code, said, told) = run(dir.path(), "experiment run study.toml --dry-run");
    assert_eq!(code, 0, "{told}");
    let line = |group: &str| said.lines().find(|line| line.starts_with(group)).unwrap();
    for group in ["complete ", "tucker ", "tt "] {
        assert!(line(group).contains("MiB"), "{group}: {said}");
    }
    assert!(line("complete ").contains('?') && !line("tt ").contains('?'), "{said}");
    assert!(line("einsum ").matches('?').count() == 2, "{said}");
    assert!(said.contains("no forecast for runs of einsum, norm, schedule"), "{said}");
    assert!(said.contains("no forecast of seconds for runs of complete"), "{said}");
    let (code, said, told) = run(dir.path(), "experiment run study.toml --out s --jobs 2");
    assert!(code == 0 && said.contains("27 of 27 runs finished, 0 failed"), "{said}{told}");
    let runs = dir.path().join("s/runs");
    // What the plan foresees is what the run foresees when it has read the tensor.
    let told: f64 = line("tt ").split_whitespace().nth_back(1).unwrap().parse().unwrap();
    let record = json(&folder_of(&runs, "tt-made-ranks3x3-seed1").join("run.json"));
    let foreseen = record["memory"]["predicted_peak"].as_f64().unwrap() / f64::from(1 << 20);
    assert!((told / foreseen - 1.0).abs() < 0.2, "{told} MiB in the plan, {foreseen} in the run");
    let product = folder_of(&runs, "einsum-flat-schedulerspttn-precisionf64");
    assert_eq!(names(&product), ["log.txt", "outcome.json", "result.dtb"]);
    let norms: Vec<String> =
        names(&runs).into_iter().filter(|name| name.starts_with("einsum-flat-")).collect();
    let norm = norms.iter().find(|name| !name.contains("scheduler")).unwrap();
    let printed = fs::read_to_string(runs.join(norm).join("output.txt")).unwrap();
    assert!(printed.starts_with("s() = "), "{printed}");
    let schedule = json(&folder_of(&runs, "schedule-made-rank8-top2").join("schedule.json"));
    assert!(schedule["candidates"].as_array().is_some_and(|all| !all.is_empty()));
    assert_eq!(run(dir.path(), "experiment report s").0, 0);
    let report = dir.path().join("s/report");
    let rows = table(&report.join("runs.csv"));
    assert_eq!(rows.len(), 27);
    let of = |group: &str| rows.iter().filter(|row| row["group"] == group).collect::<Vec<_>>();
    for row in of("complete") {
        assert!(row["measure"] == "test RMSE" && !row["quality"].is_empty(), "{row:?}");
    }
    for group in ["einsum", "norm", "schedule"] {
        assert!(of(group).iter().all(|row| row["state"] == "finished"), "{group}");
    }
    let predicted = schedule["candidates"][0]["predicted_seconds"].as_f64().unwrap();
    let told = of("schedule").into_iter().find(|row| row["rank"] == "8").unwrap();
    assert_eq!(told["predicted_seconds"].parse::<f64>().unwrap(), predicted);
    for stem in ["fit-by-rank-made", "test-rmse-by-rank-made", "convergence-made", "memory"] {
        assert!(report.join(format!("{stem}.svg")).is_file(), "{stem}: {:?}", names(&report));
    }
}

#[test]
fn a_killed_study_of_any_command_goes_on_to_the_same_report() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    assert_eq!(run(dir.path(), "experiment run study.toml -o whole --jobs 2").0, 0);
    let begun = || dir.path().join("part/study.json").exists();
    for wait in [50, 300, 150, 500, 80, 400] {
        let mut words = vec!["experiment", "run", "study.toml", "-o", "part"];
        words.extend(begun().then_some("--resume"));
        kill_after(dir.path(), &words, wait);
    }
    let resume = if begun() { "--resume" } else { "" };
    let (code, _, told) = run(dir.path(), &format!("experiment run study.toml -o part {resume}"));
    assert_eq!(code, 0, "{told}");
    assert_eq!(names(&dir.path().join("part/runs")), names(&dir.path().join("whole/runs")));
    for study in ["whole", "part"] {
        assert_eq!(run(dir.path(), &format!("experiment report {study}")).0, 0);
    }
    let report = |study: &str| dir.path().join(study).join("report");
    assert_eq!(timeless(&report("whole")), timeless(&report("part")));
    let result = |study: &str| {
        let runs = dir.path().join(study).join("runs");
        fs::read(folder_of(&runs, "einsum-flat-schedulerscorch-precisionf32").join("result.dtb"))
    };
    assert!(result("whole").unwrap() == result("part").unwrap());
}

#[test]
fn a_dry_run_finds_what_the_commands_refuse() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    fs::write(dir.path().join("c.tns"), "1 1 1 2\n").unwrap();
    fs::write(dir.path().join("short.map"), "one\n").unwrap();
    // What no tensor is needed for is a mistake in the file, and stands at its line.
    let product = "expression = \"Y(i,j) = X(i,k) * B(j,k)\"\n";
    let cases = [
        ("operands = { B = \"b.tns\" }\n", "", "operand `B` of", "--tensor B=FILE"),
        ("{ B = \"b.tns\" }", "{ B = \"none.tns\" }", "`B`: there is no file", "paths begin"),
        ("{ B = \"b.tns\" }", "{ Q = \"b.tns\" }", "has no operand `Q`", "operands are X, B"),
        (
            "zip = [{ rank = [4, 8], top = [1, 2] }]",
            "options = { rank = 4, frontier = true }",
            "`frontier`: ",
            "--scheduler sparseauto",
        ),
        ("grid = { ranks = [\"2,2\", \"3,3\"] }", "", "no ranks given", "--eps 0.1"),
    ];
    for (from, to, what, help) in cases {
        assert!(COMMANDS.contains(from), "{from}");
        fs::write(dir.path().join("study.toml"), COMMANDS.replace(from, to)).unwrap();
        let (code, _, told) = run(dir.path(), "experiment run study.toml --dry-run");
        assert!(code == 2 && told.contains(what) && told.contains(help), "{to}: {told}");
        assert!(told.contains("study.toml:") && told.contains(" | "), "{to}: {told}");
    }
    // What depends on a tensor is told in the plan, and the other runs are sound.
    let cases = [
        ("[\"2,2,2\", \"3,3,3\"]", "[\"2,2\", \"3,3,3\"]", "4 runs of tucker on made", "2 ranks"),
        ("[\"2,2,2\", \"3,3,3\"]", "[\"2,2,9\"]", "4 runs of tucker on made", "its extent 8"),
        (
            "grid = { ranks = [\"2,2\", \"3,3\"] }",
            "grid = { eps = [0, 0.5] }",
            "2 runs of tt",
            "eps is 0",
        ),
        ("{ B = \"b.tns\" }", "{ B = \"c.tns\" }", "4 runs of einsum on flat", "B(j,k) has 2"),
        (
            product,
            "expression = \"Y(i,j) = X(i,k,l) * B(j,k)\"\n",
            "4 runs of einsum",
            "of order 2",
        ),
        ("mttkrp:3:1", "mttkrp:4:1", "2 runs of schedule on made", "of order 3"),
        (
            "seed = 4\n",
            "seed = 4\nlabels = \"2=short.map\"\n",
            "8 runs of complete",
            "1 line for 10",
        ),
    ];
    for (from, to, what, why) in cases {
        assert!(COMMANDS.contains(from), "{from}");
        fs::write(dir.path().join("study.toml"), COMMANDS.replacen(from, to, 1)).unwrap();
        let (code, said, told) = run(dir.path(), "experiment run study.toml --dry-run");
        let line = said.lines().find(|line| line.starts_with(what)).unwrap_or_default();
        assert!(code == 3 && line.contains(why), "{to}: {said}{told}");
    }
}

#[test]
fn a_product_is_computed_again() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path());
    let begin = COMMANDS.find("[[runs]]\ncommand = \"complete\"").unwrap();
    let product = COMMANDS.find("[[runs]]\ncommand = \"einsum\"").unwrap();
    let text = format!("{}{}", &COMMANDS[..begin], &COMMANDS[product..]);
    fs::write(dir.path().join("study.toml"), text).unwrap();
    assert_eq!(run(dir.path(), "experiment run study.toml --out s").0, 0);
    let runs = dir.path().join("s/runs");
    let product = folder_of(&runs, "einsum-flat-schedulerspttn-precisionf64");
    let again = |words: &str| run(dir.path(), &format!("rerun {} {words}", product.display()));
    let (code, said, told) = again("");
    assert!(code == 0 && said.contains("result.dtb, bit by bit"), "{said}{told}");
    let (code, ..) = again("--out kept");
    assert!(code == 0 && dir.path().join("kept/result.dtb").is_file());
    // A result that the command does not give is told from it.
    let other = folder_of(&runs, "einsum-flat-schedulerspttn-precisionf32");
    fs::copy(other.join("result.dtb"), product.join("result.dtb")).unwrap();
    let (code, _, told) = again("");
    assert!(code == 1 && told.contains("result.dtb differs"), "{told}");
    assert_eq!(again("--tolerance 1e-5").0, 0);
    let norm = names(&runs)
        .into_iter()
        .find(|name| name.starts_with("einsum-flat-") && !name.contains("scheduler"));
    let (code, said, told) = run(dir.path(), &format!("rerun s/runs/{}", norm.unwrap()));
    assert!(code == 0 && said.contains("output.txt, bit by bit"), "{said}{told}");
    let schedule = folder_of(&runs, "schedule-made-rank8-top2");
    let (code, _, told) = run(dir.path(), &format!("rerun {}", schedule.display()));
    assert!(code == 2 && told.contains("a run of schedule, which is not repeated"), "{told}");
    // Figures of courses leave out what has none, and draw the others.
    let cp = "cp s/tensors/*/made.dtb --rank 2 --max-iters 3 --threads 1 --no-plots --out cp";
    let tensor = names(&dir.path().join("s/tensors"))
        .into_iter()
        .find(|folder| dir.path().join("s/tensors").join(folder).join("made.dtb").is_file());
    assert_eq!(run(dir.path(), &cp.replace('*', &tensor.unwrap())).0, 0);
    let words = format!("plot {} cp --out figures", product.display());
    let (code, said, told) = run(dir.path(), &words);
    assert!(code == 3 && told.contains("a run of einsum, which has no iterations"), "{told}");
    assert!(said.contains("figures/convergence.svg"), "{said}");
    let (code, _, told) = run(dir.path(), &format!("plot {} --out none", product.display()));
    assert!(code == 2 && told.contains("a run of einsum"), "{told}");
}

#[test]
fn only_iterations_are_drawn_as_iterations() {
    let dir = tempfile::tempdir().unwrap();
    let study = "baseline = \"cp\"\n\
                 [tensors.small]\ngenerate = \"low-rank\"\ndims = [12, 10, 8]\nnnz = 200\nrank = 2\n\
                 [tensors.large]\ngenerate = \"low-rank\"\ndims = [14, 10, 8]\nnnz = 400\nrank = 2\n\
                 [tensors.other]\ngenerate = \"uniform\"\ndims = [12, 10, 8]\nnnz = 300\n\
                 [[runs]]\ncommand = \"cp\"\n\
                 options = { rank = 2, max-iters = 4, tol = 0, nonneg = true, threads = 1, no-plots = true }\n\
                 [[runs]]\ncommand = \"tt\"\noptions = { eps = 0.5, threads = 1, no-plots = true }\n";
    fs::write(dir.path().join("study.toml"), study).unwrap();
    let (code, _, told) = run(dir.path(), "experiment run study.toml --out s");
    assert_eq!(code, 0, "{told}");
    assert_eq!(run(dir.path(), "experiment report s").0, 0);
    let report = dir.path().join("s/report");
    let rows = table(&report.join("convergence-small.csv"));
    assert!(rows.iter().all(|row| row["curve"] == "cp"), "{rows:?}");
    // A line joins tensors of one recipe; the others are points.
    let names_of = |rows: &[std::collections::BTreeMap<String, String>]| {
        rows.iter().map(|row| row["curve"].clone()).collect::<Vec<_>>()
    };
    let rows = table(&report.join("time-by-nonzeros.csv"));
    assert_eq!(names_of(&rows), ["cp", "cp, low-rank, rank 2", "cp, low-rank, rank 2"]);
    let page = fs::read_to_string(report.join("report.html")).unwrap();
    let entries: Vec<&str> = page.matches("<li><a href=\"#").collect();
    let titles: Vec<&str> = page.split("<li><a href=\"#").skip(1).collect();
    let titles: std::collections::BTreeSet<&str> =
        titles.iter().map(|rest| rest.split(['>', '<']).nth(1).unwrap()).collect();
    assert_eq!(titles.len(), entries.len());
    // No iteration of a truncation is compared: its group has no bar and no name in the legend.
    assert!(!report.join("speed-up.svg").exists() || !page.contains("tt</text>"));
}

#[test]
fn a_report_without_results_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let study = "[tensors.made]\ngenerate = \"low-rank\"\ndims = [12, 10, 8]\nnnz = 300\n\
                 [[runs]]\ncommand = \"tucker\"\noptions = { ranks = \"9,9,9\", threads = 1 }\n";
    fs::write(dir.path().join("study.toml"), study).unwrap();
    let (code, said, _) = run(dir.path(), "experiment run study.toml --out s");
    assert!(code == 3 && said.contains("0 of 1 run finished, 1 failed"), "{said}");
    let (code, _, told) = run(dir.path(), "experiment report s");
    assert!(code == 3 && told.contains("all runs failed"), "{told}");
    let page = fs::read_to_string(dir.path().join("s/report/report.html")).unwrap();
    assert!(page.contains("No run has a result") && !page.contains("<h2>Figures"), "{page}");
}

#[test]
fn measurements_are_a_part_of_a_report() {
    let dir = tempfile::tempdir().unwrap();
    let study = "[tensors.made]\ngenerate = \"uniform\"\ndims = [12, 10, 8]\nnnz = 300\n\
                 [[runs]]\ncommand = \"bench\"\n\
                 options = { what = \"ingest\", patience = 0.1 }\n\
                 grid = { threads = [1, 2] }\n";
    fs::write(dir.path().join("study.toml"), study).unwrap();
    let (code, said, told) = run(dir.path(), "experiment run study.toml --out s");
    assert!(code == 0 && said.contains("no forecast for runs of bench"), "{said}{told}");
    assert_eq!(run(dir.path(), "experiment report s").0, 0);
    let report = dir.path().join("s/report");
    let page = fs::read_to_string(report.join("report.html")).unwrap();
    for stem in ["bench-bench-made", "bench-bench-made-2"] {
        assert!(page.contains(&format!("id=\"{stem}\"")), "{stem}");
        let csv = fs::read_to_string(report.join(format!("{stem}.csv"))).unwrap();
        assert!(csv.contains(",read,"), "{csv}");
    }
    // A mistake stands where it is made.
    fs::write(dir.path().join("study.toml"), study.replace("[1, 2]", "[1, 0]")).unwrap();
    let (code, _, told) = run(dir.path(), "experiment run study.toml --out other");
    assert!(code == 2 && told.contains("study.toml:8"), "{told}");
}

#[test]
fn results_of_other_programs_stand_beside_the_runs() {
    let dir = tempfile::tempdir().unwrap();
    let study = "baseline = \"other\"\npeers = \"peers.csv\"\nrepeats = 3\n\
                 [tensors.made]\ngenerate = \"low-rank\"\ndims = [12, 10, 8]\nnnz = 300\nrank = 2\n\
                 [[runs]]\ncommand = \"cp\"\n\
                 options = { max-iters = 4, tol = 0, threads = 1, no-plots = true }\n\
                 grid = { rank = [2, 3] }\n";
    let peers = "program,tensor,rank,threads,quantity,value,lowest,highest,fit\n\
                 other,made,2,1,iteration,0.5,0.25,1,0.75\n\
                 other,made,3,1,iteration,0.5,,,\n\
                 slow,made,2,1,iteration,2,1,4,\n\
                 slow,made,2,1,mttkrp,9,,,\n";
    fs::write(dir.path().join("study.toml"), study).unwrap();
    fs::write(dir.path().join("peers.csv"), peers).unwrap();
    let (code, _, told) = run(dir.path(), "experiment run study.toml --out s");
    assert_eq!(code, 0, "{told}");
    assert_eq!(run(dir.path(), "experiment report s").0, 0);
    let report = dir.path().join("s/report");
    let rows = table(&report.join("speed-up.csv"));
    let slow: Vec<_> = rows.iter().filter(|row| row["group"] == "slow").collect();
    let numbers = ["speed_up", "low", "high"].map(|name| slow[0][name].parse::<f64>().unwrap());
    assert_eq!((slow.len(), numbers), (1, [0.25, 0.125, 0.5]));
    // Each run against the other program, by medians and quartiles.
    let of_runs: Vec<_> = rows.iter().filter(|row| row["group"] == "cp").collect();
    assert_eq!(of_runs.len(), 2);
    let summary = table(&report.join("summary.csv"));
    for row in of_runs {
        let rank = row["settings"].strip_prefix("rank ").unwrap();
        let own = summary.iter().find(|of| of["group"] == "cp" && of["rank"] == rank).unwrap();
        let seconds = own["iteration_seconds"].parse::<f64>().unwrap();
        let speed_up = row["speed_up"].parse::<f64>().unwrap();
        assert!((speed_up * seconds / 0.5 - 1.0).abs() < 1e-9, "{row:?} {own:?}");
    }
    let other = summary.iter().find(|row| row["group"] == "other" && row["rank"] == "2").unwrap();
    assert_eq!((other["quality"].as_str(), other["runs"].as_str()), ("0.75", "1"));
    let cases = [
        (study.replace("\"other\"", "\"none\""), peers.to_owned(), "is called `none`"),
        (study.to_owned(), peers.replace("made", "maid"), "there is no [tensors.maid]"),
        (study.to_owned(), peers.replace("iteration", "spmv"), "no row has the quantity"),
        (study.to_owned(), peers.replace("0.5", "fast"), "peers.csv: line 2: value 6: invalid"),
        (study.to_owned(), peers.replace("threads,", ""), "there is no column `threads`"),
        (study.to_owned(), peers.replace(",1,4,\n", ",1\n"), "line 4: 7 values, but"),
        (study.replace("peers.csv", "none.csv"), peers.to_owned(), "none.csv: "),
    ];
    for (study, peers, what) in cases {
        fs::write(dir.path().join("study.toml"), study).unwrap();
        fs::write(dir.path().join("peers.csv"), peers).unwrap();
        let (code, _, told) = run(dir.path(), "experiment run study.toml --out t");
        assert!(code == 2 && told.contains(what), "{what}: {told}");
    }
}
