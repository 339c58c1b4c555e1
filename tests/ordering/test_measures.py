"""Measures of an order, and permuted matrices."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given

import matchwood
from graphs import ZOO, path, rmat, shuffled, star
from matchwood.check import check_measures, check_permuted
from matchwood.ordering import (
    bandwidth,
    matrix_profile,
    max_wavefront,
    order_measures,
    permute,
    rms_wavefront,
)
from strategies import graphs


def some_order(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).permutation(n)


@pytest.mark.parametrize("name", ZOO)
def test_equals_the_reference(name: str) -> None:
    A = ZOO[name]()
    perm = some_order(A.shape[0])
    for order in (None, perm):
        expected = order_measures(A, order, engine="reference")
        for threads in (1, 2, 5):
            assert order_measures(A, order, threads=threads) == expected
    B, C = permute(A, perm, threads=3), permute(A, perm, engine="reference")
    for part in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(B, part), getattr(C, part))
        assert getattr(B, part).dtype == getattr(C, part).dtype
    assert order_measures(B) == order_measures(A, perm)
    check_measures(A, order_measures(A, perm), perm)
    check_permuted(A, perm, B)


@given(graphs(max_n=30, max_m=80))
def test_random_matrices(A: sp.csr_array) -> None:
    perm = some_order(A.shape[0], 7)
    B = permute(A, perm, threads=2)
    dense = A.toarray()[perm][:, perm]
    assert np.array_equal(B.toarray(), dense)
    assert B.has_sorted_indices
    assert order_measures(A, perm) == order_measures(A, perm, engine="reference")
    stored = sp.coo_array(permute(matchwood.graph((A.indptr, A.indices)), perm))
    assert bandwidth(A, perm) == (np.abs(stored.row - stored.col).max() if stored.nnz else 0)


def test_one_by_one() -> None:
    A = shuffled(rmat(8, 5), isolated=4)
    perm = matchwood.reverse_cuthill_mckee(A)
    found = order_measures(A, perm)
    assert (found.bandwidth, found.profile) == (bandwidth(A, perm), matrix_profile(A, perm))
    assert found.max_wavefront == max_wavefront(A, perm)
    assert found.rms_wavefront == rms_wavefront(A, perm)
    assert bandwidth(A, matchwood.rcm_ordering(A)) == found.bandwidth


def test_long_rows_and_other_types() -> None:
    A = star(500)
    perm = some_order(500)
    for kind in (np.float32, np.int8, np.int64, np.complex128, bool):
        B = permute(sp.csr_array(A.astype(kind)), perm, threads=2)
        assert B.dtype == kind
        assert np.array_equal(B.toarray(), A.toarray().astype(kind)[perm][:, perm])


def test_nothing_and_one() -> None:
    assert order_measures(sp.csr_array((0, 0))).bandwidth == 0
    assert permute(sp.csr_array((0, 0)), []).shape == (0, 0)
    assert order_measures(sp.csr_array((1, 1))).max_wavefront == 1


def test_the_checks_find_every_fault() -> None:
    A = path(5)
    perm = some_order(5)
    right = order_measures(A, perm)
    for name in ("bandwidth", "profile", "max_wavefront", "rms_wavefront"):
        wrong = dataclasses.replace(right, **{name: getattr(right, name) + 1})
        with pytest.raises(matchwood.CheckFailed, match=f"measures: {name} is"):
            check_measures(A, wrong, perm)
    B = permute(A, perm)
    changed, unsorted, less, more = (B.copy() for _ in range(4))
    changed.data[3] += 1
    row = int(np.diff(B.indptr).argmax())
    two = slice(B.indptr[row], B.indptr[row] + 2)
    unsorted.indices[two] = unsorted.indices[two][::-1].copy()
    less = sp.csr_array(less.tolil()[:, :])
    less.data[0] = 0
    less.eliminate_zeros()
    more = sp.csr_array(more + sp.eye_array(5))
    for matrix, message in [
        (changed, "but must be"),
        (unsorted, "is not sorted"),
        (less, "but is not stored"),
        (more, "is stored, but not so in A"),
        (path(4), r"shape must be \(5, 5\)"),
    ]:
        with pytest.raises(matchwood.CheckFailed, match=message):
            check_permuted(A, perm, matrix)


def test_bad_permutations() -> None:
    A = path(4)
    for perm, error, message in [
        ([0, 1, 2], ValueError, r"perm must have shape \(4,\), got \(3,\)"),
        ([0, 1, 2, 4], ValueError, "perm must hold 0..3, got 4"),
        ([0, 1, 1, 2], ValueError, "perm must hold every row once, but 3 is missing"),
        ([0.0, 1, 2, 3], TypeError, "perm must hold integers"),
    ]:
        for function in (permute, bandwidth, order_measures):
            with pytest.raises(error, match=message):
                function(A, perm)


def test_input_is_not_changed() -> None:
    A = ZOO["duplicates, unsorted"]()
    before = A.copy()
    perm = some_order(A.shape[0])
    kept = perm.copy()
    permute(A, perm)
    order_measures(A, perm)
    for name in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(A, name), getattr(before, name))
    assert np.array_equal(perm, kept)
