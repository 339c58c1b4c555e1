"""How good an order of the vertices is.  See reference.py, check.py, cpu.py, gpu.py + gpu.cu."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from matchwood.ordering.permutation import measured

NAMES = ("bandwidth", "profile", "max_wavefront", "rms_wavefront")


@dataclass(frozen=True)
class Measures:
    """Four numbers about an order: see `order_measures`."""

    bandwidth: int
    profile: int
    max_wavefront: int
    rms_wavefront: float


def order_measures(
    A: Any, perm: Any = None, *, engine: str | None = None, threads: int | None = None
) -> Measures:
    """Measure the order of a matrix, or another order of it, without permuting the matrix.

    With f(i) the first column of row i in the lower triangle, diagonal included:

        bandwidth      max (i - f(i))
        profile        sum (i - f(i))
        wavefront(i)   number of rows j >= i with f(j) <= i
        max_wavefront  the largest of them
        rms_wavefront  sqrt(mean(wavefront(i)^2))

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Only the pattern is read, of A and its transpose; the diagonal counts as stored.
    perm : (n,) integer array, Ordering or None
        ``perm[new] = old``; None for the order as it is.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.
    threads : int or None
        CPU threads.

    Returns
    -------
    Measures

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix, or `perm` no permutation of its rows.

    Notes
    -----
    The wavefront is what a frontal solver holds at once, the profile what a skyline solver stores;
    the sum of the wavefronts is profile + n.  Work O(n + m), memory two arrays of n.

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.star(5)
    >>> matchwood.order_measures(A)
    Measures(bandwidth=4, profile=10, max_wavefront=5, rms_wavefront=3.3166247903554)
    >>> matchwood.bandwidth(A, [1, 2, 0, 3, 4])
    2
    """
    return Measures(**_measure("order_measures", NAMES, A, perm, engine, threads))


def bandwidth(
    A: Any, perm: Any = None, *, engine: str | None = None, threads: int | None = None
) -> int:
    """The largest distance of an entry from the diagonal; parameters as in `order_measures`.

    Examples
    --------
    >>> import matchwood
    >>> matchwood.bandwidth(matchwood.generators.cycle(6))
    5
    """
    return int(_measure("bandwidth", NAMES[:1], A, perm, engine, threads)["bandwidth"])


def matrix_profile(
    A: Any, perm: Any = None, *, engine: str | None = None, threads: int | None = None
) -> int:
    """The sum over the rows of the distance to the first entry; parameters as in `order_measures`.

    Examples
    --------
    >>> import matchwood
    >>> matchwood.matrix_profile(matchwood.generators.path(4))
    3
    """
    return int(_measure("matrix_profile", NAMES[1:2], A, perm, engine, threads)["profile"])


def max_wavefront(
    A: Any, perm: Any = None, *, engine: str | None = None, threads: int | None = None
) -> int:
    """The most rows that are active at once; parameters as in `order_measures`.

    Examples
    --------
    >>> import matchwood
    >>> matchwood.max_wavefront(matchwood.generators.path(4))
    2
    """
    return int(_measure("max_wavefront", NAMES[2:3], A, perm, engine, threads)["max_wavefront"])


def rms_wavefront(
    A: Any, perm: Any = None, *, engine: str | None = None, threads: int | None = None
) -> float:
    """The root of the mean square of the wavefronts; parameters as in `order_measures`.

    Examples
    --------
    >>> import matchwood
    >>> round(matchwood.rms_wavefront(matchwood.generators.path(4)), 6)
    1.802776
    """
    return float(_measure("rms_wavefront", NAMES[3:], A, perm, engine, threads)["rms_wavefront"])


def _measure(name: str, which: tuple[str, ...], *asked: Any) -> dict[str, Any]:
    found = measured(name, __name__, which, *asked)
    return {key: float(x) if key == "rms_wavefront" else int(x) for key, x in found.items()}
