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
# # From a pandas log to components with labels
#
# A log has one row per event. Here an event is a change of the clocks: a time zone, a year, a week of the year, and a
# direction. The data are the clock changes of the world from 1916 to 2025, from `data/tz-transitions.tns.gz`.
#
# A CP model finds groups: zones that change their clocks in the same years, weeks and directions.

# %%
import os
import pathlib
import tempfile

import decompose
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

plt.style.use("notebooks.mplstyle")
data = pathlib.Path("../data")

# %% [markdown]
# ## The log
#
# The file lists indices that count from 1, and the `.map` files name them. These lines make the log that a program
# would have written: a frame with names in its columns.

# %%
names = ["zone", "year", "week", "direction"]
log = pd.read_csv(data / "tz-transitions.tns.gz", sep=" ", header=None, names=[*names, "days"])
for mode, name in enumerate(names, start=1):
    labels = (data / f"tz-transitions/mode-{mode}-{name}.map").read_text().splitlines()
    log[name] = np.array(labels)[log[name] - 1]
log = log.astype({"year": int, "week": int})
log.sample(5, random_state=1)

# %% [markdown]
# ## The tensor
#
# `tensor` takes columns as modes. A column of text becomes a category with labels. A column of whole numbers holds
# indices. Year 1916 would be index 1916, so the years are made a category first. The same holds for the weeks, which
# count from 1.

# %%
log = log.astype({"year": "category", "week": "category"})
x = decompose.tensor(log, modes=names, value="days")
print(x)
for name, labels in zip(x.modes, x.labels):
    print(f"{name:10} {len(labels):4} labels: {labels[0]}, {labels[1]}, ...")
print(f"{x.nnz / np.prod([float(n) for n in x.shape]):.2%} of the cells are listed; the others are zero")

# %% [markdown]
# ## The model
#
# Counts are not negative, and neither should the groups be: `nonneg=True`. Three starts guard against a poor local
# minimum. The best one is kept.

# %%
model = decompose.cp(x, rank=8, nonneg=True, restarts=3, max_iters=200, tol=1e-6, seed=1)
print(model)
pd.DataFrame(model.info["restarts"]).round(5)

# %% [markdown]
# The fit is `1 - ||X - M|| / ||X||`. Small fits are usual for sparse events: eight groups do not tell of each single
# event. The fit can be checked from its definition, over all cells.

# %%
dense = x.to_dense()
by_definition = 1 - np.linalg.norm(dense - model.to_dense()) / np.linalg.norm(dense)
print(f"fit {model.fit:.9f}, by definition {by_definition:.9f}, by score() {model.score(x):.9f}")
assert abs(model.fit - by_definition) < 1e-8

# %%
fig, ax = plt.subplots(figsize=(6, 3))
model.plot_convergence(ax)
ax.set_ylim(0.2)
plt.show()

# %% [markdown]
# ## What the components say
#
# A component has a weight and one column per mode. `top` names the strongest entries of a column.

# %%
def strongest(component, mode, count):
    return ", ".join(str(label) for label, _ in model.top(component, mode, count))


def span(component):
    """The years in which a component is above a fifth of its peak."""
    years = x.labels[1][model.factors[1][:, component] > 0.2 * model.factors[1][:, component].max()]
    return f"{years.min()} to {years.max()}"


pd.DataFrame(
    {
        "weight": model.weights.round(1),
        "zones": [strongest(r, 0, 3) for r in range(model.rank)],
        "years": [span(r) for r in range(model.rank)],
        "weeks": [strongest(r, 2, 3) for r in range(model.rank)],
        "direction": [strongest(r, 3, 1) for r in range(model.rank)],
    }
).style.hide(axis="index")

# %% [markdown]
# Two panels show each component: when it was in force, and in which weeks the clocks changed.

# %%
fig, axes = plt.subplots(model.rank, 2, figsize=(9, 9), sharex="col", width_ratios=[3, 2])
for r, (by_year, by_week) in enumerate(axes):
    colour = f"C{r % 7}"
    by_year.fill_between(x.labels[1], model.factors[1][:, r], color=colour, alpha=0.8)
    by_week.bar(x.labels[2], model.factors[2][:, r], color=colour)
    by_year.set_ylabel(f"{r}", rotation=0, labelpad=12)
    by_year.text(0.01, 0.8, strongest(r, 0, 2), transform=by_year.transAxes, fontsize=8)
    by_week.text(0.5, 0.8, strongest(r, 3, 1), transform=by_week.transAxes, fontsize=8)
    by_year.set_yticks([])
    by_week.set_yticks([])
axes[-1][0].set_xlabel("year")
axes[-1][1].set_xlabel("week of the year")
fig.suptitle("Components: years in force, and weeks of the change")
plt.show()

# %% [markdown]
# The components are regimes of daylight-saving time. Component 0 is the spring change of the European Union. Components
# 5, 4 and 6 are the spring changes of North America: until 1986, from 1987 to 2006, and from 2007. Each component has
# one direction, because clocks go forward and back in different weeks. A gap between years is no gap in the rule: the
# Sunday of the change then falls in the neighbouring week.
#
# ## Which zones share a regime
#
# The rows of the first factor describe the zones. Zones with the same shares of components have the same history. Each
# row of the picture adds up to one.

# %%
share = model.factors[0] * model.weights
share = pd.DataFrame(share / share.sum(axis=1, keepdims=True).clip(1e-12), index=x.labels[0])
some = ["Europe/Berlin", "Europe/London", "Europe/Moscow", "America/New_York", "America/Chicago",
        "America/Sao_Paulo", "Australia/Sydney", "Asia/Tehran"]
fig, ax = plt.subplots(figsize=(8, 3.4))
image = ax.imshow(share.loc[some], cmap="cividis", aspect="auto", vmin=0, vmax=1)
ax.set_yticks(range(len(some)), some)
ax.set_xticks(range(model.rank))
ax.set_xlabel("component")
ax.grid(False)
fig.colorbar(image, label="share of the zone's changes")
plt.show()

# %% [markdown]
# ## Keeping the model
#
# `save` writes a folder that `decompose predict` and `decompose eval` read, with a file of labels for each mode. `load`
# reads both again.

# %%
with tempfile.TemporaryDirectory() as folder:
    model.save(folder)
    print(*sorted(os.listdir(folder)))
    again = decompose.load(folder)
berlin, year, week, way = (
    labels.index(of) for labels, of in zip(again.labels, ("Europe/Berlin", "2010", "13", "forward"))
)
at = [[berlin], [year], [week], [way]]
assert again.predict(at) == model.predict(at)
print(f"Berlin, week 13 of 2010, forward: the model says {again.predict(at)[0]:.2f} days")

# %% [markdown]
# `components` lists the strongest entries of each component and mode, as `components.csv` of the command does.

# %%
table = again.components(2).to_pandas()
table[table["component"] == 0].style.hide(axis="index").format({"weight": "{:.1f}", "value": "{:.2f}"})
