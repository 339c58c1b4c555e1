"""Refining a partition on a team, one kernel a level.  The rule: reference.py.

Every vertex knows the weight of its edges to its own block (`inside`), and the best other block
with the weight of its edges to that.  An iteration has phases with barriers between them:

    want         which vertices would like to move
    afterburn    which of them move, seen that better ones move too
    apply        the change of the cut, who must look again; then labels and weights of blocks
    rebalance    vertices leave blocks that are too heavy, by the same steps
    look         movers and their neighbours add up the weights to the blocks around them; before
                 rebalancing only those of heavy blocks

All members follow the same way through these phases: they decide by numbers that all of them read
after a barrier.  Races: a phase writes only what is of the vertex at hand, or adds integers, which
gives the same sum in any order, or writes 1 into `active`, as all do.  Movers are in any order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import (
    atomic_add,
    barrier,
    crew,
    device,
    interrupted,
    kernel,
    load_relaxed,
    next_chunk,
    share,
    stopping,
    store_relaxed,
)
from matchwood.partitioning.kway.task import Plan
from matchwood.primitives.hashing.cpu import hash2, mix64

Array = np.ndarray[Any, Any]

CHUNK = 512  # vertices that a member takes at a time
GROUP = 32  # vertices that share a flag; a divisor of CHUNK.  Measured: bench/partitioning/kway.py
ONE_MEMBER_SIZE = 1 << 15  # entries and vertices; a smaller level one member refines alone
NONE = -1  # no block
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
DELTA, COUNT, SECOND, LINE = 0, 1, 2, 16  # words of `facts` for a step, a line of 128 bytes each
STEPS = 4  # lines of `facts`: a step clears that of the step after the next


class Rows(NamedTuple):
    """The graph; `data` is empty where all edges weigh 1."""

    indptr: Array
    indices: Array
    data: Array


class State(NamedTuple):
    """What is known of each vertex."""

    labels: Array
    kept: Array  # the labels of the best state
    weights: Array
    fixed: Array  # 1: must stay
    inside: Array  # weight of the edges to its own block
    gain: Array  # weight to the best other block less `inside`
    best: Array  # the best other block, or NONE
    want: Array  # where it would like to move, or NONE
    active: Array  # 1: must look again
    stirred: Array  # 0: no vertex of the group is active
    tied: Array  # 0: none of the group has a `best` block, and `want` is NONE for all
    differs: Array  # 0: the labels of the group are those kept
    locked: Array  # the iteration in which it moved
    moved: Array  # the step in which it moved
    rank: Array  # what it is sorted by when a block is too heavy
    movers: Array
    queue: Array


class Blocks(NamedTuple):
    """What is known of each block."""

    weight: Array
    limit: Array
    ceiling: Array  # to which rebalancing fills a block
    supply: Array  # weight that could leave a block for one that it is tied to
    taken: Array
    closed: Array
    change: Array  # (members, blocks)
    total: Array  # (members, blocks): all 0 between two vertices
    near: Array  # (members, longest row): blocks of the entries at hand


@device
def _weight(rows: Rows, k: Any) -> Any:
    return rows.data[k] if rows.data.size > 0 else np.int64(1)


@device
def _tie(v: Any, block: Any) -> Any:
    """Of blocks that v is tied to alike the one with the smallest hash is the best."""
    return mix64(np.uint64(v) * GOLDEN + np.uint64(block))


@device
def _tally(rows: Rows, state: State, blocks: Blocks, me: int, v: Any, begin: Any) -> Any:
    """Weights of the row of v from `begin` on by blocks in `total`, the blocks in `near`."""
    total, near = blocks.total[me], blocks.near[me]
    row = rows.indices[begin : np.uint64(rows.indptr[v + 1])]
    for i in range(np.uint64(row.size)):
        c = np.uint64(state.labels[np.uint64(row[i])])
        near[i] = c
        total[c] += _weight(rows, begin + i)
    return row.size


@device
def _look(rows: Rows, state: State, blocks: Blocks, me: int, v: Any) -> None:
    """What v is tied to: inside, gain and best.  Most rows have no entry to another block."""
    own = state.labels[v]
    begin, end = np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + 1])
    inside = np.int64(0)
    while begin < end and state.labels[np.uint64(rows.indices[begin])] == own:
        inside += _weight(rows, begin)
        begin += np.uint64(1)
    best, most = np.int64(NONE), np.int64(0)
    if begin < end:
        state.tied[v // GROUP] = 1  # members take whole groups
        size = _tally(rows, state, blocks, me, v, begin)
        total, near = blocks.total[me], blocks.near[me]
        inside += total[own]
        total[own] = 0
        for i in range(np.uint64(size)):
            c = np.uint64(near[i])
            w = total[c]
            total[c] = 0
            if w > most or (w == most and w > 0 and _tie(v, c) < _tie(v, best)):
                best, most = np.int64(c), w
    state.inside[v] = inside
    state.best[v] = best
    state.gain[v] = most - inside


@device
def _look_all(team: Any, rows: Rows, state: State, blocks: Blocks, heavy: bool) -> bool:
    """All active vertices look; with `heavy` those of blocks that are too heavy."""
    n = state.labels.size
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        for first in range(chunk, min(chunk + CHUNK, n), GROUP):
            if state.stirred[first // GROUP] == 0:
                continue
            if not heavy:
                state.stirred[first // GROUP] = 0
            for v in range(first, min(first + GROUP, n)):
                own = state.labels[v]
                if state.active[v] != 0 and (not heavy or blocks.weight[own] > blocks.limit[own]):
                    state.active[v] = 0
                    _look(rows, state, blocks, team.me, v)
                    if interrupted(team, v):
                        return True
        chunk = next_chunk(team, n, CHUNK)
    return barrier(team)


@device
def _mover(state: State, facts: Array, v: Any, step: int) -> None:
    """v is one of those that move in this step, to want[v]."""
    state.moved[v] = step
    state.movers[atomic_add(facts, step % STEPS * LINE + COUNT, 1)] = v


@device
def _stir(state: State, v: Any) -> None:
    """v must look again."""
    store_relaxed(state.active, v, np.uint8(1))
    store_relaxed(state.stirred, v // np.uint64(GROUP), np.uint8(1))


@device
def _apply(
    team: Any, rows: Rows, state: State, blocks: Blocks, facts: Array, step: int
) -> tuple[Any, bool]:
    """All movers of a step move to want[v]: what the cut loses by it, and whether to stop."""
    line = step % STEPS * LINE
    count = load_relaxed(facts, line + COUNT)
    change = blocks.change[team.me]
    gained = np.int64(0)
    chunk = next_chunk(team, count, 64)
    while chunk >= 0:
        for i in range(chunk, min(chunk + 64, count)):
            v = np.int64(state.movers[i])
            own, target = state.labels[v], state.want[v]
            w = state.weights[v]
            change[own] -= w
            change[target] += w
            _stir(state, np.uint64(v))
            for k in range(np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + 1])):
                u = np.uint64(rows.indices[k])
                _stir(state, u)
                label = state.labels[u]
                if state.moved[u] == step:  # its other end counts this edge as well
                    after = state.want[u]
                    lost = np.int64(label != own) - np.int64(after != target)
                else:
                    lost = 2 * (np.int64(label != own) - np.int64(label != target))
                gained += lost * _weight(rows, k)
        chunk = next_chunk(team, count, 64)
    atomic_add(facts, line + DELTA, gained)
    if barrier(team):
        return np.int64(0), True
    gained = load_relaxed(facts, line + DELTA) // 2
    lo, hi = share(team, count)
    for i in range(lo, hi):
        v = np.int64(state.movers[i])
        state.labels[v] = state.want[v]
        store_relaxed(state.differs, v // GROUP, np.uint8(1))
    lo, hi = share(team, blocks.weight.size)
    for member in range(team.size):
        for b in range(lo, hi):
            blocks.weight[b] += blocks.change[member, b]
            blocks.change[member, b] = 0
    if team.me == 0:
        after_next = (step + 2) % STEPS * LINE
        facts[after_next : after_next + LINE] = 0
    return gained, barrier(team)


@device
def _excess(blocks: Blocks) -> Any:
    over = np.int64(0)
    for b in range(blocks.weight.size):
        over += max(blocks.weight[b] - blocks.limit[b], np.int64(0))
    return over


# Jet


@device
def _choose(
    team: Any, rows: Rows, state: State, facts: Array, c: int, iteration: int, step: int
) -> bool:
    """Who moves, and where to: want, then afterburn."""
    n = state.labels.size
    lo, hi = share(team, state.tied.size)
    for group in range(lo, hi):
        if state.tied[group] == 0:
            continue
        state.tied[group] = 0
        for v in range(group * GROUP, min((group + 1) * GROUP, n)):
            want, best = np.int64(NONE), state.best[v]
            if best != NONE:
                state.tied[group] = 1
                if state.locked[v] != iteration - 1 and state.fixed[v] == 0:
                    gain = state.gain[v]
                    if gain >= 0 or -gain < state.inside[v] * c // 4:
                        want = np.int64(best)
            state.want[v] = want
    if barrier(team):
        return True
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        for first in range(chunk, min(chunk + CHUNK, n), GROUP):
            if state.tied[first // GROUP] == 0:
                continue
            for v in range(first, min(first + GROUP, n)):
                target = state.want[v]
                if target == NONE:
                    continue
                own, gain = state.labels[v], state.gain[v]
                total = np.int64(0)
                for k in range(np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + 1])):
                    u = np.uint64(rows.indices[k])
                    label = state.labels[u]
                    goal = state.want[u]
                    if goal != NONE and (
                        state.gain[u] > gain or (state.gain[u] == gain and np.int64(u) < v)
                    ):
                        label = goal
                    if label == target:
                        total += _weight(rows, k)
                    elif label == own:
                        total -= _weight(rows, k)
                if total >= 0:
                    state.locked[v] = iteration
                    _mover(state, facts, v, step)
        chunk = next_chunk(team, n, CHUNK)
    return barrier(team)


# Rebalancing


@device
def _tied_with_room(rows: Rows, state: State, blocks: Blocks, me: int, v: Any) -> tuple[Any, Any]:
    """The best other block with room for v, or NONE; and what v is tied to it by."""
    best, w = state.best[v], state.weights[v]
    if best == NONE:
        return np.int64(NONE), np.int64(0)
    if blocks.weight[best] + w <= blocks.ceiling[best]:
        return np.int64(best), state.gain[v] + state.inside[v]
    own = state.labels[v]
    size = _tally(rows, state, blocks, me, v, np.uint64(rows.indptr[v]))
    total, near = blocks.total[me], blocks.near[me]
    total[own] = 0
    found, most = np.int64(NONE), np.int64(0)
    for i in range(size):
        c = np.int64(near[i])
        tied = total[c]
        total[c] = 0
        better = tied > most or (tied == most and tied > 0 and _tie(v, c) < _tie(v, found))
        if better and blocks.weight[c] + w <= blocks.ceiling[c]:
            found, most = c, tied
    return found, most


@device
def _any_with_room(blocks: Blocks, v: Any, own: Any, w: Any, turn: Any) -> Any:
    """The first block with room for v, from a hashed one on, or NONE."""
    k = blocks.weight.size
    first = np.int64(hash2(v, turn, np.uint64(0)) % np.uint64(k))
    for i in range(k):
        c = (first + i) % k
        if c != own and blocks.weight[c] + w <= blocks.ceiling[c]:
            return c
    return np.int64(NONE)


@device
def _gather(
    team: Any, rows: Rows, state: State, blocks: Blocks, facts: Array, step: int, turn: Any,
    second: bool,
) -> bool:  # fmt: skip
    """List the vertices of heavy blocks with where they would go, in `queue`.

    First those that are tied to a block with room.  Where their weight does not mend a block, the
    `second` time, its other vertices follow in the queue.
    """
    line = step % STEPS * LINE
    n = state.labels.size
    if barrier(team):
        return True
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        for first in range(chunk, min(chunk + CHUNK, n), GROUP):
            if not second and state.tied[first // GROUP] == 0:
                continue
            for v in range(first, min(first + GROUP, n)):
                own, w = state.labels[v], state.weights[v]
                over = blocks.weight[own] - blocks.limit[own]
                if over <= 0 or state.fixed[v] != 0 or w == 0:
                    continue
                if second:
                    if blocks.supply[own] >= over or state.want[v] != NONE:
                        continue
                    target, tied = _any_with_room(blocks, v, own, w, turn), np.int64(0)
                else:
                    target, tied = _tied_with_room(rows, state, blocks, team.me, v)
                state.want[v] = target
                if target == NONE:
                    continue
                state.tied[v // GROUP] = 1
                gain, mass = np.float64(tied - state.inside[v]), np.float64(w)
                state.rank[v] = gain * mass if gain > 0 else gain / mass
                if not second:
                    atomic_add(blocks.supply, own, w)
                state.queue[atomic_add(facts, line + SECOND, 1)] = v
        chunk = next_chunk(team, n, CHUNK)
    return barrier(team)


@device
def _earlier(state: State, u: Any, v: Any) -> bool:
    if state.rank[u] != state.rank[v]:
        return state.rank[u] > state.rank[v]
    return u < v


@device
def _sink(state: State, heap: Array, size: int, at: int) -> None:
    v = heap[at]
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and _earlier(state, heap[below + 1], heap[below]):
            below += 1
        if not _earlier(state, heap[below], v):
            break
        heap[at] = heap[below]
        at = below
    heap[at] = v


@device
def _may_leave(state: State, blocks: Blocks, v: Any) -> bool:
    own = state.labels[v]
    heavy = blocks.taken[own] < blocks.weight[own] - blocks.limit[own]
    return heavy and blocks.closed[state.want[v]] == 0


@device
def _take(state: State, blocks: Blocks, facts: Array, heap: Array, heavy: int, step: int) -> int:
    """Vertices in their order leave blocks that are too heavy; returns how many still are.

    A target that has no room for one takes no more in this round.  One in 35 moves on a mesh in 64
    blocks: those that may leave no more are thrown out together, before they cost a sift each.
    """
    size = wasted = heap.size
    while size > 0 and heavy > 0:
        if 8 * wasted >= size:
            left = wasted = 0
            for i in range(size):
                if _may_leave(state, blocks, heap[i]):
                    heap[left] = heap[i]
                    left += 1
            size = left
            for at in range(size // 2 - 1, -1, -1):
                _sink(state, heap, size, at)
            continue
        v = np.int64(heap[0])
        size -= 1
        heap[0] = heap[size]
        _sink(state, heap, size, 0)
        own, target, w = state.labels[v], state.want[v], state.weights[v]
        if not _may_leave(state, blocks, v):
            wasted += 1
        # what a target receives is counted in `taken` too: no target is too heavy
        elif blocks.weight[target] + blocks.taken[target] + w > blocks.ceiling[target]:
            blocks.closed[target] = 1
            wasted += 1
        else:
            blocks.taken[own] += w
            heavy -= not _may_leave(state, blocks, v)
            blocks.taken[target] += w
            _mover(state, facts, v, step)
    return heavy


@device
def _rebalance(
    team: Any, rows: Rows, state: State, blocks: Blocks, facts: Array, step: int, plan: Plan
) -> tuple[Any, int, bool]:
    """Rounds until no block is too heavy or nothing moves: gain, steps, whether to stop."""
    gained = np.int64(0)
    k = blocks.weight.size
    for turn in range(plan.rounds):
        heavy = 0
        for b in range(k):
            heavy += blocks.weight[b] > blocks.limit[b]
        if heavy == 0:
            break
        line = step % STEPS * LINE
        if barrier(team):
            return gained, step, True
        if _look_all(team, rows, state, blocks, True):
            return gained, step, True
        lo, hi = share(team, k)
        for b in range(lo, hi):
            blocks.supply[b] = blocks.taken[b] = blocks.closed[b] = 0
        if _gather(team, rows, state, blocks, facts, step, turn, False):
            return gained, step, True
        short = False
        for b in range(k):
            over = blocks.weight[b] - blocks.limit[b]
            short = short or (over > 0 and blocks.supply[b] < over)
        first = load_relaxed(facts, line + SECOND)
        if short and _gather(team, rows, state, blocks, facts, step, turn, True):
            return gained, step, True
        if team.me == 0:
            last = load_relaxed(facts, line + SECOND)
            left = _take(state, blocks, facts, state.queue[:first], heavy, step)
            _take(state, blocks, facts, state.queue[first:last], left, step)
        if barrier(team):
            return gained, step, True
        count = load_relaxed(facts, line + COUNT)
        more, stop = _apply(team, rows, state, blocks, facts, step)
        gained += more
        step += 1
        if stop or count == 0:
            return gained, step, stop
    return gained, step, False


@kernel
def _refine(
    team: Any, rows: Rows, state: State, blocks: Blocks, plan: Plan, facts: Array, score: Array
) -> None:
    """Jet, with rebalancing, from `labels`, to the best state: score = excess, cut, iterations.

    Caller: `kept` the labels, `active` and `stirred` all 1, `tied` and `differs` all 0, `want` all
    NONE, `locked` and `moved` all -2, blocks weighed, facts, change, total 0; score[1] their cut.
    """
    lo, hi = share(team, state.differs.size)
    if _look_all(team, rows, state, blocks, False):
        return
    cut = best_cut = score[1]
    excess = best_excess = _excess(blocks)
    iteration = step = phase = 0
    found = False  # a better state
    if barrier(team):
        return
    while phase < plan.c.size:
        idle = 0
        first_excess, first_cut = best_excess, best_cut
        while idle < (plan.patience if found else (plan.patience + 1) // 2):
            if _choose(team, rows, state, facts, plan.c[phase], iteration, step):
                return
            moved = load_relaxed(facts, step % STEPS * LINE + COUNT)
            gained, stop = _apply(team, rows, state, blocks, facts, step)
            if stop:
                return
            step += 1
            more, step, stop = _rebalance(team, rows, state, blocks, facts, step, plan)
            if stop or _look_all(team, rows, state, blocks, False):
                return
            iteration += 1
            cut -= gained + more
            excess = _excess(blocks)
            idle += 1
            if excess < best_excess or (excess == best_excess and cut < best_cut):
                if excess < best_excess or 1000 * (best_cut - cut) > best_cut:
                    idle = 0
                best_cut, best_excess = cut, excess
                found = True
                for group in range(lo, hi):
                    if state.differs[group] != 0:
                        state.differs[group] = 0
                        for v in range(group * GROUP, min((group + 1) * GROUP, state.labels.size)):
                            state.kept[v] = state.labels[v]
            if moved == 0:
                break
        if barrier(team):
            return
        for group in range(lo, hi):
            if state.differs[group] == 0:
                continue
            for v in range(group * GROUP, min((group + 1) * GROUP, state.labels.size)):
                if state.labels[v] != state.kept[v]:
                    state.want[v] = state.kept[v]
                    state.tied[group] = 1
                    _mover(state, facts, v, step)
        if barrier(team):
            return
        gained, stop = _apply(team, rows, state, blocks, facts, step)
        if stop or _look_all(team, rows, state, blocks, False):
            return
        step += 1
        cut -= gained
        same = first_excess == best_excess and first_cut == best_cut
        phase = max(phase + 1, plan.c.size - 1) if same else phase + 1
    if team.me == 0:
        score[0], score[1], score[2] = best_excess, cut, iteration


# The last resort, the cut, and edges that may be contracted


@kernel
def _mend(team: Any, rows: Rows, state: State, blocks: Blocks, score: Array) -> None:
    """One vertex after the other leaves a heavy block, as long as that lowers the excess.

    Each time the one that lowers it most; of these the one that costs least, then the smallest, and
    of its blocks the first.  For a team of one.
    """
    n, k = state.labels.size, blocks.weight.size
    while not stopping(team):
        v_best, target_best, lowered, least = np.int64(-1), np.int64(-1), np.int64(0), np.int64(0)
        for v in range(n):
            own, w = state.labels[v], state.weights[v]
            over = blocks.weight[own] - blocks.limit[own]
            if over <= 0 or state.fixed[v] != 0 or w == 0:
                continue
            if interrupted(team, v):
                return
            if min(w, over) < lowered:
                continue
            _tally(rows, state, blocks, 0, v, np.uint64(rows.indptr[v]))
            total = blocks.total[0]
            for c in range(k):
                room = max(blocks.limit[c] - blocks.weight[c], np.int64(0))
                less = min(w, over) - max(w - room, np.int64(0))
                cost = total[own] - total[c]
                if c != own and (less > lowered or (less == lowered and less > 0 and cost < least)):
                    v_best, target_best, lowered, least = np.int64(v), np.int64(c), less, cost
            for i in range(rows.indptr[v + 1] - rows.indptr[v]):
                total[blocks.near[0, i]] = 0
        if v_best < 0:
            break
        blocks.weight[state.labels[v_best]] -= state.weights[v_best]
        blocks.weight[target_best] += state.weights[v_best]
        state.labels[v_best] = target_best
        score[1] += least
    score[0] = _excess(blocks)


@kernel
def _cut(team: Any, rows: Rows, labels: Array, total: Array) -> None:
    """Add to total[0] twice the weight of the edges between blocks."""
    mine = np.int64(0)
    chunk = next_chunk(team, labels.size, CHUNK)
    while chunk >= 0:
        for v in range(chunk, min(chunk + CHUNK, labels.size)):
            for k in range(np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + 1])):
                if labels[np.uint64(rows.indices[k])] != labels[v]:
                    mine += _weight(rows, k)
        chunk = next_chunk(team, labels.size, CHUNK)
    atomic_add(total, 0, mine)


@kernel
def _light(
    team: Any, rows: Rows, weights: Array, labels: Array, limit: Any, out: Rows, lengths: Array
) -> None:
    """The edges whose ends together weigh at most `limit` and have one label.

    lengths: their number in each row; then, where out.indices has room, the edges themselves.
    """
    n = weights.size
    fill = out.indices.size > 0
    chunk = next_chunk(team, n, CHUNK)
    while chunk >= 0:
        for v in range(chunk, min(chunk + CHUNK, n)):
            at = np.uint64(out.indptr[v]) if fill else np.uint64(0)
            for k in range(np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + 1])):
                u = np.uint64(rows.indices[k])
                alike = labels.size == 0 or labels[u] == labels[v]
                if alike and weights[u] + weights[v] <= limit:
                    if fill:
                        out.indices[at] = rows.indices[k]
                        out.data[at] = _weight(rows, k)
                    at += np.uint64(1)
            if not fill:
                lengths[v] = at
        chunk = next_chunk(team, n, CHUNK)


def rows_of(level: Any) -> Rows:
    data = np.empty(0, np.int64) if level.data is None else level.data
    return Rows(level.indptr, level.indices, data)


def light_edges(
    level: Any, labels: Array | None, limit: int, threads: int | None = None
) -> tuple[Array, Array, Array]:
    """See reference.light_edges."""
    rows = rows_of(level)
    team = crew(threads, work=level.indices.size + level.n)
    named = np.empty(0, np.int32) if labels is None else labels
    lengths = np.zeros(level.n, level.indptr.dtype)
    empty = Rows(rows.indptr, np.empty(0, rows.indices.dtype), np.empty(0, np.float64))
    team.run(_light, rows, level.weights, named, limit, empty, lengths)
    indptr = np.zeros(level.n + 1, level.indptr.dtype)
    np.cumsum(lengths, out=indptr[1:])
    m = int(indptr[-1])
    out = Rows(indptr, np.empty(m, rows.indices.dtype), np.empty(m, np.float64))
    if m:
        team.run(_light, rows, level.weights, named, limit, out, lengths)
    return indptr, out.indices, out.data


def cut_of(level: Any, labels: Array, threads: int | None = None) -> int:
    """The weight of the edges between different labels."""
    total = np.zeros(1, np.int64)
    crew(threads, work=level.indices.size + level.n).run(_cut, rows_of(level), labels, total)
    return int(total[0]) // 2


def refine(
    level: Any, labels: Array, limits: Array, ceilings: Array, fixed: Array | None, plan: Plan,
    cut: int, threads: int | None = None,
) -> tuple[int, int, int]:  # fmt: skip
    """See reference.refine; labels, of that cut, are changed in place: excess, cut, iterations."""
    n, k = level.n, limits.size
    size, groups = int(level.indices.size) + n, -(-n // GROUP)
    team = crew(1 if size < ONE_MEMBER_SIZE else threads, work=16 * size)
    rows = rows_of(level)
    weight = np.zeros(k, np.int64)
    np.add.at(weight, labels, level.weights)
    blocks = Blocks(
        weight, limits, ceilings, np.zeros(k, np.int64), np.zeros(k, np.int64),
        np.zeros(k, np.uint8), np.zeros((team.size, k), np.int64),
        np.zeros((team.size, k), np.int64), np.empty((team.size, level.longest), np.int32),
    )  # fmt: skip
    state = State(
        labels, labels.copy(), level.weights,
        np.zeros(n, np.uint8) if fixed is None else fixed,
        np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int32),
        np.full(n, NONE, np.int32), np.ones(n, np.uint8), np.ones(groups, np.uint8),
        np.zeros(groups, np.uint8), np.zeros(groups, np.uint8), np.full(n, -2, np.int32),
        np.full(n, -2, np.int32), np.empty(n, np.float64), *np.empty((2, n), rows.indices.dtype),
    )  # fmt: skip
    score = np.array([0, cut, 0], np.int64)
    numbers = plan._replace(c=np.array(plan.c, np.int64))
    team.run(_refine, rows, state, blocks, numbers, np.zeros(STEPS * LINE, np.int64), score)
    if score[0] > 0:
        crew(1, work=size).run(_mend, rows, state, blocks, score)
    return int(score[0]), int(score[1]), int(score[2])
