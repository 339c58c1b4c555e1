"""The counter-based random numbers: their definition, and all engines' copies of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood.generators import streams
from matchwood.generators.streams import cpu
from matchwood.primitives.hashing import GOLDEN
from support import from_python

WORD = st.integers(0, 2**64 - 1)


def test_values_are_splitmix64():
    """The first outputs of SplitMix64 started at 1234567, as published with the algorithm."""
    numbers = [streams.value(1234567, k) for k in range(1, 6)]
    assert numbers == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


_value = from_python(cpu.value)


@given(WORD, WORD)
def test_numbers_equal_arrays(key, k):
    array = streams.values(key, np.array([k], np.uint64))
    assert array.dtype == np.uint64
    assert int(array[0]) == streams.value(key, k)
    assert int(_value(np.uint64(key), np.uint64(k))) == streams.value(key, k)


def test_step_is_the_golden_one():
    assert int(cpu.STEP) == GOLDEN


def test_streams_differ():
    keys = {streams.key(seed, stream) for seed in range(50) for stream in range(6)}
    assert len(keys) == 300


@pytest.mark.parametrize(
    ("probability", "bits", "bound"),
    [(0, 32, 0), (1, 32, 2**32), (0.5, 53, 2**52), (0.1, 53, 900719925474099), (1, 53, 2**53)],
)
def test_threshold(probability, bits, bound):
    assert streams.threshold(probability, bits) == bound
