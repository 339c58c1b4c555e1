"""Stencils on grids.  Read on in reference.py, cpu.py, gpu.py + gpu.cu."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.gate import resources
from matchwood.generators import result
from matchwood.generators.result import Matrix, Ranks
from matchwood.generators.stencils.reference import Plan, along_antidiagonals, row_by_row

ANISO = {
    1: ((-0.2, -0.1, -0.2), (-1.0, 3.0, -1.0), (-0.2, -0.1, -0.2)),
    2: ((-0.1, -0.2, -1.0), (-0.2, 3.0, -0.2), (-1.0, -0.2, -0.1)),
}


def stencil(
    weights: Any,
    shape: tuple[int, ...],
    *,
    dtype: Any = None,
    engine: str | None = None,
    threads: int | None = None,
    comm: Any = None,
    grid: Any = None,
    order: str = "auto",
) -> Matrix:
    """Matrix that applies a stencil at every point of a grid.

    Grid points are numbered row by row (the last index runs fastest).  With c the middle of the
    stencil,

        A[p, p + o] = weights[c + o]    for every offset o that stays inside of the grid

    Entries that would reach outside are left out (open boundaries), and so are weights that are
    zero.

    Parameters
    ----------
    weights : array with 1, 2 or 3 dimensions
        The stencil; its lengths are odd, such as (3, 3) or (1, 5, 3).
    shape : tuple of int
        The grid; as many lengths as `weights` has dimensions.
    dtype : float32, float64 or None
        Of the stored values; None takes that of `weights`, or float64 where it has another.
    engine : {None, "reference", "cpu", "gpu"}
        Where to make the matrix; None is the CPU.
    threads : int or None
        CPU only.
    comm : Communicator, optional
        Of `matchwood.dist`: its ranks make the graph together, and each keeps a block.
    grid, order
        With `comm`, as for `matchwood.distribute`.

    Returns
    -------
    A : (n, n) scipy.sparse.csr_array, n the number of grid points
        Sorted rows.  With ``engine="gpu"`` a cupyx.scipy.sparse.csr_matrix, with `comm` a
        `DistributedGraph`.

    Raises
    ------
    TypeError, ValueError, OutOfMemory
        If an argument is of the wrong kind, or the dimensions do not fit; if it fits no memory.

    Notes
    -----
    Rows are written directly, sorted, in two passes over the grid.  No memory beside the result.
    PyAMG's `stencil_grid` makes the same matrices [1]_.

    References
    ----------
    .. [1] N. Bell, L. N. Olson, J. Schroder. PyAMG: algebraic multigrid solvers in Python.
       J. Open Source Softw. 7(72), 2022. doi:10.21105/joss.04142

    Examples
    --------
    >>> from matchwood.generators import stencil
    >>> stencil([-1, 2, -1], (4,)).toarray().astype(int).tolist()
    [[2, -1, 0, 0], [-1, 2, -1, 0], [0, -1, 2, -1], [0, 0, -1, 2]]

    A stencil need not be symmetric; here each point has the one below it as a neighbour:

    >>> stencil([[0], [0], [1]], (2, 2)).toarray().astype(int).tolist()
    [[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]]
    """
    caller, ranks = "stencil", Ranks(comm, grid, order, engine, threads)

    def planned() -> tuple[Plan, Any]:
        array = _stencil_array(caller, weights)
        kind = dtype
        if kind is None:
            kind = array.dtype if array.dtype == np.float32 else np.float64
        plan = row_by_row(array, _lengths(caller, shape, (array.ndim,)))
        return plan, arguments.value_type(caller, kind)

    return _made(caller, ranks, planned)


def grid(
    shape: tuple[int, ...],
    *,
    dtype: Any = np.float32,
    engine: str | None = None,
    threads: int | None = None,
    comm: Any = None,
    grid: Any = None,
    order: str = "auto",
) -> Matrix:
    """Graph of a grid: each point and its next neighbours along the axes (5- or 7-point).

    Parameters
    ----------
    shape : tuple of 1, 2 or 3 int
    dtype : float32 or float64
        Of the stored ones.
    engine, threads, comm, grid, order
        As for `stencil`.

    Returns
    -------
    A : (n, n) scipy.sparse.csr_array
        Ones, zero diagonal; points are numbered row by row.  With ``engine="gpu"`` a
        cupyx.scipy.sparse.csr_matrix, with `comm` a `DistributedGraph`.

    Raises
    ------
    TypeError, ValueError, OutOfMemory
        If an argument is of the wrong kind; if it fits no memory.

    Examples
    --------
    >>> from matchwood.generators import grid
    >>> grid((2, 3)).toarray().astype(int).tolist()[1]
    [1, 0, 1, 0, 1, 0]
    >>> grid((10, 10, 10)).nnz == 6 * 10 * 10 * 9
    True
    """

    def planned() -> tuple[Plan, Any]:
        lengths = _lengths("grid", shape, (1, 2, 3))
        distance = np.abs(np.indices((3,) * len(lengths)) - 1).sum(axis=0)
        plan = row_by_row((distance == 1).astype(np.float64), lengths)
        return plan, arguments.value_type("grid", dtype)

    return _made("grid", Ranks(comm, grid, order, engine, threads), planned)


def mesh(
    shape: tuple[int, ...],
    *,
    dtype: Any = np.float32,
    engine: str | None = None,
    threads: int | None = None,
    comm: Any = None,
    grid: Any = None,
    order: str = "auto",
) -> Matrix:
    """Graph of a grid with diagonals: each point and all points around it (9- or 27-point).

    Parameters
    ----------
    shape : tuple of 1, 2 or 3 int
    dtype : float32 or float64
        Of the stored ones.
    engine, threads, comm, grid, order
        As for `stencil`.

    Returns
    -------
    A : (n, n) scipy.sparse.csr_array
        Ones, zero diagonal; points are numbered row by row.  With ``engine="gpu"`` a
        cupyx.scipy.sparse.csr_matrix, with `comm` a `DistributedGraph`.

    Raises
    ------
    TypeError, ValueError, OutOfMemory
        If an argument is of the wrong kind; if it fits no memory.

    Examples
    --------
    >>> from matchwood.generators import mesh
    >>> A = mesh((3, 3, 3))
    >>> A[[13], :].sum().item(), A[[0], :].sum().item()  # the middle and a corner
    (26.0, 7.0)
    """

    def planned() -> tuple[Plan, Any]:
        lengths = _lengths("mesh", shape, (1, 2, 3))
        around = np.ones((3,) * len(lengths))
        around[(1,) * len(lengths)] = 0
        plan = row_by_row(around, lengths)
        return plan, arguments.value_type("mesh", dtype)

    return _made("mesh", Ranks(comm, grid, order, engine, threads), planned)


def aniso(
    kind: int,
    shape: tuple[int, int],
    *,
    dtype: Any = np.float64,
    engine: str | None = None,
    threads: int | None = None,
    comm: Any = None,
    grid: Any = None,
    order: str = "auto",
) -> Matrix:
    """Anisotropic 9-point problem 1, 2 or 3: test problems for tridiagonal preconditioners.

    The stencils [1]_, [2]_ are::

              kind 1                 kind 2
        -0.2  -0.1  -0.2       -0.1  -0.2  -1.0
        -1.0   3.0  -1.0       -0.2   3.0  -0.2
        -0.2  -0.1  -0.2       -1.0  -0.2  -0.1

    with grid points numbered row by row.  Kind 3 is kind 2 with the points numbered along the
    anti-diagonals, from the first corner to the last: (i, j) is before (k, l) when
    (i + j, i) < (k + l, k).  So the strong entries -1.0 lie on the sub- and superdiagonal in kinds
    1 and 3, and far from it in kind 2.

    Parameters
    ----------
    kind : {1, 2, 3}
    shape : tuple of 2 int
        The grid; (2500, 2500) in the papers.
    dtype : float32 or float64
        Of the stored values.
    engine, threads, comm, grid, order
        As for `stencil`.

    Returns
    -------
    A : (n, n) scipy.sparse.csr_array, n the number of grid points
        Symmetric, diagonal 3.  With ``engine="gpu"`` a cupyx.scipy.sparse.csr_matrix, with
        `comm` a `DistributedGraph`.

    Raises
    ------
    TypeError, ValueError, OutOfMemory
        If an argument is of the wrong kind; if it fits no memory.

    References
    ----------
    .. [1] C. Klein, R. Strzodka. Tridiagonal GPU solver with scaled partial pivoting at maximum
       bandwidth. ICPP 2021. doi:10.1145/3472456.3472484
    .. [2] C. Klein, R. Strzodka. Highly parallel linear forest extraction from a weighted graph
       on GPUs. ICPP 2022. doi:10.1145/3545008.3545035

    Examples
    --------
    How much of the weight off the diagonal lies beside it:

    >>> from matchwood.generators import aniso
    >>> def beside(A):
    ...     off = abs(A).sum() - abs(A.diagonal()).sum()
    ...     return round(float(2 * abs(A.diagonal(1)).sum() / off), 2)
    >>> [beside(aniso(kind, (200, 200))) for kind in (1, 2, 3)]
    [0.67, 0.13, 0.67]
    """
    caller, ranks = "aniso", Ranks(comm, grid, order, engine, threads)

    def planned() -> tuple[Plan, Any]:
        problem = arguments.one_of(caller, "kind", kind, (1, 2, 3))
        lengths = _lengths(caller, shape, (2,))
        if problem == 3:  # a number for each anti-diagonal
            resources.require_memory(caller, 16 * sum(lengths), f"a grid of shape {lengths}")
        number = row_by_row if problem < 3 else along_antidiagonals
        plan = number(np.array(ANISO[min(problem, 2)]), lengths)
        return plan, arguments.value_type(caller, dtype)

    return _made(caller, ranks, planned)


def _lengths(caller: str, shape: Any, dimensions: tuple[int, ...]) -> tuple[int, ...]:
    """The grid, each length below 2^62: sums of two are made, and must fit 64 bits."""
    lengths = arguments.grid_shape(caller, shape, dimensions)
    arguments.at_most(caller, "shape", max(lengths), 2**62, "more fits no memory")
    return lengths


def _stencil_array(caller: str, weights: Any) -> np.ndarray[Any, Any]:
    array = arguments.plain(caller, "weights", weights)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"{caller}: weights must be real numbers, got {array.dtype}")
    if not 1 <= array.ndim <= 3:
        raise ValueError(f"{caller}: weights must have 1 to 3 dimensions, got {array.ndim}")
    if any(length % 2 == 0 for length in array.shape):
        raise ValueError(f"{caller}: weights must have odd lengths, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise ValueError(f"{caller}: weights must be finite")
    return array


def _made(caller: str, ranks: Ranks, planned: Callable[[], tuple[Plan, Any]]) -> Matrix:
    plan, dtype = ranks.agreed(caller, planned)
    if ranks.comm is not None:
        listed = engines.load(__name__, "cpu").entries
        return ranks.graph(
            caller, plan.n, plan.n,
            lambda first, number: listed(plan, dtype, first, number, ranks.cpu_threads),
            None, each=max(len(plan.values), 1), kind=dtype,
        )  # fmt: skip
    chosen = engines.resolve("cpu", ranks.engine, caller, ranks.threads)
    result.require_room(caller, chosen, plan.n, plan.nnz, dtype)
    indptr, indices, data = engines.load(__name__, chosen).apply(plan, dtype, ranks.threads)
    return result.matrix(plan.n, indptr, indices, data)
