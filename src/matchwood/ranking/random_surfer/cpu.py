"""PageRank on a team.  The rule: __init__.py.

An iteration is one pass over the rows and one barrier.  A row adds up what its neighbours give,
``given[i] = x[i] * share[i]``, and writes its own x and its own word of the next `given`; so no two
members write the same word, and there are two arrays `given` that take turns.

Members take windows as they come: vertices that follow each other, WINDOW at most, with about TASK
entries.  A window first adds up all its rows, into a buffer of the member; then it makes scores of
the sums, which runs on vector registers.  Where lengths of rows change often, the rows are visited
by length, since a row's end that the processor does not foresee costs as much as 20 entries.

Reading the entries is the limit, so a window's are read as they lie in memory, one after the other,
and are short where they can be.  A window that is visited by length has a copy of its entries in
that order.  A window whose neighbours all lie within 2^16 vertices has a copy of 2 bytes an entry,
counted from the first of them.  All others read the graph itself.

Windows depend on the graph alone.  Each adds up its own changes, and what its vertices without arcs
hold; all members then add up the windows in their order.  So the sums have the same bits at any
number of threads.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from matchwood.primitives.cpu_hints import select
from matchwood.teams import barrier, crew, device, kernel, next_chunk

Array = np.ndarray[Any, Any]

WINDOW = 4096  # vertices; a buffer of 16 or 32 KiB stays in the first-level cache
TASK = 1 << 16  # entries of a window, about: some 40 us of work
CALM = 8  # at most one in so many rows differs from the row before: then they are left as they are
LENGTHS = 1024  # rows of this length and longer are not told apart
NEAR = 1 << 16  # vertices; neighbours of a window within as many take 2 bytes each
OWN, COPIED = -1, -2  # instead of a base
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
LONG = np.uint64(1024)  # entries; longer rows are added up in pieces of this length
FIVE, SIX, SEVEN, EIGHT = np.uint64(5), np.uint64(6), np.uint64(7), np.uint64(8)


class Jumps(NamedTuple):
    """Where jumps lead: arrays, empty where it is the same everywhere."""

    jump: Any
    dangling: Any


class Plan(NamedTuple):
    """Window w has the vertices starts[w] .. starts[w + 1] - 1, visited in the order of `order`.

    Its entries begin at ``begins[w]`` of `near` where ``bases[w]`` is a vertex, from which they
    count; of `copied` where that is COPIED; and of the graph's own indices where it is OWN.
    """

    starts: Any
    order: Any  # uint16: the vertex less the first of its window
    bases: Any
    begins: Any  # uint64
    near: Any  # uint16
    copied: Any  # as the graph's indices


class State(NamedTuple):
    """What changes: scores, what each vertex gives (two rows, in turn), sums of the windows."""

    scores: Any
    given: Any
    changes: Any  # (2, windows) float64
    lost: Any  # (2, windows) float64
    result: Any  # iterations, error
    buffers: Any  # (members, WINDOW)


@kernel
def _by_length(
    team: Any,
    indptr: Array,
    indices: Array,
    starts: Array,
    order: Array,
    bases: Array,
    counts: Array,
) -> None:
    """Sort the vertices of each window by the length of their rows, and find its base."""
    mine = counts[team.rank]
    window = next_chunk(team, starts.size - 1, 1)
    while window >= 0:
        first, last = starts[window], starts[window + 1]
        mine[:] = 0
        changes, before = -1, np.int64(-1)  # the first row changes nothing
        for v in range(first, last):
            length: Any = np.int64(indptr[v + 1]) - np.int64(indptr[v])
            if length != before:
                changes += 1
            mine[min(length, LENGTHS - 1)] += 1
            before = length
        calm = changes * CALM <= last - first
        bases[window] = _base(indices[indptr[first] : indptr[last]], OWN if calm else COPIED)
        at = first
        for length in range(LENGTHS):  # counting keeps the order of rows of one length
            count = mine[length]
            mine[length] = at
            at += count
        for v in range(first, last):
            if calm:
                order[v] = v - first
            else:
                length = min(np.int64(indptr[v + 1]) - np.int64(indptr[v]), LENGTHS - 1)
                order[mine[length]] = v - first
                mine[length] += 1
        window = next_chunk(team, starts.size - 1, 1)


@device
def _base(entries: Array, otherwise: int) -> int:
    """The smallest of the vertices where all are within NEAR of it."""
    if entries.size == 0:
        return OWN
    least, most = entries[0], entries[0]
    for k in range(entries.size):
        least, most = min(least, entries[k]), max(most, entries[k])
    return np.int64(least) if np.int64(most) - np.int64(least) < NEAR else otherwise


@kernel
def _copy_entries(team: Any, indptr: Array, indices: Array, plan: Plan) -> None:
    """Write the entries of windows that read a copy, row after row as they are visited."""
    starts, windows = plan.starts, plan.starts.size - 1
    window = next_chunk(team, windows, 1)
    while window >= 0:
        base, at = plan.bases[window], plan.begins[window]
        if base != OWN:
            first = starts[window]
            for i in range(first, starts[window + 1]):
                v = first + plan.order[i]
                for k in range(indptr[v], indptr[v + 1]):
                    if base == COPIED:
                        plan.copied[at] = indices[k]
                    else:
                        plan.near[at] = np.int64(indices[k]) - base
                    at += ONE
        window = next_chunk(team, windows, 1)


@device
def _pulled(given: Array, indices: Array, k: Any, end: Any, zero: Any) -> Any:
    """The sum over a row.  Four sums at once, since each addition waits for the one before."""
    a, b, c, d = zero, zero, zero, zero
    while k + EIGHT <= end:
        a += given[indices[k]]
        b += given[indices[k + ONE]]
        c += given[indices[k + TWO]]
        d += given[indices[k + THREE]]
        a += given[indices[k + FOUR]]
        b += given[indices[k + FIVE]]
        c += given[indices[k + SIX]]
        d += given[indices[k + SEVEN]]
        k += EIGHT
    if k + FOUR <= end:
        a += given[indices[k]]
        b += given[indices[k + ONE]]
        c += given[indices[k + TWO]]
        d += given[indices[k + THREE]]
        k += FOUR
    if k + TWO <= end:
        a += given[indices[k]]
        b += given[indices[k + ONE]]
        k += TWO
    if k < end:
        c += given[indices[k]]
    return (a + b) + (c + d)


@device
def _pulled_by_weight(
    given: Array, indices: Array, weights: Array, k: Any, end: Any, zero: Any
) -> Any:
    total = zero
    while k < end:
        total += given[indices[k]] * weights[k]
        k += ONE
    return total


@device
def _pulled_in_pieces(given: Array, entries: Array, k: Any, end: Any, zero: Any) -> Any:
    """The sum over a long row, whose digits would get lost in single precision."""
    total = 0.0
    while k < end:
        piece = min(k + LONG, end)
        total += np.float64(_pulled(given, entries, k, piece, zero))
        k = piece
    return total


@device
def _pull_window(
    indptr: Array, entries: Array, k: Any, order: Array, given: Array, sums: Array, zero: Any
) -> None:
    """The sums of all rows of a window, which follow each other in `entries` from k on."""
    for at in range(order.size):
        v = np.uint64(order[at])
        end = k + (np.uint64(indptr[v + ONE]) - np.uint64(indptr[v]))
        if end - k > LONG:
            sums[v] = _pulled_in_pieces(given, entries, k, end, zero)
        else:
            sums[v] = _pulled(given, entries, k, end, zero)
        k = end


@device
def _pull_window_by_weight(
    indptr: Array,
    indices: Array,
    weights: Array,
    order: Array,
    given: Array,
    sums: Array,
    zero: Any,
) -> None:
    for at in range(order.size):
        v = np.uint64(order[at])
        k, end = np.uint64(indptr[v]), np.uint64(indptr[v + ONE])
        total = 0.0
        while end - k > LONG:
            total += np.float64(_pulled_by_weight(given, indices, weights, k, k + LONG, zero))
            k += LONG
        last = _pulled_by_weight(given, indices, weights, k, end, zero)
        sums[v] = total + np.float64(last)


@device
def _added_up(parts: Array) -> float:
    """The sum in float64, by four sums at once: each addition waits for the one before."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    whole = parts.size & ~3
    for i in range(0, whole, 4):
        a += np.float64(parts[i])
        b += np.float64(parts[i + 1])
        c += np.float64(parts[i + 2])
        d += np.float64(parts[i + 3])
    for i in range(whole, parts.size):
        a += np.float64(parts[i])
    return (a + b) + (c + d)


@device
def _score_window(sums: Array, scores: Array, share: Array, given: Array) -> float:
    """Take the new scores in `sums`; returns by how much they differ from the old ones."""
    for i in range(sums.size):
        score = sums[i]
        sums[i] = abs(score - scores[i])
        scores[i] = score
        given[i] = score * share[i]
    return _added_up(sums)


@device
def _jump_window(
    sums: Array, jumps: Jumps, first: int, damping: Any, mass: float, even: float
) -> None:
    """Add the jumps to what was pulled; `mass` is what vertices without arcs hold, times d."""
    rest = 1.0 - np.float64(damping)
    if jumps.jump.size == 0 and jumps.dangling.size == 0:
        constant = sums.dtype.type(mass * even + rest * even)
        for i in range(sums.size):
            sums[i] = damping * sums[i] + constant
        return
    for i in range(sums.size):
        jump = even if jumps.jump.size == 0 else np.float64(jumps.jump[first + i])
        after = jump if jumps.dangling.size == 0 else np.float64(jumps.dangling[first + i])
        sums[i] = damping * sums[i] + sums.dtype.type(mass * after + rest * jump)


@device
def _held(scores: Array, share: Array, buffer: Array, zero: Any) -> float:
    """What vertices without arcs hold.  Which they are nobody can foresee: so without a branch."""
    for i in range(scores.size):
        buffer[i] = select(share[i] == zero, scores[i], zero)
    return _added_up(buffer[: scores.size])


@device
def _sum(parts: Array) -> float:
    total = 0.0
    for i in range(parts.size):
        total += parts[i]
    return total


@kernel
def _iterate(
    team: Any,
    indptr: Array,
    indices: Array,
    weights: Array,
    share: Array,
    jumps: Jumps,
    plan: Plan,
    state: State,
    damping: Any,
    tol: float,
    most: int,
    loses: bool,
) -> None:
    n, windows = share.size, plan.starts.size - 1
    scores, buffer = state.scores, state.buffers[team.rank]
    zero = damping - damping  # in the type of the scores
    window = next_chunk(team, windows, 1)
    while window >= 0:
        first, last = plan.starts[window], plan.starts[window + 1]
        for v in range(first, last):
            state.given[0, v] = scores[v] * share[v]
        state.lost[0, window] = _held(scores[first:last], share[first:last], buffer, zero)
        window = next_chunk(team, windows, 1)
    if barrier(team):
        return
    for iteration in range(most):
        now, then = iteration & 1, (iteration + 1) & 1
        given, next_given = state.given[now], state.given[then]
        mass = np.float64(damping) * _sum(state.lost[now])
        window = next_chunk(team, windows, 1)
        while window >= 0:
            first, last = plan.starts[window], plan.starts[window + 1]
            sums, part = buffer[: last - first], share[first:last]
            rows, order = indptr[first : last + 1], plan.order[first:last]
            base, begin = plan.bases[window], plan.begins[window]
            if weights.size > 0:
                _pull_window_by_weight(rows, indices, weights, order, given, sums, zero)
            elif base == OWN:
                _pull_window(rows, indices, begin, order, given, sums, zero)
            elif base == COPIED:
                _pull_window(rows, plan.copied, begin, order, given, sums, zero)
            else:
                _pull_window(rows, plan.near, begin, order, given[base:], sums, zero)
            _jump_window(sums, jumps, first, damping, mass, 1.0 / n)
            own = scores[first:last]
            state.changes[now, window] = _score_window(sums, own, part, next_given[first:last])
            if loses:
                state.lost[then, window] = _held(own, part, buffer, zero)
            window = next_chunk(team, windows, 1)
        if barrier(team):
            return
        error = _sum(state.changes[now])
        if team.rank == 0:
            state.result[0], state.result[1] = iteration + 1, error
        if error < tol * n:
            return


def prepare(graph: Any, problem: Any, *, threads: int | None = None) -> Plan:
    view = problem.incoming
    name = "surfer plan" if view.data is None else "surfer plan, weighted"
    return graph.keep(name, lambda: make_plan(view, threads))


def make_plan(view: Any, threads: int | None) -> Plan:
    indptr, indices, n = view.indptr, _unsigned(view.indices), view.n
    part = indptr[1:].astype(np.int64) // TASK
    window = np.arange(n) // WINDOW
    new = np.flatnonzero((np.diff(part) != 0) | (np.diff(window) != 0)) + 1
    starts = np.concatenate([[0], new, [n]]).astype(np.int64)
    team = crew(threads, work=2 * (n + view.nnz))
    order, bases = np.empty(n, np.uint16), np.empty(starts.size - 1, np.int64)
    counts = np.empty((team.size, LENGTHS), np.int64)
    team.run(_by_length, indptr, indices, starts, order, bases, counts)
    if view.data is not None:  # weights lie beside the graph's own entries
        bases[:] = OWN
    begins, near, copied = _room(indptr[starts].astype(np.int64), bases)
    plan = Plan(
        starts, order, bases, begins, np.empty(near, np.uint16), np.empty(copied, indices.dtype)
    )
    if near or copied:
        team.run(_copy_entries, indptr, indices, plan)
    return plan


def _room(ends: Array, bases: Array) -> tuple[Array, int, int]:
    """Where each window's entries begin, and how many have 2 bytes and are copied whole."""
    begins, sizes = ends[:-1].astype(np.uint64), np.diff(ends)
    needed = []
    for chosen in (bases >= 0, bases == COPIED):
        places = np.cumsum(sizes[chosen])
        begins[chosen] = places - sizes[chosen]
        needed.append(int(places[-1]) if places.size else 0)
    return begins, needed[0], needed[1]


def _unsigned(indices: Array) -> Array:
    return indices.view(np.uint32 if indices.dtype == np.int32 else np.uint64)


def iterate(plan: Plan, problem: Any, *, threads: int | None = None) -> tuple[Array, int, float]:
    view, dtype = problem.incoming, problem.dtype
    n, windows = view.n, plan.starts.size - 1
    none = np.empty(0, dtype)
    jumps = Jumps(*(none if x is None else x for x in (problem.jump, problem.dangling)))
    team = crew(threads, work=(view.nnz + n) * min(problem.most, 8))
    state = State(
        problem.start.copy(), np.empty((2, n), dtype), np.zeros((2, windows)),
        np.zeros((2, windows)), np.array([0, math.inf]), np.empty((team.size, WINDOW), dtype),
    )  # fmt: skip
    weights = none if view.data is None else view.data.astype(dtype, copy=False)
    loses = bool((problem.share == 0).any())
    team.run(
        _iterate, view.indptr, _unsigned(view.indices), weights, problem.share, jumps, plan,
        state, dtype.type(problem.damping), problem.tol, problem.most, loses,
    )  # fmt: skip
    return state.scores, int(state.result[0]), float(state.result[1])
