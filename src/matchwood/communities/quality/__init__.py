"""How good communities are.  Read on in reference.py, check.py, cpu.py, gpu.py + gpu.cu."""

from __future__ import annotations

from typing import Any

from matchwood import arguments, calls, engines
from matchwood.communities.weights import Level, level_of

HALF = 26  # bits; the volume of a community has at most 52


def modularity(
    A: Any,
    labels: Any,
    *,
    resolution: float = 1.0,
    engine: str | None = None,
    threads: int | None = None,
) -> float:
    """The modularity of communities: weight inside them, less what chance would put there.

    With k_v the strength of a vertex, 2 m the sum of all strengths, and vol(c) their sum over a
    community c [1]_ [2]_,

        Q = weight inside communities / 2 m  -  resolution * sum over c of (vol(c) / 2 m)^2

    where an edge inside counts in both directions.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Weights must not be negative.  Of a matrix that is not symmetric ``a_ij + a_ji`` counts, of
        a directed edge list the heavier direction.  A loop counts twice in the strength of its
        vertex, and must not be negative either.
    labels : (n,) array of integers, or Communities
        Vertices with the same number are in one community; the numbers may be any.
    resolution : float
        1 is the modularity of [1]_; larger values prefer smaller communities.
    engine : {None, "reference", "cpu", "gpu"}
        None takes the engine where `A` already lives.  Nothing is ever moved silently.
    threads : int or None
        CPU threads; None takes ``MATCHWOOD_NUM_THREADS`` or the CPUs at hand.

    Returns
    -------
    float
        At most 1; 0 where there are no edges.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix or has negative weights, if `labels` are no n integers, or if the
        resolution is negative or no number.

    Notes
    -----
    Deterministic: weights become integers ``rint(a 2^s)``, s the largest for which ``2 m`` is at
    most 2^52, and all sums are exact.  So every engine, at any number of threads, returns the same
    number.  For weights of very different size it is off by at most the number of entries / 2^52.

    Work O(n + m).  Memory: 8 bytes for each entry where weights are not all 1, kept by a `Graph`.

    References
    ----------
    .. [1] M. E. J. Newman, M. Girvan. Finding and evaluating community structure in networks.
       Phys. Rev. E 69 (2004). doi:10.1103/PhysRevE.69.026113
    .. [2] J. Reichardt, S. Bornholdt. Statistical mechanics of community detection.
       Phys. Rev. E 74 (2006). doi:10.1103/PhysRevE.74.016110

    Examples
    --------
    Two triangles and an edge between them:

    >>> import matchwood
    >>> A = (6, [[0, 1], [0, 2], [1, 2], [2, 3], [3, 4], [3, 5], [4, 5]])
    >>> round(matchwood.modularity(A, [0, 0, 0, 1, 1, 1]), 4)
    0.3571
    >>> matchwood.modularity(A, [0] * 6)
    0.0
    """
    caller = "modularity"
    resolution = arguments.real(caller, "resolution", resolution, 0)
    call = calls.enter(A, caller, engine, threads)
    level = level_of(call.graph, caller)
    given = arguments.integers(caller, "labels", getattr(labels, "labels", labels), size=level.n)
    named, count = _from_zero(call.here(given), level)
    return quality_of(level, named, count, resolution, call.engine, threads)


def quality_of(
    level: Level, labels: Any, count: int, resolution: float, engine: str, threads: int | None
) -> float:
    """Modularity of labels 0..count-1 of the index type, where the engine reads them."""
    if level.total == 0:
        return 0.0
    inside, volumes = engines.load(__name__, engine).totals(level, labels, count, threads)
    if level.inner is not None:
        inside += int(level.inner.sum())
    return inside / level.total - resolution * (sum_of_squares(volumes) / level.total**2)


def quality_of_level(level: Level, resolution: float) -> float:
    """Modularity of a community for each vertex of a level."""
    if level.total == 0:
        return 0.0
    inside = 0 if level.inner is None else int(level.inner.sum())
    return inside / level.total - resolution * (sum_of_squares(level.strength) / level.total**2)


def _from_zero(labels: Any, level: Level) -> tuple[Any, int]:
    """The labels as numbers below n, of the index type, and how many there may be."""
    xp, kind = engines.xp(labels), level.indices.dtype
    if level.n == 0:
        return labels.astype(kind), 0
    if int(labels.min()) < 0 or int(labels.max()) >= level.n:
        labels = xp.unique(labels, return_inverse=True)[1].reshape(-1)
    return xp.ascontiguousarray(labels.astype(kind, copy=False)), int(labels.max()) + 1


def sum_of_squares(volumes: Any) -> int:
    """The exact sum: squares have up to 104 bits, so they are added up in pieces of 26 bits."""
    low = (1 << HALF) - 1
    high_part, low_part = volumes >> HALF, volumes & low
    squares = low_part * low_part
    return (
        (int((high_part * high_part).sum()) << 2 * HALF)
        + (int((high_part * low_part).sum()) << HALF + 1)
        + (int((squares >> HALF).sum()) << HALF)
        + int((squares & low).sum())
    )
