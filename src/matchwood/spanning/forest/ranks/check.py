"""Is this the minimum spanning forest of a graph that is distributed over ranks?

No rank sees all of it.  The same questions in the same order as check.py, and the same messages; of
several faults every rank names the first.

Boruvka's rounds over the edges of the answer alone join them to trees.  An edge that is not taken
closes a cycle.  For every other edge (u, v) of the graph, the last edge between u and v in the tree
is the last of those that the components of u and v chose, round by round, until u and v were in the
same component [1]_.  So a round ends with a pass over the block: edges whose ends it joined are
compared.  Vertices keep their component and the last edge so far; owners expand both.

.. [1] V. King. A simpler minimum spanning tree verification algorithm. Algorithmica 18, 1997.
   doi:10.1007/BF02526037
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from matchwood import answers
from matchwood.engines.ranks.agreement import raise_first, same
from matchwood.errors import CheckFailed
from matchwood.spanning.forest.check import (
    PROBLEM,
    check_numbers,
    check_order,
    same_weights,
    scaled_sums,
    unpacked,
)
from matchwood.spanning.forest.order import codes, order_of
from matchwood.spanning.forest.ranks import (
    Edges,
    Rounds,
    added,
    at_entry_owners,
    block_costs,
    in_order,
)
from matchwood.spanning.forest.ranks.cpu import Ways, first_apart, first_earlier

Array = np.ndarray[Any, Any]


def check_spanning_forest(G: Any, answer: Any, maximum: bool, exact: bool) -> None:
    """See spanning.forest.check.check_spanning_forest; all ranks raise the same."""
    caller, G = "check_spanning_forest", G.on("cpu")
    complete = hasattr(answer, "components")
    same(G.comm, caller, maximum=maximum, exact=exact, answer_is_a_forest=complete)
    costs = block_costs(G, caller, maximum)
    given = _together(G, lambda: unpacked(caller, answer, G.n))
    edges = _edges(G, costs, given, maximum)
    joined, earlier = _join(G, costs, edges, maximum, exact)
    _check_cycles(G, edges, joined)
    _check_spans(G, costs, joined.ways.after)
    _raise(G, earlier)
    if complete:
        _together(G, lambda: _check_share(G, given.edges))
        weights = costs.data[edges.entry]
        m = int(G.comm.allreduce(np.array([weights.size], np.int64))[0])
        whole = weights.dtype.kind == "i"
        true = added(G.comm, weights) if whole else scaled_sums(weights, m, G.comm.allreduce)
        _together(G, lambda: check_numbers(caller, answer, G.n, m, true))


def _edges(G: Any, costs: Any, given: Any, maximum: bool) -> Edges:
    """The answer's edges at the ranks that keep them, in order; they must be there."""
    low, high = given.edges.min(1, initial=G.n), given.edges.max(1, initial=-1)
    weights = given.weights
    sent = [] if weights is None else [weights]
    kinds = G.comm.objects(None if weights is None else weights.dtype.str)
    if len(set(kinds)) > 1:  # an empty share may be of any type
        kinds = [kind for kind, size in zip(kinds, G.comm.objects(low.size), strict=True) if size]
        if len(set(kinds)) > 1:
            raise TypeError(
                "check_spanning_forest: weights must be of one type on all ranks, "
                f"got {sorted(map(str, set(kinds)))}"
            )
        sent = [] if kinds[0] is None else [np.asarray(weights, kinds[0])]
    entries, low, high, received = at_entry_owners(G, costs, low, high, *sent)
    _refuse(G, low, high, entries < 0, lambda i: f"({low[i]}, {high[i]}) is no edge of the graph")
    if received:
        _refuse(G, low, high, ~same_weights(costs.data[entries], received[0]), lambda i: (
            f"edge ({low[i]}, {high[i]}) weighs {costs.data[entries[i]]}, not {received[0][i]}"
        ))  # fmt: skip
    entries = entries[np.lexsort((high, low))]
    code = codes(costs.data[entries], order_of(costs.data.dtype, maximum))
    tail = np.searchsorted(costs.indptr, entries, "right") - 1
    head = costs.indices[entries].astype(np.int64)
    return in_order(Edges(tail, head, code, tail, head, entries), G.threads)


class _Joined:
    """Vertices while the answer's edges are joined: components, and the last edge so far.

    `label` and `last` are of own vertices, `ways` of all local ones.
    """

    def __init__(self, G: Any) -> None:
        self.G = G
        self.taken: list[Array] = []
        self.label = G.ids.astype(np.int64)
        self.last = _no_edges(self.label.size)
        names = G.original_local.astype(np.int64)
        self.ways = Ways(names, names.copy(), *_no_edges(names.size))

    def advance(self, rounds: Rounds) -> None:
        """Take over the last round: components that chose an edge have joined others."""
        chosen = _no_edges(self.label.size)
        for column, values in zip(chosen, rounds.edge, strict=True):
            column[rounds.touched] = values
        label, *chosen = self.G.exchange.ask(self.label, rounds.parent, *chosen)
        changed = np.flatnonzero(chosen[1] >= 0)
        self.label[changed] = label[changed]
        later = changed[_is_later(chosen, self.last)[changed]]
        for mine, new in zip(self.last, chosen, strict=True):
            mine[later] = new[later]
        self.ways.before[:] = self.ways.after
        changes = [column[changed] for column in (self.label, *self.last)]
        grid, exchange = self.G.grid, self.G.exchange
        rows, *values = exchange.expand_rows_changed(changed, *changes)
        self._store(rows, values)
        columns, *values = exchange.expand_changed(changed, *changes)
        self._store(grid.columns_to_local[columns], values)

    def _store(self, local: Array, values: list[Array]) -> None:
        for column, new in zip(self.ways[1:], values, strict=True):
            column[local] = new


def _no_edges(size: int) -> tuple[Array, Array, Array]:
    """(code, low, high) of no edges, which are before all edges."""
    low, high = (np.full(size, -1, np.int64) for _ in range(2))
    return np.zeros(size, np.uint64), low, high


def _is_later(x: Any, y: Any) -> Array:
    """Which edges of x are later than those of y; by (code, low, high)."""
    later: Array = (x[0] > y[0]) | (
        (x[0] == y[0]) & ((x[1] > y[1]) | ((x[1] == y[1]) & (x[2] > y[2])))
    )
    return later


def _join(
    G: Any, costs: Any, edges: Edges, maximum: bool, exact: bool
) -> tuple[_Joined, tuple[str, Any] | None]:
    """The answer's edges, joined; and the fault of this rank's first edge that is too early."""
    order = order_of(costs.data.dtype, maximum)
    joined, rounds, names = _Joined(G), Rounds(G, G.threads), G.original_local
    worst: Any = None
    for taken in rounds.rest(edges, names.astype(np.int64)):
        joined.taken.append(taken)
        joined.advance(rounds)
        found = first_earlier(costs, order, names, joined.ways, exact, G.threads)
        if found is not None and (worst is None or found < worst):
            worst = found
    # the rank that keeps the other edge says its weight
    wanted = G.comm.objects(None if worst is None else worst[0][2:])
    known = {}
    for pair in {each for each in wanted if each is not None}:
        at = np.flatnonzero((names[edges.low] == pair[0]) & (names[edges.high] == pair[1]))
        if at.size:
            known[pair] = costs.data[edges.entry[at[0]]]
    weights = {pair: w for each in G.comm.objects(known) for pair, w in each.items()}
    if worst is None:
        return joined, None
    (u, v, a, b), entry = worst
    text = (
        f"edge ({u}, {v}) of weight {costs.data[entry]} comes before edge ({a}, {b}) of weight "
        f"{weights[(a, b)]} on the way between its ends"
    )
    return joined, (text, (u, v))


def _check_cycles(G: Any, edges: Edges, joined: _Joined) -> None:
    """Raise where an edge was not taken: it closes a cycle with those before it."""
    taken = np.zeros(int(edges.entry.max(initial=-1)) + 1, np.bool_)
    for entries in joined.taken:
        taken[entries] = True
    again = np.zeros(edges.entry.size, np.bool_)  # copies of an edge follow each other
    again[1:] = edges.entry[1:] == edges.entry[:-1]
    i = answers.first(again | ~taken[edges.entry])
    fault = None
    if i is not None:
        u, v = (int(G.original_local[end[i]]) for end in (edges.low, edges.high))
        fault = (f"edge ({u}, {v}) closes a cycle", (int(edges.code[i]), u, v))
    _raise(G, fault)


def _check_spans(G: Any, costs: Any, labels: Array) -> None:
    """Raise where an edge joins two of the answer's components, `labels` of all local vertices."""
    found = first_apart(costs, G.original_local, labels, G.threads)
    fault = None
    if found is not None:
        text = f"vertices {found[0]} and {found[1]} are joined in the graph, but not in the forest"
        fault = (text, found)
    _raise(G, fault)


def _check_share(G: Any, edges: Array) -> None:
    """Raise unless a rank's edges are those whose smaller end it owns, ascending."""
    check_order(G.n, edges)
    i = answers.first(~np.isin(edges[:, 0], G.ids))
    if i is not None:
        u, v = edges[i].tolist()
        raise CheckFailed(
            f"{PROBLEM}: edge ({u}, {v}) must be on the rank that owns {u}, got it on rank "
            f"{G.comm.rank}"
        )


def _together(G: Any, work: Callable[[], Any]) -> Any:
    """``work()``, or on all ranks the error that the first of them raised."""
    result, error = None, None
    try:
        result = work()
    except (CheckFailed, TypeError, ValueError) as wrong:
        error = wrong
    raise_first(G.comm, error)
    return result


def _refuse(G: Any, low: Array, high: Array, wrong: Array, text: Callable[[int], str]) -> None:
    """Raise on all ranks for the first of the edges that are wrong, by their ends."""
    places = np.flatnonzero(wrong)
    fault = None
    if places.size:
        i = int(places[np.lexsort((high[places], low[places]))[0]])
        fault = (text(i), (int(low[i]), int(high[i])))
    _raise(G, fault)


def _raise(G: Any, fault: tuple[str, Any] | None) -> None:
    """Raise on all ranks the fault of the smallest key, (text, key); None: this one has none."""
    error = None if fault is None else CheckFailed(f"{PROBLEM}: {fault[0]}")
    raise_first(G.comm, error, None if fault is None else fault[1])
