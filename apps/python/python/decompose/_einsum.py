"""Expressions of sparse and dense tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _decompose
from ._tensor import SparseTensor, tensor


def einsum(expression: str, *operands: Any, threads: int | None = None, **named: Any) -> Any:
    """Compute an expression of sparse and dense tensors by kernels that are scheduled for them.

    ``einsum("ij,jk->ik", A, B)`` takes the operands in their order;
    ``einsum("Z(i,k) = X(i,j) * Y(j,k) + 2 * W(i,k)", X=A, Y=B, W=C)`` by name.

    A NumPy array is dense, everything else that :func:`decompose.tensor` takes is sparse.  A dense result is a NumPy
    array.  A sparse result of two modes is a SciPy array if an operand is one, one of any order a ``sparse.COO`` if an
    operand is one, and a :class:`SparseTensor` otherwise.
    """
    result, _ = _run(expression, operands, named, threads)
    if isinstance(result, np.ndarray):
        return result[()] if result.ndim == 0 else result
    given = list(operands) + list(named.values())
    if len(result["shape"]) == 2 and any(_is_scipy(x) for x in given):
        return _sparse(result).to_scipy()
    if any(type(x).__module__.split(".")[0] == "sparse" for x in given):
        return _sparse(result).to_sparse()
    return _sparse(result)


def explain(expression: str, *operands: Any, threads: int | None = None, **named: Any) -> str:
    """Compute an expression, and return a line for each kernel: its nest, the trees of operands, predicted seconds."""
    return _run(expression, operands, named, threads)[1]


def _run(expression: str, operands: tuple, named: dict, threads: int | None) -> tuple:
    if operands and named:
        raise ValueError("give the operands either in their order or by name")
    given = [("", _operand(x)) for x in operands] + [(k, _operand(x)) for k, x in named.items()]
    return _decompose.einsum(expression, given, threads)


def _operand(x: Any) -> Any:
    if isinstance(x, (np.ndarray, float, int)):
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
