"""Matrix Market, its numbers read and written by scipy.io.

SciPy reads what it understands of a line and skips the rest: ``1 1 2,5`` becomes 2, ``1 1 2.5 7``
becomes 2.5, and 3.7 in a file of integers becomes 3.  So every line is checked before SciPy sees
it, which also finds where a file is cut off.

SciPy gets some megabytes of checked lines at a time, under a banner that is made here.  So Ctrl-C
takes effect between two parts, and no header of a file reaches SciPy: its reader divides by the
number of rows of a dense matrix, which ends the process where that is 0, and its writer takes a
matrix with one-sided stored zeros for a symmetric one.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.io
import scipy.sparse as sp

from matchwood.gate.resources import interruptible, require_memory
from matchwood.io.build import mirrored, rows_of
from matchwood.io.options import Options
from matchwood.io.result import Array, Entries, Matrix
from matchwood.io.tables import Layout, malformed
from matchwood.io.text import Text, clip, whole_numbers

_FIELDS = {"real": 1, "double": 1, "integer": 0, "unsigned-integer": 0, "pattern": 0, "complex": 2}
_INTEGERS = ("integer", "unsigned-integer")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
_TYPES = {"integer": np.int64, "unsigned-integer": np.uint64, "complex": np.complex128}

BYTES_PER_PART = 1 << 22  # that SciPy reads at once: 20 ms
ENTRIES_PER_PART = 1 << 17  # that it writes at once
NEWLINE = np.uint8(10)


class Banner(NamedTuple):
    """The first line of a file."""

    layout: str
    field: str
    symmetry: str


def read(text: Text, *, strict: bool, threads: int | None) -> Matrix | Array:
    """The matrix; an array where the file holds a dense one."""
    options = Options(strict=strict, threads=threads)
    found = entries(text, options)
    if found is not None:
        w: Any = found.w
        return interruptible(sp.csr_array, sp.coo_array((w, (found.u, found.v)), shape=found.shape))
    start, head = _described(text)
    count = _counted(text, start, head, options)
    rows, columns = head.shape
    require_memory(text.caller, 32 * rows * columns, f"the matrix of {text.path}")
    return _dense(text, start, head.shape, count, head.banner)


def entries(text: Text, options: Options) -> Entries | None:
    """The entries of a sparse matrix, on ranks those of this rank's piece; None: it is dense."""
    start, head = text.head(_described)
    banner, shape = head.banner, head.shape
    if banner.layout != "coordinate":
        return None
    count = _counted(text, start, head, options)
    ids = np.empty(0, np.int32)
    nothing: tuple[Array, ...] = (ids, ids, np.empty(0, _TYPES.get(banner.field, np.float64)))
    u, v, w = text.parsed(
        start, lambda part, at: _coordinates(part, at, shape, count, banner), nothing
    )
    return Entries(shape, u, v, w)


class Head(NamedTuple):
    """What stands before the entries."""

    banner: Banner
    line: int  # number of the line with the sizes
    shape: tuple[int, int]
    entries: int


def _described(text: Text) -> tuple[int, Head]:
    """(byte after the line with the sizes, what stands before it)."""
    banner = _banner(text)
    line, start, shape, declared = _sizes(text, banner.layout)
    if banner.symmetry != "general" and shape[0] != shape[1]:
        raise text.error(
            line, f"a {banner.symmetry} matrix must be square, got {shape[0]} x {shape[1]}"
        )
    stored = _stored(shape, banner.symmetry) if declared is None else declared
    return start, Head(banner, line, shape, stored)


def _counted(text: Text, start: int, head: Head, options: Options) -> int:
    """Entries of this text, or piece, from byte `start` on, if all ranks have those declared."""
    text.require_finished(options.strict)
    field = head.banner.field
    ids = (2 if head.banner.layout == "coordinate" else 0) + (field in _INTEGERS)

    def checked(part: Text, at: int) -> int:
        return _check(part, at, ids, _FIELDS[field], options.threads)

    count = text.parsed(start, checked, 0)
    total = text.total(count)
    text.require_count(head.entries, total, "entries", True)
    text.require_shape(head.line, head.shape, total)
    return count


def _banner(text: Text) -> Banner:
    first = bytes(text.content[: text.content.index(b"\n")]).strip()
    words = first.decode(errors="replace").lower().split()
    if (
        len(words) != 5
        or words[:2] != ["%%matrixmarket", "matrix"]
        or words[2] not in ("coordinate", "array")
        or words[3] not in _FIELDS
        or words[4] not in _SYMMETRIES
    ):
        raise text.error(
            1, f"expected '%%MatrixMarket matrix FORMAT FIELD SYMMETRY', got {clip(first, 60)}"
        )
    layout, field, symmetry = words[2:]
    if layout == "array" and field == "pattern":
        raise text.error(1, "a dense matrix (array) has values, and cannot be a pattern")
    if symmetry == "skew-symmetric" and field in ("pattern", "unsigned-integer"):
        raise text.error(1, f"a skew-symmetric matrix has negative values, got {field}")
    return Banner(layout, field, symmetry)


def _sizes(text: Text, layout: str) -> tuple[int, int, tuple[int, int], int | None]:
    """(line number, where the next line starts, shape, entries) of the size line."""
    wanted = 3 if layout == "coordinate" else 2
    for number, _, after, line in text.filled():
        if not line.startswith(b"%"):
            sizes = whole_numbers(line.split())
            if sizes is None or len(sizes) != wanted:
                expected = "rows, columns and entries" if wanted == 3 else "rows and columns"
                raise text.error(number, f"expected {expected}, got {clip(line)}")
            entries = sizes[2] if wanted == 3 else None
            return number, after, (sizes[0], sizes[1]), entries
    raise text.error(text.last_line(), "the file ends before the line with its sizes")


def _stored(shape: tuple[int, int], symmetry: str) -> int:
    """Entries of a dense matrix in the file."""
    n = shape[0]
    if symmetry == "general":
        return n * shape[1]
    return n * (n - 1) // 2 if symmetry == "skew-symmetric" else n * (n + 1) // 2


def _check(text: Text, start: int, ids: int, numbers: int, threads: int | None) -> int:
    """The number of entries, each with as many fields as it must have."""
    from matchwood.io import cpu

    array = text.array
    team, _, found, problem = cpu.new_crew(array, threads)
    team.run(cpu.check_table, array, start, ids, numbers, found, problem)
    wrong = cpu.first_problem(problem)
    if wrong is not None:
        raise malformed(text, *wrong, Layout(ids + numbers))
    return int(found[:, cpu.COUNT].sum())


def _parts(text: Text, start: int, entries: int) -> Iterator[tuple[int, int, bytes | memoryview]]:
    """(byte where it starts, lines, bytes) of the parts of the table, without blank lines."""
    content = text.content
    with memoryview(content) as whole:
        found = list(_cut(content, start))
        blank = sum(lines for _, _, lines in found) != entries
        for begin, end, lines in found:
            part: bytes | memoryview = whole[begin:end]
            if blank:
                kept = bytes(part).splitlines(keepends=True)
                part = b"".join(line for line in kept if line.strip())
                lines = part.count(b"\n")
            if lines:
                yield begin, lines, part


def _cut(content: bytearray, start: int) -> Iterator[tuple[int, int, int]]:
    """(first byte, byte after the last, lines) of each part.

    Lines are counted by NumPy: `bytes.count` takes five times as long where they are short.
    """
    while start < len(content):
        end = (
            content.rfind(b"\n", start, start + BYTES_PER_PART) + 1
            or content.index(b"\n", start) + 1
        )
        part = np.frombuffer(content, np.uint8, end - start, start)
        yield start, end, int(np.count_nonzero(part == NEWLINE))
        start = end


def _parsed(text: Text, start: int, head: str, part: bytes | memoryview) -> Any:
    """What SciPy reads from a part of the table under the banner `head`."""
    try:
        return scipy.io.mmread(io.BytesIO(b"".join((head.encode(), part))))
    except (ValueError, OverflowError) as error:
        found = re.match(r"Line (\d+): (.*)", str(error))
        skipped = head.count("\n")
        row, message = (int(found[1]) - skipped, found[2]) if found else (1, str(error))
        raise text.error(text.line_of_entry(start, row), message) from None


def _coordinates(
    text: Text, start: int, shape: tuple[int, int], entries: int, banner: Banner
) -> tuple[Array, Array, Array]:
    """(rows, columns, values) of `entries` entries from byte `start` on, then mirrored ones."""
    index = np.int32 if max(shape) <= np.iinfo(np.int32).max else np.int64
    kind: Any = _TYPES.get(banner.field, np.float64)
    u: Any = np.empty(entries, index)
    v: Any = np.empty(entries, index)
    w = np.empty(entries, kind)
    filled = 0
    for position, lines, part in _parts(text, start, entries):
        head = (
            f"%%MatrixMarket matrix coordinate {banner.field} general\n"
            f"{shape[0]} {shape[1]} {lines}\n"
        )
        A = _parsed(text, position, head, part)
        here = slice(filled, filled + lines)
        u[here], v[here], w[here] = A.row, A.col, A.data
        filled += lines
    if banner.symmetry != "general":
        below = np.flatnonzero(u != v)
        others = _reflected(w[below], banner.symmetry)
        u, v = np.concatenate((u, v[below])), np.concatenate((v, u[below]))
        w = np.concatenate((w, others))
    return u, v, w


def _dense(text: Text, start: int, shape: tuple[int, int], entries: int, banner: Banner) -> Array:
    kind: Any = _TYPES.get(banner.field, np.float64)
    values = np.empty(entries, kind)
    filled = 0
    for position, lines, part in _parts(text, start, entries):
        head = f"%%MatrixMarket matrix array {banner.field} general\n{lines} 1\n"
        values[filled : filled + lines] = _parsed(text, position, head, part)[:, 0]
        filled += lines
    if banner.symmetry == "general":
        return np.ascontiguousarray(values.reshape(shape, order="F"))
    A = np.zeros(shape, kind)
    # column after column from the diagonal down, that of a skew-symmetric matrix left out
    column, row = np.triu_indices(shape[0], int(banner.symmetry == "skew-symmetric"))
    A[column, row] = _reflected(values, banner.symmetry)
    A[row, column] = values
    return A


def _reflected(values: Array, symmetry: str) -> Array:
    """The values on the other side of the diagonal."""
    if symmetry == "skew-symmetric":
        return np.negative(values)
    return np.conjugate(values) if symmetry == "hermitian" else values


def as_sparse(A: Matrix | Array) -> Matrix:
    """A dense matrix with every entry stored, zeros too."""
    if isinstance(A, np.ndarray):
        rows, columns = A.shape
        index = np.int32 if max(rows, columns, A.size) <= np.iinfo(np.int32).max else np.int64
        indptr = np.arange(rows + 1, dtype=index) * index(columns)
        indices = np.tile(np.arange(columns if rows else 0, dtype=index), rows)
        return sp.csr_array((A.ravel(), indices, indptr), shape=A.shape)
    return A


def pieces(A: Matrix, *, weights: bool, comments: Sequence[str]) -> Iterator[bytes]:
    """The bytes of the file; symmetric matrices are stored by half, stored zeros are kept."""
    field = _field(A) if weights else "pattern"
    symmetry = _symmetry(A, weights)
    rows, columns, data = rows_of(A), A.indices, A.data
    if symmetry != "general":
        lower = rows >= columns
        rows, columns, data = rows[lower], columns[lower], data[lower]
    lines = [f"%%MatrixMarket matrix coordinate {field} {symmetry}"]
    lines += [f"%{line}" for line in comments] or ["%"]
    yield "\n".join((*lines, f"{A.shape[0]} {A.shape[1]} {rows.size}\n")).encode()
    for start in range(0, rows.size, ENTRIES_PER_PART):
        here = slice(start, start + ENTRIES_PER_PART)
        part = sp.coo_array((data[here], (rows[here], columns[here])), shape=A.shape)
        stream = io.BytesIO()
        asked: Any = None if weights else "pattern"
        scipy.io.mmwrite(stream, part, field=asked, symmetry="general")
        yield _body(stream.getvalue())


def _body(written: bytes) -> bytes:
    position = 0
    while written.startswith(b"%", position):
        position = written.index(b"\n", position) + 1
    return written[written.index(b"\n", position) + 1 :]


def _field(A: Matrix) -> str:
    kinds = {"i": "integer", "b": "integer", "u": "unsigned-integer", "c": "complex"}
    return kinds.get(A.dtype.kind, "real")


def _symmetry(A: Matrix, weights: bool) -> str:
    """What the pattern and, where they are written, the values allow."""
    if A.shape[0] != A.shape[1] or not A.nnz or (other := mirrored(A)) is None:
        return "general"
    # bit by bit: -0.0 is not 0.0, and NaN is itself
    if not weights or np.array_equal(A.data.view(np.uint8), other.view(np.uint8)):
        return "symmetric"
    if A.dtype.kind == "c" and np.array_equal(A.data, np.conjugate(other)):
        return "hermitian"
    return "general"
