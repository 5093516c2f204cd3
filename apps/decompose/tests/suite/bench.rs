//! `decompose bench`: what it leaves, and what it refuses.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::{data, decompose, json, names};

/// Runs `decompose bench` in `folder`; it must succeed.
fn bench(folder: &Path, options: &str) -> (String, String) {
    let mut command = decompose(folder);
    command.arg("bench").args(options.split_whitespace());
    let output = command.assert().success().get_output().clone();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr))
}

/// Runs `decompose bench` in `folder`; it must refuse, say `expected` and leave nothing.
fn refuse(folder: &Path, options: &str, expected: &str) {
    let before = names(folder);
    let mut command = decompose(folder);
    command.arg("bench").args(options.split_whitespace());
    let output = command.assert().code(2).get_output().clone();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains(expected), "`{options}` should say `{expected}`:\n{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert_eq!(names(folder), before, "`{options}` left files");
}

/// Reads a CSV file: the names of its columns and its rows.
fn table(path: &Path) -> (Vec<String>, Vec<Vec<String>>) {
    let text = fs::read_to_string(path).unwrap();
    let cells = |line: &str| line.split(',').map(str::to_owned).collect();
    let mut lines = text.lines().map(cells);
    (lines.next().unwrap(), lines.collect())
}

#[test]
fn everything_is_measured_and_summed_up() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(
        dir.path().join("peers.csv"),
        "program,tensor,rank,threads,quantity,value,lowest,highest\n\
         other,sun-elevation,4,1,iteration,0.5,,\n\
         other,sun-elevation,4,1,iteration,0.75,,\n\
         other,sun-elevation,4,1,iteration,0.25,,\n\
         third,sun-elevation,4,2,iteration,0.5,0.125,2\n\
         third,sun-elevation,4,64,iteration,0.5,,\n",
    )
    .unwrap();
    let file = data("sun-elevation.tns.gz");
    let (stdout, stderr) = bench(
        dir.path(),
        &format!(
            "{} --rank 4 --threads 1,2 --patience 0.1 --kernels mttkrp,ttmc,tttp --peer peers.csv \
             --out out --without merging,fusing,prefetch",
            file.display()
        ),
    );
    let out = dir.path().join("out");
    let files = [
        "ablation.png", "ablation.svg", "bench.json", "bench.png", "bench.svg", "raw.csv",
        "summary.csv",
    ];
    assert_eq!(names(&out), files);
    for word in ["limits ", "GFLOP/s", "triad", "ns a line"] {
        assert!(stderr.contains(word), "{word}: {stderr}");
    }
    for word in ["iteration", "dense", "ttmc:3:2", "tttp:3", "ratio", "other iteration of sun"] {
        assert!(stdout.contains(word), "{word}: {stdout}");
    }
    check_summary(&out);
    check_json(&json(&out.join("bench.json")));
    let figure = fs::read_to_string(out.join("bench.svg")).unwrap();
    for spread in
        ["on 1: 5.000e-1 s (2.500e-1 to 7.500e-1)", "on 2: 5.000e-1 s (1.250e-1 to 2.000e0)"]
    {
        assert!(stdout.contains(spread), "{spread}: {stdout}");
    }
    assert!(stderr.contains("1 row of --peer is of work that was not measured here"), "{stderr}");
    for word in ["roofline bound", "other", "third", "decompose-without-merging", "64 threads"] {
        assert!(figure.contains(word), "{word}");
    }
}

/// Checks the columns, and that the summary follows from the samples alone.
fn check_summary(out: &Path) {
    let (columns, samples) = table(&out.join("raw.csv"));
    let wanted = "round,program,tensor,rank,threads,precision,quantity,value,unit,share,counts";
    assert_eq!(columns.join(","), wanted);
    let (columns, lines) = table(&out.join("summary.csv"));
    let wanted = "program,tensor,rank,threads,precision,quantity,median,lowest,highest,rounds,unit";
    assert_eq!(columns.join(","), wanted);
    let mut seconds: BTreeMap<&[String], Vec<f64>> = BTreeMap::new();
    for sample in &samples {
        assert!((1..=5).contains(&sample[0].parse::<u32>().unwrap()) && sample[8] == "s");
        let share: f64 = sample[9].parse().unwrap();
        assert!(share > 0.0 && share <= 1.0, "{sample:?}");
        match sample[10].as_str() {
            "yes" => seconds.entry(&sample[1..7]).or_default().push(sample[7].parse().unwrap()),
            counts => assert_eq!(counts, "no"),
        }
    }
    assert_eq!(lines.len(), seconds.len());
    for line in &lines {
        let mut seconds = seconds.remove(&line[..6]).unwrap();
        seconds.sort_by(f64::total_cmp);
        let numbers: Vec<f64> = line[6..10].iter().map(|cell| cell.parse().unwrap()).collect();
        // Both files write the shortest digits that give the same number back.
        assert_eq!(numbers, [seconds[2], seconds[0], seconds[4], 5.0], "{line:?}");
        assert!(seconds[0] > 0.0, "{line:?}");
    }
    let has = |program: &str, threads: &str, quantity: &str| {
        let row = |l: &&Vec<String>| l[0] == program && l[3] == threads && l[5] == quantity;
        assert_eq!(lines.iter().filter(row).count(), 1, "{program} {threads} {quantity}");
    };
    for threads in ["1", "2"] {
        for quantity in [
            "read", "sort", "tree", "mttkrp:3:1", "mttkrp:3:3", "ttmc:3:1", "tttp:3", "iteration",
            "mttkrp", "dense",
        ] {
            has("decompose", threads, quantity);
        }
        for part in ["merging", "fusing", "prefetch"] {
            has(&format!("decompose-without-{part}"), threads, "iteration");
        }
    }
}

fn check_json(record: &serde_json::Value) {
    assert_eq!(record["complete"], true);
    let runs = |of: &str| record["disturbances"][of].as_u64().unwrap();
    assert!(runs("runs") > runs("repeated") && runs("runs") >= runs("counted"));
    assert_eq!(record["tensors"][0]["name"], "sun-elevation");
    assert!(record["machine"]["hardware_threads"].as_u64().unwrap() > 0);
    assert_eq!(record["options"]["threads"], serde_json::json!([1, 2]));
    let compiled = !record["limits"].as_array().unwrap().is_empty();
    for result in record["results"].as_array().unwrap() {
        let name = result["quantity"].as_str().unwrap();
        let bounded = compiled && !["read", "sort", "tree"].contains(&name);
        assert_eq!(result["bound"].is_object(), bounded, "{result}");
        let (ratio, median) = (&result["ratio"], result["median_seconds"].as_f64().unwrap());
        if bounded {
            let bound = result["bound"]["seconds"].as_f64().unwrap();
            assert!(bound > 0.0 && result["gflops"].as_f64().unwrap() > 0.0, "{result}");
            assert!((ratio.as_f64().unwrap() - median / bound).abs() < 1e-9 * median / bound);
        }
    }
    let plans = record["plans"].as_array().unwrap();
    // Two numbers of threads: seven kernels and four sweeps each.
    assert_eq!(plans.len(), 2 * (7 + 4));
    let text = |plan: &serde_json::Value| plan["text"].as_str().unwrap().contains("prefetch");
    let without = |plan: &&serde_json::Value| plan["program"] == "decompose-without-prefetch";
    assert!(plans.iter().filter(without).all(|plan| !text(plan)));
}

#[test]
fn every_optimisation_is_left_out_in_turn() {
    let dir = tempfile::tempdir().unwrap();
    let file = data("tz-transitions.tns.gz");
    let options =
        format!("{} --ablation --rank 4 --threads 1,2 --patience 0 --out out", file.display());
    let (stdout, _) = bench(dir.path(), &options);
    let optimisations =
        ["constants", "registers", "prefetch", "blocks", "panels", "merging", "fusing", "layouts"];
    for word in optimisations.iter().chain(&["all of them", "mean", "2 threads"]) {
        assert!(stdout.lines().any(|line| line.contains(word)), "{word}: {stdout}");
    }
    let out = dir.path().join("out");
    let figure = fs::read_to_string(out.join("ablation.svg")).unwrap();
    for word in optimisations.iter().chain(&["all of them", "2 threads", "tz-transitions, rank 4"])
    {
        assert!(figure.contains(word), "{word}");
    }
    let record = json(&out.join("bench.json"));
    assert_eq!(record["options"]["ablation"], true);
    assert_eq!(record["options"]["what"], serde_json::json!(["sweep"]));
    let ablation = record["ablation"].as_array().unwrap();
    assert_eq!(ablation.len(), 2 * (optimisations.len() + 1));
    check_ratios(&out, ablation);
    let plan = |program: &str| -> String {
        let plans = record["plans"].as_array().unwrap().iter();
        let of = |plan: &&serde_json::Value| plan["program"] == program;
        plans.filter(of).map(|plan| plan["text"].as_str().unwrap()).collect()
    };
    assert!(plan("decompose").contains("merged modes"));
    for without in ["merging", "all"] {
        assert!(!plan(&format!("decompose-without-{without}")).contains("merged modes"));
    }
    assert!(plan("decompose-without-all").contains("modes 4-3-2-1"), "rooted, short modes first");
}

/// Checks that ratios follow from the samples alone: of the same round, then their median and extremes.
fn check_ratios(out: &Path, ablation: &[serde_json::Value]) {
    let (_, samples) = table(&out.join("raw.csv"));
    let seconds = |program: &str, threads: u64, round: usize| -> f64 {
        let wanted = [&round.to_string(), program, &threads.to_string()];
        let found = |s: &&Vec<String>| [&s[0], &s[1], &s[4]] == wanted && s[6] == "iteration";
        samples.iter().find(found).unwrap()[7].parse().unwrap()
    };
    for one in ablation {
        let without = one["without"].as_array().unwrap();
        let name = if without.len() > 1 { "all" } else { without[0].as_str().unwrap() };
        let threads = one["key"]["threads"].as_u64().unwrap();
        let program = format!("decompose-without-{name}");
        let ratio =
            |round| seconds(&program, threads, round) / seconds("decompose", threads, round);
        let mut ratios: Vec<f64> = (1..=5).map(ratio).collect();
        ratios.sort_by(f64::total_cmp);
        for (name, want) in [("lowest", 0), ("ratio", 2), ("highest", 4)] {
            let have = one[name].as_f64().unwrap();
            assert!((have - ratios[want]).abs() <= 1e-12 * have, "{one}: {ratios:?}");
        }
    }
}

#[test]
fn tensors_are_generated() {
    let dir = tempfile::tempdir().unwrap();
    let options = "--like uber --scale 0.003 --what ingest --threads 1 --patience 0 \
                   --precision f32 --out out";
    bench(dir.path(), options);
    let out = dir.path().join("out");
    let files = ["bench.json", "bench.png", "bench.svg", "raw.csv", "summary.csv"];
    assert_eq!(names(&out), files);
    let (_, lines) = table(&out.join("summary.csv"));
    let quantities: Vec<&str> = lines.iter().map(|line| line[5].as_str()).collect();
    assert_eq!(quantities, ["read", "sort", "tree"]);
    assert!(lines.iter().all(|line| line[1] == "uber*0.003" && line[4] == "f32"));
    // A second run takes its place only if it may.
    refuse(dir.path(), options, "--overwrite");
    bench(dir.path(), &format!("{options} --overwrite"));
    assert_eq!(names(&out), files);
}

#[test]
fn what_was_measured_before_a_failure_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = decompose(dir.path());
    command.arg("bench").arg(data("sun-elevation.tns.gz"));
    command.args("missing.tns --what ingest --threads 1 --patience 0 --out out".split(' '));
    let output = command.assert().code(2).get_output().clone();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.contains("no such file: missing.tns"), "{stderr}");
    assert_eq!(json(&dir.path().join("out/bench.json"))["complete"], false);
    let (_, lines) = table(&dir.path().join("out/summary.csv"));
    assert_eq!(lines.len(), 3);
}

#[test]
fn bad_options_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let file = data("sun-elevation.tns.gz");
    let file = file.display();
    refuse(dir.path(), "", "--like");
    refuse(dir.path(), "--like nel", "nell-1");
    refuse(dir.path(), "--like uber --scale 0", "give a number above 0");
    refuse(dir.path(), "missing.tns", "no such file: missing.tns");
    for (options, expected) in [
        ("--rounds 4", "fewer than 5 rounds"),
        ("--patience soon", "is not a number of seconds"),
        ("--what everything", "[possible values: ingest, kernels, sweep]"),
        (
            "--without luck",
            "[possible values: constants, registers, prefetch, blocks, panels, merging",
        ),
        ("--ablation --without prefetch", "cannot be used with"),
        ("--ablation --what ingest", "add sweep to --what"),
        ("--kernels gemm", "[possible values: mttkrp, ttmc, tttp]"),
        ("--rank 0", "--rank"),
        ("--threads 0", "--threads"),
        ("--precision f16", "[possible values: f64, f32]"),
        ("--scale 2", "--like"),
        ("--peer none.csv", "none.csv"),
    ] {
        refuse(dir.path(), &format!("{file} {options}"), expected);
    }
    fs::write(dir.path().join("p.csv"), "program,tensor\na,b\n").unwrap();
    refuse(
        dir.path(),
        &format!("{file} --peer p.csv"),
        "no column `threads`; the first line is `program,tensor`",
    );
    let head = "program,tensor,rank,threads,quantity,value\n";
    fs::write(dir.path().join("p.csv"), format!("{head}a,b,,1,read,-1\n")).unwrap();
    refuse(dir.path(), &format!("{file} --peer p.csv"), "line 2: -1 is no number of seconds");
    let head = "program,tensor,rank,threads,quantity,value,lowest,highest\n";
    fs::write(dir.path().join("p.csv"), format!("{head}a,b,,1,read,1,2,3\n")).unwrap();
    refuse(dir.path(), &format!("{file} --peer p.csv"), "line 2: 1 is not between 2 and 3");
    fs::write(dir.path().join("taken"), "").unwrap();
    refuse(dir.path(), &format!("{file} --out taken"), "is a file");
    fs::write(dir.path().join("bad.tns"), "1 1 1 2\n1 2 3\n").unwrap();
    refuse(dir.path(), "bad.tns --what sweep", "bad.tns:2");
}
