"""Potentials and stack, on blocks of edges.  The rule: __init__.py.

One thread works: each edge depends on the potentials that all edges before it left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, crew, interrupted, kernel
from matchwood.matching.methods import EngineMatching
from matchwood.matching.streaming import EPSILON
from matchwood.primitives.wide_sums import total as wide_total

Array = np.ndarray[Any, Any]
ENTRIES_PER_BLOCK = 1 << 20  # entries of a matrix for which the stack grows at a time


@kernel
def _feed(
    team: Team, u: Array, v: Array, w: Array, factor: float, potential: Array, ends: Array,
    weights: Array, size: Array,
) -> None:  # fmt: skip
    """Push the edges that exceed their ends' potentials; the stack has room for the whole block."""
    top = size[0]
    for k in range(u.size):
        if interrupted(team, k):
            return
        a, b = np.uint64(u[k]), np.uint64(v[k])
        below = potential[a] + potential[b]
        if w[k] > factor * below and a != b:
            potential[a] += w[k] - below
            potential[b] += w[k] - below
            ends[0, top], ends[1, top], weights[top] = u[k], v[k], w[k]
            top += 1
    size[0] = top


@kernel
def _feed_rows(
    team: Team, indptr: Array, indices: Array, data: Array, first: int, last: int, factor: float,
    potential: Array, ends: Array, weights: Array, size: Array,
) -> None:  # fmt: skip
    """`_feed` for the edges from rows first .. last - 1 of a matrix to later vertices."""
    top = size[0]
    for i in range(np.uint64(first), np.uint64(last)):
        if interrupted(team, np.int64(i)):
            return
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + np.uint64(1)])):
            j, w = np.uint64(indices[k]), np.float64(data[k])
            below = potential[i] + potential[j]
            if i < j and w > factor * below:
                potential[i] += w - below
                potential[j] += w - below
                ends[0, top], ends[1, top], weights[top] = i, j, w
                top += 1
    size[0] = top


@kernel
def _unwind(team: Team, ends: Array, weights: Array, top: int, mate: Array, total: Array) -> None:
    weight = 0.0
    for k in range(top - 1, -1, -1):
        if interrupted(team, k):
            return
        u, v = ends[0, k], ends[1, k]
        if mate[u] < 0 and mate[v] < 0:
            mate[u], mate[v] = v, u
            weight += weights[k]
    total[0] = weight


def proved_bound(factor: float, potential: Array) -> float:
    """An upper bound on every matching: the sum of potentials, rounded up; see `matching_bound`."""
    steps = (2 * factor + 2) * int(np.count_nonzero(potential)) * 2.0**-1074
    return factor * wide_total(potential) * (1 + 2.0**-40) + steps


class Stream:
    """The state of the one pass: potentials and stack."""

    def __init__(self, n: int, epsilon: float, kind: Any = np.int64) -> None:
        self._factor = 1.0 + epsilon
        self._team = crew(1, work=1)
        self._potential = np.zeros(n)
        self._n = n
        self._ends = np.empty((2, 1024), kind)
        self._weights = np.empty(1024)
        self._size = np.zeros(1, np.int64)

    def feed(self, u: Array, v: Array, w: Array) -> None:
        """Take these edges: int64, int64, float64 arrays; the ends have been checked."""
        if not u.size:
            return
        self._n = max(self._n, int(u.max()) + 1, int(v.max()) + 1)
        if self._n > self._potential.size:
            grown = np.zeros(max(self._n, 2 * self._potential.size))
            grown[: self._potential.size] = self._potential
            self._potential = grown
        self._reserve(u.size)
        self._team.run(_feed, u, v, w, self._factor, *self._state())

    def feed_rows(self, view: Any) -> None:
        """Take the upper triangle of a symmetric matrix, row by row."""
        first = 0
        while first < view.n:
            most = int(view.indptr[first]) + ENTRIES_PER_BLOCK
            last = int(np.searchsorted(view.indptr, most, "right")) - 1
            last = min(max(last, first + 1), view.n)
            self._reserve(int(view.indptr[last] - view.indptr[first]))
            self._team.run(_feed_rows, *view, first, last, self._factor, *self._state())
            first = last

    def finish(self) -> EngineMatching:
        mate = np.full(self._n, -1, self._ends.dtype)
        total = np.zeros(1)
        self._team.run(_unwind, self._ends, self._weights, int(self._size[0]), mate, total)
        bound = proved_bound(self._factor, self._potential)
        return EngineMatching(mate, float(total[0]), 1, bound)

    def _state(self) -> tuple[Array, ...]:
        return self._potential, self._ends, self._weights, self._size

    def _reserve(self, more: int) -> None:
        needed = int(self._size[0]) + more
        if needed > self._weights.size:
            length = max(needed, 2 * self._weights.size)
            ends, weights = np.empty((2, length), self._ends.dtype), np.empty(length)
            used = int(self._size[0])
            ends[:, :used], weights[:used] = self._ends[:, :used], self._weights[:used]
            self._ends, self._weights = ends, weights


def match(
    view: Any, seed: int, by_hash: bool, threads: int | None = None, epsilon: float = EPSILON
) -> EngineMatching:
    stream = Stream(view.n, epsilon, view.indices.dtype)
    stream.feed_rows(view)
    return stream.finish()
