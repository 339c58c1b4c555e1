"""Label propagation once more, with NumPy: what checks compare labels with.

The rule is that of reference.py; the vertices of a sub-round are taken together.  Their entries are
sorted by (vertex, label), equal ones added up, and of each vertex the best is the last one by
(value, hash).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.communities.propagation.plan import SPLIT_ROUNDS, Plan
from matchwood.communities.subrounds import subrounds_of
from matchwood.communities.weights import Level
from matchwood.primitives.hashing import hash2, mix64


class Labels:
    """The labels of vertices, how many have each, and who is active."""

    def __init__(self, level: Level, gamma: float) -> None:
        n = level.n
        self.level, self.gamma = level, gamma
        self.labels = np.arange(n)
        self.size = np.ones(n, np.int64)
        self.active = np.ones(n, bool)
        self.hash = mix64(np.arange(n, dtype=np.uint64), engine="cpu")

    def entries(self, vertices: Any) -> tuple[Any, Any]:
        """Where the rows of these vertices are stored, and which one each entry is of."""
        begin = self.level.indptr[vertices].astype(np.int64)
        size = self.level.indptr[vertices + 1] - begin
        which = np.repeat(np.arange(vertices.size), size)
        return np.arange(which.size) + np.repeat(begin - np.cumsum(size) + size, size), which

    def targets(self, turn: Any) -> Any:
        """The label that each of these takes; they are no longer active."""
        self.active[turn] = False
        n, own = self.level.n, self.labels[turn]
        at, which = self.entries(turn)
        data = self.level.data
        weight = np.ones(at.size, np.int64) if data is None else data[at]
        at, which, weight = at[weight > 0], which[weight > 0], weight[weight > 0]
        keys = which * n + self.labels[self.level.indices[at]]
        keys = np.concatenate([keys, np.arange(turn.size) * n + own])  # its own counts in any case
        distinct, where = np.unique(keys, return_inverse=True)
        sums = np.zeros(distinct.size, np.int64)
        np.add.at(sums, where.reshape(-1)[: weight.size], weight)
        which, label = distinct // n, distinct % n
        others = self.size[label] - (label == own[which])
        value = (1.0 + self.gamma) * sums.astype(np.float64) - self.gamma * others
        order = np.lexsort((~self.hash[label], value, which))
        return label[order[np.flatnonzero(np.diff(which[order], append=-1))]]

    def go(self, vertices: Any, target: Any) -> None:
        """All of them take their new labels, and wake their neighbours."""
        np.subtract.at(self.size, self.labels[vertices], 1)
        np.add.at(self.size, target, 1)
        self.labels[vertices] = target
        self.active[self.level.indices[self.entries(vertices)[0]]] = True

    def split_round(self, number: int, seed: int) -> int:
        """A round of sub-rounds; how many labels changed."""
        n, moved = self.level.n, 0
        parts = subrounds_of(n)
        hashes = hash2(np.arange(n), np.full(n, number), seed, engine="cpu")
        turn_of = (hashes % np.uint64(parts)).astype(np.int64)
        order = np.argsort(turn_of, kind="stable")
        for turn in np.split(order, np.cumsum(np.bincount(turn_of, minlength=parts))[:-1]):
            turn = turn[self.active[turn]]
            if turn.size == 0:
                continue
            target = self.targets(turn)
            moves = target != self.labels[turn]
            self.go(turn[moves], target[moves])
            moved += int(moves.sum())
        return moved

    def careful_round(self) -> int:
        """A round in which of neighbours that want to move the first by hash does."""
        turn = np.flatnonzero(self.active)
        if turn.size == 0:
            return 0
        target = self.targets(turn)
        wants = target != self.labels[turn]
        turn, target = turn[wants], target[wants]
        wish = np.zeros(self.level.n, bool)
        wish[turn] = True
        at, which = self.entries(turn)
        u = self.level.indices[at]
        late = np.zeros(turn.size, bool)
        late[which[wish[u] & (self.hash[u] < self.hash[turn][which])]] = True
        self.active[turn[late]] = True
        self.go(turn[~late], target[~late])
        return int((~late).sum())


def replay(level: Level, plan: Plan) -> tuple[Any, int]:
    """Labels, each the number of some vertex, and the number of rounds."""
    state = Labels(level, plan.gamma)
    if level.indices.size == 0:
        return state.labels, 0
    for number in range(plan.max_rounds):
        early = number < SPLIT_ROUNDS
        moved = state.split_round(number, plan.seed) if early else state.careful_round()
        if moved <= plan.enough(level.n):
            return state.labels, number + 1
    return state.labels, plan.max_rounds
