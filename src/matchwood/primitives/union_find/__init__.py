"""Union-find.  Read on in reference.py, check.py, cpu.py (device functions), gpu.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.arguments import INDEX, count, same_size, vector
from matchwood.engines import call, location
from matchwood.memory import require_memory

__all__ = ["union_find"]


def union_find(
    n: int, u: Any, v: Any, *, engine: str | None = None, threads: int | None = None
) -> Any:
    """Join sets of vertices along edges and name each set by its smallest vertex.

    Parameters
    ----------
    n : int
        Vertices 0 .. n - 1, each a set of its own before the first edge.
    u, v : (m,) arrays of int32 or int64, both of the same type
        Edge k joins the sets of ``u[k]`` and ``v[k]``.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `u` already lives.
    threads : int or None
        CPU only.

    Returns
    -------
    label : (n,) array of the type of `u`
        ``label[i]`` is the smallest vertex of the set of i.

    Raises
    ------
    TypeError, ValueError
        If an argument is of another type; if the sizes differ, or an end is not in 0 .. n - 1.

    Notes
    -----
    A forest in one array: ``parent[i] <= i``, and roots are their own parents.  An edge looks for
    the roots of its ends, halving the paths on its way [1]_, and hooks the larger root under the
    smaller by compare-and-swap [2]_; when another thread was faster it looks again.  Parents only
    ever become smaller, so there are no cycles, and the root of a finished set is its smallest
    vertex whatever the order of the edges: one answer at any number of threads.

    Work near-linear in n + m; memory one array of n.

    References
    ----------
    .. [1] R. E. Tarjan, J. van Leeuwen. Worst-case analysis of set union algorithms.
       J. ACM 31(2), 1984. doi:10.1145/62.2160
    .. [2] R. J. Anderson, H. Woll. Wait-free parallel algorithms for the union-find problem.
       STOC 1991. doi:10.1145/103418.103458

    Examples
    --------
    >>> import numpy as np
    >>> from matchwood.primitives.union_find import union_find
    >>> union_find(5, np.array([4, 3]), np.array([1, 3])).tolist()
    [0, 1, 2, 3, 1]
    """
    n = count("union_find", "n", n)
    u = vector("union_find", "u", u, INDEX)
    v = vector("union_find", "v", v, INDEX)
    same_size("union_find", "v", v, "u", u)
    if u.dtype != v.dtype:
        raise TypeError(f"union_find: u and v must be of one type, got {u.dtype} and {v.dtype}")
    if n > np.iinfo(u.dtype).max:
        raise ValueError(f"union_find: n = {n} does not fit the vertices' type {u.dtype}")
    if location(u) == "cpu":
        require_memory("union_find", n * u.dtype.itemsize, f"the sets of {n} vertices")
    return call(__name__, "union_find", (n, u, v), engine, threads=threads)


def end_out_of_range(n: int, edge: int) -> ValueError:
    """The error of all engines for an end of ``edge`` outside 0 .. n - 1."""
    return ValueError(f"union_find: u[{edge}] and v[{edge}] must be in 0 .. n - 1 with n = {n}")
