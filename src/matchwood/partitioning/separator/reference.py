"""The method of vertex_separator in plain Python: lists, and the least of all candidates each time.

Read it as the definition: cpu.py has the constants, and says what each step is for.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from matchwood.partitioning.separator import Pieces
from matchwood.partitioning.separator.cpu import (
    ATTEMPTS,
    COARSEST,
    GROWN,
    HEAVIEST,
    KEPT,
    LEAST_PATIENCE,
    LEVELS,
    MIDDLE,
    MOST_PATIENCE,
    PATIENCE,
    ROOM,
    SWEEPS,
    UNMATCHED,
)
from matchwood.primitives.hashing.reference import hash2_number as hash2

Rows = list[dict[int, int]]  # of each vertex: neighbour -> weight of the edge, in a fixed order
Cost = tuple[int, int, int]  # excess, weight of the separator, difference of the sides


class Level:
    """A graph, its vertex weights, and the vertex of the next level for each."""

    def __init__(self, rows: Rows, weight: list[int]) -> None:
        self.rows, self.weight = rows, weight
        self.coarse: list[int] = []

    @property
    def n(self) -> int:
        return len(self.weight)

    @property
    def entries(self) -> int:
        return sum(map(len, self.rows))


def _matched(g: Level, heaviest: int, seed: int) -> list[int]:
    """The mate of each vertex, -1 where there is none."""
    order, mate = [0] * g.n, [-1] * g.n
    for v in range(g.n):
        j = hash2(v, g.n, seed) % (v + 1)
        order[v], order[j] = order[j], v
    for v in order:
        if mate[v] < 0:
            free = [u for u in g.rows[v] if mate[u] < 0 and g.weight[v] + g.weight[u] <= heaviest]
            if free:
                u = max(free, key=g.rows[v].__getitem__)  # the first of the heaviest
                mate[v], mate[u] = u, v
    if UNMATCHED * mate.count(-1) > g.n:
        waiting: dict[int, int] = {}
        for v in range(g.n):
            if mate[v] >= 0:
                continue
            hub = max(g.rows[v], key=g.rows[v].__getitem__) if g.rows[v] else g.n
            u = waiting.pop(hub, -1)
            if u >= 0 and g.weight[u] + g.weight[v] <= heaviest:
                mate[u], mate[v] = v, u
            else:
                waiting[hub] = v
    return mate


def _contracted(g: Level, mate: list[int]) -> Level:
    """The next level: pairs are numbered by their smaller vertices."""
    g.coarse, weight = [0] * g.n, []
    groups = [(v,) if mate[v] < 0 else (v, mate[v]) for v in range(g.n) if not 0 <= mate[v] < v]
    for c, group in enumerate(groups):
        weight.append(sum(g.weight[v] for v in group))
        for v in group:
            g.coarse[v] = c
    rows: Rows = [{} for _ in groups]
    for c, group in enumerate(groups):
        for v in group:
            for u, w in g.rows[v].items():
                if g.coarse[u] != c:
                    rows[c][g.coarse[u]] = rows[c].get(g.coarse[u], 0) + w
    return Level(rows, weight)


def _coarsen(levels: list[Level], until: int, heaviest: int, seed: int) -> None:
    while levels[-1].n > until and len(levels) < LEVELS:
        g = levels[-1]
        mate = _matched(g, heaviest, seed + len(levels) - 1)
        after = _contracted(g, mate)
        if after.n > KEPT * g.n:
            return
        for count in ("n", "entries"):
            used = sum(getattr(level, count) for level in (*levels, after))
            if used > ROOM * getattr(levels[0], count) + ROOM:
                return
        levels.append(after)


def _cost(g: Level, side: list[int], limit: int) -> Cost:
    weights = [sum(w for w, s in zip(g.weight, side, strict=True) if s == k) for k in range(3)]
    return max(0, *(w - limit for w in weights[:2])), weights[2], abs(weights[0] - weights[1])


def _move(g: Level, side: list[int], v: int, to: int) -> None:
    side[v] = to
    for u in g.rows[v]:
        if side[u] == 1 - to:
            side[u] = 2


def _next(g: Level, side: list[int], to: int) -> int:
    """The vertex of the separator whose move adds least to its weight, the smallest of equal."""

    def added(v: int) -> int:
        return sum(g.weight[u] for u in g.rows[v] if side[u] == 1 - to) - g.weight[v]

    return min((v for v in range(g.n) if side[v] == 2), key=lambda v: (added(v), v))


def _weight(g: Level, side: list[int], which: int) -> int:
    return sum(g.weight[v] for v in range(g.n) if side[v] == which)


def _grown(g: Level, seed: int) -> list[int]:
    side = [1] * g.n
    first = hash2(g.n, 0, seed) % g.n
    while _weight(g, side, 0) < _weight(g, side, 1):
        if 2 in side:
            _move(g, side, _next(g, side, 0), 0)
        else:
            side[next(v % g.n for v in range(first, first + g.n) if side[v % g.n] == 1)] = 2
    return side


def _swept(g: Level, side: list[int], limit: int, to: int) -> list[int]:
    patience = min(max(PATIENCE * side.count(2), LEAST_PATIENCE), MOST_PATIENCE)
    now, kept, best, since = side[:], side, _cost(g, side, limit), 0
    while since < patience and 2 in now:
        v = _next(g, now, to)
        if _weight(g, now, to) + g.weight[v] > limit:
            break
        _move(g, now, v, to)
        since += 1
        cost = _cost(g, now, limit)
        if cost < best:
            kept, best, since = now[:], cost, 0
    return kept


def _refined(g: Level, side: list[int], limit: int) -> list[int]:
    to = 0 if _weight(g, side, 0) <= _weight(g, side, 1) else 1
    failed = 0
    for _ in range(SWEEPS):
        if failed == 2:
            break
        after = _swept(g, side, limit, to)
        failed = failed + 1 if after is side else 0
        side, to = after, 1 - to
    return side


def _climbed(levels: list[Level], side: list[int], to: int, limit: int) -> list[int]:
    side = _refined(levels[-1], side, limit)
    for g in reversed(levels[to:-1]):
        side = _refined(g, [side[c] for c in g.coarse], limit)
    return side


def _separated(piece: Level, limit: int, seed: int) -> list[int]:
    heaviest = max(1, int(HEAVIEST * sum(piece.weight) / COARSEST))
    levels = [piece]
    _coarsen(levels, max(COARSEST, piece.n // MIDDLE), heaviest, seed)
    middle = len(levels)
    found = []
    for attempt in range(ATTEMPTS):
        key = hash2(attempt, middle - 1, seed)
        del levels[middle:]
        _coarsen(levels, COARSEST, heaviest, key)
        g = levels[-1]
        regions = [_grown(g, hash2(start, len(levels) - 1, key)) for start in range(GROWN)]
        sides = [_refined(g, side, limit) for side in regions]
        best = min(sides, key=lambda side: _cost(g, side, limit))
        found.append(_climbed(levels, best, middle - 1, limit))
    best = min(found, key=lambda side: _cost(levels[middle - 1], side, limit))
    return _climbed(levels[:middle], best, 0, limit)


def separate(pieces: Pieces, start: Any, tries: int, threads: int | None = None) -> tuple[Any, Any]:
    n, begins = pieces.weight.size, pieces.begins.tolist()
    count = len(begins) - 1
    side, costs = np.zeros((tries, n), np.int8), np.zeros((tries, count, 3), np.int64)
    for k in range(count):
        low, high = begins[k], begins[k + 1]
        ends = pieces.indptr[low : high + 1].tolist()
        rows = [dict.fromkeys((pieces.indices[a:b] - low).tolist(), 1) for a, b in pairwise(ends)]
        limit = int(pieces.limits[k])
        for attempt in range(tries):
            g = Level(rows, pieces.weight[low:high].tolist())
            if start.size:
                found = _refined(g, start[low:high].tolist(), limit)
            else:
                found = _separated(g, limit, hash2(attempt, g.n, int(pieces.seeds[k])))
            side[attempt, low:high] = found
            costs[attempt, k] = _cost(g, found, limit)
    return side, costs
