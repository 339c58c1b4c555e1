"""The best pairs: k of all, or some for each left record.

k of all.  A join at a high threshold is cheap and has few pairs.  So the threshold falls in steps
until a sample of the records says that there are k pairs; then all records are joined, and as soon
as k pairs are known, the worst of them is the new threshold.

Ties are decided by (left, right), and scores are compared as fractions in integers, so the answer
is the same on every engine and at any number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from matchwood.join.choice import Choice
from matchwood.join.result import by_score, scores_of

STEP = 0.05  # between two thresholds that are tried
SAMPLE = 16  # one record in so many is asked how many pairs there are
WORTH_SAMPLING = 4096  # records; fewer are joined at once
ENOUGH = 1.2  # times k pairs are expected before all records are joined

__all__ = ["best_pairs"]


class _Best:
    """The best k pairs so far."""

    def __init__(self, k: int, sizes: tuple[np.ndarray, np.ndarray]) -> None:
        self.k = k
        self.sizes = sizes
        self.left = self.right = self.weight = np.empty(0, np.int64)
        self.waiting: list[Any] = []
        self.count = 0

    def add(self, raw: Any) -> None:
        self.waiting.append(raw)
        self.count += raw.left.size
        if self.count >= 2 * self.k + 1024:
            self.settle()

    def settle(self) -> None:
        """Keep the best k, each once: after a change of the threshold a pair may come again."""
        left = np.concatenate([self.left, *(raw.left for raw in self.waiting)])
        right = np.concatenate([self.right, *(raw.right for raw in self.waiting)])
        weight = np.concatenate([self.weight, *(raw.weight for raw in self.waiting)])
        both = left.astype(np.int64) * self.sizes[1].size + right
        once = np.unique(both, return_index=True)[1]
        left, right, weight = left[once], right[once], weight[once]
        order = by_score(weight, self.sums(left, right), left, right)[: self.k]
        self.left, self.right, self.weight = left[order], right[order], weight[order]
        self.waiting, self.count = [], 0

    def sums(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        return self.sizes[0][left] + self.sizes[1][right]

    def threshold(self) -> float:
        """The score of the k-th pair, 0 while there are fewer."""
        if self.left.size < self.k:
            return 0.0
        last = slice(self.k - 1, self.k)
        sums = self.sums(self.left[last], self.right[last])
        return float(scores_of(self.weight[last], sums)[0])


def best_pairs(
    engine: Any, prepared: Any, choice: Choice, in_steps: bool = True
) -> tuple[Any, Any, Any]:
    """left, right and weight of the k best pairs, by (-score, left, right).

    `in_steps`: a join at a higher threshold is cheaper, so those are tried first.
    """
    sizes = tuple(np.diff(prepared.records[side].starts) for side in (0, -1))
    best = _Best(choice.k or 1, sizes)
    records = sum(side.size for side in sizes)
    for delta in _thresholds(choice.delta) if in_steps else (choice.delta,):
        if delta > choice.delta and records >= WORTH_SAMPLING:
            some = engine.above(
                prepared, choice, delta, lambda: 0.0, lambda task: task.sample(SAMPLE)
            )
            seen = sum(raw.left.size for raw in some)
            if seen * SAMPLE < ENOUGH * best.k:
                continue
        for raw in engine.above(prepared, choice, delta, best.threshold, None):
            best.add(raw)
        best.settle()
        if best.left.size == best.k:
            break
    return best.left, best.right, best.weight


def _thresholds(least: float) -> Iterator[float]:
    steps = int((1.0 - least) / STEP)
    yield from (1.0 - STEP * i for i in range(steps) if 1.0 - STEP * i > least + STEP / 2)
    yield least
