"""One try of a bisection: the definition, in plain Python.  What is done is said in __init__.py."""

from __future__ import annotations

from typing import Any

from matchwood.partitioning.bisection.cpu import (
    LEVELS,
    PASSES,
    PATIENCE,
    PATIENT_PART,
    REGIONS,
    ROOM,
    SMALLEST,
    STALLED,
)
from matchwood.primitives.hashing.reference import hash2_number, mix64_number

WORD = 2**64


class _Graph:
    """Rows as dictionaries {neighbour: weight}; the order in which neighbours came counts."""

    def __init__(self, rows: list[dict[int, int]], weights: list[int], fixed: list[int]) -> None:
        self.rows, self.weights, self.fixed = rows, weights, fixed
        self.n = len(rows)

    def may_join(self, u: int, v: int, limit: int) -> bool:
        return self.fixed[u] == self.fixed[v] and self.weights[u] + self.weights[v] <= limit


def _hashes(n: int, seed: int) -> list[int]:
    return [mix64_number((seed + v) % WORD) % 2**32 for v in range(n)]


def _paired(g: _Graph, limit: int, seed: int) -> list[int]:
    """The vertex that each is merged with, itself where there is none."""
    edges = [
        (-w, hash2_number(u, v, seed), u, v)
        for u in range(g.n)
        for v, w in g.rows[u].items()
        if u < v and g.may_join(u, v, limit)
    ]
    mate = [-1] * g.n
    for _, _, u, v in sorted(edges):
        if mate[u] < 0 and mate[v] < 0:
            mate[u], mate[v] = v, u
    order = list(range(g.n))
    for i in range(g.n - 1, 0, -1):
        j = mix64_number((seed + i) % WORD) % (i + 1)
        order[i], order[j] = order[j], order[i]
    waiting: dict[int, int] = {}  # by heaviest neighbour, -1 for those without one
    for v in order:
        if mate[v] >= 0:
            continue
        hub = min(g.rows[v], key=lambda u: (-g.rows[v][u], u)) if g.rows[v] else -1
        other = waiting.pop(hub, -1)
        if other >= 0 and g.may_join(other, v, limit):
            mate[v], mate[other] = other, v
        else:
            waiting[hub] = v
    return [v if mate[v] < 0 else mate[v] for v in range(g.n)]


def _merged(g: _Graph, mate: list[int]) -> tuple[_Graph, list[int]]:
    """The graph of the pairs, numbered by their smaller vertices, and the number of each vertex."""
    first = [v for v in range(g.n) if mate[v] >= v]
    number = [0] * g.n
    for c, v in enumerate(first):
        number[v] = number[mate[v]] = c
    rows: list[dict[int, int]] = []
    for c, v in enumerate(first):
        row: dict[int, int] = {}
        for x in dict.fromkeys((v, mate[v])):
            for u, w in g.rows[x].items():
                if number[u] != c:
                    row[number[u]] = row.get(number[u], 0) + w
        rows.append(row)
    weights = [sum(g.weights[x] for x in {v, mate[v]}) for v in first]
    return _Graph(rows, weights, [g.fixed[v] for v in first]), number


def _region(g: _Graph, target: int, limit: int, seed: int) -> list[int]:
    """Sides after a region, side 0, has grown to its target."""
    n, start, hashes = g.n, seed % g.n, _hashes(g.n, seed)
    gain = [-sum(row.values()) for row in g.rows]
    asked = {v for v in range(n) if g.fixed[v] == 0}  # what must be in the region comes first
    left = {v for v in range(n) if g.fixed[v] < 0}
    for v in asked:
        gain[v] = 1 << 60
    side, weight = [1] * n, 0
    while True:
        top = max(asked, key=lambda v: (gain[v], hashes[v], -v), default=None)
        if weight >= target and (top is None or g.fixed[top] != 0):
            return side
        if top is None:
            if not left:
                return side
            top = min(left, key=lambda v: (v - start) % n)
            left.discard(top)
        asked.discard(top)
        if g.fixed[top] != 0 and weight + g.weights[top] > limit:
            continue
        side[top] = 0
        weight += g.weights[top]
        for u, w in g.rows[top].items():
            if u in left:
                left.discard(u)
                asked.add(u)
            if u in asked:
                gain[u] += 2 * w


def _sides(g: _Graph, side: list[int]) -> list[int]:
    return [sum(w for w, s in zip(g.weights, side, strict=True) if s == k) for k in (0, 1)]


def _scored(g: _Graph, side: list[int], limits: list[int]) -> tuple[int, int]:
    over = (max(w - limit, 0) for w, limit in zip(_sides(g, side), limits, strict=True))
    cut = sum(w for v in range(g.n) for u, w in g.rows[v].items() if side[u] != side[v]) // 2
    return sum(over), cut


def _passed(g: _Graph, side: list[int], limits: list[int], hashes: list[int]) -> tuple[int, int]:
    """One pass of moves, and back to the best state, in place; its (excess, cut)."""
    weight = _sides(g, side)
    heavy = next((k for k in (0, 1) if weight[k] > limits[k]), -1)
    gain = [sum(w if side[u] != side[v] else -w for u, w in g.rows[v].items()) for v in range(g.n)]
    free = {v for v in range(g.n) if g.fixed[v] < 0}
    across = {v for v in free if any(w > 0 and side[u] != side[v] for u, w in g.rows[v].items())}
    asked = across | {v for v in free if side[v] == heavy}
    slack = max(g.weights, default=0)
    state = best_state = _scored(g, side, limits)
    log: list[int] = []
    best, patience = 0, max(PATIENCE, g.n // PATIENT_PART)

    def first(v: int) -> tuple[int, int, int]:
        return gain[v], hashes[v], -v

    while len(log) - best < patience:
        over = [k for k in (0, 1) if weight[k] > limits[k]]
        candidates = [v for v in asked if not over or side[v] == over[0]]
        if not candidates:
            break
        v = max(candidates, key=first)
        own, w = side[v], g.weights[v]
        asked.discard(v)
        free.discard(v)
        there, after = weight[1 - own] + w - limits[1 - own], weight[own] - limits[own]
        if there > slack and not (after > 0 and there < after):
            continue
        side[v] = 1 - own
        weight[own] -= w
        weight[1 - own] += w
        log.append(v)
        for u, tied in g.rows[v].items():
            if u in free:
                asked.add(u)
                gain[u] += 2 * tied if side[u] == own else -2 * tied
        state = _scored(g, side, limits)
        if state < best_state:
            best_state, best = state, len(log)
    for v in log[best:]:
        side[v] = 1 - side[v]
    return best_state


def _refined(g: _Graph, side: list[int], limits: list[int], seed: int) -> tuple[int, int]:
    hashes, score = _hashes(g.n, seed), (0, 0)
    for _ in range(PASSES):
        before = _scored(g, side, limits)
        score = _passed(g, side, limits, hashes)
        if score >= before:
            break
    return score


def _tried(g: _Graph, limits: list[int], target: int, given: int, t: int) -> Any:
    """One try: the sides, and (excess, cut)."""
    seed = hash2_number(t, 0, given)
    heaviest = max(5 * sum(g.weights) // (2 * SMALLEST), 1)
    entries = [sum(map(len, g.rows))]
    graphs, maps = [g], list[list[int]]()
    most = ROOM * g.n + 2 * LEVELS, ROOM * entries[0] + 1  # vertices and entries of all levels
    while graphs[-1].n > SMALLEST and len(maps) < LEVELS - 1:
        fine = graphs[-1]
        mate = _paired(fine, heaviest, hash2_number(t, len(maps), given))
        coarse, number = _merged(fine, mate)
        vertices = sum(level.n + 1 for level in graphs)
        if vertices + fine.n + 1 > most[0] or sum(entries) + entries[-1] > most[1]:
            break
        if 100 * coarse.n > STALLED * fine.n:
            break
        graphs.append(coarse)
        maps.append(number)
        entries.append(sum(map(len, coarse.rows)))
    top = graphs[-1]
    best: Any = None
    for r in range(REGIONS):
        grown = hash2_number(r, 1, seed)
        side = _region(top, target, limits[0], grown)
        score = _refined(top, side, limits, grown)
        if best is None or score < best[0]:
            best = score, side
    score, side = best
    for level in range(len(maps) - 1, -1, -1):
        side = [side[c] for c in maps[level]]
        score = _refined(graphs[level], side, limits, hash2_number(t, level, seed))
    return side, score


def bisect(batch: Any, tries: int) -> tuple[Any, Any]:
    """See cpu.bisect: sides (tries, vertices) and scores (graphs, tries, 2)."""
    import numpy as np

    sides = np.zeros((tries, batch.weights.size), np.uint8)
    scores = np.zeros((batch.targets.size, tries, 2), np.int64)
    for b, (begin, end) in enumerate(zip(batch.begins[:-1], batch.begins[1:], strict=True)):
        rows = [
            {
                int(batch.indices[k] - begin): int(batch.data[k])
                for k in range(batch.indptr[v], batch.indptr[v + 1])
            }
            for v in range(begin, end)
        ]
        weights, fixed = (array[begin:end].tolist() for array in (batch.weights, batch.fixed))
        if not rows:
            continue
        for t in range(tries):
            found = _tried(
                _Graph(rows, weights, fixed), batch.limits[b].tolist(), int(batch.targets[b]),
                int(batch.seeds[b]), t,
            )  # fmt: skip
            sides[t, begin:end], scores[b, t] = found
    return sides, scores
