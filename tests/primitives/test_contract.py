"""Contraction: the reference's bits from every engine and team, for groups of any size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import matchwood
from graphs import ZOO, complete, path, random_graph, rmat, star
from matchwood import engines
from matchwood.errors import CheckFailed
from matchwood.primitives.contract import (
    Contracted,
    contract,
    trusted_contract_measured,
    trusted_contract_pattern,
    trusted_sums,
)
from matchwood.primitives.contract import cpu as contract_cpu
from matchwood.primitives.contract.check import check_contracted
from strategies import graphs
from support import REST, looped

TEAMS = (1, 2, 3, 7)
SUMS = {None: np.int64, np.int32: np.int64}  # types of sums that differ from those of the data


def view_of(A: Any, kind: Any = np.float64) -> Any:
    weighted = matchwood.generators.random_weights(A, dtype=kind)
    return matchwood.graph(weighted).undirected_weights()


def assert_same(found: Any, expected: Any) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        if theirs is None:
            assert ours is None
            continue
        assert ours.dtype == theirs.dtype
        assert np.array_equal(ours, theirs)


def whole(*arrays: Any, engine: str, **options: Any) -> Contracted:
    """What an engine makes of arrays that have passed a gate, its diagonal too."""
    module = engines.load("matchwood.primitives.contract", engine)
    return Contracted(*module.contract(*arrays, loops=True, symmetric=True, **options))


def matrix_of(arrays: Any) -> sp.csr_array:
    n = arrays[0].size - 1
    return sp.csr_array((arrays[2], arrays[1], arrays[0]), shape=(n, n))


WAYS = [{"loops": loops, "symmetric": symmetric} for loops in (0, 1) for symmetric in (0, 1)]


def valued(view: Any, kind: Any) -> Any:
    """The view with values of that type, symmetric where it is; None: without."""
    if kind is None:
        return view._replace(data=None)
    u = np.repeat(np.arange(view.n), np.diff(view.indptr))
    scale = 3**20 / 7 if np.dtype(kind).itemsize == 8 or kind == np.float32 else 1
    values = np.random.default_rng(5).integers(-9, 9, (view.n, view.n)) * scale
    return view._replace(data=(values + values.T)[u, view.indices].astype(kind))


@pytest.mark.slow
@given(graphs(max_n=30, max_m=60), st.integers(0, 99), st.integers(1, 9))
def test_equals_the_reference(A: Any, seed: int, count: int) -> None:
    G = matchwood.graph(A)
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, count, G.n)
    for way in WAYS:
        options: Any = {name: bool(given) for name, given in way.items()}
        pattern = G.undirected_pattern() if options["symmetric"] else G.directed_pattern()
        for kind in (np.float32, np.float64, np.int64, np.int32, None):
            view = valued(pattern, kind)
            if options["loops"]:
                options["inner"] = rng.integers(-99, 99, G.n).astype(SUMS.get(kind, kind))
            expected = contract(*view, labels, count, engine="reference", **options)
            inner = options.get("inner")
            check_contracted(view, labels, count, expected, "sums", inner=inner)
            for threads in TEAMS:
                found = contract(*view, labels, count, threads=threads, **options)
                assert_same(found, expected)


@pytest.mark.slow
@pytest.mark.parametrize("wide", REST)
def test_zoo(wide: bool) -> None:
    """Those with indices of 64 bits compile every kernel once more."""
    rng = np.random.default_rng(2)
    for make in ZOO.values():
        A = make()
        if (A.indices.dtype == np.int64) != wide:
            continue
        A.sum_duplicates()
        n = A.shape[0]
        count = max(1, n // 3)
        labels = rng.integers(0, count, n)
        whole = np.ceil(100 * A.data.astype(float)).astype(np.int64)
        for data in (None, whole, *([A.data] if A.dtype.kind == "f" else [])):
            arrays = (A.indptr, A.indices, data, labels, count)
            options: Any = {"loops": True, "symmetric": False}
            expected = contract(*arrays, engine="reference", **options)
            check_contracted(arrays[:3], labels, count, expected, "sums")
            for threads in TEAMS:
                assert_same(contract(*arrays, threads=threads, **options), expected)


def test_the_product_with_the_matrix_of_groups() -> None:
    """Integers are added up exactly, on the diagonal too."""
    A = sp.csr_array(rmat(8, 8))
    A.data = np.random.default_rng(0).integers(-(2**50), 2**50, A.nnz)
    A = sp.csr_array(A + A.T + sp.diags_array(np.arange(A.shape[0]), dtype=np.int64))
    A.sort_indices()
    labels = np.random.default_rng(1).integers(0, 20, A.shape[0])
    S = sp.csr_array((np.ones(labels.size, np.int64), (np.arange(labels.size), labels)))
    wanted = (S.T @ A @ S).toarray()
    for symmetric in (False, True):
        options: Any = {"loops": True, "symmetric": symmetric}
        made = contract(A.indptr, A.indices, A.data, labels, 20, **options)
        assert made.data.dtype == made.inner.dtype == np.int64
        assert (matrix_of(made).toarray() + np.diag(made.inner) == wanted).all()


def test_twice_is_once() -> None:
    """To contract by labels, then by labels of labels, is to contract by the latter."""
    A = random_graph(150, 600)
    rng = np.random.default_rng(4)
    fine, coarse = rng.integers(0, 40, 150), rng.integers(0, 7, 40)
    between = contract(A.indptr, A.indices, None, fine, 40, loops=True)
    twice = contract(*between[:3], coarse, 7, loops=True, inner=between.inner)
    assert_same(twice, contract(A.indptr, A.indices, None, coarse[fine], 7, loops=True))


def test_sums_that_fit_32_bits() -> None:
    """The same numbers; rows longer than a block, and a sum of 2^31 that does not fit."""
    for A in (star(700), rmat(9, 8)):
        G = matchwood.graph(A)
        view = G.undirected_pattern()
        labels = np.random.default_rng(3).integers(0, 90, G.n).astype(view.indices.dtype)
        expected = contract(*view[:2], None, labels, 90, loops=True, engine="reference")
        for most, kind in ((view.nnz, np.int32), (2**31 - 1, np.int32), (2**31, np.int64)):
            for threads in TEAMS:
                found = Contracted(*contract_cpu.quotient(
                    *view[:2], None, None, labels, 90, True, threads, ordered=True,
                    kind=np.dtype(contract_cpu.word(most)),
                )[:4])  # fmt: skip
                assert found.data.dtype == found.inner.dtype == kind
                assert_same(found[:2], expected[:2])
                assert np.array_equal(found.data, expected.data)
                assert np.array_equal(found.inner, expected.inner)


def test_the_pattern_of_a_directed_graph() -> None:
    for A in (rmat(8, 4), random_graph(60, 200), path(9)):
        G = matchwood.graph(sp.triu(A, format="csr"))
        view = G.directed_pattern()
        labels = (np.arange(view.n) % 7).astype(view.indices.dtype)
        expected = contract(*view, labels, 7, symmetric=False, engine="reference")
        for threads in TEAMS:
            found = trusted_contract_pattern(view.indptr, view.indices, labels, 7, threads=threads)
            assert_same(found, expected[:2])


def test_integers_that_do_not_fit() -> None:
    view = valued(matchwood.graph(complete(6)).undirected_pattern(), np.int64)
    label = np.zeros(6, np.int64)
    large = view._replace(data=np.full(view.nnz, 2**60))
    with pytest.raises(ValueError, match=r"contract: the integers in data must add up"):
        contract(*large, label, 1, loops=True)
    one = np.zeros(view.nnz, np.int64)
    one[3] = 2**62
    options: Any = {"loops": True, "symmetric": False}
    assert contract(*view._replace(data=one), label, 1, **options).inner.tolist() == [2**62]
    with pytest.raises(ValueError, match=r"contract: the integers in data must add up"):
        contract(*view._replace(data=one), label, 1, inner=np.full(6, 2**60), **options)


@looped("kind", [np.float32, np.float64])
def test_the_result_is_exactly_symmetric(kind: type) -> None:
    for A in (rmat(9, 8), star(300), complete(40), path(50)):
        view = view_of(A, kind)
        label = np.random.default_rng(1).integers(0, 11, view.n)
        for loops in (False, True):
            made = matrix_of(contract(*view, label, 11, loops=loops, threads=3))
            assert made.dtype == kind
            assert (made != made.T).nnz == 0
            assert not made.diagonal().any()


def test_bad_arguments() -> None:
    indptr, indices, data = view_of(path(4))
    label = np.array([0, 0, 1, 1])
    with pytest.raises(ValueError, match=r"contract: labels must lie within 0\.\.1, got 2"):
        contract(indptr, indices, data, np.array([0, 2, 1, 1]), 2)
    with pytest.raises(ValueError, match="contract: labels must have"):
        contract(indptr, indices, data, label[:3], 2)
    with pytest.raises(TypeError, match="contract: labels must hold integers"):
        contract(indptr, indices, data, label / 2, 2)
    with pytest.raises(TypeError, match="contract: data must be"):
        contract(indptr, indices, data.astype(np.int8), label, 2)
    with pytest.raises(TypeError, match="contract: inner must be float64"):
        contract(indptr, indices, data, label, 2, loops=True, inner=np.zeros(4, np.int64))
    with pytest.raises(ValueError, match="contract: inner must be None without loops=True"):
        contract(indptr, indices, data, label, 2, inner=np.zeros(4))
    with pytest.raises(TypeError, match="contract: loops must be"):
        contract(indptr, indices, data, label, 2, loops="yes")
    with pytest.raises(ValueError, match="contract: count must be at least 0"):
        contract(indptr, indices, data, label, -1)
    upper = sp.triu(sp.csr_array((data, indices, indptr), shape=(4, 4)), format="csr")
    for loops in (False, True):
        with pytest.raises(ValueError, match="contract: A was taken for symmetric"):
            contract(upper.indptr, upper.indices, upper.data, np.arange(4), 4, loops=loops)


def test_the_check_fails() -> None:
    view = view_of(path(6))
    label = np.array([0, 0, 1, 1, 2, 2])
    indptr, indices, data, inner = right = contract(*view, label, 3, loops=True)
    check_contracted(view, label, 3, right, "contraction")
    check_contracted(view, label, 3, right[:3], "contraction")
    with pytest.raises(CheckFailed, match=r"contraction: entry \(0, 1\) of the matrix is"):
        check_contracted(view, label, 3, (indptr, indices, data * 2), "contraction")
    with pytest.raises(CheckFailed, match=r"contraction: inner\[0\] is"):
        check_contracted(view, label, 3, right._replace(inner=inner * 2), "contraction")
    with pytest.raises(CheckFailed, match=r"contraction: inner\[0\] is"):
        check_contracted(view, label, 3, right, "contraction", inner=np.ones(6))
    nothing = (np.zeros_like(indptr), indices[:0], data[:0])
    with pytest.raises(CheckFailed, match="is missing"):
        check_contracted(view, label, 3, nothing, "contraction")
    loop = sp.csr_array(matrix_of(right) + sp.diags_array([1.0, 0.0, 0.0]))
    loop.sort_indices()
    with pytest.raises(CheckFailed, match=r"entry \(0, 0\) of the matrix joins nothing"):
        check_contracted(view, label, 3, (loop.indptr, loop.indices, loop.data), "contraction")


@pytest.mark.gpu
def test_the_gpu_equals_the_reference() -> None:
    import cupy

    for A in (rmat(9, 8), star(300), complete(40), path(50)):
        pattern = matchwood.graph(A).undirected_pattern()
        label = np.random.default_rng(1).integers(0, 11, pattern.n).astype(pattern.indices.dtype)
        for kind in (np.float32, np.float64, np.int64, np.int32, None):
            view = valued(pattern, kind)
            there = [None if a is None else cupy.asarray(a) for a in (*view, label)]
            for way in WAYS:
                options: Any = {name: bool(given) for name, given in way.items()}
                expected = contract(*view, label, 11, engine="reference", **options)
                found = contract(*there, 11, **options)
                assert_same([None if a is None else a.get() for a in found], expected)
                assert_same(contract(*view, label, 11, engine="gpu", **options), expected)


def measured(view: Any, weights: Any, inner: Any, labels: Any, count: int, engine: str) -> Any:
    """Rows that are sorted, as arrays of the host, and what was said of them."""
    longest = int(np.diff(view.indptr).max(initial=0))
    arrays = (view.indptr, view.indices, weights, inner, labels)
    if engine == "gpu":
        cupy = pytest.importorskip("cupy")
        arrays = tuple(None if a is None else cupy.asarray(a) for a in arrays)
    found, *facts = trusted_contract_measured(*arrays, count, engine=engine, longest=longest)
    if engine == "gpu":
        found = found._make(a.get() for a in found)
    matrix = sp.csr_array((found.data, found.indices, found.indptr), shape=(count, count))
    matrix.sort_indices()
    return (matrix.indptr, matrix.indices, matrix.data.astype(np.int64), found.inner), facts


@pytest.mark.parametrize("engine", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def test_measured(engine: str) -> None:
    """Groups of a few entries, of some dozens, hundreds and thousands, and empty ones."""
    rng = np.random.default_rng(2)
    for A in (rmat(9, 8), random_graph(900, 3000), path(50), star(9), ZOO["no edges"]()):
        view = matchwood.graph(A).undirected_pattern()
        n = view.n
        inner = rng.integers(0, 2**40, n)
        ends = np.repeat(np.arange(n), np.diff(view.indptr)) * view.indices.astype(np.int64)
        for weights in (None, ends << 20):  # symmetric, and too large for 32 bits
            for groups in (1, 2, 7, 60, n + 3):
                labels = (groups * rng.random(n) ** 2).astype(view.indices.dtype)
                given = (view.indptr, view.indices, weights, inner, labels, groups)
                expected = whole(*given, engine="reference")
                found, facts = measured(view, weights, inner, labels, groups, engine)
                lengths = np.diff(expected.indptr)
                assert facts == [lengths.max(), np.count_nonzero(lengths)]
                for mine, right in zip(found, expected, strict=True):
                    assert np.array_equal(mine, right)


def test_small_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks that fill a slab, that take what they need, and both in turn; none leaves the room."""
    view = matchwood.graph(rmat(9, 8)).undirected_pattern()
    rng = np.random.default_rng(3)
    for labels in (np.arange(view.n), rng.permutation(view.n) // 3, np.arange(view.n) // 200):
        labels = labels.astype(view.indices.dtype)
        given = (view.indptr, view.indices, None, None, labels, int(labels.max()) + 1)
        expected = whole(*given, engine="reference")
        for slab in (1, 40, 999, 10_000):
            monkeypatch.setattr(contract_cpu, "SLAB", slab)
            for threads in TEAMS:
                assert_same(whole(*given, engine="cpu", threads=threads), expected)


def test_sums_of_labels_that_many_have_or_that_meet_in_a_place() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(-(1 << 40), 1 << 40, 20_000)
    for labels in (rng.integers(0, 3, 20_000), rng.integers(0, 9, 20_000) * 256 + 5):
        expected = np.zeros(3000, np.int64)
        np.add.at(expected, labels, values)
        for threads in TEAMS:
            found = trusted_sums(values, labels.astype(np.int32), 3000, threads)
            assert np.array_equal(found, expected)
