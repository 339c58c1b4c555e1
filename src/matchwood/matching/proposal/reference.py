"""Maximal matching by its definition: plain loops.  The rule: __init__.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np

from matchwood.matching.proposal import MOST_DEGREE
from matchwood.primitives.edge_order.reference import edge_key
from matchwood.primitives.hashing import round_number
from matchwood.primitives.hashing.reference import hash2_number, quarter_md5_number

Answer = tuple[Any, float, list[int]]


class Neighbourhoods:
    """Neighbours and weights of a view, and the ways to choose among them."""

    def __init__(self, view: Any, seed: int, prefer: str) -> None:
        ends = view.indptr.tolist()
        self.n = view.n
        self.seed = seed
        self.weighted = view.data is not None
        self.rows = [view.indices[a:b].tolist() for a, b in pairwise(ends)]
        self.prefer = prefer
        data = view.data if self.weighted else np.ones(view.nnz)
        self.weights = [
            dict(zip(row, data[a:b].tolist(), strict=True))
            for row, (a, b) in zip(self.rows, pairwise(ends), strict=True)
        ]

    def from_random_place(self, v: int, k: int) -> list[int]:
        """The neighbours of v from its place in round k on, then those before it."""
        row = self.rows[v]
        place = (hash2_number(k, v, self.seed) >> 32) * len(row) >> 32
        return row[place:] + row[:place]

    def order_key(self, v: int) -> tuple[int, int, int]:
        """The key that vertices are ordered by; see __init__.py."""
        degree = min(len(self.rows[v]), MOST_DEGREE) if self.prefer == "degree" else 0
        return degree, hash2_number(v, 1, self.seed) >> 32, v

    def accept(self, u: int, proposers: list[int]) -> int | None:
        if self.weighted:
            return self.first_edge(u, proposers)
        return min(proposers, key=None if self.prefer == "random" else self.order_key)

    def first_edge(self, v: int, among: Iterable[int]) -> int | None:
        """The neighbour at the other end of v's first edge in the order of edges."""
        return min(among, key=lambda u: edge_key(self.weights[v][u], v, u, self.seed), default=None)

    def select(self, v: int, k: int, wanted: Callable[[int], bool]) -> int | None:
        """`select` of the paper, among the neighbours that are wanted."""
        if self.weighted:
            return self.first_edge(v, filter(wanted, self.rows[v]))
        if self.prefer != "random":
            return min(filter(wanted, self.rows[v]), key=self.order_key, default=None)
        return next(filter(wanted, self.from_random_place(v, k)), None)

    def weight(self, mate: list[int]) -> float:
        return sum(self.weights[v][u] for v, u in enumerate(mate) if u > v)


def match(
    view: Any, method: str, seed: int, threshold: int, prefer: str = "random", *,
    threads: int | None = None,
) -> Answer:  # fmt: skip
    rows = Neighbourhoods(view, seed, prefer)
    mate = [-1] * rows.n
    matched = _propose(rows, mate, threshold) if method == "proposal" else _serial(rows, mate)
    return np.array(mate, view.indptr.dtype), float(rows.weight(mate)), matched


def _serial(rows: Neighbourhoods, mate: list[int]) -> list[int]:
    for v in sorted(range(rows.n), key=lambda v: (hash2_number(v, 0, rows.seed), v)):
        if mate[v] < 0:
            u = rows.select(v, 0, lambda u: mate[u] < 0)
            if u is not None:
                mate[v], mate[u] = u, v
    return []


def _propose(rows: Neighbourhoods, mate: list[int], threshold: int) -> list[int]:
    """Algorithm 3; returns the number of vertices matched after each round."""
    live = {v for v in range(rows.n) if rows.rows[v]}
    matched: list[int] = []
    coloured = True
    while live:
        k = len(matched)
        if coloured:
            r = round_number(rows.seed, k)
            blue = {v for v in live if quarter_md5_number(v, r) < threshold}
            pairs, dead = _coloured_round(rows, k, live, blue)
        else:
            pairs, dead = _uncoloured_round(rows, live)
        for v, u in pairs:
            mate[v], mate[u] = u, v
            live -= {v, u}
        live -= dead
        matched.append(rows.n - mate.count(-1))
        coloured = bool(pairs) or not coloured
    return matched


def _coloured_round(
    rows: Neighbourhoods, k: int, live: set[int], blue: set[int]
) -> tuple[list[tuple[int, int]], set[int]]:
    red = live - blue
    proposers: dict[int, list[int]] = {}
    for v in sorted(blue):
        u = rows.select(v, k, red.__contains__)
        if u is not None:
            proposers.setdefault(u, []).append(v)
    dead = {v for v in blue if live.isdisjoint(rows.rows[v])}
    accepted = [(u, rows.accept(u, suitors)) for u, suitors in proposers.items()]
    return [(u, v) for u, v in accepted if v is not None], dead


def _uncoloured_round(
    rows: Neighbourhoods, live: set[int]
) -> tuple[list[tuple[int, int]], set[int]]:
    points_at = {v: rows.first_edge(v, live.intersection(rows.rows[v])) for v in live}
    dead = {v for v, u in points_at.items() if u is None}
    pairs = [(v, u) for v, u in points_at.items() if u is not None and v < u and points_at[u] == v]
    return pairs, dead
