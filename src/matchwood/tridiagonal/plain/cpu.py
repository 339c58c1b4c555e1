"""The tridiagonal solver on a team.  Parts and their ends: cpu_parts.py; the ends: cpu_elements.py.

One pass over the rows leaves an element for each part of 128; these are solved for the ends of the
parts; a second pass gets the inner unknowns.  The parts do not depend on the number of threads,
so neither does any bit of the solution.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.teams import crew, interrupted, kernel, share
from matchwood.tridiagonal import trust
from matchwood.tridiagonal.cpu_elements import LARGE, Elements, Rows, report
from matchwood.tridiagonal.mending.cpu_local import Blocks, mended, new_marks
from matchwood.tridiagonal.plain.cpu_parts import (
    BAD,
    LANES,
    LEAST,
    ROWS,
    SCRATCH,
    SUM,
    WORDS,
    load_ends,
    load_tile,
    mark_off,
    reduce_tile,
    store_elements,
    store_solution,
    substitute_tile,
)

Array = np.ndarray[Any, Any]

WORK = 4  # a row is some four steps of the kind that `crew` counts


@kernel
def _reduce(
    team: Any,
    rows: Rows,
    elements: Array,
    choices: Array,
    parts: int,
    scratch: Array,
    fault: Array,
) -> None:
    """The element of every part."""
    s = scratch[team.rank]
    lo, hi = share(team, (parts + LANES - 1) // LANES)
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_tile(tile, rows, s)
        reduce_tile(s)
        store_elements(tile, s, elements, choices, parts)
        for lane in range(LANES):
            if s[BAD + lane] > 0:
                report(fault, 0, (tile * LANES + lane) * ROWS + int(s[BAD + lane]) - 1)
            if not (s[SUM + lane] <= LARGE and s[LEAST + lane] >= 1 / LARGE):
                fault[1] = 1


@kernel
def _substitute(
    team: Any,
    rows: Rows,
    ends: Array,
    choices: Array,
    parts: int,
    scratch: Array,
    x: Array,
    limit: float,
    marks: Array,
    off: Array,
) -> None:
    """The solution inside of every part; with a limit, how many rows of each are off."""
    s = scratch[team.rank]
    lo, hi = share(team, (parts + LANES - 1) // LANES)
    for tile in range(lo, hi):
        if interrupted(team, tile << 6):
            return
        load_tile(tile, rows, s)
        load_ends(tile, s, ends, choices, parts)
        substitute_tile(s)
        store_solution(tile, s, rows.perm, x)
        if limit > 0:
            for part in range(tile * LANES, min(tile * LANES + LANES, parts)):
                off[team.rank] += mark_off(part, rows, x, ends, limit, marks[part])


def solve(
    dl: Array,
    d: Array,
    du: Array,
    b: Array,
    perm: Array | None = None,
    *,
    threads: int | None = None,
) -> tuple[Array, int, int]:
    """Solution for every row of b; the row without a pivot or -1; a verdict (trust.py).

    With `perm` the solution is not looked at.
    """
    n = d.size
    x = np.empty_like(b)
    if n == 0 or b.shape[0] == 0:
        return x, -1, trust.RIGHT
    parts = -(-n // ROWS)
    team = crew(threads, work=WORK * n)
    order = np.empty(0, np.int32) if perm is None else perm
    scratch = np.empty((team.size, SCRATCH))  # double precision for either type: no slower
    room = Elements(parts, 1, ROWS, n, threads)
    choices = np.empty((parts, WORDS))
    limit = trust.limit(b.dtype) if perm is None else 0.0
    marks = new_marks(parts, ROWS)
    verdict = trust.RIGHT
    for one, out in zip(b, x, strict=True):
        rows = Rows(dl, d, du, one, order)
        off = np.zeros(team.size, np.int64)
        team.run(_reduce, rows, room.elements, choices, parts, scratch, room.fault)
        room.solve()
        team.run(_substitute, rows, room.ends, choices, parts, scratch, out, limit, marks, off)
        if off.any():
            blocks = Blocks(*(a.reshape(n, 1, 1) for a in (dl, d, du)), one, out)
            verdict = min(verdict, mended(team, blocks, marks, ROWS, limit, int(off.sum())))
    return x, room.row, verdict if room.finite else trust.WRONG
