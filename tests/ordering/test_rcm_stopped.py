"""Ctrl-C while a start is tried: the order found before stays, and nothing else is read."""

from __future__ import annotations

import numpy as np
import pytest

from graphs import path
from matchwood.engines.cpu.team import STOP, WORDS, Team
from matchwood.ordering.rcm.cpu.cached import try_starts
from matchwood.ordering.rcm.cpu.children import BINS, ONE, PLACED, ZERO, Csr, Sorter
from matchwood.ordering.rcm.cpu.serial import ComponentOrder
from support import from_python

N = 6


@from_python
def _try(team, csr, mark, queue, spare, sorter, found):
    end = np.uint64(queue.size)
    first = ComponentOrder(end, np.uint64(4), np.uint64(3), end - ONE, np.uint64(3), True)
    found[0], found[1] = try_starts(team, csr, mark, queue, spare, ZERO, first, sorter)


@pytest.mark.slow
def test_an_order_that_may_be_a_part_is_dropped():
    """The team is told to stop: each search ends behind its first vertex."""
    A = path(N)
    csr = Csr(A.indptr.view(np.uint32), A.indices.view(np.uint32), True, ZERO)
    sorter = Sorter(
        np.uint64(3), np.empty(N, np.uint64), np.empty(N, np.uint64), np.empty(BINS, np.uint64)
    )
    queue = np.array([3, 1, 4, 0, 5, 2], np.uint32)
    before, spare = queue.copy(), np.full(N + 1, 5, np.uint32)
    mark, found, words = np.zeros(N, np.uint8), np.zeros(2, np.int64), np.zeros(WORDS, np.int64)
    words[STOP] = 1
    _try(Team(0, 1, words), csr, mark, queue, spare, sorter, found)
    np.testing.assert_array_equal(queue, before)
    assert (mark == PLACED).all()
    assert found.tolist() == [4, 1]
