"""`solve` and the preconditioners on systems that were made to mislead them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import matchwood
from adversarial.clock import attempts
from matchwood import preconditioners

METHODS = ("bicgstab", "cg", "gmres")
NAMES = ("auto", "none", "jacobi", "tridiagonal", "algebraic_tridiagonal",
         "algebraic_block_tridiagonal")  # fmt: skip


def drawn(r: np.random.Generator) -> sp.csr_array:
    """A matrix of any kind: sizes, signs, symmetry, scales, types, empty rows."""
    n = int(r.choice([0, 1, 2, 3, 7, 20, 60]))
    A = sp.random_array((n, n), density=min(1.0, 4 / max(n, 1)), rng=r, format="csr")
    A.data = r.standard_normal(A.nnz)
    if r.random() < 0.5:
        A = sp.csr_array(A + A.T)
    kind = r.integers(4)
    if kind < 2:  # dominant, so that it can be solved
        total = np.asarray(abs(A).sum(axis=1)).ravel()
        A = sp.csr_array(A + sp.diags_array(r.choice([1, 1, 1, -1]) * (total + r.random())))
    elif kind == 2:
        A = sp.csr_array(A + sp.eye_array(n))
    scale = r.choice([1.0, 1.0, 1e-300, 1e300, 1e-310, 1e30, 1e-30])
    with np.errstate(over="ignore"):
        A.data = A.data * scale
        A = A.astype(r.choice([np.float64, np.float64, np.float32]))
    A.data[~np.isfinite(A.data)] = 1.0
    return A


@pytest.mark.slow
def test_what_is_said_to_be_solved_is() -> None:
    """By the residual in float64, on scaled numbers; and nothing but named errors comes out."""
    for number in attempts(0.5):
        r = np.random.default_rng(number)
        A = drawn(r)
        n = A.shape[0]
        b = r.standard_normal(n) * r.choice([0.0, 1.0, 1e200, 1e-200])
        b = b.astype(r.choice([np.float64, np.float32])) if abs(b).max(initial=0) < 1e30 else b
        method, name = str(r.choice(METHODS)), str(r.choice(NAMES))
        maxiter = int(r.choice([0, 1, 30, 300]))
        try:
            found = matchwood.solve(A, b, method=method, preconditioner=name, maxiter=maxiter)
        except (ValueError, OverflowError) as error:
            if not any(word in str(error) for word in ("singular", "diagonal", "beyond")):
                raise
            continue
        kind = np.result_type(A.dtype, b.dtype)
        assert found.x.dtype == kind, number
        assert found.converged == (found.info == 0), number
        assert len(found.tried) >= 1
        if found.converged:
            assert residual(A, found.x, b) <= (1.01e-5 if kind == np.float32 else 1.01e-8), number
            assert found.residuals[-1] <= (1e-5 if kind == np.float32 else 1e-8), number


def residual(A: sp.csr_array, x: np.ndarray, b: np.ndarray) -> float:
    """|b - A x| / |b| in the longest type there is, which has exponents to spare."""
    wide = np.longdouble
    rows = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr))
    left = b.astype(wide)
    np.subtract.at(left, rows, A.data.astype(wide) * x.astype(wide)[A.indices])
    size = np.sqrt((b.astype(wide) ** 2).sum())
    return float(np.sqrt((left**2).sum()) / (size or 1))


@pytest.mark.parametrize("method", METHODS)
def test_single_precision_reaches_what_it_promises(method: str) -> None:
    A = matchwood.generators.aniso(2, (60, 60)).astype(np.float32)
    b = (A @ np.ones(3600, np.float32)).astype(np.float32)
    found = matchwood.solve(A, b, method=method)
    assert found.converged
    assert found.x.dtype == np.float32
    assert residual(A, found.x, b) <= 1e-5


@pytest.mark.parametrize("method", METHODS)
def test_a_wide_right_hand_side_is_not_cast_down(method: str) -> None:
    A = matchwood.generators.aniso(2, (30, 30)).astype(np.float32)
    true = 1 + np.arange(900) * 1e-9  # lost in float32
    b = A.astype(np.float64) @ true
    found = matchwood.solve(A, b, method=method, rtol=1e-12)
    assert found.x.dtype == np.float64
    assert found.converged
    assert np.abs(found.x - true).max() < 1e-9


def circuit(count: int = 12) -> sp.csr_array:
    """Triangles whose two heavy edges make a singular path; positive definite all the same.

    They are joined by edges so light that the forest has no place for them.
    """
    one = np.array([[1.0, 1.0, 0.5], [1.0, 2.0, 1.0], [0.5, 1.0, 1.0]])
    triangles = sp.kron(sp.diags_array(2.0 ** np.arange(count)), one)
    i = 3 * np.arange(count - 1) + 1  # the middle of a path has its two edges already
    light = sp.coo_array((np.full(count - 1, 0.01), (i, i + 3)), shape=(3 * count, 3 * count))
    return sp.csr_array(triangles + light + light.T)


def test_auto_tries_the_next_and_says_so() -> None:
    A = circuit()
    b = A @ np.sin(np.arange(A.shape[0]))
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        matchwood.solve(A, b, preconditioner="algebraic_tridiagonal")
    for method in ("bicgstab", "gmres"):
        found = matchwood.solve(A, b, method=method)
        assert found.converged
        (first, why), second = found.tried
        assert first == "algebraic_tridiagonal"
        assert "singular" in why
        assert second == ("jacobi", "used")
        assert found.preconditioner.name == "jacobi"
    found = matchwood.solve(A, b, method="cg")  # a definite one is not singular
    assert found.converged
    assert found.tried == (("algebraic_tridiagonal", "used"),)
    plain = matchwood.solve(matchwood.generators.aniso(1, (9, 9)), np.ones(81))
    assert plain.tried == (("algebraic_tridiagonal", "used"),)


def spd(r: np.random.Generator, n: int) -> sp.csr_array:
    """Positive definite, and far from dominant: a product of random matrices, scaled."""
    B = sp.random_array((n, n), density=min(1.0, 3 / n), rng=r, format="csr")
    B.data = r.standard_normal(B.nnz)
    scale = sp.diags_array(10.0 ** r.uniform(-2, 2, n))
    A = scale @ (B @ B.T + 0.05 * sp.eye_array(n)) @ scale
    return sp.csr_array((A + A.T) / 2)


MAKERS = (
    preconditioners.tridiagonal,
    preconditioners.algebraic_tridiagonal,
    preconditioners.algebraic_block_tridiagonal,
)


@pytest.mark.slow
def test_definite_is_what_the_eigenvalues_say() -> None:
    seen = set()
    for number in attempts(0.5):
        r = np.random.default_rng(number)
        A = spd(r, int(r.integers(2, 60)))
        for make in MAKERS:
            M = make(A)
            eigenvalues = spectrum(M)
            if abs(eigenvalues).min() > 1e-9 * abs(eigenvalues).max():  # else rounding decides
                assert M.definite == (eigenvalues.min() > 0), (number, M)
            seen.add((make.__name__, M.definite))
            better = make(A, definite=True)
            assert better.definite is True
            assert spectrum(better).min() > 0, (number, better)
            same = np.array_equal(better @ np.ones(A.shape[0]), M @ np.ones(A.shape[0]))
            assert same == M.definite  # nothing is touched that needs no help
            alone = make(A, definite=True, threads=1) @ np.ones(A.shape[0])
            many = make(A, definite=True, threads=3) @ np.ones(A.shape[0])
            assert np.array_equal(alone, many)
    assert {(make.__name__, True) for make in MAKERS} <= seen


def spectrum(M: Any) -> np.ndarray:
    whole = M @ np.eye(M.shape[0])
    return np.linalg.eigvalsh((whole + whole.T) / 2)


def test_definite_of_other_matrices() -> None:
    unsymmetric = sp.csr_array(np.array([[2.0, 1], [0, 2]]))
    negative = sp.csr_array(np.array([[-2.0, 1], [1, -2]]))
    for make in MAKERS:
        assert make(unsymmetric).definite is None
        assert make(negative).definite is False
        with pytest.raises(ValueError, match="definite=True needs a symmetric"):
            make(unsymmetric, definite=True)
        with pytest.raises(ValueError, match="definite=True needs a positive definite"):
            make(negative, definite=True)
    assert preconditioners.jacobi(negative).definite is False
    assert preconditioners.jacobi(unsymmetric).definite is True
    A = spd(np.random.default_rng(3), 40)
    M = preconditioners.algebraic_tridiagonal(A)
    assert M.definite is False
    with pytest.raises(ValueError, match="must be positive definite for 'cg'"):
        matchwood.solve(A, np.ones(40), preconditioner=M, method="cg")


@pytest.mark.parametrize("method", METHODS)
def test_the_ends_of_the_range(method: str) -> None:
    A = matchwood.generators.aniso(2, (12, 12))
    true = np.linspace(1, 2, 144)
    b = A @ true
    for up, right in [
        (1e300, 1e300),
        (1e-300, 1e-300),
        (1e-310, 1e-310),
        (1e300, 1.0),
        (1, 1e-300),
    ]:
        found = matchwood.solve(A * up, b * right, method=method)
        assert found.converged
        assert residual(A * up, found.x, b * right) <= 1.01e-8
    with pytest.raises(OverflowError, match="beyond the range of float64"):
        matchwood.solve(A * 1e-300, b * 1e100, method=method)
    with pytest.raises(OverflowError, match="beyond the range of float64"):
        matchwood.solve(A * 1e300, b * 1e-200, method=method)


@pytest.mark.parametrize("method", METHODS)
def test_nothing_small_and_nothing(method: str) -> None:
    A = matchwood.generators.aniso(2, (9, 9))
    none = matchwood.solve(sp.csr_array((0, 0)), np.zeros(0), method=method)
    assert none.converged
    assert none.x.shape == (0,)
    one = matchwood.solve(sp.csr_array([[4.0]]), [8.0], method=method)
    assert one.x.tolist() == [2.0]
    zero = matchwood.solve(A, np.zeros(81), x0=np.ones(81), method=method)
    assert zero.converged
    assert not zero.x.any()
    still = matchwood.solve(A, np.ones(81), maxiter=0, method=method)
    assert not still.converged
    assert still.info > 0
    empty_row = sp.csr_array(np.diag([1.0, 0.0, 2.0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lost = matchwood.solve(empty_row, np.ones(3), method=method)
    assert not lost.converged


def test_bad_numbers_are_named() -> None:
    A = matchwood.generators.aniso(2, (3, 3))
    b = np.ones(9)
    spoiled = A.copy()
    spoiled.data[4] = np.nan
    lacking = np.where(np.arange(9) == 4, np.nan, b)
    cases: list[tuple[tuple[Any, ...], dict[str, Any], type, str]] = [
        ((A, lacking), {}, ValueError, "b must be finite, got nan at 4"),
        ((A, b), {"x0": b * np.inf}, ValueError, "x0 must be finite, got inf at 0"),
        ((A, b.astype(np.longdouble)), {}, TypeError, "b must be real, float64 at most"),
        ((A, b.astype(object)), {}, TypeError, "b must be real"),
        ((A, b * 1j), {}, TypeError, "b must be real"),
        ((A.astype(complex), b), {}, TypeError, "solve: .*complex"),
        ((spoiled, b), {}, ValueError, "solve: weights must be finite, got nan"),
        ((A, b), {"rtol": -1}, ValueError, "rtol must be finite and at least 0"),
        ((A, b), {"rtol": np.nan}, ValueError, "rtol must be finite"),
        ((A, b), {"atol": "1"}, TypeError, "atol must be a number"),
        ((A, b), {"maxiter": 2.5}, TypeError, "maxiter must be an integer"),
        ((A, b), {"maxiter": -1}, ValueError, "maxiter must be at least 0"),
        ((A, b), {"history": 1}, TypeError, "history must be True or False"),
        ((A, b), {"method": ["cg"]}, ValueError, "method must be one of"),
    ]  # fmt: skip
    for args, options, error, message in cases:
        with pytest.raises(error, match=message):
            matchwood.solve(*args, **options)
    for bad in (np.nan, np.inf, -np.inf, 0.0, 1e-320):
        B = sp.csr_array(np.diag([1.0, bad, 2.0]))
        with pytest.raises(ValueError, match=r"jacobi: .* at row 1"):
            preconditioners.jacobi(B)
    M = preconditioners.tridiagonal(A)
    for vector in (np.ones(9, object), np.array(["1"] * 9), np.ones(9) * 1j):
        with pytest.raises(TypeError, match="tridiagonal: vectors must be real"):
            M.matvec(vector)
    for size in (0, 8, 10):
        with pytest.raises(ValueError, match="mismatch"):
            M.matvec(np.ones(size))


def test_a_preconditioner_that_raises_or_lies() -> None:
    """Its error comes out as it is; and what it says of the solution is not believed."""
    A = matchwood.generators.aniso(2, (9, 9))

    def refuse(_: Any) -> Any:
        raise KeyError("mine")

    own = sp.linalg.LinearOperator((81, 81), dtype=float, matvec=refuse)
    with pytest.raises(KeyError, match="mine"):
        matchwood.solve(A, np.ones(81), preconditioner=own)
    for spoil in (0.0, np.nan, np.inf, 1e300):
        lies = sp.linalg.LinearOperator((81, 81), dtype=float, matvec=lambda v, s=spoil: s * v)
        for method in METHODS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = matchwood.solve(
                    A, np.ones(81), preconditioner=lies, method=method, maxiter=20
                )
            good = residual(A, found.x, np.ones(81)) <= 1e-8
            assert found.converged == good
