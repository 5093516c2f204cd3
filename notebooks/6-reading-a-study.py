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
# # Reading and comparing a study
#
# A study is many runs that one file describes: tensors, commands, options, seeds. `decompose experiment run` runs it,
# and `decompose experiment report` makes a page of it. This notebook runs a small study, and reads what it leaves with
# pandas.
#
# It needs the command `decompose`, on the `PATH` or named by the variable `DECOMPOSE`.

# %%
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

plt.style.use("notebooks.mplstyle")
program = os.environ.get("DECOMPOSE") or shutil.which("decompose")
assert program, "install the command: cargo install --path apps/decompose"
folder = pathlib.Path(tempfile.mkdtemp())
_ = shutil.copy("../data/tz-transitions.tns.gz", folder)

# %% [markdown]
# ## The study
#
# How much fit does a number of components buy, from how many starts, and what does it cost? Three methods, several
# ranks, three seeds.

# %%
study = """
title = "Models of the world's clock changes"
seeds = "0:2"

[tensors.tz-transitions]
file = "tz-transitions.tns.gz"

[[runs]]
command = "cp"
options = { max-iters = 100, tol = 1e-5, no-plots = true }
grid = { rank = [1, 2, 4, 8, 16] }

[[runs]]
name = "cp-nonneg"
command = "cp"
options = { max-iters = 100, tol = 1e-5, no-plots = true, nonneg = "1,2,3,4" }
grid = { rank = [1, 2, 4, 8, 16] }

[[runs]]
command = "tucker"
options = { max-iters = 20, tol = 1e-4, no-plots = true }
grid = { ranks = ["2,2,2,2", "4,4,4,2", "8,8,8,2"] }
"""
(folder / "study.toml").write_text(study)


def run(*words):
    return subprocess.run([program, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


plan = run("experiment", "run", "study.toml", "--out", "study", "--dry-run").splitlines()
print("\n".join([*plan[:8], "..."]))

# %% [markdown]
# The plan comes first: the groups, a forecast, and the options of every run. Now the runs are made.

# %%
print(run("experiment", "run", "study.toml", "--out", "study"))

# %% [markdown]
# A run that is finished is never repeated. The same study with `--resume` has nothing left to do. After an interrupt, or
# after a change of the file, it makes the missing runs only.

# %%
print(run("experiment", "run", "study.toml", "--out", "study", "--resume"))

# %% [markdown]
# ## What it leaves
#
# The report is a page for people. Beside it lie its tables and figures as files for programs.

# %%
run("experiment", "report", "study")
report = folder / "study" / "report"
print("\n".join(sorted(path.name for path in report.iterdir())))

# %%
runs = pd.read_csv(report / "runs.csv")
runs[["group", "rank", "ranks", "seed", "state", "quality", "iterations", "stop", "solve_seconds"]].sample(
    5, random_state=3
)

# %% [markdown]
# `quality` is the fit here; `measure` says so. `summary.csv` has medians and quartiles over the seeds.

# %%
summary = pd.read_csv(report / "summary.csv")
summary[["group", "rank", "ranks", "runs", "quality", "quality_low", "quality_high", "iterations"]].round(4)

# %% [markdown]
# ## Comparing groups
#
# Each group becomes a curve over its size. The band spans the seeds. Where bands overlap, one run of each would not tell
# which group is better.

# %%
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), sharey=True)
for (group, of), style in zip(runs.groupby("group"), ("o-", "s-", "^-")):
    by = of.groupby("model_bytes").agg(
        median=("quality", "median"), least=("quality", "min"), most=("quality", "max"), seconds=("solve_seconds", "median")
    )
    (line,) = left.plot(by.index / 8, by["median"], style, label=group)
    left.fill_between(by.index / 8, by.least, by.most, color=line.get_color(), alpha=0.2)
    right.plot(by.seconds, by["median"], style, label=group)
left.set_xscale("log")
left.set_xticks([1000, 2000, 4000, 8000], ["1000", "2000", "4000", "8000"])
right.set_xscale("log")
right.set_xticks([0.005, 0.01, 0.02, 0.05, 0.1], ["0.005", "0.01", "0.02", "0.05", "0.1"])
left.minorticks_off()
right.minorticks_off()
left.set_xlabel("numbers in the model")
left.set_ylabel("fit")
right.set_xlabel("seconds of the solver, median")
left.legend()
plt.show()

# %% [markdown]
# ## Paired differences
#
# Both groups of CP used the same seeds and ranks. The difference of their fits at the same rank and seed tells what the
# constraint costs: nothing up to rank 2, and some hundredths of the fit from rank 4 on.

# %%
pairs = runs[runs.command == "cp"].pivot_table(index=["rank", "seed"], columns="group", values="quality")
cost = pairs["cp"] - pairs["cp-nonneg"]
cost.unstack("seed").add_prefix("seed ").round(4)

# %% [markdown]
# ## From a row to its run
#
# Every row names the folder of its run. It holds the model, the history and `run.json`, and any of them can be looked
# at.

# %%
best = runs.loc[runs[runs.command == "cp"].quality.idxmax()]
place = folder / "study" / "runs" / best.folder
print(sorted(path.name for path in place.iterdir()))
record = json.loads((place / "run.json").read_text())
print("options that were given:", {name: record["options"][name] for name in ("rank", "seed", "tol", "max_iters")})

# %%
fig, ax = plt.subplots(figsize=(7, 3.4))
chosen = runs[(runs.group == "cp") & runs["rank"].isin([4, 16])]
for rank, of in chosen.groupby("rank"):
    for at, where in enumerate(of.folder):
        history = pd.read_csv(folder / "study" / "runs" / where / "history.csv")
        ax.plot(history.iteration, history.fit, color="C0" if rank == 4 else "C1", label=f"rank {rank:.0f}" if at == 0 else None)
ax.set_xlabel("iteration")
ax.set_ylabel("fit")
ax.legend()
plt.show()

# %% [markdown]
# `decompose rerun DIR` repeats one run from its `run.json` and compares the results.

# %%
print(run("rerun", str(pathlib.Path("study", "runs") / best.folder)))
shutil.rmtree(folder)
