"""Label propagation on a team.  The rule: reference.py; the papers: __init__.py.

Phases and races are those of moving between communities (louvain_leiden/cpu.py): vertices choose,
movers are put together at the beginning of their chunk; after a barrier all change their labels.
In the rounds after the first ones there are no sub-rounds: all active vertices choose at once, and
of neighbours that want to move, the first by mix64 does.  So no two neighbours move at once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.communities.propagation.reference import SPLIT_ROUNDS, Plan
from matchwood.communities.subrounds.cpu import (
    AWAKE,
    Split,
    choose,
    chunk_of,
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
    kernel,
    load_relaxed,
    next_chunk,
    share,
    store_relaxed,
)
from matchwood.primitives.hashing.cpu import mix64
from matchwood.primitives.tally.cpu import Rows, Sums, add_up, clear, rows_of, sums_of

Array = np.ndarray[Any, Any]

ONE_MEMBER_SIZE = 1 << 17  # entries and vertices; one member does less, as in louvain_leiden/cpu.py


class State(NamedTuple):
    """The labels of vertices, and where they go."""

    labels: Array
    size: Array  # vertices with a label; not kept where gamma is 0
    active: Array
    wishes: Array  # 1: the vertex wants another label
    target: Array
    movers: Array  # the number of movers of each chunk
    chunk: int  # its vertices


class Numbers(NamedTuple):
    """The options of a run, as the kernel takes them."""

    gamma: float
    max_rounds: int
    enough: int
    split_rounds: int


@expanded
def _best(rows: Rows, state: State, sums: Sums, member: int, gamma: float, v: Any) -> Any:
    """The label of the largest value, of several the one with the smallest mix64."""
    own = state.labels[v]
    entries = add_up(sums, member, rows, v)
    total, label = sums.total[member], sums.label[member]
    inside = total[own]
    total[own] = 0
    best, best_hash = own, mix64(np.uint64(own))
    factor = 1.0 + gamma
    best_value = factor * np.float64(inside)
    if gamma != 0.0:
        best_value -= gamma * np.float64(state.size[own] - 1)
    for i in range(np.uint64(entries)):
        c = label[i]
        weight = total[c]
        total[c] = 0
        if weight == 0:
            continue
        value = factor * np.float64(weight)
        if gamma != 0.0:
            value -= gamma * np.float64(state.size[c])
        if value >= best_value:
            h = mix64(np.uint64(c))
            if value > best_value or h < best_hash:
                best, best_value, best_hash = c, value, h
    return best


@device
def _announce(team: Any, state: State, order: Array) -> bool:
    """wishes[v] = 1 for all who want to move.  True: the team stops."""
    n = order.size
    chunk = next_chunk(team, n, state.chunk)
    while chunk >= 0:
        for i in range(chunk, chunk + state.movers[chunk // state.chunk]):
            state.wishes[order[i]] = 1
        chunk = next_chunk(team, n, state.chunk)
    return barrier(team)


@device
def _first_only(team: Any, rows: Rows, state: State, order: Array) -> int:
    """Keep those that have a neighbour before them; they stay active.  Returns how many move."""
    n = order.size
    one = order.dtype.type(1)
    moved = 0
    chunk = next_chunk(team, n, state.chunk)
    while chunk >= 0:
        for i in range(chunk, chunk + state.movers[chunk // state.chunk]):
            v = order[i]
            mine = mix64(np.uint64(v))
            first = True
            for k in range(np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + one])):
                u = rows.indices[k]
                if state.wishes[u] == 1 and mix64(np.uint64(u)) < mine:
                    first = False
                    break
            if first:
                moved += 1
            else:
                state.target[v] = state.labels[v]
        chunk = next_chunk(team, n, state.chunk)
    return moved


@device
def _apply(
    team: Any, rows: Rows, state: State, gamma: float, order: Array, begin: int, end: int
) -> None:
    """Give movers their new labels; their neighbours become active, those that stay remain so."""
    one = order.dtype.type(1)
    chunk = next_chunk(team, end - begin, state.chunk)
    while chunk >= 0:
        first = begin + chunk
        for i in range(first, first + state.movers[chunk // state.chunk]):
            v = order[i]
            own, target = state.labels[v], state.target[v]
            state.wishes[v] = 0
            if own == target:
                store_relaxed(state.active, v, AWAKE)
                continue
            if gamma != 0.0:
                atomic_add(state.size, own, -1)
                atomic_add(state.size, target, 1)
            state.labels[v] = target
            for k in range(np.uint64(rows.indptr[v]), np.uint64(rows.indptr[v + one])):
                wake(state.active, rows.indices[k])
        chunk = next_chunk(team, end - begin, state.chunk)


@device
def _split_round(
    team: Any, rows: Rows, state: State, split: Split, sums: Sums, gamma: float, r: int
) -> int:
    """A round of sub-rounds; how many vertices this member moved, -1 when the team stops."""
    if split_round(team, split, r):
        return -1
    moved = 0
    for p in range(split.begins.size - 1):
        begin, end = split.begins[p], split.begins[p + 1]
        moved += choose(team, _best, rows, state, sums, gamma, split.order, begin, end, True)
        if barrier(team):
            return -1
        _apply(team, rows, state, gamma, split.order, begin, end)
        if barrier(team):
            return -1
    return moved


@device
def _careful_round(
    team: Any, rows: Rows, state: State, order: Array, sums: Sums, gamma: float
) -> int:
    """A round in which no two neighbours move; -1 when the team stops."""
    n = order.size
    choose(team, _best, rows, state, sums, gamma, order, 0, n, False)
    if barrier(team) or _announce(team, state, order):
        return -1
    moved = _first_only(team, rows, state, order)
    if barrier(team):
        return -1
    _apply(team, rows, state, gamma, order, 0, n)
    if barrier(team):
        return -1
    return moved


@kernel
def _propagate(
    team: Any, rows: Rows, state: State, split: Split, sums: Sums, numbers: Numbers, moves: Array,
    done: Array,
) -> None:  # fmt: skip
    """moves: three words, all 0, of which one counts; done[0]: rounds."""
    clear(sums.total, team.me)
    lo, hi = share(team, state.labels.size)
    for v in range(lo, hi):
        state.labels[v] = v
        state.active[v] = AWAKE
        state.wishes[v] = 0
        state.size[v] = 1
    if barrier(team):
        return
    for r in range(numbers.max_rounds):
        if r < numbers.split_rounds:
            moved = _split_round(team, rows, state, split, sums, numbers.gamma, r)
        else:
            moved = _careful_round(team, rows, state, split.order, sums, numbers.gamma)
        if moved < 0:
            return
        if team.me == 0:
            store_relaxed(moves, (r + 1) % 3, 0)
            done[0] = r + 1
        atomic_add(moves, r % 3, moved)
        if barrier(team):
            return
        if load_relaxed(moves, r % 3) <= numbers.enough:
            return


def propagate(level: Level, plan: Plan, threads: int | None = None) -> tuple[Array, int]:
    """See reference.propagate."""
    n = level.n
    labels = np.arange(n, dtype=level.indices.dtype)
    if level.indices.size == 0 or plan.max_rounds == 0:
        return labels, 0
    work = int(level.indices.size) + n
    team = crew(1 if work < ONE_MEMBER_SIZE else threads, work=work)
    rows = rows_of(level.indptr, level.indices, level.data)
    kind = rows.indices.dtype
    chunk = chunk_of(level.indices.size, level.tied)
    state = State(
        labels.view(kind), np.empty(n, np.int32), np.empty(n, np.uint8), np.empty(n, np.uint8),
        np.empty(n, kind), np.empty(n // chunk + 1, np.int64), chunk,
    )  # fmt: skip
    sums = sums_of(team.size, n, level.longest, rows, level.total)
    numbers = Numbers(plan.gamma, plan.max_rounds, plan.enough(n), SPLIT_ROUNDS)
    moves, done = np.zeros(3, np.int64), np.zeros(1, np.int64)
    split = split_of(n, team.size, kind, plan.seed)
    team.run(_propagate, rows, state, split, sums, numbers, moves, done)
    return labels, int(done[0])
