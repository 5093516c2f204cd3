"""Decompositions and completions of sparse tensors by scheduled, compiled kernels.

A tensor is whatever holds non-zero elements: a path, a SciPy sparse array, ``(coords, values[, shape])``, a data
frame with ``modes`` and ``value``, a ``sparse.COO``, a ``pyttb.sptensor`` or a dense array; :func:`tensor` takes all
of them.

    >>> import numpy as np, decompose
    >>> coords = np.array([[0, 1, 2, 2], [0, 1, 0, 1], [1, 0, 1, 0]])
    >>> model = decompose.cp((coords, [1.0, 2.0, 3.0, 4.0]), rank=3)
    >>> model.factors[0].shape
    (3, 3)
"""

from ._decompose import __version__
from ._models import CP, History, Model, Table, TensorTrain, Tucker, load
from ._rank import RankScan
from ._solvers import Fitted, Progress, complete, cp, rank, tt, tucker
from ._tensor import SparseTensor, tensor
from ._einsum import einsum, explain
from ._estimators import CPDecomposition, TensorCompletion, TensorTrainDecomposition, TuckerDecomposition

__all__ = [
    "CP",
    "CPDecomposition",
    "Fitted",
    "History",
    "Model",
    "Progress",
    "RankScan",
    "SparseTensor",
    "Table",
    "TensorCompletion",
    "TensorTrain",
    "TensorTrainDecomposition",
    "Tucker",
    "TuckerDecomposition",
    "__version__",
    "complete",
    "cp",
    "einsum",
    "explain",
    "load",
    "rank",
    "tensor",
    "tt",
    "tucker",
]
