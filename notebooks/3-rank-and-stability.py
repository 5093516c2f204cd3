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
# # Choosing the rank, and judging stability
#
# A larger rank always fits better. Two questions tell which rank to take.
#
# 1. Does the model predict cells that it has not seen better?
# 2. Do other starts find the same components?
#
# `decompose.rank` answers both. The command `decompose rank` gives the same table.

# %%
import pathlib

import decompose
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

plt.style.use("notebooks.mplstyle")
data = pathlib.Path("../data")

# %% [markdown]
# ## A tensor of known rank
#
# The elevation of the Sun by latitude, day and time of day follows a formula of two terms. Its rank is two. Noise makes
# it a measurement. One cell in ten is kept.

# %%
rng = np.random.default_rng(1)
sun = decompose.tensor(data / "sun-elevation.tns.gz")
kept = rng.random(sun.nnz) < 0.1
coords = [column[kept] for column in sun.coords]
noisy = (coords, sun.values[kept] + 0.1 * rng.standard_normal(kept.sum()), sun.shape)
scan = decompose.rank(noisy, range(1, 7), restarts=5, reg=0.01, seed=1)
scan.to_pandas().round(4)

# %%
print("recommended:", scan.recommended)
print("\n".join(scan.why))
scan.plot()
plt.show()

# %% [markdown]
# - The training error falls with every rank. The validation and test errors do not: beyond rank 2 the model fits noise.
# - The noise has a standard deviation of 0.1. A test error near 0.1 means that nothing is left to find.
# - `agreement` is the factor match score between the starts that reached the least error. It is 1 for the same
#   components, whatever their order and signs. At rank 2 it is 1, and beyond it falls.
#
# ## Counts of which most cells are zero
#
# The clock changes of the world are events. A cell that is not listed is zero, so `method="cp"`. Fit and agreement are
# then those of CP decompositions of the whole tensor.

# %%
changes = decompose.tensor(data / "tz-transitions.tns.gz")
scan = decompose.rank(changes, [1, 2, 3, 4, 6, 8, 12, 16], method="cp", restarts=5, reg="auto", seed=1)
scan.to_pandas().round(4)

# %%
print("recommended:", scan.recommended, " for predictions alone:", scan.for_prediction)
print("\n".join(scan.why))
scan.plot()
plt.show()

# %% [markdown]
# Here is no rank after which nothing is left. The error falls slowly, and the agreement falls too. Ranks above the
# recommended one may predict better, but their components depend on the start. Do not read meaning into them.
#
# ## What disagreement looks like
#
# `cp` keeps the scores between its starts in `info["match_scores"]`. The picture shows them for a small and for a large
# rank.

# %%
fig, axes = plt.subplots(1, 2, figsize=(8, 3.4))
models = {}
for ax, rank in zip(axes, (2, 12)):
    models[rank] = decompose.cp(changes, rank, restarts=8, max_iters=100, seed=1)
    scores = models[rank].info["match_scores"]
    image = ax.imshow(scores, vmin=0, vmax=1, cmap="cividis")
    ax.set_title(f"rank {rank}")
    ax.set_xlabel("start")
    ax.set_ylabel("start")
    ax.grid(False)
fig.colorbar(image, ax=axes, label="factor match score")
plt.show()

# %% [markdown]
# All starts fit about equally well. The fit alone does not show that they differ.

# %%
pd.DataFrame(
    {
        rank: [start["fit"] for start in model.info["restarts"]]
        for rank, model in models.items()
    }
).rename_axis("start").add_prefix("fit at rank ").round(4)

# %% [markdown]
# ## Which components are stable
#
# Some components of a large model are found by every start. Each component of the best model is matched with the most
# similar one of every other start. The similarity is the product of the cosines over the modes.

# %%
def similarity(a, b):
    """The similarity of each component of one model with the nearest of another."""
    cosines = np.prod([np.abs(one.T @ other) for one, other in zip(a.factors, b.factors)], axis=0)
    return cosines.max(axis=1)


best = models[12]
others = [decompose.cp(changes, 12, max_iters=100, seed=seed) for seed in range(20, 28)]
found = np.array([similarity(best, other) for other in others])
fig, ax = plt.subplots(figsize=(8, 3))
ax.boxplot(found, positions=range(12), medianprops={"color": "C1"})
ax.axhline(0.85, color="0.6", linestyle=":")
ax.set_xlabel("component of the best model, by falling weight")
ax.set_ylabel("similarity in other starts")
plt.show()

# %% [markdown]
# Components near 1 can be reported. The others are one way among several to split the rest.
#
# ## In short
#
# 1. Take several starts. One start tells nothing of stability.
# 2. Take the smallest rank whose held-out error is nearly the least, and at which starts agree.
# 3. For predictions alone the rank may be larger.
# 4. If no rank is stable, say so, or look for single components that are.
