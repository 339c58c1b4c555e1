"""Contraction: the reference's bits from every engine and team, for groups of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import matchwood
from graphs import complete, path, rmat, star
from matchwood.errors import CheckFailed
from matchwood.primitives.contract import contract
from matchwood.primitives.contract.check import check_contracted
from strategies import graphs

TEAMS = (1, 2, 3, 7)


def view_of(A: Any, kind: Any = np.float64) -> Any:
    weighted = matchwood.generators.random_weights(A, dtype=kind)
    return matchwood.graph(weighted).undirected_weights()


def assert_same(found: Any, expected: Any) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)


def matrix_of(arrays: Any) -> sp.csr_array:
    n = arrays[0].size - 1
    return sp.csr_array((arrays[2], arrays[1], arrays[0]), shape=(n, n))


@given(graphs(max_n=30, max_m=60), st.integers(0, 99), st.integers(1, 9))
def test_equals_the_reference(A: Any, seed: int, count: int) -> None:
    view = matchwood.graph(A).undirected_weights()
    label = np.random.default_rng(seed).integers(0, count, view.n)
    expected = contract(*view, label, count, engine="reference")
    check_contracted(view, label, count, matrix_of(expected), "contraction")
    for threads in TEAMS:
        assert_same(contract(*view, label, count, threads=threads), expected)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_result_is_exactly_symmetric(kind: type) -> None:
    for A in (rmat(9, 8), star(300), complete(40), path(50)):
        view = view_of(A, kind)
        label = np.random.default_rng(1).integers(0, 11, view.n)
        made = matrix_of(contract(*view, label, 11, threads=3))
        assert made.dtype == kind
        assert (made != made.T).nnz == 0
        assert not made.diagonal().any()


def test_bad_arguments() -> None:
    indptr, indices, data = view_of(path(4))
    label = np.array([0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"contract: label must lie in 0..1|contract: label must"):
        contract(indptr, indices, data, np.array([0, 2, 1, 1]), 2)
    with pytest.raises(ValueError, match="contract: label must have"):
        contract(indptr, indices, data, label[:3], 2)
    with pytest.raises(TypeError, match="contract: label must hold integers"):
        contract(indptr, indices, data, label / 2, 2)
    with pytest.raises(TypeError, match="contract: data must be"):
        contract(indptr, indices, None, label, 2)
    with pytest.raises(ValueError, match="contract: count must be at least 0"):
        contract(indptr, indices, data, label, -1)
    upper = sp.triu(sp.csr_array((data, indices, indptr), shape=(4, 4)), format="csr")
    with pytest.raises(ValueError, match="contract: A was taken for symmetric"):
        contract(upper.indptr, upper.indices, upper.data, np.arange(4), 4)


def test_the_check_fails() -> None:
    view = view_of(path(6))
    label = np.array([0, 0, 1, 1, 2, 2])
    right = matrix_of(contract(*view, label, 3))
    check_contracted(view, label, 3, right, "contraction")
    with pytest.raises(CheckFailed, match=r"contraction: entry \(0, 1\) of the matrix is"):
        check_contracted(view, label, 3, right * 2, "contraction")
    with pytest.raises(CheckFailed, match="is missing"):
        check_contracted(view, label, 3, sp.csr_array((3, 3)), "contraction")


@pytest.mark.gpu
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_the_gpu_equals_the_reference(kind: type) -> None:
    import cupy

    for A in (rmat(9, 8), star(300), complete(40), path(50)):
        view = view_of(A, kind)
        label = np.random.default_rng(1).integers(0, 11, view.n).astype(view.indices.dtype)
        expected = contract(*view, label, 11, engine="reference")
        there = [cupy.asarray(array) for array in (*view, label)]
        assert_same([array.get() for array in contract(*there, 11)], expected)
        assert_same(contract(*view, label, 11, engine="gpu"), expected)
