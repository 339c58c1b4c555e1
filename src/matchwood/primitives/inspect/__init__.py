"""What the gate needs to know of a CSR matrix, in one pass over its entries.

Read on in reference.py, keys.py, cpu.py, gpu.py + gpu.cu.

Whether a matrix is symmetric is decided without a transpose, by hashes under a key that each
process draws for itself (keys.py).  A matrix that is symmetric always passes.  For any other one,
chosen without knowing the key, this is how likely it is to pass as well.

CPU, pattern.  Every vertex v has four numbers modulo 2^64: x1, y1, x2, y2.  Each is the product of
two random numbers, one from a table for the high half of the bits of v and one from a table for the
low half.  With s_ij = 1 where (i, j) is stored and (j, i) is not, -1 the other way round, else 0,

    x1'A y1 - y1'A x1 = sum of s_ij x1_i y1_j

is a polynomial in the random numbers: of degree 4, in each of them of degree 1 at most, and all its
monomials differ, so a coefficient of 1 or -1 stays where A is not symmetric.  Such a polynomial of
degree d is zero modulo 2^k for at most u_d(k) of 2^k choices: u_1 = 1, and since a random number
times a coefficient divisible by just 2^v hits a value with probability 2^(v-k) at most,

    u_d(k) = 1 + 1/2 (u_{d-1}(1) + ... + u_{d-1}(k))

That is 6273 for d = 4, k = 64.  The second sum has tables of its own, so both are zero with
probability (6273 / 2^64)^2 < 2^-102, whatever the matrix and its size.  The sums are taken row by
row: four products an entry and no memory but the tables, of about sqrt(n) lines.

CPU, values.  Every entry is weighted by h(bits of a), the upper half of a random linear function
modulo 2^128, which is strongly universal [1]_: where a_ij and a_ji differ, h(a_ij) - h(a_ji) is
uniform modulo 2^64.  This is one degree more: (54175 / 2^64)^2 < 2^-96.  -0.0 counts as 0.0.

GPU.  It takes entries one by one and reads no tables.  It multiplies, modulo the prime 2^127 - 1,

    r + 2^64 min(i, j) + max(i, j) + t (bits of a)

over the entries above the diagonal and over those below it, with random r and t.  Both are products
of linear factors in r and t, and as polynomials equal just where the matrix is symmetric.  Two
different ones of degree m / 2 agree with probability m / 2^128 at most [2]_: 2^-97 for m = 2^31.

Keys are random and not derived from the data, so no file made beforehand can aim at them.  Answers
do not depend on them.  A forked child has the key of its parent.  Nothing that is kept or pickled
holds a hash, so what two processes found can be compared.

.. [1] M. Dietzfelbinger. Universal hashing and k-wise independent random variables via integer
   arithmetic without primes. STACS 1996. doi:10.1007/3-540-60922-9_46
.. [2] J. T. Schwartz. Fast probabilistic algorithms for verification of polynomial identities.
   J. ACM 27(4), 1980. doi:10.1145/322217.322225
"""

from __future__ import annotations

from typing import Any, NamedTuple

from matchwood import engines
from matchwood.primitives.patterns import FLOATS, csr_arrays, look_through


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
    indptr, indices, _ = csr_arrays("symmetry", indptr, indices, None)
    look_through("symmetry", indptr, indices, indptr.size - 1, ascending=True)
    return trusted_symmetry(indptr, indices, threads=threads)


def trusted_symmetry(indptr: Any, indices: Any, *, threads: int | None = None) -> Symmetry:
    """`symmetry` for arrays that have passed a gate: nothing is looked at.

    Rows need not be sorted, as long as none holds a column twice.
    """
    engine = engines.load(__name__, engines.location(indices))
    found: Symmetry = engine.symmetry(indptr, indices, threads=threads)
    return found


def values(indptr: Any, indices: Any, data: Any, *, threads: int | None = None) -> Values:
    """Facts about the float32 or float64 values of a CSR matrix."""
    indptr, indices, data = csr_arrays("values", indptr, indices, data, FLOATS)
    look_through("values", indptr, indices, indptr.size - 1)
    return trusted_values(indptr, indices, data, threads=threads)


def trusted_values(indptr: Any, indices: Any, data: Any, *, threads: int | None = None) -> Values:
    """`values` for arrays that have passed a gate: nothing is looked at."""
    engine = engines.load(__name__, engines.location(indices))
    found: Values = engine.values(indptr, indices, data, threads=threads)
    return found
