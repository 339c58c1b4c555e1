"""Atomic operations when all members hit the same word at the same time."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.errors import TypingError

from matchwood.engines.cpu import (
    atomic_add,
    atomic_cas,
    atomic_exchange,
    atomic_max,
    atomic_min,
    atomic_or,
    back_off,
    barrier,
    crew,
    kernel,
    load_acquire,
    load_relaxed,
    stopping,
    store_relaxed,
    store_release,
)
from support import cores, from_python

INTEGERS = [np.int32, np.int64, np.uint32, np.uint64]
FLOATS = [np.float32, np.float64]
NUMBERS = INTEGERS + FLOATS
SIZE = 2 * cores() + 1
TIMES = 20_000  # operations of each member; all sums stay exact in float32


def run(function, *args):
    crew(SIZE, work=10**6).run(function, *args)


@kernel
def _add(team, cell, seen):
    if barrier(team):  # start together
        return
    for i in range(seen.shape[1]):
        seen[team.me, i] = atomic_add(cell, 1, 1)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_add_counts_every_call_and_returns_the_value_before(dtype):
    cell, seen = np.zeros(3, dtype), np.zeros((SIZE, TIMES), dtype)
    run(_add, cell, seen)
    assert cell.tolist() == [0, SIZE * TIMES, 0]
    assert np.array_equal(np.sort(seen, axis=None), np.arange(SIZE * TIMES, dtype=dtype))


@kernel
def _extremes(team, values, least, most, wrong):
    for i in range(values.shape[1]):
        value = values[team.me, i]
        if atomic_min(least, 0, value) < load_relaxed(least, 0):
            atomic_add(wrong, 0, 1)  # a minimum went up
        if atomic_max(most, 0, value) > load_relaxed(most, 0):
            atomic_add(wrong, 0, 1)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_min_and_max_find_the_extremes(dtype):
    rng = np.random.default_rng(1)
    if dtype in FLOATS:
        values = rng.normal(size=(SIZE, TIMES)).astype(dtype)
        least, most = np.full(1, np.inf, dtype), np.full(1, -np.inf, dtype)
    else:
        limits = np.iinfo(dtype)
        values = rng.integers(limits.min, limits.max, (SIZE, TIMES), dtype, endpoint=True)
        least, most = np.full(1, limits.max, dtype), np.full(1, limits.min, dtype)
    wrong = np.zeros(1, np.int64)
    run(_extremes, values, least, most, wrong)
    assert (least[0], most[0], wrong[0]) == (values.min(), values.max(), 0)


@kernel
def _increment_by_cas(team, cell, times):
    one = cell.dtype.type(1)
    for _ in range(times):
        expected = load_relaxed(cell, 0)
        while True:
            found = atomic_cas(cell, 0, expected, expected + one)
            if found == expected:
                break
            expected = found


@pytest.mark.parametrize("dtype", NUMBERS)
def test_compare_and_swap_loses_no_update(dtype):
    cell = np.zeros(1, dtype)
    run(_increment_by_cas, cell, TIMES)
    assert cell[0] == SIZE * TIMES


@kernel
def _claim(team, marks, mine):
    """Who claims each mark?  Exactly one member must see the old 0."""
    if barrier(team):
        return
    for i in range(marks.size):
        if atomic_cas(marks, i, 0, 1) == 0:
            mine[team.me, i] = 1


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, *NUMBERS])
def test_compare_and_swap_has_one_winner(dtype):
    marks, mine = np.zeros(TIMES, dtype), np.zeros((SIZE, TIMES), np.int64)
    run(_claim, marks, mine)
    assert (marks == 1).all()
    assert (mine.sum(axis=0) == 1).all()


@kernel
def _trade(team, cell, hands, times):
    for _ in range(times):
        hands[team.me] = atomic_exchange(cell, 0, hands[team.me])


@pytest.mark.parametrize("dtype", NUMBERS)
def test_exchange_neither_loses_nor_copies(dtype):
    cell, hands = np.array([99], dtype), np.arange(SIZE).astype(dtype)
    run(_trade, cell, hands, TIMES)
    assert sorted([*hands.tolist(), cell[0]]) == [*range(SIZE), 99]


@kernel
def _set_bits(team, words, bits):
    width = words.itemsize * 8
    for i in range(team.me, bits, team.size):  # neighbours' bits lie in the same word
        atomic_or(words, i // width, words.dtype.type(1) << words.dtype.type(i % width))


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.uint64])
def test_or_sets_all_bits(dtype):
    bits = 64 * 200 + 13
    words = np.zeros(bits // (np.dtype(dtype).itemsize * 8) + 1, dtype)
    run(_set_bits, words, bits)
    found = np.unpackbits(words.view(np.uint8), bitorder="little")
    assert found[:bits].all()
    assert not found[bits:].any()


@kernel
def _publish(team, flag, message, rounds, wrong):
    """Rank 0 writes the message, then the flag; the others read the flag, then the message."""
    for step in range(1, rounds + 1):
        if team.me == 0:
            for i in range(message.size):
                message[i] = step
            store_release(flag, 0, step)
        else:
            looks = 0
            while load_acquire(flag, 0) != step:
                if stopping(team):
                    return
                looks = back_off(looks)
            for i in range(message.size):
                if message[i] != step:
                    atomic_add(wrong, 0, 1)
        if barrier(team):
            return


@pytest.mark.parametrize("dtype", NUMBERS)
def test_what_was_written_before_a_release_is_seen_after_the_acquire(dtype):
    flag, message, wrong = np.zeros(1, dtype), np.zeros(64, np.int64), np.zeros(1, np.int64)
    run(_publish, flag, message, 2000, wrong)
    assert wrong[0] == 0


@kernel
def _copy(team, source, target):
    for i in range(team.me, source.size, team.size):
        store_relaxed(target, i, load_relaxed(source, i))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, *NUMBERS])
def test_relaxed_loads_and_stores_keep_the_value(dtype):
    source = np.arange(250).astype(dtype)
    if dtype in FLOATS:
        source[:4] = [np.nan, np.inf, -0.0, 1.5]
    target = np.zeros_like(source)
    run(_copy, source, target)
    assert target.tobytes() == source.tobytes()


@kernel
def _or_on_floats(team, cell):
    atomic_or(cell, 0, 1)


def test_an_operation_that_a_type_does_not_have_does_not_compile():
    with pytest.raises(TypingError):
        run(_or_on_floats, np.zeros(1))


def test_atomics_reach_strided_arrays():
    cells = np.zeros((4, 2), np.int64)
    run(_add, cells[:, 1], np.zeros((SIZE, 10), np.int64))
    assert cells.tolist() == [[0, 0], [0, SIZE * 10], [0, 0], [0, 0]]


def test_waiting_loops_may_relax_the_core():
    """The hint compiles on this processor and changes nothing."""
    from matchwood.engines.cpu.atomics import relax_core

    @from_python
    def twice(x):
        relax_core()
        return 2 * x

    assert twice(21) == 42
