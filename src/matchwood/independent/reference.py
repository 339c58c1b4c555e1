"""Maximal independent sets by their definition, in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.independent.order import TOP_CLASS, start_of
from matchwood.primitives.hashing.reference import hash2_number, mix64_number


def choose(view: Any, method: str, seed: int, *, threads: int | None = None) -> tuple[Any, int]:
    """The members, and in how many rounds they were found."""
    indptr, indices = view.indptr.tolist(), view.indices.tolist()
    neighbours = [indices[indptr[v] : indptr[v + 1]] for v in range(view.n)]
    if method == "luby_sampling":
        return _sampled(neighbours, seed)
    order = list(range(view.n))
    if method == "luby":
        order.sort(key=_key(neighbours, seed))
    members = np.zeros(view.n, np.bool_)
    for v in order:
        members[v] = not any(members[w] for w in neighbours[v])
    return members, 1


def _key(neighbours: list[list[int]], seed: int) -> Any:
    start = start_of(seed)

    def key(v: int) -> tuple[int, int]:
        below = max(len(neighbours[v]), 1) - 1
        b = max(0, below.bit_length() - 2)
        return min(2 * b + (below >> b), TOP_CLASS), mix64_number(start ^ v)

    return key


def _sampled(neighbours: list[list[int]], seed: int) -> tuple[Any, int]:
    members = np.zeros(len(neighbours), np.bool_)
    left = set(range(len(neighbours)))
    rounds = 0
    while left:
        degree = {v: sum(w in left for w in neighbours[v]) for v in left}
        draw = {v: (hash2_number(rounds, v, seed) >> 32) * 2 * degree[v] for v in left}
        drawn = {v for v in left if draw[v] < 2**32}  # all without neighbours are
        if not drawn:
            drawn = {min(left, key=lambda v: (draw[v], v))}
        joining = {
            v
            for v in drawn
            if all(w not in drawn or (degree[w], w) < (degree[v], v) for w in neighbours[v])
        }
        for v in joining:
            members[v] = True
            left.difference_update(neighbours[v])
        left -= joining
        rounds += 1
    return members, rounds
