"""The names of formats, what a file may ask for, and how an edge list is to be read.

A few bytes can declare 10**18 vertices or unpack to terabytes.  Both limits grow with what the file
really holds, so that no normal file reaches them; `most_vertices` and `most_bytes` of
`matchwood.io.read` set them by hand.  Options of edge lists are checked before a file is opened.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments
from matchwood.arguments import count, flag, is_integer, one_of, shown
from matchwood.engines import check_threads

PathLike = str | os.PathLike[str]

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
FORMATS = {
    "mtx": (".mtx", ".mm"),
    "edges": (".txt", ".tsv", ".csv", ".ssv", ".edges", ".edgelist", ".el", ".wel", ".dat"),
    "metis": (".graph", ".metis"),
    "hgr": (".hgr",),
    "gr": (".gr",),
    "col": (".col", ".clq"),
    "max": (".max",),
    "co": (".co",),
    "graph-txt": (".graph-txt",),
    "npz": (".npz",),
}
_FORMAT_OF = {suffix: name for name, suffixes in FORMATS.items() for suffix in suffixes}


def split_name(path: PathLike) -> tuple[str, str]:
    """(suffix of the format, suffix of the compression), in lower case, "" for none."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else ""
    return (suffixes[-1] if suffixes else ""), compression


def format_of(path: PathLike, chosen: str | None, caller: str) -> str:
    """The name of the format: as asked, else by the file's name."""
    path = arguments.path(caller, "path", path)
    if chosen is not None:
        return str(one_of(caller, "format", chosen, tuple(FORMATS)))
    suffix, _ = split_name(path)
    if suffix not in _FORMAT_OF:
        if Path(path).name.startswith("out."):  # as KONECT names its edge lists
            return "edges"
        known = " ".join(_FORMAT_OF)
        raise ValueError(
            f"{caller}: cannot tell the format of {shown(path)} by its name "
            f"(known: {known}, and these with {' '.join(COMPRESSIONS)}); pass format="
        )
    return _FORMAT_OF[suffix]


VERTICES_PER_EDGE = 1000  # a file that declares more vertices is refused,
FREE_VERTICES = 10_000_000  # unless it has at most these, for which any machine has room
BYTES_PER_COMPRESSED_BYTE = 200  # a file that unpacks to more is refused; real ones have 3 to 30,
FREE_BYTES = 100_000_000  # unless it unpacks to at most these, which is a second of work


class Limits(NamedTuple):
    """What the caller allows; None leaves it to the rules above."""

    vertices: int | None = None
    bytes: int | None = None

    def checked(self, caller: str) -> Limits:
        """The limits as whole numbers, or an error."""
        given = zip(("most_vertices", "most_bytes"), self, strict=True)
        return Limits(*(x if x is None else count(caller, name, x) for name, x in given))

    def most_vertices(self, edges: int) -> int:
        """The most rows or columns that a matrix with `edges` entries may have."""
        if self.vertices is not None:
            return self.vertices
        return max(FREE_VERTICES, VERTICES_PER_EDGE * edges)

    def most_bytes(self, compressed: int) -> int:
        """The most bytes that a file of `compressed` bytes may unpack to."""
        if self.bytes is not None:
            return self.bytes
        return max(FREE_BYTES, BYTES_PER_COMPRESSED_BYTE * compressed)


NO_LIMITS = Limits()


def matrix_bytes(shape: tuple[int, int], entries: int) -> int:
    """Bytes that a matrix takes while it is put together, with a counter a row."""
    index = 4 if max(*shape, entries) <= np.iinfo(np.int32).max else 8
    return (shape[0] + 1) * index + max(shape) * 8 + entries * (index + 8)


ID_MAX = 10**18  # ids have at most 18 digits, so that they fit int64 whatever is added
NO_MARKS = "+-.\n\r\"'\0"  # no delimiters: a number, a line or a quoted name may hold them
DUPLICATES = ("sum", "first", "min", "max")


class Options(NamedTuple):
    """The options of `matchwood.io.read` for an edge list; described there."""

    columns: tuple[int, ...] | None = None
    delimiter: str | None = None
    base: int = 0
    skip: int = 0
    shape: Any = None  # a pair of int or None, once checked
    symmetric: bool = False
    compact: bool = False
    names: bool = False
    header: bool | None = None
    duplicates: str | None = None
    strict: bool = True
    threads: int | None = None

    def only_for_edge_lists(self) -> list[str]:
        """Names of the options that are set and that no other format has."""
        unset = Options(duplicates=self.duplicates, strict=self.strict, threads=self.threads)
        return [name for name in self._fields if getattr(self, name) != getattr(unset, name)]

    def checked(self, caller: str = "read") -> Options:
        """The options in their usual types; an error where one makes no sense."""
        one_of(caller, "duplicates", self.duplicates, (None, *DUPLICATES))
        mark = self.delimiter
        if mark is not None and (not isinstance(mark, str) or len(mark) != 1 or mark in NO_MARKS):
            raise ValueError(f"{caller}: delimiter must be one character, got {shown(mark)}")
        if mark is not None and (mark.isalnum() or not mark.isascii()):
            raise ValueError(f"{caller}: delimiter must be a sign or a blank, got {shown(mark)}")
        for name in ("symmetric", "compact", "names", "strict"):
            flag(caller, name, getattr(self, name))
        check_threads(self.threads)
        if self.header is not None:
            flag(caller, "header", self.header)
        for name in ("base", "skip"):
            value = getattr(self, name)
            if not _is_index(value) or value >= ID_MAX:
                raise ValueError(f"{caller}: {name} must be a whole number, got {shown(value)}")
        shape = _shape(self.shape)
        if shape is not None and (self.compact or self.names):
            raise ValueError("read: shape cannot be given where the vertices are those that occur")
        if self.symmetric and shape is not None and shape[0] != shape[1]:
            raise ValueError(f"read: symmetric needs a square shape, got {shape}")
        return self._replace(shape=shape, columns=_columns(self.columns))


def _is_index(value: Any) -> bool:
    return is_integer(value) and int(value) >= 0


def _shape(shape: Any) -> tuple[int, int] | None:
    if shape is None:
        return None
    pair = (shape, shape) if _is_index(shape) else shape
    if not isinstance(pair, (tuple, list)) or len(pair) != 2 or not all(map(_is_index, pair)):
        raise ValueError(f"read: shape must be two whole numbers or one, got {shown(shape)}")
    if max(pair) > ID_MAX:
        raise ValueError(f"read: shape must be at most {ID_MAX}, got {shown(shape)}")
    return int(pair[0]), int(pair[1])


def _columns(columns: Any) -> tuple[int, ...] | None:
    if columns is None:
        return None
    chosen = tuple(columns) if isinstance(columns, (tuple, list)) else ()
    distinct = len(set(chosen)) == len(chosen)
    if len(chosen) not in (2, 3) or not distinct or not all(map(_is_index, chosen)):
        raise ValueError(
            "read: columns must be two or three different column numbers, from 0, "
            f"got {shown(columns)}"
        )
    return tuple(int(column) for column in chosen)
