"""Adjacency lists in text: one line for each vertex.  Read cpu.py first.

Two passes, since the place of a row in the result depends on the lengths of those before: first
`measure_rows`, then `read_rows`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from matchwood.engines.cpu import Team, kernel, stopping
from matchwood.io.cpu import (
    ASK,
    BLANK_DELIMITER,
    ID_EXPECTED,
    LINES_PER_LOOK,
    NUMBER_EXPECTED,
    OUT_OF_RANGE,
    WRONG_LINE,
    before,
    ends_field,
    own_lines,
    read_weight,
    skip_blanks,
    skip_line,
    whole,
)
from matchwood.io.cpu_number import DONE, number

Array = np.ndarray[Any, Any]

BYTES_PER_LOOK = 1 << 16  # of one line between two looks at the stop word: 0.1 ms

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
        if (looks & LINES_PER_LOOK) == 0 and stopping(team):
            return
        if text[p] == spec[COMMENT]:
            p = skip_line(text, p)
            continue
        start, length = p, 0
        inside = False
        while text[p] != 10:
            if stopping(team):  # a line may be as long as the file
                return
            look = p + BYTES_PER_LOOK
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
        if (looks & LINES_PER_LOOK) == 0 and stopping(team):
            return
        if text[p] == spec[COMMENT]:
            p = skip_line(text, p)
            continue
        p = skip_blanks(text, p)
        for j in range(skip):
            where = p
            value, p, status = number(text, p)
            if status != DONE or not ends_field(text[p], BLANK_DELIMITER):
                code = NUMBER_EXPECTED
                break
            vertex[row, j] = value
            p = skip_blanks(text, p)
        if code != 0:
            break
        for k in range(indptr[row], indptr[row + 1]):
            where = p
            if (k & LINES_PER_LOOK) == 0 and stopping(team):
                return
            x, p = whole(text, p)
            if x == -1 or not ends_field(text[p], BLANK_DELIMITER):
                code = ID_EXPECTED
                break
            if x == -2 or x < base or x - base >= limit:
                code = OUT_OF_RANGE
                break
            indices[k] = x - base
            p = skip_blanks(text, p)
            if spec[WEIGHTED]:
                where = p
                p, code = read_weight(text, p, BLANK_DELIMITER, k, weights, bits)
                if code > 0:
                    break
                ask -= code
                code = 0
                p = skip_blanks(text, p)
        if code == 0:
            p = skip_line(text, p)
            row += 1
    found[team.rank, ASK] = ask
    problem[team.rank, 0] = code
    problem[team.rank, 1] = where
