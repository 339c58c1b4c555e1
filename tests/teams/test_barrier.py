"""Barriers and the ways to divide work: no member runs ahead, no work is lost or done twice."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood.engines.cpu import atomic_add, barrier, crew, kernel, next_chunk, share, share_rows
from support import cores


@kernel
def _meet(team, rounds, slots, wrong):
    """Each round all write their slot, meet, and read everybody's."""
    for step in range(rounds):
        slots[team.me] = step
        if barrier(team):
            return
        for rank in range(team.size):
            if slots[rank] != step:
                atomic_add(wrong, 0, 1)
        if barrier(team):
            return


@pytest.mark.parametrize("size", sorted({1, 2, 3, cores() + 1, 2 * cores() + 1, 4 * cores()}))
def test_nobody_runs_ahead_of_a_barrier(size):
    rounds = 3000
    slots, wrong = np.full(size, -1), np.zeros(1, np.int64)
    crew(size, work=rounds * size * 100).run(_meet, rounds, slots, wrong)
    assert (slots == rounds - 1).all()
    assert wrong[0] == 0


@kernel
def _record_shares(team, n, bounds):
    bounds[team.me, 0], bounds[team.me, 1] = share(team, n)


@kernel
def _record_rows(team, indptr, bounds):
    bounds[team.me, 0], bounds[team.me, 1] = share_rows(team, indptr)


def _assert_covers(bounds, n):
    """The ranges follow each other from 0 to n."""
    assert bounds[0, 0] == 0
    assert bounds[-1, 1] == n
    assert (bounds[1:, 0] == bounds[:-1, 1]).all()
    assert (bounds[:, 0] <= bounds[:, 1]).all()


@given(n=st.integers(0, 50), size=st.integers(1, 9))
def test_shares_cover_everything_evenly(n, size):
    bounds = np.full((size, 2), -1)
    crew(size, work=10**6).run(_record_shares, n, bounds)
    _assert_covers(bounds, n)
    lengths = bounds[:, 1] - bounds[:, 0]
    assert lengths.max() - lengths.min() <= 1


@given(
    degrees=st.lists(st.integers(0, 30), max_size=60),
    size=st.integers(1, 9),
    dtype=st.sampled_from([np.int32, np.int64]),
)
def test_shares_of_rows_cover_all_rows_and_balance_entries(degrees, size, dtype):
    indptr = np.concatenate(([0], np.cumsum(degrees, dtype=dtype))).astype(dtype)
    bounds = np.full((size, 2), -1)
    crew(size, work=10**6).run(_record_rows, indptr, bounds)
    _assert_covers(bounds, len(degrees))
    steps = [indptr[hi] - indptr[lo] + hi - lo for lo, hi in bounds]
    fair = (int(indptr[-1]) + len(degrees)) / size
    # a row is not divided, and rounding down leaves at most `size` steps to the last member
    assert max(steps) <= fair + max([0, *degrees]) + 1 + size


@kernel
def _take_all(team, n, chunk, rounds, taken):
    for _ in range(rounds):
        start = next_chunk(team, n, chunk)
        while start >= 0:
            for i in range(start, min(start + chunk, n)):
                atomic_add(taken, i, 1)
            start = next_chunk(team, n, chunk)
        if barrier(team):
            return


@pytest.mark.parametrize(("n", "chunk"), [(0, 1), (1, 7), (1000, 1), (1000, 7), (999, 1000)])
def test_each_chunk_is_taken_once_in_every_round(n, chunk, threads):
    rounds = 200
    taken = np.zeros(n, np.int64)
    crew(threads, work=10**6).run(_take_all, n, chunk, rounds, taken)
    assert (taken == rounds).all()
