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
# # Completion of measurements, with held-out error and baselines
#
# A table of measurements often has gaps. This notebook fills those of a benchmark. Its cells are the seconds of one
# iteration of CP, by program, tensor, rank, number of threads and processor. The measurements lie in
# `data/records/current/cp-als`. Not every program ran on every processor with every tensor.
#
# A cell that was not measured is *unknown*. It is not zero. `decompose.complete` therefore fits a model to the measured
# cells only, and judges it on cells that it has not seen.

# %%
import pathlib

import decompose
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

plt.style.use("notebooks.mplstyle")
records = pathlib.Path("../data/records/current/cp-als")

# %%
names = ["program", "tensor", "rank", "threads", "processor"]
tables = [pd.read_csv(folder / "summary.csv").assign(processor=folder.name) for folder in sorted(records.iterdir())]
table = pd.concat(tables)
table = table[(table.quantity == "iteration") & table.program.isin(["decompose", "alto", "splatt"])]
table = table[[*names, "median"]].rename(columns={"median": "seconds"}).reset_index(drop=True)
table.sample(4, random_state=0)

# %% [markdown]
# ## Logarithms first
#
# The seconds span four orders of magnitude. On this scale a few slow cells would decide the fit. Their logarithms are
# even, and a factor of two is the same error everywhere: 0.30.

# %%
table["log"] = np.log10(table.seconds)
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 2.8))
left.hist(table.seconds, bins=40)
left.set_xlabel("seconds of an iteration")
left.set_ylabel("measurements")
right.hist(table.log, bins=40)
right.set_xlabel("log10 of the seconds")
plt.show()

# %% [markdown]
# ## The tensor

# %%
x = decompose.tensor(table.astype({name: "category" for name in names}), modes=names, value="log", duplicates="error")
cells = int(np.prod(x.shape))
print(x)
print(f"{x.nnz} of {cells} cells are measured: {x.nnz / cells:.0%}")

# %% [markdown]
# ## Models and baselines
#
# The cells are divided at random: 80 % train the model, 10 % end the fit, 10 % judge it. Each `complete` also reports
# baselines, which predict each cell by a mean. `biases=True` adds an offset for each program, tensor, rank, number of
# threads and processor. With rank 1 to 4 components come on top.

# %%
def completed(seed, rank, **options):
    return decompose.complete(x, rank, seed=seed, reg="auto", restarts=3, **options)


seeds = range(5)
rows = []
for seed in seeds:
    for rank in (1, 2, 3, 4):
        for biases in (False, True):
            model = completed(seed, rank, biases=biases)
            name = f"rank {rank}" + (", offsets" if biases else "")
            rows.append({"model": name, "seed": seed, "rmse": model.info["test"]["rmse"]})
    rows += [{"model": name, "seed": seed, "rmse": scores["rmse"]} for name, scores in model.info["baselines"]]
results = pd.DataFrame(rows)
modes = {f"mean by mode {mode}": f"mean by {name}" for mode, name in enumerate(x.modes)}
results["model"] = results.model.replace(modes)
spread = results.groupby("model").rmse.agg(["median", "min", "max"]).sort_values("median")
spread["factor"] = 10 ** spread["median"]
spread.round(3)

# %%
fig, ax = plt.subplots(figsize=(8, 4))
order = spread.index[::-1]
for place, name in enumerate(order):
    colour = "C1" if name.startswith("mean") else "C0"
    of = results.rmse[results.model == name]
    ax.plot([of.min(), of.max()], [place, place], color=colour)
    ax.plot(of.median(), place, "o", color=colour, markersize=6)
ax.set_yticks(range(len(order)), order)
ax.set_xscale("log")
ax.set_xticks([0.05, 0.1, 0.2, 0.5], ["0.05", "0.1", "0.2", "0.5"])
ax.minorticks_off()
ax.set_xlabel("RMSE at test cells, in log10 of seconds: median and range over five divisions")
plt.show()

# %% [markdown]
# The best baseline is off by a factor of 2.6, the other ones by more. A mean knows of one mode only. The models combine
# what is known of a tensor with what is known of a rank and a program. Offsets help most at small ranks.
#
# ## Predictions beside measurements
#
# `info["test"]` holds the scores at the test cells. To draw single cells, the notebook hides some itself, and fits a
# model to the others.

# %%
model = completed(0, 2, biases=True)
print(model.info["test"])
hidden = np.random.default_rng(0).random(x.nnz) < 0.1
coords = np.array(x.coords)
known = (coords[:, ~hidden], x.values[~hidden], x.shape)
judged = decompose.complete(known, 2, seed=0, reg="auto", restarts=3, biases=True, split=(0.9, 0.1))
at = judged.predict(coords[:, hidden])
programs = np.array(x.labels[0])[coords[0, hidden]]
fig, ax = plt.subplots(figsize=(5.5, 4))
for program, marker in zip(x.labels[0], "osv"):
    of = programs == program
    ax.loglog(10 ** x.values[hidden][of], 10 ** at[of], marker, label=program, alpha=0.8)
ends = np.array([x.values.min(), x.values.max()])
ax.loglog(10**ends, 10**ends, color="0.5", linewidth=1, zorder=0)
ax.set_xlabel("measured seconds of held-out cells")
ax.set_ylabel("predicted seconds")
ax.legend()
plt.show()
error = np.sqrt(np.mean((at - x.values[hidden]) ** 2))
print(f"RMSE at the {hidden.sum()} cells that this notebook hid itself: {error:.3f}, a factor of {10**error:.2f}")

# %% [markdown]
# ## The gaps
#
# The last model is fitted to all measurements (`split=None`). It predicts the cells that nobody measured. Such a number
# is a guess with the error above. It says where a measurement is worth its time; it does not replace one.

# %%
model = decompose.complete(x, 2, seed=0, reg=0.05, restarts=3, biases=True, split=None)
measured = np.zeros(x.shape, dtype=bool)
measured[tuple(x.coords)] = True
gaps = np.nonzero(~measured)
guess = pd.DataFrame({name: np.array(labels)[at] for name, labels, at in zip(names, x.labels, gaps)})
guess["seconds"] = 10 ** model.predict(gaps)
print(f"{len(guess)} gaps")
guess[guess.program == "decompose"].sort_values("seconds").iloc[[0, 1, -2, -1]]

# %% [markdown]
# ## A case with a known answer
#
# `data/sun-elevation.tns.gz` follows a formula of rank 2. From 5 % of its cells the model finds the others to seven
# digits. Such an error is the sign of a model of the right form. Measurements do not have it.

# %%
sun = decompose.tensor("../data/sun-elevation.tns.gz")
model = decompose.complete(sun, 2, split=(0.05, 0.05, 0.9), reg=1e-6, seed=1)
print("test", model.info["test"])
for name, scores in model.info["baselines"]:
    print(f"{name:16} RMSE {scores['rmse']:.3f}")
