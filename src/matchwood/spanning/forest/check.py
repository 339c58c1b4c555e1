"""Is this the minimum spanning forest?  Decided from the definition.

A set of edges is the forest when they are edges of the graph (with their weights), they close no
cycle, they join what the graph joins, and every other edge is the last, in the order (weight,
ends), of the cycle that it closes with them.

The last point in near-linear time: joining the forest's edges in their order, the smaller set
under the larger, gives a second forest of height log2(n), in which the edge that joined a vertex to
its parent comes after all edges below.  The last edge on the way between u and v in the first
forest is then the last link on the ways from u and v up to their common ancestor in the second.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import answers, calls
from matchwood.arguments import flag, one_of
from matchwood.components.connected import connected_components
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.primitives.sort import radix_sort
from matchwood.spanning.forest import order as orders
from matchwood.spanning.forest.answers import check_numbers, same_weights, unpacked
from matchwood.spanning.forest.costs import Costs, undirected_costs

TIES = ("index", "any")


def check_spanning_forest(
    A: Any, answer: Any, *, maximum: bool = False, ties: str = "index"
) -> None:
    """Raise `CheckFailed` unless `answer` is the minimum spanning forest of `A`.

    Parameters
    ----------
    A : as given to `minimum_spanning_forest`
    answer : Forest, sparse matrix, (edges, weights) or edges of shape (m, 2)
        Of a `Forest` the order of the edges, `total`, `components` and `n` are checked as well;
        `rounds` is not.  Edges that come as an array may be in any order and direction.  In a
        sparse matrix, as SciPy's `minimum_spanning_tree` returns it, every stored entry is an
        edge; it may hold one triangle or both.
    maximum : bool
        Whether it is to be the maximum spanning forest.
    ties : {"index", "any"}
        ``"index"``: of edges of the same weight the one with the smaller ends, as
        `minimum_spanning_forest` takes it; there is just one such forest.  ``"any"``: every
        spanning forest with the least sum of weights is right.

    Raises
    ------
    CheckFailed
        If the answer is wrong; says what and where.
    TypeError
        If it cannot be an answer: ends of edges are no integers, weights no real numbers.

    Notes
    -----
    Runs on the CPU: a graph and an answer that live on a GPU are moved.  Work O(m log n); memory
    for two arrays of n and some of the forest's size.

    Where `A` is a DistributedGraph, all ranks call this, each with its share of the edges; all
    raise the same error.  The shares of a `Forest` are the edges whose smaller end a rank owns.

    SciPy's function drops edges of weight zero from its result; such a forest does not span.

    Examples
    --------
    >>> import matchwood
    >>> A = (3, [[0, 1], [1, 2], [0, 2]], [1.0, 2.0, 3.0])
    >>> matchwood.check.check_spanning_forest(A, [[0, 1], [1, 2]])
    >>> matchwood.check.check_spanning_forest(A, [[0, 1], [0, 2]])
    Traceback (most recent call last):
    matchwood.errors.CheckFailed: spanning forest: edge (1, 2) of weight 2.0 comes before edge \
(0, 2) of weight 3.0 on the way between its ends
    """
    caller = "check_spanning_forest"
    calls.agreed(A, lambda: one_of(caller, "ties", ties, TIES))
    maximum = calls.agreed(A, lambda: flag(caller, "maximum", maximum))
    if calls.is_distributed(A):
        from matchwood.spanning.forest.ranks import check as checking

        checking.check_spanning_forest(A, answer, maximum, ties == "index")
        return
    G = csr.as_graph(A, caller).on("cpu")
    costs = undirected_costs(G, caller, maximum)
    edges, weights = unpacked(caller, answer, G.n)
    entries = _entries(costs, edges, weights)
    order = orders.make(costs, maximum)
    sequence = _sequence(costs, entries, order)
    joined = _join_forest(G, costs, edges, sequence)
    _check_minimal(costs, order, joined, entries[sequence], ties == "index")
    if hasattr(answer, "components"):
        check_numbers(caller, answer, G.n, edges, costs.data[entries])


def is_spanning_forest(A: Any, answer: Any, *, maximum: bool = False, ties: str = "index") -> bool:
    """Whether this is the minimum spanning forest of `A`; `check_spanning_forest` says why not.

    Examples
    --------
    >>> import matchwood
    >>> from matchwood.spanning import is_spanning_forest
    >>> A = (3, [[0, 1], [1, 2], [0, 2]], [1.0, 1.0, 1.0])
    >>> is_spanning_forest(A, [[0, 1], [0, 2]]), is_spanning_forest(A, [[0, 1], [1, 2]])
    (True, False)
    >>> is_spanning_forest(A, [[0, 1], [1, 2]], ties="any")
    True
    """
    return answers.holds(check_spanning_forest, A, answer, maximum=maximum, ties=ties)


def _entries(costs: Costs, edges: Any, weights: Any) -> Any:
    """Where the edges stand in the upper triangle; they must be there, with that weight."""
    from matchwood.spanning.forest.cpu_check import find_entries

    u, v = np.minimum(*edges.T), np.maximum(*edges.T)
    entries = find_entries(costs, u, v)
    i = answers.first(entries < 0)
    if i is not None:
        raise CheckFailed(f"spanning forest: ({u[i]}, {v[i]}) is no edge of the graph")
    if weights is not None:
        i = answers.first(~same_weights(costs.data[entries], weights))
        if i is not None:
            raise CheckFailed(
                f"spanning forest: edge ({u[i]}, {v[i]}) weighs {costs.data[entries[i]]}, "
                f"not {weights[i]}"
            )
    return entries


def _sequence(costs: Costs, entries: Any, order: orders.Order) -> Any:
    """The edges in their order."""
    codes = orders.codes(costs.data[entries], order)
    if entries.size <= answers.BLOCK:
        return np.lexsort((entries, codes))
    # the same sort, and Ctrl-C interrupts it
    _, sequence = radix_sort(entries.astype(np.uint64))
    _, place = radix_sort(codes[sequence])
    return sequence[place]


def _join_forest(G: csr.Graph, costs: Costs, edges: Any, sequence: Any) -> Any:
    """The second forest, after a check that the first is a forest and spans."""
    from matchwood.spanning.forest.cpu_check import join_forest

    joined = join_forest(costs.n, edges[sequence])
    if joined.cycle >= 0:
        u, v = edges[sequence[joined.cycle]].tolist()
        raise CheckFailed(f"spanning forest: edge ({u}, {v}) closes a cycle")
    count = connected_components(G).count
    if edges.shape[0] == costs.n - count:
        return joined
    ours = connected_components((costs.n, edges)).labels
    for _, u, v in answers.arcs(costs):
        at = answers.first(ours[u] != ours[v])
        if at is not None:
            raise CheckFailed(
                f"spanning forest: vertices {u[at]} and {v[at]} are joined in the graph, "
                "but not in the forest"
            )
    raise AssertionError("a forest has too few edges, but joins the ends of all")


def _check_minimal(
    costs: Costs, order: orders.Order, joined: Any, entries: Any, exact: bool
) -> None:
    from matchwood.spanning.forest.cpu_check import find_earlier

    at, rank = find_earlier(costs, order, joined, entries, exact)
    if at < 0:
        return
    u, v = _ends(costs, at)
    a, b = _ends(costs, int(entries[rank]))
    raise CheckFailed(
        f"spanning forest: edge ({u}, {v}) of weight {costs.data[at]} comes before edge "
        f"({a}, {b}) of weight {costs.data[entries[rank]]} on the way between its ends"
    )


def _ends(costs: Costs, entry: int) -> tuple[int, int]:
    row = int(np.searchsorted(costs.indptr, entry, "right")) - 1
    return row, int(costs.indices[entry])
