"""Is this operator a preconditioner of that matrix?  Decided by applying it to random vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import arguments, calls, engines
from matchwood.errors import CheckFailed

ROUNDING = {"float32": 1e-3, "float64": 1e-9}  # error of M x, relative to its largest element
VECTORS = 4  # pairs of random vectors that are tried


def check_preconditioner(A: Any, M: Any) -> None:
    """Raise `CheckFailed` unless `M` is linear, fits `A`, and its attributes are right.

    It must have the matrix's shape, be linear with ``M.H`` as its adjoint, and have a coverage
    between 0 and 1.  Where ``M.definite`` is True, x.Mx must be positive for all vectors tried.
    Cycles of an unsymmetric matrix have no adjoint; of a K-cycle, which is not linear, only
    ``M (2 x) = 2 M x`` is required.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
    M : LinearOperator
        One of `matchwood.preconditioners`, or any other; then coverage and definiteness are not
        checked.

    Notes
    -----
    The vectors are random, the same at every call.  Faults that change the result by less than the
    rounding errors are not found.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.preconditioners.check import check_preconditioner
    >>> A = matchwood.generators.aniso(2, (8, 8))
    >>> check_preconditioner(A, matchwood.preconditioners.algebraic_tridiagonal(A))
    """
    caller = "check_preconditioner"
    G = calls.enter(A, caller, "cpu").graph
    kind = np.dtype(getattr(M, "dtype", None) or object)
    if not hasattr(M, "shape") or kind.name not in ROUNDING:
        got = f"{type(M).__name__} of {kind}" if hasattr(M, "shape") else type(M).__name__
        raise TypeError(f"{caller}: M must be a linear operator of float32 or float64, got {got}")
    if tuple(M.shape) != (G.n, G.n):
        raise CheckFailed(f"preconditioner: the shape must be {(G.n, G.n)}, got {M.shape}")
    _check_attributes(M, caller)
    home = "gpu" if any(base.__module__.startswith("cupy") for base in type(M).__mro__) else "cpu"
    rng = np.random.default_rng(0)
    for _ in range(VECTORS if G.n else 0):
        drawn = (rng.standard_normal(G.n).astype(kind) for _ in range(2))
        x, y = (engines.moved(vector, home) for vector in drawn)
        with np.errstate(over="ignore", invalid="ignore"):  # NaN is refused below
            if getattr(M, "cycle", None) != "K":
                inside = np.dtype(getattr(M, "precision", None) or kind).name
                _check_vectors(M, x, y, max(ROUNDING[inside], ROUNDING[kind.name]))
            elif not np.array_equal(M @ (2 * x), 2 * (M @ x)):
                raise CheckFailed("preconditioner: M (2 x) is not 2 M x")


def _check_attributes(M: Any, caller: str) -> None:
    """Check the attributes `definite` and `coverage`, if there are any."""
    definite = getattr(M, "definite", None)
    if definite is not None:
        arguments.flag(caller, "definite", definite)
    if not hasattr(M, "coverage"):
        return
    coverage = M.coverage
    if isinstance(coverage, bool) or not isinstance(coverage, (int, float, np.floating)):
        raise TypeError(f"{caller}: coverage must be a number, got {arguments.shown(coverage)}")
    if not 0 <= coverage <= 1 + 1e-9:
        raise CheckFailed(f"preconditioner: the coverage is {coverage}")


def _check_vectors(M: Any, x: Any, y: Any, rounding: float) -> None:
    """Check linearity, the adjoint and definiteness with two random vectors."""
    try:
        one, other, both = M @ x, M @ y, M @ (x + y)
        back = M.H @ y if getattr(M, "symmetric", True) else None
    except ValueError as error:  # raised by M, or by SciPy where a result has another shape
        raise CheckFailed(f"preconditioner: it cannot be applied: {error}") from error
    size = float(max(abs(one).max(), abs(other).max()))
    if not float(abs(one + other - both).max()) <= rounding * size:
        raise CheckFailed("preconditioner: M (x + y) is not M x + M y")
    here = float(y @ one)
    there = here if back is None else float(x @ back)
    if not abs(here - there) <= rounding * size * float(abs(x).sum() + abs(y).sum()):
        raise CheckFailed(f"preconditioner: y.Mx is {here:g}, but x.(M.H y) is {there:g}")
    if getattr(M, "definite", None) and not float(x @ one) > 0:
        raise CheckFailed(f"preconditioner: it is called definite, but x.Mx is {float(x @ one):g}")
