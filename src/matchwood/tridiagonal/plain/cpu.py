"""The tridiagonal solver on a team.  One part: cpu_parts.py; the ends of parts: cpu_elements.py.
Up to COLUMNS right-hand sides are solved in one pass: cpu_columns.py.

A first pass over the rows computes an element for each part of 128 rows.  The elements are solved
for the ends of the parts.  A second pass computes the inner unknowns.  The parts do not depend on
the number of threads, so neither does any bit of the solution.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.engines.cpu import barrier, crew, device, interrupted, kernel, share
from matchwood.tridiagonal import trust
from matchwood.tridiagonal.cpu_elements import (
    LARGE,
    Columns,
    Ends,
    Rows,
    in_groups,
    new_ends,
    report,
    row_without_pivot,
    solve_ends,
)
from matchwood.tridiagonal.mending.cpu_local import Blocks, RowCheck, mended, new_marks
from matchwood.tridiagonal.plain.cpu_columns import (
    COLUMNS,
    SCRATCH_COLUMNS,
    Matrix,
    load_columns,
    mark_columns,
    reduce_columns,
    store_columns,
    store_solutions,
    substitute_columns,
)
from matchwood.tridiagonal.plain.cpu_parts import (
    load_ends,
    load_tile,
    mark_off,
    reduce_tile,
    store_elements,
    store_solution,
    substitute_tile,
)
from matchwood.tridiagonal.plain.cpu_steps import BAD, LANES, LEAST, ROWS, SCRATCH, SUM, WORDS

Array = np.ndarray[Any, Any]

FEW_COLUMNS = 3  # fewer right-hand sides are solved one after the other
WORK_PER_ROW = 4  # units of work per row, as `crew` counts them


class Workspace(NamedTuple):
    """What the first pass stores for the second, and the scratch buffer of each thread."""

    choices: Array
    scratch: Array


@device
def _report(tile: int, s: Array, fault: Array) -> None:
    """Report unknowns of a tile without a pivot, and numbers out of range."""
    for lane in range(LANES):
        if s[BAD + lane] > 0:
            report(fault, 0, (tile * LANES + lane) * ROWS + int(s[BAD + lane]) - 1)
        if not (s[SUM + lane] <= LARGE and s[LEAST + lane] >= 1 / LARGE):
            fault[1] = 1


@device
def _reduce(team: Any, rows: Rows, ends: Ends, room: Workspace) -> None:
    """Compute the element of every part."""
    s, parts = room.scratch[team.rank], room.choices.shape[0]
    lo, hi = share(team, (parts + LANES - 1) // LANES)
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_tile(tile, rows, s)
        reduce_tile(s)
        store_elements(tile, s, ends.elements, room.choices, parts)
        _report(tile, s, ends.fault)


@device
def _substitute(
    team: Any, rows: Rows, ends: Array, room: Workspace, x: Array, check: RowCheck
) -> None:
    """Compute the inner unknowns of every part; with a limit, mark the rows that are off."""
    s, parts = room.scratch[team.rank], room.choices.shape[0]
    lo, hi = share(team, (parts + LANES - 1) // LANES)
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_tile(tile, rows, s)
        load_ends(tile, s, ends, room.choices, parts)
        substitute_tile(s)
        store_solution(tile, s, rows.perm, x)
        if check.limit > 0:
            for part in range(tile * LANES, min(tile * LANES + LANES, parts)):
                mark = check.marks[part]
                off = mark_off(part, rows, x, ends, check.limit, mark)
                check.off[team.rank] += off


@kernel
def _solve(team: Any, rows: Rows, ends: Ends, room: Workspace, x: Array, check: RowCheck) -> None:
    """One right-hand side."""
    _reduce(team, rows, ends, room)
    if barrier(team) or solve_ends(team, ends, 1):
        return
    _substitute(team, rows, ends.ends[0], room, x, check)


@device
def _reduce_columns(
    team: Any, matrix: Matrix, columns: Columns, ends: Ends, room: Workspace
) -> None:
    """`_reduce` for a group of right-hand sides."""
    s, parts = room.scratch[team.rank], room.choices.shape[0]
    lo, hi = share(team, (parts + LANES - 1) // LANES)
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_columns(tile, matrix, columns, s)
        reduce_columns(s)
        store_columns(tile, s, ends.elements, room.choices, parts, columns.number)
        _report(tile, s, ends.fault)


@device
def _substitute_columns(
    team: Any, matrix: Matrix, columns: Columns, ends: Array, room: Workspace, check: RowCheck
) -> None:
    """`_substitute` for a group of right-hand sides."""
    s, parts = room.scratch[team.rank], room.choices.shape[0]
    lo, hi = share(team, (parts + LANES - 1) // LANES)
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_columns(tile, matrix, columns, s)
        substitute_columns(tile, s, ends, room.choices)
        store_solutions(tile, matrix, s, columns)
        if check.limit > 0:
            mark_columns(tile, s, columns, check, team.rank)


@kernel
def _solve_columns(
    team: Any, matrix: Matrix, columns: Columns, ends: Ends, room: Workspace, check: RowCheck
) -> None:
    """A group of right-hand sides."""
    _reduce_columns(team, matrix, columns, ends, room)
    if barrier(team) or solve_ends(team, ends, 1):
        return
    _substitute_columns(team, matrix, columns, ends.ends, room, check)


def solve(
    dl: Array,
    d: Array,
    du: Array,
    b: Array,
    perm: Array | None = None,
    *,
    threads: int | None = None,
) -> tuple[Array, int, int]:
    """The solution for every row of b; the row without a pivot or -1; a verdict (trust.py).

    With `perm` the solution is not checked.  Rows of b that are to be reordered are solved one
    after the other, unless b is in Fortran order: each number has a cache line of its own.
    """
    n, m = d.size, b.shape[1]
    b = b if b.flags.f_contiguous else np.ascontiguousarray(b)
    alone = b.shape[0] < FEW_COLUMNS or (perm is not None and b.flags.c_contiguous)
    b = np.ascontiguousarray(b) if alone else b
    x = np.empty_like(b)
    if n == 0 or b.shape[0] == 0:
        return x, -1, trust.RIGHT
    parts = -(-n // ROWS)
    team = crew(threads, work=WORK_PER_ROW * n)
    order = np.empty(0, np.int32) if perm is None else perm
    # double precision for both types; float32 would be no faster
    scratch = np.zeros((team.size, SCRATCH if alone else SCRATCH_COLUMNS))
    room = Workspace(np.empty((parts, WORDS)), scratch)
    limit = trust.limit(b.dtype) if perm is None else 0.0
    verdict, lacking = trust.RIGHT, -1
    lower, diagonal, upper = (a.reshape(n, 1, 1) for a in (dl, d, du))
    for columns in in_groups(b, x, 1 if alone else COLUMNS):
        ends = new_ends(parts, 1, ROWS, n, team.size, columns.number)
        off = np.zeros((columns.number, team.size), np.int64)
        marks = new_marks(columns.number * parts, ROWS).reshape(columns.number, parts, -1)
        if alone:
            check, rows = RowCheck(limit, marks[0], off[0]), Rows(dl, d, du, columns.b[:m], order)
            team.run(_solve, rows, ends, room, columns.x[:m], check)
        else:
            check, matrix = RowCheck(limit, marks, off), Matrix(dl, d, du, order)
            team.run(_solve_columns, matrix, columns, ends, room, check)
        lacking = row_without_pivot(ends)
        verdict = trust.WRONG if ends.fault[1] else verdict
        for c in np.flatnonzero(off.any(axis=1)):
            right, out = (a[c * columns.column :] for a in (columns.b, columns.x))
            blocks = Blocks(lower, diagonal, upper, right, out, columns.row)
            verdict = min(verdict, mended(team, blocks, ROWS, RowCheck(limit, marks[c], off[c])))
    return x, lacking, verdict
