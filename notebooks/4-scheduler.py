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
import pathlib
import re
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
# tells how.

# %%
def matrices(rank, skip):
    return [rng.standard_normal((extent, rank)) for mode, extent in enumerate(x.shape) if mode != skip]


print(decompose.explain("ijkl,jr,kr,lr->ir", x, *matrices(16, 0)))

# %% [markdown]
# How to read the nest:
#
# - `j{ ... }` is a loop over index `j`. Loops over indices of the tensor visit non-zeros only.
# - `T1`, `T2`, ... are the steps of the product, in the order in which they run. Each multiplies two operands.
# - A step within fewer loops runs less often. What is shared by many non-zeros is computed once, in an outer loop.
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
pd.set_option("display.max_colwidth", None)
pd.DataFrame({name: explained(*case) for name, case in cases.items()}).T

# %% [markdown]
# - In the TTMc the dense loops `r`, `s`, `t` stand inside: the small core of a result row is a buffer.
# - With two sparse tensors the loops over shared indices visit what both have.
#
# ## Predicted against measured, here
#
# A prediction is of the kernel alone. A call of `einsum` also sorts the tensor, searches, and looks up the compiled
# kernel. For a small tensor this is most of its time. Solvers do it once and run the kernel in every iteration, so their
# history shows the kernel itself: `mttkrp_1_seconds` and so on, counted from 1.

# %%
ranks = [4, 8, 16, 32, 64, 128]
rows = []
for rank in ranks:
    operands = matrices(rank, 0)
    predicted = explained("ijkl,jr,kr,lr->ir", x, *operands)["predicted"]
    calls = []
    for _ in range(7):
        begun = time.perf_counter()
        decompose.einsum("ijkl,jr,kr,lr->ir", x, *operands)
        calls.append(time.perf_counter() - begun)
    history = decompose.cp(x, rank, tol=0, max_iters=30, seed=1).history
    rows.append((rank, predicted, np.median(history.mttkrp_1_seconds[5:]), np.median(calls)))
times = pd.DataFrame(rows, columns=["rank", "predicted", "kernel in cp", "call of einsum"]).set_index("rank")
times.map(lambda seconds: f"{1e6 * seconds:.0f} µs")

# %%
fig, ax = plt.subplots(figsize=(6, 3.4))
for name, style in (("predicted", "s--"), ("kernel in cp", "o-"), ("call of einsum", "^-")):
    ax.loglog(times.index, times[name], style, label=name)
ax.set_xticks(ranks, ranks)
ax.minorticks_off()
ax.set_xlabel("rank")
ax.set_ylabel("seconds, mode 0")
ax.legend()
plt.show()

# %% [markdown]
# The plan of `cp` merges modes when kernels can share work. Its kernel of mode 0 need not be the one that `explain`
# shows, and may be faster than the prediction for one kernel on its own.
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
shown["choice"] = shown.schedule.str.extract(r"nest (.*?) \|")
shown["best candidate"] = shown.schedule_best.str.extract(r"nest (.*?) \|")
shown[[*case, "regret", "choice", "best candidate"]].round({"regret": 2})

# %% [markdown]
# `decompose schedule EXPR --all` lists all candidates of an expression. `decompose schedule EXPR --measure` measures
# them on this machine, and later runs can take the measured choice.
