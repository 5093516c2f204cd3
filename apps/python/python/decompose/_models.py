"""Models: what solvers return."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import Any, Callable, ClassVar, Sequence

import numpy as np

from . import _decompose
from ._labels import check_folder, read_labels, write_labels
from ._tensor import coordinates, same_labels, tensor


#: The most starts that a figure names.
MOST_NAMED = 8


class Table(dict):
    """An array for each column, by name."""

    def __getattr__(self, name: str) -> np.ndarray:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no column {name!r}; there are {list(self)}") from None

    def to_pandas(self) -> Any:
        """The columns as a ``pandas.DataFrame``."""
        import pandas

        return pandas.DataFrame(dict(self))


class History(Table):
    """The course of a run: an array for each column of ``history.csv``, a row per iteration."""


class Model:
    """What models of all kinds have.

    Attributes
    ----------
    fit : float or None
        ``1 - ||X - M|| / ||X||``; None for a completion and for a model from a file.
    history : History
        The iterations.
    info : dict
        What else the solver tells: restarts, seconds, scores.
    labels : sequence
        For each mode the names of its indices, or None.
    modes : sequence
        For each mode its own name, or None.
    """

    kind: ClassVar[str] = ""
    fit: float | None
    history: History
    info: dict
    labels: Sequence[Any]
    modes: Sequence[Any]

    def _inner(self) -> Any:
        raise NotImplementedError

    def predict(self, coords: Any) -> np.ndarray:
        """The model's values at coordinates, one row per mode, on the scale of the data."""
        coords = list(coords)
        if len(coords) != len(self.shape):
            raise ValueError(f"{len(coords)} rows of coordinates for a model of {len(self.shape)} modes")
        columns = [coordinates(mode, column) for mode, column in enumerate(coords)]
        if any(column.ndim != 1 or column.shape != columns[0].shape for column in columns):
            raise ValueError(f"rows of coordinates of shapes {[column.shape for column in columns]}")
        return self._inner().predict(columns)

    def score(self, x: Any) -> float:
        """The fit ``1 - ||X - M|| / ||X||`` of the model to a tensor, cells that are not listed being zero."""
        if self.info.get("link") == "logit":
            raise ValueError("a model of log-odds has no fit; compare predict(coords) with what was observed")
        x = tensor(x)
        if x.ndim != len(self.shape) or any(have > own for have, own in zip(x.shape, self.shape)):
            raise ValueError(f"a tensor of shape {x.shape} for a model of shape {self.shape}")
        same_labels(self, x)
        values = x.values.astype(np.float64)
        at = self.predict(x.coords)
        norm = float(np.linalg.norm(values))
        if norm == 0.0:
            raise ValueError("every value of the tensor is zero: there is nothing to compare with")
        listed = float(np.sum((values - at) ** 2))
        elsewhere = max(float(np.square(self._inner().norm())) - float(np.sum(at**2)), 0.0)
        return 1.0 - float(np.sqrt(listed + elsewhere)) / norm

    def norm(self) -> float:
        """The Frobenius norm over all cells."""
        return self._inner().norm()

    def save(self, folder: Any) -> str:
        """Write ``model.npz`` into a folder, which ``decompose predict``, ``eval`` and ``plot`` read; return its path.

        The file has the arrays of the model, and no fit or history.  The labels of mode K, counted from 1, are in
        ``mode-K-NAME.map`` beside it; such files of an earlier model are removed.
        """
        check_folder(folder)
        os.makedirs(folder, exist_ok=True)
        path = str(self._inner().write(os.fspath(folder)))
        write_labels(folder, self.labels, self.modes, self.shape)
        return path

    def plot_convergence(self, ax: Any = None) -> Any:
        """Draw the history with matplotlib; return the axes."""
        import matplotlib.pyplot as plt

        if not self.history:
            raise ValueError("this model has no history: it comes from a file")
        ax = plt.gca() if ax is None else ax
        measure = "fit" if "fit" in self.history else "val_rmse"
        if measure == "val_rmse" and np.isnan(self.history["val_rmse"]).all():
            measure = "train_rmse"
        step = "iteration" if "iteration" in self.history else "epoch"
        for restart in np.unique(self.history["restart"]):
            rows = self.history["restart"] == restart
            ax.plot(self.history[step][rows], self.history[measure][rows], label=f"start {restart}")
        ax.set_xlabel(step)
        ax.set_ylabel(measure.replace("_", " "))
        if 1 < len(np.unique(self.history["restart"])) <= MOST_NAMED:
            ax.legend()
        return ax

    @property
    def shape(self) -> tuple:
        """The extents of the tensor that it models."""
        raise NotImplementedError

    def _scaled(self, dense: np.ndarray) -> np.ndarray:
        """Bring the model's values to the scale of the data."""
        return 1.0 / (1.0 + np.exp(-dense)) if self.info.get("link") == "logit" else dense

    def __repr__(self) -> str:
        extents = " x ".join(map(str, self.shape))
        fit = "" if self.fit is None else f", fit {self.fit:.6f}"
        return f"<{type(self).__name__} {self._size()}, {extents}{fit}>"

    def _size(self) -> str:
        raise NotImplementedError

    def _labeller(self, mode: int) -> Callable[[int], Any]:
        """Return what names an index of a mode; None where it has no name."""
        names = self.labels[mode] if mode < len(self.labels) else None
        return lambda index: names[index] if names is not None and index < len(names) else None

    def _strongest(self, order: Sequence[int], weights: np.ndarray, count: int) -> Table:
        """Make the table of the strongest entries of the columns of ``factors``."""
        heads = ("component", "weight", "mode", "name", "place", "index", "label", "value")
        kinds = (np.int64, np.float64, np.int64, object, np.int64, np.int64, object, np.float64)
        found = self._inner().strongest(max(count, 0))
        labels = [self._labeller(mode) for mode in range(len(found))]
        names = [self.modes[mode] if mode < len(self.modes) else None for mode in range(len(found))]
        rows = [
            (component, weights[component], mode, names[mode], place, index, labels[mode](index), value)
            for component in order
            for mode, columns in enumerate(found)
            if component < len(columns)
            for place, (index, value) in enumerate(columns[component])
        ]
        columns = zip(*rows) if rows else [()] * len(heads)
        return Table((head, np.array(column, dtype=kind)) for head, kind, column in zip(heads, kinds, columns))

    def _meant(self, inner: Any) -> Any:
        """Tell the inner model what its values say."""
        loss = self.info.get("loss")
        if loss is None:
            return inner
        return inner.meaning(loss, self.info.get("link", "identity"), int(self.info.get("biases", 0)))


def _largest(column: np.ndarray, count: int) -> np.ndarray:
    """Return where the entries of largest magnitude are, of equal ones the first."""
    return np.argsort(-np.abs(column), kind="stable")[: max(count, 0)]


def _wide(array: Any) -> np.ndarray:
    return np.ascontiguousarray(array, dtype=np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class CP(Model):
    """A CP model ``sum_r weights[r] * factors[0][:, r] o factors[1][:, r] o ...``.

    ``factors[n]`` has the shape ``(I_n, R)`` and columns of norm 1; components stand in the order of falling weights.
    """

    weights: np.ndarray
    factors: Sequence[np.ndarray]
    fit: float | None = None
    history: History = field(default_factory=History, repr=False)
    info: dict = field(default_factory=dict, repr=False)
    labels: Sequence[Any] = field(default=(), repr=False)
    modes: Sequence[Any] = field(default=(), repr=False)
    kind: ClassVar[str] = "cp"

    def _inner(self) -> Any:
        factors = [_wide(factor) for factor in self.factors]
        return self._meant(_decompose.Model.cp(_wide(self.weights), factors))

    def _size(self) -> str:
        return f"rank {self.rank}"

    @property
    def rank(self) -> int:
        """The number of components."""
        return len(self.weights)

    @property
    def shape(self) -> tuple:
        return tuple(factor.shape[0] for factor in self.factors)

    def to_dense(self) -> np.ndarray:
        """The model at all cells."""
        dense = np.zeros(self.shape)
        for component, weight in enumerate(self.weights):
            term = np.asarray(weight, dtype=np.float64)
            for factor in self.factors:
                term = np.multiply.outer(term, factor[:, component])
            dense += term
        return self._scaled(dense)

    def top(self, component: int, mode: int, count: int = 10) -> list:
        """The indices of a mode with the largest entries in a component, as ``(label or index, entry)``."""
        column = np.asarray(self.factors[mode])[:, component]
        mode = range(len(self.factors))[mode]
        label = self._labeller(mode)
        return [(int(i) if label(i) is None else label(i), float(column[i])) for i in _largest(column, count)]

    def components(self, count: int = 10) -> Table:
        """The strongest entries of each component and mode, ``count`` at most, as ``components.csv`` has them.

        Columns: ``component``, ``weight``, ``mode``, ``name`` of the mode, ``place`` (0 is the strongest), ``index``,
        ``label`` (None without one) and ``value``.  Components stand in the order of falling weights; one of weight 0
        is left out, and so are entries that are only rounding and columns whose entries are equal but for that.  All
        count from 0, where ``components.csv`` counts from 1.
        """
        weights = np.asarray(self.weights)
        order = [r for r in np.argsort(-np.abs(weights), kind="stable") if weights[r] != 0]
        return self._strongest(order, weights, count)

    def to_tensorly(self) -> Any:
        """The model as TensorLy has it: a ``CPTensor``."""
        from tensorly.cp_tensor import CPTensor

        return CPTensor((np.asarray(self.weights), [np.asarray(factor) for factor in self.factors]))

    def to_pyttb(self) -> Any:
        """The model as a ``pyttb.ktensor``."""
        import pyttb

        return pyttb.ktensor([_wide(factor) for factor in self.factors], _wide(self.weights))


@dataclass(frozen=True, eq=False, repr=False)
class Tucker(Model):
    """A Tucker model: ``core`` of the shape ``(R_1, ..., R_N)`` times ``factors[n]`` of ``(I_n, R_n)`` in each mode."""

    core: np.ndarray
    factors: Sequence[np.ndarray]
    fit: float | None = None
    history: History = field(default_factory=History, repr=False)
    info: dict = field(default_factory=dict, repr=False)
    labels: Sequence[Any] = field(default=(), repr=False)
    modes: Sequence[Any] = field(default=(), repr=False)
    kind: ClassVar[str] = "tucker"

    def _inner(self) -> Any:
        factors = [_wide(factor) for factor in self.factors]
        return self._meant(_decompose.Model.tucker(_wide(self.core), factors))

    def _size(self) -> str:
        return "ranks " + " x ".join(map(str, self.ranks))

    @property
    def ranks(self) -> tuple:
        """The rank of each mode."""
        return tuple(self.core.shape)

    @property
    def shape(self) -> tuple:
        return tuple(factor.shape[0] for factor in self.factors)

    def to_dense(self) -> np.ndarray:
        """The model at all cells."""
        dense = np.asarray(self.core, dtype=np.float64)
        for factor in self.factors:
            # The first mode goes, its product comes last.
            dense = np.tensordot(dense, factor, axes=(0, 1))
        return self._scaled(dense)

    def components(self, count: int = 10) -> Table:
        """The strongest entries of each column of the factors, as :meth:`CP.components`; weights are NaN."""
        most = max(self.ranks)
        return self._strongest(range(most), np.full(most, np.nan), count)

    def to_tensorly(self) -> Any:
        """The model as TensorLy has it: a ``TuckerTensor``."""
        from tensorly.tucker_tensor import TuckerTensor

        return TuckerTensor((np.asarray(self.core), [np.asarray(factor) for factor in self.factors]))

    def to_pyttb(self) -> Any:
        """The model as a ``pyttb.ttensor``."""
        import pyttb

        return pyttb.ttensor(pyttb.tensor(_wide(self.core)), [_wide(f) for f in self.factors])


@dataclass(frozen=True, eq=False, repr=False)
class TensorTrain(Model):
    """A tensor train: ``cores[k]`` of the shape ``(r_k, I, r_{k+1})`` is that of mode ``order[k]``."""

    cores: Sequence[np.ndarray]
    order: Sequence[int]
    fit: float | None = None
    history: History = field(default_factory=History, repr=False)
    info: dict = field(default_factory=dict, repr=False)
    labels: Sequence[Any] = field(default=(), repr=False)
    modes: Sequence[Any] = field(default=(), repr=False)
    kind: ClassVar[str] = "tt"

    def _inner(self) -> Any:
        cores = [_wide(core) for core in self.cores]
        return self._meant(_decompose.Model.train(cores, [int(mode) for mode in self.order]))

    def _size(self) -> str:
        return "ranks " + ", ".join(map(str, self.ranks))

    @property
    def ranks(self) -> tuple:
        """The ranks of the bonds."""
        return tuple(core.shape[2] for core in self.cores[:-1])

    @property
    def shape(self) -> tuple:
        extents = [0] * len(self.cores)
        for mode, core in zip(self.order, self.cores):
            extents[mode] = core.shape[1]
        return tuple(extents)

    def to_dense(self) -> np.ndarray:
        """The model at all cells."""
        dense = np.ones((1,))
        for core in self.cores:
            dense = np.tensordot(dense, core, axes=(-1, 0))
        return self._scaled(np.transpose(dense[..., 0], np.argsort(self.order)))

    def to_tensorly(self) -> Any:
        """The model as TensorLy has it: a ``TTTensor``; its modes stand in their own order."""
        from tensorly.tt_tensor import TTTensor

        if list(self.order) != sorted(self.order):
            raise ValueError("TensorLy's trains have the modes in order; this one has others")
        return TTTensor([np.asarray(core) for core in self.cores])


def load(path: Any) -> Model:
    """Read a model from the folder of a run, a ``model.npz``, or a ktensor of the Tensor Toolbox.

    Labels are those that :meth:`Model.save` has written beside it, or that the run has read.
    """
    path = os.fspath(path)
    inner = _decompose.Model.read(path)
    model = of_arrays(inner.kind, inner.arrays())
    labels, modes = read_labels((path if os.path.isdir(path) else os.path.dirname(path)) or ".", model.shape)
    return replace(model, labels=labels, modes=modes)


def of_arrays(kind: str, arrays: dict, labels: Sequence[Any] = (), modes: Sequence[Any] = ()) -> Model:
    """Make a model of what the extension returns."""
    rest = dict(arrays)
    history = History(rest.pop("history", {}))
    common = {"fit": rest.pop("fit", None), "history": history, "labels": labels, "modes": modes}
    if kind == "cp":
        return CP(rest.pop("weights"), rest.pop("factors"), info=rest, **common)
    if kind == "tucker":
        return Tucker(rest.pop("core"), rest.pop("factors"), info=rest, **common)
    return TensorTrain(rest.pop("cores"), rest.pop("order"), info=rest, **common)
