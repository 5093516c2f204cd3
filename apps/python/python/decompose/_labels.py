"""Labels in files: a line for each index, as the command has them beside tensors and models."""

from __future__ import annotations

import gzip
import json
import os
import re
from typing import Any, Iterator, Sequence

#: The file of a mode, counted from 1, and the name of the mode.
FILE = re.compile(r"mode-([1-9][0-9]*)(?:-(.*))?\.map(?:\.gz)?")

#: Letters of a mode's name that its file has.
LONGEST = 50


def check_folder(folder: Any) -> None:
    """Refuse a folder that has labels and no model: they are those of a tensor.

    Raises
    ------
    FileExistsError
    """
    old = sorted(_files(folder)) if os.path.isdir(folder) else []
    if old and not os.path.exists(os.path.join(folder, "model.npz")):
        raise FileExistsError(f"{os.fspath(folder)} has labels of a tensor, as {old[0]}; save into another folder")


def write_labels(folder: Any, labels: Sequence[Any], modes: Sequence[Any], shape: Sequence[int]) -> None:
    """Write the labels of each mode that has any into ``mode-K-NAME.map``, and remove those of an earlier model."""
    for old in _files(folder):
        os.remove(os.path.join(folder, old))
    for mode, (names, extent) in enumerate(zip(labels, shape)):
        if names is None:
            continue
        name = modes[mode] if mode < len(modes) and modes[mode] is not None else "labels"
        plain = re.sub(r"[^\w\-. ]", "_", str(name))[:LONGEST].strip() or "labels"
        lines = [" ".join(str(label).splitlines()) for label in names] + [""] * (extent - len(names))
        with open(os.path.join(folder, f"mode-{mode + 1}-{plain}.map"), "w", encoding="utf-8", newline="\n") as out:
            out.writelines(line + "\n" for line in lines)


def read_labels(folder: Any, shape: Sequence[int]) -> tuple:
    """Read the labels of a model's modes, and the names of the modes; None where there are none.

    They are in the folder, as :func:`write_labels` has them, or in the files that the record of the command names.  A
    file of another length than the mode is passed over.
    """
    labels: list = [None] * len(shape)
    modes: list = [None] * len(shape)
    for mode, name, path in _candidates(folder):
        if not 0 <= mode < len(shape) or labels[mode] is not None or not os.path.isfile(path):
            continue
        opened = gzip.open if path.endswith(".gz") else open
        with opened(path, "rt", encoding="utf-8", errors="replace", newline="\n") as lines:
            names = [line.rstrip("\r\n") for line in lines]
        if len(names) == shape[mode]:
            labels[mode], modes[mode] = names, name
    return labels, modes


def _files(folder: Any) -> list:
    """Return the files of labels in a folder."""
    return [file for file in os.listdir(folder) if FILE.fullmatch(file)]


def _candidates(folder: Any) -> Iterator[tuple]:
    """Yield mode, name and path of the files that may hold labels, the first choice first."""
    for file in sorted(_files(folder)):
        found = FILE.fullmatch(file)
        yield int(found[1]) - 1, found[2], os.path.join(folder, file)
    try:
        with open(os.path.join(folder, "run.json"), encoding="utf-8") as text:
            recorded = json.load(text)["input"]["labels"]
        for one in recorded:
            yield int(one["mode"]) - 1, str(one["name"]), str(one["file"])
    except (OSError, ValueError, KeyError, TypeError):
        # No record, or one of another program.
        return
