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

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from matchwood.arguments import path
from matchwood.dist.agreement import same
from matchwood.dist.exchanges.agreement import together
from matchwood.errors import FileFormatError
from matchwood.gate.blocks import collecting
from matchwood.gate.blocks.sources import Source

DESCRIPTION = "matchwood-graph.json"
VERSION = 1
PARTS = ("rows", "columns", "values")


def is_saved(folder: Path) -> bool:
    """Whether `save` wrote this folder."""
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
    """An empty folder; one that holds a saved graph is emptied."""
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


def load(folder: Path, comm: Any, grid: Any = None, order: str = "auto") -> Any:
    """The graph of a folder, on the ranks of `comm`."""
    from matchwood import distributed

    facts = comm.objects(
        together(comm, lambda: _facts(folder) if comm.rank == 0 else None)
    )[0]  # fmt: skip
    ends = np.concatenate([[0], np.cumsum(facts["entries"])]).astype(np.int64)
    total, size = int(ends[-1]), comm.size
    low, high = total * comm.rank // size, total * (comm.rank + 1) // size
    kind = None if facts["values"] is None else np.dtype(facts["values"])
    parts = together(comm, lambda: _opened(folder, facts, ends, low, high))

    def batches(stride: int = 1) -> Iterator[collecting.Entry]:
        step = collecting.BATCH * stride
        for first in range(low, high, step):
            yield _between(parts, first, min(first + collecting.BATCH, high), kind is not None)

    source = Source(batches, -(-(high - low) // collecting.BATCH), high - low, kind)
    return distributed.make(
        "read", comm, facts["n"], source, grid=grid, order=order, edges=facts["edges"],
        duplicates=facts["duplicates"], index_dtype=np.dtype(facts["index_dtype"]),
        nnz=facts["nnz"],
    )  # fmt: skip


def _facts(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION
    try:
        facts: dict[str, Any] = json.loads(path.read_text())
        version = facts["version"]
        _ = facts["n"], facts["nnz"], facts["entries"], facts["values"], facts["edges"]
        _ = facts["duplicates"], np.dtype(facts["index_dtype"]), np.dtype(facts["index"])
    except (ValueError, KeyError, TypeError) as error:
        raise FileFormatError(f"{path}: no description of a graph: {error}") from None
    if version != VERSION:
        raise FileFormatError(f"{path}: written by another version of the format, {version}")
    return facts


def _opened(folder: Path, facts: dict[str, Any], ends: Any, low: int, high: int) -> list[Any]:
    """(first entry, arrays) of the parts that hold entries low .. high - 1, not read yet."""
    found = []
    n, kinds = facts["n"], (facts["index"], facts["index"], facts["values"])
    for rank in range(len(ends) - 1):
        if ends[rank] < high and ends[rank + 1] > low:
            arrays = []
            for part, kind in zip(PARTS, kinds, strict=True):
                if kind is None:
                    continue
                path = _file(folder, part, rank)
                try:
                    array = np.load(path, mmap_mode="r", allow_pickle=False)
                except (ValueError, FileNotFoundError) as error:
                    raise FileFormatError(f"{path}: {error}") from None
                length = int(ends[rank + 1] - ends[rank])
                if array.shape != (length,) or array.dtype != np.dtype(kind):
                    raise FileFormatError(
                        f"{path}: expected {length} values of {np.dtype(kind)}, "
                        f"got shape {array.shape} of {array.dtype}"
                    )
                first, last = max(low - int(ends[rank]), 0), min(high - int(ends[rank]), length)
                if part != "values":
                    _require_ids(path, array[first:last], n)
                arrays.append(array)
            found.append((int(ends[rank]), arrays))
    return found


def _require_ids(path: Path, array: Any, n: int) -> None:
    for start in range(0, array.size, collecting.BATCH):
        part = array[start : start + collecting.BATCH]
        if int(part.min()) < 0 or int(part.max()) >= n:
            raise FileFormatError(f"{path}: a vertex is not within 0..{n - 1}")


def _between(parts: list[Any], low: int, high: int, weighted: bool) -> collecting.Entry:
    pieces = []
    for first, arrays in parts:
        lo, hi = max(low - first, 0), min(high - first, arrays[0].size)
        if lo < hi:
            pieces.append([np.asarray(array[lo:hi]) for array in arrays])
    joined = [np.concatenate(columns) for columns in zip(*pieces, strict=True)]
    return joined[0], joined[1], joined[2] if weighted else None
