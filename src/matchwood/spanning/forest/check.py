"""Is this the minimum spanning forest?  Decided from the definition.

A set of edges is the forest when they are edges of the graph (with their weights), they close no
cycle, they join what the graph joins, and every other edge is the last, in the order (weight,
ends), of the cycle that it closes with them.

The last point in near-linear time: joining the forest's edges in their order, the smaller set
under the larger, gives a second forest of height log2(n), in which the edge that joined a vertex to
its parent is later than all edges below.  The last edge on the way between u and v in the first
forest is then the last link on the ways from u and v up to their common ancestor in the second.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from matchwood import answers, calls, engines
from matchwood.arguments import flag, one_of
from matchwood.components.connected import connected_components
from matchwood.errors import CheckFailed
from matchwood.gate import graph as csr
from matchwood.primitives.sort import radix_sort
from matchwood.spanning.forest import order as orders
from matchwood.spanning.forest import sum_of
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
        `rounds` is not.  Edges given as an array may be in any order and direction.  In a
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
    call = calls.enter(A, caller)
    if call.engine == "ranks":
        call.load_check(__package__).check_spanning_forest(A, answer, maximum, ties == "index")
        return
    G = call.graph.on("cpu")
    costs = undirected_costs(G, caller, maximum)
    edges, weights = unpacked(caller, answer, G.n)
    entries = _entries(costs, edges, weights)
    order = orders.make(costs, maximum)
    sequence = _sequence(costs, entries, order)
    joined = _join_forest(G, costs, edges, sequence)
    _check_minimal(costs, order, joined, entries[sequence], ties == "index")
    if hasattr(answer, "components"):
        check_order(G.n, edges)
        true, m = costs.data[entries], edges.shape[0]
        true = sum_of(true) if true.dtype.kind == "i" else scaled_sums(true, m)
        check_numbers(caller, answer, G.n, m, true)


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
    from matchwood.spanning.forest.cpu import find_entries

    u, v = np.minimum(*edges.T), np.maximum(*edges.T)
    entries = find_entries(costs, np.arange(costs.n), u, v, None)
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
    """The edges by (code, entry).  Unlike numpy.lexsort, Ctrl-C interrupts it."""
    codes = orders.codes(costs.data[entries], order)
    _, sequence = radix_sort(entries.astype(np.uint64))
    _, place = radix_sort(codes[sequence])
    return sequence[place]


def _join_forest(G: csr.Graph, costs: Costs, edges: Any, sequence: Any) -> Any:
    """The second forest, after a check that the first is a forest and spans."""
    from matchwood.spanning.forest.cpu import join_forest

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
    from matchwood.spanning.forest.cpu import find_earlier

    at, place = find_earlier(costs, order, joined, entries, exact)
    if at < 0:
        return
    u, v = _ends(costs, at)
    a, b = _ends(costs, int(entries[place]))
    raise CheckFailed(
        f"spanning forest: edge ({u}, {v}) of weight {costs.data[at]} comes before edge "
        f"({a}, {b}) of weight {costs.data[entries[place]]} on the way between its ends"
    )


def _ends(costs: Costs, entry: int) -> tuple[int, int]:
    row = int(np.searchsorted(costs.indptr, entry, "right")) - 1
    return row, int(costs.indices[entry])


# What the check takes as an answer: edges, weights and a few numbers


PROBLEM = "spanning forest"
SUM_ERROR = 1e-12  # error of a sum of many floats in any order, relative to the sum of their sizes


class AnswerEdges(NamedTuple):
    """Edges with the smaller end first, in the order of the answer, and their weights."""

    edges: Any  # (m, 2), int64
    weights: Any  # or None


def unpacked(caller: str, answer: Any, n: int) -> AnswerEdges:
    """The edges of a `Forest`, a sparse matrix, (edges, weights) or edges, on the CPU."""
    if hasattr(answer, "tocoo"):
        return _of_matrix(caller, answer, n)
    weights = None
    if hasattr(answer, "edges") and hasattr(answer, "weights"):
        answer, weights = answer.edges, answer.weights
    elif isinstance(answer, tuple) and len(answer) == 2 and not _is_pair(answer):
        answer, weights = answer
    edges = answers.array(caller, "edges", answer)
    if edges.size == 0:
        edges = np.empty((0, 2), np.int64)
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise CheckFailed(f"{PROBLEM}: edges must have shape (m, 2), got {edges.shape}")
    edges = answers.integers(caller, PROBLEM, "edges", edges, edges.shape, "cpu")
    u, v = edges[:, 0], edges[:, 1]
    outside = answers.first((u < 0) | (u >= n) | (v < 0) | (v >= n))
    if outside is not None:
        raise CheckFailed(f"{PROBLEM}: edge ({u[outside]}, {v[outside]}) leaves 0 .. {n - 1}")
    if weights is not None:
        if not hasattr(weights, "dtype") and len(weights) == 0:
            weights = np.empty(0)
        weights = answers.reals(
            caller, PROBLEM, "weights", weights, (edges.shape[0],), "cpu"
        )  # fmt: skip
    return AnswerEdges(edges, weights)


def _is_pair(answer: tuple[Any, ...]) -> bool:
    """Two edges in a tuple, ((0, 1), (1, 2)), are no (edges, weights)."""
    ends = (int, np.integer)
    return all(
        isinstance(edge, tuple) and len(edge) == 2 and all(isinstance(v, ends) for v in edge)
        for edge in answer
    )


def _of_matrix(caller: str, matrix: Any, n: int) -> AnswerEdges:
    """Every stored entry is an edge; (u, v) and (v, u), of the same weight, are one."""
    if matrix.shape != (n, n):
        raise CheckFailed(f"{PROBLEM}: the matrix must have shape {(n, n)}, got {matrix.shape}")
    coo = matrix.tocoo()
    rows, columns, weights = (
        np.asarray(engines.moved(array, "cpu")) for array in (coo.row, coo.col, coo.data)
    )
    if weights.dtype.kind not in "iuf":
        raise TypeError(f"{caller}: weights must hold real numbers, got dtype {weights.dtype}")
    edges = np.stack([rows, columns], axis=1).astype(np.int64)
    low, high = np.minimum(rows, columns), np.maximum(rows, columns)
    order = np.lexsort((edges[:, 0], high, low))
    edges, weights, key = edges[order], weights[order], (low.astype(np.int64) * n + high)[order]
    again = np.zeros(key.size, bool)
    again[1:] = (key[1:] == key[:-1]) & (edges[1:, 0] != edges[:-1, 0])
    differ = answers.first(again[1:] & (weights[1:] != weights[:-1]))
    if differ is not None:
        u, v = edges[differ].tolist()
        raise CheckFailed(
            f"{PROBLEM}: entries ({u}, {v}) and ({v}, {u}) of the matrix differ: "
            f"{weights[differ]} and {weights[differ + 1]}"
        )
    return AnswerEdges(edges[~again], weights[~again])


def same_weights(true: Any, given: Any) -> Any:
    """Which weights are equal, as numbers: integers are never rounded to compare them."""
    if true.dtype.kind == "f" or given.dtype.kind == "f":
        if true.dtype.kind == given.dtype.kind:
            return true == given
        whole, floating = (true, given) if given.dtype.kind == "f" else (given, true)
        floating = floating.astype(np.float64)
        fits = (np.floor(floating) == floating) & (np.abs(floating) < 2.0**63)
        return fits & (np.where(fits, floating, 0.0).astype(np.int64) == whole)
    high = np.iinfo(np.int64).max
    fits = given <= high if given.dtype == np.uint64 else np.ones(given.shape, bool)
    return fits & (np.where(fits, given, 0).astype(np.int64) == true)


def check_numbers(caller: str, answer: Any, n: int, m: int, true: Any) -> None:
    """Check the numbers of a `Forest` of m edges; `true` is an exact total, or `scaled_sums`."""
    vertices = answers.whole(caller, "n", answer.n)
    if vertices != n:
        raise CheckFailed(f"{PROBLEM}: n is {vertices}, but the graph has {n} vertices")
    trees = answers.whole(caller, "components", answer.components)
    if trees != n - m:
        raise CheckFailed(
            f"{PROBLEM}: {trees} components, but {n} vertices and {m} edges make {n - m}"
        )
    if isinstance(true, int):
        total = answers.whole(caller, "total", answer.total)
        wrong = total != true
    else:
        total = answers.number(caller, "total", answer.total)
        exact, size, shift = true
        wrong = _is_wrong(total, exact, size, shift, m)
        with np.errstate(over="ignore"):
            true = float(np.ldexp(exact, shift))
    if wrong:
        raise CheckFailed(f"{PROBLEM}: total is {total}, the weights give {true}")


def scaled_sums(weights: Any, count: int, added: Any = lambda parts, op="sum": parts) -> Any:
    """(sum, sum of sizes, shift) of floats: both times 2^-shift, so that neither overflows.

    `added` adds up the parts of ranks, or takes the "max"; `count` weights in all.
    """
    wide = weights.astype(np.float64)
    most = float(added(np.array([np.abs(wide).max(initial=0.0)]), "max")[0])
    shift = math.frexp(most)[1] + count.bit_length()
    scaled = np.ldexp(wide, -shift)
    exact, size = (float(x) for x in added(np.array([scaled.sum(), np.abs(scaled).sum()])))
    return exact, size, shift


def check_order(n: int, edges: Any) -> None:
    """Raise unless edges have the smaller end first, and ascend."""
    turned = answers.first(edges[:, 0] >= edges[:, 1])
    if turned is not None:
        u, v = edges[turned].tolist()
        raise CheckFailed(f"{PROBLEM}: edge {turned} is ({u}, {v}): the smaller end must be first")
    keys = edges[:, 0] * np.int64(n) + edges[:, 1]
    k = answers.first(keys[1:] <= keys[:-1])
    if k is not None:
        raise CheckFailed(f"{PROBLEM}: edges must ascend, but edge {k + 1} comes before edge {k}")


def _is_wrong(total: Any, exact: float, size: float, shift: int, count: int) -> bool:
    """Whether a total of floats, added up in any order, is too far from the exact one.

    `exact` and `size` are the sums of the weights and of their sizes, times 2^-shift.
    """
    slack = size * min(SUM_ERROR, count * 2.0**-52)
    if math.isinf(total):  # the sum may be larger than any float
        return not (math.copysign(exact, total) == exact and _overflows(exact, slack, shift))
    return not abs(math.ldexp(total, -shift) - exact) <= slack


def _overflows(exact: float, slack: float, shift: int) -> bool:
    try:
        return math.isinf(math.ldexp(abs(exact) + slack, shift))
    except OverflowError:
        return True
