"""How far apart neighbours lie in an order.  Read on in reference.py, cpu.py."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from matchwood.ordering.permutation import measured

ONE_BIT = 1 << 20  # units of the integers L(d) in one bit
TABLE_BITS = 16


NAMES = ("linear_arrangement", "log_arrangement", "linear_gap", "log_gap")


@dataclass(frozen=True)
class Gaps:
    """Four numbers about an order: see `gaps`.

    Attributes
    ----------
    linear_arrangement, linear_gap : int
    log_arrangement, log_gap : float
        Bits; whole multiples of 2^-20.
    """

    linear_arrangement: int
    log_arrangement: float
    linear_gap: int
    log_gap: float


def gaps(
    A: Any, perm: Any = None, *, engine: str | None = None, threads: int | None = None
) -> Gaps:
    """Measure how far apart neighbours lie, in the order of a matrix or in another one.

    With p(v) the place of v, counted from 0, and v_1 < ... < v_d the places of u's neighbours::

        linear_arrangement   sum over edges {u, v} of |p(u) - p(v)|
        log_arrangement      sum over edges {u, v} of log2 |p(u) - p(v)|
        linear_gap           sum over u and i of v_(i+1) - v_i, which is the sum of v_d - v_1
        log_gap              sum over u and i of log2(v_(i+1) - v_i)

    An arrangement measures the length of edges, a gap [1]_ the jumps from one neighbour to the
    next, as code that reads x[v] for the neighbours v of u, one after the other, makes them.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Only the pattern is read, of A and its transpose; the diagonal is left out.
    perm : (n,) integer array, an order's result or None
        ``perm[new] = old``; None for the order as it is.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.
    threads : int or None
        CPU threads.

    Returns
    -------
    Gaps

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, or `perm` no permutation of its rows.

    Notes
    -----
    Logarithms are integers, L(d) = rint(2^20 log2(d >> s)) + (s << 20) with s = max(0, bits(d) -
    16), and a measure is their sum divided by 2^20.  So every engine, at any number of threads,
    returns the same number.

    Work O(n + m), and O(m log(row)) for `log_gap` in another order, whose rows are sorted one by
    one.  Memory: an array of n, and on a GPU 24 bytes an entry for that sort.

    References
    ----------
    .. [1] F. Chierichetti, R. Kumar, S. Lattanzi, M. Mitzenmacher, A. Panconesi, P. Raghavan. On
       compressing social networks. KDD 2009. doi:10.1145/1557019.1557049
    .. [2] M. Mandulak, R. Hu, G. Slota. Explicit ordering refinement for accelerating irregular
       graph analysis. HPEC 2022. doi:10.1109/HPEC55821.2022.9926313

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.star(5)  # vertex 0 in the centre
    >>> matchwood.gaps(A)
    Gaps(linear_arrangement=10, log_arrangement=4.584962844848633, linear_gap=3, log_gap=0.0)
    >>> matchwood.gaps(A, [1, 2, 0, 3, 4])
    Gaps(linear_arrangement=6, log_arrangement=2.0, linear_gap=4, log_gap=1.0)
    """
    return Gaps(**_measure("gaps", NAMES, A, perm, engine, threads))


def linear_arrangement(
    A: Any, perm: Any = None, *, engine: str | None = None, threads: int | None = None
) -> int:
    """The sum over the edges of the distance of their ends; parameters as in `gaps`.

    Examples
    --------
    >>> import matchwood
    >>> matchwood.linear_arrangement(matchwood.generators.cycle(6))
    10
    """
    return int(_one("linear_arrangement", A, perm, engine, threads))


def log_arrangement(
    A: Any, perm: Any = None, *, engine: str | None = None, threads: int | None = None
) -> float:
    """The sum over the edges of log2 of the distance of their ends; parameters as in `gaps`.

    Examples
    --------
    >>> import matchwood
    >>> matchwood.log_arrangement(matchwood.generators.cycle(5))
    2.0
    """
    return float(_one("log_arrangement", A, perm, engine, threads))


def linear_gap(
    A: Any, perm: Any = None, *, engine: str | None = None, threads: int | None = None
) -> int:
    """The sum over the rows of the distance from first to last neighbour; as in `gaps`.

    Examples
    --------
    >>> import matchwood
    >>> matchwood.linear_gap(matchwood.generators.path(5))
    6
    """
    return int(_one("linear_gap", A, perm, engine, threads))


def log_gap(
    A: Any, perm: Any = None, *, engine: str | None = None, threads: int | None = None
) -> float:
    """The sum of log2 of the gaps between neighbours of a row; parameters as in `gaps`.

    Examples
    --------
    >>> import matchwood
    >>> matchwood.log_gap(matchwood.generators.path(5))
    3.0
    """
    return float(_one("log_gap", A, perm, engine, threads))


def _one(name: str, A: Any, perm: Any, engine: str | None, threads: int | None) -> Any:
    return _measure(name, (name,), A, perm, engine, threads)[name]


def _measure(name: str, which: tuple[str, ...], *asked: Any) -> dict[str, Any]:
    found = measured(name, __name__, which, *asked)
    return {key: bits(x) if key.startswith("log") else int(x) for key, x in found.items()}


# Logarithms as integers, so that sums of them are the same in any order.
#
#     L(d) = rint(2^20 log2(d >> s)) + (s << 20),   s = max(0, bits(d) - 16)
#
# The 16 leading bits of a distance index a table of 2^16 words.  The error of L is less than 2^-15
# bits, and L never falls as d grows.  ordering/cpu and logs.cuh look up the same table.


@functools.cache
def table() -> Any:
    """L(d) for d below 2^16; the word of 0 is 0, and not used."""
    d = np.arange(1 << TABLE_BITS, dtype=np.float64)
    d[0] = 1
    words = np.rint(np.log2(d) * ONE_BIT).astype(np.int32)
    words.flags.writeable = False
    return words


def log_of(d: int) -> int:
    shift = max(0, d.bit_length() - TABLE_BITS)
    return int(table()[d >> shift]) + (shift << 20)


def log_array(d: Any) -> Any:
    d = d.astype(np.int64)
    shift = np.zeros_like(d)
    while bool((over := (d >> shift) >= 1 << TABLE_BITS).any()):
        shift += over
    return table()[d >> shift].astype(np.int64) + (shift << 20)


def bits(total: int) -> float:
    """A sum of logarithms as a number of bits."""
    return total / ONE_BIT
