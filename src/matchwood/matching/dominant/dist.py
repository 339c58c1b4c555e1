"""Locally dominant matching on a grid of ranks.  The rule and the papers: matching/weighted.py.

A round, on every rank:

    propose   each row of the block that needs one finds its candidate: its first edge of the block
              to a free column.  Candidates go to the owners of the rows (ranks of one row)
    choose    owners point along the first of a vertex's candidates.  "I point at you" goes to the
              owner of the vertex pointed at (all ranks)
    settle    vertices that point at each other are matched, any other waits
    wake      matched vertices are told to the ranks that have them as columns or as rows.  Rows
              that waited for one of them propose again

Only what has changed is sent: a candidate when the one before was matched, a pointer when it
differs from the one before.  The ranks tell matched vertices as a list of places, or as a bitmap
where that is shorter.  What a rank does in a step: spread/cpu.py, or spread/gpu.py where the blocks
lie on GPUs.

The rounds are those of cpu.py, and so is the order of edges: it compares the user's numbers of
vertices, which do not depend on the grid.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import engines
from matchwood.dist.agreement import same
from matchwood.errors import EngineUnavailable
from matchwood.matching.mates import settled_weight
from matchwood.matching.methods import AUTO, Found, Origin, load
from matchwood.matching.result import Matching
from matchwood.primitives.wide_sums import finite, half_over_ranks
from matchwood.stopwatch import Stopwatch

CALLER = "weighted_matching"
METHODS = ("auto", "dominant")


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
    if G.grid.p == 1 and G.names is None:  # the block is the graph
        method = AUTO[G.engine] if method == "auto" else method
        found = Found(*load(method, G.engine).match(view, seed, ties == "hash", threads))
        mate, rounds = found.mate, found.rounds
        weight = settled_weight(CALLER, view, mate, found.weight)
        matched = int((mate >= 0).sum())
    else:
        method = "dominant"
        run = steps_of(G).Run(G, view, seed, ties == "hash", threads)
        rounds, matched = _rounds(G.comm, run)
        mate = run.mate
        weight = half_over_ranks(G.comm, run.weights)
    clock.lap("match")
    weight = finite(CALLER, "the weight of the matching", weight)
    origin = Origin(G, seed=seed, ties=ties)
    answer = Matching(G.vector(mate), weight, rounds, method, clock.seconds, _origin=origin)
    vars(answer)["cardinality"] = matched // 2  # reading it must not need the other ranks
    return answer


def steps_of(G: Any) -> Any:
    """The steps of a round for the engine on which the blocks of G lie."""
    return engines.load(f"{__package__}.spread", G.engine)


def _rounds(comm: Any, run: Any) -> tuple[int, int]:
    """Rounds until none matches a vertex; how many did, and the vertices matched on all ranks."""
    rounds = total = 0
    candidates = run.propose()
    while True:
        told, matched = run.settle(run.choose(candidates, rounds + 1))
        everywhere = int(comm.allreduce(np.array([matched], np.int64))[0])
        if everywhere == 0:
            return rounds, total
        rounds += 1
        total += everywhere
        comm.report(rounds, everywhere)
        candidates = run.wake(told)
