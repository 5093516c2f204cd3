//! Studies: many runs from one file, their reports, and runs that are repeated.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::common::{cp, data, decompose, json, names};

/// A study of many quick runs: two groups, of which one fails at a rank.
const STUDY: &str = r#"
title = "A <study> & its runs"
seeds = "0:2"

[tensors.sun]
file = "SUN"

[tensors.made]
generate = "low-rank"
dims = [12, 10, 8]
nnz = 300
rank = 3

[[runs]]
command = "cp"
options = { max-iters = 12, tol = 0, threads = 1, no-plots = true }
grid = { rank = [1, 2, 3] }

[[runs]]
name = "cut"
command = "tucker"
tensors = ["made"]
options = { max-iters = 3, threads = 1, no-plots = true }
grid = { ranks = ["2,2,2", "2,2,900"] }
"#;

/// Writes a study into `folder` and returns its name.
fn study(folder: &Path, text: &str) -> &'static str {
    let sun = data("sun-elevation.tns.gz");
    fs::write(folder.join("study.toml"), text.replace("SUN", sun.to_str().unwrap())).unwrap();
    "study.toml"
}

/// Runs the program; returns exit code, standard output and standard error.
pub(crate) fn run(folder: &Path, words: &str) -> (i32, String, String) {
    let output = decompose(folder).args(words.split_whitespace()).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Runs the program and kills it after some milliseconds.
pub(crate) fn kill_after(folder: &Path, words: &[&str], milliseconds: u64) {
    let mut killed = Command::new(assert_cmd::cargo::cargo_bin("decompose"))
        .args(words)
        .current_dir(folder)
        .env("DECOMPOSE_CACHE", folder.join("cache"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    sleep(Duration::from_millis(milliseconds));
    killed.kill().unwrap();
    killed.wait().unwrap();
}

/// Reads a table: by the name of the column, row by row.
pub(crate) fn table(path: &Path) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(path).unwrap();
    let cells = |line: &str| -> Vec<String> {
        let (mut cells, mut quoted) = (vec![String::new()], false);
        for letter in line.chars() {
            match letter {
                '"' => quoted = !quoted,
                ',' if !quoted => cells.push(String::new()),
                letter => cells.last_mut().unwrap().push(letter),
            }
        }
        cells
    };
    let heads = cells(text.lines().next().unwrap());
    let row = |line: &str| heads.iter().cloned().zip(cells(line)).collect();
    text.lines().skip(1).map(row).collect()
}

/// Returns what a report says, but for seconds and memory.
pub(crate) fn timeless(report: &Path) -> Vec<Vec<String>> {
    let kept = |name: &str| !name.ends_with("_seconds") && !name.ends_with("_bytes");
    let row = |row: BTreeMap<String, String>| {
        row.into_iter().filter(|(name, _)| kept(name)).map(|(_, value)| value).collect()
    };
    table(&report.join("runs.csv")).into_iter().map(row).collect()
}

#[test]
fn the_report_says_what_the_runs_say() {
    let dir = tempfile::tempdir().unwrap();
    study(dir.path(), STUDY);
    let (code, said, told) = run(dir.path(), "experiment run study.toml --out s");
    assert_eq!(code, 3, "{told}");
    assert!(said.contains("21 of 24 runs finished, 3 failed"), "{said}");
    assert!(told.contains("failed: "), "{told}");
    let (code, said, told) = run(dir.path(), "experiment report s");
    assert_eq!(code, 0, "{told}");
    assert_eq!(said.trim(), "s/report/report.html");
    let report = dir.path().join("s/report");
    let rows = table(&report.join("runs.csv"));
    assert_eq!(rows.len(), 24);
    for row in &rows {
        let folder = dir.path().join("s/runs").join(&row["folder"]);
        if row["ranks"] == "2,2,900" {
            assert_eq!(row["state"], "failed");
            assert!(!folder.join("run.json").exists() && folder.join("log.txt").is_file());
            continue;
        }
        let record = json(&folder.join("run.json"));
        let number = |name: &str| row[name].parse::<f64>().unwrap();
        assert_eq!(number("quality"), record["result"]["fit"].as_f64().unwrap());
        assert_eq!(number("error"), record["result"]["relative_error"].as_f64().unwrap());
        assert_eq!(number("iterations"), record["result"]["iterations"].as_f64().unwrap());
        assert_eq!(number("solve_seconds"), record["result"]["solver_seconds"].as_f64().unwrap());
        assert_eq!(number("peak_bytes"), record["memory"]["actual_peak"].as_f64().unwrap());
        assert_eq!(number("seed"), record["options"]["seed"].as_f64().unwrap());
        let log = fs::read_to_string(folder.join("log.txt")).unwrap();
        assert!(log.contains("decompose ") && log.contains("at the peak"), "{log}");
    }
    // The median of three fits is the one in the middle.
    let summary = table(&report.join("summary.csv"));
    assert_eq!(summary.len(), 7);
    for line in &summary {
        let same = |row: &&BTreeMap<String, String>| {
            ["group", "tensor", "rank", "ranks"].iter().all(|name| row[*name] == line[*name])
        };
        let mut fits: Vec<f64> =
            rows.iter().filter(same).map(|row| row["quality"].parse().unwrap()).collect();
        fits.sort_by(f64::total_cmp);
        assert_eq!(line["quality"].parse::<f64>().unwrap(), fits[1]);
        let low = line["quality_low"].parse::<f64>().unwrap();
        assert!((low - (fits[0] + fits[1]) / 2.0).abs() < 1e-15, "{low}");
    }
    let page = fs::read_to_string(report.join("report.html")).unwrap();
    assert!(page.contains("A &lt;study&gt; &amp; its runs") && !page.contains("<study>"));
    // It needs no network: the only address is the name of SVG.
    let addresses = page.matches("://").count();
    assert_eq!(addresses, page.matches("http://www.w3.org/2000/svg").count());
    for figure in
        ["fit-by-rank-sun", "convergence-sun", "pareto-made", "time-by-rank-sun", "memory"]
    {
        assert!(page.contains(&format!("id=\"{figure}\"")), "{figure}");
        assert!(report.join(format!("{figure}.csv")).is_file(), "{figure}");
    }
    let latex = fs::read_to_string(report.join("summary.tex")).unwrap();
    assert_eq!(latex.matches("\\\\\n").count(), 8, "{latex}");
    let (code, ..) = run(dir.path(), "experiment report s --format md --style paper");
    assert_eq!(code, 0);
    let page = fs::read_to_string(report.join("report.md")).unwrap();
    assert!(page.contains("## Failures") && page.contains("](convergence-sun-a.svg)"), "{page}");
    let figure = fs::read_to_string(report.join("fit-by-rank-sun.svg")).unwrap();
    assert!(figure.contains("width=\"88.5") && figure.contains("mm\""), "{}", &figure[..200]);
}

#[test]
fn finished_runs_are_never_repeated() {
    let dir = tempfile::tempdir().unwrap();
    study(dir.path(), STUDY);
    assert_eq!(run(dir.path(), "experiment run study.toml -o s").0, 3);
    let folder = dir.path().join("s/runs");
    let stamp = |name: &str| fs::metadata(folder.join(name)).unwrap().modified().unwrap();
    let before: Vec<_> = names(&folder).into_iter().map(|name| (stamp(&name), name)).collect();
    let (code, _, told) = run(dir.path(), "experiment run study.toml -o s");
    assert!(code == 2 && told.contains("--resume"), "{told}");
    let (code, said, _) = run(dir.path(), "experiment run study.toml -o s --resume");
    assert!(code == 3 && said.contains("nothing is left to do"), "{said}");
    assert!(before.iter().all(|(time, name)| stamp(name) == *time));
    // What is new is run; what is left out is not reported.
    study(dir.path(), &STUDY.replace("[1, 2, 3]", "[2, 4]").replace(", \"2,2,900\"", ""));
    let (code, said, _) = run(dir.path(), "experiment run study.toml -o s --resume");
    assert!(code == 0 && said.contains("6 runs to make"), "{said}");
    assert!(before.iter().all(|(time, name)| stamp(name) == *time));
    assert_eq!(run(dir.path(), "experiment report s").0, 0);
    assert_eq!(table(&dir.path().join("s/report/runs.csv")).len(), 15);
}

#[test]
fn a_killed_study_goes_on_to_the_same_report() {
    let dir = tempfile::tempdir().unwrap();
    study(dir.path(), STUDY);
    assert_eq!(run(dir.path(), "experiment run study.toml -o whole --jobs 2").0, 3);
    for (at, wait) in [30, 120, 60, 200, 20].into_iter().enumerate() {
        let mut words = vec!["experiment", "run", "study.toml", "-o", "part"];
        if at > 0 && dir.path().join("part/study.json").exists() {
            words.push("--resume");
        }
        kill_after(dir.path(), &words, wait);
    }
    let resume = if dir.path().join("part/study.json").exists() { "--resume" } else { "" };
    let (code, _, told) = run(dir.path(), &format!("experiment run study.toml -o part {resume}"));
    assert_eq!(code, 3, "{told}");
    assert!(!dir.path().join("part/.work").exists());
    assert_eq!(names(&dir.path().join("part/runs")), names(&dir.path().join("whole/runs")));
    for study in ["whole", "part"] {
        assert_eq!(run(dir.path(), &format!("experiment report {study}")).0, 0);
    }
    let report = |study: &str| timeless(&dir.path().join(study).join("report"));
    assert_eq!(report("whole"), report("part"));
    for figure in ["fit-by-rank-sun.svg", "components-cp-sun.svg"] {
        let read =
            |study: &str| fs::read(dir.path().join(study).join("report").join(figure)).unwrap();
        assert!(read("whole") == read("part"), "{figure} differs");
    }
}

#[test]
fn a_plan_is_told_and_nothing_is_left() {
    let dir = tempfile::tempdir().unwrap();
    study(dir.path(), STUDY);
    let (code, said, told) = run(dir.path(), "experiment run study.toml --dry-run");
    // Three runs cannot succeed: the study itself would end in the same way.
    assert_eq!(code, 3, "{told}");
    assert!(said.contains("24 runs to make"), "{said}");
    let refused = "3 runs of cut on made will fail: the rank 900 of mode 3 is above its extent 8";
    assert!(said.contains(refused), "{said}");
    assert_eq!(said.matches("\ncp-sun-rank").count(), 9, "{said}");
    // The planner foresees runs of cp.
    let line = said.lines().find(|line| line.starts_with("cp ") && line.contains(" sun ")).unwrap();
    assert!(line.contains("MiB") && !line.contains('?'), "{line}");
    assert_eq!(names(dir.path()), ["study.toml"]);
}

#[test]
fn a_plan_tells_what_is_left() {
    let dir = tempfile::tempdir().unwrap();
    study(dir.path(), STUDY);
    assert_eq!(run(dir.path(), "experiment run study.toml -o s").0, 3);
    let last = "\n[[runs]]\nname = \"sum\"\ncommand = \"schedule\"\ntensors = [\"made\"]\n\
                expression = \"mttkrp:3:1\"\noptions = { rank = 4 }\n";
    study(dir.path(), &(STUDY.replace("[1, 2, 3]", "[1, 2, 3, 4]") + last));
    let before = names(&dir.path().join("s/runs"));
    let (code, said, told) = run(dir.path(), "experiment run study.toml -o s --dry-run --resume");
    assert!(code == 0 && said.contains("7 runs to make"), "{said}{told}");
    assert_eq!(names(&dir.path().join("s/runs")), before);
    let line = |group: &str| said.lines().find(|line| line.starts_with(group)).unwrap().to_owned();
    let words = |line: String| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    // Runs that have ended correct the forecasts of their group; they tell nothing of another group.
    assert_eq!(words(line("cp "))[2..4], ["12", "9"]);
    assert!(!line("cp ").contains('?'), "{said}");
    assert!(words(line("cut "))[4..] == ["-", "-"] && words(line("sum "))[4..] == ["?", "?"]);
    assert!(said.contains("no forecast for runs of sum\n"), "{said}");
    let words = "experiment run study.toml -o s --dry-run --resume --retry-failed";
    let (code, said, told) = run(dir.path(), words);
    assert!(code == 3 && said.contains("10 runs to make"), "{said}{told}");
}

#[test]
fn mistakes_in_a_study_are_shown_where_they_stand() {
    let dir = tempfile::tempdir().unwrap();
    let grid = "grid = { rank = [1, 2, 3] }";
    let cases = [
        (
            "seeds = \"0:2\"",
            "seed = \"0:2\"",
            "study.toml:3: the study has no key `seed`",
            "`seeds`",
        ),
        (
            "command = \"cp\"",
            "command = \"tuker\"",
            "does not run `tuker`",
            "did you mean `tucker`",
        ),
        (grid, "grid = { rnak = [1] }", "has no option --rnak", "did you mean `rank`"),
        (grid, "grid = { rank = [1, 0] }", "`0` is not a number from 1 on", "help: "),
        (grid, "grid = { rank = \"3..5\" }", "no list and no range", "\"1:20\""),
        (grid, "grid = { rank = [] }", "the list is empty", "one value"),
        (
            grid,
            "zip = [{ rank = [1, 2], reg = [0.1] }]",
            "1 values stand beside the 2 values",
            "as many",
        ),
        (grid, "grid = { out = [\"x\"] }", "a study does not take --out", "folder of its own"),
        (grid, "grid = { no-codegen = [3] }", "--no-codegen takes no value", "true or false"),
        ("file = \"SUN\"", "file = \"none.tns\"", "there is no file", "folder of the study"),
        ("file = \"SUN\"", "flie = \"x\"", "[tensors.sun] has no tensor", "file = "),
        ("tensors = [\"made\"]", "tensors = [\"maid\"]", "there is no [tensors.maid]", "sun, made"),
        ("nnz = 300", "nnz = \"many\"", "invalid value 'many'", "help: "),
        ("max-iters = 12", "max-iters = 12, iters = 3", "--max-iters is set twice", "help: "),
        (grid, "", "study.toml:15: `command`: no rank given", "--rank 10"),
        (grid, "grid = { rank = [1, 2, 1] }", "`rank`: `1` is given twice", "`repeats`"),
        ("seeds = \"0:2\"", "seeds = [4, 4]", "`seeds`: `4` is given twice", "`repeats`"),
        ("seeds = \"0:2\"", "seeds = \"0:4:0\"", "its step is 0", "\"1:20\""),
        ("seeds = \"0:2\"", "seeds = \"4:0\"", "begins above its end", "\"1:20\""),
        (
            "max-iters = 12",
            "max-iters = 12, seed = 7",
            "study.toml:16: `seed`: the runs have a seed already",
            "seeds = [1, 2] in [[runs]]",
        ),
        (
            grid,
            "zip = [{ rank = [1, 2, 1], reg = [0, 0.1, 0] }]",
            "the same values at places 1 and 3",
            "`repeats`",
        ),
        ("nnz = 300\n", "", "no number of non-zeros given", "--nnz N"),
    ];
    for (from, to, what, help) in cases {
        study(dir.path(), &STUDY.replacen(from, to, 1));
        let (code, _, told) = run(dir.path(), "experiment run study.toml");
        assert!(code == 2 && told.contains(what) && told.contains(help), "{to}: {told}");
        assert!(told.contains("study.toml:") && told.contains(" | "), "{to}: {told}");
        assert_eq!(names(dir.path()), ["study.toml"], "{to}");
    }
}

#[test]
fn a_study_without_runs_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    study(dir.path(), "[tensors.sun]\nfile = \"SUN\"\n");
    let (code, _, told) = run(dir.path(), "experiment run study.toml --dry-run");
    assert!(code == 2 && told.contains("no key `runs`") && told.contains("[[runs]]"), "{told}");
}

#[test]
fn the_shipped_studies_are_understood() {
    let dir = tempfile::tempdir().unwrap();
    let folder = data("studies");
    let mut files = names(&folder);
    files.retain(|name| name.ends_with(".toml"));
    assert_eq!(files.len(), 3);
    for file in files {
        let words = format!("experiment run {} --dry-run", folder.join(&file).display());
        let (code, said, told) = run(dir.path(), &words);
        assert!(code == 0 && said.contains(" runs to make"), "{file}: {told}");
    }
}

#[test]
fn a_run_is_repeated_bit_by_bit() {
    let dir = tempfile::tempdir().unwrap();
    cp(
        dir.path(),
        "tz-transitions.tns.gz",
        "-r 3 --max-iters 8 --seed random --threads 2 -q -o run",
    );
    let (code, said, told) = run(dir.path(), "rerun run");
    assert!(code == 0 && said.contains("bit by bit"), "{said}{told}");
    assert_eq!(names(dir.path()), ["run"]);
    let (code, said, _) = run(dir.path(), "rerun run --tolerance 1e-9 --out again");
    assert!(code == 0 && said.contains("within 0.00e0"), "{said}");
    assert!(dir.path().join("again/run.json").is_file());
    // A model that the command does not give is told from it.
    cp(dir.path(), "tz-transitions.tns.gz", "-r 3 --max-iters 9 --tol 0 --threads 2 -q -o other");
    fs::copy(dir.path().join("other/model.npz"), dir.path().join("run/model.npz")).unwrap();
    let (code, _, told) = run(dir.path(), "rerun run");
    assert!(code == 1 && told.contains("model.npz differs"), "{told}");
    let (code, _, told) = run(dir.path(), "rerun run --input other/run.json");
    assert_eq!(code, 2, "{told}");
    let (code, _, told) = run(dir.path(), "rerun .");
    assert!(code == 2 && told.contains("folder of a run"), "{told}");
}

#[test]
fn a_report_replaces_a_report_only() {
    let dir = tempfile::tempdir().unwrap();
    study(
        dir.path(),
        "title = \"One\"\n[tensors.sun]\nfile = \"SUN\"\n[[runs]]\ncommand = \"cp\"\n\
         options = { rank = 2, max-iters = 3, no-plots = true }\n",
    );
    run(dir.path(), "experiment run study.toml -o s");
    fs::create_dir(dir.path().join("mine")).unwrap();
    fs::write(dir.path().join("mine/runs.csv"), "precious").unwrap();
    let (code, _, told) = run(dir.path(), "experiment report s -o mine --format md");
    assert!(code == 2 && told.contains("holds no report"), "{told}");
    assert_eq!(fs::read_to_string(dir.path().join("mine/runs.csv")).unwrap(), "precious");
    for _ in 0..2 {
        assert_eq!(run(dir.path(), "experiment report s -o new --format md").0, 0);
    }
    // A single run is told with its numbers.
    let page = fs::read_to_string(dir.path().join("new/report.md")).unwrap();
    assert!(page.contains("iterations") && page.contains("peak (MiB)"), "{page}");
}

/// Returns Chromium, where it is installed.
fn chromium() -> Option<&'static str> {
    ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        let asked = Command::new(name).arg("--version").output();
        asked.is_ok_and(|output| output.status.success())
    })
}

#[test]
fn the_page_sorts_and_filters_in_a_browser() {
    let Some(chromium) = chromium() else {
        eprintln!("skipped: there is no Chromium here");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    study(dir.path(), STUDY);
    run(dir.path(), "experiment run study.toml -o s");
    assert_eq!(run(dir.path(), "experiment report s").0, 0);
    let page = fs::read_to_string(dir.path().join("s/report/report.html")).unwrap();
    // Sorts by error, falling, then shows the runs of one tensor; what it finds becomes the title.
    let probe = "<script>
        const heads = [...document.querySelectorAll('#runs-table th')];
        const at = heads.findIndex(head => head.textContent === 'error');
        heads[at].querySelector('button').click(); heads[at].querySelector('button').click();
        const field = document.getElementById('runs-filter');
        field.value = 'sun cp'; field.dispatchEvent(new Event('input'));
        const rows = [...document.querySelectorAll('#runs-table tbody tr')].filter(row => !row.hidden);
        const errors = rows.map(row => Number(row.cells[at].dataset.value || row.cells[at].textContent));
        const falls = errors.every((error, k) => k === 0 || errors[k - 1] >= error);
        document.title = [rows.length, falls, heads[at].getAttribute('aria-sort'),
            document.getElementById('runs-table-count').textContent].join('|');
        </script></body>";
    let path = dir.path().join("probe.html");
    fs::write(&path, page.replace("</body>", probe)).unwrap();
    let output = Command::new(chromium)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--dump-dom",
            "--enable-logging=stderr",
        ])
        .arg(format!("--user-data-dir={}", dir.path().join("profile").display()))
        .arg(format!("file://{}", path.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    assert!(
        dom.contains("<title>9|true|descending|9 of 24 rows</title>"),
        "{}",
        &dom[..400.min(dom.len())]
    );
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!told.contains("CONSOLE"), "{told}");
}
