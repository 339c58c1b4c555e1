"""stencil, grid, mesh, aniso: equal to the dense definition."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from matchwood.generators import aniso, grid, mesh, stencil
from matchwood.generators.stencils import reference
from matchwood.primitives.assemble.check import check_canonical
from support import THREADS, same

BOTH = (np.float32, np.float64)


def parts(A):
    return A.indptr, A.indices, A.data


def dense_stencil(weights, shape):
    """A[p, q] = weights[centre + q - p], entry by entry."""
    weights = np.asarray(weights, float)
    centre = np.array(weights.shape) // 2
    points = list(itertools.product(*map(range, shape)))
    A = np.zeros((len(points), len(points)))
    for (i, p), (j, q) in itertools.product(enumerate(points), repeat=2):
        at = centre + np.array(q) - p
        if (at >= 0).all() and (at < weights.shape).all():
            A[i, j] = weights[tuple(at)]
    return A


def check_sorted(A):
    check_canonical(A.indptr, A.indices, A.shape[0])
    assert A.has_canonical_format


@given(st.data())
def test_stencil_equals_the_dense_definition(data):
    dimensions = data.draw(st.integers(1, 3))
    lengths = st.sampled_from([1, 3, 5])
    shape = tuple(data.draw(st.integers(0, (12, 5, 3)[dimensions - 1])) for _ in range(dimensions))
    size = tuple(data.draw(lengths) for _ in range(dimensions))
    values = st.sampled_from([0.0, 1.0, -2.0, 0.25])
    weights = np.array(
        data.draw(st.lists(values, min_size=int(np.prod(size)), max_size=int(np.prod(size))))
    ).reshape(size)
    threads = data.draw(st.sampled_from([1, 2, 3]))
    A = stencil(weights, shape, threads=threads)
    check_sorted(A)
    assert np.array_equal(A.toarray(), dense_stencil(weights, shape))
    assert (A.data != 0).all()
    assert same(parts(A), parts(stencil(weights, shape, engine="reference")))


def test_stencil_is_not_turned_around():
    """Each point takes from its right neighbour: the superdiagonal."""
    assert stencil([0, 0, 5], (3,)).toarray().tolist() == [[0, 5, 0], [0, 0, 5], [0, 0, 0]]


def test_stencil_on_a_larger_grid():
    weights = np.arange(1.0, 28).reshape(3, 3, 3)
    shape = (7, 40, 30)
    # as a sum of Kronecker products of shifts
    expected = sp.csr_array((7 * 40 * 30, 7 * 40 * 30))
    for (z, y, x), w in np.ndenumerate(weights):
        shifts = [sp.eye_array(length, k=k - 1) for length, k in zip(shape, (z, y, x), strict=True)]
        expected = expected + w * sp.kron(sp.kron(shifts[0], shifts[1]), shifts[2], format="csr")
    for threads in THREADS:
        A = stencil(weights, shape, threads=threads)
        check_sorted(A)
        assert abs(A - expected).max() == 0
        assert A.nnz == expected.nnz


@pytest.mark.parametrize(
    ("given_dtype", "dtype", "stored"),
    [
        (np.float32, None, np.float32),
        (np.float64, None, np.float64),
        (np.int32, None, np.float64),
        (bool, None, np.float64),
        (np.float64, np.float32, np.float32),
        (np.float32, np.float64, np.float64),
    ],
)
def test_stencil_types(given_dtype, dtype, stored):
    A = stencil(np.ones((3, 3), given_dtype), (4, 5), dtype=dtype)
    assert A.dtype == stored
    assert A.indices.dtype == A.indptr.dtype == np.int32


@pytest.mark.parametrize("shape", [(7,), (4, 5), (3, 4, 5), (1, 1), (0, 3), (1, 6, 1)])
@pytest.mark.parametrize("dtype", BOTH)
def test_grid(shape, dtype):
    A = grid(shape, dtype=dtype, threads=1)
    for threads in THREADS:
        assert same(parts(grid(shape, dtype=dtype, threads=threads)), parts(A))
    check_sorted(A)
    assert A.dtype == dtype
    if A.shape[0]:
        G = nx.grid_graph(shape[::-1])
        points = list(itertools.product(*map(range, shape)))
        if len(shape) == 1:
            points = [x for (x,) in points]
        assert np.array_equal(A.toarray(), nx.to_numpy_array(G, nodelist=points))


@pytest.mark.parametrize("shape", [(7,), (4, 5), (3, 4, 5), (1, 1), (2, 0, 3)])
def test_mesh(shape):
    A = mesh(shape, threads=1)
    for threads in THREADS:
        assert same(parts(mesh(shape, threads=threads)), parts(A))
    check_sorted(A)
    points = np.array(list(itertools.product(*map(range, shape)))).reshape(-1, len(shape))
    apart = abs(points[:, None] - points[None, :]).max(axis=2, initial=0)
    assert np.array_equal(A.toarray(), apart == 1)


def test_mesh_has_27_points():
    assert np.diff(mesh((5, 5, 5)).indptr).max() == 26
    assert mesh((6, 6, 6)).nnz == (3 * 6 - 2) ** 3 - 6**3


# aniso


@pytest.mark.parametrize("shape", [(9, 9), (4, 11), (11, 4), (1, 5), (5, 1), (1, 1), (0, 2)])
@pytest.mark.parametrize("kind", [1, 2, 3])
def test_aniso_equals_reference(kind, shape):
    A = aniso(kind, shape, engine="reference")
    check_sorted(A)
    assert A.dtype == np.float64
    assert same(parts(A), parts(A.T.tocsr()))
    for threads in THREADS:
        assert same(parts(aniso(kind, shape, threads=threads)), parts(A))
    assert (A.diagonal() == 3).all()


def test_aniso_stencils():
    middle = 4  # of 3 x 3
    assert aniso(1, (3, 3)).toarray()[middle].tolist() == [
        -0.2, -0.1, -0.2, -1.0, 3.0, -1.0, -0.2, -0.1, -0.2,
    ]  # fmt: skip
    assert aniso(2, (3, 3)).toarray()[middle].tolist() == [
        -0.1, -0.2, -1.0, -0.2, 3.0, -0.2, -1.0, -0.2, -0.1,
    ]  # fmt: skip


@pytest.mark.parametrize("shape", [(9, 9), (4, 11), (11, 4), (1, 5), (6, 1)])
def test_aniso3_is_aniso2_renumbered(shape):
    rows, cols = shape
    points = sorted(itertools.product(range(rows), range(cols)), key=lambda p: (p[0] + p[1], p[0]))
    perm = np.array([i * cols + j for i, j in points])  # perm[new] = old
    A2, A3 = aniso(2, shape), aniso(3, shape)
    assert (A2[perm][:, perm] != A3).nnz == 0
    eigenvalues = [np.linalg.eigvalsh(A.toarray()) for A in (A2, A3)]
    assert np.allclose(*eigenvalues)


@pytest.mark.parametrize("shape", [(9, 9), (4, 11), (11, 4)])
def test_aniso_strong_entries_lie_beside_the_diagonal(shape):
    rows, cols = shape
    for kind, strong in ((1, rows * (cols - 1)), (3, (rows - 1) * (cols - 1))):
        A = aniso(kind, shape)
        entries = A.tocoo()
        far = abs(entries.row - entries.col) > 1
        assert (entries.data[~far] == -1).sum() == 2 * strong
        assert not (entries.data[far] == -1).any()


def beside(A):
    """Share of the weight off the diagonal that lies on the sub- and superdiagonal."""
    off = abs(A).sum() - abs(A.diagonal()).sum()
    return (abs(A.diagonal(1)).sum() + abs(A.diagonal(-1)).sum()) / off


@pytest.mark.parametrize(("kind", "share"), [(1, 2 / 3), (2, 0.4 / 3), (3, 2 / 3)])
def test_aniso_coverage(kind, share):
    assert beside(aniso(kind, (300, 300))) == pytest.approx(share, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "share"), [(1, 0.66674), (2, 0.13337), (3, 0.66660)])
def test_aniso_as_in_the_papers(kind, share):
    A = aniso(kind, (2500, 2500))
    assert A.shape[0] == 6_250_000
    assert A.nnz == 56_220_004
    assert beside(A) == pytest.approx(share, abs=1e-5)


def test_plan_knows_its_entries():
    """nnz is computed, not counted; int64 where it must be."""
    plan = reference.row_by_row(np.ones((3, 3, 3)), (400, 600, 500))
    assert plan.nnz == (3 * 400 - 2) * (3 * 600 - 2) * (3 * 500 - 2) > 2**31
    assert plan.index == np.int64
    assert reference.row_by_row(np.ones((3, 3)), (4, 4)).index == np.int32


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: stencil([1, 2], (3,)), ValueError, "stencil: weights must have odd lengths, got"),
        (lambda: stencil(5, ()), ValueError, "stencil: weights must have 1 to 3 dimensions, got 0"),
        (lambda: stencil(np.ones((1,) * 4), (1,) * 4), ValueError, "stencil: weights must have 1"),
        (lambda: stencil([[1], [2, 3]], (3,)), TypeError, "stencil: weights must be an array"),
        (lambda: stencil(["a"], (3,)), TypeError, "stencil: weights must be real numbers"),
        (lambda: stencil([1j], (3,)), TypeError, "stencil: weights must be real numbers"),
        (lambda: stencil([np.nan], (3,)), ValueError, "stencil: weights must be finite"),
        (lambda: stencil([[1]], (3,)), ValueError, "stencil: shape must have 2 entries, got (3,)"),
        (lambda: stencil([1], 3), TypeError, "stencil: shape must be a tuple of 1 integers, got 3"),
        (lambda: stencil([1], (-3,)), ValueError, "stencil: shape must be at least 0, got -3"),
        (lambda: stencil([1], (3,), dtype=int), TypeError, "stencil: dtype must be float32 or flo"),
        (lambda: grid((2,) * 4), ValueError, "grid: shape must have 1 or 2 or 3 entries"),
        (lambda: grid((2.0, 2)), TypeError, "grid: shape must be an integer, got 2.0"),
        (lambda: mesh("ab"), TypeError, "mesh: shape must be a tuple of 1 or 2 or 3 integers"),
        (lambda: aniso(4, (3, 3)), ValueError, "aniso: kind must be one of 1, 2, 3, got 4"),
        (lambda: aniso(True, (3, 3)), ValueError, "aniso: kind must be one of 1, 2, 3, got True"),
        (lambda: aniso(1, (3, 3, 3)), ValueError, "aniso: shape must have 2 entries"),
    ],
)  # fmt: skip
def test_errors(call, error, message):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(message)
