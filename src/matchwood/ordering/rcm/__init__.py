"""Reverse Cuthill-McKee.

    reference.py   the rule, in plain Python
    check.py       is this the order of the rule?
    cpu/, gpu/     __init__.py: components, and the choice of a method; gpu/start.py: where a
                   component starts; the methods

The papers are in the docstring of `reverse_cuthill_mckee`.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from matchwood import arguments, calls, engines
from matchwood.ordering.measure import order_measures
from matchwood.ordering.rcm.result import Ordering

__all__ = [
    "Ordering",
    "cuthill_mckee",
    "pseudo_peripheral_vertex",
    "rcm_ordering",
    "reverse_cuthill_mckee",
]

METHODS = {
    "auto": "chosen by the size of the graph, the threads and the width of the frontier",
    "serial": "one thread follows the queue",
    "leveled": "all threads work on one level at a time",
    "unordered": "levels first, then a thread for each level",
    "batch_basic": "ranges of the queue, worked on ahead of their turn",
    "batch": "the same, with early signals and several ranges in work per thread",
}
"""All methods give the same order."""


def reverse_cuthill_mckee(
    A: Any,
    *,
    start: Any = None,
    method: str = "auto",
    engine: str | None = None,
    threads: int | None = None,
    stats: bool = False,
) -> Any:
    """Order the rows of a sparse matrix so that its entries lie near the diagonal.

    Cuthill and McKee [1]_ number the vertices of the graph of `A` breadth first; reversing that
    order never enlarges the profile [2]_.  Each connected component begins with its start; the
    others follow by increasing

        key(v) = (place of v's earliest-placed neighbour, degree(v), v)

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Only the pattern is read: i and j are neighbours when ``A[i, j]`` or ``A[j, i]`` is
        stored, zero or not, and i != j.  `A` is not changed.
    start : int, array of int or None
        Where components start, at most one vertex in each.  Components without one find their
        own: see `pseudo_peripheral_vertex`.
    method : {"auto", "serial", "leveled", "unordered", "batch_basic", "batch"}
        All give the same order.  ``"serial"`` follows a queue.  ``"leveled"`` takes a level at a
        time, all threads together.  ``"unordered"`` finds the levels first, then gives each to one
        thread, which passes vertices on to the next [3]_.  ``"batch_basic"`` cuts the queue into
        batches.  Threads find the children of a batch before it is known whether an earlier batch
        owns them; later such children are removed, batch by batch [4]_.  ``"batch"`` is the same
        with signals that are sent as early as possible, small batches that are merged, and several
        batches in work per thread.  ``"auto"`` chooses by the size of the graph, the threads and
        the width of the frontier.  The GPU has ``"leveled"`` and ``"batch"``.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.  Nothing is ever moved silently.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.
    stats : bool
        Deprecated, to be removed after one release: True returns what `rcm_ordering` does.

    Returns
    -------
    perm : (n,) integer array, where `A` lives
        ``perm[new] = old``; the reordered matrix is ``permute(A, perm)``.

    See Also
    --------
    rcm_ordering : the same order, with measures before and after, counters and times.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, a start is no vertex, two starts are in one component, or the
        method is unknown.

    Notes
    -----
    Deterministic: the key ends with the vertex, components follow their smallest vertex, and a
    start is chosen without ties.  So every method and engine, at any number of threads, returns
    the same order.

    Work O(m + n log(degree)), and the few searches that look for a start. Memory beside the
    symmetric pattern and the result, in bytes a vertex: 9; ``"leveled"``, and ``"auto"`` with
    several threads, 4 more and 4 for each thread, of which only what the widest level needs is
    touched, and some 40 more from four threads on where few vertices have most arcs; the batches
    some 15 more, and up to 4 MiB for each thread. A graph of at most a million vertices and arcs is
    ordered by one thread, in the caches, with 21 bytes a vertex, and 4 an arc where some vertices
    have loops.

    References
    ----------
    .. [1] E. Cuthill, J. McKee. Reducing the bandwidth of sparse symmetric matrices. ACM National
       Conference, 1969. doi:10.1145/800195.805928
    .. [2] W.-H. Liu, A. H. Sherman. Comparative analysis of the Cuthill-McKee and the reverse
       Cuthill-McKee ordering algorithms for sparse matrices. SIAM J. Numer. Anal. 13(2), 1976.
       doi:10.1137/0713020
    .. [3] K. I. Karantasis, A. Lenharth, D. Nguyen, M. J. Garzarán, K. Pingali. Parallelization of
       reordering algorithms for bandwidth and wavefront reduction. SC 2014. doi:10.1109/SC.2014.80
    .. [4] D. Mlakar, M. Winter, M. Parger, M. Steinberger. Speculative parallel reverse
       Cuthill-McKee reordering on multi- and many-core architectures. IPDPS 2021.
       doi:10.1109/IPDPS49936.2021.00080

    Examples
    --------
    A path whose five vertices were numbered badly:

    >>> import scipy.sparse as sp
    >>> import matchwood
    >>> A = sp.csr_array(([1., 1., 1., 1.], ([0, 3, 1, 4], [3, 1, 4, 2])), shape=(5, 5))
    >>> perm = matchwood.reverse_cuthill_mckee(A)
    >>> perm.tolist()
    [2, 4, 1, 3, 0]
    >>> matchwood.bandwidth(A), matchwood.bandwidth(A, perm)
    (3, 1)

    Values are not read, so a skew-symmetric matrix has the same order:

    >>> matchwood.reverse_cuthill_mckee(A - A.T).tolist()
    [2, 4, 1, 3, 0]
    """
    name = "reverse_cuthill_mckee"
    if _wants_stats(name, stats):
        return _ordering(name, A, start, method, True, engine, threads)
    return _perm(name, A, start, method, True, engine, threads)


def cuthill_mckee(
    A: Any,
    *,
    start: Any = None,
    method: str = "auto",
    engine: str | None = None,
    threads: int | None = None,
    stats: bool = False,
) -> Any:
    """The order of `reverse_cuthill_mckee` before it is reversed.

    Parameters and result are the same.

    Examples
    --------
    >>> import matchwood
    >>> matchwood.cuthill_mckee(matchwood.generators.path(4), start=1).tolist()
    [1, 0, 2, 3]
    """
    name = "cuthill_mckee"
    if _wants_stats(name, stats):
        return _ordering(name, A, start, method, False, engine, threads)
    return _perm(name, A, start, method, False, engine, threads)


def rcm_ordering(
    A: Any,
    *,
    start: Any = None,
    method: str = "auto",
    reverse: bool = True,
    engine: str | None = None,
    threads: int | None = None,
) -> Ordering:
    """The order of `reverse_cuthill_mckee`, how good it is, and how it was found.

    Parameters
    ----------
    A, start, method, engine, threads
        As in `reverse_cuthill_mckee`.
    reverse : bool
        False for the order of `cuthill_mckee`.

    Returns
    -------
    Ordering
        With `perm` and its inverse `place`, the measures `before` and `after`, `counters` and
        `seconds`.

    Raises
    ------
    TypeError, ValueError
        As `reverse_cuthill_mckee`.

    Notes
    -----
    Takes longer than `reverse_cuthill_mckee`: the order is measured, and its making is counted.

    Examples
    --------
    >>> import matchwood
    >>> A = (5, [[0, 3], [3, 1], [1, 4], [4, 2]])
    >>> found = matchwood.rcm_ordering(A)
    >>> found.perm.tolist(), found.before.bandwidth, found.after.bandwidth
    ([2, 4, 1, 3, 0], 3, 1)
    """
    name = "rcm_ordering"
    reverse = arguments.flag(name, "reverse", reverse)
    return _ordering(name, A, start, method, reverse, engine, threads)


def pseudo_peripheral_vertex(
    A: Any, vertex: int = 0, *, engine: str | None = None, threads: int | None = None
) -> int:
    """A vertex at the edge of a component, where an order with small bandwidth can start.

    Search breadth first from the vertex v of least (degree, vertex), and from the vertex x of least
    (degree, vertex) in the last level of that search.

    In a graph of at most 65,536 vertices and 65,536 edges four vertices are tried: v, x, the vertex
    y that is found from x as x is from v, and the last vertex z of least degree.  The answer is the
    first of v, x, y, z from which the order of Cuthill and McKee has the least bandwidth.

    In a larger graph go on from x instead of v as long as the levels become narrower and more [1]_.
    The width that counts is the most vertices in two levels that follow one another:

        width(x) >= width(v):   v is the answer
        levels(x) <= levels(v): x is the answer
        otherwise:              v = x, and search again

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Only the pattern is read, as in `reverse_cuthill_mckee`.
    vertex : int
        Its component is searched.
    engine, threads
        As in `reverse_cuthill_mckee`.

    Returns
    -------
    int

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, or has no such vertex.

    Notes
    -----
    The bandwidth of the order from a start is less than the width.  To compare the number of levels
    alone, as is usual, gives bandwidths up to a third above those from the vertex of least degree.
    To compare the width lowers the sum over some 60 real matrices by another 8 percent.  Two or
    three searches, as a rule; the last one is given up as soon as its width is too large.

    Trying four starts lowers the sum over 73 small real matrices and graphs by 3 percent, and one
    of them by a quarter.  On a CPU it takes a few milliseconds at most.

    References
    ----------
    .. [1] A. George, J. W. H. Liu. An implementation of a pseudoperipheral node finder. ACM TOMS
       5(3), 1979. doi:10.1145/355841.355845

    Examples
    --------
    >>> import matchwood
    >>> matchwood.pseudo_peripheral_vertex((5, [[2, 0], [0, 4], [4, 1], [1, 3]]))
    2
    """
    name = "pseudo_peripheral_vertex"
    call = calls.enter(A, name, engine, threads)
    vertex = arguments.integer(name, "vertex", vertex)
    n = call.given.n
    if not 0 <= vertex < n:
        got = arguments.shown(vertex)
        raise ValueError(f"{name}: vertex must be within 0..{n - 1}, got {got}")
    return int(call.load(__name__).start_of(call.graph, vertex, threads=threads))


def _wants_stats(name: str, stats: Any) -> bool:
    if not arguments.flag(name, "stats", stats):
        return False
    text = (
        f"{name}: stats=True goes with the next release; "
        "rcm_ordering(A, ...) returns the same Ordering"
    )
    warnings.warn(text, DeprecationWarning, stacklevel=3)
    return True


def _perm(
    name: str, A: Any, start: Any, method: str, reverse: bool, engine: str | None,
    threads: int | None,
) -> Any:  # fmt: skip
    arguments.one_of(name, "method", method, tuple(METHODS))
    engines.check_threads(threads)
    if start is engine is None and method == "auto":
        perm = engines.load(__name__, "cpu").order_raw(A, reverse, name)
        if perm is not None:
            return perm
    call = calls.enter(A, name, engine, threads)
    perm, _ = _run(call, start, method, reverse, False, threads)
    return call.back(perm)


def _ordering(
    name: str, A: Any, start: Any, method: str, reverse: bool, engine: str | None,
    threads: int | None,
) -> Ordering:  # fmt: skip
    arguments.one_of(name, "method", method, tuple(METHODS))
    call = calls.enter(A, name, engine, threads)
    perm, counters = _run(call, start, method, reverse, True, threads)
    perm = call.back(perm)
    seconds = counters.pop("seconds", {})
    before, after = (order_measures(call.given, p, threads=threads) for p in (None, perm))
    return Ordering(perm, before, after, counters, seconds)


def _run(
    call: calls.Call, start: Any, method: str, reverse: bool, stats: bool, threads: int | None
) -> tuple[Any, dict[str, Any]]:
    """The order and the counters, by the engine of the call."""
    starts = as_starts(start, call.given.n, call.caller)
    module = call.load(__name__)
    offered = ("auto", *module.METHODS)
    if method not in offered:
        names = ", ".join(map(repr, offered))
        raise ValueError(
            f"{call.caller}: method must be one of {names} on the {call.engine} engine, "
            f"got {arguments.shown(method)}"
        )
    found: tuple[Any, dict[str, Any]] = module.order(
        call.graph, starts, method, reverse, stats=stats, threads=threads, caller=call.caller
    )
    return found


def as_starts(start: Any, n: int, caller: str) -> Any:
    """The argument `start`: distinct vertices, ascending, on the host; none for None."""
    if start is None:
        return np.empty(0, np.int64)
    array = np.atleast_1d(arguments.plain(caller, "start", engines.moved(start, "cpu")))
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(
            f"{caller}: start must be an integer or a list of them, got {array.dtype} "
            f"of shape {array.shape}"
        )
    outside = (array < 0) | (array >= n)
    if outside.any():
        bad = int(array[outside.argmax()])
        raise ValueError(f"{caller}: start must be vertices 0..{n - 1}, got {bad}")
    distinct, counts = np.unique(array, return_counts=True)
    if distinct.size < array.size:
        twice = int(distinct[counts.argmax()])
        raise ValueError(f"{caller}: start must have every vertex once, got {twice} twice")
    return distinct.astype(np.int64)
