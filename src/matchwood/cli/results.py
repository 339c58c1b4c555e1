"""Results as files.  The suffix decides the format; docs/command_line.rst describes them.

.npy   one array: a column as a vector, several columns side by side as a matrix (n, columns)
.npz   every column and every number under its name; `id` where the file had ids of its own
.txt   a line a vertex, the columns separated by a space; line k (from 0) is vertex k
.csv   a header, then a line a vertex that begins with the vertex; where vertices have ids in their
       file, these stand for them, also in columns that hold vertices

A file is written beside the one that it replaces and takes its name when it is complete; so the old
one stays as it was where the disk is full or the program is stopped.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from matchwood.cli.output import json_text

SUFFIXES = (".npy", ".npz", ".txt", ".csv")


def check_suffix(path: Path | None, *inputs: Any) -> None:
    """Refuse a file that could not be written, before the work is done."""
    if path is None:
        return
    if path.suffix not in SUFFIXES:
        raise ValueError(f"-o {path}: the name must end in one of {', '.join(SUFFIXES)}")
    check_place(path, inputs=inputs)


def check_place(path: Path, option: str = "-o", inputs: Iterable[Any] = ()) -> None:
    """Refuse a place where no file can be, or an input is, before the work is done."""
    if path.exists() and any(os.path.exists(i) and os.path.samefile(path, i) for i in inputs):
        raise ValueError(f"{option} {path}: that is an input, which would be lost")
    if not path.parent.is_dir():
        raise ValueError(f"{option} {path}: there is no folder {path.parent}")
    if path.is_dir():
        raise ValueError(f"{option} {path}: that is a folder")
    if path.exists() and not os.access(path, os.W_OK):
        raise ValueError(f"{option} {path}: the file is write-protected")


def check_graph_file(
    path: Path, option: str = "-o", format: str | None = None, inputs: Iterable[Any] = ()
) -> None:
    """Refuse a place or a format in which no graph can be written, before the work is done."""
    from matchwood.io.options import format_of

    check_place(path, option, inputs)
    format_of(path, format, "write")


VERTICES = ("parent", "mate", "path")  # columns that hold vertices, -1 for none


def write(
    path: Path, columns: Mapping[str, Any], numbers: Mapping[str, Any], ids: Any = None
) -> None:
    """Write arrays of one entry a vertex, and single numbers where the format has room."""
    import numpy as np

    host = {name: np.asarray(array) for name, array in columns.items()}
    if path.suffix == ".npy":
        arrays = list(host.values())
        save(path, arrays[0] if len(arrays) == 1 else np.column_stack(arrays))
    elif path.suffix == ".npz":
        save_named(path, {**host, **numbers}, ids)
    else:
        write_text(path, _lines(host, path.suffix, ids))


def write_text(path: Path, text: str) -> None:
    """The text as the file, all of it or nothing."""
    _replace(path, [text.encode()])


def write_json(path: Path, value: Any) -> None:
    """The value as JSON, all of it or nothing."""
    write_text(path, json_text(value, indent=1) + "\n")


def save(path: Path, array: Any) -> None:
    """The array as `numpy.save` writes it, all of it or nothing."""
    from matchwood.io.formats.npz import array_pieces

    _replace(path, array_pieces(array))


def save_named(path: Path, named: Mapping[str, Any], ids: Any = None) -> None:
    """The arrays as `numpy.savez` writes them, all of them or nothing; ids under "id"."""
    import numpy as np

    if ids is not None:
        names = np.asarray(ids)
        named = {**named, "id": names.astype(str) if names.dtype == object else names}
    _replace(path, _archive(named))


def _archive(named: Mapping[str, Any]) -> Iterator[bytes]:
    import numpy as np

    from matchwood.io.formats.npz import array_pieces

    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in named.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                for piece in array_pieces(np.asarray(array)):
                    member.write(piece)
    yield stream.getvalue()


def _replace(path: Path, pieces: Iterable[bytes]) -> None:
    from matchwood.io.files import replacing

    with replacing(path) as stream:
        for piece in pieces:
            stream.write(piece)


def _lines(columns: Mapping[str, Any], suffix: str, ids: Any) -> str:
    texts = {name: list(map(str, array.tolist())) for name, array in columns.items()}
    if suffix == ".txt":
        return "".join(f"{' '.join(row)}\n" for row in zip(*texts.values(), strict=True))
    n = len(next(iter(texts.values())))
    names = [str(v) for v in range(n)] if ids is None else [quoted(name) for name in ids]
    if ids is not None:
        for column in set(VERTICES) & set(texts):
            known = [*names, "-1"]  # of vertex -1 the last
            texts[column] = [known[v] for v in columns[column].tolist()]
    rows = (",".join(row) + "\n" for row in zip(names, *texts.values(), strict=True))
    return ",".join(("vertex", *columns)) + "\n" + "".join(rows)


def quoted(name: Any) -> str:
    """An id as a cell of a CSV file."""
    text = str(name)
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\r\n') else text
