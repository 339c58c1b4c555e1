"""Boruvka's rounds over ranks: components choose their first edge and hook along it.

A component is called by one of its vertices, its root; the owner of that vertex decides for it.  A
rank asks for every component that its edges touch, with the first of these edges:

    1. the owner takes the first of all edges that came for a component, and hooks it to the
       component at the other end.  Of two that took the same edge the smaller one stays a root
    2. chains of hooks are shortened by pointer jumping (the owner of a vertex asks that of its
       parent, and so on)
    3. everyone who asked is told the new name of the component, and whether its edge was taken

A round at least halves the number of components that have edges.  The loops are in cpu.py, and
for ranks with a GPU in gpu.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.engines.ranks.agreement import any_of
from matchwood.engines.ranks.exchanges import Routed
from matchwood.primitives.sort import radix_sort
from matchwood.spanning.forest.order import PREFIX_BITS, Order

Array = Any  # NumPy's, or CuPy's where the blocks lie on GPUs


def order_of(dtype: Any, maximum: bool) -> Order:
    """The order of weights of that type by whole codes, the same on all ranks."""
    kind = np.dtype(dtype)
    width = 8 * kind.itemsize
    none = np.uint64(0)
    flip = np.uint64((1 << width) - 1 if maximum else 0)
    sign = np.uint64(1 << (width - 1))
    return Order(kind.kind == "f", sign, flip, none, none, np.uint64(64 - PREFIX_BITS), True)


def loops_of(G: Any) -> Any:
    """The loops for the engine on which the blocks of G lie."""
    return engines.load(__package__, G.engine)


class Edges(NamedTuple):
    """A rank's edges, in the order of edges."""

    a: Array  # the components of the ends: numbers in an array of their roots
    b: Array
    code: Array  # of the weight
    low: Array  # the ends, the smaller one first: local ids
    high: Array
    entry: Array  # where the edge stands in the block

    def at(self, chosen: Array) -> Edges:
        """Some of them."""
        return Edges(*(column[chosen] for column in self))


def in_order(edges: Edges, threads: int | None) -> Edges:
    """Edges that come by their ends, sorted by their weights."""
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
        """Hook roots to others; which of them are no longer roots."""
        parent = self.parent
        mine = parent[touched]
        parent[touched] = other
        theirs = self.G.exchange.ask(other, parent)
        stays = (theirs == mine) & (mine < other)
        parent[touched[stays]] = mine[stays]
        return ~stays

    def _flatten(self, active: Array) -> None:
        """Let those point at roots, in as many steps as the longest chain has binary digits."""
        parent = self.parent
        while any_of(self.G.comm, active.size > 0):
            above = self.G.exchange.ask(parent[active], parent)
            moved = above != parent[active]
            active = active[moved]
            parent[active] = above[moved]

    def rest(self, edges: Edges, roots: Array) -> Any:
        """Rounds until no edge joins two components; yields the entries taken in each.

        `edges` are in order; `roots` are those of the components that they know by numbers.
        Edges that close a cycle are left out as soon as a rank sees it.
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
