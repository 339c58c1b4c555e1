"""Elements: the equations left of many rows.  Joining them, solving for their ends, expanding.

An element stands for block rows s..e with blocks of P x P (P = 1: plain rows).  It is 2 P
equations in X[s-1], X[s], X[e], X[e+1], stored as (2 P, 4 P + K + 2): coefficients of the left two,
of the right two, K right-hand sides, and the largest size of the row so far.  The last column is
for the row numbers of the pivots, which `repeat` uses on the way down.

Two neighbours share X[e] and X[e+1].  These occur nowhere else, so they can be eliminated from the
4 P equations with row pivoting, which leaves 2 P: the joined element.  GROUP elements at a time are
joined, level by level, until one is left; its 2 P equations have only X[first] and X[last].
`_expand_group` goes back down: it knows the ends of a joined element, repeats the elimination and
substitutes back.

Elements are in double precision for rows of any type: there are few of them.

The work matrix has 4 P rows and columns [left 2 P | shared 2 P | right 2 P | b: K | size].
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import atomic_min, barrier, device, expanded, share

Array = np.ndarray[Any, Any]

GROUP = 16  # elements that are joined to one

# Sizes of rows are multiplied with each other, so they must lie between 1/LARGE and LARGE.
LARGE = 2.0**400
TINY = 2.0**-900  # added to sizes, so that a row of zeros is no pivot; smaller entries become zero
EPSILON = 2.0**-52
NO_FAULT = np.iinfo(np.int64).max
_LEVEL_BITS = 48  # a fault is level << 48 | row, so that the least one is on the lowest level
_ROW_MASK = (1 << _LEVEL_BITS) - 1


class RowSystem(NamedTuple):
    """A system, plain or of blocks; with `perm` the right-hand side of row i is b[perm[i]]."""

    dl: Array
    d: Array
    du: Array
    b: Array
    perm: Array


class Columns(NamedTuple):
    """Right-hand sides and solutions, flat: number i of column c is at i * row + c * column."""

    b: Array
    x: Array
    row: int
    column: int
    number: int


class Ends(NamedTuple):
    """The elements of all levels, and the ends of the parts for each right-hand side.

    A part has `rows` block rows, the system `n`.  `report` writes to the first word of `fault`; the
    second is set where a number was out of range.  Each thread has a work matrix.
    """

    elements: Array
    starts: Array
    ends: Array
    work: Array
    fault: Array
    rows: int
    n: int


def plan(parts: int) -> Array:
    """Where the elements of each level begin in one array; the last entry is their number."""
    starts, size = [0], parts
    while True:
        starts.append(starts[-1] + size)
        if size == 1:
            return np.array(starts, np.int64)
        size = -(-size // GROUP)


@device
def report(fault: Array, level: int, row: int) -> None:
    """Report a column without a pivot.  The least (level, row) is kept, in any order of arrival."""
    atomic_min(fault, 0, (level << _LEVEL_BITS) | row)


@device
def is_off(residual: Any, size: Any, limit: Any) -> int:
    """1 where a row is not solved within the limit, else 0."""
    return 0 if residual <= limit * size and size <= LARGE * LARGE else 1


@expanded
def eliminate(
    w: Array, rows: int, first: int, last: int, right: int, size_at: int, picks: Array
) -> int:
    """Eliminate columns first..last-1 from the first `rows` rows, pivot rows on top.

    Coefficients are in the columns before `right`, where the right-hand sides begin.  They end at
    column `size_at`, which holds the sizes of rows.  The pivot is the coefficient that is largest
    relative to the size of its row, the largest coefficient that the row has or had; its row number
    goes to `picks`.  Returns the first column, counted from `first`, that had no pivot; -1 when all
    had.
    """
    lacking = -1
    for i in range(rows):
        for k in range(right):
            size = abs(w[i, k])
            w[i, size_at] = size if size > w[i, size_at] else w[i, size_at]
    for c in range(first, last):
        top = c - first
        at = top
        for i in range(top + 1, rows):
            if abs(w[i, c]) * w[at, size_at] > abs(w[at, c]) * w[i, size_at]:
                at = i
        picks[top] = at
        if _pivot(w, rows, first, c, right, size_at, at) and lacking < 0:
            lacking = top
    return lacking


@expanded
def repeat(
    w: Array, rows: int, first: int, last: int, right: int, size_at: int, picks: Array
) -> None:
    """`eliminate` again, with the pivots it picked; columns of the left may be zero now."""
    for c in range(first, last):
        _pivot(w, rows, first, c, right, size_at, int(picks[c - first]))


@expanded
def _pivot(w: Array, rows: int, first: int, c: int, right: int, size_at: int, at: int) -> bool:
    """Eliminate column c by row `at`, which goes to the top.  True if it had no pivot."""
    zero, one = w.dtype.type(0), w.dtype.type(1)
    top = c - first
    if at != top:
        for k in range(size_at + 1):
            w[top, k], w[at, k] = w[at, k], w[top, k]
    lacking = w[top, c] == zero
    if lacking:
        size = zero
        for k in range(c + 1, right):
            size += abs(w[top, k])
        w[top, c] = EPSILON * size if size > zero else EPSILON
    inverse = one / w[top, c]
    for i in range(top + 1, rows):
        m = w[i, c] * inverse
        if m != zero:
            for k in range(first):
                w[i, k] -= m * w[top, k]
            for k in range(c + 1, size_at):
                w[i, k] -= m * w[top, k]
    for k in range(first):
        w[top, k] *= inverse
    for k in range(c + 1, size_at):
        w[top, k] *= inverse
    return lacking


@expanded
def _begin(w: Array, element: Array, p: int, left: bool) -> None:
    """Put the first element of a group into rows 0..2p-1; its right unknowns will be shared."""
    for i in range(2 * p):
        for k in range(2 * p):
            w[i, k] = element[i, k] if left else w.dtype.type(0)
            w[i, 2 * p + k] = element[i, 2 * p + k]
            w[i, 4 * p + k] = 0
        for k in range(w.shape[1] - 6 * p):
            w[i, 6 * p + k] = element[i, 4 * p + k]


@expanded
def _append(w: Array, element: Array, p: int) -> None:
    """Put the next element into rows 2p..4p-1; its left unknowns are the shared ones."""
    for i in range(2 * p):
        for k in range(2 * p):
            w[2 * p + i, k] = 0
            w[2 * p + i, 2 * p + k] = element[i, k]
            w[2 * p + i, 4 * p + k] = element[i, 2 * p + k]
        for k in range(w.shape[1] - 6 * p):
            w[2 * p + i, 6 * p + k] = element[i, 4 * p + k]


@expanded
def _move_up(w: Array, p: int) -> None:
    """The joined element becomes the first element of the next join."""
    for i in range(2 * p):
        for k in range(2 * p):
            w[i, k] = w[2 * p + i, k]
            w[i, 2 * p + k] = w[2 * p + i, 4 * p + k]
            w[i, 4 * p + k] = 0
        for k in range(6 * p, w.shape[1]):
            w[i, k] = w[2 * p + i, k]


@expanded
def _join_group(elements: Array, begin: int, count: int, out: Array, w: Array, p: int) -> int:
    """Join `count` elements into `out`.  Returns the first 2 p (k - 1) + column without a pivot."""
    lacking, sides = -1, w.shape[1] - 6 * p - 1
    _begin(w, elements[begin], p, True)
    for k in range(1, count):
        element = elements[begin + k]
        _append(w, element, p)
        picks = element[:, 4 * p + sides + 1]
        found = eliminate(w, 4 * p, 2 * p, 4 * p, 6 * p, 6 * p + sides, picks)
        if found >= 0 and lacking < 0:
            lacking = 2 * p * (k - 1) + found
        _move_up(w, p)
    for i in range(2 * p):
        for k in range(4 * p):
            out[i, k] = w[i, k]
        for k in range(sides + 1):
            out[i, 4 * p + k] = w[i, 6 * p + k]
    return lacking


@expanded
def _expand_group(
    elements: Array, begin: int, count: int, ends: Array, first: int, step: int, w: Array, p: int
) -> None:
    """Compute the ends between the elements of a group, from the ends beside the group.

    Element k lies between ends[:, first + k * step] and the next; the last end is number
    ends.shape[1] - 1 at most.  The elements are overwritten by the pivot rows.
    """
    sides, last = ends.shape[0], ends.shape[1] - 1
    _begin(w, elements[begin], p, False)
    for i in range(2 * p):
        for side in range(sides):
            for k in range(2 * p):
                w[i, 6 * p + side] -= elements[begin, i, k] * ends[side, first, k]
    for k in range(1, count):
        element = elements[begin + k]
        _append(w, element, p)
        picks = element[:, 4 * p + sides + 1]
        repeat(w, 4 * p, 2 * p, 4 * p, 6 * p, 6 * p + sides, picks)
        for i in range(2 * p):
            for c in range(4 * p + sides):
                element[i, c] = w[i, 2 * p + c]
        _move_up(w, p)
    for k in range(count - 1, 0, -1):
        element = elements[begin + k]
        here, right = first + k * step, min(first + (k + 1) * step, last)
        for side in range(sides):
            for i in range(2 * p - 1, -1, -1):
                value = element[i, 4 * p + side]
                for c in range(i + 1, 2 * p):
                    value -= element[i, c] * ends[side, here, c]
                for c in range(2 * p):
                    value -= element[i, 2 * p + c] * ends[side, right, c]
                ends[side, here, i] = value


@expanded
def _solve_last(element: Array, ends: Array, w: Array, p: int) -> int:
    """X[first] and X[last] from the one element that is left."""
    sides, last = ends.shape[0], ends.shape[1] - 1
    for i in range(2 * p):
        for k in range(p):
            w[i, k] = element[i, p + k]
            w[i, p + k] = element[i, 2 * p + k]
        for k in range(sides + 1):
            w[i, 2 * p + k] = element[i, 4 * p + k]
    picks = element[:, 4 * p + sides + 1]
    lacking = eliminate(w, 2 * p, 0, 2 * p, 2 * p, 2 * p + sides, picks)
    for side in range(sides):
        first, end = ends[side, 0], ends[side, last]
        for k in range(2 * p):
            first[k] = 0
            end[k] = 0
        for i in range(2 * p - 1, -1, -1):
            value = w[i, 2 * p + side]
            for c in range(i + 1, 2 * p):
                value -= w[i, c] * (first[p + c] if c < p else end[c - p])
            if i < p:
                first[p + i] = value
            else:
                end[i - p] = value
    return lacking


@expanded
def solve_ends(team: Any, e: Ends, p: int) -> bool:
    """All levels up and down: from the elements of level 0 to their ends.

    All threads call, after a barrier; returns true when they have to stop.  Ends with a barrier.
    p is the size of a block.  It is given as a constant: the compiler then knows how long the loops
    are, which saves a third of the time.
    """
    w = e.work[team.me]
    levels = e.starts.size - 1
    for level in range(1, levels):
        below, size = e.starts[level - 1], e.starts[level] - e.starts[level - 1]
        lo, hi = share(team, e.starts[level + 1] - e.starts[level])
        for g in range(lo, hi):
            count = min(GROUP, size - g * GROUP)
            lacking = _join_group(
                e.elements, below + g * GROUP, count, e.elements[e.starts[level] + g], w, p
            )
            if lacking >= 0:
                before = g * GROUP + lacking // (2 * p) + 1
                row = before * e.rows * GROUP ** (level - 1) - 1 + lacking % (2 * p) // p
                report(e.fault, level, min(row, e.n - 1))
        if barrier(team):
            return True
    if team.me == 0:
        lacking = _solve_last(e.elements[e.starts[levels - 1]], e.ends, w, p)
        if lacking >= 0:
            report(e.fault, levels, 0 if lacking < p else e.n - 1)
    if barrier(team):
        return True
    for level in range(levels - 1, 0, -1):
        below, size = e.starts[level - 1], e.starts[level] - e.starts[level - 1]
        step = GROUP ** (level - 1)
        lo, hi = share(team, e.starts[level + 1] - e.starts[level])
        for g in range(lo, hi):
            count = min(GROUP, size - g * GROUP)
            begin = below + g * GROUP
            _expand_group(e.elements, begin, count, e.ends, g * GROUP * step, step, w, p)
        if barrier(team):
            return True
    return False


def in_groups(b: Array, x: Array, most: int) -> list[Columns]:
    """Groups of at most `most` rows of b and x, which are both in C or both in Fortran order."""
    count, length = b.shape
    row, column = (1, length) if b.flags.c_contiguous else (count, 1)
    given, found = ((a if row == 1 else a.T).reshape(-1) for a in (b, x))
    groups = -(-count // most)
    bounds = [count * g // groups for g in range(groups + 1)]
    return [
        Columns(given[lo * column :], found[lo * column :], row, column, hi - lo)
        for lo, hi in itertools.pairwise(bounds)
    ]


def new_ends(parts: int, p: int, rows: int, n: int, threads: int, columns: int) -> Ends:
    """Arrays for the elements of `parts` parts and their ends, for a team of `threads` members."""
    starts = plan(parts)
    elements = np.empty((int(starts[-1]), 2 * p, 4 * p + columns + 2))
    work = np.empty((threads, 4 * p, 6 * p + columns + 1))
    fault = np.array([NO_FAULT, 0], np.int64)
    return Ends(elements, starts, np.empty((columns, parts + 1, 2 * p)), work, fault, rows, n)


def row_without_pivot(ends: Ends) -> int:
    """The first row whose unknown had no pivot; -1 when all had one."""
    return -1 if ends.fault[0] == NO_FAULT else int(ends.fault[0]) & _ROW_MASK
