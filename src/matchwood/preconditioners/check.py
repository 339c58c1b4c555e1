"""Is this operator a preconditioner of that matrix?  Decided by applying it to random vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import calls
from matchwood.errors import CheckFailed

ROUNDING = {"float32": 1e-3, "float64": 1e-9}  # of an application, relative to its largest number
VECTORS = 4  # random vectors


def check_preconditioner(A: Any, M: Any) -> None:
    """Raise `CheckFailed` unless `M` is linear, fits `A`, and is what it says of itself.

    That is: of the matrix's shape; linear, with ``M.H`` as its adjoint; its coverage between 0 and
    1; and where ``M.definite`` is True, x.Mx is positive for all vectors that are tried.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.preconditioners.check import check_preconditioner
    >>> A = matchwood.generators.aniso(2, (8, 8))
    >>> check_preconditioner(A, matchwood.preconditioners.algebraic_tridiagonal(A))
    """
    G = calls.enter(A, "check_preconditioner", "cpu").graph
    if M.shape != (G.n, G.n):
        raise CheckFailed(f"preconditioner: the shape must be {(G.n, G.n)}, got {M.shape}")
    if not 0 <= M.coverage <= 1 + 1e-9:
        raise CheckFailed(f"preconditioner: the coverage is {M.coverage}")
    rng = np.random.default_rng(0)
    for _ in range(VECTORS if G.n else 0):
        x, y = (rng.standard_normal(G.n).astype(M.dtype) for _ in range(2))
        _check_vectors(M, x, y, ROUNDING[np.dtype(M.dtype).name])


def _check_vectors(M: Any, x: Any, y: Any, rounding: float) -> None:
    one, other, both = M @ x, M @ y, M @ (x + y)
    size = float(max(abs(one).max(), abs(other).max()))
    if not float(abs(one + other - both).max()) <= rounding * size:
        raise CheckFailed("preconditioner: M (x + y) is not M x + M y")
    here, there = float(y @ one), float(x @ (M.H @ y))
    if not abs(here - there) <= rounding * size * float(abs(x).sum() + abs(y).sum()):
        raise CheckFailed(f"preconditioner: y.Mx is {here:g}, but x.(M.H y) is {there:g}")
    if M.definite and not float(x @ one) > 0:
        raise CheckFailed(f"preconditioner: it is called definite, but x.Mx is {float(x @ one):g}")
