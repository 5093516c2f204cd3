"""The solvers as estimators: options in the constructor, ``fit``, results with a trailing underscore."""

from __future__ import annotations

import inspect
from typing import Any, Callable, ClassVar

from ._models import Model
from ._solvers import complete, cp, tt, tucker


class _Estimator:
    """Options by name; ``fit`` hands them to a solver.  ``sklearn.base.clone`` copies an estimator.

    ``random_state`` is the solver's ``seed``.  ``model_`` holds the model after :meth:`fit`, and the attributes of the
    model have names with a trailing underscore: ``factors_``, ``weights_``, ``fit_``, ``history_``.
    """

    _solver: ClassVar[Callable]

    def __init_subclass__(cls) -> None:
        """Show the options of the solver as those of the constructor."""
        rank, *others = list(inspect.signature(cls._solver).parameters.values())[1:]
        state = inspect.Parameter("random_state", inspect.Parameter.KEYWORD_ONLY, default=0)
        others = [parameter for parameter in others if parameter.name != "seed"]
        cls.__signature__ = inspect.Signature([rank, state, *others])

    def __init__(self, *ranks: Any, random_state: int = 0, **options: Any) -> None:
        parameters = list(inspect.signature(type(self)._solver).parameters.values())[1:]
        names = [parameter.name for parameter in parameters]
        rank = names[0]
        if len(ranks) > 1:
            raise TypeError(f"{type(self).__name__} takes {rank} and options by name")
        if ranks and rank in options:
            raise TypeError(f"{rank} is given twice")
        if ranks:
            options[rank] = ranks[0]
        unknown = [name for name in options if name not in names or name == "seed"]
        if unknown:
            raise TypeError(f"no option {unknown[0]!r}; there are {[n for n in names if n != 'seed']}")
        defaults = {p.name: p.default for p in parameters if p.default is not p.empty and p.name != "seed"}
        given = {**defaults, **options, "random_state": random_state}
        self._options = {name: given[name] for name in (rank, "random_state", *names) if name in given}

    def get_params(self, deep: bool = True) -> dict:
        """The options, defaults included."""
        return dict(self._options)

    def set_params(self, **options: Any) -> "_Estimator":
        """Change options; return the estimator."""
        changed = {**self._options, **options}
        self.__init__(**changed)
        return self

    def fit(self, x: Any, y: Any = None) -> "_Estimator":
        """Fit the model to a tensor; return the estimator."""
        options = dict(self._options)
        seed = options.pop("random_state")
        seed = 0 if seed is None else seed
        self.model_: Model = type(self)._solver(x, seed=seed, **options)
        return self

    def fit_transform(self, x: Any, y: Any = None) -> Model:
        """Fit the model and return it."""
        return self.fit(x).model_

    def predict(self, coords: Any) -> Any:
        """The model's values at coordinates, one row per mode."""
        return self.model_.predict(coords)

    def score(self, x: Any, y: Any = None) -> float:
        """The fit of the model to a tensor."""
        return self.model_.score(x)

    def __getattr__(self, name: str) -> Any:
        if name in self.__dict__.get("_options", {}):
            return self._options[name]
        if name.endswith("_") and not name.endswith("__") and "model_" in self.__dict__:
            return getattr(self.__dict__["model_"], name[:-1])
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}; was it fitted?")

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self._options.items())
        return f"{type(self).__name__}({options})"


class CPDecomposition(_Estimator):
    """CP-ALS with the options of :func:`decompose.cp`."""

    _solver = staticmethod(cp)


class TuckerDecomposition(_Estimator):
    """Tucker with the options of :func:`decompose.tucker`."""

    _solver = staticmethod(tucker)


class TensorTrainDecomposition(_Estimator):
    """Tensor trains with the options of :func:`decompose.tt`."""

    _solver = staticmethod(tt)


class TensorCompletion(_Estimator):
    """Completion with the options of :func:`decompose.complete`."""

    _solver = staticmethod(complete)

    def score(self, x: Any, y: Any = None) -> float:
        """Minus the root mean square error at the elements of a tensor: the larger, the better."""
        import numpy as np

        from ._tensor import observed

        x = observed(x, duplicates="mean")
        return -float(np.sqrt(np.mean((x.values - self.model_.predict(x.coords)) ** 2)))
