"""What elimination costs: its tree, the entries of L.  See reference.py, check.py, cpu.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from matchwood import calls
from matchwood.ordering.permutation import as_permutation, inverse


@dataclass(frozen=True, eq=False)
class Fill:
    """What `fill` returns: the size of L, and what it takes to compute it.

    Attributes
    ----------
    entries : int
        Entries of L, the diagonal among them.
    operations : int
        The sum of the squares of `counts`: multiplications and additions of a factorisation.
    counts : (n,) integer array
        Entries of each column of L, in the order of elimination.
    parent : (n,) integer array
        As `elimination_tree` returns it.
    height : int
        Vertices on the longest path to a root: steps that must follow one another.
    """

    entries: int
    operations: int
    counts: Any
    parent: Any
    height: int

    def __repr__(self) -> str:
        return f"<Fill: {self.entries} entries, {self.operations} operations, height {self.height}>"


def elimination_tree(A: Any, perm: Any = None, *, engine: str | None = None) -> Any:
    """The tree of a Cholesky factorisation: the first entry below the diagonal of each column.

    Let L L' = P (A + A' + D) P' be factorised without cancellation, in the order `perm`.  Then

        parent(j) = min { i > j : L[i, j] is not zero }

    Column j is needed by its ancestors only, so subtrees can be eliminated at the same time [1]_.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Only the pattern is read, of A and its transpose; the diagonal counts as stored.
    perm : (n,) integer array, an order, or None
        ``perm[new] = old``; None for the order as it is.
    engine : {None, "reference", "cpu"}
        None takes the engine where `A` already lives.

    Returns
    -------
    parent : (n,) integer array
        Both ``j`` and ``parent[j]`` are places in the new order; -1 for a root.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, or `perm` no permutation of its rows.
    EngineUnavailable
        On the GPU.

    Notes
    -----
    The tree is unique.  Liu's algorithm [2]_ with compressed paths, on one thread: work
    O(m log n) at worst and nearly linear as a rule, memory two arrays of n.

    References
    ----------
    .. [1] J. W. H. Liu. The role of elimination trees in sparse factorization. SIAM J. Matrix
       Anal. Appl. 11(1), 1990. doi:10.1137/0611010
    .. [2] J. W. H. Liu. A compact row storage scheme for Cholesky factors using elimination trees.
       ACM TOMS 12(2), 1986. doi:10.1145/6497.6499

    Examples
    --------
    A path is a chain in its own order, and of half the height when its middle comes last:

    >>> import matchwood
    >>> A = matchwood.generators.path(5)
    >>> matchwood.elimination_tree(A).tolist()
    [1, 2, 3, 4, -1]
    >>> matchwood.elimination_tree(A, [0, 1, 4, 3, 2]).tolist()
    [1, 4, 3, 4, -1]
    """
    return _eliminated(A, perm, "elimination_tree", engine, "tree")


def fill(A: Any, perm: Any = None, *, engine: str | None = None) -> Fill:
    """Count the entries of L and the operations of a Cholesky factorisation, without computing it.

    L is as in `elimination_tree`.  Its column j has ``counts[j]`` entries, and eliminating it takes
    ``counts[j]**2`` operations.  An LU factorisation without pivoting has L and as much again.

    Parameters
    ----------
    A, perm, engine
        As in `elimination_tree`.

    Returns
    -------
    Fill
        With `entries`, `operations`, `counts`, `parent` and `height`.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, or `perm` no permutation of its rows.
    EngineUnavailable
        On the GPU.

    Notes
    -----
    The algorithm of Gilbert, Ng and Peyton [1]_: row i of L is a subtree of the elimination tree,
    and its leaves alone say how it adds to the counts.  One thread; nearly linear work: the entries
    are read twice.  Memory ten arrays of n.

    References
    ----------
    .. [1] J. R. Gilbert, E. G. Ng, B. W. Peyton. An efficient algorithm to compute row and column
       counts for sparse Cholesky factorization. SIAM J. Matrix Anal. Appl. 15(4), 1994.
       doi:10.1137/S089547989223692

    Examples
    --------
    Eliminating the centre of a star first joins all others; last, it costs nothing:

    >>> import matchwood
    >>> A = matchwood.generators.star(5)
    >>> matchwood.fill(A)
    <Fill: 15 entries, 55 operations, height 5>
    >>> matchwood.fill(A, [1, 2, 3, 4, 0])
    <Fill: 9 entries, 17 operations, height 2>
    """
    parent, counts, height = _eliminated(A, perm, "fill", engine, "count")
    entries, operations = totals(counts)
    return Fill(entries, operations, counts, parent, height)


def _eliminated(A: Any, perm: Any, caller: str, engine: str | None, function: str) -> Any:
    call = calls.enter(A, caller, engine)
    view = call.graph.undirected_pattern()
    engine_functions = call.load(__name__)
    if perm is None:
        order = np.arange(view.n)
    else:
        order = as_permutation(perm, view.n, caller, "cpu")
    order = order.astype(view.indptr.dtype, copy=False)
    return getattr(engine_functions, function)(view, order, inverse(order))


def totals(counts: Any) -> tuple[int, int]:
    """The sum of the counts and that of their squares, exactly: low and high words apart."""
    long = counts.astype(np.uint64)
    squares = long * long
    low, high = squares & np.uint64(0xFFFFFFFF), squares >> np.uint64(32)
    return int(long.sum()), int(low.sum()) + (int(high.sum()) << 32)
