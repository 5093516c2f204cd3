# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # What the scheduler did, and why
#
# A product of a sparse tensor with matrices can be computed by many loop nests. `decompose` searches for the fastest one,
# predicts its seconds, writes it as C and compiles it. This notebook looks at its choices.

# %%
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import decompose
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

plt.style.use("notebooks.mplstyle")
data = pathlib.Path("../data")
x = decompose.tensor(data / "tz-transitions.tns.gz")
rng = np.random.default_rng(0)
print(x)

# %% [markdown]
# ## A nest
#
# The MTTKRP of mode 0 is the kernel of CP: `Y(i,r) = X(i,j,k,l) * A(j,r) * B(k,r) * C(l,r)`. `explain` computes it and
# tells how: a line for each product.

# %%
def matrices(rank, skip):
    return [rng.standard_normal((extent, rank)) for mode, extent in enumerate(x.shape) if mode != skip]


print(decompose.explain("ijkl,jr,kr,lr->ir", x, *matrices(16, 0)))

# %% [markdown]
# How to read the nest:
#
# - `j{ ... }` is a loop over index `j`. Loops over indices of the tensor visit non-zeros only.
# - `T1`, `T2`, ... are the steps of the product, in the order in which they run. Each multiplies two operands.
# - A step within fewer loops runs less often. What many non-zeros share is computed once, in an outer loop.
# - A product of matrices alone may be computed first, as `P1` here.
# - `trees` tells in which order of modes the tensor is stored. `+` joins levels that are stored as one.
#
# A textbook kernel multiplies three numbers for every non-zero and every `r`. The nest factors common parts out:

# %%
values, coords = x.values, x.coords
operands = matrices(16, 0)


def textbook():
    rows = values[:, None] * operands[0][coords[1]] * operands[1][coords[2]] * operands[2][coords[3]]
    result = np.zeros((x.shape[0], 16))
    np.add.at(result, coords[0], rows)
    return result


np.testing.assert_allclose(decompose.einsum("ijkl,jr,kr,lr->ir", x, *operands), textbook(), atol=1e-9)
print("the same result as the textbook's")

# %% [markdown]
# ## The choice depends on the operands
#
# The same tensor in other products gets other nests. For each expression the table holds what `explain` says.

# %%
def explained(expression, *operands):
    text = decompose.explain(expression, *operands)
    found = re.search(r"nest (.*), trees (.*), (\S+) s predicted", text)
    return {"nest": found[1], "trees": found[2], "predicted": float(found[3])}


a, b, c = (rng.standard_normal((extent, 8)) for extent in x.shape[1:])
cases = {
    "MTTKRP, mode 0": ("ijkl,jr,kr,lr->ir", x, a, b, c),
    "MTTKRP, mode 1": ("ijkl,ir,kr,lr->jr", x, *matrices(8, 1)),
    "TTMc, mode 0": ("ijkl,jr,ks,lt->irst", x, a, b, c),
    "one matrix": ("ijkl,jr->iklr", x, a),
    "sums of slices": ("ijkl->j", x),
    "two tensors": ("ijkl,mjkl->im", x, x),
}
table = pd.DataFrame({name: explained(*case) for name, case in cases.items()}).T
table["predicted"] = (1e6 * table.predicted.astype(float)).round(1).astype(str) + " µs"
table.style

# %% [markdown]
# - In the TTMc the dense loops `r`, `s`, `t` stand inside. A step multiplies in one matrix, and its sums stand in a small
#   buffer.
# - With two sparse tensors both are stored as trees. Loops over the shared indices visit what both have.
#
# ## What a call costs
#
# A prediction is of the kernel alone. A call of `einsum` also checks and sorts the tensor, searches, and looks up the
# compiled kernel. For a small tensor this is nearly all of its time.

# %%
operands = matrices(16, 0)
calls = []
for _ in range(7):
    begun = time.perf_counter()
    decompose.einsum("ijkl,jr,kr,lr->ir", x, *operands)
    calls.append(time.perf_counter() - begun)
print(f"a call: {1e3 * np.median(calls):.0f} ms; its kernel, predicted: "
      f"{1e3 * explained('ijkl,jr,kr,lr->ir', x, *operands)['predicted']:.3f} ms")

# %% [markdown]
# ## Predicted against measured, here
#
# Solvers plan once and run their kernels in every iteration. `decompose cp` writes both times of each kernel to
# `run.json`. This part needs the command, on the `PATH` or named by the variable `DECOMPOSE`.

# %%
program = os.environ.get("DECOMPOSE") or shutil.which("decompose")
assert program, "install the command: cargo install --path apps/decompose"
folder = pathlib.Path(tempfile.mkdtemp())
rows = []
for rank in (8, 16, 32, 64, 128):
    words = ["cp", "--rank", str(rank), "--tol", "0", "--max-iters", "30", "--no-plots", "--quiet"]
    out = folder / str(rank)
    subprocess.run([program, *words, "--out", out, data / "tz-transitions.tns.gz"], check=True)
    for step in json.loads((out / "run.json").read_text())["plan"]["steps"]:
        nest = re.search(r"nest +(.*)", step["schedule"])
        rows.append({"rank": rank, "kernel": step["name"], "nest": nest[1] if nest else "",
                     "predicted": step["predicted_seconds"], "measured": step["measured_seconds"]})
shutil.rmtree(folder)
kernels = pd.DataFrame(rows)
micro = kernels[kernels["rank"] == 16].assign(
    **{f"{name}, µs": 1e6 * kernels[name] for name in ("predicted", "measured")}
)
micro[["kernel", "nest", "predicted, µs", "measured, µs"]].style.hide(axis="index").format(precision=1)

# %% [markdown]
# The plan merges modes: a partial product of several modes is made once, and the kernels of single modes start from it.

# %%
fig, ax = plt.subplots(figsize=(5.5, 4))
for (rank, of), marker in zip(kernels.groupby("rank"), "osv^D"):
    ax.loglog(of.predicted, of.measured, marker, label=f"rank {rank}", alpha=0.8)
ends = np.array([kernels.predicted.min(), kernels.predicted.max()])
ax.loglog(ends, ends, color="0.5", linewidth=1, zorder=0)
ax.set_xlabel("predicted seconds of a kernel")
ax.set_ylabel("measured seconds")
ax.legend()
plt.show()
ratio = kernels.measured / kernels.predicted
print(f"measured over predicted: median {ratio.median():.2f}, from {ratio.min():.2f} to {ratio.max():.2f}")

# %% [markdown]
# All points lie above the line, most of them near a line of their own: the order of the kernels is right, their seconds
# are too few. Kernels of microseconds also pay for starting two threads, which the prediction leaves out.
#
# ## Predicted against measured, in the records
#
# Small tensors tell little. `data/records` holds measurements on tensors with millions of non-zeros. For each case the
# candidates that the model ranks first were measured too. `place` is the rank of a candidate in the model's list.

# %%
record = pd.read_csv(data / "records/current/choices/xeon/raw.csv")
case = ["tensor", "rank", "quantity"]
record = record.groupby([*case, "place", "schedule"], as_index=False).agg(
    measured=("value", "median"), predicted=("predicted", "median")
)
record["kernel"] = record.quantity.str.split(":").str[0]
chosen = record[record.place == 1].groupby(case, as_index=False).first()
print(f"{len(chosen)} cases: {chosen.tensor.nunique()} tensors, kernels {', '.join(sorted(chosen.kernel.unique()))}")

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
for kernel, marker in zip(sorted(chosen.kernel.unique()), "os^v"):
    of = chosen[chosen.kernel == kernel]
    left.loglog(of.predicted, of.measured, marker, alpha=0.6, label=kernel)
ends = np.array([chosen.predicted.min(), chosen.predicted.max()])
left.loglog(ends, ends, color="0.5", linewidth=1)
left.set_xlabel("predicted seconds of the choice")
left.set_ylabel("measured seconds")
left.legend()

least = record.groupby(case).measured.min().rename("least")
regret = chosen.merge(least, on=case)
regret["regret"] = regret.measured / regret.least
ordered = np.sort(regret.regret)
right.plot(ordered, np.linspace(0, 1, len(ordered)))
right.set_xlabel("seconds of the choice over those of the best candidate")
right.set_ylabel("share of cases")
right.set_xlim(0.98, 2)
plt.show()
ratio = np.log(chosen.measured / chosen.predicted)
print(f"measured over predicted: median {np.exp(ratio.median()):.2f}, half of the cases within "
      f"{np.exp(ratio.quantile(0.25)):.2f} to {np.exp(ratio.quantile(0.75)):.2f}")
print(f"seconds of the choice over the best candidate: mean {np.exp(np.log(regret.regret).mean()):.3f} (geometric), "
      f"worst {regret.regret.max():.2f}")

# %% [markdown]
# The left panel shows how far predictions are from measurements. The right one shows what counts: how much slower the
# choice is than the best of the candidates. A prediction may be wrong by a factor as long as it is wrong for all
# candidates alike.
#
# ## Where the choice was worst

# %%
worst = regret.sort_values("regret", ascending=False).head(3)
best = record.sort_values("measured").groupby(case, as_index=False).first()[[*case, "schedule"]]
shown = worst.merge(best, on=case, suffixes=("", "_best"))
shown["choice"] = shown.schedule.str.extract(r"nest (.*)")
shown["best candidate"] = shown.schedule_best.str.extract(r"nest (.*)")
shown[[*case, "regret", "choice", "best candidate"]].style.hide(axis="index").format({"regret": "{:.2f}"})

# %% [markdown]
# `decompose schedule EXPR --all` lists all candidates of an expression. `decompose schedule EXPR --measure` measures
# them on this machine, and later runs can take the measured choice.
