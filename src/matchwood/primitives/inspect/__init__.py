"""What the gate needs to know of a CSR matrix, in one pass over its entries.

Read on in reference.py, keys.py, cpu.py, gpu.py + gpu.cu.

Whether a large matrix is symmetric is decided without a transpose, by hashes under a key that each
process draws for itself (keys.py).  A matrix that is symmetric always passes, whatever the key.
Another one passes when two sums of 64 bits both happen to be zero.

A pattern that fits the caches of the CPU, with ascending rows, is compared entry by entry instead,
which is exact.

CPU.  Every vertex v has four numbers modulo 2^64: x1, y1, x2, y2.  They are a chain of keyed steps,
each a product with a secret odd number, then h ^= h >> shift.  With s_ij = 1 where
(i, j) is stored and (j, i) is not, -1 the other way round, else 0, the two sums are

    x'A y - y'A x = sum of s_ij x_i y_j

They are taken row by row: five products an entry and no memory.  For values, every entry is
weighted by a keyed hash of its bits.  -0.0 counts as 0.0.

GPU.  It takes entries one by one.  The pair {i, j}, smaller number first, and the bits of the value
go through rounds of Philox [1]_, with secret multipliers and masks, which give two hashes.  These
are added where i < j and subtracted where i > j.

What is proven, and what is not.  Were the numbers of vertices independent and uniform, a sum would
be zero with a probability of 33 / 2^64 at most: a number times a coefficient that 2^v divides takes
a value with probability 2^(v - 64), and the mean over v is 1 + 64 / 2 times 2^-64.  Were the hashes
of pairs so, it would be 1 / 2^64.  Both sums are then zero with a probability below 2^-117; on the
CPU, where values alone differ, below 2^-61, since both sums share the hash of a value.

The steps only look random: there is no proof that they are as good.  But the author of a file does
not know the secret numbers, and no answer depends on them, so they cannot be learned from answers.
What remains are patterns that cancel under many keys at once.  The tests try such patterns and
find none (fewer rounds on the GPU would let some pass).

A matrix that passes wrongly does no harm: kernels that rely on symmetry stay inside their arrays
without it, and end (patterns.not_symmetric).

A forked child has the key of its parent.  Nothing that is kept or pickled holds a hash, so the
findings of two processes can be compared.

.. [1] J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw. Parallel random numbers: as easy as
   1, 2, 3. SC 2011. doi:10.1145/2063384.2063405
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from matchwood import engines
from matchwood.primitives.patterns import FLOATS, csr_arrays, error_of


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
    """Facts about the stored values; what lies on the diagonal is left out unless it is said."""

    finite: bool  # all, those on the diagonal too
    at: int  # first entry that is not finite, or -1
    minimum: float  # 0.0 where there are no entries
    maximum: float
    zeros: int
    symmetric: bool  # pattern and values; rows must be ascending
    negative_loop: bool  # a value on the diagonal is below 0


SPREAD = 0x9E3779B97F4A7C15  # multiplier of `checksum`: odd, irregular bits (the golden ratio's)

FAULTS = ("", "indptr_start", "indptr_order", "indptr_end", "index_range")


def structure(indptr: Any, indices: Any, n: int, *, threads: int | None = None) -> Structure:
    """Is this a CSR pattern with n columns, and are its rows ascending?"""
    engine = engines.load(__name__, engines.location(indices))
    found: Structure = engine.structure(indptr, indices, n, threads=threads)
    return found


def look_through(
    function: str, indptr: Any, indices: Any, columns: int, *, ascending: bool = False
) -> None:
    """Raise where the arrays are no CSR pattern with `columns` columns; a pass over them.

    With `ascending`, also where a row is not sorted or holds a column twice.
    """
    facts = structure(indptr, indices, columns)
    error = error_of(function, facts, indptr, indices, columns)
    if error is not None:
        raise error
    if ascending and not facts.ascending:
        raise ValueError(f"{function}: rows must be ascending, got an unsorted row or a duplicate")


def fault(function: str, indptr: Any, indices: Any, columns: int) -> ValueError | None:
    """What is wrong with a pattern, the first place named; None when nothing is."""
    return error_of(function, structure(indptr, indices, columns), indptr, indices, columns)


def symmetry(indptr: Any, indices: Any, *, threads: int | None = None) -> Symmetry:
    """Is a pattern symmetric, and what is on its diagonal?  Rows must be ascending."""
    indptr, indices, _ = csr_arrays("symmetry", indptr, indices, None)
    look_through("symmetry", indptr, indices, indptr.size - 1, ascending=True)
    return trusted_symmetry(indptr, indices, threads=threads, ascending=True)


def trusted_symmetry(
    indptr: Any, indices: Any, *, threads: int | None = None, ascending: bool = False
) -> Symmetry:
    """`symmetry` for arrays that have passed a gate: nothing is checked.

    Rows need not be sorted, unless said to be `ascending`, as long as none holds a column twice.
    """
    where = engines.location(indices)
    engine = engines.load(__name__, where)
    ways = engine.ascending_symmetry if ascending and where == "cpu" else engine.symmetry
    found: Symmetry = ways(indptr, indices, threads=threads)
    return found


def values(indptr: Any, indices: Any, data: Any, *, threads: int | None = None) -> Values:
    """Facts about the float32 or float64 values of a CSR matrix."""
    indptr, indices, data = csr_arrays("values", indptr, indices, data, FLOATS)
    look_through("values", indptr, indices, indptr.size - 1)
    return trusted_values(indptr, indices, data, threads=threads)


def trusted_values(indptr: Any, indices: Any, data: Any, *, threads: int | None = None) -> Values:
    """`values` for arrays that have passed a gate: nothing is checked."""
    engine = engines.load(__name__, engines.location(indices))
    found: Values = engine.values(indptr, indices, data, threads=threads)
    return found


def trusted_values_and_loops(indptr: Any, indices: Any, data: Any) -> tuple[Values, int | None]:
    """`trusted_values`, and the entries on the diagonal where these are counted on the way."""
    if engines.location(indices) == "gpu":
        return trusted_values(indptr, indices, data), None
    engine = engines.load(__name__, "cpu")
    found: tuple[Values, int | None] = engine.values_and_loops(indptr, indices, data)
    return found


def checksum(array: Any, *, threads: int | None = None) -> tuple[int, ...]:
    """Two sums that show whether a contiguous array has been changed; at one place for sure.

    With w_0, w_1, ... the n words of its memory, modulo 2^64,

        h_k = u ^ (u >> 32) with u = w_k SPREAD,    sum of h_k,    sum of (n - k) h_k

    Another word has another h_k, since both steps can be undone: the first sum is another one.
    Changes of several words leave both sums as they were by chance only; but the sums are no
    secret, so such changes can be found.  Words are as long as the array's alignment allows.
    """
    where = engines.location(array)
    raw = array.reshape(-1).view(np.uint8)
    address = raw.data.ptr if where == "gpu" else raw.__array_interface__["data"][0]
    width = next(width for width in (8, 4, 1) if address % width == 0)
    end = raw.size - raw.size % width
    engine = engines.load(__name__, "gpu" if where == "gpu" else "cpu")
    words = raw[:end].view(f"u{width}")
    return (*engine.word_sums(words, threads=threads), *raw[end:].tolist())
