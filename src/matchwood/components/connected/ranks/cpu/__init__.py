"""A rank's part of the forest, on the CPU.  The rule: ../forest.py; a shortcut: giant.py.

Ranks of one host have one array of parents, in memory that all of them map, and nothing is sent:
the last part of this file.

Vertices are numbered as the grid numbers them: own vertex v of place k is k p + rank.

Races.  A smallest member, and a parent, only go down, by an atomic minimum, so the order of arrival
changes which pairs are made, never the smallest vertex of a component.  Lists have a part for each
member of the team.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.components.connected.cpu import join_ends
from matchwood.components.connected.ranks.cpu import giant
from matchwood.components.connected.ranks.forest import exchanged, stars, stripes_of
from matchwood.engines.cpu import (
    atomic_min,
    crew,
    crew_for_step,
    expanded,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    store_relaxed,
)
from matchwood.engines.cpu.hints import select, trailing_zeros
from matchwood.engines.ranks.exchanges.cpu import distinct
from matchwood.engines.ranks.exchanges.packing import (
    pack_marks,
    pack_values,
    unpack_marks,
    unpack_values,
    words_of_bits,
)
from matchwood.engines.ranks.exchanges.routing import ask, deliver
from matchwood.engines.ranks.grid import Grid
from matchwood.primitives.frontier.cpu import claim_bit

Array = np.ndarray[Any, Any]


# Which vertices the trees have, hooking, going up


WORD = 64  # places whose bits are in one word
ALL = ~np.uint64(0)  # the bits of a word


class OwnParents(NamedTuple):
    """Own vertices: their parents by place, and how they are numbered."""

    parent: Array
    hooked: Array  # bits of those that may have another parent than themselves or the head
    p: int
    rank: int


@kernel
def _begin(team: Any, own: OwnParents, inside: Array, head: Any) -> None:
    parent, kind = own.parent, own.parent.dtype.type
    lo, hi = share(team, inside.size)
    for w in range(lo, hi):
        if interrupted(team, w):
            return
        bits, v = inside[w], kind(w * WORD * own.p + own.rank)
        part = parent[w * WORD : (w + 1) * WORD]
        for b in range(part.size):
            part[b] = select(bits & np.uint64(1) != 0, head, kind(v))
            bits >>= np.uint64(1)
            v += kind(own.p)


def begin(grid: Any, inside: Array, head: int, few: bool, threads: int | None) -> OwnParents:
    """Own vertices under `head`, where their bits are set; others under themselves.

    `few` says that few of them will be hooked: those are then remembered.
    """
    kind = np.dtype(np.int32 if grid.n <= np.iinfo(np.int32).max else np.int64)
    hooked = np.zeros_like(inside) if few else np.full_like(inside, ALL)
    own = OwnParents(np.empty(grid.owned, kind), hooked, grid.p, grid.rank)
    crew(threads, work=2 * grid.owned).run(_begin, own, inside, kind.type(head))
    return own


@kernel
def _find_least(team: Any, labels: Array, least: Array, stripes: Any, p: int) -> None:
    """least[t]: the smallest vertex of tree t; larger than any vertex before."""
    owner, base, step, size = stripes
    for s in range(owner.size):
        lo, hi = share(team, size[s])
        for k in range(lo, hi):
            if interrupted(team, k):
                return
            t = labels[base[s] + k * step[s]]
            v = least.dtype.type(k * p + owner[s])
            if v < load_relaxed(least, t):
                atomic_min(least, t, v)


def least_members(
    labels: Array, trees: int, stripes: Any, grid: Any, kind: Any, threads: int | None
) -> Array:
    """The smallest vertex of each tree of a block; labels are by local ids."""
    least = np.full(trees, np.iinfo(kind).max, kind)
    crew(threads, work=labels.size).run(_find_least, labels, least, tuple(stripes), grid.p)
    return least


@kernel
def _list_members(
    team: Any, labels: Array, least: Array, giant: int, stripes: Any, p: int, lists: Any
) -> None:
    owner, base, step, size = stripes
    starts, inside, places, names, counts = lists
    for s in range(owner.size):
        lo, hi = share(team, size[s])
        at = starts[s] + lo
        marked = at
        paired = at
        for k in range(lo, hi):
            if interrupted(team, k):
                return
            t = labels[base[s] + k * step[s]]
            if t == giant:
                inside[marked] = k
                marked += 1
            elif least[t] != k * p + owner[s]:
                places[paired] = k
                names[paired] = least[t]
                paired += 1
        counts[team.me, s, 0] = marked - at
        counts[team.me, s, 1] = paired - at


def list_members(
    labels: Array, least: Array, giant: int, stripes: Any, p: int, threads: int | None
) -> list[tuple[Array, Array, Array]]:
    """For each owner the places in tree `giant`; and the places and smallest vertices of others.

    The smallest of other trees are left out.
    """
    team = crew(threads, work=2 * labels.size)
    starts = np.cumsum([0, *stripes.size[:-1]])
    inside, places = (np.empty(labels.size, np.int64) for _ in range(2))
    names = np.empty(labels.size, least.dtype)
    counts = np.zeros((team.size, stripes.owner.size, 2), np.int64)
    lists = (starts, inside, places, names, counts)
    team.run(_list_members, labels, least, giant, tuple(stripes), p, lists)
    found = []
    for s, size in enumerate(stripes.size.tolist()):
        marked, paired = (_shares(size, counts[:, s, k], starts[s]) for k in (0, 1))
        found.append((_parts(inside, marked), _parts(places, paired), _parts(names, paired)))
    return found


def _shares(n: int, counts: Array, first: int = 0) -> list[slice]:
    """What members listed, counts[k] elements from the beginning of the part of member k on.

    The parts of n elements, from `first` on: the rule of `share` in engines/cpu/team.py.
    """
    each, rest = divmod(n, counts.size)
    begins = [first + k * each + min(k, rest) for k in range(counts.size)]
    return [slice(begin, begin + count) for begin, count in zip(begins, counts, strict=True)]


def _parts(array: Array, slices: list[slice]) -> Array:
    return array[slices[0]] if len(slices) == 1 else np.concatenate([array[s] for s in slices])


@kernel
def _hook(
    team: Any, own: OwnParents, places: Array, labels: Array, highs: Array, lows: Array,
    counts: Array,
) -> None:  # fmt: skip
    parent = own.parent
    kind = parent.dtype.type
    p, rank = kind(own.p), kind(own.rank)
    lo, hi = share(team, places.size)
    last = labels.size - 1
    tail = lo
    for i in range(lo, hi):
        if interrupted(team, i):
            return
        k = places[i]
        a = labels[min(i, last)]
        while True:
            before = load_relaxed(parent, k)
            if a < before:
                before = atomic_min(parent, k, a)
            if before == a:
                break
            if a < before:
                claim_bit(own.hooked, k)
            if a < before and before == kind(k * own.p) + rank:
                break  # it was a root
            high, low = max(a, before), min(a, before)
            if high % p != rank:
                highs[tail] = high
                lows[tail] = low
                tail += 1
                break
            k = np.int64(high // p)
            a = low
    counts[team.me] = tail - lo


def hook(own: OwnParents, places: Array, labels: Array, threads: int | None) -> tuple[Array, Array]:
    """Lower the parents of own places to these labels; one label is for all places.

    Returns the pairs for other owners: vertices, and smaller vertices connected with them.
    """
    kind = own.parent.dtype
    if places.size == 0:
        return np.empty(0, kind), np.empty(0, kind)
    team = crew_for_step(threads, work=2 * places.size)
    highs, lows = np.empty(places.size, kind), np.empty(places.size, kind)
    counts = np.zeros(team.size, np.int64)
    team.run(_hook, own, places, labels, highs, lows, counts)
    slices = _shares(places.size, counts)
    return _parts(highs, slices), _parts(lows, slices)


@kernel
def _climb(
    team: Any, own: OwnParents, head: Any, places: Array, parents: Array, ends: Array
) -> None:  # fmt: skip
    """Each member lists within its own part, from ends[rank, 0] to ends[rank, 1]."""
    parent = own.parent
    kind = parent.dtype.type
    p, rank = kind(own.p), kind(own.rank)
    lo, hi = share(team, own.hooked.size)
    begin = tail = min(lo * WORD, parent.size)
    for w in range(lo, hi):
        if interrupted(team, w):
            return
        left = own.hooked[w]
        while left != np.uint64(0):
            k = w * WORD + np.int64(trailing_zeros(left))
            left &= left - np.uint64(1)
            if k >= parent.size:
                break
            first = up = load_relaxed(parent, k)
            root = kind(k * own.p) + rank
            # by a minimum: of two branches neither could be predicted
            if min(np.uint64(up ^ root), np.uint64(up ^ head)) == np.uint64(0):
                continue  # a root, or one of many that go the same way
            while up % p == rank:
                above = load_relaxed(parent, np.int64(up // p))
                if above == up:
                    break
                up = above
            if up != first:
                store_relaxed(parent, k, up)
            if up % p != rank:
                places[tail] = k
                parents[tail] = up
                tail += 1
    ends[team.me, 0], ends[team.me, 1] = begin, tail


def climb(own: OwnParents, head: int, threads: int | None) -> tuple[Array, Array]:
    """Go up through own vertices; places and parents of those under neither these nor `head`."""
    size = own.parent.size
    work = own.hooked.size + WORD * int(np.count_nonzero(own.hooked))
    team = crew_for_step(threads, work=work)
    places, parents = np.empty(size, np.int64), np.empty(size, own.parent.dtype)
    ends = np.zeros((team.size, 2), np.int64)
    team.run(_climb, own, own.parent.dtype.type(head), places, parents, ends)
    slices = [slice(begin, end) for begin, end in ends.tolist()]
    return _parts(places, slices), _parts(parents, slices)


# Rounds


HEAD = 2  # words before a report: the smallest vertex of the largest tree, the words of its marks


def smallest(G: Any, engine: Any, symmetric: bool, threads: int | None) -> tuple[Array, int]:
    """The smallest vertex of the component of each own vertex, and the number of rounds.

    `engine` labels a block as one machine does.  `symmetric`: the pattern is known to be.
    """
    grid, exchange = G.grid, G.exchange
    head, rest = -1, None  # under which most vertices are, if that is known
    pays = G.keep("a sample pays", lambda: [True])  # not again where it left too much
    if symmetric and pays[0]:
        rest = giant.rest(G, giant.members(G, threads), threads)
        pays[0] = rest is not None
    if rest is not None:
        head = rest.head if rest.head < grid.n else -1
        own = begin(grid, rest.own, head, True, threads)
        highs, lows = (ends.astype(own.parent.dtype) for ends in rest.pairs)
        pairs = _hooked(exchange, own, stars([(highs, lows)], threads), threads)
    else:
        _, labels, _ = engine.label(G.entries(), False, "auto", threads=threads)
        own, pairs = _of_trees(exchange, labels, threads)
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
    exchange: Any, own: OwnParents, pairs: tuple[Array, Array], threads: int | None
) -> tuple[Array, Array]:
    """Send pairs to the owners of their larger vertices, and hook; the pairs that follow."""
    places, values = deliver(exchange, *pairs)
    return stars([hook(own, places, values, threads)], threads)


def _of_trees(
    exchange: Any, labels: Array, threads: int | None
) -> tuple[OwnParents, tuple[Array, Array]]:
    """Own vertices hooked under the trees of all blocks, and pairs for others that follow."""
    nothing = np.zeros(giant.words_of(exchange.grid), np.uint64)
    own = begin(exchange.grid, nothing, 0, False, threads)
    reports = _reports(exchange.grid, labels, own.parent.dtype, threads)
    found = []
    for report in exchanged(exchange, reports):
        found += [hook(own, *pairs, threads) for pairs in _opened(report, exchange.grid.owned)]
    return own, stars(found, threads)


def _reports(grid: Grid, labels: Array, kind: Any, threads: int | None) -> dict[int, Array]:
    """For each owner of vertices of this block what it must learn of them."""
    stripes = stripes_of(grid)
    trees = int(labels.max()) + 1 if labels.size else 0
    least = least_members(labels, trees, stripes, grid, kind, threads)
    largest = int(np.bincount(labels).argmax()) if trees else -1
    head = int(least[largest]) if trees else 0
    listed = list_members(labels, least, largest, stripes, grid.p, threads)
    reports = {}
    for owner, size, (inside, places, names) in zip(
        stripes.owner.tolist(), stripes.size.tolist(), listed, strict=True
    ):
        marks = pack_marks(inside, size, kind)
        rest = pack_values(places, names, size)
        reports[owner] = np.concatenate([np.array([head, marks.size], kind), marks, rest])
    return reports


def _opened(report: Array, owned: int) -> list[tuple[Array, Array]]:
    """(places, labels) of the marks, with one label for all, and of the pairs."""
    count = int(report[1])
    assert count <= words_of_bits(owned, report.dtype)
    marks = unpack_marks(report[HEAD : HEAD + count], owned)
    return [(marks, report[:1]), unpack_values(report[HEAD + count :], owned)]


def _shortcut(exchange: Any, own: OwnParents, head: int, threads: int | None) -> int:
    """Replace every parent by its own parent; returns how many were no roots.

    Each rank first follows the way up to its end among own vertices, the owner that is asked as
    well.  Many vertices have the parent `head`: its owner is asked once for all of them.
    """
    places, parents = climb(own, head, threads)
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
            own.hooked.fill(ALL)  # they go up with the others from now on
            moved = below.size
    above = above[back]
    changed = above != parents
    own.parent[places[changed]] = above[changed]
    return moved + int(np.count_nonzero(changed))


# Ranks of one host: one array of parents
#
# Every rank joins the entries of its block in it, as the threads of one machine do, by
# compare-and-swap (primitives/union_find).  First the first and the last entry of each row, which
# mostly join nearly everything [Sutton, Ben-Nun, Barak: Afforest]; where the pattern is symmetric,
# rows of the largest component need not be read then.  Parents are initialised and compressed in
# ranges, so that no two ranks write to one cache line.  Vertices have the user's numbers here, in
# any order and layout: the smallest of a component is the one that decides its number.


SHARED_ROUNDS = 2
SAMPLES = 1024  # vertices among which the largest component is looked for
CHUNK = 2048  # rows that a member takes at a time


class BlockRows(NamedTuple):
    """The rows of a block, and the vertices of its local ids as the user numbers them."""

    indptr: Array
    indices: Array
    rows: int
    ids: Array


@kernel
def _begin_range(team: Any, parent: Array, first: int, end: int) -> None:
    lo, hi = share(team, end - first)
    mine, kind = parent[first + lo : first + hi], parent.dtype.type
    for i in range(mine.size):
        mine[i] = kind(first + lo + i)


@expanded
def _roots(part: Array, first: int) -> Any:
    """How many vertices of a part of the parents, from vertex `first` on, are roots."""
    count, me = np.uint64(0), part.dtype.type(first)
    for i in range(part.size):
        count += np.uint64(part[i] == me + part.dtype.type(i))
    return np.int64(count)


@kernel
def _compress_range(team: Any, parent: Array, first: int, end: int, roots: Array) -> None:
    """Every vertex of the range under its root; each member counts the roots in its share."""
    lo, hi = share(team, end - first)
    count = 0
    for start in range(first + lo, first + hi, CHUNK):
        if interrupted(team, 0):
            return
        mine = parent[start : min(start + CHUNK, first + hi)]
        for i in range(mine.size):
            root = load_relaxed(mine, i)
            above = load_relaxed(parent, root)
            if above == root:
                continue
            while above != root:
                root = above
                above = load_relaxed(parent, root)
            store_relaxed(mine, i, root)
        count += _roots(mine, start)
    roots[team.me] = count


@kernel
def _number_range(team: Any, parent: Array, first: int, end: int, numbers: Array) -> None:
    """Each root of the range gets its number, with the highest bit, in place of its parent.

    numbers[k] is the first one in the share of member k.
    """
    lo, hi = share(team, end - first)
    kind, number = parent.dtype.type, numbers[team.me]
    mark = kind(1) << kind(np.iinfo(parent.dtype).bits - 1)
    for start in range(first + lo, first + hi, CHUNK):
        if interrupted(team, 0):
            return
        mine, me = parent[start : min(start + CHUNK, first + hi)], kind(start)
        if _roots(mine, start) == 0:  # mostly, and a loop without branches is quick
            continue
        for i in range(mine.size):
            if mine[i] == me + kind(i):
                mine[i] = kind(number) | mark
                number += 1


@kernel
def _read_numbers(team: Any, parent: Array, ids: Array, labels: Array) -> None:
    """labels[k]: the number of the root of vertex ids[k]."""
    kind = parent.dtype.type
    mark = kind(1) << kind(np.iinfo(parent.dtype).bits - 1)
    lo, hi = share(team, labels.size)
    for start in range(lo, hi, CHUNK):
        if interrupted(team, 0):
            return
        mine, names = labels[start : min(start + CHUNK, hi)], ids[start:hi]
        for i in range(mine.size):
            above = parent[names[i]]
            mine[i] = (above if above & mark else parent[above]) & ~mark


@kernel
def _join_sample(team: Any, block: BlockRows, parent: Array) -> None:
    """Join the first and the last entry of each row."""
    lo, hi = share(team, block.rows)
    indptr, indices, ids, one = block.indptr, block.indices, block.ids, np.uint64(1)
    for v in range(np.uint64(lo), np.uint64(hi)):
        if interrupted(team, np.int64(v)):
            return
        begin, end, me = np.uint64(indptr[v]), np.uint64(indptr[v + one]), ids[v]
        if begin < end:
            join_ends(parent, me, ids[indices[begin]])
            join_ends(parent, me, ids[indices[end - one]])


@kernel
def _join_others(team: Any, block: BlockRows, skipped: Any, parent: Array) -> None:
    """Join the other entries, but those of rows in the tree of `skipped`."""
    indptr, indices, ids, one = block.indptr, block.indices, block.ids, np.uint64(1)
    chunk = next_chunk(team, block.rows, CHUNK)
    while chunk >= 0:
        for v in range(np.uint64(chunk), np.uint64(min(chunk + CHUNK, block.rows))):
            begin, end = np.uint64(indptr[v]) + one, np.uint64(indptr[v + one])
            if begin + one >= end or load_relaxed(parent, ids[v]) == skipped:
                continue
            for k in range(begin, end - one):
                join_ends(parent, ids[v], ids[indices[k]])
        chunk = next_chunk(team, block.rows, CHUNK)


def shared_parents(G: Any) -> Array | None:
    """An array for the parents of all vertices, kept by G; None where ranks share no memory."""
    kind = np.dtype(np.uint32 if G.n <= np.iinfo(np.int32).max else np.uint64)

    def make() -> list[Any]:
        memory = G.comm.shared_array(G.n * kind.itemsize)
        return [None if memory is None else memory.view(kind)]

    kept: list[Any] = G.keep("components, shared parents", make)
    return kept[0]


def _range(G: Any) -> tuple[int, int]:
    """The vertices that this rank initialises, compresses and numbers."""
    rank, p = G.grid.rank, G.grid.p
    return rank * G.n // p, (rank + 1) * G.n // p


def join_shared(G: Any, parent: Array, symmetric: bool, threads: int | None) -> Array:
    """Make each parent the smallest vertex of its component.

    Returns the number of roots in the shares of this rank's members.
    """
    grid, comm, kind, view = G.grid, G.comm, parent.dtype, G.entries()
    ids = G.keep("components, ids", lambda: G.original_local.astype(kind))
    indices = view.indices.view(f"u{view.indices.itemsize}")
    block, vertices = BlockRows(view.indptr, indices, grid.n_rows, ids), _range(G)
    entries, own = crew(threads, work=view.nnz + grid.n_rows), crew(threads, work=grid.owned)
    roots = np.zeros(own.size, np.int64)
    own.run(_begin_range, parent, *vertices)
    comm.barrier()
    entries.run(_join_sample, block, parent)
    comm.barrier()
    own.run(_compress_range, parent, *vertices, roots)
    comm.barrier()
    comm.report(1)
    skipped = kind.type(~kind.type(0))
    if symmetric and G.n:
        names, counts = np.unique(parent[:: max(1, G.n // SAMPLES)], return_counts=True)
        skipped = names[counts.argmax()]
        # an edge whose ends are skipped by different ranks would be lost: all ranks read the same
        comm.barrier()
    entries.run(_join_others, block, skipped, parent)
    comm.barrier()
    own.run(_compress_range, parent, *vertices, roots)
    comm.report(SHARED_ROUNDS)
    return roots


def number_shared(
    G: Any, parent: Array, roots: Array, kind: Any, threads: int | None
) -> tuple[int, Array]:
    """How many components there are, and those of own vertices; by the roots of `join_shared`.

    Components are numbered by their smallest vertices.  The parents are overwritten.
    """
    totals = G.comm.allgather(np.array([roots.sum()], np.int64))
    numbers = int(totals[: G.comm.rank].sum()) + np.cumsum(roots) - roots
    own = crew(threads, work=G.grid.owned)
    own.run(_number_range, parent, *_range(G), numbers)
    G.comm.barrier()
    labels = np.empty(G.grid.owned, kind)
    ids = G.keep("components, own ids", lambda: np.ascontiguousarray(G.ids, parent.dtype))
    own.run(_read_numbers, parent, ids, labels)
    return int(totals.sum()), labels
