"""Refining a partition: the definition, in plain Python.

A state is better than another by (excess, cut); of equal ones the earlier is kept.  The excess is
the weight above the limits of all blocks.

Jet.  For each temperature c, iterations until `patience` of them in a row have not lowered the
excess, nor the cut by more than 0.1 %; then back to the best state.  After a temperature that has
brought nothing at all the last one follows at once, and as long as nothing was found on a level
half the patience is enough.  In an iteration

1. a vertex would like to move to the block that it is tied to most but for its own (equal ones:
   the smaller hash), if it did not move in the iteration before, and the gain, the weight to that
   block less the weight inside, is not negative or -gain < floor(c inside);
2. its gain is counted anew, as if all neighbours that would like to move and have (a larger gain, a
   smaller number) had moved; who has at least 0 moves, all at once;
3. blocks that are too heavy are rebalanced.

Rebalancing, up to `rounds` times.  The vertices of heavy blocks that are tied to a block with room
(up to its ceiling) are sorted by (gain times weight if that is positive, else gain / weight, in
double precision; smaller vertex).  Each goes to the block that it is tied to most among those, if
those before it do not mend its own block; a block that has no room for one takes no more in this
round.  Where the weight of these vertices does not mend a block, its other vertices follow, each to
the first block with room from a hashed one on.

In the end, where something is left, one vertex after the other moves that lowers the excess most.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.partitioning.kway.task import Level, Plan
from matchwood.primitives.hashing.reference import hash2_number, mix64_number

GOLDEN = 0x9E3779B97F4A7C15


class _State:
    """A partition of a level, and what is asked of it again and again."""

    def __init__(self, level: Level, labels: list[int], limits: Any) -> None:
        n = level.n
        rows = [range(int(level.indptr[v]), int(level.indptr[v + 1])) for v in range(n)]
        self.near = [[int(level.indices[i]) for i in row] for row in rows]
        self.tied = [[1 if level.data is None else int(level.data[i]) for i in row] for row in rows]
        self.n, self.labels = n, labels
        self.weights = [int(w) for w in level.weights]
        self.limits = [int(limit) for limit in limits]
        self.blocks = [0] * len(self.limits)
        for v in range(n):
            self.blocks[labels[v]] += self.weights[v]

    def around(self, v: int) -> dict[int, int]:
        """The weight from v to each block."""
        found: dict[int, int] = {}
        for u, w in zip(self.near[v], self.tied[v], strict=True):
            found[self.labels[u]] = found.get(self.labels[u], 0) + w
        return found

    def best(self, v: int, room: Any = None) -> tuple[int, int, int]:
        """The best other block, or -1; the weight to it; the weight inside."""
        found = self.around(v)
        inside = found.pop(self.labels[v], 0)
        may = [c for c, w in found.items() if w > 0 and (room is None or room(c))]
        if not may:
            return -1, 0, inside
        best = min(may, key=lambda c: (-found[c], mix64_number((v * GOLDEN + c) % 2**64)))
        return best, found[best], inside

    def move(self, targets: dict[int, int]) -> None:
        for v, target in targets.items():
            self.blocks[self.labels[v]] -= self.weights[v]
            self.blocks[target] += self.weights[v]
            self.labels[v] = target

    def over(self, block: int) -> int:
        return max(self.blocks[block] - self.limits[block], 0)

    def score(self) -> tuple[int, int]:
        """Excess and cut."""
        cut = 0
        for v in range(self.n):
            cut += sum(
                w
                for u, w in zip(self.near[v], self.tied[v], strict=True)
                if self.labels[u] != self.labels[v]
            )
        return sum(self.over(b) for b in range(len(self.blocks))), cut // 2


def refine(
    level: Level, labels: Any, limits: Any, ceilings: Any, fixed: Any, plan: Plan, cut: int,
    threads: int | None = None,
) -> tuple[int, int, int]:  # fmt: skip
    """Refine labels, which have that cut, in place; excess, cut and the number of iterations."""
    state = _State(level, [int(label) for label in labels], limits)
    held = [False] * level.n if fixed is None else [bool(flag) for flag in fixed]
    best, kept = state.score(), list(state.labels)
    locked: set[int] = set()
    iterations = 0
    found = False  # a better state
    phase = 0
    while phase < len(plan.c):
        c, first = plan.c[phase], best
        idle = 0
        while idle < (plan.patience if found else (plan.patience + 1) // 2):
            movers = _chosen(state, held, locked, c)
            state.move(movers)
            locked = set(movers)
            _rebalance(state, held, [int(top) for top in ceilings], plan.rounds)
            iterations += 1
            idle += 1
            score = state.score()
            if score < best:
                if score[0] < best[0] or 1000 * (best[1] - score[1]) > best[1]:
                    idle = 0
                best, kept, found = score, list(state.labels), True
            if not movers:
                break
        state.move(dict(enumerate(kept)))
        phase = max(phase + 1, len(plan.c) - 1) if best == first else phase + 1
    if best[0] > 0:
        _mend(state, held)
        best = state.score()
    labels[:] = state.labels
    return (*best, iterations)


def _chosen(state: _State, held: list[bool], locked: set[int], c: int) -> dict[int, int]:
    """Who moves in an iteration, and where to."""
    want, gain = {}, {}
    for v in range(state.n):
        best, tied, inside = state.best(v)
        if best < 0 or v in locked or held[v]:
            continue
        gain[v] = tied - inside
        if gain[v] >= 0 or -gain[v] < inside * c // 4:
            want[v] = best
    movers = {}
    for v, target in want.items():
        total = 0
        for u, w in zip(state.near[v], state.tied[v], strict=True):
            earlier = u in want and (-gain[u], u) < (-gain[v], v)
            label = want[u] if earlier else state.labels[u]
            total += w * ((label == target) - (label == state.labels[v]))
        if total >= 0:
            movers[v] = target
    return movers


def _rebalance(state: _State, held: list[bool], ceilings: list[int], rounds: int) -> None:
    k = len(state.blocks)
    for turn in range(rounds):
        need = {b: state.over(b) for b in range(k) if state.over(b) > 0}
        if not need:
            return
        first, second = [], []
        supply = dict.fromkeys(need, 0)
        for v in range(state.n):
            own, weight = state.labels[v], state.weights[v]
            if own not in need or held[v] or weight == 0:
                continue

            def room(c: int, w: int = weight) -> bool:
                return state.blocks[c] + w <= ceilings[c]

            target, tied, inside = state.best(v, room)
            if target >= 0:
                first.append((-_rank(tied - inside, weight), v, target))
                supply[own] += weight
                continue
            start = hash2_number(v, turn, 0) % k
            for c in [*range(start, k), *range(start)]:
                if c != own and room(c):
                    second.append((-_rank(-inside, weight), v, c))
                    break
        second = [
            item for item in second if supply[state.labels[item[1]]] < need[state.labels[item[1]]]
        ]
        taken, received = dict.fromkeys(need, 0), [0] * k
        closed: set[int] = set()
        movers = {}
        for _, v, target in sorted(first) + sorted(second):
            own, weight = state.labels[v], state.weights[v]
            if taken[own] >= need[own] or target in closed:
                continue
            if state.blocks[target] + received[target] + weight > ceilings[target]:
                closed.add(target)
                continue
            taken[own] += weight
            received[target] += weight
            movers[v] = target
        state.move(movers)
        if not movers:
            return


def _rank(gain: int, weight: int) -> float:
    return float(gain) * float(weight) if gain > 0 else float(gain) / float(weight)


def _mend(state: _State, held: list[bool]) -> None:
    """Move one vertex after the other, each time the one that lowers the excess most."""
    while True:
        found = []
        for v in range(state.n):
            own, weight = state.labels[v], state.weights[v]
            over = state.over(own)
            if over == 0 or held[v] or weight == 0:
                continue
            around = state.around(v)
            for c in range(len(state.blocks)):
                room = max(state.limits[c] - state.blocks[c], 0)
                less = min(weight, over) - max(weight - room, 0)
                if c != own and less > 0:
                    found.append((-less, around.get(own, 0) - around.get(c, 0), v, c))
        if not found:
            return
        *_, v, c = min(found)
        state.move({v: c})


def cut_of(level: Level, labels: Any, threads: int | None = None) -> int:
    """The weight of the edges between different labels."""
    state = _State(level, [int(label) for label in labels], [0] * (int(max(labels)) + 1))
    return state.score()[1]


def light_edges(
    level: Level, labels: Any, limit: int, threads: int | None = None
) -> tuple[Any, Any, Any]:
    """The edges whose ends together weigh at most `limit` and have one label; float64 weights."""
    indptr, indices, data = [0], [], []
    for u in range(level.n):
        for i in range(int(level.indptr[u]), int(level.indptr[u + 1])):
            v = int(level.indices[i])
            if int(level.weights[u]) + int(level.weights[v]) > limit:
                continue
            if labels is None or labels[u] == labels[v]:
                indices.append(v)
                data.append(1.0 if level.data is None else float(level.data[i]))
        indptr.append(len(indices))
    return (
        np.array(indptr, level.indptr.dtype),
        np.array(indices, level.indices.dtype),
        np.array(data, np.float64),
    )
