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
# # Tucker against tensor train on the same data
#
# Both models compress a tensor to a given error. A Tucker model has one small core and a factor for each mode. A tensor
# train is a chain of cores, one for each mode. Which one needs fewer numbers depends on the data. This notebook compares
# them on a smooth tensor and on a tensor of events.

# %%
import pathlib

import decompose
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

plt.style.use("notebooks.mplstyle")
data = pathlib.Path("../data")
sun = decompose.tensor(data / "sun-elevation.tns.gz")
changes = decompose.tensor(data / "tz-transitions.tns.gz")
print("elevation of the Sun:", sun)
print("clock changes:       ", changes)

# %% [markdown]
# ## Numbers stored
#
# A model of ranks `R` of a tensor of `I x J x K` stores:
#
# | model | numbers |
# |---|---|
# | CP | `R (I + J + K)` and `R` weights |
# | Tucker | `R1 R2 R3` in the core, `I R1 + J R2 + K R3` in the factors |
# | tensor train | `I R1 + R1 J R2 + R2 K` |
#
# The core of Tucker grows as a product over all modes. The cores of a train grow with pairs of neighbouring ranks only.

# %%
def numbers(model):
    parts = {
        "cp": lambda: [model.weights, *model.factors],
        "tucker": lambda: [model.core, *model.factors],
        "tt": lambda: model.cores,
    }
    return sum(part.size for part in parts[model.kind]())


def row(name, model):
    return {"model": name, "ranks": model.ranks if model.kind != "cp" else model.rank,
            "numbers": numbers(model), "relative error": 1 - model.fit}


# %% [markdown]
# ## A smooth tensor
#
# With `eps` the methods find the ranks for a bound on the relative error. The elevation of the Sun is exact at tiny
# ranks.

# %%
found = [
    row("Tucker", decompose.tucker(sun, eps=1e-6)),
    row("tensor train", decompose.tt(sun, eps=1e-6)),
    row("CP", decompose.cp(sun, 2, seed=0)),
]
print(f"cells: {np.prod(sun.shape)}")
pd.DataFrame(found).style.hide(axis="index").format({"relative error": "{:.1e}"})

# %% [markdown]
# All ranks are two. The core of Tucker says which columns mix:

# %%
model = decompose.tucker(sun, eps=1e-6)
share = model.core**2 / np.sum(model.core**2)
entries = [(*at, float(model.core[at]), float(share[at])) for at in np.ndindex(model.core.shape)]
pd.DataFrame(entries, columns=["latitude", "day", "hour", "core", "share of the norm"]).round(4)

# %% [markdown]
# Only two entries of the core are not zero: the columns do not mix. So a CP model of two terms is enough, and the
# smallest.
#
# ## Events
#
# The clock changes have no such form. Here the question is how the error falls with the numbers that are stored. Each
# method runs at several ranks, and Tucker and the train also at bounds on the error.

# %%
rows = []
for first, week in ((2, 2), (4, 4), (8, 8), (16, 12)):
    rows.append(row("Tucker", decompose.tucker(changes, (first, first, week, 2), max_iters=10, seed=1)))
    rows.append(row("tensor train", decompose.tt(changes, (first, week, 2), max_iters=10, seed=1)))
for eps in (0.8, 0.6, 0.5, 0.4, 0.3):
    rows.append(row("Tucker", decompose.tucker(changes, eps=eps, max_iters=10, seed=1)))
    rows.append(row("tensor train", decompose.tt(changes, eps=eps, seed=1)))
for rank in (2, 4, 8, 16, 32, 64, 128):
    rows.append(row("CP", decompose.cp(changes, rank, seed=1)))
events = pd.DataFrame(rows).sort_values(["model", "numbers"], ignore_index=True)
events.style.hide(axis="index").format({"relative error": "{:.3f}"})

# %%
fig, ax = plt.subplots(figsize=(7, 3.8))
for (name, of), style in zip(events.groupby("model"), ("o-", "s-", "^-")):
    ax.semilogx(of.numbers, of["relative error"], style, label=name)
stored = changes.nnz * (changes.ndim + 1)
ax.axvline(stored, color="0.6", linestyle=":")
ax.text(stored * 1.1, ax.get_ylim()[1] * 0.97, "the list of the non-zeros", color="0.4", va="top", fontsize=8)
ax.set_xlabel("numbers stored")
ax.set_ylabel("relative error")
ax.legend()
plt.show()

# %% [markdown]
# - At large errors the three differ little in size. With some ten thousand numbers Tucker and CP need about the same, and
#   the train more. Tucker and the train cross: at small errors the train is smaller.
# - A bound finds ranks by singular values, and they need not be the best for the numbers stored.
# - Below an error of about 0.4 all store more than the list of the non-zeros. Sparse events do not compress to a small
#   error, whatever the model. There a model serves to understand, not to store.
#
# ## The order of the modes
#
# A train depends on the order of its modes: neighbours share a rank. `decompose.tt` chooses an order and keeps it in
# `order`. Tucker treats all modes alike.

# %%
train = decompose.tt(changes, eps=0.5, seed=1)
names = ["zone", "year", "week", "direction"]
print("order:", " - ".join(names[mode] for mode in train.order), " ranks:", train.ranks)
fig, ax = plt.subplots(figsize=(7, 3))
for bond, spectrum in enumerate(train.info["spectra"]):
    left, right = names[train.order[bond]], names[train.order[bond + 1]]
    ax.loglog(np.arange(1, len(spectrum) + 1), spectrum / spectrum[0], "o-", markersize=2, label=f"{left} | {right}")
ax.set_ylim(1e-3, 1.5)
ax.set_xlabel("singular value of the bond")
ax.set_ylabel("over the largest")
ax.legend()
plt.show()

# %% [markdown]
# The singular values of a bond tell which rank it needs. Values that fall slowly are the sign that no small rank is
# enough.
#
# ## Which one to take
#
# | aim | model |
# |---|---|
# | components that can be named | CP |
# | a basis for each mode, and how bases interact | Tucker |
# | many modes, or one bound on the error | tensor train: its size does not grow as a product over all modes |
#
# The gap widens with the number of modes. A core of Tucker of rank 4 in ten modes has a million numbers. The cores of a
# train of rank 4 in ten modes of extent 20 have fewer than three thousand.

# %%
modes, extent, rank = np.arange(3, 11), 20, 4
fig, ax = plt.subplots(figsize=(6, 3))
ax.semilogy(modes, extent * rank * modes, "o-", label="CP")
ax.semilogy(modes, rank**modes + extent * rank * modes, "s-", label="Tucker")
ax.semilogy(modes, 2 * extent * rank + (modes - 2) * extent * rank**2, "^-", label="tensor train")
ax.set_xlabel("modes, each of extent 20, all ranks 4")
ax.set_ylabel("numbers stored")
ax.legend()
plt.show()
