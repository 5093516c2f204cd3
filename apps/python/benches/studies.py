"""Measures studies by the command: kills and resumes, the overhead of many small runs, the page of a report.

    python studies.py RANK-SELECTION.toml OUT [--command decompose] [--kills 10] [--rounds 3] [--seed 7]

The study is run as a whole, and again with kills at random moments, each followed by ``--resume``; then the reports,
models and tables are compared.  A study of 200 small runs is timed beside its runs alone, one after the other.  The
report of 100 of them is opened in Chromium, in turn with an empty page.  Writes ``raw.csv`` and ``summary.csv`` as
data/records/README.md has them into OUT.
"""

import argparse
import csv
import json
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile
import time

from bars import write

#: A study of as many runs as ten ranks and these seeds.
SMALL = """title = "small"
seeds = "0:{last}"
[tensors.planted]
generate = "low-rank"
dims = [40, 40, 40]
nnz = 20000
[[runs]]
command = "cp"
options = {{ max-iters = 20, threads = 1 }}
grid = {{ rank = "1:10" }}
"""

#: Columns of the tables of a report that name seconds or memory.
VARIES = ("second", "bytes", "time", "predicted")

#: Endings of files that hold results and no seconds.
RESULTS = (".npz", ".tns", ".npy", "components.csv")


def run(words, folder):
    """Run a command in a folder and return its seconds."""
    begun = time.perf_counter()
    subprocess.run([*map(str, words)], cwd=folder, capture_output=True, check=True)
    return time.perf_counter() - begun


def kills(options, folder):
    """Run a study whole, and killed at random moments; return what differs."""
    begin = [options.command, "experiment", "run", options.study]
    whole = run([*begin, "--out", "whole"], folder)
    moments = random.Random(options.seed)
    killed = 0
    for number in range(options.kills):
        resume = ["--resume"] if (folder / "part/study.json").exists() else []
        words = [*map(str, begin), "--out", "part", *resume]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        child = subprocess.Popen(words, cwd=folder, start_new_session=True, **quiet)
        try:
            child.wait(moments.uniform(0.2, whole / 8))
            break
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.wait()
            killed += 1
    run([*begin, "--out", "part", "--resume"], folder)
    for study in ("whole", "part"):
        run([options.command, "experiment", "report", study], folder)
    runs = {study: sorted(path.name for path in (folder / study / "runs").iterdir()) for study in ("whole", "part")}
    files = [
        path.relative_to(folder / "whole")
        for path in sorted((folder / "whole/runs").rglob("*"))
        if path.name.endswith(RESULTS)
    ]
    tables = [path.relative_to(folder / "whole") for path in sorted((folder / "whole/report").glob("*.csv"))]
    different = [file for file in files if (folder / "whole" / file).read_bytes() != (folder / "part" / file).read_bytes()]
    changed = [file for file in tables if timeless(folder / "whole" / file) != timeless(folder / "part" / file)]
    for file in different + changed:
        print("differs:", file, flush=True)
    return {
        "kills": killed,
        "runs": len(runs["whole"]),
        "runs-missing": len(set(runs["whole"]) ^ set(runs["part"])),
        "result-files": len(files),
        "result-files-different": len(different),
        "tables": len(tables),
        "tables-different": len(changed),
    }


def timeless(file):
    """Return the lines of a table without seconds and bytes; of a figure over time nothing but its curves."""
    with open(file, newline="") as text:
        head, *lines = csv.reader(text)
    if "x_name" in head:
        axes = [head.index("x_name"), head.index("y_name")]
        names = head.index("curve")
        of_time = [any(word in line[axis] for axis in axes for word in ("time", "MiB")) for line in lines]
        return [[line[names]] if timed else line for line, timed in zip(lines, of_time)]
    if head[:2] == ["configuration", "phase"]:
        return [line[:2] for line in lines]
    kept = [at for at, name in enumerate(head) if not any(word in name for word in VARIES)]
    return [[line[at] for at in kept] for line in [head, *lines]]


def overhead(options, folder):
    """Time a study of 200 runs, and its runs alone; return both, and what the study adds."""
    shutil.rmtree(folder / "small", ignore_errors=True)
    study = run([options.command, "experiment", "run", "small.toml", "--out", "small"], folder)
    outcomes = [json.loads(path.read_text()) for path in sorted((folder / "small/runs").glob("*/outcome.json"))]
    inside = sum(outcome["seconds"] for outcome in outcomes)
    alone = 0
    place = folder / "alone"
    for outcome in outcomes:
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        alone += run([options.command, *outcome["command"]], place)
    return {
        "study": study,
        "runs-inside": inside,
        "runs-alone": alone,
        "over-inside": study / inside - 1,
        "over-alone": study / alone - 1,
    }


def page(options, folder):
    """Open a report and an empty page; return their seconds, and the messages of scripts."""
    found = {}
    for name in ("hundred/report/report.html", "empty.html"):
        words = [options.chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
        words += [f"--screenshot={folder / 'page.png'}", (folder / name).as_uri()]
        begun = time.perf_counter()
        said = subprocess.run(words, capture_output=True, text=True, check=True).stderr
        quantity = "open-report" if "report" in name else "open-empty"
        found[quantity] = time.perf_counter() - begun
        if "report" in name:
            found["script-messages"] = said.count("CONSOLE")
    found["page"] = found["open-report"] - found["open-empty"]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--command", default="decompose")
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    options.command = shutil.which(options.command)
    rows = []

    def note(number, program, name, threads, found):
        for quantity, value in found.items():
            counts = isinstance(value, int) or quantity.startswith("over-")
            unit = "MB" if quantity == "size" else "1" if counts else "s"
            rows.append((number, program, name, "", threads, "f64", quantity, f"{value:.6g}", unit))
            print(*rows[-1], flush=True)

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        note(1, "killed-study", options.study.stem, 2, kills(options, folder))
        for name, last in (("small", 19), ("hundred", 9)):
            (folder / f"{name}.toml").write_text(SMALL.format(last=last))
        # The first study compiles the kernels.
        run([options.command, "experiment", "run", "hundred.toml", "--out", "hundred"], folder)
        run([options.command, "experiment", "report", "hundred"], folder)
        (folder / "empty.html").write_text("<!DOCTYPE html><title>empty</title>")
        size = (folder / "hundred/report/report.html").stat().st_size / 1e6
        note(1, "report", "planted", 1, {"size": size})
        for number in range(1, options.rounds + 1):
            note(number, "small-runs", "planted", 1, overhead(options, folder))
            note(number, "report", "planted", 1, page(options, folder))
    write(options.out, rows)


if __name__ == "__main__":
    main()
