"""Is this the matching that vertices make in their random order?  Decided pair by pair.

Whoever of a pair comes first in the order chose the other.  At that time all vertices were free
whose pair was made later, and those that never found a mate.  So the choice is right when the
chooser has no edge, before its own in the order of edges, to one of them; and a vertex without a
mate is right when no neighbour is free when its turn comes.
"""

from __future__ import annotations

from typing import Any

from matchwood import csr, engines
from matchwood.errors import CheckFailed
from matchwood.matching.check import check_matching
from matchwood.matching.mates import mates_of
from matchwood.primitives.edge_order.reference import edge_key
from matchwood.primitives.hashing.reference import hash2_number


def check_random_weighted(A: Any, answer: Any, *, seed: int = 0, ties: str = "hash") -> None:
    """Raise `CheckFailed` unless `answer` is ``weighted_matching(A, method="random_weighted")``."""
    check_matching(A, answer, weighted=True)
    view = csr.as_graph(A, "check_random_weighted").on("cpu").undirected_weights()
    mate = engines.moved(mates_of("check_random_weighted", answer), "cpu").tolist()
    n, by_hash = view.n, ties == "hash"
    turn = [(hash2_number(v, 0, seed), v) for v in range(n)]
    made = [min(turn[v], turn[mate[v]]) if mate[v] >= 0 else (1 << 64, v) for v in range(n)]
    for u in range(n):
        if mate[u] >= 0 and made[u] != turn[u]:
            continue  # was chosen
        row = slice(int(view.indptr[u]), int(view.indptr[u + 1]))
        edges = list(zip(view.indices[row].tolist(), view.data[row].tolist(), strict=True))
        own = [edge_key(w, u, v, seed, by_hash) for v, w in edges if v == mate[u]]
        for v, w in edges:
            if v == mate[u] or made[v] < turn[u]:
                continue
            if not own or edge_key(w, u, v, seed, by_hash) < own[0]:
                raise CheckFailed(f"matching: vertex {u} should have taken {v}, not {mate[u]}")
