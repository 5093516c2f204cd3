"""Expressions of sparse and dense tensors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from . import _decompose
from ._solvers import _count
from ._tensor import SparseTensor, tensor


def einsum(
    expression: str, /, *operands: Any, out: str | None = None, threads: int | None = None, **named: Any
) -> Any:
    """Compute an expression of sparse and dense tensors by kernels that are scheduled for them.

    ``einsum("ij,jk->ik", A, B)`` takes the operands in their order;
    ``einsum("Z(i,k) = X(i,j) * Y(j,k) + 2 * W(i,k)", X=A, Y=B, W=C)`` by name.

    A NumPy array is dense, everything else that :func:`decompose.tensor` takes is sparse.  A result is sparse where it
    has the pattern of an operand or few of its cells are expected to be non-zero; ``out="sparse"`` or ``out="dense"``
    decides instead.  A dense result is a NumPy array.  A sparse result of two modes is a ``scipy.sparse.csr_array`` if
    an operand is of SciPy, one of any order a ``sparse.COO`` if an operand is one, and a :class:`SparseTensor`
    otherwise.  Values are float64.
    """
    if out not in (None, "sparse", "dense"):
        raise ValueError(f"out is {out!r}; use sparse, dense or None")
    result, _ = _run(expression, operands, named, threads)
    if isinstance(result, np.ndarray) and out == "sparse" and result.ndim > 0:
        coords = np.nonzero(result)
        columns = [np.asarray(column, dtype=np.uint32) for column in coords]
        result = {"coords": columns, "values": result[coords], "shape": list(result.shape)}
    if not isinstance(result, np.ndarray) and out == "dense":
        return _sparse(result).to_dense()
    if isinstance(result, np.ndarray):
        return result[()] if result.ndim == 0 else result
    given = list(operands) + list(named.values())
    if len(result["shape"]) == 2 and any(_is_scipy(x) for x in given):
        return _sparse(result).to_scipy()
    if any(type(x).__module__.split(".")[0] == "sparse" for x in given):
        return _sparse(result).to_sparse()
    return _sparse(result)


def explain(expression: str, /, *operands: Any, threads: int | None = None, **named: Any) -> str:
    """Compute an expression, and return a line for each kernel: its nest, the trees of operands, predicted seconds."""
    return _run(expression, operands, named, threads)[1]


def _run(expression: str, operands: tuple, named: dict, threads: int | None) -> tuple:
    if operands and named:
        raise ValueError("give the operands either in their order or by name")
    if threads is not None:
        threads = _count("threads", threads)
    why = _decompose.interpreted()
    if why is not None:
        warnings.warn(f"kernels are interpreted, many times slower: {why}", RuntimeWarning, stacklevel=3)
    given = [("", _operand(x)) for x in operands] + [(k, _operand(x)) for k, x in named.items()]
    return _decompose.einsum(expression, given, threads)


def _operand(x: Any) -> Any:
    if isinstance(x, (np.ndarray, np.generic, float, int)):
        if np.ma.isMaskedArray(x) or np.asarray(x).dtype.kind not in "biuf":
            raise TypeError("an operand is an array of real numbers without a mask")
        array = np.asarray(x, dtype=np.float64, order="C")
        if not np.isfinite(array).all():
            raise ValueError("an operand holds an infinite or undefined value")
        return array
    return tensor(x)._inner


def _is_scipy(x: Any) -> bool:
    return type(x).__module__.startswith("scipy.sparse")


def _sparse(result: dict) -> SparseTensor:
    inner = _decompose.Tensor.of_coords(result["coords"], result["values"], result["shape"], "sum")
    return SparseTensor(inner)
