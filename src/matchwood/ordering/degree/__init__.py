"""Orders by degree.  Read on in `keys` below, reference.py, check.py, cpu.py, gpu.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import calls, engines
from matchwood.arguments import one_of

DOUBLED = (64, 32, 16, 8, 4, 2, 1)  # twice the least degree of each group, in average degrees


METHODS = ("sort", "cluster", "group")


def degree_order(A: Any, *, engine: str | None = None, threads: int | None = None) -> Any:
    """Order the vertices by degree, the largest first; equal degrees by vertex.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Only the pattern is read: i and j are neighbours when ``A[i, j]`` or ``A[j, i]`` is
        stored, zero or not, and i != j.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.
    threads : int or None
        CPU threads.

    Returns
    -------
    perm : (n,) integer array, where `A` lives
        ``perm[new] = old``.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix.

    See Also
    --------
    hub_order : moves only vertices of large degree, and keeps more of the order that was.
    locality_ordering : any of these orders, with measures before and after.

    Notes
    -----
    Vertices of large degree, which most edges lead to, share cache lines.  The other vertices lose
    the order that they had.
    Work O(n) beside the pattern, memory four arrays of n.

    Examples
    --------
    >>> import matchwood
    >>> matchwood.degree_order((5, [[0, 3], [3, 1], [1, 4], [4, 3]])).tolist()
    [3, 1, 4, 0, 2]
    """
    return _order(A, "degree_order", "degree", engine, threads)


def hub_order(
    A: Any, *, method: str = "sort", engine: str | None = None, threads: int | None = None
) -> Any:
    """Put hubs first: vertices whose degree is above the average.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Only the pattern is read, as in `degree_order`.
    method : {"sort", "cluster", "group"}
        ``"sort"``: hubs by degree, the largest first, equal degrees by vertex; all others after
        them, by vertex [1]_.  ``"cluster"``: hubs by vertex, then all others by vertex [2]_.
        ``"group"``: groups of vertices whose degree is at least 32, 16, 8, 4, 2, 1 and 1/2 times
        the average, and the rest, in this order; within a group by vertex [3]_.
    engine, threads
        As in `degree_order`.

    Returns
    -------
    perm : (n,) integer array, where `A` lives
        ``perm[new] = old``.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, or the method is unknown.

    Notes
    -----
    Averages are compared exactly, as integers.  Work O(n) beside the pattern, memory four arrays
    of n.

    References
    ----------
    .. [1] Y. Zhang, V. Kiriansky, C. Mendis, S. Amarasinghe, M. Zaharia. Making caches work for
       graph analytics. IEEE Big Data 2017. doi:10.1109/BigData.2017.8257937
    .. [2] V. Balaji, B. Lucia. When is graph reordering an optimization? IISWC 2018.
       doi:10.1109/IISWC.2018.8573478
    .. [3] P. Faldu, J. Diamond, B. Grot. A closer look at lightweight graph reordering. IISWC
       2019. doi:10.1109/IISWC47752.2019.9041948

    Examples
    --------
    >>> import matchwood
    >>> A = (6, [[0, 3], [3, 1], [3, 4], [4, 5], [4, 1]])
    >>> matchwood.hub_order(A).tolist(), matchwood.hub_order(A, method="cluster").tolist()
    ([3, 4, 1, 0, 2, 5], [1, 3, 4, 0, 2, 5])
    """
    one_of("hub_order", "method", method, METHODS)
    return _order(A, "hub_order", method, engine, threads)


def _order(A: Any, caller: str, rule: str, engine: str | None, threads: int | None) -> Any:
    call = calls.enter(A, caller, engine, threads)
    view = call.graph.undirected_pattern()
    return call.back(call.load(__name__).order(view, rule, threads=threads))


def keys(view: Any, rule: str) -> Any:
    """The numbers that each rule sorts by; equal numbers keep the order of the vertices.

        "degree"    largest degree - degree
        "sort"      the same for hubs; the largest degree, which no hub has, for all others
        "cluster"   0 for hubs, 1 for others
        "group"     the number of groups above, 0 to 7

    A hub has degree > m / n, m being the number of entries.  Compared as degree * n > m: exactly.
    The numbers are uint32 or uint64, where the pattern lives.
    """
    xp = engines.xp(view.indptr)
    degree = (view.indptr[1:] - view.indptr[:-1]).astype(np.int64)
    unsigned = np.uint32 if view.indptr.dtype == np.int32 else np.uint64
    n, m = view.n, view.nnz
    if n == 0:
        return degree.astype(unsigned)
    if rule == "group":
        group = xp.zeros(n, np.int64)
        for limit in DOUBLED:
            group += degree < -(-limit * m // (2 * n))
        return group.astype(unsigned)
    most = degree.max()
    hub = degree > m // n
    if rule == "cluster":
        return (~hub).astype(unsigned)
    down = most - degree
    return (xp.where(hub, down, most) if rule == "sort" else down).astype(unsigned)
