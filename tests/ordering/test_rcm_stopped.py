"""Ctrl-C while a start is tried: the order found before stays, and nothing else is read."""

from __future__ import annotations

import numpy as np

from matchwood.engines.cpu import device, kernel, store_relaxed
from matchwood.engines.cpu.team import STOP, WORDS, Team
from matchwood.ordering.rcm.cpu_records import PLACED
from matchwood.ordering.rcm.cpu_sort import ONE, ZERO
from matchwood.ordering.rcm.start.cpu_tried import Tried, try_others

N = 6


@device
def _cut(team, rows, mark, queue, start, at, end, bound):
    """One vertex is placed when the team is told to stop."""
    queue[at] = start
    mark[start] = PLACED
    store_relaxed(team.words, STOP, 1)
    return at + ONE, ONE, at, ZERO, False


@device
def _least(rows, queue, a, b):
    least = queue[a]
    for x in range(a, b):
        least = min(least, queue[x])
    return least


@kernel
def _try(team, mark, queue, spare, found):
    end = np.uint64(queue.size)
    first = Tried(ZERO, end, queue[0], queue[2], np.uint64(4), end - ONE, np.uint64(3))
    found[0], found[1] = try_others(team, _cut, _least, 0, mark, queue, spare, first)


def test_an_order_that_may_be_a_part_is_dropped():
    queue = np.array([3, 1, 4, 0, 5, 2], np.uint32)
    before, spare = queue.copy(), np.full(N, 5, np.uint32)
    mark, found, words = np.zeros(N, np.uint8), np.zeros(2, np.int64), np.zeros(WORDS, np.int64)
    _try(Team(0, 1, words), mark, queue, spare, found)
    np.testing.assert_array_equal(queue, before)
    assert (mark == PLACED).all()
    assert found.tolist() == [4, 1]
