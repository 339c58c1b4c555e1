"""Preconditioners and `matchwood.solve` on the GPU: as on the CPU, up to rounding."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from graphs import shuffled, star
from matchwood import preconditioners
from matchwood.preconditioners import blocks as pairs

pytestmark = pytest.mark.gpu

NAMES = ["jacobi", "tridiagonal", "algebraic_tridiagonal", "algebraic_block_tridiagonal"]


def both(A: sp.csr_array):
    from cupyx.scipy.sparse import csr_matrix

    return A, csr_matrix(sp.csr_matrix(A))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_as_on_the_cpu(name: str, dtype: type) -> None:
    """The CPU takes the same numbers in double precision."""
    import cupy
    from cupyx.scipy.sparse.linalg import LinearOperator

    rng = np.random.default_rng(3)
    pattern = matchwood.generators.rmat(9, 4)
    pattern.data = rng.uniform(-1, 1, pattern.nnz)
    total = np.asarray(abs(pattern).sum(axis=1)).ravel()
    for A in (
        matchwood.generators.aniso(2, (40, 45)),
        sp.csr_array(pattern + sp.diags_array(1 + total)),
    ):
        host, device = both(A.astype(dtype))
        make = getattr(preconditioners, name)
        M, D = make(host.astype(np.float64)), make(device)
        assert isinstance(D, LinearOperator)
        assert D.dtype == dtype
        assert D.name == name
        assert np.isclose(M.coverage, D.coverage, rtol=1e-5)
        X = rng.standard_normal((A.shape[0], 3)).astype(dtype)
        scale = 1e-4 if dtype == np.float32 else 1e-10
        for transpose in (False, True):
            mine, theirs = (M.H, D.H) if transpose else (M, D)
            expected = mine @ X.astype(np.float64)
            found = theirs @ cupy.asarray(X)
            assert found.dtype == dtype
            assert np.abs(found.get() - expected).max() <= scale * np.abs(expected).max()
        assert all(seconds >= 0 for seconds in D.seconds.values())
        matchwood.check.check_preconditioner(host, D)
        matchwood.check.check_preconditioner(device, D)


PAIRED = {
    "aniso2": lambda: matchwood.generators.aniso(2, (61, 70)),
    "aniso3": lambda: matchwood.generators.aniso(3, (40, 33)),
    "grid": lambda: matchwood.generators.grid((31, 30)),
    "shuffled": lambda: shuffled(matchwood.generators.aniso(1, (50, 40)), isolated=30),
    "random weights": lambda: weighted(matchwood.generators.grid((40, 41))),
    "rmat": lambda: weighted(matchwood.generators.rmat(10, 8)),
    "star": lambda: star(2000),
    "path": lambda: matchwood.generators.path(1001),
    "one edge": lambda: sp.csr_array(([1.0, 1.0], ([0, 3], [3, 0])), shape=(4, 4)),
    "no edges": lambda: sp.csr_array((7, 7)),
    "nothing": lambda: sp.csr_array((0, 0)),
}
"""Few long paths, many short ones, none at all; rows of one length and of all lengths."""


def weighted(A: sp.csr_array) -> sp.csr_array:
    return matchwood.generators.random_weights(A)


@pytest.mark.parametrize("name", PAIRED)
def test_mates_are_those_of_the_cpu(name: str) -> None:
    A = PAIRED[name]()
    for dtype, kind in itertools.product((np.float32, np.float64), (np.int32, np.int64)):
        G = matchwood.graph(A.astype(dtype), index_dtype=kind)
        for rng, ties in ((0, "index"), (5, "hash")):
            for way in (pairs.side_by_side, pairs.by_weight):
                expected = way(G, rng=rng, ties=ties)
                found = way(G.on("gpu"), rng=rng, ties=ties)
                assert found.dtype == expected.dtype
                assert np.array_equal(found.get(), expected)


def test_weights_below_normal_numbers() -> None:
    """A quarter of the heaviest weight is subnormal here; comparisons must still be right."""
    tiny = np.float32(2.0**-127)
    A = sp.csr_array(
        (np.repeat(np.float32([4, 1, 0.999, 1]) * tiny, 2),
         ([0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3])), shape=(4, 4),
    )  # fmt: skip
    G = matchwood.graph(A)
    expected = pairs.side_by_side(G, rng=0, ties="index")
    assert np.array_equal(pairs.side_by_side(G.on("gpu"), rng=0, ties="index").get(), expected)


@pytest.mark.parametrize("name", ["aniso2", "shuffled", "random weights"])
def test_blocks_are_those_of_the_cpu(name: str) -> None:
    A = PAIRED[name]()
    total = np.asarray(abs(A).sum(axis=1)).ravel()
    host, device = both(sp.csr_array(A + sp.diags_array(1 + total)))
    for period in (None, 1, 5):
        expected = preconditioners.algebraic_block_tridiagonal(host, period=period)
        found = preconditioners.algebraic_block_tridiagonal(device, period=period)
        assert found.pairs == expected.pairs
        for part in ("perm", "path", "position"):
            assert np.array_equal(getattr(found.forest, part).get(), getattr(expected.forest, part))


@pytest.mark.parametrize("name", ["auto", "none", *NAMES])
def test_solves(name: str) -> None:
    import cupy

    host, device = both(matchwood.generators.aniso(2, (40, 40)))
    true = np.sin(16 * np.pi * np.arange(1600) / 1600)
    b, known = cupy.asarray(host @ true), cupy.asarray(true)
    for method in ("bicgstab", "cg", "gmres"):
        options = {"preconditioner": name, "method": method, "true_solution": known}
        found = matchwood.solve(device, b, **options)
        assert found.converged
        assert found.errors[-1] < 1e-5
        assert isinstance(found.x, cupy.ndarray)


def test_vectors_must_lie_with_the_matrix() -> None:
    _, device = both(matchwood.generators.aniso(2, (10, 10)))
    with pytest.raises(TypeError, match="b must lie where A does, on the GPU"):
        matchwood.solve(device, np.ones(100))


def test_zero_diagonal() -> None:
    _, device = both(sp.csr_array(np.diag([1.0, 0, 1])))
    with pytest.raises(ValueError, match=r"jacobi: the diagonal .* got 0 at row 1"):
        preconditioners.jacobi(device)
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        preconditioners.algebraic_tridiagonal(device)


@pytest.mark.parametrize("name", NAMES[1:])
def test_definite_as_on_the_cpu(name: str) -> None:
    import cupy

    one = np.array([[1.0, 0.8, 0.3], [0.8, 1.0, 0.8], [0.3, 0.8, 1.0]])
    A = sp.csr_array(sp.kron(sp.diags_array(2.0 ** np.arange(20)), one))
    host, device = both(A)
    make = getattr(preconditioners, name)
    assert make(device).definite == make(host).definite
    M, D = make(host, definite=True), make(device, definite=True)
    assert M.definite is D.definite is True
    x = np.random.default_rng(0).standard_normal(60)
    assert np.allclose((D @ cupy.asarray(x)).get(), M @ x, rtol=1e-10)


@pytest.mark.parametrize("method", ["bicgstab", "cg", "gmres"])
def test_solve_on_extremes(method: str) -> None:
    import cupy

    A = matchwood.generators.aniso(2, (12, 12))
    true = np.linspace(1, 2, 144)
    for scale in (1.0, 1e300, 1e-300):
        _, device = both(A * scale)
        found = matchwood.solve(device, cupy.asarray(A @ true * scale), method=method)
        assert found.converged
        assert np.allclose(found.x.get(), true, rtol=1e-4)
        assert found.tried[-1][1] == "used"
    _, single = both(A.astype(np.float32))
    assert matchwood.solve(single, cupy.asarray(A @ true), method=method).x.dtype == np.float64
    short = cupy.asarray((A @ true).astype(np.float32))
    assert matchwood.solve(single, short, method=method).converged
    zero = matchwood.solve(single, 0 * short, method=method, maxiter=0)
    assert zero.converged
    spoiled = short.copy()
    spoiled[3] = cupy.nan
    with pytest.raises(ValueError, match="b must be finite, got nan at 3"):
        matchwood.solve(single, spoiled, method=method)


def test_jacobi_refuses_a_diagonal_that_is_not_finite() -> None:
    for bad in (np.nan, np.inf, 0.0):
        _, device = both(sp.csr_array(np.diag([1.0, 5.0, 2.0])))
        device.data[1] = bad
        with pytest.raises(ValueError, match=r"jacobi: .* at row 1"):
            preconditioners.jacobi(device)
