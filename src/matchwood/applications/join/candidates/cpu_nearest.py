"""How similar each element can be to any other element: a bound, found from its rarest tokens.

An element that shares none of the first i tokens of e (rarest first) shares at most the others, so
its similarity is at most (tokens left) / (tokens of e).  One that was met with s shared tokens has
at most s and all that are left.  Tokens are taken until nothing is gained any more, or until too
many elements were met: then the bound is what it is.

Elements of records that are not equal cannot weigh more than these bounds.  That is the nearest
neighbour filter of SilkMoth, worked out once for a dictionary instead of for each pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, crew, device, interrupted, kernel, share

VISITS_PER_TOKEN = 64  # elements met for each token of an element, at most
GOOD = 0.25  # bounds at or below this are not made better


@device
def _best_of(met: Any, count: int, shared: Any, counts: Any, mine: int, left: int) -> float:
    """The largest similarity that any element met so far can have."""
    best = 0.0
    for i in range(count):
        other = counts[met[i]]
        most = min(shared[met[i]] + left, min(mine, other))
        best = max(best, most / (mine + other - most))
    return best


@kernel
def _bound_nearest(
    team: Team,
    starts: Any,
    tokens: Any,
    holder_starts: Any,
    holders: Any,
    counts: Any,
    all_shared: Any,
    all_met: Any,
    nearest: Any,
) -> None:
    shared, met = all_shared[team.rank], all_met[team.rank]
    lo, hi = share(team, counts.size)
    for e in range(lo, hi):
        if interrupted(team, e):
            return
        mine = counts[e]
        count = 0
        visits = np.int64(0)
        left = mine
        for i in range(starts[e], starts[e + 1]):
            token = tokens[i]
            a, b = holder_starts[token], holder_starts[token + 1]
            visits += b - a
            if visits > VISITS_PER_TOKEN * mine or left <= GOOD * mine:
                break
            for j in range(a, b):
                other = holders[j]
                if other == e:
                    continue
                if shared[other] == 0:
                    met[count] = other
                    count += 1
                shared[other] += 1
            left -= 1
        best = _best_of(met, count, shared, counts, mine, left)
        nearest[e] = max(best, left / mine if mine > 0 else 0.0)
        for i in range(count):
            shared[met[i]] = 0


def nearest(tokens: Any, threads: int | None = None) -> np.ndarray:
    """A bound for each element, float64; at most 1."""
    counts = np.diff(tokens.starts)
    found = np.empty(counts.size)
    team = crew(threads, work=4 * tokens.tokens.size)
    team.run(
        _bound_nearest, tokens.starts, tokens.tokens, tokens.holder_starts, tokens.holders, counts,
        np.zeros((team.size, counts.size), np.int32), np.empty((team.size, counts.size), np.int32),
        found,
    )  # fmt: skip
    return np.minimum(found, 1.0)
