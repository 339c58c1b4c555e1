"""Nested dissection: separators are eliminated last.  See reference.py, check.py, cpu.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from matchwood import calls
from matchwood.arguments import count, one_of, real, seed
from matchwood.ordering.elimination import Fill, fill
from matchwood.ordering.minimum_degree import minimum_degree
from matchwood.ordering.permutation import inverse
from matchwood.ordering.rcm import reverse_cuthill_mckee
from matchwood.partitioning.separator import MOST_TRIES

Array = np.ndarray[Any, Any]

LEAVES = ("minimum_degree", "rcm")
MERGED = 0.85  # equal rows are merged where at most this part of the vertices is left


@dataclass(frozen=True, eq=False)
class Dissection:
    """What `nested_dissection` returns.

    Attributes
    ----------
    perm, place : (n,) integer arrays
        ``perm[new] = old`` and ``place[old] = new``.
    tree : (k,) integer array
        The parent of each node of the dissection, -1 for the root; nodes are in postorder.
    starts : (k + 1,) integer array
        Node j has the vertices ``perm[starts[j]:starts[j + 1]]``.
    separators : (k,) boolean array
        Whether a node is a separator; the others are leaves.
    fill : Fill
        What elimination in this order costs.
    """

    perm: Any
    place: Any
    tree: Any
    starts: Any
    separators: Any
    fill: Fill

    def __repr__(self) -> str:
        leaves = int((~self.separators).sum())
        return (
            f"<Dissection: {self.perm.shape[0]} vertices, {leaves} leaves, "
            f"{self.fill.entries} entries of L>"
        )


@dataclass(frozen=True, eq=False)
class EliminationOrder:
    """What `elimination_order` returns: `perm`, its `method`, its `fill`, and that of the other.

    Attributes
    ----------
    perm : (n,) integer array
        ``perm[new] = old``.
    method : {"dissection", "minimum_degree"}
    fill, other : Fill
        Of `perm`, and of the order that takes more operations.
    """

    perm: Any
    method: str
    fill: Fill
    other: Fill

    def __repr__(self) -> str:
        return f"<EliminationOrder by {self.method}: {self.fill.entries} entries of L>"


def nested_dissection(
    A: Any,
    *,
    leaf: int = 200,
    leaves: str = "minimum_degree",
    tries: int = 3,
    imbalance: float = 0.3,
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
) -> Dissection:
    """Order a matrix for factorisation with little fill and a low elimination tree.

    A separator is cut out of the graph; what is left on its sides is ordered first, each side for
    itself and in the same way, and the separator last [1]_.  No entry of L then joins the sides.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Only the pattern is read, of A and its transpose.
    leaf : int
        Pieces of at most this many vertices are not cut any more.
    leaves : {"minimum_degree", "rcm"}
        The order inside of leaves and of separators: `minimum_degree`, where what comes later
        counts as neighbours, or `reverse_cuthill_mckee` of each node for itself.
    tries, imbalance, rng
        Of each separator, as in `vertex_separator`.  Sides may differ more than there: a smaller
        separator is worth it.
    engine : {None, "reference", "cpu"}
        None takes the engine where `A` already lives.
    threads : int or None
        CPU threads.  They share the tries and the pieces of a level; ``"minimum_degree"`` is the
        work of one.

    Returns
    -------
    Dissection
        With `perm`, `place`, `tree`, `starts`, `separators` and `fill`.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, or an option is out of its range.
    EngineUnavailable
        On the GPU.

    See Also
    --------
    elimination_order : this or `minimum_degree`, whichever takes fewer operations.

    Notes
    -----
    Vertices with equal rows are one vertex, if that leaves at most 85 % of them.  Components that
    weigh more than `leaf` are cut, each for itself; the smaller ones on a side of a separator are
    one leaf together.  A piece without a separator, such as a clique, is a leaf.  All decisions are
    those of `vertex_separator` for a seed from the smallest vertex of the piece, so the answer
    is the same at any number of threads.

    Work: that of `vertex_separator` for each of the about log2(n / leaf) levels.  Memory for each
    thread at most three times the largest graph that it cuts.

    References
    ----------
    .. [1] A. George. Nested dissection of a regular finite element mesh. SIAM J. Numer. Anal.
       10(2), 1973. doi:10.1137/0710032
    .. [2] B. Hendrickson, E. Rothberg. Improving the run time and quality of nested dissection
       ordering. SIAM J. Sci. Comput. 20(2), 1998. doi:10.1137/S1064827596300656

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.grid((30, 30))
    >>> found = matchwood.nested_dissection(A)
    >>> found.fill.entries < matchwood.fill(A).entries / 2
    True
    >>> matchwood.nested_dissection(matchwood.generators.path(7), leaf=1).perm.tolist()
    [6, 4, 5, 0, 2, 1, 3]
    """
    caller = "nested_dissection"
    leaf, tries = count(caller, "leaf", leaf, 1), count(caller, "tries", tries, 1, MOST_TRIES)
    one_of(caller, "leaves", leaves, LEAVES)
    real(caller, "imbalance", imbalance, 0)
    first_seed = seed(caller, rng)
    call = calls.enter(A, caller, engine, threads)
    view = call.graph.undirected_pattern()
    node, tree, separators = call.load(__name__).dissect(
        view, leaf, tries, imbalance, first_seed, threads
    )
    if leaves == "minimum_degree":
        perm = minimum_degree(call.graph, stages=node, engine=call.engine)
    else:
        perm = _inside(view, node, call.engine, threads)
    sizes = np.bincount(node, minlength=tree.size)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    costs = fill(call.graph, perm, engine=call.engine)
    return Dissection(perm, inverse(perm), tree, starts, separators, costs)


def elimination_order(
    A: Any,
    *,
    tries: int = 3,
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
) -> EliminationOrder:
    """The order by `minimum_degree` or by `nested_dissection`, whichever takes fewer operations.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Only the pattern is read, of A and its transpose.
    tries, rng, engine, threads
        As in `nested_dissection`.

    Returns
    -------
    EliminationOrder
        With `perm`, `method`, `fill` and `other`.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, or an option is out of its range.
    EngineUnavailable
        On the GPU.

    Notes
    -----
    Of equal numbers of operations, minimum degree.  Work and memory are those of both.

    Examples
    --------
    >>> import matchwood
    >>> matchwood.elimination_order(matchwood.generators.star(9))
    <EliminationOrder by minimum_degree: 17 entries of L>
    """
    caller = "elimination_order"
    count(caller, "tries", tries, 1, MOST_TRIES)
    start = seed(caller, rng)
    call = calls.enter(A, caller, engine, threads)
    call.load(__name__)
    perm = minimum_degree(call.graph, engine=call.engine)
    first = fill(call.graph, perm, engine=call.engine)
    cut = nested_dissection(call.graph, tries=tries, rng=start, engine=call.engine, threads=threads)
    if first.operations <= cut.fill.operations:
        return EliminationOrder(perm, "minimum_degree", first, cut.fill)
    return EliminationOrder(cut.perm, "dissection", cut.fill, first)


def _inside(view: Any, node: Array, engine: str, threads: int | None) -> Array:
    """By node; within a node the order of Cuthill and McKee, reversed, of its own edges."""
    row = np.repeat(np.arange(view.n), np.diff(view.indptr))
    kept = node[row] == node[view.indices]
    edges = np.stack([row[kept], view.indices[kept]], axis=1)
    order = reverse_cuthill_mckee((view.n, edges), engine=engine, threads=threads)
    found: Array = order[np.argsort(node[order], kind="stable")]
    return found.astype(view.indptr.dtype, copy=False)


def in_postorder(node: Array, parents: list[int], cuts: list[bool]) -> tuple[Array, Array, Array]:
    """Nodes numbered so that subtrees are consecutive and end with their root, later ones first.

    Given are the node of each vertex, and of each node the one above it, which has a smaller
    number, and whether it is a separator.  Node 0 is there for graphs in several parts; where it
    has one child, it goes.
    """
    n = len(parents)
    size, post, room = [1] * n, [n - 1] * n, [n - 1] * n
    for k in reversed(range(1, n)):
        size[parents[k]] += size[k]
    for k in range(1, n):
        above = parents[k]
        post[k] = room[above] - 1
        room[above] -= size[k]
        room[k] = post[k]
    number = np.array(post)
    tree, separators = np.full(n, -1), np.empty(n, bool)
    tree[number[1:]] = number[parents[1:]]
    separators[number] = cuts
    if parents.count(0) < 2:
        tree[tree == n - 1] = -1
        tree, separators = tree[:-1], separators[:-1]
    return number[node], tree, separators
