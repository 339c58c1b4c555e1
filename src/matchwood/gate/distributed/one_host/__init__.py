"""Ranks of one host: the first one has the whole graph, and computes with the threads of all.

Memory that ranks share lets one process do what all of them would do: so the engine of one machine
runs, on the CPUs of all ranks, and no round waits for messages.  The others wait, and read the
answers for their vertices.  This is the rule of all six functions; `referred` has it in full.

The whole graph is a second copy of all blocks, in memory that the ranks have mapped.  They write
it together: cpu.py.  It is kept with the graph.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines.cpu import available_cpus, watching
from matchwood.engines.cpu.crew import SECOND_THREAD_WORK
from matchwood.engines.cpu.members import rest
from matchwood.engines.cpu.pinning import lent, usable
from matchwood.engines.ranks.agreement import of_first, together
from matchwood.gate import graph as one_machine
from matchwood.gate import inputs, resources

FIRST = 0  # the rank that computes
WHOLE = "whole graph"  # kept in a graph: that of one machine, on the first rank
SPACE = "referred answers"  # kept in a graph: memory of its host
VALUE_BYTES = 32  # of answers, a vertex: the edges of a forest have 24
FEW_ENTRIES = 1 << 20  # of all ranks: up to this the whole graph costs less than a call may take
ALONE_ENTRIES = 1 << 24  # up to this one CPU is not slower where rounds are many
FREE_PART = 4  # the whole graph takes at most this part of the memory that is free
OWNER = np.dtype(np.uint16)  # of the number of a rank: more do not share memory
WORDS = (1, 2, 4, 8)  # bytes of values that are joined as words

Arrays = tuple[Any, ...]


def referred(
    G: Any,
    caller: str,
    work: Callable[[Any, int], tuple[Arrays, Any]],
    threads: int | None,
    *,
    pays: bool = True,
    vertices: Callable[[Arrays], Any] | None = None,
) -> tuple[Arrays, Any] | None:
    """``work(graph, threads)`` of the first rank, which has the whole graph; None on all if not so.

    `work` returns arrays over all vertices, of which each rank gets the values of its own, by
    place, and something small, which all get; or all raise its error.  Arrays may have other rows:
    ``vertices(arrays)`` has for each row the vertex whose owner gets it.

    The rule: ranks are processes of one host that share memory, without GPUs, and a quarter of the
    free memory holds the whole graph.  It is made by the first call that it `pays` for at once, by
    the second call of any function, or where it has at most FEW_ENTRIES.  The threads are those of
    all ranks, which wait, and one where few entries do not keep two busy.  Where the system keeps
    the first rank from the CPUs of the others, only calls for which it `pays` are referred, with at
    most ALONE_ENTRIES.  ``G.stats[caller]`` says where it ran.
    """
    comm, again = G.comm, G.has_kept("called") or G.has_kept(WHOLE)
    G.keep("called", lambda: [True])
    G.stats[caller] = f"on all {comm.size} ranks"
    if G.engine != "cpu" or comm.size == 1 or not getattr(comm, "shared_memory", False):
        return None
    if not (pays or again or G.nnz <= FEW_ENTRIES):
        return None
    host = host_of(G)
    if not host.free and not (pays and G.nnz <= ALONE_ENTRIES):
        return None
    refusal = G.keep("no whole graph", lambda: [_refusal(G)])[0]
    if refusal:
        G.stats[caller] += f": {refusal}"
        return None
    graph, dealing = whole_graph(G, caller), _dealing(G)
    if dealing is None:
        return None
    each = comm.threads if threads is None else threads
    members = max(each, min(each * comm.size, host.most)) if G.nnz >= SECOND_THREAD_WORK else 1

    def dealt() -> Any:
        with alone(G):
            arrays, told = work(graph, members)
            keys = None if vertices is None else vertices(arrays)
            return *dealing.deal(arrays, keys, members), told

    with resting(comm):
        shown, bounds, told = of_first(comm, dealt)
    G.stats[caller] = f"on the first of {comm.size} ranks, {members} thread{'s' * (members > 1)}"
    return dealing.own(shown, bounds), told


def whole_graph(G: Any, caller: str = "gather") -> Any:
    """The graph of one machine on the first rank, None on the others; made once, by all ranks."""
    return G.keep(WHOLE, lambda: [_joined(G, caller) if _joins(G) else G.gather(FIRST)])[0]


class Host(NamedTuple):
    """What the first rank may use: CPUs, how many of them at once, and whether others' too."""

    cpus: tuple[int, ...]
    most: int
    free: bool


def host_of(G: Any) -> Host:
    """What the first rank may use; all ranks call this, and get the same.  Kept by the graph."""
    found: Host = G.keep("CPUs of the first rank", lambda: _host(G.comm))
    return found


def _host(comm: Any) -> Host:
    if not getattr(comm, "shared_memory", False):
        return Host((), 1, False)  # CPUs of other hosts may have the same numbers
    given = comm.objects(getattr(comm.session.place, "cpus", ()))
    cpus = tuple(sorted(set().union(*given)))

    def found() -> Host:
        with lent(cpus):
            return Host(cpus, available_cpus(), usable(cpus))

    return of_first(comm, found)


def _refusal(G: Any) -> str:
    """Why the first rank does not get the whole graph; all ranks get the same text."""
    if G.has_kept(WHOLE):
        return ""
    room = FREE_PART * _room(G)

    def found() -> str:
        if not G.comm.session.copies:
            return "MATCHWOOD_DIST_COPY is 0"
        free = resources.available_memory()
        return "the first has no room for the graph" if free is not None and room > free else ""

    return of_first(G.comm, found)


@contextlib.contextmanager
def alone(G: Any) -> Iterator[None]:
    """The first rank works for all: on the CPUs of those that wait, and hears where one fails.

    Its threads sleep at the end, so that the others find their CPUs free when they wake.
    """
    with watching(G.comm.look), lent(host_of(G).cpus):
        yield
    rest()


@contextlib.contextmanager
def resting(comm: Any) -> Iterator[None]:
    """Ranks that only wait leave their CPUs to the first one at once, as long as it works."""
    session, before = comm.session, (comm.session.crowded, comm.session.timeout)
    if comm.rank != FIRST:
        session.crowded, session.timeout, session.resting = True, np.inf, True
    try:
        yield
    finally:
        (session.crowded, session.timeout), session.resting = before, False


# Answers.  The first rank writes them into shared memory, what each rank owns in one piece: if all
# ranks read every p-th number, each of them would read all of the memory.


class Dealing:
    """Memory for answers, on one rank; on the first also which rank owns each vertex, and where."""

    def __init__(self, G: Any, space: Any, where: Any, owner: Any) -> None:
        sizes = [G.grid.size_of(rank) for rank in range(G.grid.p)]
        self._bounds = np.concatenate(([0], np.cumsum(sizes))).tolist()
        self._rank, self._space, self._where, self._owner = G.comm.rank, space, where, owner

    def deal(self, arrays: Arrays, keys: Any, threads: int) -> tuple[list[Any], list[int]]:
        """(where each array begins, its type and the shape of a row; where each rank begins)."""
        cpu = engines.load(__name__, "cpu")
        places, bounds = self._where, self._bounds
        if keys is not None:
            places, bounds = cpu.by_owner(keys, self._owner, len(bounds) - 1, threads)
        shown, end = [], 0
        for array in map(np.ascontiguousarray, arrays):
            shown.append((end, array.dtype, array.shape[1:]))
            cpu.deal(array, places, self._space[end : end + array.nbytes], threads)
            end += -(-array.nbytes // 8) * 8
        return shown, bounds

    def own(self, shown: list[Any], bounds: list[int]) -> Arrays:
        """Copies of this rank's rows."""
        first, end = bounds[self._rank : self._rank + 2]
        found = []
        for start, dtype, shape in shown:
            width = dtype.itemsize * int(np.prod(shape, dtype=np.int64))
            part = self._space[start + first * width : start + end * width]
            found.append(part.view(dtype).reshape(-1, *shape).copy())
        return tuple(found)


def _dealing(G: Any) -> Dealing | None:
    """The memory of answers, kept by the graph; None on all ranks where there is none."""

    def make() -> list[Dealing | None]:
        comm, kind = G.comm, np.dtype(np.uint32 if G.n <= np.iinfo(np.int32).max else np.uint64)
        space = comm.shared_array(VALUE_BYTES * G.n + VALUE_BYTES)
        table = comm.shared_array(G.n * (kind.itemsize + OWNER.itemsize))
        if space is None or table is None:
            return [None]
        where = table[: G.n * kind.itemsize].view(kind)
        owner = table[G.n * kind.itemsize :].view(OWNER)
        before = sum(G.grid.size_of(rank) for rank in range(comm.rank))
        ids = G.ids
        where[ids] = np.arange(before, before + ids.size)
        owner[ids] = comm.rank
        comm.barrier()
        return [Dealing(G, space, *((where, owner) if comm.rank == FIRST else (None, None)))]

    kept: list[Dealing | None] = G.keep(SPACE, make)
    return kept[0]


# The whole graph


def _joins(G: Any) -> bool:
    """Whether ranks write it together."""
    if G.engine != "cpu" or not getattr(G.comm, "shared_memory", False):
        return False
    values = G.given_values("gather")
    return values is None or (values.dtype.kind in "biuf" and values.itemsize in WORDS)


def _layout(G: Any) -> tuple[Any, int, list[int]]:
    """The type of indices; entries; bytes of row ends, indices, values and parts of rows."""
    values = G.given_values("gather")
    entries = G.keep("entries of all blocks", lambda: G.places.total(G.entries().nnz))[0]
    kind = np.dtype(np.int32 if max(G.n, entries) <= np.iinfo(np.int32).max else np.int64)
    item = 0 if values is None else values.itemsize
    sizes = [(G.n + 1) * kind.itemsize, entries * kind.itemsize, entries * item,
             G.grid.C * G.n * kind.itemsize]  # fmt: skip
    return kind, entries, [-(-size // 8) * 8 for size in sizes]


def _room(G: Any) -> int:
    """Bytes that the whole graph takes, and answers."""
    return sum(_layout(G)[2]) + VALUE_BYTES * G.n


def _joined(G: Any, caller: str) -> Any:
    """The whole graph, joined by all ranks; the first one gets it."""
    comm, grid, view, values = G.comm, G.grid, G.entries(), G.given_values("gather")
    kind, entries, sizes = _layout(G)
    room, what = sum(sizes), f"a graph of {entries} entries"
    first = comm.rank == FIRST
    together(comm, lambda: resources.require_memory(caller, room, what) if first else None)
    memory, parts = comm.shared_array(sum(sizes[:3])), comm.shared_array(sizes[3])
    if memory is None or parts is None:
        return G.gather(FIRST)
    cpu, word = engines.load(__name__, "cpu"), np.dtype(f"u{kind.itemsize}")
    bits = np.dtype("u1") if values is None else np.dtype(f"u{values.itemsize}")
    ends = np.cumsum(sizes)
    indptr = memory[: (G.n + 1) * kind.itemsize].view(kind)
    indices = memory[ends[0] :][: entries * kind.itemsize]
    data = memory[ends[1] :][: 0 if values is None else entries * bits.itemsize]
    lengths = parts[: grid.C * G.n * kind.itemsize].view(kind).reshape(grid.C, G.n)
    given = np.empty(0, bits) if values is None else np.ascontiguousarray(values).view(bits)
    names = G.original_local.astype(word, copy=False)
    unsigned = view.indices.view(f"u{view.indices.itemsize}")
    part = cpu.Part(view.indptr, unsigned, given, names, grid.n_rows, grid.rank % grid.C)
    rows = cpu.Rows(indptr, indices.view(word), data.view(bits), lengths)
    cpu.joined(comm, part, rows, G.threads)
    if not first:
        return None
    found = None if values is None else data.view(values.dtype)
    raw = inputs.Raw(G.n, indptr, indices.view(kind), found, G.edges, True, G.n, False, True)
    asked = None if G.index_dtype == np.int32 else G.index_dtype
    return one_machine.Graph(raw, asked, "gather", G.duplicates, "adopted")
