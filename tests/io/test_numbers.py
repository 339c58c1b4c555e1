"""Numbers in text become the same float64 as `float()` makes of them."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from matchwood.engines.cpu import crew, kernel
from matchwood.io import cpu
from matchwood.io.tables import Layout, read_records
from matchwood.io.text import Text


def weights(words: list[str]) -> np.ndarray:
    content = "".join(f"0 0 {word}\n" for word in words).encode()
    w = read_records(Text.of("list.txt", content), 0, Layout(3, w=2), 1).w
    assert w is not None
    return w


def same(words: list[str]) -> None:
    expected = np.array([float(word) for word in words])
    different = weights(words).view(np.int64) != expected.view(np.int64)
    assert not different.any(), [words[i] for i in np.flatnonzero(different)[:5]]


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(5e-324)
@example(2.2250738585072014e-308)
@example(2.225073858507201e-308)
@example(1.7976931348623157e308)
@example(-0.0)
@example(9007199254740993.0)
def test_shortest_form(value: float) -> None:
    words = [repr(value), f"{value:.17e}", f"{value:+.3e}", f"{value:.25e}"]
    same([word for word in words if np.isfinite(float(word))])  # rounded up, it may be infinite


@pytest.mark.slow
@given(st.from_regex(r"[+-]?[0-9]{1,25}(\.[0-9]{0,25})?([eE][+-]?[0-9]{1,2})?", fullmatch=True))
@example("0" * 30 + "1")
@example("0." + "0" * 30 + "1e30")
@example("1e-00000000000000000001")
def test_any_decimal(word: str) -> None:
    same([word])


def test_many_random_values() -> None:
    rng = random.Random(1)
    words = [repr(rng.random()) for _ in range(5000)]
    bits = (struct.unpack("d", struct.pack("Q", rng.getrandbits(64)))[0] for _ in range(5000))
    words += [repr(value) for value in bits if np.isfinite(value)]
    words += [
        f"{rng.getrandbits(rng.randrange(1, 63))}e{rng.randrange(-60, 60)}" for _ in range(5000)
    ]
    same(words)


@pytest.mark.slow
def test_long_numbers_are_decided_in_the_kernel() -> None:
    """More than 19 digits: only those between two floats are asked of `float()`."""

    @kernel
    def read(team, text, starts, status):  # type: ignore[no-untyped-def]
        for i in range(starts.size):
            _, _, status[i] = cpu.number(text, starts[i])

    rng = random.Random(3)
    words = [f"{rng.random():.30f}" for _ in range(500)] + [
        f"{rng.random():.18e}" for _ in range(500)
    ]
    same(words)
    content = np.frombuffer("".join(f"{word}\n" for word in words).encode(), np.uint8)
    starts = np.flatnonzero(np.append(10, content[:-1]) == 10)
    status = np.ones(starts.size, np.int64)
    crew(1, work=1).run(read, content, starts, status)
    assert (status == cpu.DONE).mean() > 0.99


def test_half_way_between_two_floats() -> None:
    """Ties go to the even one: m / 2**k with one bit more than a float64 has."""
    rng = random.Random(2)
    words = []
    for _ in range(5000):
        m = 2 * ((1 << 52) | rng.getrandbits(52)) + 1
        k = rng.randrange(4)
        words += [str(m), str(m + 1), str(m - 1), f"{m * 5**k}e-{k}"]
    same(words)
