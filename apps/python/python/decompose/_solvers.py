"""The solvers."""

from __future__ import annotations

import math
import operator
import warnings
from typing import Any, Callable, Iterable, NamedTuple, Sequence, Union

import numpy as np

from . import _decompose
from ._models import CP, Model, Table, TensorTrain, Tucker, of_arrays
from ._rank import RankScan
from ._tensor import SparseTensor, observed, same_labels, tensor


class Progress(NamedTuple):
    """What a callback hears of an iteration."""

    restart: int
    iteration: int
    #: The fit; of a completion the error that decides.
    value: float


class Fitted(NamedTuple):
    """What a callback of :func:`rank` hears of a fit."""

    rank: int
    restart: int
    #: The error that decides.
    value: float


Callback = Union[Callable[[Progress], Any], bool, None]


def cp(
    x: Any,
    rank: int,
    *,
    nonneg: bool | Sequence[int] = False,
    reg: float = 0.0,
    init: Any = "random",
    seed: int = 0,
    restarts: int = 1,
    tol: float = 1e-5,
    max_iters: int = 50,
    max_time: float | None = None,
    threads: int | None = None,
    progress: Callback = None,
) -> CP:
    """Decompose a tensor into ``rank`` components by alternating least squares (CP-ALS).

    Parameters
    ----------
    x
        Anything that :func:`decompose.tensor` takes.
    rank
        The number of components.
    nonneg
        True for all modes, or a list of modes, from 0, whose factors have no negative entries.
    reg
        The weight of ``||A_n||^2`` in the objective.
    init
        ``"random"``, ``"nvecs"`` (leading singular vectors), or factors: a list of arrays ``(I_n, rank)`` or a CP model.
    seed, restarts
        Start k uses ``seed + k``; the best fit is kept.
    tol, max_iters, max_time
        Iterations end at a change of the fit below ``tol``, after ``max_iters``, or after ``max_time`` seconds.
    threads
        The number of threads; by default all.  The same input, options and number give the same bits.
    progress
        A function that hears :class:`Progress` after each iteration, or True for a bar (with tqdm).
    """
    x = _ready(x)
    modes = list(range(x.ndim)) if nonneg is True else [] if nonneg is False else [_mode(m, x.ndim) for m in nonneg]
    factors = None
    if isinstance(init, CP):
        init = init.factors
    if not isinstance(init, str):
        factors, init = [np.ascontiguousarray(factor, dtype=np.float64) for factor in init], "random"
        if not all(np.isfinite(factor).all() for factor in factors):
            raise ValueError("init holds an infinite or undefined value")
    options = {"rank": _count("rank", rank), "nonneg": modes, "reg": _number("reg", reg), "init": init, "factors": factors}
    course = (seed, restarts, tol, max_iters, max_time, threads)
    return _solve(_decompose.cp, "cp", (x,), options, course, progress)


def tucker(
    x: Any,
    ranks: int | Sequence[int] | None = None,
    *,
    eps: float | None = None,
    method: str = "hooi",
    nonneg: bool = False,
    init: str = "random",
    seed: int = 0,
    restarts: int = 1,
    tol: float = 1e-5,
    max_iters: int = 50,
    max_time: float | None = None,
    threads: int | None = None,
    progress: Callback = None,
) -> Tucker:
    """Decompose a tensor into a small core and one factor per mode.

    Parameters
    ----------
    ranks
        One rank per mode, or one for all.
    eps
        In the place of ranks: the bound on the relative error, for which singular values find the ranks.
    method
        ``"hooi"`` (higher-order orthogonal iteration), ``"hosvd"`` or ``"st-hosvd"`` (no iterations).
    nonneg
        Factors and core without negative entries.
    init
        ``"random"`` or ``"hosvd"``.

    The others are those of :func:`cp`.
    """
    options = {"ranks": _ranks(ranks, eps), "eps": eps, "method": method, "nonneg": nonneg, "init": init}
    course = (seed, restarts, tol, max_iters, max_time, threads)
    return _solve(_decompose.tucker, "tucker", (_ready(x),), options, course, progress)


def tt(
    x: Any,
    ranks: int | Sequence[int] | None = None,
    *,
    eps: float | None = None,
    max_rank: int | None = None,
    method: str | None = None,
    seed: int = 0,
    restarts: int = 1,
    tol: float = 1e-5,
    max_iters: int = 50,
    max_time: float | None = None,
    threads: int | None = None,
    progress: Callback = None,
) -> TensorTrain:
    """Decompose a tensor into a tensor train.

    Parameters
    ----------
    ranks
        One rank per bond, or one for all.
    eps, max_rank
        In the place of ranks: the bound on the relative error, and the most that a rank may be.
    method
        ``"als"`` (default with ranks), ``"svd"`` (default with ``eps``) or ``"dmrg"``.

    The others are those of :func:`cp`.
    """
    options = {"ranks": _ranks(ranks, eps), "eps": eps, "max_rank": max_rank, "method": method}
    course = (seed, restarts, tol, max_iters, max_time, threads)
    return _solve(_decompose.tt, "tt", (_ready(x),), options, course, progress)


def complete(
    x: Any,
    rank: int | Sequence[int],
    *,
    model: str = "cp",
    val: Any = None,
    test: Any = None,
    split: Sequence[float] | None = (0.8, 0.1, 0.1),
    time_mode: int | None = None,
    algorithm: str | None = None,
    loss: str = "gaussian",
    huber_delta: float | None = None,
    reg: float | Sequence[float] | str = 0.01,
    nonneg: bool = False,
    biases: bool = False,
    patience: int = 20,
    step: float | None = None,
    seed: int = 0,
    restarts: int = 1,
    tol: float = 1e-4,
    max_iters: int = 500,
    max_time: float | None = None,
    threads: int | None = None,
    progress: Callback = None,
) -> Model:
    """Fit a model to observed elements, where one that is not listed is unknown, not zero.

    Parameters
    ----------
    x
        Anything that :func:`decompose.tensor` takes; of a dense array NaN is unknown and zeros are observed.
        Elements that share their coordinates are averaged.
    rank
        The number of components; of ``model="tucker"`` or ``"tt"`` a rank or a list of them.
    val, test
        Held-out elements: those that end the fit, and those that judge it.
    split
        Without ``val`` and ``test``: the shares of training, validation and test elements; None fits all.
    time_mode
        Split by the index of this mode instead of at random: the last indices are the test.
    algorithm
        als, als-cg, ccd, sgd, adam or lbfgs; by default als for the gaussian loss and lbfgs for others.
    loss, huber_delta
        gaussian, poisson, bernoulli, huber or gamma; from where huber is linear.
    reg
        The ridge, one or one per factor; ``"auto"`` lets the validation error choose it.
    biases
        Add an offset and one per index (``model="cp"``).
    patience
        Epochs without an improvement by ``tol`` that end the fit.

    The scores are in ``info``: ``info["test"]["rmse"]``; baselines in ``info["baselines"]``.
    """
    x, held_out = _parts(_told(observed(x, duplicates="mean")), val, test)
    fitted = (algorithm, loss, huber_delta, reg, nonneg, biases, patience, step)
    options = {"model": model, "ranks": _ranks(rank, None), **_fit(*fitted), **_split(split, time_mode, x.ndim)}
    course = (seed, restarts, tol, max_iters, max_time, threads)
    return _solve(_decompose.complete, model, (x, held_out), options, course, progress)


def rank(
    x: Any,
    ranks: Iterable[int],
    *,
    method: str = "complete",
    val: Any = None,
    test: Any = None,
    split: Sequence[float] | None = (0.8, 0.1, 0.1),
    time_mode: int | None = None,
    algorithm: str | None = None,
    loss: str = "gaussian",
    huber_delta: float | None = None,
    reg: float | Sequence[float] | str = 0.01,
    nonneg: bool = False,
    biases: bool = False,
    patience: int = 20,
    step: float | None = None,
    seed: int = 0,
    restarts: int = 1,
    tol: float = 1e-4,
    max_iters: int = 500,
    max_time: float | None = None,
    threads: int | None = None,
    progress: Callable[[Fitted], Any] | bool | None = None,
) -> RankScan:
    """Compare ranks of CP models by held-out error, fit and stability, and recommend one.

    A model is fitted at each rank from each of ``restarts`` starts, and judged on elements that it has not seen.  The
    smallest rank is recommended that gains 99 % of what the best one gains over the mean of all elements, among ranks
    at which the starts that reach the least error agree on the components.

    Parameters
    ----------
    x
        Anything that :func:`decompose.tensor` takes, of shape ``(I_0, ..., I_{N-1})``.
    ranks
        The ranks to compare, as ``range(1, 9)``.
    method
        What elements that are not listed are: ``"complete"`` unknown, ``"cp"`` zero.  With ``"cp"`` fit and match are
        those of :func:`cp` on the whole tensor; errors are those of completions of the listed elements and as many
        others, drawn at random, that are zero.
    restarts
        Starts at each rank, from ``seed``, ``seed + 1``, ...; one start tells nothing of stability.
    progress
        A function that hears :class:`Fitted` after each fit, or True for a bar (with tqdm).

    The others are those of :func:`complete`.

    Returns
    -------
    RankScan
        ``table`` has an array of shape ``(len(ranks),)`` for each column; ``recommended`` is the rank to choose.
    """
    if method == "cp":
        if val is not None or test is not None:
            raise ValueError("method cp divides the tensor itself; use split")
        x = _told(tensor(x))
    else:
        x = _told(observed(x, duplicates="mean"))
    x, held_out = _parts(x, val, test)
    fitted = (algorithm, loss, huber_delta, reg, nonneg, biases, patience, step)
    compared = sorted({_count("a rank", one) for one in (ranks if np.iterable(ranks) else [ranks])})
    if not compared:
        raise ValueError("ranks is empty; give the ranks to compare, as range(1, 9)")
    options = {
        "method": method,
        "compared": compared,
        "model": "cp",
        "ranks": compared[:1],
        **_fit(*fitted),
        **_split(split, time_mode, x.ndim),
        **_course(seed, restarts, tol, max_iters, max_time, threads),
    }
    with _Listener(progress, Fitted, (len(compared), options["restarts"])) as listener:
        found = _decompose.rank(x._inner, held_out, {**options, "callback": listener.callback})
    return RankScan(table=Table(found.pop("table")), **found)


def _parts(x: SparseTensor, val: Any, test: Any) -> tuple:
    """Return the tensor and its held-out elements, if they are given."""
    def part_of(part: Any) -> Any:
        # Coordinates alone say nothing of the last indices.
        shape = x.shape if isinstance(part, (tuple, list)) and len(part) == 2 else None
        return None if part is None else observed(part, shape=shape, duplicates="mean")

    parts = [part_of(part) for part in (val, test)]
    for part in parts:
        if part is not None:
            same_labels(x, part)
    return x, tuple(None if part is None else part._inner for part in parts)


def _fit(
    algorithm: str | None,
    loss: str,
    huber_delta: float | None,
    reg: Any,
    nonneg: bool,
    biases: bool,
    patience: int,
    step: float | None,
) -> dict:
    """The options of a fit to observed elements."""
    if not np.isscalar(reg) and len(reg) == 0:
        raise ValueError("reg is empty; give a number, one per factor, or \"auto\"")
    return {
        "algorithm": algorithm,
        "loss": loss,
        "huber_delta": huber_delta,
        "reg": [] if reg == "auto" else [float(reg)] if np.isscalar(reg) else [float(r) for r in reg],
        "sign": "nonnegative" if nonneg else "all",
        "biases": "modes" if biases else "none",
        "patience": _count("patience", patience),
        "step": step,
    }


def _split(split: Any, time_mode: Any, order: int) -> dict:
    """The options that divide the elements."""
    return {
        "split": [] if split is None else [float(share) for share in split],
        "time_mode": None if time_mode is None else _mode(time_mode, order),
    }


def _ranks(ranks: Any, eps: float | None) -> list:
    if (ranks is None) == (eps is None):
        raise ValueError("give either ranks or eps, the bound on the relative error")
    if ranks is None:
        return []
    each = [ranks] if np.ndim(ranks) == 0 else ranks
    return [_count("a rank", rank) for rank in each]


def _count(name: str, number: Any, least: int = 1) -> int:
    """Check a whole number."""
    if isinstance(number, (bool, str)):
        raise TypeError(f"{name} is {number!r}; use a whole number")
    try:
        number = operator.index(number)
    except TypeError:
        raise TypeError(f"{name} is {number!r}; use a whole number") from None
    if not least <= number < 2**63:
        raise ValueError(f"{name} is {number}; use a whole number from {least} on")
    return number


def _number(name: str, number: Any) -> float:
    """Check a number."""
    if isinstance(number, (bool, str)) or np.ndim(number) > 0:
        raise TypeError(f"{name} is {number!r}; use a number")
    try:
        return float(number)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {number!r}; use a number") from None


def _mode(mode: Any, order: int) -> int:
    """Check a mode, counted from 0."""
    mode = _count("a mode", mode, 0)
    if mode >= order:
        raise ValueError(f"there is no mode {mode}; the tensor has {order}, counted from 0")
    return mode


def _ready(x: Any) -> SparseTensor:
    return _told(tensor(x))


def _told(x: SparseTensor) -> SparseTensor:
    """Warn once where kernels are interpreted."""
    why = _decompose.interpreted()
    if why is not None:
        warnings.warn(f"kernels are interpreted, many times slower: {why}", RuntimeWarning, stacklevel=4)
    return x


def _solve(
    function: Callable, kind: str, inputs: tuple, options: dict, course: tuple, progress: Callback
) -> Any:
    """Run a solver, and make a model of what it returns."""
    options = {**options, **_course(*course)}
    x, rest = inputs[0], inputs[1:]
    with _Listener(progress, Progress, (options["restarts"], options["max_iters"])) as listener:
        found = function(x._inner, *rest, {**options, "callback": listener.callback})
    warning = found.pop("warning", None)
    if warning:
        warnings.warn(warning, RuntimeWarning, stacklevel=3)
    return of_arrays(kind, found, x.labels, x.modes)


def _course(
    seed: Any, restarts: Any, tol: float, max_iters: Any, max_time: float | None, threads: Any
) -> dict:
    """Check when iterations end, and what they run on."""
    endless = max_time is None or _number("max_time", max_time) == math.inf
    return {
        "seed": _count("seed", seed, 0),
        "restarts": _count("restarts", restarts),
        "tol": _number("tol", tol),
        "max_iters": _count("max_iters", max_iters),
        "max_time": None if endless else float(max_time),
        "threads": None if threads is None else _count("threads", threads),
    }


class _Listener:
    """Hands progress to a function, or to a bar of tqdm.

    The work has ``runs`` parts of up to ``steps`` steps.  A part that ends early takes its other steps off the bar.
    """

    def __init__(self, progress: Any, kind: Callable, work: tuple) -> None:
        self.callback = None
        self.bar = None
        self.runs, self.steps = work
        self.run, self.done = None, 0
        if progress is True:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                return
            self.bar = tqdm(total=self.runs * self.steps, unit="fit" if kind is Fitted else "it")
            self.callback = self._advance
        elif progress and not callable(progress):
            raise TypeError(f"progress is {progress!r}; use a function, or True for a bar")
        elif progress:
            self.callback = lambda *told: progress(kind(*told))

    def _advance(self, run: int, _step: int, value: float) -> None:
        if run != self.run:
            self.run, self.done = run, self.done + 1
            self.bar.total = self.bar.n + (self.runs - self.done + 1) * self.steps
        self.bar.update()
        self.bar.set_postfix_str(f"{value:.6f}")

    def __enter__(self) -> "_Listener":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        if self.bar is None:
            return
        if kind is None:
            # The end came before the most iterations.
            self.bar.total = self.bar.n
            self.bar.refresh()
        self.bar.close()
