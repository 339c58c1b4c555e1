"""Flexible Krylov methods: the preconditioner may be another one at every step.

SciPy and CuPy have none.  Each takes ``(A, b, x0, rtol, atol, maxiter, M, callback)`` as theirs do,
and returns ``x, info``.  They work on arrays of NumPy and of CuPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.krylov.check import norm

Callback = Callable[[Any], object] | None


def fcg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int = 1000,
    M: Any = None,
    callback: Callback = None,
) -> tuple[Any, int]:
    """Flexible conjugate gradients, for symmetric positive definite matrices.

    Parameters
    ----------
    A : (n, n) sparse matrix or LinearOperator
    b : (n,) array
    x0 : (n,) array or None
    rtol, atol : float
        Stop when ``|b - A x| <= max(rtol |b|, atol)``.
    maxiter : int
    M : LinearOperator or None
        The preconditioner; it need not be linear, as a K-cycle of `multilevel` is not.
    callback : function or None
        ``callback(x)`` after each iteration.

    Returns
    -------
    x : (n,) array
    info : int
        0: converged; above 0: `maxiter` iterations; below 0: it broke down.

    Notes
    -----
    Each direction is made orthogonal to the one before by a product with ``A p`` [1]_, instead of
    a quotient of residuals, which is right for a constant preconditioner only.

    References
    ----------
    .. [1] Y. Notay. Flexible conjugate gradients. SIAM J. Sci. Comput. 22(4), 2000.
       doi:10.1137/S1064827599362314

    Examples
    --------
    >>> import numpy as np
    >>> import matchwood
    >>> from matchwood.krylov import fcg
    >>> A = matchwood.generators.aniso(2, (50, 50))
    >>> M = matchwood.preconditioners.multilevel(A)
    >>> x, info = fcg(A, A @ np.ones(2500), M=M, rtol=1e-8)
    >>> info, bool(abs(x - 1).max() < 1e-5)
    (0, True)
    """
    options: dict[str, Any] = {"rtol": rtol, "atol": atol, "maxiter": maxiter, "M": M}
    return noticed_fcg(A, b, x0, callback=callback, late=callback is None, **options)


def noticed_fcg(
    A: Any, b: Any, x0: Any = None, *, rtol: float, atol: float, maxiter: int, M: Any,
    callback: Callback, late: bool,
) -> tuple[Any, int]:  # fmt: skip
    """`fcg`; on a GPU the callback may be `late`: then the next iteration is launched before it."""
    A, x, r, allowed, left = _started("fcg", A, b, x0, rtol, atol, maxiter)
    if left <= allowed:
        return x, 0
    if engines.location(x) == "gpu":
        gpu = engines.load(__package__, "gpu")
        found: tuple[Any, int] = gpu.fcg(A, x, r, allowed, maxiter, M, callback, late)
        return found
    p = q = None
    along = 1.0
    for _ in range(maxiter):
        z = r if M is None else M @ r  # which may be r itself
        p = z.copy() if p is None else z - (float(z @ q) / along) * p
        q = A @ p
        along = float(p @ q)
        if not along > 0:  # also NaN
            return x, -1
        step = float(p @ r) / along
        x += step * p
        r -= step * q
        if callback is not None:
            callback(x)
        if norm(r) <= allowed:
            return x, 0
    return x, maxiter


def fbicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int = 1000,
    M: Any = None,
    callback: Callback = None,
) -> tuple[Any, int]:
    """Flexible BiCGStab: preconditioned from the right, for any matrix.

    Two products with `A` and two with `M` an iteration.  Parameters and result are those of `fcg`.

    References
    ----------
    .. [1] J. A. Vogel. Flexible BiCG and flexible Bi-CGSTAB for nonsymmetric linear systems.
       Appl. Math. Comput. 188(1), 2007. doi:10.1016/j.amc.2006.09.116

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from matchwood.krylov import fbicgstab
    >>> x, info = fbicgstab(sp.csr_array([[2.0, 1.0], [0.0, 4.0]]), [3.0, 4.0], rtol=1e-12)
    >>> x.round(9).tolist(), info
    ([1.0, 1.0], 0)
    """
    A, x, r, allowed, left = _started("fbicgstab", A, b, x0, rtol, atol, maxiter)
    if left <= allowed:
        return x, 0
    if engines.location(x) == "gpu":
        gpu = engines.load(__package__, "gpu")
        found: tuple[Any, int] = gpu.fbicgstab(A, x, r, allowed, maxiter, M, callback)
        return found
    shadow = r.copy()
    p: Any = None
    v: Any = None
    before = alpha = omega = 1.0
    for _ in range(maxiter):
        rho = float(shadow @ r)
        if rho == 0 or not np.isfinite(rho):
            return x, -1
        p = r.copy() if p is None else r + (rho / before * alpha / omega) * (p - omega * v)
        before = rho
        towards = p if M is None else M @ p
        v = A @ towards
        turned = float(shadow @ v)
        if turned == 0 or not np.isfinite(turned):
            return x, -1
        alpha = rho / turned
        r -= alpha * v
        x += alpha * towards
        if norm(r) > allowed:
            towards = r if M is None else M @ r
            t = A @ towards
            size = float(t @ t)
            if not size > 0:
                return x, -1
            omega = float(t @ r) / size
            x += omega * towards
            r -= omega * t
        if callback is not None:
            callback(x)
        if norm(r) <= allowed:
            return x, 0
        if omega == 0:
            return x, -1
    return x, maxiter


def fgmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int = 1000,
    M: Any = None,
    callback: Callback = None,
) -> tuple[Any, int]:
    """Flexible GMRES, for any matrix.  It keeps two vectors for each step of a restart.

    Parameters and result are those of `fcg`, but `maxiter` counts restarts of `restart` steps, and
    ``callback(residual)`` gets ``|b - A x| / |b|`` as each step estimates it.

    References
    ----------
    .. [1] Y. Saad. A flexible inner-outer preconditioned GMRES algorithm. SIAM J. Sci. Comput.
       14(2), 1993. doi:10.1137/0914028

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> from matchwood.krylov import fgmres
    >>> x, info = fgmres(sp.csr_array([[2.0, 1.0], [0.0, 4.0]]), [3.0, 4.0], rtol=1e-12)
    >>> x.round(9).tolist(), info
    ([1.0, 1.0], 0)
    """
    restart = arguments.count("fgmres", "restart", restart, 1)
    A, x, r, allowed, left = _started("fgmres", A, b, x0, rtol, atol, maxiter)
    right_side = r if x0 is None else r + A @ x
    size, on_gpu = norm(right_side) or 1.0, engines.location(x) == "gpu"
    for _ in range(maxiter):
        if left <= allowed:
            return x, 0
        basis, towards, right = [r / left], [], [left]
        columns: list[Any] = []  # of R
        turns: list[tuple[float, float]] = []
        steps = 0
        for j in range(min(restart, max(20, r.size))):  # no more directions than rows
            towards.append(basis[j] if M is None else M @ basis[j])
            w = A @ towards[j]
            parts = []
            for one in basis:  # modified Gram-Schmidt
                parts.append(one @ w if on_gpu else float(one @ w))
                w = w - parts[-1] * one
            parts.append((w @ w) ** 0.5 if on_gpu else norm(w))
            h = np.array(engines.cupy().stack(parts).get() if on_gpu else parts, np.float64)
            length = h[j + 1]
            if not np.isfinite(length):
                return x, -1
            for i, (c, s) in enumerate(turns):
                h[i], h[i + 1] = c * h[i] + s * h[i + 1], c * h[i + 1] - s * h[i]
            both = float(np.hypot(h[j], length))
            if both == 0:
                break
            steps = j + 1
            c, s = h[j] / both, length / both
            turns.append((c, s))
            h[j] = both
            columns.append(h[:steps])
            right[j:] = c * right[j], -s * right[j]
            if callback is not None:
                callback(abs(right[j + 1]) / size)
            if abs(right[j + 1]) <= allowed or length == 0:
                break
            basis.append(w / float(length))
        if steps == 0:
            return x, -1
        R = np.stack([np.pad(h, (0, steps - h.size)) for h in columns], axis=1)
        y = np.linalg.solve(R, right[:steps])
        for factor, direction in zip(y, towards, strict=False):
            x += float(factor) * direction
        r = right_side - A @ x
        left = norm(r)
    return x, 0 if left <= allowed else maxiter


def _started(
    caller: str, A: Any, b: Any, x0: Any, rtol: float, atol: float, maxiter: int
) -> tuple[Any, Any, Any, float, float]:
    """A, x, b - A x, the norm to reach, and that of the residual."""
    arguments.count(caller, "maxiter", maxiter)
    rtol = arguments.real(caller, "rtol", rtol, 0.0)
    atol = arguments.real(caller, "atol", atol, 0.0)
    shape = A.shape if hasattr(A, "shape") and hasattr(A, "dtype") else type(A).__name__
    if isinstance(shape, str) or len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"{caller}: A must be a square matrix, got {shape}")
    if engines.location(b) == "cpu":
        b = arguments.plain(caller, "b", b)
    xp = engines.xp(b)
    if b.shape != (A.shape[0],):
        raise ValueError(f"{caller}: b must have shape ({A.shape[0]},), got {b.shape}")
    if b.dtype.kind not in "fiub" or np.dtype(A.dtype).kind not in "fiub":
        raise TypeError(f"{caller}: A and b must be real, got {A.dtype} and {b.dtype}")
    kind = np.result_type(A.dtype, b.dtype)
    kind = np.dtype(np.float32) if kind == np.float32 else np.dtype(np.float64)
    b = b.astype(kind, copy=False)
    size = norm(b)
    x = xp.zeros(b.shape, kind) if x0 is None or size == 0 else xp.array(x0, kind)
    if x.shape != b.shape:
        raise ValueError(f"{caller}: x0 must have shape {b.shape}, got {x.shape}")
    r = b.copy() if x0 is None or size == 0 else b - A @ x
    left = norm(r)
    if not np.isfinite(left):
        raise ValueError(f"{caller}: b and x0 must be finite")
    return A, x, r, max(rtol * size, atol), left


METHODS = {"fcg": fcg, "fbicgstab": fbicgstab, "fgmres": fgmres}
