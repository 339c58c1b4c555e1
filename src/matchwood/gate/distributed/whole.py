"""A graph that is whole on the first rank, which computes for all: views on one GPU.

At the end: functions of one machine that the first rank calls for all.  On the CPUs of one host:
one_host.

Nothing is gained if all ranks use the one GPU, and the ranks of a graph meet many times where one
machine needs a few kernels.  So the first rank joins the blocks of all to the view of one machine
and runs its engine, and every rank reads the results for its own vertices.

A view is a second copy on this GPU.  It is made at the first call that wants it, if it
takes at most half of the memory that is free then, and kept with the graph.  Joining: gpu.py.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from matchwood import arguments, engines
from matchwood.engines import gpu
from matchwood.engines.ranks.agreement import of_first
from matchwood.gate.distributed import one_host
from matchwood.gate.distributed.one_host import FIRST
from matchwood.gate.views import View

KEPT = "whole"  # in a graph: its views by name, for each communicator
VIEW_ARRAYS = ("indptr", "indices", "names", "data")
MAPPED = "mapped"  # kept in a graph: what its ranks have mapped, by communicator
SHARE = 2  # a view must fit twice: while it is joined, parts of it exist twice


class Known(NamedTuple):
    """A view that the first rank has: the type of its indices; None on the other ranks."""

    kind: Any
    view: View | None


class Whole:
    """Views of a graph that the first rank has, and memory by which all ranks get its answers."""

    def __init__(self, G: Any, caller: str, views: Sequence[Known], space: Sequence[Any]) -> None:
        self._graph, self._caller, self._views, self._space = G, caller, views, space
        sizes = [G.grid.size_of(rank) for rank in range(G.grid.p)]
        self._starts, self._sizes = [sum(sizes[:rank]) for rank in range(G.grid.p)], sizes

    def answer(self, work: Callable[..., tuple[Sequence[Any], Any]]) -> tuple[list[Any], Any]:
        """What ``work(*views)`` finds: its arrays at own vertices, by place, and its small rest.

        All ranks call it, and must have met since the last time: until then others may still read.
        `work` runs on the first rank.  It returns as many arrays over the vertices as `gathered`
        was asked for, and something small that all ranks get.  All ranks raise its errors.
        """
        G, space = self._graph, self._space

        def dealt() -> Any:
            found, rest = work(*(known.view for known in self._views))
            for values, into in zip(found, space, strict=True):
                self._deal(values, into)
            settle()  # before the collective after which the others read it
            return rest

        rest = of_first(G.comm, dealt)
        own = []
        for values in space:
            own.append(gpu.empty(self._sizes[G.comm.rank], values.dtype, self._caller))
            own[-1][...] = self._part(values, G.comm.rank)
        settle()  # the first rank may write again when this one is back
        return own, rest

    def _part(self, values: Any, rank: int) -> Any:
        """The part of one rank in values that were sorted by `_deal`."""
        start = self._starts[rank]
        return values[start : start + self._sizes[rank]]

    def _deal(self, values: Any, into: Any) -> None:
        """Sort values of all vertices by owner, then by place."""
        G = self._graph
        if G.order is not None:
            values = values[G.keep("user's ids of all", lambda: _users(G))]
        for rank in range(G.grid.p):
            self._part(into, rank)[...] = values[rank :: G.grid.p]


def gathered(G: Any, caller: str, arrays: int = 1, **views: View) -> Whole | None:
    """These views of G, by their names, on the first rank; all ranks call it with their blocks.

    `arrays`: how many arrays over the vertices an answer of the `caller` has.  None where the ranks
    do not share a GPU whose memory they see, or where it is too full.
    """
    if G.grid.p == 1 or G.n == 0 or G.engine != "gpu" or G.grid.layout != "stripes":
        return None
    of_comm = G.keep(KEPT, weakref.WeakKeyDictionary).setdefault(G.comm, {})
    found = []
    for name, view in views.items():
        if name not in of_comm:
            of_comm[name] = _joined(G, view)
        if of_comm[name] is None:
            return None
        found.append(of_comm[name])
    kind = np.result_type(*(known.kind for known in found))
    space = common(G, caller, **{f"array{k}": (G.n, kind) for k in range(arrays)})
    return None if space is None else Whole(G, caller, found, list(vars(space).values()))


def _joined(G: Any, view: View) -> Known | None:
    """The view of which `view` is this rank's block, on the first rank; all ranks call it."""
    names = engines.moved(G.original_local.astype(arguments.index_type(G.n)), "gpu")
    offered = [view.indptr, view.indices, names, *([] if view.data is None else [view.data])]
    mappings = G.comm.lend(offered)
    if mappings is None:
        return None
    blocks = [dict(zip(VIEW_ARRAYS, arrays, strict=False)) for arrays in mappings.arrays]
    entries = sum(int(block["indices"].size) for block in blocks)
    kind = np.promote_types(view.indices.dtype, arguments.index_type(max(G.n, entries)))
    word = kind.itemsize + (0 if view.data is None else view.data.dtype.itemsize)
    room = SHARE * (G.n * kind.itemsize + entries * word)
    made = None
    if G.comm.rank == FIRST and room <= gpu.free_bytes():
        try:
            made = engines.load(__package__, "gpu").joined(G.grid, blocks, kind)
            settle()  # nobody needs the blocks any more
        except MemoryError:  # others may have taken it meanwhile
            made = None
    is_there = bool(G.comm.objects(made is not None)[FIRST])
    return Known(kind, made) if is_there else None


def _users(G: Any) -> Any:
    """The user's ids of all vertices, as the grid numbers them."""
    ids = engines.cupy().arange(G.n, dtype=arguments.index_type(G.n))
    return G.order.user(ids)


# Memory of one GPU that the ranks of a graph share.  What one writes (`settle` waits for it), the
# others read where it lies, after a collective.


def mapped(G: Any, name: str, make: Callable[[], Sequence[Any]]) -> Any:
    """Arrays of the ranks of G that all have mapped, under that name: see `Communicator.lend`.

    Mapped at the first call, which asks `make` for the arrays of this rank.  The graph keeps it as
    long as it has this communicator.
    """
    of_comm = G.keep(MAPPED, weakref.WeakKeyDictionary).setdefault(G.comm, {})
    if name not in of_comm:
        of_comm[name] = G.comm.lend(make())
    return of_comm[name]


def common(G: Any, caller: str, **arrays: tuple[int, Any]) -> Any:
    """Arrays of these sizes and types which all ranks of G have in common, with these names.

    None where the ranks do not see each other's memory.  The memory is the first rank's, and keeps
    its contents from one call to the next.
    """
    layout = gpu.Layout(caller, **arrays)

    def make() -> list[Any]:
        return [gpu.empty(layout.nbytes, np.uint8, caller)] if G.comm.rank == 0 else []

    found = mapped(G, f"{caller}: {arrays}", make)
    if found is None:
        return None
    whole, made = found.arrays[0][0], SimpleNamespace()
    for name, (size, kind) in arrays.items():
        start = getattr(layout, name)
        setattr(made, name, whole[start : start + size * np.dtype(kind).itemsize].view(kind))
    return made


def settle() -> None:
    """Wait until the GPU of this rank has done what it was asked for."""
    engines.cupy().cuda.get_current_stream().synchronize()


# Functions that ranks do not share


def on_first(G: Any, work: Callable[[Any], Any]) -> Any:
    """See `DistributedGraph.on_first`."""

    def checked(graph: Any) -> tuple[Any, bool]:
        given = work(graph)
        arrays = given if isinstance(given, tuple) else (given,)
        for array in arrays:
            if not _over_vertices(array, G.n):
                raise ValueError(
                    f"on_first: work must return arrays of one number for each of {G.n} vertices, "
                    f"got {arguments.shown(array)}"
                )
        return arrays, isinstance(given, tuple)

    vectors, several = _spread(G, "on_first", checked)
    return vectors if several else vectors[0]


def answer(G: Any, caller: str, work: Callable[[Any], Any]) -> Any:
    """What ``work(graph)`` finds on the first rank: an array over the vertices, or a dataclass.

    Its arrays over the vertices become DistributedVectors; all ranks get the rest.
    """

    def divided(graph: Any) -> tuple[list[Any], Any]:
        found = work(graph)
        if not dataclasses.is_dataclass(found):
            return [found], None
        arrays = {k: v for k, v in vars(found).items() if _over_vertices(v, G.n)}
        rest = dataclasses.replace(found, **dict.fromkeys(arrays))  # type: ignore[type-var]
        return list(arrays.values()), (list(arrays), rest)

    vectors, rest = _spread(G, caller, divided)
    if rest is None:
        return vectors[0]
    names, found = rest
    return dataclasses.replace(found, **dict(zip(names, vectors, strict=True)))


def _over_vertices(array: Any, n: int) -> bool:
    known = isinstance(array, np.ndarray) and array.dtype.kind in "biuf"
    return known and array.shape == (n,)


def _spread(
    G: Any, caller: str, work: Callable[[Any], tuple[Sequence[Any], Any]]
) -> tuple[tuple[Any, ...], Any]:
    """The arrays over the vertices that the first rank finds, spread; and the rest of it."""
    comm, arrays = G.comm, list[Any]()
    graph = one_host.whole_graph(G, caller)
    one_host.host_of(G)

    def found() -> tuple[int, Any]:
        with one_host.alone(G):
            given, rest = work(graph)
        arrays.extend(np.ascontiguousarray(array) for array in given)
        return len(arrays), rest

    with one_host.resting(comm):
        count, rest = of_first(comm, found)
    G.stats[caller] = f"on the first of {comm.size} ranks"
    sent = [comm.broadcast(arrays[k] if comm.rank == FIRST else None, FIRST) for k in range(count)]
    return tuple(G.vector(engines.moved(array[G.ids], G.engine)) for array in sent), rest
