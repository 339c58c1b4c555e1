"""One part of a tridiagonal system: its rows to two equations between its ends, and back.

A part is ROWS consecutive rows s..e.  Its inner unknowns s+1..e-1 occur in no other row, so they
can be eliminated by its own rows with row pivoting; there is always a pivot unless the matrix is
singular.  Two equations in x[s-1], x[s], x[e], x[e+1] are left: an element.  cpu_elements.py solves
for the ends; `substitute_tile` then computes the inner unknowns.

The elimination goes down the rows and carries two equations A, B, both in the unknowns
(x[s-1], x[s] | x[j], x[j+1]).  Row j+1 is the third.  The pivot is the one of the three whose
coefficient of x[j] is the largest relative to the size of its row.  The size of a row is the
largest entry that it has or had since the part began.  With its size at the beginning, A and B
could grow by a factor of 1.618 per row.  With its present size alone, rows that have become small
would be taken too often.

Growth: let s(p) be the size of the pivot row p, with pivot k, and s(q) that of another row q, with
entry c.  The rule is |c| / s(q) <= |k| / s(p), so what is subtracted from q is at most
|c / k| s(p) <= s(q).  One step at most doubles a row, relative to its own size, and a row that has
grown is no pivot for small ones.  For all levels see docs/problems/tridiagonal.rst.  The choice of
rows is stored, so that `substitute_tile` takes the same ones.

One step of the elimination: cpu_steps.py.  Here a tile, LANES parts at the same time, has one
right-hand side; cpu_columns.py does the same for several.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import device
from matchwood.tridiagonal.cpu_elements import LARGE, Rows, is_off
from matchwood.tridiagonal.mending.cpu_local import clear_marks, set_mark
from matchwood.tridiagonal.plain.cpu_steps import (
    A_F,
    B_F,
    CHOICES,
    DIAGONAL,
    LANES,
    LOWER,
    RIGHT,
    ROWS,
    STEPS,
    SUM,
    TILE,
    UPPER,
    WORDS,
    X0,
    X1,
    X2,
    load_lane,
    load_matrix,
    load_whole,
    reduced,
    repeated,
    right_hand_sides,
    start,
    start_sizes,
)

Array = np.ndarray[Any, Any]


@device
def load_tile(tile: int, system: Rows, s: Array) -> None:
    """Load the rows of a tile; rows past the end are x = 0."""
    dl, d, du, b, perm = system
    load_matrix(tile, dl, d, du, s)
    n, first = d.size, tile * TILE
    whole, gather = first + TILE <= n, perm.size > 0
    if whole and not gather:
        load_whole(b[first:], s, RIGHT)
        return
    for lane in range(LANES):
        first = (tile * LANES + lane) * ROWS
        rows = max(0, min(ROWS, n - first))
        if gather:
            part = perm[first:]
            for j in range(rows):
                s[RIGHT + j * LANES + lane] = b[np.uint64(part[j])]
            for j in range(rows, ROWS):
                s[RIGHT + j * LANES + lane] = 0
        else:
            load_lane(b, first, rows, 0, s, RIGHT + lane)


@device
def _start(s: Array) -> None:
    """Set A and B to the first two rows of every lane's part."""
    start(s)
    for t in range(LANES):
        s[A_F + t] = s[RIGHT + t]
        s[B_F + t] = s[RIGHT + LANES + t]


@device
def reduce_tile(s: Array) -> None:
    """Eliminate the inner unknowns of every lane's part: A and B are its element afterwards."""
    zero, one, four = s.dtype.type(0), s.dtype.type(1), s.dtype.type(4)
    _start(s)
    start_sizes(s)
    for t in range(LANES):
        s[SUM + t] += abs(s[RIGHT + t]) + abs(s[RIGHT + LANES + t])
    for word in range(WORDS):
        for t in range(LANES):
            s[CHOICES + word * LANES + t] = zero
        scale = one
        for step in range(STEPS):
            j = 2 + word * STEPS + step
            row = s.dtype.type(j)
            scale /= four
            for t in range(LANES):
                at = j * LANES + t
                cf = s[RIGHT + at]
                s[SUM + t] += abs(cf)
                swap, new, m_a, m_b = reduced(s, t, at, word, scale, row)
                _, a_f, b_f = right_hand_sides(s[A_F + t], s[B_F + t], cf, swap, new, m_a, m_b)
                s[A_F + t] = a_f
                s[B_F + t] = b_f


@device
def store_elements(tile: int, s: Array, elements: Array, choices: Array, parts: int) -> None:
    """Store A and B of every lane as an element (2, 6): left 2, right 2, b, size."""
    for lane in range(LANES):
        part = tile * LANES + lane
        if part < parts:
            for k in range(6):
                elements[part, 0, k] = s[k * LANES + lane]
                elements[part, 1, k] = s[(6 + k) * LANES + lane]
            for k in range(WORDS):
                choices[part, k] = s[CHOICES + k * LANES + lane]


@device
def load_ends(tile: int, s: Array, ends: Array, choices: Array, parts: int) -> None:
    """Load the ends of every part, and move the terms of known unknowns to the right-hand sides."""
    for lane in range(LANES):
        part = min(tile * LANES + lane, parts - 1)
        before, first = s.dtype.type(ends[part, 0]), s.dtype.type(ends[part, 1])
        s[X0 + lane] = first
        s[X1 + lane] = ends[part + 1, 0]
        s[X2 + lane] = ends[part + 1, 1]
        for k in range(WORDS):
            s[CHOICES + k * LANES + lane] = choices[part, k]
        s[RIGHT + lane] -= s[LOWER + lane] * before + s[DIAGONAL + lane] * first
        s[RIGHT + LANES + lane] -= s[LOWER + LANES + lane] * first


@device
def substitute_tile(s: Array) -> None:
    """The same elimination without the left unknowns, then back substitution.

    The pivot row of x[j], divided by its pivot, overwrites row j; then x[j] overwrites d.
    """
    _start(s)
    for word in range(WORDS):
        for step in range(STEPS):
            j = 2 + word * STEPS + step
            for t in range(LANES):
                at = j * LANES + t
                cf = s[RIGHT + at]
                swap, new, m_a, m_b, inverse, second, third = repeated(s, t, at, word)
                k_f, a_f, b_f = right_hand_sides(s[A_F + t], s[B_F + t], cf, swap, new, m_a, m_b)
                s[A_F + t] = a_f
                s[B_F + t] = b_f
                s[LOWER - LANES + at] = second
                s[UPPER - LANES + at] = third
                s[RIGHT - LANES + at] = k_f * inverse
    for t in range(LANES):
        s[DIAGONAL + t] = s[X0 + t]
        s[DIAGONAL + TILE - LANES + t] = s[X1 + t]
    for j in range(ROWS - 2, 0, -1):
        for t in range(LANES):
            at = j * LANES + t
            x = s[RIGHT + at] - s[LOWER + at] * s[X1 + t] - s[UPPER + at] * s[X2 + t]
            s[X2 + t] = s[X1 + t]
            s[X1 + t] = x
            s[DIAGONAL + at] = x


@device
def _terms(part: int, j: int, system: Rows, x: Array, ends: Array) -> tuple[Any, Any]:
    """The residual of row j of a part, and the sum of |terms|; in double precision."""
    number, i = ends.dtype.type, part * ROWS + j
    left, right = number(0), number(0)
    if i > 0:
        left = system.dl[i] * (number(x[i - 1]) if j > 0 else ends[part, 0])
    if i < x.size - 1:
        right = system.du[i] * (number(x[i + 1]) if j < ROWS - 1 else ends[part + 1, 1])
    middle, b = system.d[i] * number(x[i]), number(system.b[i])
    size = (abs(left) + abs(middle)) + (abs(right) + abs(b))
    return abs((left + middle) + (right - b)), size


@device
def _inner_off(part: int, rows: int, system: Rows, x: Array, ends: Array, limit: float) -> int:
    """How many inner rows of a part are off; without branches, so that it is vectorised."""
    start = part * ROWS
    lower, diagonal, upper = system.dl[start:], system.d[start:], system.du[start:]
    b, x = system.b[start:], x[start:]
    number, count = ends.dtype.type, 0
    for j in range(1, rows - 1):
        left = lower[j] * number(x[j - 1])
        middle = diagonal[j] * number(x[j])
        right = upper[j] * number(x[j + 1])
        size = (abs(left) + abs(middle)) + (abs(right) + abs(b[j]))
        good = abs((left + middle) + (right - b[j])) <= limit * size
        count += 0 if good & (size <= LARGE * LARGE) else 1
    return count


@device
def mark_off(part: int, system: Rows, x: Array, ends: Array, limit: float, mark: Array) -> int:
    """Mark the rows of a part that are off by more than `limit`; returns how many."""
    rows = min(ROWS, x.size - part * ROWS)
    clear_marks(mark)
    count = _inner_off(part, rows, system, x, ends, limit)
    for j in range(0, rows, max(1, rows - 1)):  # the first and the last
        residual, size = _terms(part, j, system, x, ends)
        count += is_off(residual, size, limit)
    if count > 0:
        for j in range(rows):
            residual, size = _terms(part, j, system, x, ends)
            if is_off(residual, size, limit) > 0:
                set_mark(mark, j)
    return count


@device
def store_solution(tile: int, s: Array, perm: Array, x: Array) -> None:
    """Store x of the tile's rows; with `perm` the unknown of row i goes to x[perm[i]]."""
    n = x.size
    scatter = perm.size > 0
    for lane in range(LANES):
        start = (tile * LANES + lane) * ROWS
        rows = max(0, min(ROWS, n - start))
        if scatter:
            part_p = perm[start:]
            for j in range(rows):
                x[np.uint64(part_p[j])] = s[DIAGONAL + j * LANES + lane]
        else:
            part_x = x[start:]
            for j in range(rows):
                part_x[j] = s[DIAGONAL + j * LANES + lane]
