"""The best pairs: k of all, or some for each left record.

k of all (`best_pairs`).  In: an engine, whose `above` joins at any threshold.  Out: left, right and
weight of the k best.  A join at a high threshold is cheap and has few pairs.  So the threshold
falls in steps until a sample of the records has its share of k pairs.  The scores of the sample
give an estimate of the k-th best score.  Then all records are joined at that score, and as soon as
k pairs are known, the worst of them is the new threshold.  Where the estimate was too high, all
records are joined at the threshold of the step.

Some for each left record: the kernel in cpu.py, instead of `join_all` of candidates/cpu.

Ties are decided by (left, right), and scores are compared as fractions in integers, so the answer
is the same on every engine and at any number of threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from matchwood.applications.join import Choice
from matchwood.applications.join.result import by_score, scores_of

STEP = 0.1  # between two thresholds that are tried
SAMPLE = 16  # one record in 16 is joined to estimate the number of pairs
LEAST_SAMPLED = 4096  # records; fewer are joined without a sample

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
        kept = self.better(raw)
        self.waiting.append([array[kept] for array in raw])
        self.count += self.waiting[-1][0].size
        if self.count >= 2 * self.k + 1024:
            self.settle()

    def better(self, raw: Any) -> Any:
        """Which pairs precede the present k-th; all of them where int64 cannot decide."""
        if self.left.size < self.k:
            return slice(None)
        left, right, weight = (int(array[-1]) for array in (self.left, self.right, self.weight))
        total = int(self.sizes[0][left] + self.sizes[1][right])
        sums = self.sums(raw.left, raw.right)
        most = max(int(raw.weight.max(initial=0)) * total, weight * int(sums.max(initial=0)))
        if most >= 1 << 63:  # the products would not fit; `settle` compares them digit by digit
            return slice(None)
        mine, theirs = raw.weight * total, weight * sums
        first = (raw.left < left) | ((raw.left == left) & (raw.right < right))
        return (mine > theirs) | ((mine == theirs) & first)

    def settle(self) -> None:
        """Keep the best k, each once: after a change of the threshold a pair may be found again."""
        old = (self.left, self.right, self.weight)
        left, right, weight = (
            np.concatenate(parts) for parts in zip(old, *self.waiting, strict=True)
        )
        both = left.astype(np.int64) * self.sizes[1].size + right
        once = np.unique(both, return_index=True)[1]  # by (left, right)
        left, right, weight = left[once], right[once], weight[once]
        order = by_score(weight, self.sums(left, right))[: self.k]
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
    sizes = prepared.sizes
    best = _Best(choice.k or 1, sizes)
    records = sum(side.size for side in sizes)
    for delta in _levels(engine, prepared, choice, records) if in_steps else (choice.delta,):
        for raw in engine.above(prepared, choice, delta, best.threshold, None):
            best.add(raw)
        best.settle()
        if best.left.size == best.k:
            break
    return best.left, best.right, best.weight


def _levels(engine: Any, prepared: Any, choice: Choice, records: int) -> Iterator[float]:
    """Thresholds at which all records are joined, until there are k pairs; the last is delta."""
    for delta in _thresholds(choice.delta, choice.exclude_equal):
        if delta > choice.delta and records >= LEAST_SAMPLED:
            some = engine.above(
                prepared, choice, delta, lambda: 0.0, lambda task: task.sample(SAMPLE)
            )
            yield from _guesses(list(some), prepared, choice, delta)
        else:
            yield delta


def _guesses(some: list[Any], prepared: Any, choice: Choice, delta: float) -> Iterator[float]:
    """Estimates of the k-th best score from the pairs of a sample at `delta`, then delta itself.

    Nothing where there are not k pairs.  Of k pairs a sample has k / SAMPLE on average, and the
    square root of that more or less.
    """
    expected = (choice.k or 1) / SAMPLE
    place = int(expected + 2 * expected**0.5 + 2)
    seen = sum(raw.left.size for raw in some)
    if seen < expected + expected**0.5 + 1:
        return
    if seen > place:
        sizes = prepared.sizes
        scores = [scores_of(r.weight, sizes[0][r.left] + sizes[1][r.right]) for r in some]
        guess = float(-np.partition(-np.concatenate(scores), place - 1)[place - 1])
        if guess > delta:
            yield guess
    yield delta


def _thresholds(least: float, unequal: bool) -> Iterator[float]:
    """Thresholds from 1 down in steps, then `least`.  Unequal pairs have a score below 1."""
    steps = int((1.0 - least) / STEP)
    tried = (1.0 - STEP * i for i in range(int(unequal), steps))
    yield from (delta for delta in tried if delta > least + STEP / 2)
    yield least
