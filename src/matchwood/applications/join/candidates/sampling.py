"""Which left records a sample takes, and how many pairs it says there are in all.

A record brings no more pairs than it reads entries of posting lists, and those are counted before
anything is joined.  So records are drawn with chances in proportion to that cost, and each pair of
a drawn record counts for 1 / chance.  Records that cost much are taken for sure.  Then no record
outside the sample can bring a surprise: it holds at most its cost, which is less than one step of
the draw.
"""

from __future__ import annotations

from typing import Any

import numpy as np

SEED = 1
MISSED = 3.0  # steps of the draw: with 95 % what was never met is no more ("rule of three")


class Sample:
    """Some `count` left records of a join.  Call it with the task before the task runs."""

    def __init__(self, count: int, threads: int | None) -> None:
        self.count = count
        self.threads = threads
        self.rows = np.empty(0, np.int64)
        self.chances = np.empty(0)
        self.step = 0.0  # entries of posting lists between two draws
        self.share = 1.0  # of the whole cost

    def __call__(self, task: Any) -> None:
        """Draw, and leave only what was drawn in the task."""
        costs = task.costs(self.threads) - 1.0  # without the entry for the record itself
        chances = self._chances(costs)
        marks = np.cumsum(chances)
        start = np.random.default_rng(SEED).random()
        drawn = np.flatnonzero(np.diff(np.floor(marks + start), prepend=np.floor(start)) > 0)
        self.rows = task.places.rows[drawn].astype(np.int64)
        self.chances = chances[drawn]
        total = costs.sum()
        self.share = float(costs[drawn].sum() / total) if total else 1.0
        task.take(drawn)

    def _chances(self, costs: np.ndarray) -> np.ndarray:
        """In proportion to the cost, at most 1, `count` in all."""
        if np.count_nonzero(costs) <= self.count:
            return (costs > 0).astype(float)
        chances, sure = np.zeros(costs.size), np.zeros(costs.size, bool)
        while True:
            left = np.where(sure, 0.0, costs)
            self.step = float(left.sum()) / max(self.count - int(sure.sum()), 1)
            more = left >= self.step
            if not more.any() or not left.any():
                break
            sure |= more
        chances[sure] = 1.0
        return chances + (left / self.step if self.step else 0.0)

    def total(self, counts: np.ndarray) -> tuple[float, float]:
        """How many pairs there are, and by how much that may be wrong, from those by record."""
        if not self.rows.size:
            return float(counts.sum()), 0.0
        each = counts[self.rows] / self.chances
        drawn = self.chances < 1.0
        if not drawn.any():
            return float(each.sum()), 0.0
        n = int(drawn.sum())
        around = each[drawn] - each[drawn].mean()
        spread = float(np.sqrt((around**2).sum() * n / max(n - 1, 1)))
        return float(each.sum()), 2.0 * spread + MISSED * self.step
