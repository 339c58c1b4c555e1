"""Every generator on the GPU makes the graph that the CPU makes, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from matchwood import engines, generators

pytestmark = pytest.mark.gpu

BOTH = (np.float32, np.float64)


def check_equal(make):
    """make(engine=...) is a cupyx matrix whose arrays are those of the CPU's csr_array."""
    from cupyx.scipy.sparse import csr_matrix

    A, B = make(), make(engine="gpu")
    assert isinstance(B, csr_matrix)
    assert B.shape == A.shape
    assert B.has_canonical_format
    for name in ("indptr", "indices", "data"):
        ours, expected = getattr(B, name), getattr(A, name)
        assert isinstance(ours, engines.cupy().ndarray)
        assert ours.dtype == expected.dtype
        assert np.array_equal(ours.get(), expected), name


@pytest.mark.parametrize("scale", [0, 1, 2, 9, 14])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("permute", [False, True])
def test_rmat(scale, directed, permute):
    options = {"directed": directed, "permute": permute, "rng": 3}
    check_equal(lambda **where: generators.rmat(scale, **options, **where))


def test_rmat_other_quarters():
    options = {"a": 0.25, "b": 0.25, "c": 0.5, "d": 0, "rng": 2**64 - 1}
    check_equal(lambda **where: generators.rmat(11, 5, **options, **where))


@pytest.mark.parametrize(
    ("n", "m"), [(0, 0), (1, 0), (2, 1), (50, 300), (51, 1275), (4000, 9000), (100_000, 300_000)]
)
@pytest.mark.parametrize("directed", [False, True])
def test_erdos_renyi(n, m, directed):
    check_equal(lambda **where: generators.erdos_renyi(n, m, directed=directed, rng=5, **where))


@pytest.mark.parametrize("n", [0, 1, 2, 31, 32, 33, 700])
@pytest.mark.parametrize("density", [0, 0.1, 0.45, 0.65, 1])
@pytest.mark.parametrize("directed", [False, True])
def test_dense_random(n, density, directed):
    options = {"directed": directed, "rng": 1}
    check_equal(lambda **where: generators.dense_random(n, density, **options, **where))


@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("weights", ["uniform", "integers"])
@pytest.mark.parametrize("directed", [False, True])
def test_weights(dtype, weights, directed):
    options = {"dtype": dtype, "weights": weights, "directed": directed}
    check_equal(lambda **where: generators.rmat(11, **options, **where))
    check_equal(lambda **where: generators.dense_random(100, 0.5, **options, **where))


@pytest.mark.parametrize("dtype", BOTH)
def test_random_weights_of_a_gpu_matrix(dtype):
    A, B = (generators.mesh((9, 10), engine=engine) for engine in ("cpu", "gpu"))
    ours = generators.random_weights(B, dtype=dtype, rng=7)
    expected = generators.random_weights(A, dtype=dtype, rng=7)
    assert ours.dtype == dtype
    assert np.array_equal(ours.data.get(), expected.data)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("n", [0, 1, 1000])
def test_points(n, dim):
    points = generators.random_points(n, dim, rng=4, engine="gpu")
    assert np.array_equal(points.get(), generators.random_points(n, dim, rng=4))


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("weights", [None, "uniform", "distance"])
@pytest.mark.parametrize(
    ("n", "radius"), [(0, 0.1), (1, 0.1), (300, 0), (300, 0.07), (300, 3.0), (20_000, 0.012)]
)
def test_random_geometric(n, radius, dim, weights):
    options = {"dim": dim, "weights": weights, "dtype": np.float64, "rng": 6}
    check_equal(lambda **where: generators.random_geometric(n, radius, **options, **where))


@pytest.mark.parametrize("weights", [None, "integers", "distance"])
@pytest.mark.parametrize("n", [0, 2, 3, 500])
def test_delaunay(n, weights):
    check_equal(lambda **where: generators.delaunay(n, weights=weights, **where))


@pytest.mark.parametrize("dtype", BOTH)
@pytest.mark.parametrize("shape", [(50,), (20, 31), (7, 8, 9), (0, 3), (1, 1, 1)])
def test_stencils(shape, dtype):
    weights = np.arange(3 ** len(shape)).reshape((3,) * len(shape))
    check_equal(lambda **where: generators.stencil(weights, shape, dtype=dtype, **where))
    check_equal(lambda **where: generators.grid(shape, dtype=dtype, **where))
    check_equal(lambda **where: generators.mesh(shape, dtype=dtype, **where))


@pytest.mark.parametrize("kind", [1, 2, 3])
@pytest.mark.parametrize("shape", [(40, 40), (13, 70), (70, 13), (1, 9), (0, 4)])
def test_aniso(kind, shape):
    check_equal(lambda **where: generators.aniso(kind, shape, **where))


@pytest.mark.parametrize("name", ["path", "cycle", "star", "complete", "mycielskian"])
@pytest.mark.parametrize("n", [3, 7])
def test_families(name, n):
    check_equal(lambda **where: getattr(generators, name)(n, **where))


@pytest.mark.slow
def test_large_graphs():
    check_equal(lambda **where: generators.rmat(20, weights="uniform", **where))
    check_equal(lambda **where: generators.erdos_renyi(10**6, 10**7, **where))
    check_equal(lambda **where: generators.dense_random(4000, 0.65, directed=True, **where))
    check_equal(lambda **where: generators.random_geometric(10**6, degree=12, **where))
    check_equal(lambda **where: generators.aniso(3, (1500, 1500), **where))
