"""A multilevel preconditioner: aggregates of strongly coupled rows, level by level.

Read on in reference.py (how rows are paired, and what a cycle does), hierarchy.py (the levels),
check.py, then cpu/ or gpu/.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.errors import EngineUnavailable
from matchwood.gate import graph as csr
from matchwood.preconditioners.multilevel import candidates
from matchwood.preconditioners.multilevel.cpu.cycles import MOST_POWER
from matchwood.preconditioners.multilevel.hierarchy import (
    Level,
    Matrix,
    Options,
    laid_out,
    levels_of,
)
from matchwood.preconditioners.multilevel.reference import DAMPING
from matchwood.preconditioners.operator import Core, Known, matrix_on, operator

__all__ = ["Level", "multilevel"]

CYCLES = ("auto", "V", "W", "K")
# Matrices whose largest entry is not between 2^-30 and 2^30 are multiplied by a power of two, so
# that float32 holds them, and products of a few.
SAFE_EXPONENT = 30
PRECISIONS = {None: None, "float32": np.float32, "float64": np.float64}


def multilevel(
    A: Any,
    *,
    aggregate: int | None = None,
    cycle: str = "auto",
    smoother: str = "auto",
    sweeps: int = 1,
    interpolation: str = "auto",
    max_levels: int | None = None,
    coarsest: int = 200,
    precision: str | None = None,
    near_nullspace: Any = None,
    blocksize: int | None = None,
    engine: str | None = None,
    threads: int | None = None,
) -> Any:
    """Aggregation multigrid: pairs of strongly coupled rows are merged, level by level.

    A cycle smooths the error, solves for what is left with the matrix of the aggregates, which is
    ``P.T @ A @ P`` with P the 0/1 matrix of rows and aggregates, and smooths again [1]_.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Its diagonal must be positive.
    aggregate : {None, 2, 4, 8, 16}
        Rows of an aggregate, about.  More make fewer and smaller levels, and more iterations.  None
        is 4; with `near_nullspace`, it is a node and its strongly coupled neighbours.
    cycle : {"auto", "V", "W", "K"}
        How often each level visits the next: once; twice; or at most twice, combined by two steps
        of a flexible Krylov method, the second only if the first left more than a quarter of the
        residual [1]_.  With K the number of iterations hardly grows with n; its levels from the
        third on are visited once if they have at most 1000 rows.  ``"auto"`` is K, with smoothed
        interpolation V.

        **K is not a linear operator**: use it with a flexible method (`fcg`, `fgmres`,
        `fbicgstab`, or `solve`, which does).  V and W are linear, and symmetric where `A` is, so
        that SciPy's `cg` may use them.
    smoother : {"auto", "jacobi", "l1_jacobi", "tridiagonal", "algebraic_tridiagonal"}
        ``"jacobi"`` divides by the diagonal, to which half the sum of ``|a_ij|`` of the row is
        added; ``"l1_jacobi"`` adds all of it.  The other two solve along paths: neighbouring rows,
        or a linear forest of strong entries on every level; they are scaled by an estimate of the
        largest eigenvalue of their product with `A`.  ``"auto"`` takes paths where most weight is
        in the two strongest couplings of each row, or more than 12 % of it in positive entries;
        else Jacobi.  With smoothed interpolation, paths are on the first level only.
    sweeps : int
        Smoothing steps before and after.
    interpolation : {"auto", "plain", "smoothed"}
        ``"plain"``: a row takes the value of its aggregate.  ``"smoothed"``: a damped Jacobi step
        follows, with the strong entries only [3]_.  Levels then have more entries, and their setup
        takes two sparse products each, but where positive entries off the diagonal have some weight
        iterations halve; ``"auto"`` takes it where they have 8 % of it, and with `near_nullspace`
        for cycle V.  For symmetric matrices.
    max_levels : int or None
        None goes on until a level has at most `coarsest` rows.
    coarsest : int
        Rows of a level that is solved by a dense inverse, of a singular one the pseudoinverse.
    precision : {None, "float32", "float64"}
        Of the cycle; None is that of `A`.  float32 moves half the bytes, and as a preconditioner
        of a float64 method costs no accuracy.
    near_nullspace : (n, q) array or None
        Candidates: vectors x, linearly independent, for which ``A @ x`` is small beside x; None
        stands for constants.  For linear elasticity these are the rigid body modes, three in the
        plane and six in space.  Interpolation is made so that their values on each aggregate are in
        its range [3]_.  A single one (with nodes of one row) scales the matrix to one for which
        they are constant; then all is as without it.
    blocksize : int or None
        Rows of a node, which are aggregated together.  None takes that of a BSR matrix; else the
        number of columns with which `near_nullspace` begins that are translations, column k having
        values in rows k, k + blocksize, ... only; else 1.
    engine : {None, "cpu", "gpu"}
        None takes the engine where `A` lives.  The operator lives on the engine, and takes vectors
        there; on a GPU nothing of it waits for the device.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    M : LinearOperator
        `levels` is a tuple of `Level` (rows, entries, smoother, coverage, seconds, a note where the
        hierarchy ends early), `operator_complexity` the entries of all levels over those of `A`,
        `grid_complexity` the same of rows; the levels are those of ``A / 2**exponent``.
        ``M.refresh(A)`` is the operator for other values at
        the same places, with the same aggregates.

    Raises
    ------
    EngineUnavailable
        If `engine` is "gpu" and there is none, or "reference".
    TypeError, ValueError
        If `A` is not square, complex or not finite, its diagonal is not positive (the row is
        named), or an option is out of range; if `near_nullspace` is complex, not finite, of another
        shape, or a column of it or all rows of a node are zero.

    Notes
    -----
    Couplings are ``|a_ij| / sqrt(a_ii a_jj)``; of an unsymmetric matrix ``|a_ij| + |a_ji|`` takes
    the place of ``|a_ij|``.  One is strong if it is a quarter of the strongest at both ends.  In
    six rounds every free row proposes to the free one to which it has its strongest coupling (of
    equal ones that with the largest hash), and two that propose to each other are a pair.  With
    ``aggregate=4`` pairs are paired again; what then is free joins the pair of its strongest
    neighbour.  A row with ``a_ii >= 5 sum |a_ij|`` is left to the smoother [1]_.

    With candidates, couplings are those of nodes, ``|A_ij|`` being the Frobenius norm of a block.
    Node by node, in the order of their numbers, one of which no strong neighbour has been taken,
    nor it itself, becomes a root, and takes its strong neighbours; what then is left joins the
    aggregate of its strongest neighbour that has been taken.  The candidates get an orthonormal
    basis on each aggregate, by Gram and Schmidt: its columns are rows of the next level, where the
    aggregate is a node.  A candidate that depends on earlier ones there gives none.  Paths are
    taken by ``smoother="auto"`` where the two strongest couplings of a node are 1.8 times the mean.

    Coarsening ends early where every row is left out, or a level would keep more than nine tenths
    of the rows; the last level is then solved if it has at most 1000 rows, else it is only
    smoothed.  `Level.note` says so.

    Deterministic: the same bits at any number of threads.  On a GPU the aggregates and the levels
    are the CPU's; a cycle is captured once as a sequence of launches, and its answers are the CPU's
    to rounding.  Where a group has more than 80 neighbours, or interpolation is smoothed, entries
    of coarse levels are so, too.  Memory: twice that of `A`, about, and seven vectors on each
    level; one call of the operator at a time uses those.

    References
    ----------
    .. [1] Y. Notay. An aggregation-based algebraic multigrid method. Electron. Trans. Numer.
       Anal. 37, 2010, 123-146.
    .. [2] A. Napov, Y. Notay. An algebraic multigrid method with guaranteed convergence rate.
       SIAM J. Sci. Comput. 34(2), 2012. doi:10.1137/100818509
    .. [3] P. Vanek, J. Mandel, M. Brezina. Algebraic multigrid by smoothed aggregation for second
       and fourth order elliptic problems. Computing 56, 1996. doi:10.1007/BF02238511

    Examples
    --------
    >>> import numpy as np
    >>> import matchwood
    >>> A = matchwood.generators.aniso(2, (60, 60))
    >>> M = matchwood.preconditioners.multilevel(A)
    >>> [level.rows for level in M.levels][0], M.levels[-1].smoother, M.operator_complexity < 1.6
    (3600, 'dense', True)
    >>> found = matchwood.solve(A, A @ np.ones(3600), preconditioner=M)
    >>> found.converged, found.iterations < 25
    (True, True)
    """
    caller = "multilevel"
    passes = None
    if aggregate is not None:
        passes = {2: 1, 4: 2, 8: 3, 16: 4}.get(arguments.count(caller, "aggregate", aggregate, 2))
        if passes is None:
            raise ValueError(f"{caller}: aggregate must be 2, 4, 8 or 16, got {aggregate}")
    arguments.one_of(caller, "cycle", cycle, CYCLES)
    arguments.one_of(caller, "smoother", smoother, ("auto", *DAMPING))
    arguments.one_of(caller, "interpolation", interpolation, ("auto", "plain", "smoothed"))
    sweeps = arguments.count(caller, "sweeps", sweeps, 1)
    coarsest = arguments.count(caller, "coarsest", coarsest, 1)
    if max_levels is not None:
        max_levels = arguments.count(caller, "max_levels", max_levels, 1)
    if precision is not None:
        arguments.one_of(caller, "precision", precision, ("float32", "float64"))
    options = Options(
        0 if passes is None else passes, cycle, smoother, sweeps, interpolation, max_levels,
        coarsest, PRECISIONS[precision], threads,
    )  # fmt: skip
    return _made(A, options, engine, None, near_nullspace, blocksize)


def _made(
    A: Any, options: Options, engine: str | None, old: Any, near: Any = None, blocksize: Any = None
) -> Any:  # fmt: skip
    caller, threads = "multilevel", options.threads
    G = matrix_on(A, caller, engine, threads)
    if G.engine == "gpu" and (near is not None or options.near is not None):
        raise EngineUnavailable(f"{caller}: near_nullspace has no 'gpu' engine")
    if old is None:
        options = options.with_candidates(candidates.given(near, blocksize, A, G.n))
    view = G.directed_weights(caller)
    xp = engines.xp(view.data)
    if old is not None:
        first = old[0].matrix
        if first.indices.size != view.indices.size or not (
            engines.location(first.data) == G.engine
            and bool(xp.array_equal(first.indptr, view.indptr))
            and bool(xp.array_equal(first.indices, view.indices))
        ):
            raise ValueError("refresh: A must have entries at the same places as before")
        options = _settled(options, old)
    if options.scale is not None:
        scale = options.scale
        factor = np.repeat(scale, np.diff(view.indptr)) * scale[view.indices]
        data = (view.data * factor).astype(view.data.dtype, copy=False)
        G = csr.as_graph((view.indptr, view.indices, data), caller)
        view = G.directed_weights(caller)
    largest = float(max(abs(view.data.max()), abs(view.data.min()))) if view.data.size else 0.0
    if not np.isfinite(largest):
        G.undirected_weights(caller)  # names the entry
    exponent = int(np.frexp(largest)[1])
    exponent = 0 if abs(exponent) <= SAFE_EXPONENT else max(-MOST_POWER, min(MOST_POWER, exponent))
    data = xp.ldexp(view.data, -exponent) if exponent else view.data
    symmetric = bool(G.has_symmetric_values)
    matrix = Matrix(view.indptr, view.indices, data, xp.zeros(G.n, data.dtype))
    if options.interpolation == "smoothed" and not symmetric:
        raise ValueError(f"{caller}: interpolation='smoothed' needs a symmetric matrix")
    levels = tuple(levels_of(G, matrix, options, old))
    smoothed = levels[0].smoothed
    if options.cycle == "auto":
        options = dataclasses.replace(options, cycle="V" if smoothed else "K")
    applied = Applied(
        laid_out(levels, symmetric, options, exponent), symmetric and options.cycle != "K",
        options.scale,
    )  # fmt: skip
    seconds = {f"level {k}": level.seconds for k, level in enumerate(levels)}
    core = Core(
        caller, G.n, view.data.dtype, G.engine, applied, Known(levels[0].coverage), Known(seconds),
        Known(None),
    )  # fmt: skip
    precision = np.dtype(options.precision or view.data.dtype).name
    entries, rows = (sum(getattr(level, name) for level in levels) for name in ("entries", "rows"))
    return operator(
        core, levels=levels, cycle=options.cycle, symmetric=symmetric, exponent=exponent,
        precision=precision, scale=options.scale,
        operator_complexity=entries / max(levels[0].entries, 1),
        grid_complexity=rows / max(levels[0].rows, 1),
        refresh=functools.partial(_made, options=options, engine=None, old=levels),
    )  # fmt: skip


def _settled(options: Options, old: Any) -> Options:
    """The options with the smoother and the interpolation that were taken before."""
    kinds = [level.smoother for level in old if level.smoother != "dense"]
    interpolation = "smoothed" if old[0].smoothed else "plain"
    options = dataclasses.replace(options, interpolation=interpolation)
    return dataclasses.replace(options, smoother=kinds[0]) if kinds else options


class Applied:
    """What `Core` applies: the cycle; its transpose only where it is symmetric."""

    def __init__(self, cycle: Any, linear: bool, scale: Any) -> None:
        self.cycle, self.linear, self.scale = cycle, linear, scale

    def __call__(self, rows: Any, transpose: bool) -> Any:
        if transpose and not self.linear:
            raise TypeError(
                "multilevel: only cycles 'V' and 'W' of a symmetric matrix have a transpose"
            )
        if self.scale is None:
            return self.cycle(rows)
        scale = self.scale.astype(rows.dtype)
        return self.cycle(rows * scale) * scale
