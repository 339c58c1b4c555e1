"""random_points, random_geometric, delaunay."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph
from scipy.spatial import cKDTree

from matchwood.generators import delaunay, random_geometric, random_points
from matchwood.generators.geometric import reference
from matchwood.primitives.assemble.check import check_canonical
from support import THREADS, same


def parts(A):
    return A.indptr, A.indices, A.data


def check_undirected(A):
    check_canonical(A.indptr, A.indices, A.shape[0])
    assert not A.diagonal().any()
    assert same(parts(A), parts(A.T.tocsr()))


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("n", [0, 1, 5000])
def test_points(n, dim):
    points = random_points(n, dim, rng=3, engine="reference")
    assert points.shape == (n, dim)
    assert points.dtype == np.float64
    for threads in THREADS:
        assert same(random_points(n, dim, rng=3, threads=threads), points)
    assert (points >= 0).all()
    assert (points < 1).all()
    assert (points * 2**31 % 1 == 0).all()
    if n > 1:
        assert np.allclose(points.mean(axis=0), 0.5, atol=0.03)
        assert np.allclose(np.cov(points.T), np.eye(dim) / 12, atol=0.01)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("radius", [0, 1e-12, 0.03, 0.2, 1.0, 5.0])
def test_random_geometric_equals_reference(radius, dim):
    A = random_geometric(150, radius, dim=dim, rng=1, engine="reference")
    check_undirected(A)
    for threads in THREADS:
        made = random_geometric(150, radius, dim=dim, rng=1, threads=threads)
        assert same(parts(made), parts(A))
    if radius == 5.0:
        assert A.nnz == 150 * 149


@given(st.integers(0, 60), st.floats(0, 2), st.sampled_from([2, 3]), st.integers(0, 2**64 - 1))
def test_random_geometric_with_any_radius(n, radius, dim, seed):
    A = random_geometric(n, radius, dim=dim, rng=seed)
    expected = random_geometric(n, radius, dim=dim, rng=seed, engine="reference")
    assert same(parts(A), parts(expected))


@pytest.mark.parametrize("dim", [2, 3])
def test_random_geometric_equals_a_tree_search(dim):
    n, radius = 3000, 0.04 if dim == 2 else 0.1
    pairs = cKDTree(random_points(n, dim)).query_pairs(radius, output_type="ndarray")
    expected = {tuple(pair) for pair in pairs.tolist()}
    for threads in THREADS:
        A = random_geometric(n, radius, dim=dim, threads=threads)
        ends = zip(*map(np.ndarray.tolist, A.nonzero()), strict=True)
        assert {(u, v) for u, v in ends if u < v} == expected


@pytest.mark.parametrize("dim", [2, 3])
def test_random_geometric_degree(dim):
    A = random_geometric(20_000, degree=10, dim=dim)
    inner = (abs(random_points(20_000, dim) - 0.5) < 0.4).all(axis=1)
    assert np.diff(A.indptr)[inner].mean() == pytest.approx(10, abs=0.3)


@pytest.mark.parametrize(("n", "dim", "radius"), [(10, 2, 0.5), (10**6, 2, 1e-3), (10**5, 3, 0.01)])
def test_cells_are_wide_enough(n, dim, radius):
    plan = reference.Near.of(n, dim, 0, radius)
    assert plan.width >= plan.radius
    assert (reference.SIDE - 1) // plan.width < plan.cells
    assert plan.cells**dim <= max(n, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weights", [None, "uniform", "integers", "distance"])
@pytest.mark.parametrize(
    "make",
    [
        lambda **options: random_geometric(120, 0.2, **options),
        lambda **options: random_geometric(120, 0.3, dim=3, **options),
        lambda **options: delaunay(120, **options),
    ],
)
def test_weights(make, weights, dtype):
    A = make(weights=weights, dtype=dtype, rng=2, engine="reference")
    assert A.dtype == dtype
    check_undirected(A)
    for threads in THREADS:
        made = make(weights=weights, dtype=dtype, threads=threads, rng=2)
        assert same(parts(made), parts(A))


def test_distances():
    A = delaunay(200, weights="distance", dtype=np.float64, rng=6)
    points = random_points(200, rng=6)
    u, v = A.nonzero()
    assert np.allclose(A.data, np.linalg.norm(points[u] - points[v], axis=1), rtol=1e-14)


# delaunay


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 10, 400])
def test_delaunay(n):
    A = delaunay(n, rng=8, engine="reference")
    check_undirected(A)
    assert A.shape == (n, n)
    for threads in THREADS:
        assert same(parts(delaunay(n, rng=8, threads=threads)), parts(A))
    if n:
        assert csgraph.connected_components(A)[0] == 1
    if n >= 3:
        planar, _ = nx.check_planarity(nx.from_scipy_sparse_array(A))
        assert planar


@pytest.mark.parametrize("n", [3, 4, 50, 1000])
def test_delaunay_counts(n):
    """Euler: 3 n - 3 - h edges when h points lie on the hull."""
    from scipy.spatial import ConvexHull

    hull = ConvexHull(random_points(n)).vertices.size
    assert delaunay(n).nnz // 2 == 3 * n - 3 - hull


def test_delaunay_circles_are_empty():
    """The definition: the circle around each triangle of the graph holds no other point."""
    from scipy.spatial import Delaunay

    n = 60
    points = random_points(n, rng=1)
    A = delaunay(n, rng=1).toarray() != 0
    for a, b, c in Delaunay(points).simplices:
        assert A[a, b]
        assert A[b, c]
        assert A[c, a]
        # the centre is as far from a as from b and c
        sides = 2 * (points[[b, c]] - points[a])
        squares = (points[[b, c]] ** 2).sum(axis=1) - (points[a] ** 2).sum()
        centre = np.linalg.solve(sides, squares)
        from_centre = np.linalg.norm(points - centre, axis=1)
        assert (np.delete(from_centre, [a, b, c]) >= from_centre[a] * (1 - 1e-12)).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: random_points(3, 4), ValueError, "random_points: dim must be one of 2, 3, got 4"),
        (lambda: random_points(-3), ValueError, "random_points: n must be at least 0, got -3"),
        (lambda: random_geometric(5), ValueError, "random_geometric: give one of radius and degre"),
        (lambda: random_geometric(5, 1, degree=2), ValueError, "random_geometric: give one of rad"),
        (lambda: random_geometric(5, -1), ValueError, "random_geometric: radius must be finite an"),
        (lambda: random_geometric(5, "1"), TypeError, "random_geometric: radius must be a number"),
        (lambda: random_geometric(5, degree=-1), ValueError, "random_geometric: degree must be fi"),
        (lambda: random_geometric(5, 1, dim=2.0), ValueError, "random_geometric: dim must be one"),
        (lambda: random_geometric(5, 1, weights="x"), ValueError, "random_geometric: weights must"),
        (lambda: delaunay(2.0), TypeError, "delaunay: n must be an integer, got 2.0"),
        (lambda: delaunay(5, weights="near"), ValueError, "delaunay: weights must be one of None"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(message)
