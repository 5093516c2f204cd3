"""What a comparison of ranks returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Sequence

import numpy as np

from ._models import Table


@dataclass(frozen=True, eq=False, repr=False)
class RankScan:
    """The errors, fits and stability of CP models by rank.

    Attributes
    ----------
    table : Table
        An array of shape ``(K,)`` for each column, a row for each of K ranks, ascending.  ``rank``; ``train``, ``val``
        and ``test``, the errors of the best start; ``worst``, that of the worst start; ``fit``; ``match``, the mean
        factor match score between starts; ``reached``, how many starts reach the least error; ``agreement``, the
        score between these; ``seconds``.  What there is not is NaN.
    recommended : int or None
        The rank to choose; None if no rank can be told from another.
    for_prediction : int or None
        The rank for predictions, whatever its components are.
    why : sequence of str
        The reasons.
    error : str
        The name of the errors, as RMSE.
    """

    table: Table
    recommended: int | None
    for_prediction: int | None
    why: Sequence[str]
    error: str = field(default="RMSE")

    def to_pandas(self) -> Any:
        """The table as a ``pandas.DataFrame`` with the ranks as index."""
        return self.table.to_pandas().set_index("rank")

    def plot(self, axes: Any = None) -> Any:
        """Draw errors, fit and agreement by rank with matplotlib; return the three axes."""
        import matplotlib.pyplot as plt

        if axes is None:
            _, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
        ranks = self.table["rank"]
        for name, label in (("train", "training"), ("val", "validation"), ("test", "test")):
            if not np.isnan(self.table[name]).all():
                axes[0].plot(ranks, self.table[name], marker="o", label=label)
        axes[0].legend()
        axes[1].plot(ranks, self.table["fit"], marker="o")
        axes[2].plot(ranks, self.table["agreement"], marker="o")
        for axis, name in zip(axes, (self.error, "fit", "match of the best starts")):
            axis.set_xlabel("rank")
            axis.set_ylabel(name)
            if self.recommended is not None:
                axis.axvline(self.recommended, color="0.6", linestyle=":", zorder=0)
        return axes

    def __repr__(self) -> str:
        ranks = ", ".join(map(str, self.table["rank"]))
        return f"<RankScan of ranks {ranks}; recommended {self.recommended}>"
