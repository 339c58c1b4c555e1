"""A distributed graph in a folder, which any number of ranks on any grid can read back.

    matchwood-graph.json    number of vertices and entries, types, rules, number of parts
    rows-00000.npy          the rows of the entries of one rank, as the user numbers vertices
    columns-00000.npy
    values-00000.npy        where there are values, of the type that was given

Entries of one place in the matrix are in one part, in the order in which they were given.  A reader
takes an even share of all entries, a batch at a time, straight from the files.  The description is
written last: a folder without it was not finished.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from matchwood.arguments import path
from matchwood.engines.ranks.agreement import same, together
from matchwood.errors import FileFormatError
from matchwood.gate.distributed import collecting
from matchwood.gate.distributed.sources import Source
from matchwood.gate.entries import DUPLICATES
from matchwood.gate.inputs import MOST_VERTICES
from matchwood.gate.plain_files import Identity, PlainFile

DESCRIPTION = "matchwood-graph.json"
VERSION = 1
PARTS = ("rows", "columns", "values")
FACTS = {
    "version", "n", "nnz", "entries", "index", "values", "edges", "duplicates", "index_dtype",
}  # fmt: skip
INDICES = ("<i4", "<i8", ">i4", ">i8")
VALUES = tuple(np.dtype(order + code).str for code in "?bhiqBHIQefdFD" for order in "<>")
INT32_MAX = np.iinfo(np.int32).max
MOST_BYTES = 1 << 26  # of the description
HEAD_BYTES = 1 << 10  # of a file of numpy.save, at most
HEAD = re.compile(
    rb"\x93NUMPY\x01\0(..)\{'descr': '([<>|]\w+)', 'fortran_order': False, "
    rb"'shape': \((\d{1,19}),\), \} *\n", re.DOTALL
)  # fmt: skip


def is_saved(folder: Path) -> bool:
    return (folder / DESCRIPTION).is_file()


def _file(folder: Path, part: str, rank: int) -> Path:
    return folder / f"{part}-{rank:05d}.npy"


def save(G: Any, folder: Any, caller: str = "save") -> None:
    """Write a graph; all ranks call this, and all must see the same file system."""
    comm = G.comm
    folder = Path(together(comm, lambda: path(caller, "folder", folder)))
    same(comm, caller, folder=str(folder))
    together(comm, lambda: _begin(folder, caller) if comm.rank == 0 else None)
    view = G.entries()
    names = G.original_local
    kind = np.int32 if G.n <= np.iinfo(np.int32).max else np.int64
    values = G.given_values(caller)

    def write() -> None:
        rows = np.repeat(names.astype(kind), np.diff(view.indptr))
        np.save(_file(folder, "rows", comm.rank), rows)
        np.save(_file(folder, "columns", comm.rank), names[view.indices].astype(kind))
        if values is not None:
            np.save(_file(folder, "values", comm.rank), values)

    together(comm, write)
    facts = {
        "version": VERSION, "n": G.n, "nnz": G.nnz, "entries": comm.objects(view.nnz),
        "index": np.dtype(kind).str, "values": None if values is None else values.dtype.str,
        "edges": G.edges, "duplicates": G.duplicates, "index_dtype": G.index_dtype.name,
    }  # fmt: skip
    text = json.dumps(facts, indent=1)
    together(comm, lambda: (folder / DESCRIPTION).write_text(text) if comm.rank == 0 else None)


def _begin(folder: Path, caller: str) -> None:
    """Make an empty folder; one that holds a saved graph is emptied."""
    folder.mkdir(parents=True, exist_ok=True)
    if is_saved(folder):
        (folder / DESCRIPTION).unlink()
        for part in PARTS:
            for file in folder.glob(f"{part}-[0-9]*.npy"):
                file.unlink()
    if any(folder.iterdir()):
        raise ValueError(
            f"{caller}: the folder must be empty or hold a saved graph, got {folder} with files"
        )


class Part(NamedTuple):
    """A file of `size` numbers: entries first .. first + size - 1 of all."""

    path: Path
    first: int
    size: int
    kind: Any  # dtype as stored
    start: int  # byte of the first number
    known: Identity

    def read(self, low: int, high: int) -> Any:
        """Those of the entries low .. high - 1 that are here, as they are in the file now."""
        low, high = max(low - self.first, 0), min(high - self.first, self.size)
        found = np.empty(max(high - low, 0), self.kind)
        with PlainFile(self.path, known=self.known) as file:
            file.fill(self.start + low * self.kind.itemsize, found.view(np.uint8))
            file.require_unchanged()
        return found.astype(self.kind.newbyteorder("="), copy=False)


class Saved(NamedTuple):
    """A folder that was opened: what `make` takes, and a check to be called at the end."""

    facts: dict[str, Any]
    source: Source
    nnz: int | None
    finish: Callable[[], None]  # all ranks raise where a file was wrong, or has changed


def opened(folder: Path, comm: Any) -> Saved:
    mine = together(comm, lambda: _described(folder) if comm.rank == 0 else None, named=False)
    known, facts = comm.objects(mine)[0]
    ends = list(itertools.accumulate(facts["entries"], initial=0))
    low, high = (ends[-1] * rank // comm.size for rank in (comm.rank, comm.rank + 1))
    parts = together(comm, lambda: _parts(folder, facts, ends, low, high))
    wrong: list[Exception] = []

    def batches(stride: int = 1) -> Iterator[collecting.Entry]:
        """Ends early where a file is wrong, and does not raise: other ranks wait for messages."""
        for first in range(low, high, collecting.BATCH * stride):
            try:
                yield _between(parts, facts["n"], first, min(first + collecting.BATCH, high))
            except (FileFormatError, OSError) as error:
                wrong.append(error)
                return

    def finish() -> None:
        """Writers remove the description first, so if it is still there all is of one graph."""
        if wrong:
            raise wrong[0]
        if comm.rank == 0:
            PlainFile(folder / DESCRIPTION, known=known).close()

    kind = None if facts["values"] is None else facts["values"].newbyteorder("=")
    nnz = None if facts["nnz"] == ends[-1] else facts["nnz"]  # None: counted as they are received
    source = Source(batches, -(-(high - low) // collecting.BATCH), high - low, kind)
    return Saved(facts, source, nnz, lambda: together(comm, finish))


def _described(folder: Path) -> tuple[Identity, dict[str, Any]]:
    """The description: which file it is, and what it says, types as dtypes."""
    path = folder / DESCRIPTION
    with PlainFile(path) as file:
        if file.size > MOST_BYTES:
            raise FileFormatError(f"{path}: no description of a graph: it has {file.size} bytes")
        try:
            facts = json.loads(file[: file.size].decode())
        except (ValueError, RecursionError) as error:
            raise FileFormatError(f"{path}: no description of a graph: {error}") from None
        file.require_unchanged()
        return file.identity, _checked(path, facts)


def _checked(path: Path, facts: Any) -> dict[str, Any]:
    """The facts, each of its type and in its range, and without contradiction."""
    if not isinstance(facts, dict) or set(facts) != FACTS:
        raise FileFormatError(
            f"{path}: no description of a graph: expected an object of JSON with "
            f"{', '.join(sorted(FACTS))}"
        )

    def require(name: str, good: bool, expected: str) -> None:
        if not good:
            raise FileFormatError(
                f"{path}: no description of a graph: {name} must be {expected}, "
                f"got {repr(facts[name])[:60]}"
            )

    n, nnz, entries, values = (facts[name] for name in ("n", "nnz", "entries", "values"))
    is_one = type(facts["version"]) is int and facts["version"] == VERSION
    require("version", is_one, f"{VERSION}, the one that is read here")
    require("n", _is_count(n), "an integer within 0..2**62")
    counts = entries if isinstance(entries, list) and all(map(_is_count, entries)) else [-1]
    total = sum(counts)
    good = min(counts, default=0) >= 0 and _is_count(total) and (n > 0 or not total)
    require("entries", good, "a list of counts, none without vertices")
    require("index", facts["index"] in INDICES, f"one of {', '.join(INDICES)}")
    require("values", values is None or values in VALUES, "null or a type of numbers")
    require("edges", isinstance(facts["edges"], bool), "true or false")
    require("duplicates", facts["duplicates"] in DUPLICATES, f"one of {DUPLICATES}")
    # without values entries of one place were joined, and only their number is left
    joined = values is None and facts["duplicates"] != "error" and total > 0
    good = _is_count(nnz) and (nnz >= total if joined else nnz == total)
    require("nnz", good, f"{'at least ' if joined else ''}{total}, the sum of entries")
    kinds = ("int32", "int64") if n <= INT32_MAX else ("int64",)
    require("index_dtype", facts["index_dtype"] in kinds, f"one of {', '.join(kinds)}")
    types = {name: np.dtype(facts[name]) for name in ("index", "index_dtype")}
    return {**facts, **types, "values": None if values is None else np.dtype(values)}


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value <= MOST_VERTICES


def _parts(
    folder: Path, facts: dict[str, Any], ends: list[int], low: int, high: int
) -> list[list[Part]]:  # fmt: skip
    """The files that hold entries low .. high - 1: for each rank that wrote some, two or three."""
    kinds = (facts["index"], facts["index"], facts["values"])
    return [
        [
            _part(_file(folder, name, rank), ends[rank], ends[rank + 1] - ends[rank], kind)
            for name, kind in zip(PARTS, kinds, strict=True)
            if kind is not None
        ]
        for rank in range(len(ends) - 1)
        if ends[rank] < high and ends[rank + 1] > low
    ]


def _part(path: Path, first: int, size: int, kind: Any) -> Part:
    """A file of numpy.save whose type, shape and number of bytes are those expected.

    NumPy itself would run Python's parser on the head, which has failed in threads (SystemError).
    """
    try:
        with PlainFile(path) as file:
            known, head = file.identity, HEAD.match(file[: min(file.size, HEAD_BYTES)])
    except FileNotFoundError as error:
        raise FileFormatError(f"{path}: {error.strerror}") from None
    if head is None or head.end() != 10 + int.from_bytes(head[1], "little"):
        raise FileFormatError(f"{path}: no array as numpy.save writes it, or cut off")
    shape, stored = int(head[3]), head[2].decode()
    if shape != size or stored != kind.str:
        raise FileFormatError(
            f"{path}: expected {size} values of {kind.str}, got {shape} of {stored}"
        )
    needed = head.end() + size * kind.itemsize
    if known.size != needed:
        raise FileFormatError(
            f"{path}: {size} values of {kind.str} need {needed} bytes, got {known.size}"
        )
    return Part(path, first, size, kind, head.end(), known)


def _between(parts: list[list[Part]], n: int, low: int, high: int) -> collecting.Entry:
    """The entries low .. high - 1, checked in own memory."""
    pieces = []
    for group in parts:
        if group[0].first < high and group[0].first + group[0].size > low:
            arrays = [part.read(low, high) for part in group]
            for part, ids in zip(group[:2], arrays[:2], strict=True):
                if int(ids.min()) < 0 or int(ids.max()) >= n:
                    raise FileFormatError(f"{part.path}: a vertex is not within 0..{n - 1}")
            pieces.append(arrays)
    rows, columns, *values = (np.concatenate(arrays) for arrays in zip(*pieces, strict=True))
    return rows, columns, values[0] if values else None
