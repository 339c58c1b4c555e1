"""What members of a team call: machine code for the types of the arguments."""

from __future__ import annotations

from collections import namedtuple
from typing import NamedTuple

import numpy as np

from matchwood.engines.cpu import code, crew, device, kernel


class Single(NamedTuple):
    first: object


@kernel
def add_first(team, record, numbers):
    """A record's first number goes to the member's place."""
    numbers[team.me] += record.first[0]


@kernel
def apply(team, function, numbers):
    numbers[team.me] = function(numbers[team.me])


@device
def doubled(x):
    return 2 * x


@device
def negated(x):
    return -x


class Both(NamedTuple):
    single: Single
    count: int


@kernel
def walk(team, both, numbers, out):
    """Variables that are assigned once, before, within and after loops, and others in each turn."""
    first = both.single.first
    total = -1
    for i in range(both.count):
        record = Both(Single(numbers), i)  # anew in each turn
        step = numbers[i % len(numbers)]
        if step < 0:
            continue
        before = total
        for k in range(i):
            inner = step * k + record.count
            if inner > 40:
                break
            total += inner - first[0]
        out[i] = before + record.single.first[0]
        if total > 2000:
            last = total
            out[0] = last
            return
    out[0] = total


@kernel
def look(team, flat, table, columns, out):
    """Arrays as kernels see them: of one and two dimensions, by negative numbers, in parts."""
    part = flat[1:-1]
    both = (part, flat) if flat[0] > 0 else (flat, part)
    rows, width = table.shape
    out[0] = flat[-1] + part[-1] + both[0][0] + len(part) + flat.size
    out[1] = table[-1, 1] + table[0][-1] + rows * width + columns[1, 2] + columns.strides[0]
    out[2] = part.itemsize + table[0, ::2][1] + columns[:, 2][1]
    for row in table:
        for x in row:
            out[3] += x * len(row)
    for i in range(part.size):
        part[i] += part[i - 1]
    table[rows - 1, -1] = columns.T[2, 0]


def test_arrays_in_all_ways_of_looking_at_them():
    given = np.arange(5, 12), np.arange(6).reshape(2, 3), np.asfortranarray(np.eye(3, 4, 1) * 7)
    given = given[0], given[1], given[2].astype(np.int64)
    expected = (*map(np.copy, given[:2]), given[2], np.zeros(4, np.int64))
    look.py_func(None, *expected)
    found = (*map(np.copy, given[:2]), given[2], np.zeros(4, np.int64))
    crew(1, work=1).run(look, *found)
    for a, b in zip(expected, found, strict=True):
        assert np.array_equal(a, b)


def test_variables_in_branches_and_loops():
    """Which of them are in memory is ours to choose; Python is what they are compared with."""
    numbers = np.array([3, -1, 5, 0, 2], np.int64)
    for count in (0, 1, 4, 9, 60):
        both, out, expected = Both(Single(np.full(1, 7)), count), np.zeros(60), np.zeros(60)
        crew(1, work=1).run(walk, both, numbers, out)
        walk.py_func(None, both, numbers, expected)
        assert out.tolist() == expected.tolist()


def test_records_of_one_name_take_no_test_of_types(monkeypatch):
    """Numba knows two such classes apart only by a long way, which members do not go."""
    Pair, Other = (namedtuple("Pair", ["first", "second"]) for _ in range(2))
    one, team = np.ones(1), crew(2, work=10**9)
    numbers = np.zeros(2)
    for cls in (Pair, Other):
        team.run(add_first, cls(one, one), numbers)
    asked = []
    monkeypatch.setattr(code, "address_of", lambda *given: asked.append(given))
    for cls in (Pair, Other, Pair):
        team.run(add_first, cls(one, one), numbers)
    assert numbers.tolist() == [5, 5]
    assert not asked


def test_arguments_of_each_type_have_their_own_code():
    """Numbers of NumPy, large and small integers, arrays that are not aligned, functions."""
    team, place = crew(1, work=1), np.zeros(1, np.float64)
    values = (3, np.float32(0.5), True, 2**63, np.int8(-4))
    for value in values:
        place[0] = 0
        team.run(add_first, Single((value,)), place)
        assert place[0] == float(value)
    bytes_ = np.zeros(17, np.uint8)
    shifted = bytes_[1:].view(np.float64)
    shifted[0] = 7
    place[0] = 0
    for first in (np.full(1, 7.0), shifted):
        team.run(add_first, Single(first), place)
    assert place[0] == 14
    for function in (doubled, negated, doubled):
        team.run(apply, function, place)
    assert place[0] == -56
