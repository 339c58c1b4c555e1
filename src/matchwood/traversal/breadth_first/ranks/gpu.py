"""A level of breadth-first search in a block on the GPU.  Kernels: gpu.cu.  Read cpu/ first.

The block and what is known of its vertices stay on the GPU; the frontier and what is found, which
are sent between ranks, are host arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines import gpu

SOURCE = gpu.Source(
    __package__,
    "gpu.cu",
    ("follow_rows<I,N>", "search_rows<I,N>"),
    types={"I": (np.int32, np.int64), "N": (np.int32, np.int64)},
)

WARP = 32  # threads to a row of the frontier
UNSEEN = SOURCE.constant("UNSEEN")

Array = np.ndarray[Any, Any]


class Block:
    """What a rank knows of the vertices of its block, by local id."""

    def __init__(
        self, outward: Any, inward: Any, grid: Any, names: Array, threads: int | None
    ) -> None:
        cupy = engines.cupy()
        self.outward, self.inward = tuple(outward), tuple(inward)
        self.rows = grid.n_rows
        with gpu.guard("bfs", grid.n_local * (4 + 2 * names.itemsize)):
            self.names = cupy.asarray(names)
            self.when = cupy.full(grid.n_local, UNSEEN, np.int32)
            self.best = cupy.full(grid.n_local, np.iinfo(names.dtype).max, names.dtype)
        self.kernels = SOURCE.kernels(I=self.outward[1].dtype, N=names.dtype)
        self.arcs = 0

    def see(self, rows: Array, depth: int) -> int:
        """Give these rows the level `depth`; returns how many entries they have."""
        given = engines.cupy().asarray(rows)
        indptr = self.outward[0]
        self.when[given] = depth
        self.arcs = int((indptr[given + 1] - indptr[given]).sum(dtype=np.int64))
        return self.arcs

    def top_down(self, rows: Array, depth: int) -> Array:
        """Columns that these rows reach and that were not seen before; their parents are known."""
        cupy = engines.cupy()
        if self.arcs == 0:
            return np.empty(0, np.int64)
        with gpu.guard("bfs"):
            frontier = cupy.asarray(rows, np.int64)
            found = cupy.empty(min(self.when.size, self.arcs), np.int64)
            tail = cupy.zeros(1, np.uint64)
            self.kernels.follow_rows(
                frontier.size * WARP,
                (frontier.size, frontier, *self.outward, self.names, depth + 1, self.when,
                 self.best, found, tail),
            )  # fmt: skip
            return np.asarray(found[: int(tail.item())].get())

    def parents(self, found: Array) -> Array:
        """The smallest parents of columns that were found."""
        return np.asarray(self.best[engines.cupy().asarray(found)].get())

    def collect(self, stripe: tuple[int, int, int], depth: int) -> tuple[Array, Array]:
        """(k, parents), ascending, of the vertices base + k step of level `depth`, k < size."""
        base, step, size = stripe
        part = slice(base, base + step * size, step)
        with gpu.guard("bfs"):
            places = engines.cupy().flatnonzero(self.when[part] == depth)
            return places.get(), self.best[part][places].get()

    def frontier(self, columns: Array) -> Any:
        """What `bottom_up` takes, from local ids of columns."""
        cupy = engines.cupy()
        with gpu.guard("bfs"):
            found = cupy.zeros(self.when.size, np.uint8)
            found[cupy.asarray(columns)] = 1
            return found

    def bottom_up(self, frontier: Any, depth: int) -> None:
        """Rows that are not seen yet and have a column of the frontier get a level and a parent."""
        with gpu.guard("bfs"):
            self.kernels.search_rows(
                self.rows,
                (self.rows, *self.inward, frontier, self.names, depth + 1, self.when, self.best),
            )
