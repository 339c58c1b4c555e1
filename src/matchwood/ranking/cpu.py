"""PageRank on a team of threads.  The rule: __init__.py.  Ranks use its steps, too (ranks/cpu.py).

An iteration is one pass over the rows and one barrier.  A row adds up what its neighbours give,
``given[i] = x[i] * share[i]``, and writes its own x and its own word of the next `given`; so no two
members write the same word, and there are two arrays `given` that take turns.

A member that is free takes the next window.  It first adds up all rows of the window into its own
buffer; then it turns the sums into scores, which runs on vector registers.

The old scores are needed for the change alone.  Where only the last change is asked for (tol=0), a
quarter of an iteration's bytes stays unread: scores are not touched before the last but one.

Windows depend on the graph alone.  Each adds up its own changes, and what its vertices without arcs
hold; all members then add up the windows in their order.  So the sums have the same bits at any
number of threads.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import barrier, crew, device, expanded, kernel, next_chunk
from matchwood.engines.cpu.hints import select

Array = np.ndarray[Any, Any]

WINDOW = 4096  # vertices; a buffer of 16 or 32 KiB stays in the first-level cache
TASK = 1 << 16  # entries of a window, about: some 40 us of work
ROWS_PER_CHANGE = 8  # on average, between two rows of unlike length: then rows are not sorted
LENGTHS = 1024  # entries; rows of this length and longer are sorted as equally long
NEAR = 1 << 16  # vertices; where the neighbours of a window lie within these, each takes 2 bytes
NEAR_PART = 4  # one entry in NEAR_PART must lie in near rows, or all are copied whole
OWN = -1  # instead of a base: the window reads the graph's own indices
LONG = np.uint64(1024)  # entries; longer rows are added up in pieces of this length
ZERO, ONE, TWO, THREE, FOUR = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
FIVE, SIX, SEVEN, EIGHT = np.uint64(5), np.uint64(6), np.uint64(7), np.uint64(8)


# Windows.  Rows are cut into windows: vertices that follow each other, WINDOW at most, with about
# TASK entries.  Where lengths of rows change often, the rows of a window are visited by length,
# since a row's end that the processor does not predict costs as much as 20 entries.
#
# Reading the entries is the limit, so a window's are read as they lie in memory, one after the
# other, and are short where they can be.  A window whose neighbours all lie within 2^16 vertices
# has a copy of 2 bytes an entry, counted from the first of them.  Any other window reads the graph
# itself where it is visited as it lies.  Where it is visited by length it has a copy of its entries
# in that order. Of this copy too, rows that do not leave the 2^16 vertices around the window have 2
# bytes an entry: in a good order these are nearly all rows, and a hub in the window concerns the
# hub alone.


class Plan(NamedTuple):
    """Window w has the vertices starts[w] .. starts[w + 1] - 1, visited in the order of `order`.

    Where ``bases[w]`` is OWN, its entries begin at ``begins[w]`` of the graph's own indices.  Else
    the rows order[starts[w] : cuts[w]] have theirs at ``begins[w]`` of `near`, where they count
    from ``bases[w]``, and the rows behind them at ``far_begins[w]`` of `copied`.
    """

    starts: Any
    order: Any  # uint16: the vertex less the first of its window
    bases: Any
    cuts: Any
    begins: Any  # uint64
    far_begins: Any  # uint64
    near: Any  # uint16
    copied: Any  # of the type of the graph's indices


class WindowShapes(NamedTuple):
    """What `_by_length` finds out of each window; as in `Plan`."""

    order: Any
    bases: Any
    cuts: Any
    sizes: Any  # entries in rows that are near


@kernel
def _by_length(
    team: Any, indptr: Array, indices: Array, starts: Array, found: WindowShapes, counts: Array,
    far: Array,
) -> None:  # fmt: skip
    """Sort the vertices of each window by the length of their rows, near ones first; find its base.

    counts[member] and far[member] are a member's own.
    """
    mine, is_far = counts[team.me], far[team.me]
    window = next_chunk(team, starts.size - 1, 1)
    while window >= 0:
        first, last = starts[window], starts[window + 1]
        changes, before = -1, np.int64(-1)  # the first row changes nothing
        for v in range(first, last):
            length: Any = np.int64(indptr[v + 1]) - np.int64(indptr[v])
            changes += length != before
            before = length
            is_far[v - first] = 0
        even = changes * ROWS_PER_CHANGE <= last - first
        base, cut = _base(indices[indptr[first] : indptr[last]]), last
        near: Any = 0
        if base >= 0:
            near = np.int64(indptr[last]) - np.int64(indptr[first])
        elif not even:
            base = max(first + WINDOW // 2 - NEAR // 2, 0)
            cut, near = _far_rows(indptr, indices, first, last, base, is_far)
        found.bases[window], found.cuts[window], found.sizes[window] = base, cut, near
        if even:
            for v in range(first, last):
                found.order[v] = v - first
        else:
            _sort_rows(indptr, first, last, is_far, mine, found.order)
        window = next_chunk(team, starts.size - 1, 1)


@device
def _far_rows(
    indptr: Array, indices: Array, first: int, last: int, base: int, is_far: Array
) -> Any:  # fmt: skip
    """Mark the rows with entries outside of base .. base + NEAR.

    Returns where they begin when they are last, and the entries of the rows before them.
    """
    cut, near = first, 0
    for v in range(first, last):
        k, end = indptr[v], indptr[v + 1]
        while k < end and np.uint64(np.int64(indices[k]) - base) < np.uint64(NEAR):
            k += 1
        is_far[v - first] = k < end
        cut += k == end
        near += (k == end) * (np.int64(end) - np.int64(indptr[v]))
    if near * NEAR_PART < np.int64(indptr[last]) - np.int64(indptr[first]):
        is_far[: last - first] = 1
        return first, 0
    return cut, near


@device
def _sort_rows(
    indptr: Array, first: int, last: int, is_far: Array, counts: Array, order: Array
) -> None:  # fmt: skip
    """Sort the rows of a window by length; counting keeps the order of rows of one length."""
    counts[:] = 0
    for v in range(first, last):
        length = min(np.int64(indptr[v + 1]) - np.int64(indptr[v]), LENGTHS - 1)
        counts[is_far[v - first] * LENGTHS + length] += 1
    at = first
    for kind in range(2 * LENGTHS):
        count = counts[kind]
        counts[kind] = at
        at += count
    for v in range(first, last):
        length = min(np.int64(indptr[v + 1]) - np.int64(indptr[v]), LENGTHS - 1)
        kind = is_far[v - first] * LENGTHS + length
        order[counts[kind]] = v - first
        counts[kind] += 1


@device
def _base(entries: Array) -> Any:
    """The smallest of the vertices where all are within NEAR of it, else OWN."""
    if entries.size == 0:
        return OWN
    least, most = entries[0], entries[0]
    for k in range(entries.size):
        least, most = min(least, entries[k]), max(most, entries[k])
    return np.int64(least) if np.int64(most) - np.int64(least) < NEAR else OWN


@kernel
def _copy_entries(team: Any, indptr: Array, indices: Array, plan: Plan) -> None:
    """Write the entries of windows that read a copy, row after row as they are visited."""
    starts, windows = plan.starts, plan.starts.size - 1
    window = next_chunk(team, windows, 1)
    while window >= 0:
        base, at, far_at = plan.bases[window], plan.begins[window], plan.far_begins[window]
        if base != OWN:
            first, cut, last = starts[window], plan.cuts[window], starts[window + 1]
            for i in range(first, cut):
                v = first + plan.order[i]
                for k in range(indptr[v], indptr[v + 1]):
                    plan.near[at] = np.int64(indices[k]) - base
                    at += ONE
            for i in range(cut, last):
                v = first + plan.order[i]
                for k in range(indptr[v], indptr[v + 1]):
                    plan.copied[far_at] = indices[k]
                    far_at += ONE
        window = next_chunk(team, windows, 1)


@device
def pulled(given: Array, indices: Array, k: Any, end: Any, zero: Any) -> Any:
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
def pulled_in_pieces(given: Array, entries: Array, k: Any, end: Any, zero: Any) -> Any:
    """The sum over a long row, whose digits would get lost in single precision."""
    total = 0.0
    while k < end:
        piece = min(k + LONG, end)
        total += np.float64(pulled(given, entries, k, piece, zero))
        k = piece
    return total


@expanded
def pulled_short(given: Array, entries: Array, k: Any, length: Any, zero: Any) -> Any:
    """The sum over a row of four entries at most."""
    if length == FOUR:
        a, b = given[entries[k]], given[entries[k + ONE]]
        c, d = given[entries[k + TWO]], given[entries[k + THREE]]
        return (a + b) + (c + d)
    if length == ONE:
        return given[entries[k]]
    if length == ZERO:
        return zero
    both = given[entries[k]] + given[entries[k + ONE]]
    return both if length == TWO else both + given[entries[k + TWO]]


@device
def _pull_rows(
    indptr: Array, entries: Array, k: Any, order: Array, given: Array, sums: Array, zero: Any
) -> None:
    """The sums of all rows of a window, which follow each other in `entries` from k on."""
    for at in range(order.size):
        v = np.uint64(order[at])
        end = k + (np.uint64(indptr[v + ONE]) - np.uint64(indptr[v]))
        length = end - k
        if length <= FOUR:  # most rows of most graphs: as pulled has it, without its branches
            sums[v] = pulled_short(given, entries, k, length, zero)
        elif length > LONG:
            sums[v] = pulled_in_pieces(given, entries, k, end, zero)
        else:
            sums[v] = pulled(given, entries, k, end, zero)
        k = end


@device
def _pull_rows_by_weight(
    indptr: Array, indices: Array, weights: Array, order: Array, given: Array, sums: Array,
    zero: Any,
) -> None:  # fmt: skip
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
def pull_window(
    indptr: Array, indices: Array, weights: Array, plan: Plan, window: int, given: Array,
    sums: Array, zero: Any,
) -> None:  # fmt: skip
    """The sums of all rows of a window; `sums` has a word for each of them."""
    first, last = plan.starts[window], plan.starts[window + 1]
    rows, order = indptr[first : last + 1], plan.order[first:last]
    base, begin = plan.bases[window], plan.begins[window]
    if weights.size > 0:
        _pull_rows_by_weight(rows, indices, weights, order, given, sums, zero)
    elif base == OWN:
        _pull_rows(rows, indices, begin, order, given, sums, zero)
    else:
        cut, far_begin = plan.cuts[window] - first, plan.far_begins[window]
        _pull_rows(rows, plan.near, begin, order[:cut], given[base:], sums, zero)
        _pull_rows(rows, plan.copied, far_begin, order[cut:], given, sums, zero)


def plan_of(indptr: Array, columns: Array, weights: Array | None, threads: int | None) -> Plan:
    """The windows of a matrix; with weights they read its own entries, beside which those lie."""
    indices, n = as_unsigned(columns), indptr.size - 1
    part = indptr[1:].astype(np.int64) // TASK
    window = np.arange(n) // WINDOW
    new = (part[1:] != part[:-1]) | (window[1:] != window[:-1])
    starts = np.concatenate([[0], new.nonzero()[0] + 1, [n]]).astype(np.int64)
    team = crew(threads, work=2 * (n + indices.size))
    shapes = (np.empty(starts.size - 1, np.int64) for _ in range(3))
    found = WindowShapes(np.empty(n, np.uint16), *shapes)
    counts, far = (
        np.empty((team.size, 2 * LENGTHS), np.int64),
        np.empty((team.size, WINDOW), np.int64),
    )
    team.run(_by_length, indptr, indices, starts, found, counts, far)
    if weights is not None:
        found.bases[:] = OWN
    ends = indptr[starts].astype(np.int64)
    read_there = found.bases == OWN
    near = np.where(read_there, 0, found.sizes)
    copied = np.where(read_there, 0, ends[1:] - ends[:-1] - near)
    begins = np.where(read_there, ends[:-1], near.cumsum() - near).astype(np.uint64)
    far_begins = (copied.cumsum() - copied).astype(np.uint64)
    plan = Plan(
        starts, found.order, found.bases, found.cuts, begins, far_begins,
        np.empty(near.sum(), np.uint16), np.empty(copied.sum(), indices.dtype),
    )  # fmt: skip
    if not read_there.all():
        team.run(_copy_entries, indptr, indices, plan)
    return plan


def as_unsigned(indices: Array) -> Array:
    """The same columns as a type that needs no test for indices from the end."""
    return indices.view(np.uint32 if indices.dtype.itemsize == 4 else np.uint64)


# Scores out of what was pulled: the jumps, the change, and what vertices without arcs hold.
#
# Each function works on a window of vertices whose sums lie in a buffer.


class Jumps(NamedTuple):
    """Where jumps lead: arrays, empty where it is the same everywhere."""

    jump: Any
    dangling: Any


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
def score_window(sums: Array, scores: Array, share: Array, given: Array) -> float:
    """Take the new scores in `sums`; returns by how much they differ from the old ones."""
    for i in range(sums.size):
        score = sums[i]
        sums[i] = abs(score - scores[i])
        scores[i] = score
        given[i] = score * share[i]
    return _added_up(sums)


@device
def hand_on(sums: Array, share: Array, given: Array) -> None:
    """Give the new scores in `sums` on to the next iteration, without keeping them."""
    for i in range(sums.size):
        given[i] = sums[i] * share[i]


@device
def jump_window(
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
def held(scores: Array, share: Array, buffer: Array, zero: Any) -> float:
    """What vertices without arcs hold.  No branch: the processor could not predict it."""
    for i in range(scores.size):
        buffer[i] = select(share[i] == zero, scores[i], zero)
    return _added_up(buffer[: scores.size])


@device
def total(parts: Array) -> float:
    """The sum of the windows' sums, in their order."""
    found = 0.0
    for i in range(parts.size):
        found += parts[i]
    return found


class State(NamedTuple):
    """What changes: scores, what each vertex gives (two rows, in turn), sums of the windows."""

    scores: Any
    given: Any
    changes: Any  # (2, windows) float64
    lost: Any  # (2, windows) float64
    result: Any  # iterations, error
    buffers: Any  # (members, WINDOW)


@kernel
def _iterate(
    team: Any, indptr: Array, indices: Array, weights: Array, share: Array, jumps: Jumps,
    plan: Plan, state: State, damping: Any, tol: float, most: int, loses: bool,
) -> None:  # fmt: skip
    n, windows = share.size, plan.starts.size - 1
    scores, buffer = state.scores, state.buffers[team.me]
    zero = damping - damping  # in the type of the scores
    window = next_chunk(team, windows, 1)
    while window >= 0:
        first, last = plan.starts[window], plan.starts[window + 1]
        for v in range(first, last):
            state.given[0, v] = scores[v] * share[v]
        state.lost[0, window] = held(scores[first:last], share[first:last], buffer, zero)
        window = next_chunk(team, windows, 1)
    if barrier(team):
        return
    for iteration in range(most):
        now, then = iteration & 1, (iteration + 1) & 1
        asked = tol > 0 or loses or iteration >= most - 2  # else these scores are not needed
        given, next_given = state.given[now], state.given[then]
        mass = np.float64(damping) * total(state.lost[now])
        window = next_chunk(team, windows, 1)
        while window >= 0:
            first, last = plan.starts[window], plan.starts[window + 1]
            sums, part = buffer[: last - first], share[first:last]
            pull_window(indptr, indices, weights, plan, window, given, sums, zero)
            jump_window(sums, jumps, first, damping, mass, 1.0 / n)
            own = scores[first:last]
            if asked:
                state.changes[now, window] = score_window(sums, own, part, next_given[first:last])
            else:
                hand_on(sums, part, next_given[first:last])
            if loses:
                state.lost[then, window] = held(own, part, buffer, zero)
            window = next_chunk(team, windows, 1)
        if barrier(team):
            return
        if asked:
            error = total(state.changes[now])
            if team.me == 0:
                state.result[0], state.result[1] = iteration + 1, error
            if error < tol:
                return


def prepare(graph: Any, problem: Any, *, threads: int | None = None) -> Plan:
    view = problem.incoming
    kept = "surfer plan" if view.data is None else "surfer plan, weighted"
    return graph.keep(kept, lambda: plan_of(view.indptr, view.indices, view.data, threads))


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
    loses = not problem.share.all()
    team.run(
        _iterate, view.indptr, as_unsigned(view.indices), weights, problem.share, jumps, plan,
        state, dtype.type(problem.damping), problem.tol, problem.most, loses,
    )  # fmt: skip
    return state.scores, int(state.result[0]), float(state.result[1])
