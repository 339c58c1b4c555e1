"""Minimum spanning forests on a grid of ranks: Boruvka's method.  Order of edges: ../order.py.

On one host the first rank does it for all (gate/distributed/one_host).

The first round takes whole rows: each rank finds the first edge of every row of its block, and the
owners take the first of those of their row group.  From then on a rank has a list of the edges
between different components, each edge at one rank, sorted once.  Of these it keeps those that
close no cycle with those before; that is at most one fewer than the components it sees.

A component is called by one of its vertices, its root; the owner of that vertex decides for it.  A
rank asks for every component that its edges touch, with the first of these edges:

    1. the owner takes the first of all edges received for a component, and hooks it to the
       component at the other end.  Of two that took the same edge the smaller one stays a root
    2. chains of hooks are shortened by pointer jumping (the owner of a vertex asks that of its
       parent, and so on)
    3. every rank that asked gets the new name of the component, and whether its edge was taken

A round at least halves the number of components that have edges.  Loops: cpu.py, and gpu.py +
gpu.cu for ranks with a GPU.
"""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines.ranks.agreement import any_of, raise_first, same
from matchwood.engines.ranks.exchanges import Routed
from matchwood.errors import EngineUnavailable
from matchwood.gate.distributed import one_host
from matchwood.gate.views import View, ones
from matchwood.primitives.sort import radix_sort
from matchwood.spanning.forest import LARGEST_FLOAT, Forest, total_overflows
from matchwood.spanning.forest import minimum_spanning_forest as one_machine
from matchwood.spanning.forest.costs import HALF, Costs, arcs, overflowing
from matchwood.spanning.forest.order import codes, order_of, rows_of

PACKAGE = __name__.rpartition(".")[0]
CALLER = "minimum_spanning_forest"
METHODS = ("auto", "boruvka")
SCALE = 2.0**-64  # with it a sum of at most 2^63 weights does not overflow


def minimum_spanning_forest(
    G: Any, *, method: str, maximum: bool, threads: int | None = None
) -> Forest:
    """See matchwood.spanning.minimum_spanning_forest.  Called by all ranks."""
    same(G.comm, CALLER, method=method, maximum=maximum)
    if method not in METHODS:
        raise EngineUnavailable(
            f"{CALLER}: method {method!r} is for one machine; 'boruvka' finds the same forest"
        )

    def work(graph: Any, members: int) -> Any:
        one = one_machine(graph, method=method, maximum=maximum, threads=members)
        return (one.edges, one.weights), dataclasses.replace(one, edges=None, weights=None)

    # the owner of its smaller end gets an edge
    referred = one_host.referred(G, CALLER, work, threads, vertices=lambda arrays: arrays[0][:, 0])
    if referred is not None:
        (edges, weights), found = referred
        edges = edges.astype(G.index_dtype, copy=False)
        return dataclasses.replace(found, edges=edges, weights=weights)
    threads = G.threads if threads is None else threads
    costs = block_costs(G, CALLER, maximum)
    if G.grid.p == 1 and G.order is None:  # the block is the graph
        engine = engines.load(PACKAGE, G.engine)
        edges, weights, rounds = engine.span(costs, method, maximum, threads=threads)
    else:
        entries, rounds = _forest_entries(G, costs, maximum, threads)
        host = G.on("cpu")  # from here on there are fewer edges than vertices
        costs = block_costs(host, CALLER, maximum)
        edges, weights = _at_owners(host, costs, engines.moved(entries, "cpu"))
        edges, weights = (engines.moved(array, G.engine) for array in (edges, weights))
    total = added(G.comm, engines.moved(weights, "cpu"))
    count = np.array([weights.shape[0]], np.int64)
    trees = G.n - int(G.comm.allreduce(count)[0])
    return Forest(edges, weights, total, trees, G.n, rounds)


def _forest_entries(G: Any, costs: Any, maximum: bool, threads: int | None) -> tuple[Any, int]:
    """The entries of this rank's block that are edges of the forest, each edge once; rounds."""
    rows, order = rows_of(costs), order_of(costs.data.dtype, maximum)
    grid, rounds = G.grid, Rounds(G, threads)
    loops, xp = rounds.loops, rounds.xp
    names, to_local = (
        engines.moved(array, G.engine) for array in (G.original_local, grid.columns_to_local)
    )
    first = loops.first_entries(rows, order, grid.n_rows, threads)
    full = xp.flatnonzero(first >= 0)
    entry = first[full]
    u, v = names[full], names[costs.indices[entry]]
    code = codes(costs.data[entry], order, xp)
    new, taken = rounds.choose(u, code, xp.minimum(u, v), xp.maximum(u, v), v)
    found = [entry[taken]]
    labels = names.astype(np.int64)
    labels[full] = new
    own = rounds.parent.astype(G.index_dtype)
    labels[to_local] = G.exchange.expand(own)
    by_name = xp.arange(grid.n_rows) if G.order is None else xp.argsort(names[: grid.n_rows])
    entry, tail, code = loops.list_edges(rows, order, names, labels, by_name, threads)
    head = costs.indices[entry].astype(np.int64)
    edges = Edges(tail, head, code, tail, head, entry)
    found.extend(rounds.rest(in_order(edges, threads), labels))
    any_edge = int(G.comm.allreduce(np.array([full.size], np.int64), "max")[0]) > 0
    return xp.concatenate(found), rounds.count if any_edge else 0


def _at_owners(G: Any, costs: Any, entries: Any) -> tuple[Any, Any]:
    """(edges, weights): those whose smaller end this rank owns, ascending."""
    names = G.original_local
    u = names[np.searchsorted(costs.indptr, entries, "right") - 1]
    v = names[costs.indices[entries]]
    low, high, weights = np.minimum(u, v), np.maximum(u, v), costs.data[entries]
    if weights.dtype.kind == "f":
        # of 0.0 and -0.0 the one in the upper triangle counts; all other weights are symmetric
        away = (u > v) & (weights == 0)
        if any_of(G.comm, bool(away.any())):
            found, more_low, more_high, _ = at_entry_owners(G, costs, low[away], high[away])
            low = np.concatenate((low[~away], more_low))
            high = np.concatenate((high[~away], more_high))
            weights = np.concatenate((weights[~away], costs.data[found]))
    kind = costs.indices.dtype
    places, high, weights = G.exchange.packets(low, high.astype(kind), weights)
    low = G.ids[places].astype(kind)
    order = np.lexsort((high, low))
    return np.stack((low[order], high[order]), axis=1), weights[order]


def added(comm: Any, weights: Any) -> Any:
    """The sum of the weights of all ranks: of floats in float64, of integers exactly."""
    if weights.dtype.kind != "f":
        parts = np.array([(weights >> 32).sum(), (weights & 0xFFFF_FFFF).sum()], np.int64)
        high, low = (int(part) for part in comm.allreduce(parts))
        return (high << 32) + low
    wide = weights.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        parts = np.array([wide.sum(), (wide * SCALE).sum()])
        total, scaled = (float(part) for part in comm.allreduce(parts))
    if math.isfinite(total):
        return total
    if abs(scaled) <= LARGEST_FLOAT * SCALE:
        return scaled / SCALE
    raise total_overflows()


# Rounds


Array = Any  # NumPy's, or CuPy's where the blocks lie on GPUs


def loops_of(G: Any) -> Any:
    """The loops for the engine on which the blocks of G lie."""
    return engines.load(__name__, G.engine)


class Edges(NamedTuple):
    """A rank's edges, in the order of edges."""

    a: Array  # the components of the ends: numbers in an array of their roots
    b: Array
    code: Array  # the code of the weight
    low: Array  # the ends, the smaller one first: local ids
    high: Array
    entry: Array  # where the edge stands in the block

    def at(self, chosen: Array) -> Edges:
        """The chosen edges."""
        return Edges(*(column[chosen] for column in self))


def in_order(edges: Edges, threads: int | None) -> Edges:
    """Edges given in the order of their ends, sorted by their weights."""
    _, place = radix_sort(edges.code, threads=threads)
    return edges.at(place)


class Rounds:
    """The owners' side, and the exchanges.

    Attributes
    ----------
    count : int
        Rounds so far.
    parent : array over own places
        The root of the component that this vertex was hooked to when it was a root itself.
    touched, edge : arrays
        The places of the roots that chose in the last round, and (code, low, high) of what each
        chose.
    """

    def __init__(self, G: Any, threads: int | None) -> None:
        self.G, self.threads = G, threads
        self.loops = loops_of(G)
        self.count = 0
        self.parent = engines.moved(G.ids.astype(np.int64), G.engine)
        self.xp = engines.xp(self.parent)
        self._first = self.xp.full(G.grid.owned, -1, np.int64)

    def choose(
        self, labels: Array, code: Array, low: Array, high: Array, other: Array
    ) -> tuple[Array, Array]:
        """(new names of these components, whether the edges given for them are taken).

        All ranks call this; each gives the first of its edges for every component it has.
        """
        self.count += 1
        G, grid = self.G, self.G.grid
        kind = G.index_dtype  # holds every vertex
        inside = labels if G.order is None else G.order.inside(labels)
        letters = Routed(G.comm, grid.owner(inside), self.threads)
        given = (x.astype(kind) for x in (grid.places(inside), low, high, other))
        code, *ends = letters.send(code, *given)
        places, low, high, other = (x.astype(np.int64) for x in ends)
        touched = self.loops.first_requests(places, code, low, high, self._first, self.threads)
        first = self._first[touched]
        self._first[touched] = -1
        self.touched, self.edge = touched, (code[first], low[first], high[first])
        taken = self._hook(touched, other[first])
        flags = self.xp.zeros(places.size, np.bool_)
        flags[first[taken]] = True
        self._flatten(touched[taken])
        new, flags = letters.answer(self.parent[places].astype(kind), flags)
        return new.astype(np.int64), flags

    def _hook(self, touched: Array, other: Array) -> Array:
        """Hook roots to others; returns which of them are no longer roots."""
        parent = self.parent
        mine = parent[touched]
        parent[touched] = other
        theirs = self.G.exchange.ask(other, parent)
        stays = (theirs == mine) & (mine < other)
        parent[touched[stays]] = mine[stays]
        return ~stays

    def _flatten(self, active: Array) -> None:
        """Point `active` at roots, in as many steps as the longest chain has binary digits."""
        parent = self.parent
        while any_of(self.G.comm, active.size > 0):
            above = self.G.exchange.ask(parent[active], parent)
            moved = above != parent[active]
            active = active[moved]
            parent[active] = above[moved]

    def rest(self, edges: Edges, roots: Array) -> Any:
        """Rounds until no edge joins two components; yields the entries taken in each.

        `edges` are in order; `roots` are the roots of the components, by their numbers in `edges`.
        A rank leaves out edges that close a cycle as soon as it sees that.
        """
        xp = self.xp
        names = engines.moved(self.G.original_local, self.G.engine)
        while True:
            roots, numbers = xp.unique(roots, return_inverse=True)  # some have become one
            edges = edges._replace(a=numbers[edges.a], b=numbers[edges.b])
            kept, best = self.loops.join(edges.a, edges.b, roots.size)
            edges = edges.at(kept)
            left = int(self.G.comm.allreduce(np.array([kept.size], np.int64))[0])
            if left == 0:
                return
            asked = xp.flatnonzero(best >= 0)
            offer = edges.at(best[asked])
            other = xp.where(offer.a == asked, offer.b, offer.a)
            new, taken = self.choose(
                roots[asked], offer.code, names[offer.low], names[offer.high], roots[other]
            )
            self.G.comm.report(self.count, left)
            roots[asked] = new
            yield offer.entry[taken]


def at_entry_owners(
    G: Any, costs: Any, low: Array, high: Array, *columns: Array
) -> tuple[Array, Array, Array, list[Array]]:
    """(entries, low, high, columns) of the edges whose entries this rank keeps; -1: no entry.
    Ends are the user's numbers.  All ranks call this.
    """
    grid = G.grid
    u, v = (ends if G.order is None else G.order.inside(ends) for ends in (low, high))
    kind = G.index_dtype
    given = (grid.row_position(u).astype(kind), low.astype(kind), high.astype(kind), *columns)
    rows, low, high, *found = Routed(G.comm, grid.keeper(u, v), G.threads).send(*given)
    find_entries = engines.load(PACKAGE, "cpu").find_entries
    entries = find_entries(costs, G.original_local, rows.astype(np.int64), high, G.threads)
    return entries, low.astype(np.int64), high.astype(np.int64), found


# Weights, by the rules of ../costs.py: the whole matrix decides, and all ranks agree on it.


def block_costs(G: Any, caller: str, maximum: bool) -> Costs:
    """The block of the weights of `G`, kept in it.  All ranks call this.

    That of a graph whose views lie on GPUs is made on the CPU, as these are.
    """
    if G.engine == "gpu":
        there = block_costs(G.on("cpu"), caller, maximum)

        def make() -> Costs:
            indptr, indices, data = (engines.moved(each, "gpu") for each in there[:3])
            return Costs(indptr, indices, data, there.least, there.most)

        return G.keep(f"costs {maximum}", make)
    if not G.weighted:
        pattern = G.undirected_pattern()
        return G.keep("costs", lambda: _block(pattern._replace(data=ones(pattern.indices))))
    side = ("_heavy" if maximum else "_light") if G.has_parallel_edges else ""
    view = G.keep(
        f"arcs{side}",
        lambda: arcs(G, caller, maximum, partial(raise_first, G.comm), _refuse_overflow),
    )
    symmetric = (
        G.has_symmetric_pattern
        and G.keep(f"costs_symmetric{side}", lambda: (_symmetric(G, view),))[0]
    )
    if symmetric:
        return G.keep(
            f"costs{side}", lambda: _block(G.places.without_loops(view) if G.loops else view)
        )
    side = "_heavy" if maximum else "_light"
    rule = "greatest" if maximum else "least"
    return G.keep(f"costs{side}", lambda: _block(G.places.union(view, rule)))


def _block(view: View) -> Costs:
    """The costs of a block; `least` and `most` are those of the block."""
    data, kind = view.data, view.data.dtype.type
    least, most = (data.min(), data.max()) if data.size else (0, 0)
    return Costs(view.indptr, view.indices, data, kind(least), kind(most))


def _symmetric(G: Any, view: View) -> bool:
    """Are the values symmetric, where the pattern is?  Halves of 32 bits are exact in float64."""
    if view.data.dtype.kind == "f":
        return bool(G.places.values(view).symmetric)
    halves = ((view.data >> 32).astype(np.float64), (view.data & HALF).astype(np.float64))
    return all(bool(G.places.values(view._replace(data=half)).symmetric) for half in halves)


def _refuse_overflow(G: Any, data: Any, caller: str) -> None:
    """Raise on all ranks unless sums of duplicates fit int64."""
    largest = max(-int(data.min()), int(data.max())) if data.size else 0
    longest = int(np.diff(G.entries().indptr).max(initial=0))
    if not any_of(G.comm, largest * longest > np.iinfo(np.int64).max):
        return
    wrong = np.flatnonzero(overflowing(G, data))
    error, key = None, None
    if wrong.size:
        view = G.directed_pattern()
        rows = G.original_local[np.searchsorted(view.indptr, wrong, "right") - 1]
        at = wrong[np.lexsort((wrong, rows))[0]]
        key = (int(rows.min()), int(G.original_local[view.indices[at]]))
        error = ValueError(
            f"{caller}: sums of integer duplicates must fit int64, got overflow at row {key[0]}, "
            f"column {key[1]}; scale them"
        )
    raise_first(G.comm, error, key)
