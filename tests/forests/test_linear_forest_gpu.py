"""The GPU gives the forest that the CPU gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from forests.tables import paths_and_cycles
from graphs import ZOO, disjoint, grid, rmat, with_dtypes
from matchwood.factors import degree_factor
from matchwood.forests import check_linear_forest, linear_forest, tridiagonal_of

pytestmark = pytest.mark.gpu

ARRAYS = ("perm", "path", "position", "place", "offsets", "removed")


def same(A: Any, method: str = "splitters", beside: Any = None, **options: Any) -> None:
    """`beside` is the same graph for the CPU, with indices that it has kernels for already."""
    host = A if beside is None else beside
    expected = linear_forest(host, **options)
    found = linear_forest(A, engine="gpu", method=method, **options)
    for name in ARRAYS:
        one, other = getattr(found, name), getattr(expected, name)
        assert beside is not None or one.dtype == other.dtype, name
        assert np.array_equal(one, other), name
    for one, other in zip(
        tridiagonal_of(A, found, engine="gpu"), tridiagonal_of(host, expected), strict=True
    ):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)
    assert found.weight == pytest.approx(expected.weight)


@pytest.mark.parametrize("method", ["splitters", "doubling"])
@pytest.mark.parametrize("name", ZOO)
def test_zoo(name: str, method: str) -> None:
    A = ZOO[name]()
    same(A, method)
    same(A, method, rounds=None, ties="hash")
    same(A, method, directed=True)


@pytest.mark.parametrize("method", ["splitters", "doubling"])
@pytest.mark.parametrize("index_dtype", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_larger_graphs(index_dtype: type, dtype: type, method: str) -> None:
    parts = [rmat(11, 8), grid(100, 90, 1.0), paths_and_cycles([1, 2, 5000, 1], [3, 4, 700, 3000])]
    A = with_dtypes(sp.csr_array(disjoint(parts)), index_dtype, dtype)
    G, narrow = (matchwood.graph(A, index_dtype=kind) for kind in (index_dtype, np.int32))
    same(G, method, narrow)
    assert linear_forest(G, engine="gpu", method=method).perm.dtype == index_dtype


@pytest.mark.parametrize("spacing", [1, 2, 16, 1 << 20])
@pytest.mark.parametrize("ties", [False, True])
def test_any_spacing(spacing: int, ties: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from matchwood.forests import gpu

    monkeypatch.setattr(gpu, "SPACING", spacing)
    rng = np.random.default_rng(spacing)
    for seed in range(6):
        paths, cycles = rng.integers(1, 90, 12).tolist(), rng.integers(3, 90, 12).tolist()
        A = paths_and_cycles(paths, cycles, seed=seed, shuffled=seed % 2 == 0, ties=ties)
        same(A)
        same(with_dtypes(A, np.int64, np.float32))
    same(paths_and_cycles([], [10_000]))
    same(paths_and_cycles([20_000], []))
    same(paths_and_cycles([1] * 5000, []))
    same(paths_and_cycles([2] * 5000, [3] * 5000))


def test_aniso() -> None:
    for kind in (1, 2, 3):
        same(matchwood.generators.aniso(kind, (150, 170), dtype=np.float32))


def test_stays_on_the_device() -> None:
    import cupyx.scipy.sparse

    A = cupyx.scipy.sparse.csr_matrix(sp.csr_matrix(grid(20, 20)))
    found = linear_forest(A)
    for name in (*ARRAYS, "removed_weights"):
        assert type(getattr(found, name)).__module__.startswith("cupy"), name
    assert all(type(a).__module__.startswith("cupy") for a in tridiagonal_of(A, found))
    assert set(found.seconds) == {"factor", "paths", "cycles", "permutation"}
    check_linear_forest(A, found)
    given = linear_forest(A, factor=degree_factor(grid(20, 20), 2))  # a factor from the CPU
    assert given.perm.get().tolist() == found.perm.get().tolist()


def test_walk_is_for_the_cpu() -> None:
    with pytest.raises(ValueError, match="'walk' runs on engine='cpu' only"):
        linear_forest(grid(5, 5), engine="gpu", method="walk")


@pytest.mark.slow
def test_long_ones() -> None:
    """Ten million vertices in random order."""
    import cupy

    n = 10_000_000
    name = np.random.default_rng(0).permutation(n).astype(np.int32)
    before, after = np.roll(name, 1), np.roll(name, -1)
    table = np.empty((n, 2), np.int32)
    table[name, 0], table[name, 1] = before, after
    weights = np.ones((n, 2), np.float32)
    from matchwood.forests import cpu, gpu

    for cycle in (True, False):
        if not cycle:
            table[name[0], 0] = table[name[-1], 1] = -1
        expected = cpu.forest(table, weights)
        found = gpu.forest(cupy.asarray(table), cupy.asarray(weights))
        for one, other in zip(found[:4], expected[:4], strict=True):
            assert np.array_equal(one.get(), other)
