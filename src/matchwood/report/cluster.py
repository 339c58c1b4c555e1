"""How time falls with ranks: the rows of `matchwood dist bench`, and the speed of links."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import matchwood
from matchwood import engines

# A call on all ranks: its time, the part of it that is spent in collectives, and the traffic.


OPERATIONS = (
    "barrier", "allreduce", "reduce_scatter", "allgather", "allgatherv", "alltoallv", "broadcast",
    "objects",
)  # fmt: skip


def _nothing() -> None:
    pass


def settling(G: Any) -> Callable[[], None]:
    """A function that waits for the GPU of this rank, where the graph lies on one."""
    if G.engine != "gpu":
        return _nothing
    wait: Callable[[], None] = engines.cupy().cuda.get_current_stream().synchronize
    return wait


@dataclasses.dataclass
class Talk:
    """A rank's time and traffic in collectives."""

    seconds: float = 0.0  # waiting for others included
    steps: int = 0  # messages that wait for one another: log2(size) in a collective


@contextlib.contextmanager
def communicating(*communicators: Any, settle: Callable[[], None] = _nothing) -> Iterator[Talk]:
    """A `Talk` that counts what this rank does in the collectives of these communicators.

    `settle` is called before each collective, so that what the GPU computes meanwhile does not
    count as communication.
    """
    talk = Talk()

    def timed(operation: Callable[..., Any], steps: int) -> Callable[..., Any]:
        @functools.wraps(operation)
        def call(*arguments: Any, **options: Any) -> Any:
            settle()
            start = time.perf_counter()
            try:
                return operation(*arguments, **options)
            finally:
                talk.seconds += time.perf_counter() - start
                talk.steps += steps

        return call

    for comm in communicators:
        for name in OPERATIONS:
            steps = (comm.size - 1).bit_length()
            setattr(comm, name, timed(getattr(comm, name), steps))  # hides that of the class
    try:
        yield talk
    finally:
        for comm in communicators:
            for name in OPERATIONS:
                delattr(comm, name)


def measure(G: Any, work: Callable[[Any], Any], repeats: int) -> dict[str, Any]:
    """Seconds of ``work(G)``, of the slowest rank; those in collectives; bytes and messages.

    All ranks call it.  A first call, not timed, prepares views and compiles.  Of the repeats the
    one of median time counts.
    """
    comm, rows, settle = G.comm, [], settling(G)
    work(G)
    for _ in range(repeats):
        settle()
        comm.barrier()
        comm.traffic.clear()
        with communicating(comm, G.exchange.row, G.exchange.column, settle=settle) as talk:
            start = time.perf_counter()
            work(G)
            settle()
            seconds = time.perf_counter() - start
        traffic = comm.traffic
        row = [
            seconds, seconds - talk.seconds, traffic.bytes_received, traffic.messages, talk.seconds,
            talk.steps,
        ]  # fmt: skip
        rows.append(comm.allreduce(np.array(row), "max").tolist())
    rows.sort()
    seconds, computing, received, messages, talking, steps = rows[len(rows) // 2]
    entries = G.comm.allreduce(np.array([G.undirected_pattern().nnz], np.int64), "max")
    return {
        "seconds": seconds,
        "computing": computing,  # of the rank that computes longest
        "communicating": max(0.0, seconds - computing),
        "in_collectives": talking,  # of the rank that is there longest: it waits for others too
        "received": int(received),
        "messages": int(messages),
        "steps": int(steps),
        "entries": int(entries[0]),  # of the rank that has most
    }


# Latency and bandwidth between the ranks of a communicator, measured with its collectives.


SMALL_TRIES = 50
LARGE_TRIES = 5
RING_BYTES = 1 << 23  # bytes that each rank sends to the next one


def links(comm: Any) -> dict[str, Any]:
    """Seconds of a small reduction and of a barrier; bytes a second from each rank to the next.

    All ranks call it; None for a single rank, which sends nothing.
    """
    if comm.size == 1:
        return {"allreduce": None, "barrier": None, "bandwidth": None}
    word = np.zeros(1)
    block = np.zeros(RING_BYTES, np.uint8)
    counts = [0] * comm.size
    counts[(comm.rank + 1) % comm.size] = RING_BYTES
    ring = _median(comm, lambda: comm.alltoallv(block, counts), LARGE_TRIES)
    return {
        "allreduce": _median(comm, lambda: comm.allreduce(word), SMALL_TRIES),
        "barrier": _median(comm, comm.barrier, SMALL_TRIES),
        "bandwidth": RING_BYTES / ring,
    }


def _median(comm: Any, work: Callable[[], Any], tries: int) -> float:
    """The median time of a call on the slowest rank; the first call is not counted."""
    times = []
    for _ in range(tries + 1):
        comm.barrier()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    slowest = comm.allreduce(np.array(times[1:]), "max")
    return statistics.median(slowest.tolist())


# The experiments of chapter 6 of the thesis, on any number of ranks and graphs of any size.
#
# =============  ==============================================================================
# `strong`       one graph on more and more ranks; computing and communicating (figures 6.3, 6.5)
# `weak`         as many vertices on each rank, R-MAT and random graphs (6.4)
# `variants`     components by colours: base, +SP, +SW, +VQ, push; and this library's method (6.6)
# `shapes`       all R x C of the ranks (6.7)
# `complex`      matching, label propagation and pointer jumping (6.8)
# =============  ==============================================================================
#
# Fewer ranks than there are: the first ones are split off, the others wait.


Row = dict[str, Any]
PAGERANK_ITERATIONS = 20  # as in the thesis
LABEL_ROUNDS = 20


class Asked(NamedTuple):
    """How large the graphs are, and how often each call is timed."""

    scale: int = 16  # 2^scale vertices
    repeats: int = 3
    edge_factor: int = 16
    counts: tuple[int, ...] | None = None  # of ranks; None: all that an experiment knows
    told: Callable[[Row], Any] | None = None  # called on rank 0 with each row, once it is known

    def chosen(self, counts: list[int]) -> list[int]:
        """Those of the counts that are asked for."""
        return [count for count in counts if self.counts is None or count in self.counts]


def pagerank(G: Any) -> Any:
    return matchwood.pagerank(G, tol=0, max_iterations=PAGERANK_ITERATIONS, weighted=False)


def bfs(G: Any) -> Any:
    return matchwood.bfs(G, G.keep("bench source", lambda: busiest(G)))


def busiest(G: Any) -> int:
    """The smallest vertex with the most neighbours: a search from it reaches most of the graph."""
    own, ids = engines.moved(G.degrees.local, "cpu"), G.ids
    most = int(own.max(initial=0))
    mine = (-most, int(ids[own == most].min(initial=G.n)))
    found: int = min(G.comm.objects(mine))[1]
    return found


def labels(G: Any) -> Any:
    return matchwood.label_propagation(G, max_rounds=LABEL_ROUNDS)


def pointers(G: Any) -> Any:
    """Every vertex points at its smallest neighbour, if that is smaller: a forest."""

    def make() -> Any:
        view, rows, ids = G.undirected_pattern(), G.grid.n_rows, G.original_local
        least = ids[:rows].copy()
        full = np.flatnonzero(np.diff(view.indptr[: rows + 1]))
        first = ids[view.indices[view.indptr[full]]]  # rows are in the order of the user's ids
        least[full] = np.minimum(least[full], first)
        return G.vector(G.exchange.fold(least, "min"))

    return matchwood.forest_roots(G.keep("smallest neighbours", make))


BENCHMARKS = {"pagerank": pagerank, "components": matchwood.connected_components, "bfs": bfs}
COMPLEX = {"matching": matchwood.weighted_matching, "labels": labels, "pointers": pointers}
COLOURS = ("colour/base", "colour/+SP", "colour/+SP+SW", "colour/+SP+SW+VQ", "colour", "auto")


def rank_counts(p: int) -> list[int]:
    """1, 2, 3, 4, 6, 9, 16, ... up to p, and p itself."""
    counts = {k for k in (1, 2, 3, 4, 6, 9, 16, 25, 36, 64, 100, 144, 256, 400) if k < p}
    return sorted(counts | {p})


def shapes_of(p: int) -> list[tuple[int, int]]:
    """All (R, C) with R C = p."""
    return [(R, p // R) for R in range(1, p + 1) if p % R == 0]


def rmat(asked: Asked, scale: int, comm: Any, grid: Any = None, weights: Any = None) -> Any:
    from matchwood import generators

    return generators.rmat(scale, asked.edge_factor, weights=weights, comm=comm, grid=grid)


def rand(asked: Asked, scale: int, comm: Any) -> Any:
    from matchwood import generators

    n = 1 << scale
    return generators.erdos_renyi(n, n * asked.edge_factor, comm=comm)


def on_first(comm: Any, count: int, work: Callable[[Any], list[Row]]) -> list[Row]:
    """What `work` returns on a communicator of the first `count` ranks, sent to all ranks."""
    part = comm.split(0 if comm.rank < count else None, comm.rank)
    rows = work(part) if part is not None else []
    comm.barrier()
    found: list[Row] = comm.objects(rows)[0]
    return found


def timed(G: Any, calls: dict[str, Any], asked: Asked, **facts: Any) -> list[Row]:
    """A row for each call on a graph, by the work of all ranks, also where they are on one host."""
    rows = []
    G.comm.session.copies = False
    for name, call in calls.items():
        rows.append({
            "algorithm": name, "ranks": G.comm.size, "threads": G.threads, "grid": G.grid.name,
            "vertices": G.n, **facts, **measure(G, call, asked.repeats),
        })  # fmt: skip
        if asked.told is not None and G.comm.rank == 0:
            asked.told(rows[-1])
    return rows


def strong(comm: Any, asked: Asked, calls: dict[str, Any] | None = None) -> list[Row]:
    """Times of one graph on more and more ranks."""
    chosen = BENCHMARKS if calls is None else calls
    weights = "uniform" if "matching" in chosen else None

    def work(part: Any) -> list[Row]:
        G = rmat(asked, asked.scale, part, weights=weights)
        return timed(G, chosen, asked, graph=f"R-MAT {asked.scale}")

    counts = asked.chosen(rank_counts(comm.size))
    return [row for count in counts for row in on_first(comm, count, work)]


def complex_algorithms(comm: Any, asked: Asked) -> list[Row]:
    """`strong` of matching, label propagation and pointer jumping."""
    return strong(comm, asked, COMPLEX)


def weak(comm: Any, asked: Asked) -> list[Row]:
    """Times with 2^scale vertices on each rank, on 1, 4, 16, ... ranks."""

    def work(part: Any) -> list[Row]:
        scale = asked.scale + (part.size.bit_length() - 1)
        rows = []
        for name, make in (("R-MAT", rmat), ("random", rand)):
            G = make(asked, scale, part)
            rows += timed(G, BENCHMARKS, asked, graph=f"{name} {scale}")
        return rows

    counts = asked.chosen([4**k for k in range(10) if 4**k <= comm.size])
    return [row for count in counts for row in on_first(comm, count, work)]


def variants(comm: Any, asked: Asked) -> list[Row]:
    """Components by colours as in the thesis, with its exchanges, and by the default method."""

    def by(method: str) -> Callable[[Any], Any]:
        return lambda G: matchwood.connected_components(G, method=method)

    G = rmat(asked, asked.scale, comm)
    name = f"R-MAT {asked.scale}"
    rows = timed(G, {method: by(method) for method in COLOURS}, asked, graph=name, exchange="own")
    G.exchange = G.exchange.with_kind("thesis")
    base = {"colour/base": by("colour/base"), "pagerank": pagerank}
    rows += timed(G, base, asked, graph=name, exchange="thesis")
    return rows


def shapes(comm: Any, asked: Asked) -> list[Row]:
    """All grids of the ranks."""
    rows = []
    for R, C in shapes_of(comm.size):
        G = rmat(asked, asked.scale, comm, grid=f"{R}x{C}")
        rows += timed(G, BENCHMARKS, asked, graph=f"R-MAT {asked.scale}")
    return rows


FIGURES: dict[str, Callable[[Any, Asked], list[Row]]] = {
    "strong": strong,
    "weak": weak,
    "variants": variants,
    "shapes": shapes,
    "complex": complex_algorithms,
}


def run(comm: Any, names: list[str], asked: Asked) -> dict[str, list[Row]]:
    """The rows of each experiment; all ranks call it and get them."""
    return {name: FIGURES[name](comm, asked) for name in names}
