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

Where the ranks share a GPU and no method was asked for, the first of them finds the matching for
all, by the fastest method of one machine (gate/distributed).

The rounds are those of dominant/cpu.py, and so is the order of edges: it compares the user's
numbers of vertices, which do not depend on the grid.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.engines.ranks.agreement import same
from matchwood.errors import EngineUnavailable
from matchwood.gate.distributed import whole
from matchwood.matching.methods import AUTO, EngineMatching, Origin, load, settled_weight
from matchwood.matching.result import Matching
from matchwood.primitives.wide_sums import finite, half_over_ranks
from matchwood.stopwatch import Stopwatch

CALLER = "weighted_matching"
METHODS = ("auto", "dominant")
Stripes = tuple[Any, ...]
VERTICES_PER_MATCHED = 64  # few are matched when a round matches fewer than n / this


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
    if G.grid.layout != "stripes":
        raise EngineUnavailable(f"{CALLER}: needs the layout 'stripes', got {G.grid.layout!r}")
    clock = Stopwatch()
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
        rounds, matched = _rounds(G, run)
        mate = run.mate
        weight = half_over_ranks(G.comm, run.weights)
        edges = matched // 2
    clock.lap("match")
    weight = finite(CALLER, "the weight of the matching", weight)
    origin = Origin(G, seed=seed, ties=ties)
    answer = Matching(G.vector(mate), weight, rounds, method, clock.seconds, _origin=origin)
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


def _rounds(G: Any, run: Any) -> tuple[int, int]:
    """Run rounds until none matches a vertex; returns their number, and the vertices matched."""
    rounds = total = 0
    few = False
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
