"""`matchwood.solve`: SciPy's answers, with a history."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from bench.preconditioners.problems import right_hand_side
from matchwood import preconditioners
from matchwood.krylov.check import check_solution

NAMES = ["auto", "none", "jacobi", "tridiagonal", "algebraic_tridiagonal"]


@pytest.fixture(scope="module")
def problem() -> tuple[sp.csr_array, np.ndarray, np.ndarray]:
    A = matchwood.generators.aniso(2, (40, 40))
    x, b = right_hand_side(A)
    return A, x, b


@pytest.mark.parametrize("name", [*NAMES, "algebraic_block_tridiagonal"])
def test_solves(problem: tuple, name: str) -> None:
    A, true, b = problem
    for method in ("bicgstab", "cg", "gmres"):
        found = matchwood.solve(A, b, preconditioner=name, method=method, true_solution=true)
        x, info = found
        assert info == 0
        assert found.converged
        assert np.linalg.norm(b - A @ x) <= 1.01e-8 * np.linalg.norm(b)
        assert found.residuals[0] == 1
        assert found.residuals[-1] <= 1.01e-8
        assert found.residuals.shape == (found.iterations + 1,)
        assert found.errors[0] == 1
        assert found.errors[-1] < 1e-5
        assert np.isclose(found.errors[-1], np.linalg.norm(x - true) / np.linalg.norm(true))
        if method != "gmres":
            assert found.errors.shape == found.residuals.shape
        assert set(found.seconds) == {"setup", "iterations"}
        assert (found.preconditioner is None) == (name == "none")


def test_equals_scipy(problem: tuple) -> None:
    A, _, b = problem
    M = preconditioners.algebraic_tridiagonal(A)
    for method in ("bicgstab", "cg", "gmres"):
        expected, _ = getattr(sp.linalg, method)(A, b, M=M, rtol=1e-8, maxiter=1000)
        for history in (True, False):
            found = matchwood.solve(A, b, preconditioner=M, method=method, history=history)
            assert np.array_equal(found.x, expected)
            assert found.preconditioner is M
    assert found.errors is None
    assert found.residuals.shape == (2,)


def test_auto_takes_what_contains_more(problem: tuple) -> None:
    A, _, b = problem
    found = matchwood.solve(A, b, method="bicgstab")
    assert found.preconditioner.name == "algebraic_tridiagonal"
    path = sp.csr_array(3 * sp.eye_array(50) - matchwood.generators.path(50))
    path.data += np.linspace(0, 0.1, path.nnz)
    found = matchwood.solve(path, np.ones(50))
    assert found.preconditioner.coverage > 0.999
    assert found.iterations <= 2


def test_no_convergence_is_said(problem: tuple) -> None:
    A, _, b = problem
    found = matchwood.solve(A, b, preconditioner="none", maxiter=3)
    assert not found.converged
    assert found.info > 0
    assert found.iterations == 3


def test_start_and_zero(problem: tuple) -> None:
    A, true, b = problem
    found = matchwood.solve(A, b, x0=true)
    assert found.converged
    assert found.iterations == 0
    found = matchwood.solve(A, 0 * b)
    assert found.converged
    assert not found.x.any()
    found = matchwood.solve(A, 0 * b, x0=true, method="fcg", maxiter=1)  # 0 is the solution
    assert (found.converged, found.iterations) == (True, 0)
    assert not found.x.any()


@pytest.mark.slow
def test_single_precision(problem: tuple) -> None:
    A, _, b = problem
    single = matchwood.solve(A.astype(np.float32), b.astype(np.float32), rtol=1e-4)
    assert single.converged
    assert single.x.dtype == np.float32


def test_bad_input(problem: tuple) -> None:
    A, _, b = problem
    for arguments, error, message in [
        ({"method": "sor"}, ValueError, "method must be one of 'auto', 'bicgstab'"),
        ({"preconditioner": "ilu"}, ValueError, "preconditioner must be one of 'auto'"),
        ({"preconditioner": np.eye(3)}, ValueError, r"must have shape \(1600, 1600\)"),
        ({"x0": b[:5]}, ValueError, r"x0 must have shape \(1600,\)"),
        ({"true_solution": 1j * b}, TypeError, "true_solution must be real"),
    ]:
        with pytest.raises(error, match=message):
            matchwood.solve(A, b, **arguments)
    with pytest.raises(ValueError, match=r"b must have shape \(1600,\)"):
        matchwood.solve(A, b[:7])
    with pytest.raises(ValueError, match="must be square"):
        matchwood.solve(sp.csr_array((2, 3)), b)


def test_engine_and_threads_are_those_of_all_others() -> None:
    A = matchwood.generators.aniso(2, (20, 20))
    b = A @ np.ones(400)
    expected = matchwood.solve(A, b)
    for threads in (1, 2, 3):
        found = matchwood.solve(A, b, engine="cpu", threads=threads)
        assert np.array_equal(found.x, expected.x)
    with pytest.raises(matchwood.EngineUnavailable, match="solve has no 'reference' engine"):
        matchwood.solve(A, b, engine="reference")
    with pytest.raises(ValueError, match="solve: engine must be None or one of"):
        matchwood.solve(A, b, engine="fpga")


def test_solutions_are_checked() -> None:
    A = matchwood.generators.aniso(2, (20, 20))
    b = A @ np.ones(400)
    found = matchwood.solve(A, b)
    found.check(A, b)
    check_solution(A, b, np.ones(400))
    with pytest.raises(matchwood.CheckFailed, match="the residual is"):
        check_solution(A, b, 2 * found.x)
    with pytest.raises(matchwood.CheckFailed, match="x must have 400 elements"):
        check_solution(A, b, found.x[:-1])
    with pytest.raises(matchwood.CheckFailed, match=r"x\[3\] is not finite"):
        check_solution(A, b, np.where(np.arange(400) == 3, np.nan, found.x))
    with pytest.raises(matchwood.CheckFailed, match="its history ends at"):
        dataclasses.replace(found, residuals=found.residuals * 10).check(A, b)
    with pytest.raises(ValueError, match="check_solution: b must have shape"):
        check_solution(A, b[:-1], found.x)


def test_the_best_method_is_the_default(problem: tuple) -> None:
    A, _, b = problem
    expected = matchwood.solve(
        A, b, preconditioner=matchwood.preconditioners.multilevel(A, precision="float32")
    )
    for found in (matchwood.solve(A, b), matchwood.solve(A, b, method="auto")):
        assert np.array_equal(found.x, expected.x)
        assert found.iterations == expected.iterations


def test_levels_are_made_only_where_they_can_gain() -> None:
    """Neither where the diagonal dominates, nor where entries beside it are positive."""
    grid = matchwood.generators.grid((40, 40))
    eye = sp.eye_array(1600)
    for A, levels in (
        (4.9 * eye - grid, True), (5.1 * eye - grid, False), (4.9 * eye + grid, False),
    ):  # fmt: skip
        found = matchwood.solve(A, np.ones(1600))
        assert found.converged
        assert (found.preconditioner.name == "multilevel") == levels
