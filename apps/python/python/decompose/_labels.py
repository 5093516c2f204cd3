"""Labels in files: a line for each index, as the command has them beside tensors and models."""

from __future__ import annotations

import os
import re
from typing import Any, Sequence

#: The file of a mode, counted from 1, and the name of the mode.
FILE = re.compile(r"mode-([1-9][0-9]*)(?:-(.*))?\.map")

#: Letters of a mode's name that its file has.
LONGEST = 50


def write_labels(folder: Any, labels: Sequence[Any], modes: Sequence[Any]) -> None:
    """Write the labels of each mode that has any into ``mode-K-NAME.map``, and remove those of an earlier model."""
    for old in os.listdir(folder):
        if FILE.fullmatch(old):
            os.remove(os.path.join(folder, old))
    for mode, names in enumerate(labels):
        if names is None:
            continue
        name = modes[mode] if mode < len(modes) and modes[mode] is not None else "labels"
        plain = re.sub(r"[^\w\-. ]", "_", str(name))[:LONGEST].strip() or "labels"
        lines = (" ".join(str(label).splitlines()) + "\n" for label in names)
        with open(os.path.join(folder, f"mode-{mode + 1}-{plain}.map"), "w", encoding="utf-8") as out:
            out.writelines(lines)


def read_labels(folder: Any, shape: Sequence[int]) -> tuple:
    """Read what :func:`write_labels` has written: labels and names of modes; of a mode without a file None."""
    labels: list = [None] * len(shape)
    modes: list = [None] * len(shape)
    for file in sorted(os.listdir(folder)):
        found = FILE.fullmatch(file)
        mode = int(found[1]) - 1 if found else len(shape)
        if mode >= len(shape):
            continue
        with open(os.path.join(folder, file), encoding="utf-8", errors="replace", newline="\n") as lines:
            names = [line.rstrip("\r\n") for line in lines]
        if len(names) == shape[mode]:
            labels[mode], modes[mode] = names, found[2]
    return labels, modes
