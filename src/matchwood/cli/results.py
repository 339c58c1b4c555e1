"""Results as files.  The suffix decides the format; docs/command_line.rst describes them.

.npy   one array: a column as a vector, several columns side by side as a matrix (n, columns)
.npz   every column and every number under its name
.txt   a line a vertex, the columns separated by a space; line k (from 0) is vertex k
.csv   a header, then a line a vertex that begins with the vertex
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

SUFFIXES = (".npy", ".npz", ".txt", ".csv")


def check_suffix(path: Path | None) -> None:
    """Refuse a file that could not be written, before the work is done."""
    if path is None:
        return
    if path.suffix not in SUFFIXES:
        raise ValueError(f"-o {path}: the name must end in one of {', '.join(SUFFIXES)}")
    if not path.parent.is_dir():
        raise ValueError(f"-o {path}: there is no folder {path.parent}")


def write(path: Path, columns: Mapping[str, Any], numbers: Mapping[str, Any]) -> None:
    """Write arrays of one entry a vertex, and single numbers where the format has room."""
    import numpy as np

    host = {name: np.asarray(array) for name, array in columns.items()}
    if path.suffix == ".npy":
        arrays = list(host.values())
        np.save(path, arrays[0] if len(arrays) == 1 else np.column_stack(arrays))
    elif path.suffix == ".npz":
        named: dict[str, Any] = {**host, **numbers}
        np.savez(path, **named)
    else:
        path.write_text(_lines(host, header=path.suffix == ".csv"), encoding="utf-8")


def _lines(columns: Mapping[str, Any], *, header: bool) -> str:
    texts = [map(str, array.tolist()) for array in columns.values()]
    if not header:
        return "".join(f"{' '.join(row)}\n" for row in zip(*texts, strict=True))
    rows = (f"{v},{','.join(row)}\n" for v, row in enumerate(zip(*texts, strict=True)))
    return ",".join(("vertex", *columns)) + "\n" + "".join(rows)
