"""Maximal matching on the GPU, graph resident: time of a whole call.

``python -m bench.matching.proposal_gpu [--json FILE]``.  Answers are checked on the device, for the
whole graph: mates are mutual neighbours, and no edge has two free ends.
"""

from __future__ import annotations

import functools
from typing import Any

import matchwood
from bench import harness
from bench.harness.gpu import graphs, made, row_of_entries, timed
from matchwood import engines
from matchwood.matching import maximal_matching
from matchwood.matching.proposal import gpu as engine
from matchwood.primitives.hashing import bit_barrier

BAR_MS = 5.0  # one H200, method "proposal", random choices
BAR_BYTES = 24  # a vertex, besides the graph


def check(G: Any, found: Any) -> None:
    """Raise where `found` is no maximal matching of a symmetric graph."""
    cupy = engines.cupy()
    view, mate = G.undirected_pattern(), found.mate
    ends = cupy.flatnonzero(mate >= 0)
    assert bool((mate[mate[ends]] == ends).all()), "a mate is not mutual"
    u = row_of_entries(view)
    assert int((mate[u] == view.indices).sum()) == ends.size, "mates that are no neighbours"
    assert not bool(((mate[u] < 0) & (mate[view.indices] < 0)).any()), "an edge can be added"


def bytes_per_vertex(G: Any) -> float:
    """Taken by a call, its result included."""
    cupy = engines.cupy()
    view = G.undirected_pattern()
    pool = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(pool.malloc):
        engine.match(view, "proposal", 0, bit_barrier(0.5))
        return float(pool.total_bytes() / G.n)


def run() -> list[harness.Result]:
    results: list[harness.Result] = []
    for name, A in made(graphs()):
        rows: dict[str, Any] = {}
        for label, weighted in (("random", False), ("heaviest", True)):
            G = matchwood.graph(matchwood.generators.random_weights(A, rng=1) if weighted else A)
            found = maximal_matching(G, weighted=weighted)
            check(G, found)
            share = 2 * found.cardinality / G.n
            more = {} if weighted else {"bytes_per_vertex": bytes_per_vertex(G)}
            note = f"{found.rounds} rounds, {share:.3f} of the vertices matched"
            if more:
                note += f"; {more['bytes_per_vertex']:.1f} bytes a vertex (bar {BAR_BYTES})"
            rows[label] = timed(
                f"{name}, {label}", functools.partial(maximal_matching, G, weighted=weighted),
                None if weighted else BAR_MS,
                note=note, rounds=found.rounds, matched=found.matched_by_round, **more,
            )  # fmt: skip
            del G, found
        results.append({"title": f"maximal matching, {name}", "rows": rows})
        del A
    return results


if __name__ == "__main__":
    harness.main(run)
