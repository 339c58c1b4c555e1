"""What the gate needs to know of a CSR matrix, in one pass over its entries.

Read on in reference.py, cpu.py, gpu.py + gpu.cu.

Whether the pattern is symmetric is decided without a transpose.  Let x and y be two vectors of
hashed vertices.  A symmetric pattern A has x'Ay = y'Ax, whatever x and y are; for another one
equality modulo 2^64 is a coincidence of about 2^-64.  Two independent pairs of vectors make that
2^-128.  The difference is summed row by row, so it costs a few multiplications per entry and no
memory.  For values, every entry is weighted by a hash of its bits (-0.0 counts as 0.0).  The GPU,
which takes entries one by one, adds a hash of each pair instead, with one sign above the diagonal
and the other below.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from matchwood import engines


class Structure(NamedTuple):
    """Facts about indptr and indices."""

    fault: str  # "" or which rule is broken, see FAULTS
    at: int  # where: a row for indptr, an entry for indices
    ascending: bool  # every row is strictly ascending: sorted, no duplicates
    longest: int  # entries of the longest row


class Symmetry(NamedTuple):
    """Facts about a sound, ascending pattern that cost more to find out."""

    loops: int  # entries on the diagonal
    symmetric: bool


class Values(NamedTuple):
    """Facts about the stored values, the diagonal left out except for `finite`."""

    finite: bool
    at: int  # first entry that is not finite, or -1
    minimum: float  # 0.0 where there are no entries
    maximum: float
    zeros: int
    symmetric: bool  # pattern and values; rows must be ascending


FAULTS = ("", "indptr_start", "indptr_order", "indptr_end", "index_range")


def structure(indptr: Any, indices: Any, n: int, *, threads: int | None = None) -> Structure:
    """Is this a CSR pattern with n columns, and are its rows ascending?"""
    engine = engines.load(__name__, engines.location(indices))
    found: Structure = engine.structure(indptr, indices, n, threads=threads)
    return found


def symmetry(indptr: Any, indices: Any, *, threads: int | None = None) -> Symmetry:
    """Is a pattern symmetric, and what is on its diagonal?  Rows must be ascending."""
    engine = engines.load(__name__, engines.location(indices))
    found: Symmetry = engine.symmetry(indptr, indices, threads=threads)
    return found


def values(indptr: Any, indices: Any, data: Any, *, threads: int | None = None) -> Values:
    """Facts about the values of a CSR matrix whose `structure` is sound."""
    engine = engines.load(__name__, engines.location(indices))
    found: Values = engine.values(indptr, indices, data, threads=threads)
    return found
