"""Columns of frames as coordinates and labels.

A column of whole numbers holds coordinates.  Any other becomes a category: its different entries are numbered, and
are its labels.  The packages of the frames number the entries, by hashing; only the different ones are sorted here.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any, Callable, Sequence

import numpy as np

#: Whole numbers from here on are no coordinates.
TOO_LARGE = 2.0**63

#: Rows that tell whether equal entries are one object, and how many objects an entry may then have.
SAMPLE = 1 << 12
MOST_COPIES = 1.5


def is_frame(x: Any) -> bool:
    """Tell a frame by what it can do."""
    return hasattr(type(x), "columns") and hasattr(x, "__getitem__")


def columns_of(frame: Any, modes: Sequence[str] | None, value: str | None) -> tuple:
    """Return names, coordinates and labels of the modes, and the values."""
    if hasattr(type(frame), "collect"):
        raise TypeError(f"a {type(frame).__name__} has no rows yet; collect() it first")
    columns = list(frame.columns)
    if modes is None and value is None:
        raise ValueError("say which columns of the frame are modes, and which is the value: tensor(frame, value=...)")
    modes = [modes] if isinstance(modes, str) else modes
    names = [name for name in columns if name != value] if modes is None else list(modes)
    used = names if value is None else [*names, value]
    for name in used:
        if name not in columns:
            raise ValueError(f"the frame has no column {name!r}; it has {columns}")
        if columns.count(name) > 1 or used.count(name) > 1:
            raise ValueError(f"the column {name!r} occurs twice; each mode and the value have one of their own")
    if not names:
        raise ValueError("no column of the frame is a mode")
    numbered = [_numbered(name, frame[name]) for name in names]
    coords, labels = [codes for codes, _ in numbered], [own for _, own in numbered]
    return names, coords, labels, np.ones(len(frame)) if value is None else _values(value, frame[value])


def _values(name: str, column: Any) -> np.ndarray:
    """Take the values of a column of numbers; what is missing is NaN."""
    values = np.asarray(column)
    if values.dtype.kind in "biuf":
        return values
    try:
        if values.dtype.kind != "O" or any(isinstance(entry, (str, bytes)) for entry in values):
            raise TypeError
        return np.array([np.nan if _is_absent(entry) else float(entry) for entry in values])
    except (TypeError, ValueError):
        raise TypeError(f"values are numbers; the column {name!r} holds others") from None


def _is_absent(entry: Any) -> bool:
    """Tell None, NaN and what other packages have for a missing entry."""
    return entry is None or type(entry).__name__ in ("NAType", "NaTType") or bool(entry != entry)


def _numbered(name: str, column: Any) -> tuple:
    """Return coordinates, and the labels of a column that holds no whole numbers."""
    package = type(column).__module__.split(".")[0]
    try:
        codes, labels = _PACKAGES.get(package, _of_any)(sys.modules.get(package), column)
    except TypeError as error:
        raise TypeError(f"column {name!r} cannot be numbered: {error}") from None
    if codes is None or (labels is not None and codes.size and codes.min() < 0):
        raise ValueError(f"column {name!r} has missing entries; drop these rows first")
    return codes, labels


def _of_pandas(pandas: Any, column: Any) -> tuple:
    if isinstance(column.dtype, pandas.CategoricalDtype):
        return np.asarray(column.cat.codes), np.asarray(column.cat.categories)
    if pandas.api.types.is_numeric_dtype(column.dtype) and not column.hasnans:
        whole = _whole(np.asarray(column))
        if whole is not None:
            return whole, None
    if column.dtype == object or getattr(column.dtype, "storage", None) == "python":
        entries = np.ascontiguousarray(np.asarray(column, dtype=object))
        if _is_shared(entries):
            return _in_order(*_by_address(pandas, entries))
        return _in_order(*pandas.factorize(entries))
    return _in_order(*pandas.factorize(column))


def _is_shared(entries: np.ndarray) -> bool:
    """Tell, of some rows, whether equal entries mostly are the same object."""
    some = entries[:: max(len(entries) // SAMPLE, 1)].tolist()
    return len(set(map(id, some))) <= MOST_COPIES * len(set(some))


def _by_address(pandas: Any, entries: np.ndarray) -> tuple:
    """Number objects by where they are, and then the different objects by what they are."""
    at = (ctypes.c_size_t * len(entries)).from_address(entries.ctypes.data)
    objects, different = pandas.factorize(np.ctypeslib.as_array(at))
    codes, different = pandas.factorize(entries[_rows(objects, len(different))])
    return codes[objects], different


def _of_polars(polars: Any, column: Any) -> tuple:
    kind = column.dtype
    if column.null_count() or (kind.is_float() and column.is_nan().any()):
        return None, None
    if isinstance(kind, polars.Enum):
        return column.to_physical().to_numpy(), np.array(kind.categories.to_list(), dtype=object)
    if kind.is_nested() or kind == polars.Object:
        raise TypeError(f"entries of the type {kind} have no order")
    if kind.is_integer() and str(kind).endswith("Int128"):
        column = column.cast(polars.Int64)
    if kind.is_numeric() or kind.is_temporal():
        whole = _whole(column.to_numpy()) if kind.is_numeric() else None
        if whole is not None:
            return whole, None
        different = column.unique().sort()
        codes = different.to_physical().search_sorted(column.to_physical())
        return codes.to_numpy(), np.array([str(entry) for entry in different], dtype=object)
    texts = column if kind == polars.Categorical else column.cast(polars.String).cast(polars.Categorical)
    codes = texts.to_physical().to_numpy()
    rows = _rows(codes, int(codes.max()) + 1 if len(codes) else 0)
    # Numbers that no row has stand for texts of other columns.
    used = np.flatnonzero(rows >= 0)
    places = np.zeros(len(rows), dtype=np.int32)
    places[used] = np.arange(len(used))
    return _in_order(places[codes], np.array(column[rows[used]].cast(polars.String).to_list(), dtype=object))


def _rows(codes: np.ndarray, count: int) -> np.ndarray:
    """Return the first row of each of ``count`` codes; -1 of one that no row has."""
    rows = np.full(count, -1, dtype=np.int64)
    rows[codes[::-1]] = np.arange(len(codes))[::-1]
    return rows


def _of_any(_: Any, column: Any) -> tuple:
    """Number the entries of a column of any other package by a dictionary."""
    values = np.asarray(column)
    whole = _whole(values)
    if whole is not None:
        return whole, None
    places: dict = {}
    codes = [-1 if _is_absent(entry) else places.setdefault(entry, len(places)) for entry in values.tolist()]
    return _in_order(np.array(codes, dtype=np.int64), np.array(list(places), dtype=object))


#: How the columns of a package number their entries; no codes where some are missing.
_PACKAGES: dict[str, Callable] = {"pandas": _of_pandas, "polars": _of_polars}


def _whole(numbers: np.ndarray) -> np.ndarray | None:
    """Return whole numbers as integers; None if they are others."""
    if numbers.dtype.kind in "iu":
        return numbers
    if numbers.dtype.kind != "f" or not (np.abs(numbers) < TOO_LARGE).all():
        return None
    whole = numbers.astype(np.int64)
    return whole if (whole == numbers).all() else None


def _in_order(codes: np.ndarray, different: Any) -> tuple:
    """Renumber codes in the order of what they stand for: numbers and times by value, all else by its text."""
    kind = different.dtype.kind
    texts = different if kind == "O" else different.astype(str)
    texts = np.array([str(entry) for entry in texts], dtype=object)
    if len(texts) == 0:
        return codes, texts
    by_value = np.asarray(different) if kind in "fmM" else texts
    _, first, place = np.unique(by_value, return_index=True, return_inverse=True)
    # A missing entry, -1, is the last of the places.
    return np.append(place, -1).astype(np.int32)[codes], texts[first]
