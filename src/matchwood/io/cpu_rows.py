"""Adjacency lists in text: one line for each vertex.  Read cpu.py first.

Two passes, since the place of a row in the result depends on the lengths of those before: first
`measure_rows`, then `read_rows`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.io.cpu import (
    ASK,
    ASK_TAG,
    ID_EXPECTED,
    LOOK,
    NUMBER_EXPECTED,
    OUT_OF_RANGE,
    OVERFLOW,
    WRONG_LINE,
    before,
    ends_field,
    own_lines,
    skip_blanks,
    skip_line,
    whole,
)
from matchwood.io.cpu_number import DONE, NOT_A_NUMBER, TOO_LARGE, number
from matchwood.teams import Team, kernel, stopping

Array = np.ndarray[Any, Any]

LOOK_BYTES = 1 << 16  # of one line between two looks at the cancel word: 0.1 ms

# What the kernels are told, one int64 each
ROW_SPEC = 7
FIRST, N, SKIP, WEIGHTED, ROW_BASE, LIMIT, COMMENT = range(ROW_SPEC)


@kernel
def measure_rows(
    team: Team, text: Array, spec: Array, counts: Array, lengths: Array, problem: Array
) -> None:
    """lengths[i] = fields of the i-th line that is no comment; past the last, only blank lines."""
    p, end = own_lines(team, text, spec[FIRST])
    row = before(team, counts)
    looks, code, where = 0, 0, 0
    while p < end:
        looks += 1
        if (looks & LOOK) == 0 and stopping(team):
            return
        if text[p] == spec[COMMENT]:
            p = skip_line(text, p)
            continue
        start, length = p, 0
        inside = False
        while text[p] != 10:
            if stopping(team):  # a line may be as long as the file
                return
            look = p + LOOK_BYTES
            while text[p] != 10 and p < look:
                blank = text[p] == 32 or text[p] == 9 or text[p] == 13
                length += (not blank) & (not inside)
                inside = not blank
                p += 1
        p += 1
        if row < spec[N]:
            lengths[row] = length
        elif length > 0:
            code, where = WRONG_LINE, start
            break
        row += 1
    problem[team.rank, 0] = code
    problem[team.rank, 1] = where


@kernel
def read_rows(
    team: Team,
    text: Array,
    spec: Array,
    counts: Array,
    indptr: Array,
    indices: Array,
    weights: Array,
    bits: Array,
    vertex: Array,
    found: Array,
    problem: Array,
) -> None:
    """Read N lines: SKIP numbers that belong to the row, then ids, each with its weight if asked.

    `measure_rows` has counted them, so every line has the fields that `indptr` says.
    """
    base, limit, skip = spec[ROW_BASE], spec[LIMIT], spec[SKIP]
    p, end = own_lines(team, text, spec[FIRST])
    row = before(team, counts)
    looks, code, where, ask = 0, 0, 0, 0
    while p < end and row < spec[N] and code == 0:
        looks += 1
        if (looks & LOOK) == 0 and stopping(team):
            return
        if text[p] == spec[COMMENT]:
            p = skip_line(text, p)
            continue
        p = skip_blanks(text, p)
        for j in range(skip):
            where = p
            value, p, status = number(text, p)
            if status != DONE or not ends_field(text[p], 32):
                code = NUMBER_EXPECTED
                break
            vertex[row, j] = value
            p = skip_blanks(text, p)
        if code != 0:
            break
        for k in range(indptr[row], indptr[row + 1]):
            where = p
            if (k & LOOK) == 0 and stopping(team):
                return
            x, p = whole(text, p)
            if x == -1 or not ends_field(text[p], 32):
                code = ID_EXPECTED
                break
            if x == -2 or x < base or x - base >= limit:
                code = OUT_OF_RANGE
                break
            indices[k] = x - base
            p = skip_blanks(text, p)
            if spec[WEIGHTED]:
                where = p
                value, p, status = number(text, p)
                if status == NOT_A_NUMBER or not ends_field(text[p], 32):
                    code = NUMBER_EXPECTED
                    break
                if status == TOO_LARGE:
                    code = OVERFLOW
                    break
                if status == DONE:
                    weights[k] = value
                else:
                    bits[k] = (np.int64(ASK_TAG) << 48) | where
                    ask += 1
                p = skip_blanks(text, p)
        if code == 0:
            p = skip_line(text, p)
            row += 1
    found[team.rank, ASK] = ask
    problem[team.rank, 0] = code
    problem[team.rank, 1] = where
