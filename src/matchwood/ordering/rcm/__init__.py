"""Reverse Cuthill-McKee.

Read on in reference.py (the rule), check.py, cpu.py and its methods cpu_*.py, gpu.py + gpu.cu, and
trial.py for the starts of small graphs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import arguments, csr, engines
from matchwood.ordering.measure import measures
from matchwood.ordering.rcm.result import Ordering

__all__ = ["Ordering", "cuthill_mckee", "pseudo_peripheral_vertex", "reverse_cuthill_mckee"]

METHODS = ("auto", "serial", "leveled", "unordered", "batch_basic", "batch")


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
        All give the same order.  ``"serial"`` follows a queue.  ``"leveled"`` takes a level at
        a time, all threads together.  ``"unordered"`` finds the levels first, then gives each
        to one thread, which passes vertices on to the next [3]_.  ``"batch_basic"`` cuts the
        queue into batches that are worked on before it is known whether their children are
        theirs, and put right in order [4]_; ``"batch"`` is the same with signals that are sent
        as early as possible, batches that are merged when small, and several batches in work
        per thread.  ``"auto"`` chooses by the size of the graph, the threads and the width of
        the front.  The GPU has ``"leveled"`` and ``"batch"``.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.  Nothing is ever moved silently.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.
    stats : bool
        Also measure the order and the way to it.

    Returns
    -------
    perm : (n,) integer array, where `A` lives
        ``perm[new] = old``; the reordered matrix is ``permute(A, perm)``.  With `stats` an
        `Ordering`, which holds it.

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

    Work O(m + n log(degree)), and the few searches that look for a start.  Memory beside the
    symmetric pattern and the result, in bytes a vertex: 9; ``"leveled"``, and ``"auto"`` with
    several threads, 4 more and 4 for each thread, of which only what the widest level needs is
    touched; the batches some 15 more, and up to 4 MiB for each thread.

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
    return _order(A, start, method, engine, threads, stats, True, "reverse_cuthill_mckee")


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
    return _order(A, start, method, engine, threads, stats, False, "cuthill_mckee")


def pseudo_peripheral_vertex(
    A: Any, vertex: int = 0, *, engine: str | None = None, threads: int | None = None
) -> int:
    """A vertex at the rim of a component, where an order with small bandwidth can start.

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
    The bandwidth of the order from a start is less than the width.  Looking at the number of levels
    alone, as is usual, gives bandwidths up to a third above those from the vertex of least degree;
    looking at the width takes another 8 percent off the sum over some 60 real matrices.  Two or
    three searches, as a rule; the last one is given up as soon as its width is too large.

    Trying four starts takes 3 percent off the sum over 73 small real matrices and graphs, and up to
    a quarter off one of them; on a CPU it is a few milliseconds' work at most.

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
    G = csr.as_graph(A, name)
    vertex = arguments.integer(name, "vertex", vertex)
    if not 0 <= vertex < G.n:
        raise ValueError(f"{name}: vertex must be within 0..{G.n - 1}, got {vertex}")
    chosen = engines.resolve(G.engine, engine, threads=threads)
    view = G.on(chosen).undirected_pattern()
    return int(engines.load(__name__, chosen).start_of(view, vertex, threads=threads))


def _order(
    A: Any,
    start: Any,
    method: str,
    engine: str | None,
    threads: int | None,
    stats: bool,
    reverse: bool,
    name: str,
) -> Any:
    if method not in METHODS:
        expected = ", ".join(map(repr, METHODS))
        raise ValueError(f"{name}: method must be one of {expected}, got {method!r}")
    G = csr.as_graph(A, name)
    starts = _starts(start, G.n, name)
    chosen = engines.resolve(G.engine, engine, threads=threads)
    module = engines.load(__name__, chosen)
    if method not in ("auto", *module.METHODS):
        offered = ", ".join(map(repr, ("auto", *module.METHODS)))
        raise ValueError(f"{name}: the {chosen} engine has methods {offered}, not {method!r}")
    view = G.on(chosen).undirected_pattern()
    perm, counters = module.order(view, starts, method, reverse, stats=stats, threads=threads)
    perm = engines.moved(perm, G.engine)
    if not stats:
        return perm
    seconds = counters.pop("seconds", {})
    before, after = (measures(G, order, threads=threads) for order in (None, perm))
    return Ordering(perm, before, after, counters, seconds)


def _starts(start: Any, n: int, name: str) -> np.ndarray[Any, Any]:
    """The given starts, on the host."""
    if start is None:
        return np.empty(0, np.int64)
    array = np.atleast_1d(arguments.plain(name, "start", engines.moved(start, "cpu")))
    if array.size == 0:
        return np.empty(0, np.int64)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise TypeError(
            f"{name}: start must be an integer or a list of them, got {array.dtype} "
            f"of shape {array.shape}"
        )
    outside = (array < 0) | (array >= n)
    if outside.any():
        bad = int(array[outside.argmax()])
        raise ValueError(f"{name}: start must be vertices 0..{n - 1}, got {bad}")
    distinct, counts = np.unique(array, return_counts=True)
    if distinct.size < array.size:
        raise ValueError(f"{name}: start has vertex {int(distinct[counts.argmax()])} twice")
    return distinct.astype(np.int64)
