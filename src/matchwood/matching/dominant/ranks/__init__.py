"""Locally dominant matching on a grid of ranks.  The rule and the papers: matching/weighted.py.

A round, on every rank:

    propose   each row of the block that needs one finds its candidate: its first edge of the block
              to a free column.  Candidates go to the owners of the rows (ranks of one row)
    choose    owners point along the first of a vertex's candidates.  "I point at you" goes to the
              owner of the vertex pointed at (all ranks)
    settle    vertices that point at each other are matched, any other waits
    tell      matched vertices are sent to the ranks that have them as columns or as rows, and their
              number to all.  Where they are few, all of it goes to all ranks, in one exchange
    wake      rows that waited for one of them propose again

Only what has changed is sent: a candidate when the one before was matched, a pointer when it
differs from the one before.  Matched vertices are sent as a list of places, or as a bitmap where
that is shorter.  cpu/ and gpu.py each have a class `Run` with these steps, `mate` and `weights`.

Where weights rise along paths, a round matches one edge.  After 64 rounds that match few vertices,
the edges between free vertices go to the first rank if they are few, and it does the rest: these
edges are all that it depends on.

Where the ranks share the memory of a host, the first of them finds the matching for all, by the
method of one machine, and so where they share a GPU and no method was asked for (gate/distributed).

The rounds are those of dominant/cpu.py, and so is the order of edges: it compares the user's
numbers of vertices, which do not depend on the grid.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines.cpu import watching
from matchwood.engines.ranks.agreement import of_first, same
from matchwood.errors import EngineUnavailable
from matchwood.gate.distributed import one_host, whole
from matchwood.matching.methods import AUTO, EngineMatching, Origin, load, settled_weight
from matchwood.matching.result import Matching
from matchwood.matching.weighted import weighted_matching as one_machine
from matchwood.primitives.wide_sums import finite, half_over_ranks
from matchwood.stopwatch import Stopwatch

CALLER = "weighted_matching"
METHODS = ("auto", "dominant")
Stripes = tuple[Any, ...]
VERTICES_PER_MATCHED = 64  # few are matched when a round matches fewer than n / this
LATE_ROUNDS = 64  # with few, until it is counted what is left; then after four times as many
LEFT_ENTRIES = 1 << 24  # of free vertices, and vertices, up to which the first rank does the rest


def weighted_matching(
    G: Any, *, method: str, seed: int, ties: str, threads: int | None = None
) -> Matching:
    """See matchwood.matching.weighted_matching.  Called by all ranks."""
    same(G.comm, CALLER, method=method, rng=seed, ties=ties)
    if method not in METHODS:
        remedy = (
            "'dominant' finds the same matching"
            if method in ("greedy", "suitor")
            else ("the distributed method is 'dominant'")
        )
        raise EngineUnavailable(f"{CALLER}: method {method!r} is for one machine; {remedy}")
    clock = Stopwatch()
    origin = Origin(G, seed=seed, ties=ties)

    def work(graph: Any, members: int) -> Any:
        one = one_machine(graph, method=method, rng=seed, ties=ties, threads=members)
        return (one.mate,), (one.weight, one.rounds, one.method, one.cardinality)

    referred = one_host.referred(G, CALLER, work, threads)
    if referred is not None:
        (mate,), (weight, rounds, method, edges) = referred
        mate = mate.astype(G.index_dtype, copy=False)
        clock.lap("first rank")
        return _answer(G.vector(mate), weight, rounds, method, clock, origin, edges)
    if G.grid.layout != "stripes":
        there = G.in_stripes().on(G.engine)
        one = weighted_matching(there, method=method, seed=seed, ties=ties, threads=threads)
        G.stats[CALLER] += ", in a copy of the graph in stripes"
        mate, edges = G.adopted(one.mate), one.cardinality
        return _answer(mate, one.weight, one.rounds, one.method, clock, origin, edges)
    view = G.undirected_weights(CALLER)
    clock.lap("prepare")
    threads = G.threads if threads is None else threads
    by_hash = ties == "hash"
    shared = whole.gathered(G, CALLER, undirected_weights=view) if method == "auto" else None
    if G.grid.p == 1 and G.names is None:  # the block is the graph
        method = AUTO[G.engine] if method == "auto" else method
        mate, weight, rounds, edges = _of_one(method, G.engine, view, seed, by_hash, threads)
    elif shared is not None:
        method = AUTO[G.engine]
        mate, weight, rounds, edges = _by_first(G, shared, seed, by_hash)
    else:
        method = "dominant"
        steps = engines.load(__package__, G.engine)
        run = steps.Run(G, view, seed, by_hash, threads, stripes(G.grid))
        rest = partial(one_machine, method=method, rng=seed, ties=ties, threads=threads)
        rounds, matched = _rounds(G, run, rest)
        mate = run.mate
        weight = half_over_ranks(G.comm, run.weights)
        edges = matched // 2
    clock.lap("match")
    weight = finite(CALLER, "the weight of the matching", weight)
    return _answer(G.vector(mate), weight, rounds, method, clock, origin, edges)


def _answer(
    mate: Any, weight: float, rounds: int, method: str, clock: Stopwatch, origin: Origin, edges: int
) -> Matching:
    answer = Matching(mate, weight, rounds, method, clock.seconds, _origin=origin)
    vars(answer)["cardinality"] = edges  # reading it must not need the other ranks
    return answer


def _of_one(
    method: str, engine: str, view: Any, seed: int, by_hash: bool, threads: int | None = None
) -> tuple[Any, float, int, int]:
    """Mates, weight, rounds and edges, by the engine of one machine."""
    found = EngineMatching(*load(method, engine).match(view, seed, by_hash, threads))
    weight = settled_weight(CALLER, view, found.mate, found.weight)
    return found.mate, weight, found.rounds, int((found.mate >= 0).sum()) // 2


def _by_first(G: Any, shared: whole.Whole, seed: int, by_hash: bool) -> tuple[Any, float, int, int]:
    """As `_of_one`, for each rank's own vertices; the first rank has the whole graph."""

    def work(view: Any) -> Any:
        mate, *numbers = _of_one("auto", G.engine, view, seed, by_hash)
        return [mate], numbers

    (mate,), (weight, rounds, edges) = shared.answer(work)
    G.comm.report(rounds, 2 * edges)
    return mate.astype(G.index_dtype, copy=False), weight, rounds, edges


def _rounds(G: Any, run: Any, finish: Callable[[Any], Any]) -> tuple[int, int]:
    """Run rounds until none matches a vertex; returns their number, and the vertices matched."""
    rounds = total = late = 0
    few, look = False, LATE_ROUNDS
    candidates = run.propose()
    while True:
        matched = run.settle(run.choose(candidates, rounds + 1))
        everywhere, news = run.tell(matched, few)
        if everywhere == 0:
            return rounds, total
        rounds += 1
        total += everywhere
        few = everywhere * VERTICES_PER_MATCHED < G.n
        G.comm.report(rounds, everywhere)
        candidates = run.wake(news)
        late += few
        if few and late == look and G.engine == "cpu":
            look *= 4
            edges = _left(G, run)
            if edges is not None:
                more, matched = _finished(G, run, edges, finish)
                return rounds + more, total + matched


def _left(G: Any, run: Any) -> Any:
    """The edges between free vertices, on the first rank, where these are few; else None."""
    comm = G.comm
    if G.n > LEFT_ENTRIES or int(comm.allreduce(np.array([run.entries_left()]))[0]) > LEFT_ENTRIES:
        return None
    columns = run.edges_left()
    to_first = [int(columns[0].size)] + [0] * (comm.size - 1)
    return [comm.alltoallv(column, to_first)[0] for column in columns]


def _finished(G: Any, run: Any, edges: Any, finish: Callable[[Any], Any]) -> tuple[int, int]:
    """The rounds that are left, on the first rank, and the vertices that they match.

    The edges between free vertices, with their own numbers, are all that the rest depends on.
    """
    comm, (u, v, weights) = G.comm, edges
    pairs: list[Any] = []

    def work() -> tuple[int, int]:
        with watching(comm.look):  # who waits may fail
            one = finish((G.n, np.stack((u, v), axis=1), weights))
        low = np.flatnonzero(one.mate[u] == v)
        ends = u[low], v[low]
        pairs.extend((np.concatenate(ends), np.concatenate(ends[::-1]), np.tile(weights[low], 2)))
        return one.rounds, 2 * int(low.size)

    rounds, matched = of_first(comm, work)
    ids, mates, each = pairs or (u[:0], v[:0], weights[:0])
    run.settle_left(*G.exchange.packets(ids, mates, each))
    G.stats[CALLER] += ", the last rounds on the first"
    return rounds, matched


def stripes(grid: Any) -> tuple[Stripes, Stripes]:
    """For the ranks of this rank's column of the grid, and for those of its row, three arrays.

    The number of each rank's vertices, the local id of its first, and the step between two.
    """
    column, row = np.arange(grid.R), np.arange(grid.C, dtype=np.int64)
    base = grid.n_rows + column - (column > grid.r)
    stride = np.full(grid.R, grid.R - 1)
    base[grid.r], stride[grid.r] = grid.c, grid.C  # own vertices are in the row group
    of_columns = np.array(grid.column_counts, np.int64), base, stride
    of_rows = np.array(grid.row_counts, np.int64), row, np.full(grid.C, grid.C)
    return tuple(a.astype(np.int64) for a in of_columns), tuple(a.astype(np.int64) for a in of_rows)
