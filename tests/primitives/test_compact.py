"""Compaction: what the mask keeps, in order, at any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood.errors import CheckFailed
from matchwood.primitives.compact import FLAGS, VALUES, compact
from matchwood.primitives.compact.check import check_compact
from matchwood.primitives.compact.reference import compact as by_definition
from support import THREADS, looped


@looped("kind", FLAGS)
@looped("size", [0, 1, 63, 64, 65, 1000])
def test_engines_equal_the_definition(engine, kind, size):
    mask = np.random.default_rng(size).integers(-1, 2, size).astype(kind)
    kept = compact(mask, engine=engine)
    right = by_definition(mask)
    assert kept.dtype == right.dtype == np.int32
    np.testing.assert_array_equal(kept, right)
    check_compact(mask, None, kept)


@looped("kind", VALUES)
def test_values_of_every_type(engine, kind):
    rng = np.random.default_rng(1)
    mask, values = rng.random(300) < 0.3, rng.integers(0, 99, 300).astype(kind)
    kept = compact(mask, values, engine=engine)
    assert kept.dtype == values.dtype
    np.testing.assert_array_equal(kept, values[mask])
    check_compact(mask, values, kept)


@looped("share", [0.0, 0.01, 0.5, 0.99, 1.0])
@looped("size", [1, 7, 130, 150_000])
def test_threads_do_not_matter(share, size):
    mask = np.random.default_rng(2).random(size) < share
    expected = np.flatnonzero(mask)
    for threads in THREADS:
        np.testing.assert_array_equal(compact(mask, threads=threads), expected)


@given(st.lists(st.tuples(st.booleans(), st.integers(-(2**63), 2**63 - 1)), max_size=200))
def test_random_masks(pairs):
    mask = np.array([flag for flag, _ in pairs], dtype=np.bool_)
    values = np.array([value for _, value in pairs], dtype=np.int64)
    kept = compact(mask, values, threads=3)
    assert kept.tolist() == [value for flag, value in pairs if flag]


def test_views_are_read_in_their_order():
    mask, values = np.arange(40)[::-2] % 3 == 0, np.arange(40, dtype=np.float32)[::-2]
    check_compact(mask, values, compact(mask, values))


def test_bad_input():
    with pytest.raises(TypeError, match=r"mask must be bool or .* got float64"):
        compact(np.ones(3))
    with pytest.raises(TypeError, match=r"values must be .* got complex128"):
        compact(np.ones(3, dtype=bool), np.ones(3, dtype=complex))
    with pytest.raises(ValueError, match="size of mask, got 2 and 3"):
        compact(np.ones(3, dtype=bool), np.ones(2))
    with pytest.raises(ValueError, match="one-dimensional"):
        compact(np.ones((3, 1), dtype=bool))


def test_the_check_sees_what_is_broken():
    mask = np.array([True, False, True, True])
    values = np.array([1.5, 2.5, np.nan, 4.5])
    right = compact(mask, values)
    check_compact(mask, values, right)
    with pytest.raises(CheckFailed, match="the mask keeps 3"):
        check_compact(mask, values, right[:2])
    with pytest.raises(CheckFailed, match=r"element 0 must be 1\.5"):
        check_compact(mask, values, right[::-1])
    with pytest.raises(CheckFailed, match="element 1 must be 2, of 2, got 1"):
        check_compact(mask, None, np.array([0, 1, 3]))
