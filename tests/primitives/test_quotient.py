"""Graphs added up by labels, and labels numbered."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import matchwood
from graphs import ZOO, random_graph, rmat
from matchwood.primitives.number import number_labels
from matchwood.primitives.quotient import quotient
from matchwood.primitives.quotient.check import check_quotient


def kinds(A: Any) -> Any:
    yield None
    if A.dtype.kind == "f":
        yield A.data
    whole = np.ceil(100 * A.data.astype(float))
    yield whole.astype(np.int64)
    yield whole.astype(np.int32)


def test_zoo() -> None:
    rng = np.random.default_rng(2)
    for name, make in ZOO.items():
        A = make()
        A.sum_duplicates()
        n = A.shape[0]
        count = max(1, n // 3)
        labels = rng.integers(0, count, n).astype(A.indices.dtype)
        for data in kinds(A):
            arrays = (A.indptr, A.indices, data, labels, count)
            expected = quotient(*arrays, engine="reference")
            for threads in (1, 2, 5):
                found = quotient(*arrays, threads=threads)
                for one, other in zip(found, expected, strict=True):
                    assert one.dtype == other.dtype, name
                    assert np.allclose(one, other, rtol=1e-5), name
            check_quotient(*arrays[:4], found)


def test_threads_give_the_same_bits() -> None:
    A = rmat(11, 8)
    labels = np.random.default_rng(0).integers(0, 300, A.shape[0]).astype(np.int32)
    expected = quotient(A.indptr, A.indices, A.data, labels, 300, threads=1)
    for threads in (2, 3, 7):
        found = quotient(A.indptr, A.indices, A.data, labels, 300, threads=threads)
        assert all(map(np.array_equal, found, expected))


def test_symmetric_is_the_same_with_a_pass_less() -> None:
    A = random_graph(200, 900)
    labels = np.random.default_rng(0).integers(0, 30, 200).astype(np.int32)
    arrays = (A.indptr, A.indices, None, labels, 30)
    assert all(map(np.array_equal, quotient(*arrays), quotient(*arrays, symmetric=True)))


def test_twice_is_once() -> None:
    """To add up in two steps, by labels and by labels of labels, is to add up by the latter."""
    A = random_graph(150, 600)
    rng = np.random.default_rng(4)
    fine, coarse = (
        rng.integers(0, 40, 150).astype(np.int32),
        rng.integers(0, 7, 40).astype(np.int32),
    )
    q = quotient(A.indptr, A.indices, None, fine, 40)
    twice = quotient(q.indptr, q.indices, q.data, coarse, 7, inner=q.inner)
    once = quotient(A.indptr, A.indices, None, coarse[fine], 7)
    assert all(map(np.array_equal, twice, once))


def test_the_check_can_fail() -> None:
    A = random_graph(40, 100)
    labels = (np.arange(40) % 6).astype(np.int32)
    found = quotient(A.indptr, A.indices, None, labels, 6)
    for field in ("data", "inner", "indices"):
        spoiled = found._replace(**{field: getattr(found, field).copy()})
        getattr(spoiled, field)[2] += 1
        with pytest.raises(matchwood.CheckFailed):
            check_quotient(A.indptr, A.indices, None, labels, spoiled)


def test_bad_input() -> None:
    A = random_graph(10, 20)
    arrays = (A.indptr, A.indices, A.data)
    labels = np.zeros(10, np.int32)
    with pytest.raises(ValueError, match=r"quotient: labels must lie within 0\.\.1, got 5"):
        quotient(*arrays, labels + 5, 2)
    with pytest.raises(ValueError, match="quotient: labels must have 10 elements"):
        quotient(*arrays, labels[:9], 2)
    with pytest.raises(TypeError, match="quotient: labels must be int32"):
        quotient(*arrays, labels.astype(np.int64), 2)
    with pytest.raises(TypeError, match="quotient: inner must be float64"):
        quotient(*arrays, labels, 2, inner=np.zeros(10, np.int64))
    with pytest.raises(ValueError, match="quotient: count must be at least 0"):
        quotient(*arrays, labels, -1)


def test_labels_are_numbered() -> None:
    rng = np.random.default_rng(7)
    for n in (0, 1, 5, 1000):
        for kind in (np.int32, np.int64):
            labels = rng.integers(0, max(n, 1), n).astype(kind)
            count, numbers = number_labels(labels, engine="reference")
            assert numbers.dtype == kind
            first = [int(np.flatnonzero(numbers == c)[0]) for c in range(count)]
            assert first == sorted(first)
            for threads in (1, 3):
                found = number_labels(labels, threads=threads)
                assert found[0] == count
                assert np.array_equal(found[1], numbers)
