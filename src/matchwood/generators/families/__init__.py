"""Named graphs.  Read on in reference.py (edge lists) and cpu.py (rows, written directly)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood import arguments, engines
from matchwood.arguments import count
from matchwood.generators import result
from matchwood.generators.result import Matrix, Ranks, both_ways, ones_on_ranks

MOST_MYCIELSKIAN = 22  # this order has 12.2e9 edges


def path(
    n: int,
    *,
    dtype: Any = np.float32,
    engine: str | None = None,
    comm: Any = None,
    grid: Any = None,
    order: str = "auto",
) -> Matrix:
    """Path of n vertices: 0 - 1 - 2 - ... - (n - 1).

    Parameters
    ----------
    n : int
    dtype : float32 or float64
        Of the stored ones.
    engine : {None, "reference", "cpu", "gpu"}
        Where the result is wanted; None is the CPU.
    comm : Communicator, optional
        Of `matchwood.dist`: its ranks make the graph together, and each keeps a block.
    grid, order
        With `comm`, as for `matchwood.distribute`.

    Returns
    -------
    A : (n, n) scipy.sparse.csr_array
        With ``engine="gpu"`` a cupyx.scipy.sparse.csr_matrix, with `comm` a `DistributedGraph`.

    Raises
    ------
    TypeError, ValueError, OutOfMemory
        If an argument is of the wrong kind; if it fits no memory.

    Examples
    --------
    >>> from matchwood.generators import path
    >>> path(3).toarray().astype(int).tolist()
    [[0, 1, 0], [1, 0, 1], [0, 1, 0]]
    >>> path(0).shape
    (0, 0)
    """
    ranks = Ranks(comm, grid, order, engine)
    return _made("path", lambda: count("path", "n", n), dtype, ranks)


def cycle(
    n: int,
    *,
    dtype: Any = np.float32,
    engine: str | None = None,
    comm: Any = None,
    grid: Any = None,
    order: str = "auto",
) -> Matrix:
    """Cycle of n vertices: a path whose ends are joined.

    Parameters
    ----------
    n : int
        At least 3.
    dtype, engine, comm, grid, order
        As for `path`.

    Returns
    -------
    A : (n, n) scipy.sparse.csr_array
        With ``engine="gpu"`` a cupyx.scipy.sparse.csr_matrix, with `comm` a `DistributedGraph`.

    Raises
    ------
    TypeError, ValueError, OutOfMemory
        If an argument is of the wrong kind; if it fits no memory.

    Examples
    --------
    >>> from matchwood.generators import cycle
    >>> cycle(4).toarray().astype(int).tolist()
    [[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]]
    """
    ranks = Ranks(comm, grid, order, engine)
    return _made("cycle", lambda: count("cycle", "n", n, least=3), dtype, ranks)


def star(
    n: int,
    *,
    dtype: Any = np.float32,
    engine: str | None = None,
    comm: Any = None,
    grid: Any = None,
    order: str = "auto",
) -> Matrix:
    """Star of n vertices: vertex 0 is joined to all others.

    Parameters
    ----------
    n : int
        All vertices; the star has n - 1 rays.
    dtype, engine, comm, grid, order
        As for `path`.

    Returns
    -------
    A : (n, n) scipy.sparse.csr_array
        With ``engine="gpu"`` a cupyx.scipy.sparse.csr_matrix, with `comm` a `DistributedGraph`.

    Raises
    ------
    TypeError, ValueError, OutOfMemory
        If an argument is of the wrong kind; if it fits no memory.

    Examples
    --------
    >>> from matchwood.generators import star
    >>> star(4).toarray().astype(int).tolist()
    [[0, 1, 1, 1], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]
    """
    ranks = Ranks(comm, grid, order, engine)
    return _made("star", lambda: count("star", "n", n), dtype, ranks)


def complete(
    n: int,
    *,
    dtype: Any = np.float32,
    engine: str | None = None,
    comm: Any = None,
    grid: Any = None,
    order: str = "auto",
) -> Matrix:
    """Complete graph of n vertices: every two are joined.

    Parameters
    ----------
    n : int
    dtype, engine, comm, grid, order
        As for `path`.

    Returns
    -------
    A : (n, n) scipy.sparse.csr_array
        With ``engine="gpu"`` a cupyx.scipy.sparse.csr_matrix, with `comm` a `DistributedGraph`.

    Raises
    ------
    TypeError, ValueError, OutOfMemory
        If an argument is of the wrong kind; if it fits no memory.

    Examples
    --------
    >>> from matchwood.generators import complete
    >>> complete(3).toarray().astype(int).tolist()
    [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
    """
    ranks = Ranks(comm, grid, order, engine)
    return _made("complete", lambda: count("complete", "n", n), dtype, ranks)


def mycielskian(
    k: int,
    *,
    dtype: Any = np.float32,
    engine: str | None = None,
    comm: Any = None,
    grid: Any = None,
    order: str = "auto",
) -> Matrix:
    """Mycielski graph of order k: no triangles, and yet it needs k colours.

    Order 1 is a vertex and order 2 an edge.  From a graph with vertices v_0 .. v_(n-1) the next
    one is made by a copy u_i of each v_i, joined to the neighbours of v_i, and one more vertex
    that is joined to all copies [1]_.  Order k >= 2 has 3 2^(k-2) - 1 vertices.

    Parameters
    ----------
    k : int
        1 to 22.
    dtype, engine, comm, grid, order
        As for `path`.

    Returns
    -------
    A : (n, n) scipy.sparse.csr_array
        First the v, then the u, then the last vertex.  With ``engine="gpu"`` a
        cupyx.scipy.sparse.csr_matrix, with `comm` a `DistributedGraph`; rank 0 makes it then.

    Raises
    ------
    TypeError, ValueError, OutOfMemory
        If an argument is of the wrong kind; if it fits no memory.

    References
    ----------
    .. [1] J. Mycielski. Sur le coloriage des graphes. Colloq. Math. 3, 1955.
       doi:10.4064/cm-3-2-161-162

    Examples
    --------
    >>> from matchwood.generators import mycielskian
    >>> [(mycielskian(k).shape[0], mycielskian(k).nnz // 2) for k in (2, 3, 4, 5)]
    [(2, 1), (5, 5), (11, 20), (23, 71)]
    """

    def size() -> int:
        least = count("mycielskian", "k", k, least=1)
        return arguments.at_most("mycielskian", "k", least, MOST_MYCIELSKIAN, "more fits no memory")

    return _made("mycielskian", size, dtype, Ranks(comm, grid, order, engine))


def _size(family: str, size: int) -> tuple[int, int]:
    if family == "mycielskian":
        n, entries = (1, 0) if size == 1 else (2, 2)
        for _ in range(size - 2):
            n, entries = 2 * n + 1, 3 * entries + 2 * n
        return n, entries
    return size, size * (size - 1) if family == "complete" else 2 * size


def _made(family: str, size: Callable[[], int], dtype: Any, ranks: Ranks) -> Matrix:
    """Rows from the CPU engine (or the reference), moved where they are wanted."""
    number, kind = ranks.agreed(family, lambda: (size(), arguments.value_type(family, dtype)))
    if ranks.comm is None:
        return _matrix(family, number, kind, ranks.engine)
    if family == "mycielskian":  # each order is made of the one before
        return ranks.dealt(family, lambda: _matrix(family, number, kind, None))
    return _made_by_ranks(family, number, kind, ranks)


def _matrix(family: str, size: int, dtype: Any, engine: str | None) -> Matrix:
    chosen = engines.resolve("cpu", engine, family)
    n, entries = _size(family, size)
    result.require_room(family, chosen, n, entries, dtype, entries * 8)
    made_by = engines.load(__name__, "reference" if chosen == "reference" else "cpu")
    indptr, indices = getattr(made_by, family)(size)
    indptr, indices = (engines.moved(part, engines.home(chosen)) for part in (indptr, indices))
    return result.matrix(indptr.size - 1, indptr, indices, result.ones(indices, dtype))


def _made_by_ranks(family: str, n: int, dtype: Any, ranks: Ranks) -> Any:
    """Edge k joins k and the next vertex, or 0 and k + 1; a complete graph goes row by row."""
    index = arguments.index_type(n)

    def edges(first: int, number: int) -> tuple[Any, Any, None]:
        u = np.arange(first, first + number, dtype=index)
        if family == "star":
            return both_ways(np.zeros_like(u), u + index.type(1), directed=False)
        return both_ways(u, (u + index.type(1)) % index.type(n), directed=False)

    def rows(first: int, number: int) -> tuple[Any, Any, None]:
        u = np.repeat(np.arange(first, first + number, dtype=index), n)
        return both_ways(u, np.tile(np.arange(n, dtype=index), number), directed=True)

    if family == "complete":
        return ranks.graph(family, n, n, rows, ones_on_ranks(dtype), each=max(n, 1))
    total = n if family == "cycle" else max(n - 1, 0)
    return ranks.graph(family, n, total, edges, ones_on_ranks(dtype))
