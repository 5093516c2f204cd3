"""Writes the reference traces of this folder: the fits of pyttb's CP-ALS, iteration by iteration.

Usage, from the repository root (needs numpy and pyttb):

    python apps/cp/tests/reference/generate.py [--real FOLDER]

FOLDER holds the public tensors that the project does not ship, as FOLDER/NAME/NAME.tns.gz.  Without
it only the cases of data/ are written.  README.md says what the numbers mean.
"""

import argparse
import gzip
import json
from pathlib import Path

import numpy as np
import pyttb

HERE = Path(__file__).resolve().parent
SHIPPED = HERE.parents[3] / "data"
ITERATIONS = 10
SEED = 1
# Above this fit the subtraction inside pyttb's fit costs more than 1e-11 (README.md).
COMPARABLE = 1 - 1e-4
CASES = [
    ("own", "sun-elevation", 2),
    ("own", "sun-elevation", 4),
    ("own", "tz-transitions", 8),
    ("own", "matmul-222", 7),
    ("real", "amino-acids", 3),
    ("real", "hangzhou-metro", 10),
    ("real", "marvel", 5),
    ("real", "sotu-bigrams", 5),
    ("real", "udhr-trigrams", 8),
]


def splitmix64(x):
    """Output of the SplitMix64 generator whose state before the step is x (uint64 arrays, wrapping)."""
    z = x + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def initial_factor(mode, extent, rank):
    """The starting factor of a mode (0-based), extent x rank, in [0, 1)."""
    row = np.arange(extent, dtype=np.uint64)[:, None]
    column = np.arange(rank, dtype=np.uint64)[None, :]
    key = np.uint64(SEED + mode * 1000003) + row * np.uint64(1009) + column
    return (splitmix64(key) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def read_tensor(folder, name):
    """0-based indices, values and extents of NAME.tns.gz in a folder or in FOLDER/NAME."""
    path = folder / f"{name}.tns.gz"
    if not path.exists():
        path = folder / name / f"{name}.tns.gz"
    extents = tuple(int(n) for n in (folder / name / f"{name}.dims").read_text().split())
    with gzip.open(path, "rt") as text:
        table = np.loadtxt(text, ndmin=2)
    indices = table[:, :-1].astype(np.int64) - 1
    assert len(np.unique(indices, axis=0)) == len(indices), f"{name}: duplicate entries"
    return indices, table[:, -1], extents


def pyttb_trace(indices, values, extents, factors):
    """Fit and residual norm after 1, 2, ... iterations of pyttb.cp_als from the given factors."""
    x = pyttb.sptensor(indices, values[:, None], extents)
    start = pyttb.ktensor(factors)
    fits, residuals = [], []
    for count in range(1, ITERATIONS + 1):
        _, _, report = pyttb.cp_als(
            x, factors[0].shape[1], stoptol=-1.0, maxiters=count, init=start, printitn=0
        )
        fits.append(float(report["fit"]))
        residuals.append(float(report["normresidual"]))
    return fits, residuals


def solve_spd(gram, rhs):
    """Solution Z of Z gram = rhs by LDL' in the precision of the arguments."""
    size = len(gram)
    low, pivot = np.eye(size, dtype=gram.dtype), np.zeros(size, dtype=gram.dtype)
    for j in range(size):
        pivot[j] = gram[j, j] - (low[j, :j] ** 2 * pivot[:j]).sum()
        for i in range(j + 1, size):
            low[i, j] = (gram[i, j] - (low[i, :j] * low[j, :j] * pivot[:j]).sum()) / pivot[j]
    z = rhs.T.copy()
    for j in range(size):
        z[j] -= low[j, :j] @ z[:j]
    z /= pivot[:, None]
    for j in reversed(range(size)):
        z[j] -= low[j + 1 :, j] @ z[j + 1 :]
    return z.T


def extended_trace(indices, values, extents, factors):
    """The same trace by an ALS of our own in 80-bit arithmetic, the fit from the residual itself.

    Returns fits and residual norms.  The residual is summed over the listed entries,
    sum (x - m)^2 - m^2, plus the squared norm of the model: no cancellation where the tensor lists
    every cell, which is where a fit can come near 1.
    """
    wide = np.longdouble
    x = values.astype(wide)
    u = [f.astype(wide) for f in factors]
    norm = np.sqrt((x**2).sum())
    every_cell = len(x) == np.prod(extents)
    fits, residuals = [], []
    for _ in range(ITERATIONS):
        for mode, extent in enumerate(extents):
            others = [m for m in range(len(extents)) if m != mode]
            rows = np.prod([u[m][indices[:, m]] for m in others], axis=0) * x[:, None]
            product = np.zeros((extent, rows.shape[1]), dtype=wide)
            np.add.at(product, indices[:, mode], rows)
            solved = solve_spd(np.prod([u[m].T @ u[m] for m in others], axis=0), product)
            weights = np.sqrt((solved**2).sum(axis=0))
            u[mode] = solved / weights
        rows = np.prod([u[m][indices[:, m]] for m in range(len(extents))], axis=0)
        model = rows @ weights
        square = ((x - model) ** 2).sum()
        if not every_cell:
            gram = np.prod([f.T @ f for f in u], axis=0)
            square += weights @ gram @ weights - (model**2).sum()
        residuals.append(np.sqrt(square))
        fits.append(1 - residuals[-1] / norm)
    return fits, residuals


def write_case(kind, name, rank, folder):
    """Computes one case and writes NAME-rR.json."""
    indices, values, extents = read_tensor(folder, name)
    factors = [initial_factor(mode, extent, rank) for mode, extent in enumerate(extents)]
    fits, residuals = pyttb_trace(indices, values, extents, factors)
    exact_fits, exact_residuals = extended_trace(indices, values, extents, factors)
    comparable = sum(1 for f in exact_fits if f < COMPARABLE)
    deviation = max((abs(float(a - b)) for a, b in zip(fits[:comparable], exact_fits)), default=0.0)
    case = {
        "tensor": name,
        "set": kind,
        "extents": list(extents),
        "nonzeros": len(values),
        "norm": float(np.sqrt((values.astype(np.longdouble) ** 2).sum())),
        "rank": rank,
        "seed": SEED,
        "comparable_iterations": comparable,
        "fits": fits,
        "residual_norms": residuals,
        "extended_fits": [float(f) for f in exact_fits],
        "extended_residual_norms": [float(r) for r in exact_residuals],
        "deviation": deviation,
        "pyttb": pyttb.__version__,
        "numpy": np.__version__,
    }
    path = HERE / f"{name}-r{rank}.json"
    path.write_text(json.dumps(case, indent=1) + "\n")
    print(f"{path.name}: {comparable} comparable, deviation {deviation:.1e}, last {fits[-1]:.6f}")


def main():
    """Writes every case whose tensor is at hand."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--real", type=Path, help="folder of the tensors that are not shipped")
    real = parser.parse_args().real
    for kind, name, rank in CASES:
        folder = SHIPPED if kind == "own" else real
        if folder is not None:
            write_case(kind, name, rank, folder)


if __name__ == "__main__":
    main()
