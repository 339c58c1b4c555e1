"""Preconditioners and `matchwood.solve` on the GPU: as on the CPU, up to rounding."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from matchwood import preconditioners

pytestmark = pytest.mark.gpu

NAMES = ["jacobi", "tridiagonal", "algebraic_tridiagonal", "algebraic_block_tridiagonal"]


def both(A: sp.csr_array):
    from cupyx.scipy.sparse import csr_matrix

    return A, csr_matrix(sp.csr_matrix(A))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", NAMES)
def test_as_on_the_cpu(name: str, dtype: type) -> None:
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
        M, D = make(host), make(device)
        assert isinstance(D, LinearOperator)
        assert D.dtype == dtype
        assert D.name == name
        assert np.isclose(M.coverage, D.coverage, rtol=1e-5)
        X = rng.standard_normal((A.shape[0], 3)).astype(dtype)
        scale = 1e-4 if dtype == np.float32 else 1e-10
        for transpose in (False, True):
            mine, theirs = (M.H, D.H) if transpose else (M, D)
            expected = mine @ X
            found = theirs @ cupy.asarray(X)
            assert found.dtype == dtype
            assert np.abs(found.get() - expected).max() <= scale * np.abs(expected).max()
        assert all(seconds >= 0 for seconds in D.seconds.values())


@pytest.mark.parametrize("method", ["bicgstab", "cg", "gmres"])
@pytest.mark.parametrize("name", ["auto", "none", *NAMES])
def test_solves(name: str, method: str) -> None:
    import cupy

    host, device = both(matchwood.generators.aniso(2, (40, 40)))
    true = np.sin(16 * np.pi * np.arange(1600) / 1600)
    found = matchwood.solve(
        device,
        cupy.asarray(host @ true),
        preconditioner=name,
        method=method,
        true_solution=cupy.asarray(true),
    )
    assert found.converged
    assert found.errors[-1] < 1e-5
    assert isinstance(found.x, cupy.ndarray)


def test_vectors_must_lie_with_the_matrix() -> None:
    _, device = both(matchwood.generators.aniso(2, (10, 10)))
    with pytest.raises(TypeError, match="b must lie where A does, on the GPU"):
        matchwood.solve(device, np.ones(100))


def test_zero_diagonal() -> None:
    _, device = both(sp.csr_array(np.diag([1.0, 0, 1])))
    with pytest.raises(ValueError, match="the diagonal is zero at row 1"):
        preconditioners.jacobi(device)
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        preconditioners.algebraic_tridiagonal(device)
