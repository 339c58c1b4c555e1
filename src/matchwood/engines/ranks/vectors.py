"""Values of the vertices, distributed over ranks: every rank has those of the vertices it owns.

What a user passes must be distributed as the graph is.  Errors are those of checks on one machine
(answers.py): what cannot be an answer at all is a TypeError, what is of the right kind and wrong is
a `CheckFailed`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from matchwood import answers, arguments, engines
from matchwood.engines.ranks import checks
from matchwood.engines.ranks.agreement import raise_first, same, together
from matchwood.errors import CheckFailed

Array = np.ndarray[Any, Any]


class DistributedVector:
    """One value for each vertex; a rank has those of the vertices it owns.

    Attributes
    ----------
    grid, comm : Grid, Communicator
    local : array
        The values of own vertices, in the order of `ids`.
    n : int
        Vertices of all ranks.
    """

    def __init__(self, grid: Any, comm: Any, local: Any, order: Any = None) -> None:
        if not isinstance(getattr(local, "shape", None), tuple) or not local.shape:
            kind = type(local).__name__
            raise TypeError(f"DistributedVector: local must be an array, got {kind}")
        if local.shape[0] != grid.owned:
            raise ValueError(
                f"DistributedVector: local must have {grid.owned} values, got {local.shape[0]}"
            )
        self.grid, self.comm, self.local, self.order = grid, comm, local, order

    def __repr__(self) -> str:
        where = f"rank {self.comm.rank} of {self.comm.size} has {self.local.shape[0]}"
        return f"<DistributedVector: {self.n} values, {self.dtype}, {where}>"

    @property
    def n(self) -> int:
        """Number of values of all ranks."""
        return int(self.grid.n)

    @property
    def dtype(self) -> Any:
        """The type of the values."""
        return self.local.dtype

    @property
    def ids(self) -> Any:
        """The vertices that this rank owns, as the user numbers them."""
        inside = self.grid.original_owned()
        return inside if self.order is None else self.order.user(inside)

    def gather(self, root: int | None = 0) -> Any:
        """All values in the order of the vertices, on rank `root`; None on the others.

        ``root=None`` gathers on all ranks.  Every rank calls it.
        """
        same(self.comm, "gather", root=root)
        if root is not None:
            root = checks.rank("gather", "root", root, self.comm.size)
        local = engines.moved(self.local, "cpu")
        if root is None:
            flat, _ = self.comm.allgatherv(local)
        else:
            counts = [0] * self.comm.size
            counts[root] = int(local.shape[0])
            flat, _ = self.comm.alltoallv(local, counts)
            if self.comm.rank != root:
                return None
        out = np.empty(self.n, local.dtype)
        inside = np.concatenate([self.grid.ids_of(rank) for rank in range(self.grid.p)])
        out[inside if self.order is None else self.order.user(inside)] = flat
        return out

    def save(self, path: Any) -> None:
        """Write one ordinary ``.npy`` file, of all values in the order of the vertices.

        Every rank writes a range of it, so all must see the same file system.
        """
        path = together(self.comm, lambda: arguments.path("save", "path", path))
        same(self.comm, "save", path=path)
        lo, values = self._range()
        write_npy(self.comm, path, values, lo, self.n)

    def _range(self) -> tuple[int, Any]:
        """The first vertex of this rank's range, and the values of the range."""
        local = np.ascontiguousarray(engines.moved(self.local, "cpu"))
        size = self.comm.size
        bounds = np.array([self.n * k // size for k in range(size + 1)])
        ids = self.ids
        by_id = np.argsort(ids)
        ids, local = ids[by_id], local[by_id]
        ends = np.searchsorted(ids, bounds)
        counts = np.diff(ends).tolist()
        places, _ = self.comm.alltoallv(ids, counts)
        values, _ = self.comm.alltoallv(local, counts)
        lo, hi = int(bounds[self.comm.rank]), int(bounds[self.comm.rank + 1])
        out = np.empty(hi - lo, local.dtype)
        out[places - lo] = values
        return lo, out


def write_npy(comm: Any, path: Any, rows: Any, first: int, total: int) -> None:
    """Write a file of `total` rows; `rows`, from number `first` on, are those of this rank.

    A row is a number, or as many as `rows` has columns.  All ranks call this.
    """
    path = Path(path)
    shape = (total, *rows.shape[1:])
    width = rows.itemsize * int(np.prod(rows.shape[1:], dtype=np.int64))  # bytes of a row

    def begin() -> int:
        if comm.rank:
            return 0
        with path.open("wb") as file:
            head = {"descr": rows.dtype.str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, head)
            start = file.tell()
            file.truncate(start + total * width)
        return start

    start = comm.objects(together(comm, begin))[0]

    def write() -> None:
        with path.open("r+b") as file:
            file.seek(start + first * width)
            file.write(rows.tobytes())

    together(comm, write)


# What users pass


def own_part(G: Any, caller: str, name: str, value: Any) -> Any:
    """The own values of a vector, which must be distributed over the ranks as the graph is.

    All ranks raise TypeError or ValueError where on one of them it is not.
    """
    error: Exception | None = None
    if not isinstance(value, DistributedVector):
        kind = type(value).__name__
        error = TypeError(f"{caller}: {name} must be a DistributedVector, got {kind}")
    elif layout_of(value) != layout_of(G):
        error = ValueError(
            f"{caller}: {name} must be spread as the graph is, over {layout_of(G)}, "
            f"got {layout_of(value)}"
        )
    raise_first(G.comm, error)
    return value.local


def own_integers(spread: Any, caller: str, problem: str, name: str, value: Any) -> Array:
    """The own values of a DistributedVector of integers, as int64 on the CPU.

    It must be distributed as `spread` is: a DistributedGraph, or another vector.
    """
    if not isinstance(value, DistributedVector):
        kind = type(value).__name__
        raise TypeError(f"{caller}: {name} must be a DistributedVector, got {kind}")
    mine, theirs = layout_of(spread), layout_of(value)
    if mine != theirs:
        raise CheckFailed(f"{problem}: {name} must be spread over {mine}, got {theirs}")
    owned = (spread.grid.owned,)
    return answers.integers(caller, problem, name, value.local, owned, "cpu")  # type: ignore[no-any-return]


def layout_of(spread: Any) -> str:
    """How a graph or a vector is distributed, in words; equal for equal layouts."""
    grid, order = spread.grid, spread.order
    numbered = "" if order is None else f", {order.name}"
    return f"{grid.R}x{grid.C} ranks ({grid.n} vertices, {grid.layout}{numbered})"


def first_of(wrong: Array, ids: Array) -> tuple[int, int] | None:
    """(vertex, place) of the smallest vertex that is marked; None where none is."""
    places = np.flatnonzero(wrong)
    if places.size == 0:
        return None
    at = int(places[ids[places].argmin()])
    return int(ids[at]), at
