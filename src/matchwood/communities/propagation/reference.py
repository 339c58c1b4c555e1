"""Label propagation: the definition, one vertex after the other.

Also the numbers of a run that all engines share.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.communities.subrounds import turns_of
from matchwood.communities.weights import Level
from matchwood.primitives.hashing.reference import mix64_number
from matchwood.primitives.tally.reference import weights_of_labels

SPLIT_ROUNDS = 20  # rounds of sub-rounds; after them a vertex moves only if it is first


class Plan(NamedTuple):
    """The options of a run."""

    gamma: float  # how much the size of a label counts against it
    max_rounds: int
    tol: float  # a round that moves at most this part of the vertices is the last
    seed: int

    def enough(self, n: int) -> int:
        """A round that moves no more vertices than this is the last."""
        return int(self.tol * n)


def propagate(level: Level, plan: Plan, threads: int | None = None) -> tuple[Any, int]:
    """Labels, each the number of some vertex, and the number of rounds."""
    n = level.n
    labels = np.arange(n, dtype=level.indices.dtype)
    size, active = [1] * n, [True] * n
    if level.indices.size == 0:
        return labels, 0
    for number in range(plan.max_rounds):
        moved = 0
        if number < SPLIT_ROUNDS:
            for part in turns_of(n, number, plan.seed):
                turn = [v for v in part if active[v]]
                targets = _targets(level, labels, size, active, plan, turn)
                _go(level, labels, size, active, targets)
                moved += len(targets)
        else:
            turn = [v for v in range(n) if active[v]]
            wishes = _targets(level, labels, size, active, plan, turn)
            targets = {v: c for v, c in wishes.items() if _is_first(level, wishes, v)}
            for v in wishes.keys() - targets.keys():
                active[v] = True
            _go(level, labels, size, active, targets)
            moved = len(targets)
        if moved <= plan.enough(n):
            return labels, number + 1
    return labels, plan.max_rounds


def _targets(
    level: Level, labels: Any, size: Any, active: Any, plan: Plan, turn: Any
) -> dict[int, int]:
    """The new labels of those whose turn it is and that want another; they are active no more."""
    targets = {}
    for v in turn:
        active[v] = False
        target = _best(level, labels, size, plan.gamma, v)
        if target != labels[v]:
            targets[v] = target
    return targets


def _best(level: Level, labels: Any, size: Any, gamma: float, v: int) -> int:
    """The label of the largest value, of several the one with the smallest mix64."""
    own = int(labels[v])
    weights = weights_of_labels(level.indptr, level.indices, level.data, labels, v)
    weights = {c: weight for c, weight in weights.items() if weight > 0 or c == own}
    weights.setdefault(own, 0)

    def key(c: int) -> tuple[float, int]:
        others = size[c] - (c == own)
        return (1.0 + gamma) * float(weights[c]) - gamma * float(others), -mix64_number(c)

    return max(weights, key=key)


def _is_first(level: Level, wishes: Any, v: int) -> bool:
    around = level.indices[level.indptr[v] : level.indptr[v + 1]]
    return all(mix64_number(v) < mix64_number(int(u)) for u in around if int(u) in wishes)


def _go(level: Level, labels: Any, size: Any, active: Any, targets: dict[int, int]) -> None:
    """Change the labels of all movers at once; their neighbours become active."""
    for v, target in targets.items():
        size[int(labels[v])] -= 1
        size[target] += 1
        labels[v] = target
    for v in targets:
        for u in level.indices[level.indptr[v] : level.indptr[v + 1]]:
            active[u] = True
