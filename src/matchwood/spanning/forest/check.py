"""Is this the minimum spanning forest?  Decided from the definition.

A set of edges is the forest when they are edges of the graph (with their weights), they close no
circle, they join what the graph joins, and every other edge is the last, in the order (weight,
ends), of the circle that it closes with them.

The last point in near-linear time: joining the forest's edges in their order, the smaller set
under the larger, gives a second forest of height log2(n) in which the edge that joined a vertex to
its parent comes after all edges below.  The last edge on the way between u and v in the first
forest is then the last link on their ways up to where they meet in the second.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood import csr, engines
from matchwood.components.connected import connected_components
from matchwood.errors import CheckFailed
from matchwood.spanning.forest import order as orders
from matchwood.spanning.forest.costs import Costs, undirected_costs


def check_spanning_forest(A: Any, answer: Any, *, maximum: bool = False) -> None:
    """Raise `CheckFailed` unless `answer` is the minimum spanning forest of `A`.

    Parameters
    ----------
    A : as given to `minimum_spanning_forest`
    answer : Forest, (edges, weights) or edges of shape (m, 2)
    maximum : bool
        Whether it is to be the maximum spanning forest.

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
    G = csr.as_graph(A, "check_spanning_forest").on("cpu")
    costs = undirected_costs(G, "check_spanning_forest", bool(maximum))
    edges, weights = _unpack(answer)
    entries = _entries(costs, edges, weights)
    order = orders.make(costs, bool(maximum))
    ranks, rank_edges = _ranked(costs, edges, entries, order)
    _check_forest(G, costs, edges, ranks)
    _check_minimal(costs, order, edges, rank_edges)
    if hasattr(answer, "components"):
        _check_numbers(G.n, answer, edges, costs.data[entries])


def _unpack(answer: Any) -> tuple[Any, Any]:
    weights = None
    if hasattr(answer, "edges"):
        answer, weights = answer.edges, answer.weights
    elif isinstance(answer, tuple):
        answer, weights = answer
    edges = np.asarray(engines.moved(answer, "cpu"))
    if edges.size == 0:
        edges = np.empty((0, 2), np.int64)
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise CheckFailed(f"spanning forest: edges must have shape (m, 2), got {edges.shape}")
    if edges.dtype.kind not in "iu":
        raise CheckFailed(f"spanning forest: edges must be integers, got {edges.dtype}")
    if weights is not None:
        weights = np.asarray(engines.moved(weights, "cpu"))
        if weights.shape != (edges.shape[0],):
            raise CheckFailed(
                f"spanning forest: {edges.shape[0]} weights expected, got shape {weights.shape}"
            )
    return edges.astype(np.int64), weights


def _entries(costs: Costs, edges: Any, weights: Any) -> Any:
    """Where the edges stand in the upper triangle; they must be there, once, with that weight."""
    outside = np.flatnonzero(((edges < 0) | (edges >= costs.n)).any(axis=1))
    if outside.size:
        u, v = edges[outside[0]].tolist()
        raise CheckFailed(f"spanning forest: edge ({u}, {v}) leaves 0 .. {costs.n - 1}")
    from matchwood.spanning.forest.cpu_check import find_entries

    u, v = edges.min(axis=1), edges.max(axis=1)
    entries = find_entries(costs, u, v)
    missing = np.flatnonzero(entries < 0)
    if missing.size:
        i = int(missing[0])
        raise CheckFailed(f"spanning forest: ({u[i]}, {v[i]}) is no edge of the graph")
    if weights is not None:
        differ = np.flatnonzero(costs.data[entries] != weights)
        if differ.size:
            i = int(differ[0])
            raise CheckFailed(
                f"spanning forest: edge ({u[i]}, {v[i]}) weighs {costs.data[entries[i]]}, "
                f"not {weights[i]}"
            )
    return entries


def _ranked(costs: Costs, edges: Any, entries: Any, order: orders.Order) -> tuple[Any, Any]:
    """The edges' places in the order, as a sequence of them, and the entries in that sequence."""
    sequence = np.lexsort((entries, orders.codes(costs.data[entries], order)))
    return sequence, entries[sequence]


def _check_forest(G: csr.Graph, costs: Costs, edges: Any, sequence: Any) -> None:
    from matchwood.spanning.forest.cpu_check import first_circle

    closing = first_circle(costs.n, edges[sequence])
    if closing >= 0:
        u, v = edges[sequence[closing]].tolist()
        raise CheckFailed(f"spanning forest: edge ({u}, {v}) closes a circle")
    count = connected_components(G).count
    if edges.shape[0] == costs.n - count:
        return
    ours = connected_components((costs.n, edges)).labels
    rows = np.repeat(np.arange(costs.n), np.diff(costs.indptr))
    apart = int(np.flatnonzero(ours[rows] != ours[costs.indices])[0])
    u, v = int(rows[apart]), int(costs.indices[apart])
    raise CheckFailed(
        f"spanning forest: vertices {u} and {v} are joined in the graph, but not in the forest"
    )


def _check_minimal(costs: Costs, order: orders.Order, edges: Any, entries: Any) -> None:
    from matchwood.spanning.forest.cpu_check import find_earlier

    at, rank = find_earlier(costs, order, edges, entries)
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


def _check_numbers(n: int, answer: Any, edges: Any, weights: Any) -> None:
    if answer.components != n - edges.shape[0]:
        raise CheckFailed(
            f"spanning forest: {answer.components} components, but {n} vertices and "
            f"{edges.shape[0]} edges make {n - edges.shape[0]}"
        )
    from matchwood.spanning.forest import sum_of

    total = sum_of(weights)
    size = float(np.abs(weights.astype(np.float64)).sum())
    slack = 0.0 if weights.dtype.kind == "i" else 1e-12 * size
    if abs(answer.total - total) > slack:
        raise CheckFailed(f"spanning forest: total is {answer.total}, the weights give {total}")
