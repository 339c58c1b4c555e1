"""Iterative solution of linear systems: SciPy's and CuPy's Krylov solvers, with a history.

    solve               any system, with one of `matchwood.preconditioners`
    solve_laplacian     the system of a graph's Laplacian
    fcg fgmres fbicgstab    flexible methods, which SciPy and CuPy do not have

Read on in system.py (the gate, the preconditioners, a run of a method), flexible.py, result.py and
check.py; cpu.py has a kernel for `fcg`, whose definition is in reference.py.  The other engines are
the solvers of SciPy and CuPy; there is no reference engine.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from matchwood import arguments, calls, engines
from matchwood.components import connected_components
from matchwood.errors import EngineUnavailable
from matchwood.gate import graph as csr
from matchwood.gate.views import sparse_matrix
from matchwood.krylov import system
from matchwood.krylov.flexible import fbicgstab, fcg, fgmres
from matchwood.krylov.result import Solution
from matchwood.krylov.system import PRECONDITIONERS as PRECONDITIONERS
from matchwood.stopwatch import Stopwatch

__all__ = ["Solution", "fbicgstab", "fcg", "fgmres", "solve", "solve_laplacian"]

METHODS = ("auto", "bicgstab", "cg", "fbicgstab", "fcg", "fgmres", "gmres", "minres")

ROUNDING = 4 * np.finfo(np.float64).eps  # of a number less the mean, where it is the mean
# Default tolerances, relative to |b|: well above the rounding error of the type.
RTOL = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-8}


def solve(
    A: Any,
    b: Any,
    *,
    preconditioner: Any = "auto",
    method: str = "auto",
    rtol: float | None = None,
    atol: float = 0.0,
    maxiter: int = 1000,
    restart: int | None = None,
    x0: Any = None,
    true_solution: Any = None,
    history: bool = True,
    near_nullspace: Any = None,
    blocksize: int | None = None,
    engine: str | None = None,
    threads: int | None = None,
) -> Solution:
    """Solve a sparse linear system with a preconditioned Krylov method.

    The methods are those of `scipy.sparse.linalg`, or of `cupyx.scipy.sparse.linalg` on a GPU.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        float32 or float64; integers are taken as float64.
    b : (n,) or (n, k) array, where `A` lies
        The wider type of `A` and `b` is that of the calculation and of `x`.  Columns are solved one
        after the other, with one preconditioner.
    preconditioner : str, LinearOperator, sparse matrix or None
        ``"jacobi"``, ``"tridiagonal"``, ``"algebraic_tridiagonal"``,
        ``"algebraic_block_tridiagonal"``, ``"multilevel"``, or an operator.  ``"auto"`` takes
        `multilevel`, in float32 where that holds its numbers, if `method` is ``"auto"``, too, and
        the matrix is symmetric, has at least 1000 rows and a positive diagonal that does not
        dominate all rows (the others sum to more than 0.8 of it in some), and most weight beside it
        is negative.  Otherwise, or where that fails, it takes the tridiagonal part in the order as
        given, or that of a linear forest if it contains more weight.  Where that is singular, or
        the method breaks down or diverges with it, Jacobi is tried, and then no preconditioner.
        None and ``"none"``: none.
    method : {"auto", "bicgstab", "cg", "gmres", "minres", "fcg", "fgmres", "fbicgstab"}
        ``"auto"`` is ``"fcg"`` with `multilevel` and a symmetric matrix, ``"fbicgstab"`` with
        another matrix, and else ``"bicgstab"``: it needs no symmetry, and its memory does not grow
        with the iterations.  The three flexible ones take any preconditioner, the others no
        K-cycle.  ``"cg"`` needs a symmetric positive definite matrix and preconditioner.  The
        preconditioners that are named here are made positive definite for it, where the matrix is
        symmetric.  ``"minres"`` needs a symmetric matrix, definite or not, and a preconditioner
        that is positive definite; where none of them is, it goes without.
    rtol, atol : float
        Stop when ``|b - A x| <= max(rtol |b|, atol)``.  An `rtol` of None is 1e-8 in float64 and
        1e-5 in float32.
    maxiter : int
        Most iterations (of GMRES: restarts), for each preconditioner that is tried.
    restart : int or None
        Of GMRES: iterations between restarts; None is 20.  It keeps this number of vectors.
    x0 : array of the shape of `b`, or None
        The starting vector; None is zero.
    true_solution : array of the shape of `b`, or None
        When given, the history also has the forward relative error.
    history : bool
        Record the residual after every iteration, which costs one more product with `A` each.
    near_nullspace : (n, q) array or None
        Candidates for `multilevel`, which ``"auto"`` then is: rigid body modes of an elasticity
        problem, for one.
    blocksize : int or None
        With `near_nullspace`: rows of a node; None takes the blocks of a BSR matrix, or what the
        candidates show.
    engine : {None, "cpu", "gpu"}
        None takes the engine where `A` lives.  With another, matrix and vectors are moved there for
        the call, and `x` is moved back; `Solution.preconditioner` stays there.
    threads : int or None
        CPU threads of the preconditioner; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    Solution
        Unpacks as SciPy's answer, ``x, info``; also `converged`, `iterations`, `residuals`,
        `errors`, `preconditioner`, `tried`, `method` and `seconds`; of several columns also
        `columns`.

    Raises
    ------
    TypeError, ValueError
        If `A` is not square or complex, a number is not finite, shapes do not fit, or a name is
        unknown.
    numpy.linalg.LinAlgError, ValueError
        If the preconditioner asked for by name cannot be made.
    EngineUnavailable
        If `engine` is "gpu" and there is none, or "reference".
    OverflowError
        If the solution is beyond the range of its type, or so small that it would be zero.

    Notes
    -----
    A method updates its residual from step to step, and this value may become smaller than the
    true residual.  Where the method stops too early, it is started again from the vector reached.
    `converged` is decided by the residual of `x` itself, in float64.

    Very large and very small numbers are multiplied by powers of two inside.

    An iteration of BiCGStab has two products with `A` and two with the preconditioner; one of CG,
    MINRES or GMRES has one each.  For GMRES the history has the residual of the preconditioned
    system, as the method estimates it at every step.  CuPy's GMRES gives it at restarts only, which
    then count as iterations.

    Examples
    --------
    >>> import numpy as np
    >>> import matchwood
    >>> A = matchwood.generators.aniso(2, (40, 40))
    >>> b = A @ np.ones(1600)
    >>> found = matchwood.solve(A, b, true_solution=np.ones(1600))
    >>> found.converged, bool(found.residuals[-1] < 1e-8), bool(found.errors[-1] < 1e-5)
    (True, True, True)
    >>> plain = matchwood.solve(A, b, preconditioner="jacobi")
    >>> found.iterations < plain.iterations
    True
    """
    caller = "solve"
    arguments.one_of(caller, "method", method, METHODS)
    if restart is not None:
        restart = arguments.count(caller, "restart", restart, 1)
        if not method.endswith("gmres"):
            raise ValueError(
                f"{caller}: restart is for methods 'gmres' and 'fgmres', got {method!r}"
            )
    if near_nullspace is not None:
        if not isinstance(preconditioner, str) or preconditioner not in ("auto", "multilevel"):
            raise ValueError(f"{caller}: near_nullspace is for preconditioner 'multilevel'")
        sides = getattr(A, "blocksize", None) or (None, 0)  # of BSR matrices
        blocksize = sides[0] if blocksize is None and sides[0] == sides[1] else blocksize
    near = {"near_nullspace": near_nullspace, "blocksize": blocksize}
    if getattr(b, "ndim", 1) == 2 or (isinstance(b, (list, tuple)) and np.ndim(b) == 2):
        options: dict[str, Any] = {
            "preconditioner": preconditioner, "method": method, "rtol": rtol, "atol": atol,
            "maxiter": maxiter, "restart": restart, "history": history, "engine": engine,
            "threads": threads, **near,
        }  # fmt: skip
        return _solve_columns(A, b, x0, true_solution, options)
    atol = arguments.real(caller, "atol", atol, 0.0)
    maxiter = arguments.count(caller, "maxiter", maxiter)
    history = arguments.flag(caller, "history", history)
    asked = system.problem(A, b, x0, true_solution, caller, engine, threads)
    rtol = RTOL[asked.matrix.dtype] if rtol is None else arguments.real(caller, "rtol", rtol, 0.0)
    atol = float(np.ldexp(atol, -asked.right_shift))
    system.expect_preconditioner(caller, preconditioner, asked.G.n)
    tried: list[tuple[str, str]] = []
    best: Solution | None = None
    automatic = near_nullspace is None and isinstance(preconditioner, str)
    automatic = automatic and preconditioner == "auto"
    for name, make in system.candidates(asked.G, preconditioner, method, threads, near):
        watch = Stopwatch()
        try:
            operator = make()
        except ValueError as error:  # LinAlgError is one
            if not automatic:
                raise
            tried.append((name, str(error)))
            continue
        watch.lap("setup")
        taken = system.fitting(asked.G, operator) if method == "auto" else method
        limits = system.Limits(taken, rtol, atol, maxiter, restart)
        run = system.Run(asked, limits, history, threads)
        found = dataclasses.replace(run(operator, watch), method=taken)
        if automatic and operator is not None and "," not in name:
            name = operator.name
        tried.append((name, "used" if found.converged else run.reason(found)))
        if best is None or _better(found, best):
            best = found
            used = len(tried) - 1
        if found.converged or not run.failed(found):
            break
    assert best is not None
    if len(tried) > 1 or not best.converged:
        name, said = tried[used]
        tried[used] = (name, "used" if said == "used" else f"used; {said}")
    x = system.unscaled(caller, best.x, asked.shift, asked.place)
    return dataclasses.replace(best, x=x, tried=tuple(tried))


def _better(one: Solution, other: Solution) -> bool:
    """Whether `one` has the smaller residual; NaN counts as the largest."""
    return bool(one.residuals[-1] < other.residuals[-1] or np.isnan(other.residuals[-1]))


def _solve_columns(
    A: Any, b: Any, x0: Any, true_solution: Any, options: dict[str, Any]
) -> Solution:
    """`solve` for (n, k) right-hand sides: one after the other, with one preconditioner."""
    caller = "solve"
    G = csr.as_graph(A, caller)
    given = {"b": b, "x0": x0, "true_solution": true_solution}
    for name, array in given.items():
        if array is None:
            continue
        if engines.location(array) == "cpu":
            array = given[name] = arguments.plain(caller, name, array)
        if array.ndim != 2 or array.shape != (G.n, given["b"].shape[1]):
            wanted = f"({G.n}, {given['b'].shape[1]})" if name != "b" else f"({G.n}, k)"
            raise ValueError(f"{caller}: {name} must have shape {wanted}, got {array.shape}")
    if given["b"].shape[1] == 0:
        zero = solve(G, engines.xp(given["b"]).zeros(G.n, given["b"].dtype), **options)
        return dataclasses.replace(zero, x=zero.x[:, None][:, :0])
    preconditioner = options["preconditioner"]
    found: list[Solution] = []
    for j in range(given["b"].shape[1]):
        b_j, x_j, true_j = (
            None if array is None else engines.xp(array).ascontiguousarray(array[:, j])
            for array in given.values()
        )
        answer = solve(G, b_j, x0=x_j, true_solution=true_j, **options)
        found.append(answer)
        if isinstance(preconditioner, str) and answer.converged and answer.iterations:
            made = answer.preconditioner
            options = {**options, "preconditioner": "none" if made is None else made}
            options |= {"near_nullspace": None, "blocksize": None}
    return _together(found)


def _together(found: list[Solution]) -> Solution:
    """One Solution: the histories are those of the column that ended with the largest residual."""
    worst = max(found, key=lambda one: (np.isnan(one.residuals[-1]), one.residuals[-1]))
    names = found[0].seconds
    return dataclasses.replace(
        worst,
        x=engines.xp(worst.x).stack([one.x for one in found], axis=1),
        info=next((one.info for one in found if one.info != 0), 0),
        converged=all(one.converged for one in found),
        preconditioner=found[0].preconditioner,
        seconds={name: sum(one.seconds[name] for one in found) for name in names},
        tried=found[0].tried,
        columns=tuple(found),
    )


# Laplacians


def solve_laplacian(
    A: Any,
    b: Any,
    *,
    preconditioner: Any = "multilevel",
    rtol: float = 1e-8,
    maxiter: int = 1000,
    history: bool = True,
    engine: str | None = None,
    threads: int | None = None,
) -> Solution:
    """Solve ``L x = b`` with the Laplacian of a weighted graph, ``L = D - W``.

    W has the weight of each edge, D the sums of its rows.  L is singular: constants on a component
    are mapped to 0.  So `b` is projected: the mean over each component is subtracted from it; and
    of all solutions the one is returned whose mean over each component is 0.  This is ``L^+ b``
    with the pseudoinverse of L.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        The graph, not its Laplacian.  Weights are ``|a_ij|``, or ``|a_ij| + |a_ji|`` where `A` is
        not symmetric; the diagonal is not read.
    b : (n,) or (n, k) array
    preconditioner : str, LinearOperator or None
        As of `solve`, for L with 1 on the diagonal of vertices without neighbours; for several
        right-hand sides one after the other, take that of the first `Solution`.
    rtol : float
        Stop when ``|b - L x| <= rtol |b|``, with `b` after the projection.
    maxiter : int
    history : bool
        Record the residual after every iteration.
    engine : {None, "cpu", "gpu"}
        None takes the engine where `A` lives, and `b` must lie there.  With another, they are moved
        there for the call, and `x` is moved back.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    Solution
        As of `solve`.

    Raises
    ------
    EngineUnavailable
        If `engine` is "gpu" and there is none, or "reference".
    TypeError, ValueError
        If `A` is not square, complex or not finite, or `b` does not fit.

    Notes
    -----
    Method: flexible CG with a K-cycle of `multilevel`.  Meshes and road networks take 20 to 40
    iterations, R-MAT graphs about 15.

    Examples
    --------
    The effective resistance between the ends of a path of three unit resistors:

    >>> import numpy as np
    >>> import matchwood
    >>> A = matchwood.generators.path(4)
    >>> b = np.array([1.0, 0.0, 0.0, -1.0])
    >>> x = matchwood.solve_laplacian(A, b).x
    >>> float((x[0] - x[3]).round(6))
    3.0
    """
    caller = "solve_laplacian"
    rtol = arguments.real(caller, "rtol", rtol, 0.0)
    maxiter = arguments.count(caller, "maxiter", maxiter)
    history = arguments.flag(caller, "history", history)
    call = calls.enter(A, caller, engine, threads)
    if call.engine == "reference":
        raise EngineUnavailable(f"{caller} has no {call.engine!r} engine")
    G, place = call.graph, call.given.engine
    system.expect_preconditioner(caller, preconditioner, G.n)
    if engines.location(b) == "cpu":
        b = arguments.plain(caller, "b", b)
    if engines.location(b) != place:
        raise TypeError(f"{caller}: b must lie where A does, on the {place.upper()}")
    b = call.here(b)
    if b.ndim not in (1, 2) or b.shape[0] != G.n:
        raise ValueError(f"{caller}: b must have shape ({G.n},) or ({G.n}, k), got {b.shape}")
    if b.dtype.kind not in "fiub":
        raise TypeError(f"{caller}: b must be real, got {b.dtype}")
    with np.errstate(over="ignore"):  # longer types have larger numbers
        b = b.astype(np.float64)
    if not bool(engines.xp(b).isfinite(b).all()):
        raise ValueError(f"{caller}: b must be finite")
    W, L, power = _laplacian_of(G, caller)
    parts = connected_components(W, threads=threads)
    labels, count = parts.labels, int(parts.count)
    powers = system.exponent(system.largest(b), b.dtype)
    b = system.scaled(b, -powers)
    right = _centred(b, labels, count)
    right = _centred(right * (abs(right) > ROUNDING * abs(b)), labels, count)
    if isinstance(preconditioner, str) and preconditioner == "multilevel":
        preconditioner = _Centred(
            PRECONDITIONERS[preconditioner](L, threads=threads), labels, count
        )
    found = solve(
        L, right, preconditioner=preconditioner,
        method="auto", rtol=rtol, maxiter=maxiter, history=history, threads=threads,
    )  # fmt: skip
    x = system.unscaled(caller, _centred(found.x, labels, count), powers - power, place)
    columns = (dataclasses.replace(one, x=x[:, j]) for j, one in enumerate(found.columns))
    return dataclasses.replace(found, x=x, columns=tuple(columns))


class _Centred:
    """A preconditioner whose answers have mean 0 on each component.

    A cycle adds constants, which A maps to 0.  Without this they grow until the directions of CG
    are constant to rounding.
    """

    def __init__(self, made: Any, labels: Any, count: int) -> None:
        self._made, self._labels, self._count = made, labels, count

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copies and pickles look for their methods before there is _made
            raise AttributeError(name)
        return getattr(self._made, name)

    def __matmul__(self, r: Any) -> Any:
        return _centred(self._made @ r, self._labels, self._count)


def _laplacian_of(G: Any, caller: str) -> tuple[Any, Any, int]:
    """W, and L with 1 for vertices without neighbours, of weights times 2^-power; and the power."""
    view = G.undirected_weights(caller)
    data = view.data.astype(np.float64, copy=False)  # rows of L must add up to 0
    power = int(system.exponent(system.largest(data), data.dtype))
    data = system.scaled(data, -power)
    W = sparse_matrix(view.indptr, view.indices, data, (G.n, G.n))
    degree = engines.xp(data).asarray(W.sum(axis=1)).ravel()
    diagonal = degree + (degree == 0)
    if engines.location(data) == "gpu":
        from cupyx.scipy import sparse

        return W, (sparse.diags(diagonal, format="csr") - W).tocsr(), power
    import scipy.sparse as sp

    return W, sp.csr_array(sp.diags_array(diagonal) - W), power


def _centred(b: Any, labels: Any, count: int) -> Any:
    """b, or its columns, less the mean of each component."""
    columns = b[:, None] if b.ndim == 1 else b
    if count == 1:
        return (columns - columns.mean(axis=0)).reshape(b.shape)
    if engines.location(b) == "gpu":  # bincount of CuPy waits for the device
        xp = engines.cupy()
        sums, ones = xp.zeros((count, columns.shape[1])), xp.zeros((count, 1))
        xp.add.at(sums, labels, columns)
        xp.add.at(ones, labels, 1.0)
        means = sums / ones
    else:
        sizes = np.bincount(labels, minlength=count)
        means = np.stack([np.bincount(labels, c, count) / sizes for c in columns.T], axis=1)
    return (columns - means[labels]).reshape(b.shape)
