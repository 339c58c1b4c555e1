"""Moving vertices between communities on a team.  The rule: reference.py; the papers: __init__.py.

A sub-round has two phases with a barrier after each.  In the first, members take chunks of its
vertices; an active one adds up the weights to the communities around it (primitives/tally) and
notes where it goes, and the movers of a chunk are put together at its beginning (subrounds/cpu.py).
In the second, all movers change their labels, and their neighbours become active.

On the way back a vertex inside a community stays inside on the finer level: `move_some`.

Races: in the first phase labels, volumes and sizes are only read; `active[v]` and `target[v]` are
written by the member that has v.  In the second, volumes and sizes change by sums of integers,
which are the same in any order (primitives/tally/cpu.py); all writers of `active` write the same 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.communities.louvain_leiden.reference import REFINEMENT, Limit, Plan
from matchwood.communities.subrounds.cpu import (
    AWAKE,
    CHUNK,
    Split,
    choose,
    chunk_of,
    is_inside,
    split_of,
    split_round,
    wake,
)
from matchwood.communities.weights import Level
from matchwood.engines.cpu import (
    atomic_add,
    barrier,
    crew,
    device,
    expanded,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    share_rows,
)
from matchwood.primitives.hashing.cpu import mix64
from matchwood.primitives.number.cpu import number_roots
from matchwood.primitives.tally.cpu import (
    Rows,
    Sums,
    add_by_label,
    add_up,
    clear,
    empty_local_sums,
    labels_around,
    local_sums_of,
    rows_of,
    sums_of,
    word,
)
from matchwood.primitives.union_find.cpu import compress, link

Array = np.ndarray[Any, Any]

ONE_MEMBER_SIZE = 1 << 17  # entries and vertices; a smaller level one member moves and contracts
# alone: barriers between 256 sub-rounds and waking threads cost more than they gain.
# Measured: bench/communities/limits.py


class State(NamedTuple):
    """Where vertices are, and where they go."""

    labels: Array
    strength: Array
    volume: Array  # strengths of a community's members
    size: Array  # its members
    active: Array
    target: Array
    movers: Array  # the number of movers of each chunk
    chunk: int  # its vertices
    pockets: Array  # local sums of volumes and sizes (primitives/tally)


class Numbers(NamedTuple):
    """Resolution, the sum of all strengths, rounds at most, and how few movers are the last."""

    resolution: float
    total: float
    rounds: int
    enough: int
    edges: bool  # whether those on the edge of a community are asked for in the end


@expanded
def _best(rows: Rows, state: State, sums: Sums, member: int, numbers: Numbers, v: Any) -> Any:
    """The community that gains most; v's own unless another gains strictly more."""
    own = state.labels[v]
    strength = state.strength[v]
    scale = numbers.resolution * np.float64(strength) / numbers.total
    entries = add_up(sums, member, rows, v)
    total, label = sums.total[member], sums.label[member]
    inside = total[own]
    total[own] = 0
    stay = np.float64(inside) - scale * np.float64(state.volume[own] - strength)
    best, best_value = own, -np.inf
    least = stay  # less weight is less value: then the volume need not be read
    for i in range(np.uint64(entries)):
        c = label[i]
        weight = total[c]
        total[c] = 0
        if np.float64(weight) < least or weight == 0:
            continue
        value = np.float64(weight) - scale * np.float64(state.volume[c])
        if value > best_value:
            best, best_value = c, value
            least = max(value, stay)
        elif value == best_value and mix64(np.uint64(c)) < mix64(np.uint64(best)):
            best = c
    if not best_value > stay:
        return own
    if best > own and state.size[own] == 1 and state.size[best] == 1:
        return own
    return best


@expanded
def _add(team: Any, state: State, label: Any, strength: Any, members: int) -> None:
    """Add to the volume and the size of a community."""
    add_by_label(team, state.pockets, state.volume, state.size, label, strength, members)


@device
def _apply(team: Any, rows: Rows, state: State, order: Array, begin: int, end: int) -> None:
    """Change the labels of all movers; their neighbours become active."""
    one = order.dtype.type(1)
    chunk = next_chunk(team, end - begin, state.chunk)
    while chunk >= 0:
        first = begin + chunk
        for i in range(first, first + state.movers[chunk // state.chunk]):
            v = order[i]
            own, target, strength = state.labels[v], state.target[v], state.strength[v]
            _add(team, state, own, -strength, -1)
            _add(team, state, target, strength, 1)
            state.labels[v] = target
            for k in range(np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + one])):
                wake(state.active, rows.indices[k])
        chunk = next_chunk(team, end - begin, state.chunk)
    empty_local_sums(team, state.pockets, state.volume, state.size)


@device
def _count(team: Any, state: State) -> bool:
    """Add up volumes and sizes of the communities that vertices start in."""
    lo, hi = share(team, state.volume.size)
    for c in range(lo, hi):
        state.volume[c] = 0
        state.size[c] = 0
    if barrier(team):
        return True
    lo, hi = share(team, state.labels.size)
    for v in range(lo, hi):
        if interrupted(team, v):
            return True
        _add(team, state, state.labels[v], state.strength[v], 1)
    empty_local_sums(team, state.pockets, state.volume, state.size)
    return barrier(team)


@device
def _keep_edges(team: Any, rows: Rows, state: State) -> None:
    """active[v] = 1 where v has a neighbour elsewhere, else 0.

    A vertex that was never active has none: it had none before, and no neighbour has moved.
    """
    lo, hi = share(team, state.labels.size)
    for v in range(lo, hi):
        if interrupted(team, v):
            return
        seen = state.active[v] != 0
        state.active[v] = seen and not is_inside(rows, state.labels, np.uint64(v))


@kernel
def _move(
    team: Any, rows: Rows, state: State, split: Split, sums: Sums, numbers: Numbers, moves: Array,
    done: Array,
) -> None:  # fmt: skip
    """Rounds until few vertices move.  moves: a word for each round, all 0; done[0]: rounds."""
    clear(sums.total, team.me)
    if _count(team, state):
        return
    for r in range(numbers.rounds):
        if split_round(team, split, r):
            return
        moved = 0
        for p in range(split.begins.size - 1):
            begin, end = split.begins[p], split.begins[p + 1]
            moved += choose(team, _best, rows, state, sums, numbers, split.order, begin, end, True)
            if barrier(team):
                return
            _apply(team, rows, state, split.order, begin, end)
            if barrier(team):
                return
        atomic_add(moves, r, moved)
        if barrier(team):
            return
        if team.me == 0:
            done[0] = r + 1
        if load_relaxed(moves, r) <= numbers.enough:
            break
    if numbers.edges:
        _keep_edges(team, rows, state)


def members(level: Level, threads: int | None) -> int | None:
    """Threads for a level: one where it is small, whatever was asked for."""
    return 1 if int(level.indices.size) + level.n < ONE_MEMBER_SIZE else threads


def crew_of(level: Level, threads: int | None) -> Any:
    return crew(members(level, threads), work=int(level.indices.size) + level.n)


def move(level: Level, labels: Array, plan: Plan, limit: Limit, threads: int | None = None) -> int:
    """See reference.move."""
    return move_some(level, labels, level.n, plan, limit, threads, None, False)[0]


def move_some(
    level: Level,
    labels: Array,
    count: int,
    plan: Plan,
    limit: Limit,
    threads: int | None,
    some: Array | None,
    edges: bool,
) -> tuple[int, Array | None]:
    """`move` where it is known that only vertices with some[v] != 0 have neighbours elsewhere.

    All labels are below `count`.  Returns the rounds and, with `edges`, such an array for the
    communities in the end.
    """
    n = level.n
    if n == 0 or limit.rounds == 0 or level.indices.size == 0:
        return 0, None
    team = crew_of(level, threads)
    rows = rows_of(level.indptr, level.indices, level.data, word(level.total))
    kind = rows.indices.dtype
    chunk = chunk_of(level.indices.size, level.tied)
    state = State(
        labels.view(kind), level.strength, np.empty(count, np.int64), np.empty(count, np.int32),
        np.full(n, AWAKE, np.uint8) if some is None else some * np.uint8(AWAKE),
        np.empty(n, kind), np.empty(n // chunk + 1, np.int64), chunk, local_sums_of(team.size),
    )  # fmt: skip
    sums = sums_of(team.size, count, level.longest, rows, level.total)
    numbers = Numbers(
        float(plan.resolution), float(level.total), limit.rounds, limit.enough(level.tied), edges
    )
    moves, done = np.zeros(limit.rounds, np.int64), np.zeros(1, np.int64)
    split = split_of(n, team.size, kind, plan.seed, level.indptr, level.tied)
    team.run(_move, rows, state, split, sums, numbers, moves, done)
    return int(done[0]), state.active if edges else None


@kernel
def _split(
    team: Any, rows: Rows, labels: Array, parent: Array, numbers: Array, sums: Array
) -> None:
    """Union-find over the edges inside communities."""
    n = labels.size
    lo, hi = share(team, n)
    for v in range(lo, hi):
        parent[v] = v
    if barrier(team):
        return
    first, last = share_rows(team, rows.indptr)
    for v in range(first, last):
        if interrupted(team, v):
            return
        own = labels[v]
        me = parent.dtype.type(v)
        for k in range(np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + 1])):
            u = rows.indices[k]
            if u < me and labels[u] == own:  # the other end has the same edge
                link(parent, me, u)
    if barrier(team):
        return
    compress(parent, lo, hi)
    if barrier(team):
        return
    number_roots(team, parent, numbers, sums)


def split(level: Level, labels: Array, threads: int | None = None) -> tuple[int, Array]:
    """See reference.split."""
    n = level.n
    team = crew(threads, work=level.indices.size + n)
    rows = rows_of(level.indptr, level.indices, level.data)
    numbers = np.empty(n, labels.dtype)
    sums = np.zeros(team.size + 1, np.int64)
    if n:
        parent = np.empty(n, rows.indices.dtype)
        team.run(_split, rows, labels.view(parent.dtype), parent, numbers, sums)
    return int(sums[-1]), numbers


# Parts of communities that are well connected.  The rule: reference.refine.
#
# A sub-round has three phases with barriers between them: singletons choose a part, take its label,
# and then what is known of the parts is brought up to date.  That needs the labels of all, since
# two neighbours may have joined the same part at once.
#
# Races: as above.  No vertex can join a part of one vertex whose turn it is, so a part that is
# joined has members that stay.


class Parts(NamedTuple):
    """What is known of vertices, of their parts, and of their communities."""

    labels: Array  # the community of a vertex
    strength: Array
    inside: Array  # weight from a vertex to the rest of its community
    part: Array
    volume: Array  # the volume of a part
    size: Array
    outward: Array  # weight from a part to the rest of its community
    whole: Array  # the volume of a community
    target: Array
    before: Array  # weight from a vertex to the part that it joins
    movers: Array  # the number of movers of each chunk
    scale: float  # resolution / total


@device
def _weight_to(rows: Rows, labels: Array, v: Any, c: Any) -> Any:
    """Weight from v to the vertices with label c."""
    total = np.int64(0)
    for k in range(np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + 1])):
        if labels[rows.indices[k]] == c:
            total += rows.data[k] if rows.data.size > 0 else 1
    return total


@device
def _tied(parts: Parts, weight: Any, volume: Any, community: Any) -> Any:
    """Whether a part of that volume is well connected to the rest of its community."""
    rest = parts.whole[community] - volume
    return np.float64(weight) >= parts.scale * np.float64(volume) * np.float64(rest)


@expanded
def _best_part(
    rows: Rows, parts: Parts, sums: Sums, member: int, number: Array, turn: int, v: Any
) -> Any:
    """The part that v joins, or v."""
    own, strength = parts.labels[v], parts.strength[v]
    best, best_value, best_weight = v, 0.0, np.int64(0)
    mine = parts.scale * np.float64(strength)
    labels_around(sums, member, rows, parts.part, v)
    entries = add_up(sums, member, rows, v)
    total, label = sums.total[member], sums.label[member]
    for i in range(np.uint64(entries)):
        c = label[i]
        weight = np.int64(total[c])
        total[c] = 0
        if weight == 0 or parts.labels[c] != own:
            continue
        if parts.size[c] == 1 and number[c] == turn:
            continue
        value = np.float64(weight) - mine * np.float64(parts.volume[c])
        if value < best_value or (value == best_value and best == v):
            continue
        if value == best_value and mix64(np.uint64(best)) < mix64(np.uint64(c)):
            continue
        if _tied(parts, parts.outward[c], parts.volume[c], own):
            best, best_value, best_weight = c, value, weight
    parts.before[v] = best_weight
    return best


@device
def _choose_parts(team: Any, rows: Rows, parts: Parts, sums: Sums, split: Split, turn: int) -> None:
    begin, end = split.begins[turn], split.begins[turn + 1]
    chunk = next_chunk(team, end - begin, CHUNK)
    while chunk >= 0:
        first = begin + chunk
        place = first
        for i in range(first, min(first + CHUNK, end)):
            v = split.order[i]
            if parts.size[v] != 1:
                continue
            if not _tied(parts, parts.inside[v], parts.strength[v], parts.labels[v]):
                continue
            target = _best_part(rows, parts, sums, team.me, split.number, turn, v)
            if target != v:
                parts.target[v] = target
                split.order[place] = v
                place += 1
        parts.movers[chunk // CHUNK] = place - first
        chunk = next_chunk(team, end - begin, CHUNK)


@device
def _join_parts(team: Any, rows: Rows, parts: Parts, split: Split, turn: int) -> bool:
    begin, end = split.begins[turn], split.begins[turn + 1]
    chunk = next_chunk(team, end - begin, CHUNK)
    while chunk >= 0:
        first = begin + chunk
        for i in range(first, first + parts.movers[chunk // CHUNK]):
            v = split.order[i]
            parts.part[v] = parts.target[v]
        chunk = next_chunk(team, end - begin, CHUNK)
    if barrier(team):
        return True
    chunk = next_chunk(team, end - begin, CHUNK)
    while chunk >= 0:
        first = begin + chunk
        for i in range(first, first + parts.movers[chunk // CHUNK]):
            v = split.order[i]
            c = parts.part[v]
            after = _weight_to(rows, parts.part, v, c)
            atomic_add(parts.outward, c, parts.inside[v] - parts.before[v] - after)
            atomic_add(parts.volume, c, parts.strength[v])
            atomic_add(parts.size, c, 1)
            parts.size[v] = 0
        chunk = next_chunk(team, end - begin, CHUNK)
    return barrier(team)


@kernel
def _refine(
    team: Any, rows: Rows, parts: Parts, split: Split, sums: Sums, round_number: int
) -> None:
    clear(sums.total, team.me)
    lo, hi = share(team, parts.labels.size)
    for v in range(lo, hi):
        parts.part[v] = v
        parts.volume[v] = parts.strength[v]
        parts.size[v] = 1
        parts.whole[v] = 0
    if barrier(team):
        return
    for v in range(lo, hi):
        if interrupted(team, v):
            return
        inside = _weight_to(rows, parts.labels, np.uint64(v), parts.labels[v])
        parts.inside[v] = inside
        parts.outward[v] = inside
        atomic_add(parts.whole, parts.labels[v], parts.strength[v])
    if barrier(team) or split_round(team, split, round_number):
        return
    for turn in range(split.begins.size - 1):
        _choose_parts(team, rows, parts, sums, split, turn)
        if barrier(team) or _join_parts(team, rows, parts, split, turn):
            return


def refine(level: Level, labels: Array, plan: Plan, threads: int | None = None) -> Array:
    """See reference.refine."""
    n = level.n
    team = crew_of(level, threads)
    rows = rows_of(level.indptr, level.indices, level.data, word(level.total))
    kind = rows.indices.dtype
    part = np.empty(n, labels.dtype)
    scale = plan.resolution / float(level.total) if level.total else 0.0
    words = [np.empty(n, np.int64) for _ in range(5)]
    parts = Parts(
        labels.view(kind), level.strength, words[0], part.view(kind), words[1],
        np.empty(n, np.int32), words[2], words[3], np.empty(n, kind), words[4],
        np.empty(n // CHUNK + 1, np.int64), scale,
    )  # fmt: skip
    sums = sums_of(team.size, n, level.longest, rows, level.total)
    split = split_of(n, team.size, kind, plan.seed, level.indptr, level.tied)
    if n:
        team.run(_refine, rows, parts, split, sums, REFINEMENT)
    return part
