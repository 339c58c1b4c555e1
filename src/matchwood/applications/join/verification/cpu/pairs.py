"""Pairs of records, verified by kernels that join kernels call.

What verifies a pair is a kernel of its own, and a call of another kernel's entry by its address:
there is one for token sets, one for texts, and one for the methods that stay below the optimum. So
a join compiles the one that it needs, all join kernels share it, and its many arrays travel as an
address.  Question and answer are words of the member that calls (`Verifier.asked`).
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np

from matchwood.applications.join import Elements, Records
from matchwood.applications.join.similarity.cpu import EDIT, EQUAL, ONE
from matchwood.applications.join.verification.cpu import (
    ACCEPTED,
    BELOW,
    HALTED,
    NEVER,
    NO_ROOM,
    OPTIMAL,
    SOLVED,
    clear_duals,
    dominant,
    greedy,
    local_ratio_bound,
    match_choices,
    solve,
    stream_edge,
    streamed_bound,
    unwind,
)
from matchwood.applications.join.verification.cpu.rows import (
    CERTIFIED,
    COMPARED_PAIRS,
    DOMINANT,
    EARLY,
    EXACT,
    FAR,
    STOPPED,
    STREAMING,
    How,
    Scratch,
    edit_rows,
    edits_lose,
    exchange_sides,
    keep_all,
    least_weight,
    make_rows,
    mine,
    open_table,
    reset_best,
    row_bounds,
    rows_fit_lanes,
    scratch,
    take_equal,
    text_row,
    token_row,
)
from matchwood.engines.cpu import (
    Team,
    advance,
    crew,
    device,
    expect,
    fail,
    inlined,
    kernel,
    next_chunk,
)
from matchwood.engines.cpu.crew import INLINE_WORK
from matchwood.engines.cpu.mailboxes import FINE, SLOTS, call_at, words_at
from matchwood.engines.cpu.native import entered

CHUNK = 64  # pairs that a thread takes at a time
TEAM_SLOT = 2  # of a kernel's arguments: the address of its team's words
# A question: rows of both sides, whether the right one comes first, the least weight; the answer
LEFT, RIGHT, SWAPPED, NEED, VERDICT, WEIGHT, ASKED = 0, 1, 2, 3, 4, 5, 32


class Verifier(NamedTuple):
    """A kernel that verifies pairs."""

    entry: int  # address of its machine code
    slots: np.ndarray  # int64: address of each member's arguments
    asked: np.ndarray  # int64[members, ASKED]


@device
def verify_pair(
    team: Team, left: int, right: int, swapped: bool, need: int, verifier: Verifier
) -> tuple[int, int]:
    """(verdict, weight) of a pair of records; `need` is its least weight."""
    asked, address = verifier.asked[team.me], verifier.slots[team.me]
    asked[LEFT], asked[RIGHT], asked[SWAPPED], asked[NEED] = left, right, swapped, need
    words_at(address, TEAM_SLOT + 1)[TEAM_SLOT] = team.words.ctypes.data  # it stops as we do
    status, _ = call_at(verifier.entry, address, team.me)
    if status not in FINE:  # it raised an exception
        fail(team, 1, status)
        return STOPPED, 0
    return asked[VERDICT], asked[WEIGHT]


class Pairs(NamedTuple):
    """What the kernel of one member reads and writes for any pair."""

    elements: Elements
    left: Records
    right: Records
    how: How
    space: Scratch
    asked: np.ndarray


@inlined
def _answer(team: Team, a: Pairs, decide: Any) -> None:
    words, left, right = a.asked, a.left, a.right
    i, j = words[LEFT], words[RIGHT]
    r = left.elements[left.starts[i] : left.starts[i + 1]]
    s = right.elements[right.starts[j] : right.starts[j + 1]]
    swapped = words[SWAPPED] != 0
    first, second = s if swapped else r, r if swapped else s
    words[VERDICT], words[WEIGHT] = decide(
        team, a.elements, first, second, words[NEED], a.how, a.space
    )


@kernel
def verify_tokens(team: Team, pairs: Pairs) -> None:
    """Answer for "jaccard" and "equal" by the methods certified, exact and early."""
    _answer(team, pairs, _by_tokens)


@kernel
def verify_texts(team: Team, pairs: Pairs) -> None:
    """Answer for the edit similarities by the methods certified, exact and early."""
    _answer(team, pairs, _by_texts)


@kernel
def verify_halved(team: Team, pairs: Pairs) -> None:
    """Answer by the methods greedy, dominant and streaming."""
    _answer(team, pairs, _by_halves)


@inlined
def _by_tokens(
    team: Team, elements: Elements, left: Any, right: Any, need: int, how: How, space: Scratch
) -> Any:
    equal, rows, columns = take_equal(left, right, space.sides)
    if how.similarity == EQUAL or rows == 0 or columns == 0:
        return np.int64(equal * ONE >= need), equal * ONE
    if (equal + min(rows, columns)) * ONE < need:
        return 0, (equal + min(rows, columns)) * ONE
    if how.method == CERTIFIED and how.scores == 0 and equal * ONE >= need:
        return ACCEPTED, equal * ONE
    add = equal * ONE
    verdict, weight = _token_rest(team, elements, rows, columns, need - add, how, space)
    return verdict, (weight if verdict == NO_ROOM else weight + add)


@inlined
def _token_rest(
    team: Team, elements: Elements, rows: int, columns: int, need: int, how: How, space: Scratch
) -> Any:
    """(verdict, weight) of the elements that are not equal."""
    # no order matters here, and the bound of the rows is tightest when there are fewer of them
    if rows > columns:
        exchange_sides(space.sides, rows, columns)
        rows, columns = columns, rows
    most = rows * ONE
    if how.method == CERTIFIED and rows * columns > COMPARED_PAIRS:
        most = row_bounds(elements, rows, columns, space)
        if most < need:
            return 0, most
    else:
        for row in range(rows):
            space.solver.row_dual[row] = ONE
    slack = FAR if how.method == EXACT else most - need
    shift = open_table(elements, space.sides, rows, columns, space.table, how.similarity)
    state, lost = make_rows(team, elements, rows, columns, shift, slack, space, False, token_row)
    if state == STOPPED or lost > slack:
        return state, most - lost
    return _decided(team, rows, columns, need, most - lost, how, space)


@inlined
def _by_texts(
    team: Team, elements: Elements, left: Any, right: Any, need: int, how: How, space: Scratch
) -> Any:
    rows, columns = left.size, right.size
    if min(rows, columns) * ONE < need:
        return 0, min(rows, columns) * ONE
    keep_all(left, right, space.sides)
    if rows > columns:
        exchange_sides(space.sides, rows, columns)
        rows, columns = columns, rows
    most = rows * ONE
    slack = FAR if how.method == EXACT else most - need
    in_lanes = rows_fit_lanes(elements, rows, columns, space)
    if how.method != EXACT and not in_lanes:
        state, lost = edits_lose(team, elements, rows, columns, slack, space)
        if state == STOPPED or lost > slack:
            return state, most - lost
    if in_lanes:
        reset_best(space.edges, rows, columns)
        lost = edit_rows(elements, rows, columns, slack, space)
    else:
        for row in range(rows):
            space.solver.row_dual[row] = ONE
        state, lost = make_rows(team, elements, rows, columns, -1, slack, space, False, text_row)
        if state == STOPPED:
            return state, most - lost
    if lost > slack:
        return 0, most - lost
    return _decided(team, rows, columns, need, most - lost, how, space)


@inlined
def _decided(
    team: Team, rows: int, columns: int, need: int, upper: Any, how: How, space: Scratch
) -> Any:
    """(verdict, weight) once all rows are made; no matching weighs more than `upper`."""
    edges, solver = space.edges, space.solver
    if how.method == CERTIFIED:
        best = np.int64(0)
        for column in range(columns):
            best += edges.column_best[column]
        upper = min(upper, best)
        if upper < need:
            return 0, upper
    if edges.starts[rows] > edges.columns.size:
        return NO_ROOM, edges.starts[rows]
    lower = match_choices(edges, rows, columns, solver)
    if how.method == CERTIFIED:
        return _certified(team, rows, columns, need, (lower, upper), how, space)
    bounds = (need, need) if how.method == EARLY else (NEVER, FAR)
    ended, weight = solve(team, edges, rows, columns, solver, bounds)
    if ended == HALTED:
        return STOPPED, 0
    return SOLVED + np.int64(weight >= need and ended != BELOW), weight


@inlined
def _certified(
    team: Team,
    rows: int,
    columns: int,
    need: int,
    bounds: tuple[int, int],
    how: How,
    space: Scratch,
) -> Any:
    """The verdict, from a lower and an upper bound, or by the exact solver."""
    edges, solver = space.edges, space.solver
    lower, upper = bounds
    if lower == upper or (lower >= need and how.scores == 0):
        return np.int64(lower >= need), lower
    if lower < need:
        halved = dominant(team, edges, rows, columns, solver)
        if halved < 0:
            return STOPPED, 0
        lower = max(lower, halved)
        if lower == upper or (lower >= need and how.scores == 0):
            return np.int64(lower >= need), lower
        if lower < need:
            upper = min(upper, local_ratio_bound(edges, rows, columns, solver, True))
            if upper >= need:
                upper = min(upper, local_ratio_bound(edges, rows, columns, solver, False))
            if upper < need:
                return 0, upper
        match_choices(edges, rows, columns, solver)
    low = NEVER if lower >= need else need
    ended, weight = solve(team, edges, rows, columns, solver, (low, FAR))
    if ended == HALTED:
        return STOPPED, 0
    return SOLVED + np.int64(ended == OPTIMAL and weight >= need), weight


@inlined
def _by_halves(
    team: Team, elements: Elements, left: Any, right: Any, need: int, how: How, space: Scratch
) -> Any:
    if how.similarity == EDIT:
        equal, rows, columns = 0, left.size, right.size
        keep_all(left, right, space.sides)
    else:
        equal, rows, columns = take_equal(left, right, space.sides)
        if how.similarity == EQUAL or rows == 0 or columns == 0:
            return np.int64(equal * ONE >= need), equal * ONE
    add = equal * ONE
    if how.method == STREAMING:
        verdict, weight = _streamed(team, elements, rows, columns, need - add, how, space)
    else:
        verdict, weight = _halved(team, elements, rows, columns, need - add, how, space)
    return verdict, (weight if verdict == NO_ROOM else weight + add)


@inlined
def _halved(
    team: Team, elements: Elements, rows: int, columns: int, need: int, how: How, space: Scratch
) -> Any:
    """(verdict, weight) by greedy and dominant, which reach half of the optimum."""
    edges, solver = space.edges, space.solver
    shift = open_table(elements, space.sides, rows, columns, space.table, how.similarity)
    state, _ = 0, np.int64(0)
    if how.similarity != EDIT:
        state, _ = make_rows(team, elements, rows, columns, shift, FAR, space, True, token_row)
    elif rows_fit_lanes(elements, rows, columns, space):
        reset_best(edges, rows, columns)
        edit_rows(elements, rows, columns, FAR, space)
    else:
        state, _ = make_rows(team, elements, rows, columns, shift, FAR, space, True, text_row)
    if state == STOPPED:
        return STOPPED, 0
    if edges.starts[rows] > edges.columns.size:
        return NO_ROOM, edges.starts[rows]
    if how.method == DOMINANT:
        weight = dominant(team, edges, rows, columns, solver)
    else:
        weight = greedy(team, edges, rows, columns, solver)
    if weight < 0:
        return STOPPED, 0
    if how.bound != 0:
        weight = min(2 * weight, min(rows, columns) * ONE)
    return np.int64(weight >= need), weight


@inlined
def _streamed(
    team: Team, elements: Elements, rows: int, columns: int, need: int, how: How, space: Scratch
) -> Any:
    """(verdict, weight) by streaming: a row of edges is dropped as soon as it was read."""
    edges, solver, stack = space.edges, space.solver, space.stack
    reset_best(edges, rows, columns)
    clear_duals(rows, columns, solver)
    shift = open_table(elements, space.sides, rows, columns, space.table, how.similarity)
    height = 0
    for row in range(rows):
        edges.starts[row] = 0
        if how.similarity == EDIT:
            count = text_row(team, elements, row, columns, shift, space, True)
        else:
            count = token_row(team, elements, row, columns, shift, space, True)
        if count == STOPPED:
            return STOPPED, 0
        for k in range(count):
            column = edges.columns[k]
            height = stream_edge(row, column, edges.weights[k], solver, stack, height)
    if height > stack.rows.size:
        return NO_ROOM, height
    if how.bound != 0:
        weight = min(streamed_bound(rows, columns, solver), min(rows, columns) * ONE)
    else:
        weight = unwind(stack, height, rows, columns, solver)
    return np.int64(weight >= need), weight


# A list of pairs


@kernel
def verify_pairs(
    team: Team,
    left: Records,
    right: Records,
    pairs: np.ndarray,  # int64[count, 2]
    share: float,
    verifier: Verifier,
    verdicts: np.ndarray,  # int8[count]
    weights: np.ndarray,  # int64[count]
) -> None:
    """Write verdict and weight of each pair (left record, right record)."""
    if team.me == 0:
        expect(team, pairs.shape[0])
    while True:
        first = next_chunk(team, pairs.shape[0], CHUNK)
        if first < 0:
            break
        last = min(first + CHUNK, pairs.shape[0])
        for k in range(first, last):
            i, j = pairs[k, 0], pairs[k, 1]
            sizes = left.starts[i + 1] - left.starts[i], right.starts[j + 1] - right.starts[j]
            need = least_weight(share, sizes[0], sizes[1])
            verdicts[k], weights[k] = verify_pair(team, i, j, False, need, verifier)
        advance(team, last - first)


def verifier_of(
    elements: Elements, left: Records, right: Records, how: How, spaces: Scratch
) -> tuple[Verifier, Any]:
    """What verifies pairs of these records for a team, and what must live as long as it does."""
    kernel = verify_halved
    if how.method <= EARLY:
        kernel = verify_texts if how.similarity == EDIT else verify_tokens
    members = spaces.sides.rows.shape[0]
    asked, slots, records = np.zeros((members, ASKED), np.int64), np.empty(members, np.int64), []
    for me in range(members):
        given = (Pairs(elements, left, right, how, mine(spaces, me), asked[me]),)
        entry, record = entered(kernel, members, given)
        entry.fill(record, given)
        slots[me] = ctypes.addressof(record) + 8 * SLOTS
        records.append((record, given))
    return Verifier(entry.address, slots, asked), records


def verify(
    elements: Elements,
    left: Records,
    right: Records,
    pairs: np.ndarray,
    share: float,
    how: How,
    *,
    threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Verdict and weight of each pair.  Pairs that did not fit are verified again by one thread."""
    pairs = np.ascontiguousarray(pairs, np.int64)
    verdicts = np.zeros(len(pairs), np.int8)
    weights = np.zeros(len(pairs), np.int64)
    team = crew(threads, work=max(left.elements.size + right.elements.size, INLINE_WORK))
    space = scratch(elements, left, right, how, team.size)
    made = verifier_of(elements, left, right, how, space)
    team.run(verify_pairs, left, right, pairs, share, made[0], verdicts, weights)
    while (large := np.flatnonzero(verdicts == NO_ROOM)).size:
        space = scratch(elements, left, right, how, 1, edges=int(weights[large].max()))
        made = verifier_of(elements, left, right, how, space)
        again, found = verdicts[large], weights[large]
        crew(1, work=INLINE_WORK).run(  # large pairs: Ctrl-C must take effect
            verify_pairs, left, right, pairs[large], share, made[0], again, found
        )
        verdicts[large], weights[large] = again, found
    return verdicts, weights
