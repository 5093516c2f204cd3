"""Times the package beside the command: import, frames as tensors, CP-ALS.

    python bars.py TENSOR.dtb OUT [--command decompose] [--rounds 5] [--more 0]

Each round runs the package and the command in turn, each part in a process of its own.  Writes ``raw.csv`` and
``summary.csv`` as data/records/README.md has them into OUT.  The entries of the tensor are shuffled first; frames have
a row for each, and text columns have a name for each index.  ``--more`` rounds follow with CP-ALS alone.
"""

import argparse
import csv
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

RANK, ITERATIONS = 16, 20

RAW = ("round", "program", "tensor", "rank", "threads", "precision", "quantity", "value", "unit")
SUMMARY = (*RAW[1:-2], "median", "lowest", "highest", "rounds", "unit")


def part_arrays(arrays):
    """A tensor from arrays, and CP-ALS from arrays as a whole and in the solver."""
    import decompose

    coords, values = [arrays[name] for name in "abc"], arrays["v"]
    made = seconds(lambda: decompose.tensor((coords, values)))[0]
    options = {"tol": 0, "max_iters": ITERATIONS}
    whole, model = seconds(lambda: decompose.cp((coords, values), RANK, **options))
    return {"tensor": made, "whole": whole, "solve": model.info["seconds"], "fit": model.fit}


def part_frame(arrays, package, kind):
    """A tensor from a frame of one row for each entry."""
    import numpy

    columns = {name: arrays[name] for name in "abc"}
    if kind != "integers":
        for name, word in zip("abc", ("user", "item", "word")):
            texts = numpy.array([f"{word}-{index:05d}" for index in range(columns[name].max() + 1)], dtype=object)
            columns[name] = texts[columns[name]]
    if package == "pandas":
        import pandas

        frame = pandas.DataFrame({**columns, "v": arrays["v"]})
        frame = frame.astype({name: "category" for name in "abc"}) if kind == "categories" else frame
    else:
        import polars

        columns = {name: column if kind == "integers" else list(column) for name, column in columns.items()}
        frame = polars.DataFrame({**columns, "v": arrays["v"]})
        frame = frame.cast({name: polars.Categorical for name in "abc"}) if kind == "categories" else frame
    del columns
    import decompose

    before = time.process_time()
    convert = seconds(lambda: decompose.tensor(frame, value="v"))[0]
    return {"convert": convert, "convert-cpu": time.process_time() - before}


def part_import(module):
    """The import of a module."""
    return {"import": seconds(lambda: __import__(module))[0]}


def seconds(work):
    """Return the seconds that ``work`` takes, and its result."""
    begun = time.perf_counter()
    result = work()
    return time.perf_counter() - begun, result


def run_part(file, part, *words):
    """Run a part in a process of its own."""
    words = [sys.executable, __file__, "--part", part, str(file), *words]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def run_command(command, tensor):
    """Run CP-ALS by the command; return what it records."""
    with tempfile.TemporaryDirectory() as folder:
        run = pathlib.Path(folder, "run")
        words = ["cp", tensor, "-r", RANK, "-i", ITERATIONS, "--tol", 0, "--out", run]
        subprocess.run([command, *map(str, words)], capture_output=True, check=True)
        record = json.loads((run / "run.json").read_text())
    phases = {phase["name"]: phase["seconds"] for phase in record["phases"]}
    whole = sum(phases[name] for name in ("read", "sort", "plan", "build", "solve"))
    return {"whole": whole, "solve": record["result"]["solver_seconds"], "fit": record["result"]["fit"]}


def shuffle(tensor, file):
    """Write the entries of a tensor in a random order, as arrays of int64 and float64."""
    import decompose
    import numpy

    x = decompose.tensor(tensor)
    order = numpy.random.default_rng(1).permutation(x.nnz)
    coords = [column[order].astype(numpy.int64) for column in x.coords]
    numpy.savez(file, **dict(zip("abc", coords)), v=x.values[order])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tensor")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--command", default="decompose")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--more", type=int, default=0)
    options = parser.parse_args()
    name = pathlib.Path(options.tensor).stem
    frames = [(package, kind) for package in ("pandas", "polars") for kind in ("integers", "text", "categories")]
    rows = []

    def note(number, program, rank, found):
        for quantity, value in found.items():
            unit = "1" if quantity in ("fit", "ratio") else "s"
            rows.append((number, program, name, rank, 2, "f64", quantity, f"{value:.12g}", unit))
            print(*rows[-1], flush=True)

    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "arrays.npz")
        shuffle(options.tensor, file)
        for number in range(1, options.rounds + options.more + 1):
            own, other = run_part(file, "arrays"), run_command(options.command, options.tensor)
            note(number, "decompose-python", RANK, own)
            note(number, "decompose-cp", RANK, other)
            note(number, "python/cp", RANK, {"ratio": own["solve"] / other["solve"]})
            if number > options.rounds:
                continue
            for module in ("numpy", "decompose"):
                note(number, f"import-{module}", "", run_part(file, "import", module))
            for package, kind in frames:
                note(number, f"{package}-{kind}", "", run_part(file, "frame", package, kind))
    write(options.out, rows)


def write(out, rows):
    """Write what was measured, and its medians."""
    out.mkdir(parents=True, exist_ok=True)
    groups = {}
    for row in rows:
        groups.setdefault((*row[1:7], row[8]), []).append(float(row[7]))
    summary = [
        (*group[:-1], *(f"{of(values):.6g}" for of in (statistics.median, min, max)), len(values), group[-1])
        for group, values in groups.items()
    ]
    for file, head, lines in (("raw.csv", RAW, rows), ("summary.csv", SUMMARY, summary)):
        with open(out / file, "w", newline="") as text:
            csv.writer(text, lineterminator="\n").writerows([head, *lines])


if __name__ == "__main__":
    if sys.argv[1] == "--part":
        part, path, *words = sys.argv[2:]
        loaded = {}
        if part != "import":
            import numpy

            with numpy.load(path) as archive:
                loaded = {key: archive[key] for key in archive.files}
        result = part_import(*words) if part == "import" else globals()[f"part_{part}"](loaded, *words)
        print(json.dumps(result))
    else:
        main()
