"""Moving vertices between communities: the definition, one vertex after the other.

Also the numbers of a run that all engines share.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.communities.subrounds import turns_of
from matchwood.communities.weights import Level
from matchwood.primitives.hashing.reference import mix64_number
from matchwood.primitives.tally.reference import weights_of_labels

REFINEMENT = 1 << 32  # the number of the round in which parts are formed: no other has it


class Plan(NamedTuple):
    """Resolution and seed of a call."""

    resolution: float
    seed: int


class Limit(NamedTuple):
    """Moving on a level ends after `rounds`, or one that moves at most one vertex in `few`."""

    rounds: int
    few: int

    def enough(self, tied: int) -> int:
        """A round that moves no more than this is the last; `tied` vertices have neighbours."""
        return tied // self.few


def move(level: Level, labels: Any, plan: Plan, limit: Limit, threads: int | None = None) -> int:
    """Move vertices between communities, in place; returns the number of rounds.

    labels[v] lies in 0..n-1.  Ends after `limit.rounds`, or after one in which at
    most `limit.enough` vertices moved.
    """
    n = level.n
    if level.indices.size == 0:
        return 0
    volume, size = [0] * n, [0] * n
    for v in range(n):
        volume[labels[v]] += int(level.strength[v])
        size[labels[v]] += 1
    active = [True] * n
    for number in range(limit.rounds):
        moved = 0
        for turn in turns_of(n, number, plan.seed):
            targets = {}
            for v in turn:
                if active[v]:
                    active[v] = False
                    target = _best(level, labels, volume, size, plan, v)
                    if target != labels[v]:
                        targets[v] = target
            for v, target in targets.items():
                for c, sign in ((int(labels[v]), -1), (target, 1)):
                    volume[c] += sign * int(level.strength[v])
                    size[c] += sign
                labels[v] = target
            for v in targets:
                for u in level.indices[level.indptr[v] : level.indptr[v + 1]]:
                    active[u] = True
            moved += len(targets)
        if moved <= limit.enough(level.tied):
            return number + 1
    return limit.rounds


def _best(level: Level, labels: Any, volume: Any, size: Any, plan: Plan, v: int) -> int:
    """The community that gains most; v's own unless another gains strictly more."""
    own, strength = int(labels[v]), int(level.strength[v])
    scale = plan.resolution * float(strength) / float(level.total) if level.total else 0.0
    weights = weights_of_labels(level.indptr, level.indices, level.data, labels, v)
    best = own
    best_value = float(weights.pop(own, 0)) - scale * float(volume[own] - strength)
    for c, weight in weights.items():
        value = float(weight) - scale * float(volume[c])
        first = value == best_value and best != own and mix64_number(c) < mix64_number(best)
        if weight > 0 and (value > best_value or first):
            best, best_value = c, value
    if best != own and size[own] == 1 and size[best] == 1 and best > own:
        return own  # of two singletons the larger moves, else they would change places
    return best


def refine(level: Level, labels: Any, plan: Plan, threads: int | None = None) -> Any:
    """Well-connected parts of communities: singletons that join each other; one round.

    A vertex that is still alone, and well connected to the rest of its community C, joins the part
    of C with the largest gain above 0 among the parts that are well connected to the rest of C.  A
    part of one vertex that has its own turn in the same sub-round is none of them: it may move.
    """
    n = level.n
    part = np.arange(n, dtype=labels.dtype)
    volume = [int(k) for k in level.strength]
    size = [1] * n
    whole = [0] * n
    for v in range(n):
        whole[labels[v]] += volume[v]
    inside = [_weight_to(level, labels, v, labels[v]) for v in range(n)]  # K(v, C without v)
    outward = list(inside)  # weight from a part to the rest of its community
    scale = plan.resolution / float(level.total) if level.total else 0.0

    def tied(weight: int, mine: int, community: int) -> bool:
        return float(weight) >= scale * float(mine) * float(whole[community] - mine)

    for turn in turns_of(n, REFINEMENT, plan.seed):
        joins, waiting = {}, {v for v in turn if size[v] == 1}
        for v in turn:
            community, strength = int(labels[v]), int(level.strength[v])
            if size[v] != 1 or not tied(inside[v], strength, community):
                continue
            best, best_value = v, 0.0
            mine = scale * float(strength)
            for c, weight in _parts_around(level, labels, part, v).items():
                if c in waiting or weight == 0 or not tied(outward[c], volume[c], community):
                    continue
                value = float(weight) - mine * float(volume[c])
                first = value == best_value and best != v and mix64_number(c) < mix64_number(best)
                if value > best_value or first:
                    best, best_value = c, value
            if best != v:
                joins[v] = best
        before = {v: _weight_to(level, part, v, c) for v, c in joins.items()}
        for v, c in joins.items():
            part[v] = c
        for v, c in joins.items():
            after = _weight_to(level, part, v, c)
            outward[c] += inside[v] - before[v] - after
            volume[c] += int(level.strength[v])
            size[c] += 1
            size[v] = 0
    return part


def _row(level: Level, v: int) -> Any:
    for k in range(int(level.indptr[v]), int(level.indptr[v + 1])):
        yield int(level.indices[k]), 1 if level.data is None else int(level.data[k])


def _weight_to(level: Level, part: Any, v: int, c: int) -> int:
    return sum(w for u, w in _row(level, v) if part[u] == c)


def _parts_around(level: Level, labels: Any, part: Any, v: int) -> dict[int, int]:
    found: dict[int, int] = {}
    for u, w in _row(level, v):
        if labels[u] == labels[v]:
            found[int(part[u])] = found.get(int(part[u]), 0) + w
    return found


def split(level: Level, labels: Any, threads: int | None = None) -> tuple[int, Any]:
    """The connected parts of communities, numbered by their smallest vertices."""
    found = np.full(level.n, -1, labels.dtype)
    count = 0
    for start in range(level.n):
        if found[start] >= 0:
            continue
        found[start] = count
        stack = [start]
        while stack:
            v = stack.pop()
            for u, _ in _row(level, v):
                if found[u] < 0 and labels[u] == labels[v]:
                    found[u] = count
                    stack.append(u)
        count += 1
    return count, found
