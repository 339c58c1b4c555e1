"""Matrix Market, read and written by scipy.io.

SciPy reads what it understands of a line and skips the rest: ``1 1 2,5`` becomes 2, ``1 1 2.5 7``
becomes 2.5, and 3.7 in a file of integers becomes 3.  So every line is checked before SciPy sees
the file, which also finds where a file is cut off.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.io
import scipy.sparse as sp

from matchwood.io.build import Matrix, matrix_of_rows
from matchwood.io.text import Array, Layout, Text, clip, malformed, whole_numbers

_FIELDS = {"real": 1, "double": 1, "integer": 0, "unsigned-integer": 0, "pattern": 0, "complex": 2}
_INTEGERS = ("integer", "unsigned-integer")
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


def read(text: Text, *, strict: bool, threads: int | None) -> Matrix | Array:
    """The matrix; an array where the file holds a dense one."""
    layout, field, symmetry = _banner(text)
    line, start, shape, declared = _sizes(text, layout)
    if symmetry != "general" and shape[0] != shape[1]:
        raise text.error(line, f"a {symmetry} matrix must be square, got {shape[0]} x {shape[1]}")
    text.require_finished(strict)
    ids = (2 if layout == "coordinate" else 0) + (field in _INTEGERS)
    lines = _check(text, start, ids, _FIELDS[field], threads)
    if declared is None:
        declared = _stored(shape, symmetry)
    text.require_count(declared, lines, "entries", True)
    try:
        A: Any = scipy.io.mmread(io.BytesIO(text.content))
    except (ValueError, OverflowError) as error:
        found = re.match(r"Line (\d+): (.*)", str(error))
        at, message = (int(found[1]), found[2]) if found else (text.last_line(), str(error))
        raise text.error(at, message) from None
    return np.ascontiguousarray(A) if isinstance(A, np.ndarray) else sp.csr_array(A)


def _banner(text: Text) -> tuple[str, str, str]:
    first = text.content[: text.content.index(b"\n")].strip()
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
    return words[2], words[3], words[4]


def _sizes(text: Text, layout: str) -> tuple[int, int, tuple[int, int], int | None]:
    """(line number, where the next line starts, shape, entries) of the size line."""
    wanted = 3 if layout == "coordinate" else 2
    for position, after, line in text.lines():
        if line and not line.startswith(b"%"):
            sizes = whole_numbers(line.split())
            if sizes is None or len(sizes) != wanted:
                expected = "rows, columns and entries" if wanted == 3 else "rows and columns"
                raise text.error(text.line_at(position), f"expected {expected}, got {clip(line)}")
            entries = sizes[2] if wanted == 3 else None
            return text.line_at(position), after, (sizes[0], sizes[1]), entries
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


def as_sparse(A: Matrix | Array) -> Matrix:
    """A dense matrix with every entry stored, zeros too."""
    if isinstance(A, np.ndarray):
        rows, columns = A.shape
        indptr = np.arange(rows + 1) * columns
        indices = np.tile(np.arange(columns), rows)
        return matrix_of_rows((rows, columns), indptr, indices, A.ravel())
    return A


def content(A: Matrix, *, weights: bool, comments: Sequence[str]) -> bytes:
    """The bytes of the file; symmetric matrices are stored by half."""
    stream = io.BytesIO()
    field: Any = None if weights else "pattern"
    scipy.io.mmwrite(stream, A, comment="\n".join(comments), field=field)
    return stream.getvalue()
