"""What generators return: a matrix, or a graph made by all ranks of a communicator together.

Each rank draws its part: numbers of a stream are computed from their counters alone (streams/), so
any rank can draw any part.  Edges are then sent to the ranks that keep them, batch after batch.
The graph is the one that one machine makes from the same arguments; no rank ever has all of it.
Where the method cannot be divided (Qhull), rank 0 makes the graph and distributes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp

from matchwood import engines
from matchwood.arguments import index_type, without_ranks
from matchwood.engines.ranks.agreement import same, together
from matchwood.errors import EngineUnavailable
from matchwood.gate import resources

T = TypeVar("T")
Array = Any  # of NumPy, or of CuPy with engine="gpu"
Matrix = Any  # scipy.sparse.csr_array, or cupyx.scipy.sparse.csr_matrix with engine="gpu"

EDGES = 1 << 19  # drawn at a time by a rank, at most; stored both ways that is one batch
BATCHES = 32  # of a rank, at least, so that a batch is small beside the block,
LEAST = 1 << 14  # unless batches would have fewer entries than this


def matrix(n: int, indptr: Array, indices: Array, data: Array, *, canonical: bool = True) -> Matrix:
    """The matrix of these arrays, on their engine; canonical: sorted rows, no duplicates."""
    if engines.location(indices) == "cpu":
        A = sp.csr_array((data, indices, indptr), shape=(n, n))
    else:
        from cupyx.scipy.sparse import csr_matrix

        A = csr_matrix((data, indices, indptr), shape=(n, n))
    if canonical:
        A.has_canonical_format = True
    return A


def require_room(
    caller: str, engine: str | None, n: int, entries: int, value: np.dtype[Any], extra: int = 0
) -> None:
    """Raise `OutOfMemory` before a graph is made that does not fit; `extra` bytes beside it."""
    index = index_type(max(n, entries)).itemsize
    nbytes = (n + 1) * index + entries * (index + value.itemsize) + extra
    if engine == "gpu" and nbytes <= resources.ADDRESSES:
        return  # its own memory, and its own error
    resources.require_memory(caller, nbytes, f"a graph of {n} vertices and {entries} entries")


def ones(like: Array, dtype: np.dtype[Any]) -> Array:
    """As many ones as `like` has elements, where `like` lives."""
    if engines.location(like) == "gpu":
        return engines.cupy().ones(like.size, dtype)
    return np.ones(like.size, dtype)


class Ranks(NamedTuple):
    """The arguments of a generator about ranks; `comm` None: there is one machine."""

    comm: Any = None
    grid: Any = None
    order: str = "auto"
    engine: str | None = None
    threads: int | None = None

    @property
    def cpu_threads(self) -> int:
        """Threads of this rank that draw."""
        return self.comm.threads if self.threads is None else self.threads

    def agreed(self, caller: str, plan: Callable[[], T]) -> T:
        """What `plan` returns: the same on all ranks, or all raise."""
        if self.comm is None:
            without_ranks(caller, self.grid, self.order)
            return plan()
        from matchwood.gate.distributed import require_comm

        require_comm(self.comm, caller)

        def checked() -> T:
            engines.resolve("cpu", self.engine, caller, self.threads)
            if self.engine == "reference":
                raise EngineUnavailable(f"{caller}: engine must be None, 'cpu' or 'gpu' with comm")
            return plan()

        made = together(self.comm, checked)
        same(self.comm, caller, arguments=_listed(made), grid=self.grid, order=self.order,
             engine=self.engine)  # fmt: skip
        return made

    def share(self, total: int) -> range:
        """This rank's part of 0 .. total - 1."""
        rank, size = self.comm.rank, self.comm.size
        return range(total * rank // size, total * (rank + 1) // size)

    def graph(
        self,
        caller: str,
        n: int,
        total: int,
        draw: Callable[[int, int], tuple[Any, Any, Any]],
        values: Callable[[Any, Any], Any] | None,
        *,
        each: float = 2.0,
        kind: Any = None,
    ) -> Any:
        """The DistributedGraph of what the ranks draw.

        ``draw(first, count)`` makes the entries (u, v, values or None) of `count` items from item
        `first` on, of `total`, which have about `each` entries on average.  ``values(places,
        view)`` makes the values of a block where entries have none.
        """
        from matchwood.gate import distributed
        from matchwood.gate.distributed.sources import Source

        mine = self.share(total)
        step = max(int(EDGES * 2 / max(each, 1)), 1)
        step = min(step, max(-(-len(mine) // BATCHES), int(LEAST / max(each, 1)), 1))

        def parts(stride: int = 1) -> Iterator[tuple[Any, Any, Any]]:
            for first in range(mine.start, mine.stop, step * stride):
                yield draw(first, min(step, mine.stop - first))

        source = Source(parts, -(-len(mine) // step), int(len(mine) * each), kind)
        return distributed.make(
            caller, self.comm, n, source, grid=self.grid, order=self.order, values=values,
            reduce="first" if kind is None else None, engine=self.engine or "cpu",
        )  # fmt: skip

    def dealt(self, caller: str, make: Callable[[], Any]) -> Any:
        """The DistributedGraph of a matrix that rank 0 makes."""
        from matchwood.gate import distributed
        from matchwood.gate import graph as csr

        A = together(self.comm, lambda: make() if self.comm.rank == 0 else None)
        graph = None if A is None else csr.as_graph(A, caller)
        G = distributed.distribute(graph, comm=self.comm, grid=self.grid, order=self.order)
        return G.on(self.engine or "cpu")


def _listed(plan: Any) -> Any:
    """A plan with arrays as lists, so that it can be compared as text."""
    if isinstance(plan, tuple):
        return tuple(_listed(part) for part in plan)
    return plan.tolist() if isinstance(plan, np.ndarray) else plan


def both_ways(u: Array, v: Array, *, directed: bool) -> tuple[Array, Array, None]:
    """Edges without loops, each in both directions unless directed."""
    keep = u != v
    if not keep.all():
        u, v = u[keep], v[keep]
    if directed:
        return u, v, None
    return np.concatenate((u, v)), np.concatenate((v, u)), None


def ones_on_ranks(dtype: Any) -> Callable[[Any, Any], Any]:
    return lambda places, view: np.ones(view.nnz, dtype)
