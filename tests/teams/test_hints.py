"""What kernels tell the compiler changes their speed, never their results."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from matchwood.engines.cpu import hints
from matchwood.engines.cpu.hints import (
    converted,
    count_ones,
    deposited,
    extracted,
    natural,
    opaque,
    prefetch_write,
    rotated,
    select,
    trailing_zeros,
    with_item,
)
from support import from_python, looped


@from_python
def _sum(values):
    total = 0.0
    for i in range(natural(np.int64(0)), values.size):
        prefetch_write(values, i + 1000)  # past the end at last
        total += values[natural(i)]
    return total


def test_natural_and_prefetch_leave_values_alone():
    values = np.arange(50.0)
    assert _sum(values) == values.sum()
    np.testing.assert_array_equal(values, np.arange(50.0))


@from_python
def _narrow_sum(a, b):
    return converted(a + b, a)


@looped("kind", [np.int32, np.int64, np.float32, np.float64])
def test_converted_has_the_type_of_the_example(kind):
    a = kind(16_777_216)
    result = _narrow_sum(a, kind(1))
    assert result == np.add(a, kind(1), dtype=kind)  # float32 has no 16777217


def test_converted_cuts_and_wraps():
    assert _narrow_sum(np.int32(2**31 - 1), np.int64(1)) == -(2**31)
    assert _narrow_sum(np.int64(1), np.float64(2.9)) == 3


@from_python
def _shift_in(items, item):
    for place in range(len(items)):
        items, item = with_item(items, place, item), items[place]
    return items


@pytest.mark.slow
@looped("size", [1, 2, 5])
def test_with_item(size):
    items = tuple(float(k) for k in range(size))
    assert _shift_in(items, -1.0) == (-1.0, *items[:-1])


@from_python
def _ones(word):
    return count_ones(word)


@from_python
def _zeros(word):
    return trailing_zeros(word)


@from_python
def _turned(word, left):
    return rotated(word, left)


def test_bits():
    for word in (1, 2, 0xF0, 2**63, 2**64 - 1, 0x123456789ABCDEF0):
        assert _ones(np.uint64(word)) == word.bit_count()
        assert _zeros(np.uint64(word)) == (word & -word).bit_length() - 1
    assert _ones(np.uint64(0)) == 0
    assert _turned(np.uint32(0x80000001), np.uint32(4)) == 0x00000018
    assert _turned(np.uint32(0x12345678), np.uint32(0)) == 0x12345678


@from_python
def _spread(bits, mask):
    return deposited(bits, mask)


@from_python
def _joined(bits, mask):
    return extracted(bits, mask)


@pytest.mark.slow
def test_bits_to_and_from_a_mask():
    """By an instruction where the processor has one, and by a loop."""
    rng = np.random.default_rng(1)
    masks = [
        0,
        1,
        2**63,
        2**64 - 1,
        0xFF00FF,
        0x8000000000000001,
        *map(int, rng.integers(1 << 62, size=40)),
    ]
    words = [0, 1, 2**63, 2**64 - 1, *map(int, rng.integers(1 << 62, size=20))]
    for to, back in ((_spread, _joined), (njit(hints._deposit), njit(hints._extract))):
        for mask in masks:
            places = [k for k in range(64) if mask >> k & 1]
            for word in words:
                given = np.uint64(word), np.uint64(mask)
                spread = sum((word >> i & 1) << k for i, k in enumerate(places))
                joined = sum((word >> k & 1) << i for i, k in enumerate(places))
                assert (to(*given), back(*given)) == (spread, joined)


@from_python
def _larger(x, y):
    return select(x > y, x, y)


@looped("kind", [np.int32, np.uint64, np.float32, np.float64])
def test_select(kind):
    assert _larger(kind(2), kind(7)) == _larger(kind(7), kind(2)) == 7
    assert _larger(kind(2), kind(2)) == 2


@from_python
def _same(word):
    return opaque(word)


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint32, np.uint64])
def test_opaque_is_the_same_number(kind):
    for word in (0, 1, 2**31 - 1, np.iinfo(kind).max, np.iinfo(kind).min):
        assert _same(kind(word)) == word
