"""Tensors from whatever holds non-zero elements."""

from __future__ import annotations

import operator
import os
from dataclasses import dataclass, field
from typing import Any, Sequence

import numpy as np

from . import _decompose
from ._frame import columns_of, is_frame


@dataclass(frozen=True, eq=False, repr=False)
class SparseTensor:
    """A sparse tensor: its non-zero elements, sorted and without duplicates.

    Attributes
    ----------
    labels : list of (array or None)
        For each mode the names of its indices, if it has any.
    modes : list of (str or None)
        The name of each mode, if it has one.
    """

    _inner: Any
    labels: Sequence[Any] = field(default=(), repr=False)
    modes: Sequence[Any] = field(default=(), repr=False)

    @property
    def shape(self) -> tuple:
        """The extents of the modes."""
        return tuple(self._inner.shape)

    @property
    def ndim(self) -> int:
        """The number of modes."""
        return len(self.shape)

    @property
    def nnz(self) -> int:
        """The number of elements that are listed."""
        return self._inner.nnz

    @property
    def dtype(self) -> np.dtype:
        """float64 or float32."""
        return np.dtype(self._inner.dtype)

    @property
    def coords(self) -> list:
        """An array of coordinates for each mode, counted from 0; copies."""
        return self._inner.coords()

    @property
    def values(self) -> np.ndarray:
        """The values; a copy."""
        return self._inner.values()

    def to_dense(self) -> np.ndarray:
        """The tensor as an array of all its cells."""
        dense = np.zeros(self.shape, dtype=self.dtype)
        dense[tuple(self.coords)] = self.values
        return dense

    def to_scipy(self) -> Any:
        """The tensor as a ``scipy.sparse.csr_array``; it has two modes."""
        import scipy.sparse

        if self.ndim != 2:
            raise ValueError(f"a tensor of {self.ndim} modes is no matrix")
        return scipy.sparse.coo_array((self.values, tuple(self.coords)), shape=self.shape).tocsr()

    def to_sparse(self) -> Any:
        """The tensor as a ``sparse.COO``."""
        import sparse

        return sparse.COO(np.stack(self.coords), self.values, shape=self.shape)

    def __reduce__(self) -> tuple:
        return _rebuilt, (self.coords, self.values, self.shape, self.labels, self.modes)

    def __repr__(self) -> str:
        extents = " x ".join(map(str, self.shape))
        return f"<SparseTensor {extents}, {self.nnz} non-zeros, {self.dtype}>"


def _rebuilt(coords: list, values: np.ndarray, shape: tuple, labels: Any, modes: Any) -> SparseTensor:
    """Make a tensor of what a pickle holds."""
    return SparseTensor(_make(coords, values, shape, (None, "error")), labels, modes)


def tensor(
    x: Any,
    shape: Sequence[int] | None = None,
    *,
    modes: Sequence[str] | None = None,
    value: str | None = None,
    dtype: Any = None,
    duplicates: str = "sum",
) -> SparseTensor:
    """Take a sparse tensor from ``x``.

    Parameters
    ----------
    x
        A path of a tensor file; a SciPy sparse array; ``(coords, values)`` or ``(coords, values, shape)`` with one
        row of ``coords`` per mode, counted from 0; a pandas or Polars frame; a ``sparse.COO``; a ``pyttb.sptensor``;
        or a dense array, whose zeros are not listed.
    shape
        The extents; by default the largest coordinates decide.
    modes, value
        Of a frame, one of the two at least: the columns that are modes, by default all but ``value``; and the column
        of values, without which each row counts 1.  Columns that hold no whole numbers become categories with labels,
        in the order of their values if these are numbers or times, and of their text otherwise.  So do the types
        ``category`` of pandas and ``Enum`` of Polars, whose own order stays.
    dtype
        float64 or float32; by default that of the values, of a file float64.
    duplicates
        What becomes of elements that share their coordinates: sum, mean, first, last, min, max or error.
    """
    framed = is_frame(x)
    if not framed and (modes is not None or value is not None):
        raise ValueError("modes and value name columns, and this is no frame")
    if isinstance(x, SparseTensor):
        if shape is not None or dtype is not None:
            raise ValueError("this tensor has a shape and a dtype; make it anew of its coords and values")
        return x
    if isinstance(x, (str, os.PathLike)):
        if shape is not None:
            raise ValueError("shape is for coordinates; a file has its own")
        name = np.dtype(dtype or np.float64).name
        return SparseTensor(_decompose.Tensor.read(os.fspath(x), name, duplicates))
    if framed:
        return _of_frame(x, shape, modes, value, (dtype, duplicates))
    coords, values, own = _parts(x)
    inner = _make(coords, values, shape if shape is not None else own, (dtype, duplicates))
    return SparseTensor(inner)


def _parts(x: Any) -> tuple:
    """Return coordinates, values and shape of ``x``."""
    if isinstance(x, (tuple, list)):
        if len(x) not in (2, 3):
            raise ValueError(f"a tuple of {len(x)}: give (coords, values) or (coords, values, shape)")
        return list(x[0]), x[1], x[2] if len(x) == 3 else None
    if hasattr(x, "subs") and hasattr(x, "vals"):  # pyttb.sptensor
        return list(np.reshape(x.subs, (-1, len(x.shape))).T), np.asarray(x.vals).reshape(-1), x.shape
    if hasattr(x, "tocoo"):  # SciPy
        coo = x.tocoo()
        coords = coo.coords if hasattr(coo, "coords") else (coo.row, coo.col)
        return list(coords), coo.data, coo.shape
    if hasattr(x, "to_coo"):  # sparse.DOK
        x = x.to_coo()
    if hasattr(x, "coords") and hasattr(x, "data"):  # sparse.COO
        if getattr(x, "fill_value", 0) != 0:
            raise ValueError(f"the fill value is {x.fill_value}; elements that are not listed are zero here")
        return list(x.coords), x.data, x.shape
    if np.ma.isMaskedArray(x):
        raise ValueError("the array has a mask; only `complete` takes it, for cells that are unknown")
    dense = np.asarray(x)
    if dense.dtype.kind not in "biuf" or dense.ndim == 0:
        raise TypeError(f"no tensor of real numbers: {type(x).__name__} of {dense.dtype}")
    if np.isnan(dense).any():
        raise ValueError("the array holds NaN; only `complete` takes it, for cells that are unknown")
    coords = np.nonzero(dense)
    return list(coords), dense[coords], dense.shape


def _of_frame(frame: Any, shape: Any, modes: Any, value: Any, rest: tuple) -> SparseTensor:
    """Take the rows of a frame as elements."""
    names, coords, labels, values = columns_of(frame, modes, value)
    if shape is None and len(values) > 0:
        # Categories that no row has keep their places.
        shape = [None if own is None else len(own) for own in labels]
    inner = _make(coords, values, shape, rest)
    labels = [None if own is None else own[:extent] for own, extent in zip(labels, inner.shape)]
    return SparseTensor(inner, labels, names)


def _make(coords: list, values: Any, shape: Any, rest: tuple) -> Any:
    dtype, duplicates = rest
    if any(np.ma.is_masked(array) for array in (values, *coords)):
        raise ValueError("values or coordinates are masked; leave these elements out")
    values = np.asarray(values).reshape(-1)
    if values.dtype.kind not in "biuf":
        raise TypeError(f"values are numbers, not {values.dtype}")
    kind = np.dtype(dtype or (np.float32 if values.dtype == np.float32 else np.float64))
    if kind not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise ValueError(f"dtype is {kind}; use float64 or float32")
    with np.errstate(over="ignore"):
        values = _plain(values, kind)
    if not np.isfinite(values).all():
        at = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(f"value {at} is {values[at]}; values are finite numbers")
    if shape is not None and len(shape) != len(coords):
        raise ValueError(f"a shape of {len(shape)} extents for coordinates of {len(coords)} modes")
    arrays = []
    for mode, column in enumerate(coords):
        column = coordinates(mode, column)
        if column.shape != values.shape:
            why = f"mode {mode} has coordinates of shape {column.shape} for {len(values)} values"
            raise ValueError(f"{why}; give one row of coordinates per mode")
        arrays.append(column)
    if shape is None and len(values) == 0:
        raise ValueError("a tensor without elements needs a shape")
    extents = [None] * len(arrays) if shape is None else [_extent(extent) for extent in shape]
    return _decompose.Tensor.of_coords(arrays, values, extents, duplicates)


def _extent(extent: Any) -> int | None:
    """Check an extent; without one the largest coordinate decides."""
    if extent is None:
        return None
    extent = operator.index(extent)
    if not 0 < extent < 2**64:
        raise ValueError(f"an extent is {extent}; use whole numbers from 1 on")
    return extent


def _plain(array: np.ndarray, kind: np.dtype) -> np.ndarray:
    """Return the array itself if it has the type in the machine's form, and a copy otherwise."""
    return np.require(array, dtype=kind, requirements=["ALIGNED"])


def coordinates(mode: int, column: Any) -> np.ndarray:
    """Check that coordinates are integers; where they lie does not matter."""
    column = np.asarray(column)
    if column.size == 0:
        column = column.astype(np.uint32)
    if column.dtype.kind not in "iu":
        raise TypeError(f"coordinates of mode {mode} are {column.dtype}; use integers, counted from 0")
    return _plain(column, column.dtype.newbyteorder("="))


def observed(x: Any, **options: Any) -> SparseTensor:
    """Take the observed elements of ``x``: of a dense array all but NaN and masked cells, zeros included."""
    if isinstance(x, np.ndarray):
        if x.dtype.kind not in "biuf":
            raise TypeError(f"no tensor of real numbers: an array of {x.dtype}")
        dense = np.asarray(np.ma.filled(x.astype(np.float64), np.nan))
        coords = np.nonzero(~np.isnan(dense))
        return tensor((list(coords), dense[coords], dense.shape), **options)
    return tensor(x, **options)


def same_labels(a: SparseTensor, b: SparseTensor) -> None:
    """Refuse two tensors whose indices have other names."""
    for mode, (own, other) in enumerate(zip(a.labels, b.labels)):
        if own is None or other is None or np.array_equal(own, other):
            continue
        # Labels from files are texts, whatever they were.
        if list(map(str, own)) != list(map(str, other)):
            raise ValueError(
                f"the labels of mode {mode} differ; make categories of both frames with the same names first"
            )
