"""Is this the matching that the random order of vertices gives?  Decided pair by pair.

The earlier vertex of a pair, in the order of vertices, chose the other.  At that time the free
vertices were those of pairs made later, and those that never found a mate.  The choice is right
when no edge to one of them comes before the chosen edge in the order of edges.  A vertex without a
mate is right when no neighbour is free at its turn.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.arguments import one_of
from matchwood.arguments import seed as seed_of
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.matching.check import check_matching, comes_before
from matchwood.matching.methods import checked_mates
from matchwood.primitives.hashing import hash2


def check_random_weighted(A: Any, answer: Any, *, rng: Any = 0, ties: str = "hash") -> None:
    """Raise `CheckFailed` unless `answer` is ``weighted_matching(A, method="random_weighted")``."""
    caller = "check_random_weighted"
    one_of(caller, "ties", ties, ("hash", "index"))
    seed = seed_of(caller, rng)
    G = csr.as_graph(A, caller).on("cpu")
    check_matching(G, answer, weighted=True)
    view = G.undirected_weights(caller)
    mate, u, used = checked_mates(view, answer, caller, "matching")
    n, v = view.n, view.indices.astype(np.int64)
    own = np.zeros(n)
    own[u[used]] = view.data[used]
    vertices = np.arange(n)
    turn = np.empty(n, np.int64)
    turn[np.lexsort((vertices, hash2(vertices, 0 * vertices, seed, engine="reference")))] = vertices
    made = np.where(mate >= 0, np.minimum(turn, turn[mate]), n) if n else turn
    chooses = (mate < 0) | (made == turn)
    open_ = np.flatnonzero(chooses[u] & (mate[u] != v) & (made[v] >= turn[u]))
    u, v, w = u[open_], v[open_], view.data[open_]
    better = (mate[u] < 0) | (w > own[u])
    tied = np.flatnonzero((mate[u] >= 0) & (w == own[u]))
    a, b = u[tied], v[tied]
    better[tied] = comes_before(a, b, a, mate[a], seed, ties == "hash")
    if better.any():
        k = int(better.argmax())
        raise CheckFailed(f"matching: vertex {u[k]} should have taken {v[k]}, not {mate[u[k]]}")
