"""Several right-hand sides, GMRES with its restarts, MINRES."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from matchwood.check import check_solution


def system(columns: int) -> tuple:
    A = matchwood.generators.aniso(2, (30, 30))
    x = np.random.default_rng(3).normal(size=(900, columns))
    return A, A @ x, x


@pytest.mark.parametrize("method", ["bicgstab", "cg", "gmres", "minres"])
def test_columns_are_solved_as_they_would_be_alone(method: str) -> None:
    A, b, x = system(3)
    found = matchwood.solve(A, b, method=method, true_solution=x)
    assert found.x.shape == (900, 3)
    assert found.converged
    assert found.info == 0
    assert len(found.columns) == 3
    check_solution(A, b, found)
    for j, one in enumerate(found.columns):
        alone = matchwood.solve(A, b[:, j], method=method)
        assert np.array_equal(alone.x, one.x)
        assert np.array_equal(one.x, found.x[:, j])
    assert all(one.preconditioner is found.preconditioner for one in found.columns)  # made once


def test_one_column_keeps_its_shape() -> None:
    A, b, _ = system(1)
    found = matchwood.solve(A, b)
    assert found.x.shape == (900, 1)
    assert np.array_equal(found.x[:, 0], matchwood.solve(A, b[:, 0]).x)


def test_no_columns() -> None:
    A, b, _ = system(0)
    found = matchwood.solve(A, b)
    assert found.x.shape == (900, 0)
    assert found.converged
    assert found.columns == ()
    assert matchwood.solve(A, b.astype(np.int64)).x.dtype == np.float64
    with pytest.raises(ValueError, match="solve: maxiter must be at least 0"):
        matchwood.solve(A, b, maxiter=-1)
    with pytest.raises(ValueError, match="solve: preconditioner must be one of"):
        matchwood.solve(A, b, preconditioner="nonsense")


def test_shapes_that_do_not_fit() -> None:
    A, b, _ = system(2)
    with pytest.raises(ValueError, match=r"solve: b must have shape \(900, k\), got \(800, 2\)"):
        matchwood.solve(A, b[:800])
    with pytest.raises(ValueError, match=r"solve: x0 must have shape \(900, 2\), got \(900, 1\)"):
        matchwood.solve(A, b, x0=b[:, :1])
    with pytest.raises(ValueError, match=r"solve: true_solution must have shape \(900, 2\)"):
        matchwood.solve(A, b, true_solution=b[:, 0])


def test_the_check_of_columns_can_fail() -> None:
    A, b, _ = system(2)
    found = matchwood.solve(A, b)
    x = found.x.copy()
    x[7, 1] += 1
    for spoiled in (
        dataclasses.replace(found, x=x),
        dataclasses.replace(found, x=found.x[:, :1]),
        dataclasses.replace(found, x=found.x[:, ::-1]),
        dataclasses.replace(found, columns=found.columns[:1]),
        dataclasses.replace(found, columns=found.columns[::-1]),
        dataclasses.replace(found, info=3),
        dataclasses.replace(found, converged=False),
        x,
    ):
        with pytest.raises(matchwood.CheckFailed):
            check_solution(A, b, spoiled)


def test_restarts_of_gmres() -> None:
    A, b, _ = system(1)
    steps = {
        restart: matchwood.solve(A, b[:, 0], method="gmres", preconditioner="none", restart=restart)
        for restart in (2, 60)
    }
    assert all(one.converged for one in steps.values())
    assert steps[60].iterations < steps[2].iterations
    with pytest.raises(ValueError, match="restart is for methods 'gmres' and 'fgmres', got 'cg'"):
        matchwood.solve(A, b[:, 0], method="cg", restart=5)
    with pytest.raises(ValueError, match="solve: restart must be at least 1"):
        matchwood.solve(A, b[:, 0], method="gmres", restart=0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_minres_of_an_indefinite_matrix(dtype: type) -> None:
    """Eigenvalues on both sides of zero: CG has no right to converge, MINRES does."""
    A = matchwood.generators.grid((20, 20)).tocsr().astype(dtype) * dtype(-1)
    A = (A + sp.diags_array(np.linspace(-3, 5, 400).astype(dtype))).tocsr()
    values = np.linalg.eigvalsh(A.toarray())
    assert values[0] < 0 < values[-1]
    b = (A @ np.ones(400)).astype(dtype)
    rtol = 1e-4 if dtype == np.float32 else 1e-8
    for preconditioner in ("auto", "none"):
        found = matchwood.solve(
            A, b, method="minres", preconditioner=preconditioner, maxiter=5000, rtol=rtol
        )
        assert found.converged, found
        check_solution(A, b, found, rtol=rtol)


def test_minres_goes_on_where_it_stopped_too_early() -> None:
    """It measures residuals in the norm of the preconditioner."""
    A = matchwood.generators.grid((30, 30)).astype(np.float64)
    A = sp.csr_array(sp.diags_array(A.sum(axis=1) + 0.1) - A)
    for b in (np.ones(900), np.arange(900.0)):
        for preconditioner in ("jacobi", "tridiagonal", "algebraic_tridiagonal"):
            found = matchwood.solve(A, b, method="minres", preconditioner=preconditioner)
            check_solution(A, b, found)
            assert found.converged
            assert found.residuals.size == found.iterations + 1
    few = matchwood.solve(A, b, method="minres", preconditioner="jacobi", maxiter=20)
    assert (few.converged, few.iterations) == (False, 20)


def test_minres_takes_only_definite_preconditioners() -> None:
    A = sp.diags_array([-2.0, 3.0, 4.0]).tocsr()
    with pytest.raises(ValueError, match="positive diagonal"):
        matchwood.solve(A, np.ones(3), method="minres", preconditioner="jacobi")
    B = sp.diags_array([2.0, 3.0, 4.0]).tocsr()
    assert matchwood.solve(B, np.ones(3), method="minres", preconditioner="jacobi").converged
