"""One forest of the forests of all blocks.  Kernels: cpu.py; ranks with GPUs: blocks/.

1. Every rank joins the edges of its block.  So each of its vertices v is in a tree, whose smallest
   vertex is a: v and a are connected.
2. It reports that to the owner of v, if a is not v.  The largest tree of a block is reported by
   marks: one bit for a vertex.  The other trees are reported by pairs (v, a).
3. The owner of v has parent[v], the smallest vertex that it knows to be connected with v.

Where the pattern is symmetric, most of the entries need not be read, and most vertices need no
report (giant.py).

Then in rounds, until nothing changes on any rank:

   hook       A pair (v, a) lowers parent[v] to a.  If v had another parent b, then a and b are
              connected, and the owner of the larger one must learn of the smaller one: a pair for
              it.  So the old label's owner learns the new one.
   shortcut   parent[v] becomes the parent of the parent, which its owner is asked for.  Each is
              asked for once by a rank, however many of its vertices are below it.

A pair is dropped where it says what the owner knows, or where v was a root.  It always goes to a
smaller vertex than before, so it does not live for ever; and parents only go down.  At the end
every parent is a root, every pair has been used, and so the root is the smallest vertex of the
component.  (M. Rem's way to join sets, E. W. Dijkstra, A Discipline of Programming, 1976.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.components.connected.ranks import cpu, giant
from matchwood.components.connected.ranks.stripes import stripes_of
from matchwood.engines.cpu import crew_for_step
from matchwood.engines.ranks.agreement import any_of
from matchwood.engines.ranks.exchanges.cpu import distinct
from matchwood.engines.ranks.exchanges.packing import (
    pack_marks,
    pack_values,
    unpack_marks,
    unpack_values,
    words_of_bits,
)
from matchwood.engines.ranks.exchanges.routing import ask, deliver, to_group
from matchwood.engines.ranks.grid import Grid
from matchwood.primitives.union_find.cpu import union_find

Array = np.ndarray[Any, Any]

AGAIN = "components before"  # kept in a graph whose components were asked for
HEAD = 2  # words before a report: the smallest vertex of the largest tree, the words of its marks


def smallest(G: Any, engine: Any, threads: int | None) -> tuple[Array, int]:
    """The smallest vertex of the component of each own vertex, and the number of rounds."""
    grid, exchange = G.grid, G.exchange
    head = -1  # under which most vertices are, if that is known
    if is_symmetric(G):
        members = giant.members(G, threads)
        rest = giant.rest(G, members, threads)
        if rest is not None:
            head = rest.head if rest.head < grid.n else -1
            own = cpu.begin(grid, rest.own, head, True, threads)
            highs, lows = (ends.astype(own.parent.dtype) for ends in rest.pairs)
            pairs = _hooked(exchange, own, stars([(highs, lows)], threads), threads)
        else:
            own, pairs = _of_trees(exchange, *giant.labels_of(G, members, threads), threads)
    else:
        _, labels, _ = engine.label(G.entries(), False, "auto", threads=threads)
        own, pairs = _of_trees(exchange, labels, giant.nothing_known(grid), threads)
    rounds = 0
    while True:
        rounds += 1
        pairs = _hooked(exchange, own, pairs, threads)
        changed = _shortcut(exchange, own, head, threads)
        state = np.array([pairs[0].size, changed], np.int64)
        sent, active = exchange.comm.allreduce(state, "sum").tolist()
        exchange.comm.report(rounds, active)
        if sent == 0 and active == 0:
            return own.parent, rounds


def _hooked(
    exchange: Any, own: cpu.Own, pairs: tuple[Array, Array], threads: int | None
) -> tuple[Array, Array]:
    """Send pairs to the owners of their larger vertices, and hook; pairs that follow from it."""
    places, values = deliver(exchange, *pairs)
    return stars([cpu.hook(own, places, values, threads)], threads)


def _of_trees(
    exchange: Any, labels: Array, known: giant.Known, threads: int | None
) -> tuple[cpu.Own, tuple[Array, Array]]:
    """Own vertices under the trees of all blocks, and pairs for others that follow from it."""
    own = cpu.begin(exchange.grid, known.own, known.head, False, threads)
    reports = _reports(exchange.grid, labels, known, own.parent.dtype, threads)
    found = []
    for report in exchanged(exchange, reports):
        found += [cpu.hook(own, *pairs, threads) for pairs in _opened(report, exchange.grid.owned)]
    return own, stars(found, threads)


def is_symmetric(G: Any) -> bool:
    """Whether the pattern is known to be symmetric, on all ranks.

    To find out takes a pass over the entries, which pays only for a graph that is used again: the
    first call does not ask.
    """
    before = G.has_kept("symmetry") or G.has_kept(AGAIN)
    G.keep(AGAIN, lambda: True)
    return not any_of(G.comm, not before) and G.has_symmetric_pattern


def _reports(
    grid: Grid, labels: Array, known: giant.Known, kind: Any, threads: int | None
) -> dict[int, Array]:
    """For each owner of vertices of this block what it must learn of them."""
    stripes = stripes_of(grid)
    trees = int(labels.max()) + 1 if labels.size else 0
    least = cpu.least_members(labels, trees, stripes, grid, kind, threads)
    largest, head = -1, 0
    if known.local.any():
        largest, head = int(labels[known.local.argmax()]), known.head
    elif trees:
        largest = int(np.bincount(labels).argmax())
        head = int(least[largest])
    listed = cpu.list_members(labels, least, largest, known.local, stripes, grid.p, threads)
    reports = {}
    for owner, size, (inside, places, names) in zip(
        stripes.owner.tolist(), stripes.size.tolist(), listed, strict=True
    ):
        marks = pack_marks(inside, size, kind)
        rest = pack_values(places, names, size)
        reports[owner] = np.concatenate([np.array([head, marks.size], kind), marks, rest])
    return reports


def exchanged(exchange: Any, reports: dict[int, Array]) -> list[Array]:
    """What all ranks of the row and the column report of own vertices, this one's too."""
    grid = exchange.grid
    mine = grid.rank
    none = reports[mine][:0]
    along_row = [grid.r * grid.C + c for c in range(grid.C)]
    along_column = [r * grid.C + grid.c for r in range(grid.R)]
    found = [reports[mine]]
    for comm, ranks in ((exchange.row, along_row), (exchange.column, along_column)):
        if comm.size > 1:
            sent = [none if rank == mine else reports[rank] for rank in ranks]
            found += [part for part in to_group(comm, sent, none.dtype) if part.size]
    return found


def _opened(report: Array, owned: int) -> list[tuple[Array, Array]]:
    """(places, labels) of the marks, with one label for all, and of the pairs."""
    count = int(report[1])
    assert count <= words_of_bits(owned, report.dtype)
    marks = unpack_marks(report[HEAD : HEAD + count], owned)
    return [(marks, report[:1]), unpack_values(report[HEAD + count :], owned)]


def stars(found: list[tuple[Array, Array]], threads: int | None) -> tuple[Array, Array]:
    """Pairs (vertex, smallest vertex connected with it) that say the same as these pairs.

    Pairs of one rank often share vertices: those of a set all get its smallest.
    """
    highs = np.concatenate([highs for highs, _ in found])
    lows = np.concatenate([lows for _, lows in found])
    if highs.size == 0:
        return highs.astype(np.int64), lows
    ids, places = np.unique(np.concatenate([highs, lows]), return_inverse=True)
    above, below = np.split(places.reshape(-1), 2)
    team = crew_for_step(threads, work=ids.size + above.size)
    smallest = union_find(ids.size, above, below, threads=team.size)
    joined = smallest != np.arange(ids.size)
    return ids[joined].astype(np.int64), ids[smallest[joined]]


def _shortcut(exchange: Any, own: cpu.Own, head: int, threads: int | None) -> int:
    """Every parent becomes the parent of the parent; how many were no roots.

    Where that is an own vertex, the way is gone to its end at once.  So the owner that is asked has
    done the same with the vertex it is asked for.  Many vertices have the parent `head`: they wait
    until its owner says where it is, which is asked for once.
    """
    places, parents = cpu.climb(own, head, threads)
    firsts, back = distinct(parents)
    asked = parents[firsts].astype(np.int64)
    if head >= 0:
        asked = np.append(asked, head)
    above = ask(exchange, asked, own.parent)
    moved = 0
    if head >= 0:
        above, top = above[:-1], above[-1]
        if top != head:
            below = np.flatnonzero(own.parent == head)
            own.parent[below] = top
            own.hooked.fill(cpu.ALL)  # they go up with the others from now on
            moved = below.size
    above = above[back]
    changed = above != parents
    own.parent[places[changed]] = above[changed]
    return moved + int(np.count_nonzero(changed))
