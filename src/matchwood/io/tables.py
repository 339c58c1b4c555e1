"""The numbers of a text as arrays.

`read_records` and `read_rows` run the kernels of cpu.py and turn a malformed line into a
FileFormatError with file and line.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood.errors import FileFormatError
from matchwood.io.options import ID_MAX
from matchwood.io.result import Array
from matchwood.io.text import Text, clip

INT32_MAX = np.iinfo(np.int32).max
BLANKS = b" \t\r"


class Layout(NamedTuple):
    """How the records of a text look: see `cpu.records`."""

    fields: int
    u: int = 0
    v: int = 1
    w: int = -1
    base: int = 0
    delimiter: str = " "
    key: str = ""
    skipped: str = "#%"
    u_limit: int | None = None  # vertices, where the file says how many there are
    v_limit: int | None = None


class Records(NamedTuple):
    """The columns of a table of edges; ids start at 0 and `u_max`, `v_max` are the largest."""

    u: Array
    v: Array
    w: Array | None
    u_max: int
    v_max: int


def read_records(text: Text, start: int, layout: Layout, threads: int | None) -> Records:
    """Read the table of edges that starts at byte `start`; on ranks, this rank's part of it."""
    ids, weights = np.empty(0, np.int32), np.empty(0) if layout.w >= 0 else None
    nothing = Records(ids, ids, weights, -1, -1)
    return text.parsed(start, lambda part, at: _records(part, at, layout, threads), nothing)


def _records(text: Text, start: int, layout: Layout, threads: int | None) -> Records:
    """Ids are int32; where the file does not say how many there are and one does not fit, all are
    read again as int64.
    """
    declared = max(layout.u_limit or 0, layout.v_limit or 0)
    if declared <= INT32_MAX:
        try:
            return _read_records(text, start, layout, threads, np.dtype(np.int32))
        except _NeedsWideIds:
            pass
    return _read_records(text, start, layout, threads, np.dtype(np.int64))


class _NeedsWideIds(Exception):
    """An id is too large for int32, and the file does not say that it may not be."""


def _read_records(
    text: Text, start: int, layout: Layout, threads: int | None, kind: np.dtype[Any]
) -> Records:
    from matchwood.io import cpu

    last = max(layout.u, layout.v, layout.w)
    if last >= layout.fields:  # the kernel would leave the column as it found the memory
        raise ValueError(f"read: there is no column {last}, each line has {layout.fields}")
    array = text.array
    team, counts, found, problem = cpu.new_crew(array, threads)
    team.run(cpu.count_lines, array, text.words, start, cpu.NO_COMMENT, counts)
    m = int(counts.sum())
    top = INT32_MAX if kind == np.int32 else ID_MAX
    spec = np.zeros(cpu.RECORD_SPEC, np.int64)
    spec[cpu.START], spec[cpu.FIELDS] = start, layout.fields
    spec[cpu.DELIMITER], spec[cpu.KEY] = ord(layout.delimiter), ord(layout.key or "\0")
    spec[cpu.U], spec[cpu.V], spec[cpu.W] = layout.u, layout.v, layout.w
    spec[cpu.BASE] = layout.base
    spec[cpu.U_LIMIT] = top if layout.u_limit is None else layout.u_limit
    spec[cpu.V_LIMIT] = top if layout.v_limit is None else layout.v_limit
    skipped = np.zeros(256, np.bool_)
    skipped[[ord(letter) for letter in layout.skipped]] = True
    u, v = np.empty(m, kind), np.empty(m if layout.v >= 0 else 0, kind)
    w = np.empty(m if layout.w >= 0 else 0, np.float64)
    team.run(cpu.records, array, spec, skipped, counts, u, v, w, w.view(np.int64), found, problem)
    wrong = cpu.first_problem(problem)
    if wrong is not None:
        if kind == np.int32 and wrong[0] == cpu.OUT_OF_RANGE and layout.u_limit is None:
            raise _NeedsWideIds
        raise malformed(text, *wrong, layout)
    u, v, w = (_joined(column, counts, found[:, cpu.COUNT]) for column in (u, v, w))
    if found[:, cpu.ASK].any():
        _ask_float(text, w, layout.delimiter)
    u_max, v_max = found[:, cpu.U_MAX].max(), found[:, cpu.V_MAX].max()
    return Records(u, v, w if layout.w >= 0 else None, int(u_max), int(v_max))


def _joined(column: Array, room: Array, used: Array) -> Array:
    """Put together what the members wrote; a view where comments left no gaps between them."""
    if column.size == 0 or np.array_equal(room[:-1], used[:-1]):
        return column[: int(used.sum())]
    starts = np.cumsum(room) - room
    return np.concatenate(
        [column[start : start + count] for start, count in zip(starts, used, strict=True)]
    )


def _ask_float(text: Text, values: Array, delimiter: str = " ") -> None:
    """Fill in the numbers that the kernel could not read exactly."""
    from matchwood.io import cpu

    bits = values.view(np.int64)
    for slot in cpu.asked(bits):
        position = int(bits[slot]) & cpu.POSITION
        value = float(_field(text, position, delimiter))
        if np.isinf(value):
            raise malformed(text, cpu.OVERFLOW, position, Layout(0, delimiter=delimiter))
        values[slot] = value


def _field(text: Text, position: int, delimiter: str) -> bytes:
    end = text.content.index(b"\n", position)
    line = text.content[position:end]
    for blank in BLANKS.decode() if delimiter == " " else delimiter:
        line = line.split(blank.encode(), 1)[0]
    return bytes(line.strip())


def malformed(text: Text, code: int, position: int, layout: Layout) -> FileFormatError:
    """What the kernel found, in words."""
    from matchwood.io import cpu

    got = clip(_field(text, position, layout.delimiter))
    if got == "''":
        got = "nothing"
    if code in (cpu.TOO_FEW, cpu.TOO_MANY):
        message = f"expected {layout.fields} fields, got {_count_fields(text, position, layout)}"
    elif code == cpu.OUT_OF_RANGE:
        limit = layout.u_limit if layout.u_limit == layout.v_limit else None
        last = "" if limit is None else f" to {layout.base + limit - 1}"
        message = f"expected a vertex from {layout.base}{last}, got {got}"
    else:
        message = {
            cpu.ID_EXPECTED: f"expected a whole number, got {got}",
            cpu.NUMBER_EXPECTED: f"expected a number, got {got}",
            cpu.OVERFLOW: f"the number {got} is too large for float64",
            cpu.WRONG_LINE: f"expected a line that starts with {layout.key!r}, got {got}",
        }[code]
    return text.error(text.line_at(position), message)


def _count_fields(text: Text, position: int, layout: Layout) -> int:
    start = text.content.rfind(b"\n", 0, position) + 1
    line = text.content[start : text.content.index(b"\n", position)]
    fields = line.split() if layout.delimiter == " " else line.split(layout.delimiter.encode())
    return len(fields) - bool(layout.key)


class AdjacencyLists(NamedTuple):
    """Adjacency lists; `rows` holds the numbers that stand before the list of each row."""

    indptr: Array
    indices: Array
    weights: Array | None
    rows: Array


def read_rows(
    text: Text,
    start: int,
    n: int,
    *,
    limit: int,
    base: int,
    comment: str,
    skip: int = 0,
    weighted: bool = False,
    strict: bool,
    threads: int | None,
) -> AdjacencyLists:
    """Read `n` lines of ids below `limit`, from byte `start`; see `cpu.read_rows`."""
    from matchwood.io import cpu

    array = text.array
    team, counts, found, problem = cpu.new_crew(array, threads)
    letter = cpu.NO_COMMENT
    if comment and text.content.find(comment.encode(), start) >= 0:
        letter = ord(comment)
    team.run(cpu.count_lines, array, text.words, start, letter, counts)
    lines = int(counts.sum())
    if lines < n:
        text.require_count(n, lines, "lines", strict)
    text.require_shape(text.line_at(max(start - 1, 0)), (n, limit), lines)
    text.require_numbers(text.line_at(max(start - 1, 0)), n, skip)
    spec = np.zeros(cpu.ROW_SPEC, np.int64)
    spec[cpu.FIRST], spec[cpu.N], spec[cpu.COMMENT] = start, n, letter
    spec[cpu.SKIP], spec[cpu.WEIGHTED] = skip, weighted
    spec[cpu.ROW_BASE], spec[cpu.LIMIT] = base, limit
    lengths = np.zeros(n, np.int64)
    team.run(cpu.measure_rows, array, spec, counts, lengths, problem)
    wrong = cpu.first_problem(problem)
    if wrong is not None:
        raise text.error(text.line_at(wrong[1]), f"the {n} lines declared end before this one")
    entries = (lengths - skip) // (1 + weighted)
    odd = (lengths[:lines] - skip) != entries[:lines] * (1 + weighted)
    odd |= lengths[:lines] < skip
    if odd.any():
        row = int(odd.argmax())
        expected = f"{skip} numbers and then " if skip else ""
        pairs = "pairs of vertex and weight" if weighted else "vertices"
        message = f"expected {expected}{pairs}, got {lengths[row]} fields"
        raise row_error(text, start, row, comment, message)
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(np.maximum(entries, 0), out=indptr[1:])
    m = int(indptr[-1])
    indices = np.empty(m, np.int32 if limit <= INT32_MAX else np.int64)
    weights = np.empty(m if weighted else 0, np.float64)
    rows = np.zeros((n, skip), np.float64)
    bits = weights.view(np.int64)
    results = (indptr, indices, weights, bits, rows, found, problem)
    team.run(cpu.read_rows, array, spec, counts, *results)
    wrong = cpu.first_problem(problem)
    if wrong is not None:
        raise malformed(text, *wrong, Layout(0, base=base, u_limit=limit, v_limit=limit))
    if found[:, cpu.ASK].any():
        _ask_float(text, weights)
    return AdjacencyLists(indptr, indices, weights if weighted else None, rows)


def row_error(text: Text, start: int, row: int, comment: str, message: str) -> FileFormatError:
    """The exception for what is wrong in the line that holds the row-th list."""
    position = start_of_row(text, start, row, comment)
    line = text.line_at(position) if position < len(text.content) else text.last_line()
    return text.error(line, message)


def start_of_row(text: Text, start: int, row: int, comment: str) -> int:
    """Byte where the row-th line that is no comment starts; the end where there are fewer."""
    for position, _, _ in text.lines(start):
        if not (comment and text.content.startswith(comment.encode(), position)):
            if row == 0:
                return position
            row -= 1
    return len(text.content)
