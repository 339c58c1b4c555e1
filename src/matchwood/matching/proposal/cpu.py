"""Maximal matching on a team.  The rule and the paper: __init__.py.

A round is two passes over the free vertices, three with weights or an order, with barriers between:

    propose     a blue vertex writes its choice into `target`, and itself into the chosen vertex's
                `mate`, by atomic minimum: the smallest proposer stays.
                A vertex without a free neighbour dies
    respond     with weights: a red vertex that has a proposal finds its heaviest one.  With an
                order, `mate` holds the proposer's position, which becomes the vertex there
    resolve     matched vertices leave the list of live vertices, the others get their next colour

Vertices are divided into chunks.  A chunk keeps its own list of live vertices, shortened in place,
and threads take the next chunk when they are done with one.

Races.  In `propose` only `mate` of red vertices is shared, and a minimum is the same in any order.
`state` of a vertex that dies is written while others read `state`.  But they read it for their own
neighbours, and the neighbours of a vertex that dies are not live.  In the other passes a vertex
writes only its own elements, and reads what others wrote before the last barrier.  In `resolve` a
blue vertex reads the `mate` of a red one, and red vertices do not change theirs there.

Vertices are unsigned in the kernels, and -1 as an unsigned number is more than any vertex.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    Team,
    advance,
    atomic_add,
    atomic_min,
    barrier,
    crew,
    device,
    expanded,
    expect,
    interrupted,
    kernel,
    next_chunk,
    share,
)
from matchwood.matching.cpu import BLOCK, WeightedRows, block_sums, matched_weight
from matchwood.matching.proposal import Preference, preference
from matchwood.primitives.edge_order.cpu import prefers_tied
from matchwood.primitives.hashing import hash2 as hash_of_pairs
from matchwood.primitives.hashing.cpu import hash2, quarter_md5
from matchwood.primitives.sort import radix_sort

Array = np.ndarray[Any, Any]

CHUNK = 2048  # vertices of a chunk
ROUNDS_PER_LAUNCH = 1024  # 10 to 25 are usual; more are only needed with p close to 0 or 1
TAKEN, BLUE, RED = np.uint8(0), np.uint8(1), np.uint8(2)  # taken: matched or dead
_32 = np.uint64(32)


class VertexState(NamedTuple):
    mate: Array  # (n,) all ones for free vertices
    target: Array  # (n,) the neighbour that a vertex proposes to
    state: Array  # (n,) TAKEN, BLUE or RED
    live: Array  # (n,) the live vertices of each chunk, from its first place on
    sizes: Array  # (chunks,) the number of live vertices of each chunk
    words: Array  # (threads, CHUNK) scratch buffers for hashes


@device
def _place(v: Any, k: Any, seed: Any, degree: Any) -> Any:
    """The place in its row at which v begins its search in round k."""
    return ((hash2(k, v, seed) >> _32) * np.uint64(degree)) >> _32


@device
def _first_red(indptr: Array, indices: Array, v: Any, place: Any, state: Array, free: Any) -> Any:
    """The first red neighbour from that place on, or `free`; and whether any neighbour is free."""
    start, end = np.uint64(indptr[v]), np.uint64(indptr[v + indptr.dtype.type(1)])
    seen = TAKEN
    for e in range(start + place, end):
        colour = state[indices[e]]
        if colour == RED:
            return indices[e], True
        seen |= colour
    for e in range(start, start + place):
        colour = state[indices[e]]
        if colour == RED:
            return indices[e], True
        seen |= colour
    return free, seen != TAKEN


@device
def _first_in_order(
    rows: WeightedRows, v: Any, prefers: Preference, state: Array, free: Any
) -> Any:
    """The first red neighbour in the order, or `free`; and whether any neighbour is free."""
    indptr, indices = rows.indptr, rows.indices
    best, seen = free, TAKEN
    for e in range(np.uint64(indptr[v]), np.uint64(indptr[v + indptr.dtype.type(1)])):
        u = indices[e]
        colour = state[u]
        seen |= colour
        if colour == RED:
            best = min(best, prefers.position[u])
    return (free if best == free else prefers.order[best]), seen != TAKEN


@device
def _first_edge(
    rows: WeightedRows, weighted: bool, v: Any, wanted: Any, state: Array, target: Array,
    mutual: bool, seed: Any,
) -> Any:  # fmt: skip
    """The first edge of v, in the order of edges, to a neighbour whose state is in `wanted`.

    `mutual`: only neighbours that have proposed to v.  Returns as `_first_red`.  Not a scan of
    matching/cpu.py: the state of all neighbours is read, and there may be no weights.
    """
    indptr, indices, data = rows
    free = ~target.dtype.type(0)
    best, best_w = free, data.dtype.type(0)
    seen = TAKEN
    for e in range(np.uint64(indptr[v]), np.uint64(indptr[v + indptr.dtype.type(1)])):
        u = indices[e]
        colour = state[u]
        seen |= colour
        if colour & wanted == TAKEN or (mutual and target[u] != v):
            continue
        w = data[e] if weighted else data.dtype.type(1)
        if best == free or w > best_w or (w == best_w and prefers_tied(v, u, v, best, seed, True)):
            best, best_w = u, w
    return best, seen != TAKEN


@expanded
def _chosen(
    rows: WeightedRows, weighted: bool, seed: Any, prefers: Preference, v: Any, k: Any,
    state: Array, target: Array,
) -> Any:  # fmt: skip
    """The red neighbour that v chooses in round k, or all ones; and whether any is free."""
    free = ~target.dtype.type(0)
    if prefers.position.size > 0:
        return _first_in_order(rows, v, prefers, state, free)
    if weighted:
        return _first_edge(rows, weighted, v, RED, state, target, False, seed)
    degree = rows.indptr[v + rows.indptr.dtype.type(1)] - rows.indptr[v]
    place = _place(v, k, seed, degree)
    return _first_red(rows.indptr, rows.indices, v, place, state, free)


@device
def _colour(part: Array, words: Array, r: Any, threshold: Any, state: Array) -> None:
    """Colour these vertices; the hashes in their own loop, so that the compiler vectorises it."""
    hashes = words[: part.size]
    for i in range(part.size):
        hashes[i] = quarter_md5(part[i], r)
    for i in range(part.size):
        state[part[i]] = BLUE if np.uint64(hashes[i]) < threshold else RED


@device
def _round_number(seed: Any, k: Any) -> Any:
    return np.uint32(hash2(0, k, seed) >> _32) | np.uint32(1)


@kernel
def _begin(team: Team, indptr: Array, seed: Any, threshold: Any, live_state: VertexState) -> None:
    """Make all vertices with neighbours live, and give them their colours of round 0."""
    mate, _, state, live, sizes, words = live_state
    n = mate.size
    r = _round_number(seed, 0)
    chunk = next_chunk(team, sizes.size, 1)
    while chunk >= 0:
        first = chunk * CHUNK
        kept = 0
        for i in range(first, min(first + CHUNK, n)):
            mate[i] = ~mate.dtype.type(0)
            state[i] = TAKEN
            if indptr[i] < indptr[i + 1]:
                live[first + kept] = i
                kept += 1
        sizes[chunk] = kept
        _colour(live[first : first + kept], words[team.me], r, threshold, state)
        chunk = next_chunk(team, sizes.size, 1)


@kernel
def _rounds(
    team: Team, rows: WeightedRows, weighted: bool, seed: Any, threshold: Any, done: int,
    coloured: bool, prefers: Preference, live_state: VertexState, matched: Array, left: Array,
) -> None:  # fmt: skip
    """Rounds `done`, `done` + 1, ... until no vertex is live or `matched` is full.

    Element i of `matched` becomes the number of vertices that round `done` + i matched, that of
    `left` the number of live vertices after it.  Caller: both are 0.
    """
    mate, target, state, live, sizes, words = live_state
    none = ~mate.dtype.type(0)
    ordered = prefers.position.size > 0
    for number in range(matched.size):
        k = done + number
        chunk = next_chunk(team, sizes.size, 1)
        while chunk >= 0:
            part = live[chunk * CHUNK : chunk * CHUNK + sizes[chunk]]
            for i in range(part.size):
                v = part[i]
                if coloured and state[v] != BLUE:
                    continue
                if coloured:
                    u, alive = _chosen(rows, weighted, seed, prefers, v, k, state, target)
                else:
                    u, alive = _first_edge(
                        rows, weighted, v, BLUE | RED, state, target, False, seed
                    )
                target[v] = u
                if not alive:
                    state[v] = TAKEN
                if coloured and u != none:
                    atomic_min(mate, u, prefers.position[v] if ordered else v)
            chunk = next_chunk(team, sizes.size, 1)
        if barrier(team):
            return
        if (weighted or ordered) and coloured:
            chunk = next_chunk(team, sizes.size, 1)
            while chunk >= 0:
                part = live[chunk * CHUNK : chunk * CHUNK + sizes[chunk]]
                for i in range(part.size):
                    v = part[i]
                    if state[v] != RED or mate[v] == none:
                        continue
                    if ordered:
                        mate[v] = prefers.order[mate[v]]
                    else:
                        mate[v], _ = _first_edge(rows, weighted, v, BLUE, state, target, True, seed)
                chunk = next_chunk(team, sizes.size, 1)
            if barrier(team):
                return
        r = _round_number(seed, k + 1)
        got = stay = 0
        chunk = next_chunk(team, sizes.size, 1)
        while chunk >= 0:
            first = chunk * CHUNK
            part = live[first : first + sizes[chunk]]
            kept = 0
            for i in range(part.size):
                v = part[i]
                colour = state[v]
                if colour != TAKEN:
                    if coloured:
                        if colour == BLUE and target[v] != none and mate[target[v]] == v:
                            mate[v] = target[v]
                    elif target[target[v]] == v:  # a vertex that is still live has a target
                        mate[v] = target[v]
                    if mate[v] == none:
                        part[kept] = v
                        kept += 1
                    else:
                        state[v] = TAKEN
                        got += 1
            sizes[chunk] = kept
            stay += kept
            _colour(part[:kept], words[team.me], r, threshold, state)
            chunk = next_chunk(team, sizes.size, 1)
        atomic_add(matched, number, got)
        atomic_add(left, number, stay)
        advance(team, got)
        if barrier(team) or left[number] == 0:
            return
        coloured = matched[number] > 0 or not coloured


@kernel
def _serially(
    team: Team, rows: WeightedRows, weighted: bool, seed: Any, order: Array, prefers: Preference,
    mate: Array, target: Array, state: Array,
) -> None:  # fmt: skip
    """Algorithm 1, for a team of one.  Caller: mate all ones; state all RED, here for "free"."""
    none = ~mate.dtype.type(0)
    expect(team, order.size)
    for i in range(order.size):
        if interrupted(team, i):
            return
        if i & 4095 == 0:
            advance(team, min(4096, order.size - i))
        v = mate.dtype.type(order[i])
        if state[v] == TAKEN:
            continue
        state[v] = TAKEN
        u, _ = _chosen(rows, weighted, seed, prefers, v, 0, state, target)
        if u != none:
            mate[v] = u
            mate[u] = v
            state[u] = TAKEN


@kernel
def _weigh(team: Team, rows: WeightedRows, mate: Array, sums: Array) -> None:
    """sums[b] = the weights of the edges of block b's vertices; an edge counts at both ends."""
    indptr, indices, data = rows
    lo, hi = share(team, sums.size)
    for b in range(lo, hi):
        total = 0.0
        for v in range(np.uint64(b * BLOCK), np.uint64(min((b + 1) * BLOCK, mate.size))):
            u = mate[v]
            if u == ~mate.dtype.type(0):
                continue
            low, high = np.uint64(indptr[v]), np.uint64(indptr[v + np.uint64(1)])
            while low + np.uint64(1) < high:  # rows are sorted
                middle = (low + high) >> np.uint64(1)
                if indices[middle] <= u:
                    low = middle
                else:
                    high = middle
            total += np.float64(data[low])
        sums[b] = total


def match(
    view: Any, method: str, seed: int, threshold: int, prefer: str = "random", *,
    threads: int | None = None,
) -> tuple[Array, float, list[int]]:  # fmt: skip
    kind = view.indices.dtype
    mate = np.full(view.n, -1, kind)
    unsigned = f"u{kind.itemsize}"
    weighted = view.data is not None
    data = view.data if weighted else np.empty(0, np.float32)
    rows = WeightedRows(view.indptr.view(unsigned), view.indices.view(unsigned), data)
    arguments = (rows, weighted, np.uint64(seed))
    ordered = Preference(
        *(a.view(unsigned) for a in preference(view, prefer, seed, threads=threads))
    )
    matched: list[int] = []
    if method == "serial":
        vertices = np.arange(view.n, dtype=kind)
        key = hash_of_pairs(vertices, np.zeros_like(vertices), seed, threads=threads)
        order = radix_sort(key, vertices, threads=threads)[1]
        target, state = np.empty(0, unsigned), np.full(view.n, RED)
        crew(1, work=view.nnz).run(
            _serially, *arguments, order, ordered, mate.view(unsigned), target, state
        )
    else:
        matched = _all_rounds(
            view, arguments, np.uint64(threshold), ordered, mate.view(unsigned), threads
        )
    if not weighted:
        return mate, float(np.count_nonzero(mate >= 0) // 2), matched
    sums = block_sums(view.n)
    crew(threads, work=4 * view.n).run(_weigh, rows, mate.view(unsigned), sums)
    return mate, matched_weight(sums), matched


def _all_rounds(
    view: Any, arguments: tuple[Any, ...], threshold: Any, ordered: Preference, mate: Array,
    threads: int | None,
) -> list[int]:  # fmt: skip
    n = view.n
    team = crew(threads, work=view.nnz + 4 * n)
    live_state = VertexState(
        mate, target=np.empty_like(mate), state=np.empty(n, np.uint8), live=np.empty_like(mate),
        sizes=np.empty(-(-n // CHUNK), np.int64), words=np.empty((team.size, CHUNK), np.uint32),
    )  # fmt: skip
    rows, _, seed = arguments
    team.run(_begin, rows.indptr, seed, threshold, live_state)
    matched: list[int] = []
    coloured = True
    total = 0
    while live_state.sizes.any():
        got, left = np.zeros(ROUNDS_PER_LAUNCH, np.int64), np.zeros(ROUNDS_PER_LAUNCH, np.int64)
        team.run(
            _rounds, *arguments, threshold, len(matched), coloured, ordered, live_state, got, left
        )
        rounds = min(int(np.count_nonzero(left)) + 1, ROUNDS_PER_LAUNCH)
        for count in got[:rounds].tolist():
            total += count
            matched.append(total)
            coloured = count > 0 or not coloured
    return matched
