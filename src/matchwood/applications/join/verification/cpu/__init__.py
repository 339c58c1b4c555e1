"""One pair of records: accept, reject, or solve exactly.  Called from kernels for many tiny pairs.

The default, `certified`, spends as little as it can:

1. equal elements are matched with each other (Jaccard distance is a metric, so that loses nothing),
2. tokens of a row that no column has bound what the row can weigh,
3. rows of similarities are made one by one, and the best of each takes the place of its bound,
   until their sum shows that the pair cannot reach what it needs,
4. the same for the best of each column,
5. a matching from the rows' choices, then the locally dominant one: a lower bound,
6. duals in one pass, two ways: an upper bound,
7. the exact solver, where the bounds leave it open or the exact weight is wanted.

All decisions compare integers.  The weight of a pair that is reported is the exact one where scores
are wanted, and a lower bound else.

rows.py makes similarities, matchings.py has the solvers.  `verify` takes a list of pairs.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.applications.join import Elements, Records
from matchwood.applications.join.similarity.cpu import EDIT, EQUAL, ONE
from matchwood.applications.join.verification.cpu.matchings import (
    BELOW,
    HALTED,
    NEVER,
    OPTIMAL,
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
    STREAMING,
    How,
    Scratch,
    best_edit,
    edit_row,
    edit_rows,
    exchange_sides,
    jaccard_row,
    keep_all,
    mine,
    open_table,
    reset_best,
    row_bounds,
    rows_fit_lanes,
    scratch,
    take_equal,
)
from matchwood.engines.cpu import (
    Team,
    advance,
    crew,
    device,
    expect,
    inlined,
    kernel,
    next_chunk,
    stopping,
)
from matchwood.engines.cpu.crew import INLINE_WORK

# A verdict is a sum of these, or one of the negative ones
ACCEPTED = 1  # the pair is reported
SOLVED = 2  # the exact solver ran
NO_ROOM = -1  # the edges of the pair do not fit; its weight is how many there are
STOPPED = -2  # the team stops

CHUNK = 64  # pairs that a thread takes at a time


@device
def least_weight(share: float, left: int, right: int) -> Any:
    """The least weight of a pair that is reported, for records of `left` and `right` elements.

    `share` is d / (1 + d) with d = delta - 1e-9.  Each of the at most min(left, right) similarities
    was rounded by half a unit, so a unit for each is given: no pair at the threshold is lost.  At
    least 1: records with nothing in common are no pair.
    """
    return max(np.int64(np.floor(share * (left + right) * ONE)) - min(left, right), 1)


@inlined
def verify_pair(
    team: Team,
    elements: Elements,
    left: np.ndarray,
    right: np.ndarray,
    need: int,
    how: How,
    space: Scratch,
) -> Any:
    """(verdict, weight) of the pair of records with these elements; `need` is its least weight."""
    if how.similarity == EDIT:
        equal, rows, columns = 0, left.size, right.size
        if how.method <= EARLY and min(rows, columns) * ONE < need:
            return 0, min(rows, columns) * ONE
        keep_all(left, right, space.sides)
    else:
        equal, rows, columns = take_equal(left, right, space.sides)
        if how.similarity == EQUAL or rows == 0 or columns == 0:
            return np.int64(equal * ONE >= need), equal * ONE
        if how.method <= EARLY and (equal + min(rows, columns)) * ONE < need:
            return 0, (equal + min(rows, columns)) * ONE
        if how.method == CERTIFIED and how.scores == 0 and equal * ONE >= need:
            return ACCEPTED, equal * ONE
    return _verify_rest(team, elements, (equal, rows, columns), need, how, space)


@device
def _verify_rest(
    team: Team,
    elements: Elements,
    counts: tuple[int, int, int],
    need: int,
    how: How,
    space: Scratch,
) -> Any:
    """(verdict, weight) of the elements that are not equal; `need` excludes the equal ones."""
    equal, rows, columns = counts
    add = equal * ONE
    if how.method <= EARLY:
        # no order matters here, and the bound of the rows is tightest when there are fewer of them
        if rows > columns:
            exchange_sides(space.sides, rows, columns)
            rows, columns = columns, rows
        verdict, weight = _bounded(team, elements, rows, columns, need - add, how, space)
    elif how.method == STREAMING:
        verdict, weight = _streamed(team, elements, rows, columns, need - add, how, space)
    else:
        verdict, weight = _halved(team, elements, rows, columns, need - add, how, space)
    return verdict, (weight if verdict == NO_ROOM else weight + add)


@inlined
def _make_rows(
    team: Team,
    elements: Elements,
    rows: int,
    columns: int,
    slack: int,
    how: How,
    space: Scratch,
    ordered: bool,
) -> Any:
    """Make rows until they fall short of their bounds by more than `slack` in all.

    Returns (0, the shortfall of all rows), or (STOPPED, 0).  With a shortfall above `slack` the
    other rows were not made.  The bounds are in `row_dual`; those of edit similarities are 1.
    """
    edges = space.edges
    reset_best(edges, rows, columns)
    if how.similarity == EDIT and rows_fit_lanes(elements, rows, columns, space):
        return 0, edit_rows(elements, rows, columns, slack, space)
    shift = open_table(elements, space.sides, rows, columns, space.table, how.similarity)
    lost = np.int64(0)
    for row in range(rows):
        if (columns > 256 or how.similarity == EDIT) and stopping(team):
            return STOPPED, 0
        if how.similarity == EDIT:
            count = edit_row(team, elements, row, columns, space)
        else:
            count = jaccard_row(elements, row, columns, shift, space, ordered)
        edges.starts[row + 1] = edges.starts[row] + count
        lost += space.solver.row_dual[row] - edges.row_best[row]
        if lost > slack:
            break
    return 0, lost


@inlined
def _edits_lose(
    team: Team, elements: Elements, rows: int, columns: int, slack: int, space: Scratch
) -> Any:
    """A lower bound on the shortfall of the rows' best edit similarities.  Ends at the first row
    that falls short by more than is left of `slack`."""
    lost = np.int64(0)
    for row in range(rows):
        if stopping(team):
            return STOPPED, 0
        best = best_edit(team, elements, row, columns, max(ONE - (slack - lost), 1), space)
        if best < 0 and ONE - (slack - lost) > 0:
            return 0, slack + 1
        lost += ONE - max(best, 0)
        if lost > slack:
            break
    return 0, lost


@inlined
def _bounded(
    team: Team, elements: Elements, rows: int, columns: int, need: int, how: How, space: Scratch
) -> Any:
    """(verdict, weight) by the methods certified, exact and early."""
    edges, solver = space.edges, space.solver
    most = rows * ONE
    if how.method == CERTIFIED and how.similarity != EDIT and rows * columns > COMPARED_PAIRS:
        most = row_bounds(elements, rows, columns, space)
        if most < need:
            return 0, most
    else:
        for row in range(rows):
            solver.row_dual[row] = ONE
    slack = FAR if how.method == EXACT else most - need
    if (
        how.similarity == EDIT
        and how.method != EXACT
        and not rows_fit_lanes(elements, rows, columns, space)
    ):
        state, lost = _edits_lose(team, elements, rows, columns, slack, space)
        if state == STOPPED or lost > slack:
            return state, most - lost
    state, lost = _make_rows(team, elements, rows, columns, slack, how, space, False)
    if state == STOPPED or lost > slack:
        return state, most - lost
    upper = most - lost
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
def _halved(
    team: Team, elements: Elements, rows: int, columns: int, need: int, how: How, space: Scratch
) -> Any:
    """(verdict, weight) by greedy and dominant, which reach half of the optimum."""
    edges, solver = space.edges, space.solver
    state, _ = _make_rows(team, elements, rows, columns, FAR, how, space, True)
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
        if (columns > 256 or how.similarity == EDIT) and stopping(team):
            return STOPPED, 0
        edges.starts[row] = 0
        if how.similarity == EDIT:
            count = edit_row(team, elements, row, columns, space)
        else:
            count = jaccard_row(elements, row, columns, shift, space, True)
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
    elements: Elements,
    left: Records,
    right: Records,
    pairs: np.ndarray,  # int64[count, 2]
    share: float,
    how: How,
    space: Scratch,
    verdicts: np.ndarray,  # int8[count]
    weights: np.ndarray,  # int64[count]
) -> None:
    """Write verdict and weight of each pair (left record, right record)."""
    own = mine(space, team.rank)
    if team.rank == 0:
        expect(team, pairs.shape[0])
    while True:
        first = next_chunk(team, pairs.shape[0], CHUNK)
        if first < 0:
            break
        last = min(first + CHUNK, pairs.shape[0])
        for k in range(first, last):
            i, j = pairs[k, 0], pairs[k, 1]
            r = left.elements[left.starts[i] : left.starts[i + 1]]
            s = right.elements[right.starts[j] : right.starts[j + 1]]
            need = least_weight(share, r.size, s.size)
            verdict, weight = verify_pair(team, elements, r, s, need, how, own)
            verdicts[k] = verdict
            weights[k] = weight
        advance(team, last - first)


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
    team.run(verify_pairs, elements, left, right, pairs, share, how, space, verdicts, weights)
    while (large := np.flatnonzero(verdicts == NO_ROOM)).size:
        space = scratch(elements, left, right, how, 1, edges=int(weights[large].max()))
        again, found = verdicts[large], weights[large]
        crew(1, work=INLINE_WORK).run(  # large pairs: Ctrl-C must take effect
            verify_pairs, elements, left, right, pairs[large], share, how, space, again, found
        )
        verdicts[large], weights[large] = again, found
    return verdicts, weights
