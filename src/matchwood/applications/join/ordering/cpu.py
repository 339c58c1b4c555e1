"""Pairs in order on a team: one sort of all keys with their weights, then rows and scores.

Members write rows and scores of the pairs of their shares, so there are no races.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.join import together
from matchwood.applications.join.similarity.cpu import ONE
from matchwood.engines.cpu import Team, crew, kernel, share, stopping
from matchwood.primitives.sort.cpu import BLOCK, sort_pairs

WORK_PER_PAIR = 8  # steps, for the choice of the number of threads


class Answer(NamedTuple):
    """The result."""

    left: np.ndarray  # int64
    right: np.ndarray  # int64
    score: np.ndarray  # float64; empty where no scores are wanted


@kernel
def _write(
    team: Team, keys: Any, weights: Any, shift: int, sizes: Any, others: Any, answer: Answer
) -> None:
    """Rows and scores of sorted pairs."""
    scored = answer.score.size > 0
    by = np.uint64(shift)
    last = (np.uint64(1) << by) - np.uint64(1)
    lo, hi = share(team, keys.size)
    for start in range(lo, hi, BLOCK):
        if stopping(team):
            return
        here = slice(start, min(start + BLOCK, hi))
        codes, heavy = keys[here], weights[here]
        left, right, score = answer.left[here], answer.right[here], answer.score[here]
        for i in range(codes.size):
            row, other = codes[i] >> by, codes[i] & last
            left[i] = row
            right[i] = other
            if scored:
                whole = (sizes[row] + others[other]) * ONE - heavy[i]
                score[i] = np.float64(heavy[i]) / np.float64(whole)


def in_order(
    parts: list[Any], sizes: tuple[np.ndarray, ...], scored: bool, threads: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """left, right and score of all pairs, by (left, right).  `parts` is empty afterwards.

    `sizes`: elements of each record, for both sides.
    """
    left, right, weights = together(parts)
    parts.clear()
    shift = max(sizes[1].size - 1, 1).bit_length()  # bits of the right row
    keys = left.astype(np.uint64) << np.uint64(shift)
    keys |= right.astype(np.uint64)
    del left, right
    keys, weights = sort_pairs(keys, weights, threads=threads)
    score = np.empty(keys.size if scored else 0)
    answer = Answer(np.empty(keys.size, np.int64), np.empty(keys.size, np.int64), score)
    team = crew(threads, work=WORK_PER_PAIR * keys.size)
    team.run(_write, keys, weights, shift, *sizes, answer)
    return answer.left, answer.right, score if scored else None
