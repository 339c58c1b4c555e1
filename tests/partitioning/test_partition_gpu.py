"""Partitions on the GPU: the labels of the reference, or of CPU threads, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import matchwood
from graphs import ZOO, complete, disjoint, grid, path, rmat, shuffled, star
from matchwood.partitioning.kway import multilevel
from partitioning.test_partition import CASES, REFUSED, SMALL_ZOO
from strategies import graphs

pytestmark = pytest.mark.gpu

SIZES = {
    "VERTICES_PER_BLOCK": 4, "VERTICES_OF_START": 20,
    "VERTICES_PER_BLOCK_OF_CYCLES": 2, "VERTICES_OF_CYCLES": 10,
}  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small graphs are coarsened too."""
    for name, value in SIZES.items():
        monkeypatch.setattr(multilevel, name, value)


def on_gpu(A: Any) -> Any:
    """A graph whose arrays are CuPy's."""
    import cupy

    A = sp.csr_array(A)
    A.sum_duplicates()
    data = A.data.astype(np.float64) if A.dtype.kind in "bi" else A.data
    return matchwood.graph((cupy.asarray(A.indptr), cupy.asarray(A.indices), cupy.asarray(data)))


def assert_same(found: Any, expected: Any) -> None:
    """Labels, weights, levels and cut; `found` was made of CuPy arrays."""
    assert type(found.labels).__module__.startswith("cupy")
    assert np.array_equal(found.labels.get(), expected.labels)
    assert np.array_equal(found.weights, expected.weights)
    assert [level[:4] for level in found.levels] == [level[:4] for level in expected.levels]
    assert type(found.cut) is type(expected.cut)
    assert found.cut == pytest.approx(expected.cut, rel=1e-12)


def test_zoo(small: None) -> None:
    for name in SMALL_ZOO:
        A = ZOO[name]()
        n = A.shape[0]
        for k in sorted({1, min(2, max(n, 1)), min(5, max(n, 1)), max(n, 1)}):
            expected = matchwood.partition(A, k, rng=3, engine="reference")
            G = on_gpu(A)
            found = matchwood.partition(G, k, rng=3)
            assert_same(found, expected)
            found.check(A)


@pytest.mark.parametrize("case", CASES)
def test_options(case: str, small: None) -> None:
    """Also with CuPy arrays among the arguments, and from the host and back."""
    import cupy

    A = shuffled(rmat(7, 4), isolated=102)
    expected = matchwood.partition(A, 4, rng=5, threads=1, **CASES[case])
    assert_same(matchwood.partition(on_gpu(A), 4, rng=5, **CASES[case]), expected)
    there = {
        name: cupy.asarray(value) if isinstance(value, np.ndarray | list) else value
        for name, value in CASES[case].items()
    }
    assert_same(matchwood.partition(on_gpu(A), 4, rng=5, **there), expected)
    moved = matchwood.partition(A, 4, rng=5, engine="gpu", **CASES[case])
    assert isinstance(moved.labels, np.ndarray)
    assert np.array_equal(moved.labels, expected.labels)
    back = matchwood.partition(on_gpu(A), 4, rng=5, engine="cpu", threads=1, **CASES[case])
    assert_same(back, expected)


@pytest.mark.parametrize("case", CASES)
def test_refinement(case: str, small: None) -> None:
    import cupy

    A = shuffled(rmat(7, 4), isolated=102)
    options = {"k": 4, "rng": 2, **CASES[case]}
    for labels in (np.arange(230) % 4, np.arange(230) // 200):
        if "fixed" in options:
            labels = np.where(options["fixed"] >= 0, options["fixed"], labels)
        expected = matchwood.refine_partition(A, labels, threads=1, **options)
        assert_same(
            matchwood.refine_partition(on_gpu(A), cupy.asarray(labels), **options), expected
        )


def test_wide_indices(small: None) -> None:
    A = rmat(7, 4)
    wide = matchwood.graph(A, index_dtype=np.int64).on("gpu")
    found = matchwood.partition(wide, 4, effort=2)
    expected = matchwood.partition(A, 4, threads=1, effort=2)
    assert np.array_equal(found.labels.get(), expected.labels)


LARGER = {
    "grid": lambda: shuffled(grid(150, 160, 1.0), isolated=50),
    "path": lambda: path(20_000),
    "star": lambda: star(30_000),
    "rmat 14": lambda: rmat(14, 8),
    "dense": lambda: complete(700),
    "mesh": lambda: matchwood.generators.mesh((24, 24, 24)),
    "two hubs": lambda: disjoint([star(3000), star(5000), rmat(11, 8)]),
}


@pytest.mark.parametrize("graph", LARGER)
def test_larger_graphs(graph: str) -> None:
    """Rows of every length, long lists of vertices that leave heavy blocks, and many blocks."""
    A = LARGER[graph]()
    G, n = on_gpu(A), A.shape[0]
    for k in (2, 16, min(300, n)):
        assert_same(matchwood.partition(G, k), matchwood.partition(A, k))
    k = min(3000, n // 4)
    labels = np.random.default_rng(1).integers(0, k, n)
    for options in ({"k": k, "effort": 0}, {"k": k, "vertex_weights": 1 + labels % 7}):
        expected = matchwood.refine_partition(A, labels, **options)
        assert_same(matchwood.refine_partition(G, labels, **options), expected)
    one = np.zeros(n, np.int64)  # half of all vertices must leave it
    assert_same(
        matchwood.refine_partition(G, one, k=2, effort=0),
        matchwood.refine_partition(A, one, k=2, effort=0),
    )


@settings(max_examples=60, deadline=None)
@given(
    A=graphs(weights="few"), k=st.integers(1, 5), seed=st.integers(0, 3),
    weights=st.lists(st.integers(0, 12), min_size=24, max_size=24),
)  # fmt: skip
def test_random_weights(A: Any, k: int, seed: int, weights: list[int]) -> None:
    n = A.shape[0]
    k = min(k, max(n, 1))
    options: dict[str, Any] = {
        "vertex_weights": np.array(weights[:n], np.int64) + 1, "imbalance": 9.0, "rng": seed
    }  # fmt: skip
    expected = matchwood.partition(A, k, threads=1, **options)
    assert_same(matchwood.partition(on_gpu(A), k, **options), expected)
    labels = np.random.default_rng(seed).integers(0, k, n)
    options["imbalance"] = 0.3
    if n and int(options["vertex_weights"].max()) > 1.3 * options["vertex_weights"].sum() / k:
        return
    better = matchwood.refine_partition(A, labels, k=k, threads=1, **options)
    assert_same(matchwood.refine_partition(on_gpu(A), labels, k=k, **options), better)


def test_what_a_partition_says(small: None) -> None:
    A = grid(6, 6, 1.0)
    P, expected = matchwood.partition(on_gpu(A), 4), matchwood.partition(A, 4)
    assert P.quotient().toarray().tolist() == expected.quotient().toarray().tolist()
    assert P.boundary.tolist() == expected.boundary.tolist()
    assert (P.volume, P.excess, P.sets()) == (expected.volume, 0, expected.sets())
    assert P.pieces.tolist() == expected.pieces.tolist()
    P.check(A)
    P.check(P.graph)


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused(name: str) -> None:
    kind, message, options = REFUSED[name]
    with pytest.raises(kind, match=f"partition: .*{message}"):
        matchwood.partition(on_gpu(path(6)), **{"k": 2, **options})
