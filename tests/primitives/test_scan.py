"""Exclusive scan: engines agree with the definition, at any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from matchwood.errors import CheckFailed
from matchwood.primitives.scan import exclusive_scan
from matchwood.primitives.scan.check import check_exclusive_scan
from matchwood.primitives.scan.reference import exclusive_scan as by_definition
from support import THREADS, looped

INDEX = [np.int32, np.int64]


@looped("kind", INDEX)
@looped("result", [None, *INDEX])
@looped("size", [0, 1, 2, 5, 1000])
def test_engines_equal_the_definition(engine, kind, result, size):
    counts = np.random.default_rng(size).integers(-5, 50, size).astype(kind)
    before = counts.copy()
    offsets = exclusive_scan(counts, dtype=result, engine=engine)
    assert offsets.dtype == (kind if result is None else result)
    check_exclusive_scan(counts, offsets)
    np.testing.assert_array_equal(offsets, by_definition(counts, dtype=result))
    np.testing.assert_array_equal(counts, before)


@looped("size", [0, 1, 3, 70_000])
def test_threads_do_not_matter(size):
    counts = np.random.default_rng(1).integers(0, 9, size).astype(np.int32)
    expected = np.concatenate([[0], np.cumsum(counts)])
    for threads in THREADS:
        np.testing.assert_array_equal(exclusive_scan(counts, threads=threads), expected)


@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=50), st.integers(1, 5))
def test_random_counts(values, threads):
    counts = np.array(values, dtype=np.int32)
    offsets = exclusive_scan(counts, dtype=np.int64, threads=threads)
    assert offsets.tolist() == [sum(values[:i]) for i in range(len(values) + 1)]


def test_views_are_read_in_their_order():
    counts = np.arange(20, dtype=np.int64)[::-2]
    check_exclusive_scan(counts, exclusive_scan(counts))


LARGEST = 2**31 - 1


@looped("name", ["reference", "cpu"])
@looped(
    "values",
    [[LARGEST, 1], [LARGEST, 1, -1], [-LARGEST, -2], [1, LARGEST, -LARGEST], [0, LARGEST, LARGEST]],
)
def test_a_sum_that_does_not_fit_is_an_error(name, values):
    counts = np.array(values, dtype=np.int32)
    with pytest.raises(ValueError, match="does not fit int32"):
        exclusive_scan(counts, engine=name)
    assert exclusive_scan(counts, dtype=np.int64, engine=name)[-1] == sum(values)


@looped("name", ["reference", "cpu"])
def test_the_last_that_fits_is_none(name):
    for values in ([LARGEST], [LARGEST, 0], [-LARGEST, -1], [LARGEST, -LARGEST, -LARGEST, -1]):
        offsets = exclusive_scan(np.array(values, dtype=np.int32), engine=name)
        assert offsets[-1] == sum(values)


def test_bad_input():
    with pytest.raises(TypeError, match="counts must be int32 or int64, got float64"):
        exclusive_scan(np.ones(3))
    with pytest.raises(TypeError, match="got >i4"):
        exclusive_scan(np.ones(3, dtype=">i4"))
    with pytest.raises(ValueError, match=r"one-dimensional, got shape \(2, 2\)"):
        exclusive_scan(np.ones((2, 2), dtype=np.int32))
    with pytest.raises(TypeError, match="dtype must be int32 or int64"):
        exclusive_scan(np.ones(3, dtype=np.int32), dtype=np.float32)
    with pytest.raises(ValueError, match="threads must be at least 1"):
        exclusive_scan(np.ones(3, dtype=np.int32), threads=0)
    with pytest.raises(ValueError, match="engine must be"):
        exclusive_scan(np.ones(3, dtype=np.int32), engine="quantum")


def test_the_check_sees_what_is_broken():
    counts = np.array([3, 0, 2], dtype=np.int32)
    right = exclusive_scan(counts)
    check_exclusive_scan(counts, right)
    with pytest.raises(CheckFailed, match="4 offsets expected"):
        check_exclusive_scan(counts, right[:-1])
    with pytest.raises(CheckFailed, match=r"offsets\[0\] must be 0"):
        check_exclusive_scan(counts, right + 1)
    for i in range(1, 4):
        broken = right.copy()
        broken[i] += 1
        with pytest.raises(CheckFailed, match=rf"offsets\[{i}\] - offsets\[{i - 1}\]"):
            check_exclusive_scan(counts, broken)
