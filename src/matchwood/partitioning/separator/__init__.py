"""Vertices that separate the others into two halves.  See reference.py, check.py, cpu.py."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from matchwood import calls, engines
from matchwood.arguments import count, integers, numbers, real, seed
from matchwood.partitioning.cover import minimum_vertex_cover

Array = np.ndarray[Any, Any]

MOST_TRIES = 1000  # each has n bytes of memory for its sides
LARGEST_TOTAL = (1 << 31) - 1  # of weights: keys of heaps have 32 bits for them
SMALL_TOTAL = 2.0**-900  # of weights: those below are multiplied first, exactly
NEAREST = 10**9  # the imbalance is the nearest fraction with a denominator up to this: 0.15 is 3/20


class Pieces(NamedTuple):
    """A graph in pieces: vertices begins[k] .. begins[k + 1] - 1 have no edges to the others."""

    indptr: Array  # int64
    indices: Array  # int32
    weight: Array  # int64, of the vertices
    begins: Array  # int64
    limits: Array  # int64: what each side of a piece may weigh
    seeds: Array  # uint64


def vertex_separator(
    A: Any,
    *,
    imbalance: float = 0.1,
    vertex_weights: Any = None,
    labels: Any = None,
    tries: int = 3,
    rng: Any = 0,
    engine: str | None = None,
    threads: int | None = None,
) -> Any:
    """Find few vertices without which the graph falls into two sides of about equal weight.

    Parameters
    ----------
    A : (n, n) sparse matrix, or anything `graph` takes
        Only the pattern is read: i and j are neighbours when ``A[i, j]`` or ``A[j, i]`` is
        stored and i != j.
    imbalance : float
        A side weighs at most ``floor((1 + imbalance) * ceil(total / 2))``.
    vertex_weights : (n,) array of numbers, or None
        At least 0, and not all 0.  None: all weigh 1.
    labels : (n,) array of 0 and 1, or None
        Two sides to start from.  The cut edges are covered by as few vertices as possible
        (`minimum_vertex_cover`), which are then refined.  None finds sides of its own.
    tries : int
        The best of this many attempts, at most 1000, is returned; with `labels` there is one.
    rng : int, Generator or None
        Where attempts begin; None is 0.
    engine : {None, "reference", "cpu"}
        None takes the engine where `A` already lives.
    threads : int or None
        CPU threads; they share the tries.

    Returns
    -------
    side : (n,) int8 array
        2 in the separator, 0 and 1 on the sides.  No edge joins 0 and 1.  The smallest vertex
        outside of the separator is on side 0.

    Raises
    ------
    TypeError, ValueError
        If `A` is no square matrix; if weights or labels have another size, are negative, not
        finite or all 0, or no 0 and 1; if `imbalance` is negative or `tries` less than 1.
    EngineUnavailable
        On the GPU.

    Notes
    -----
    Multilevel [1]_: pairs of vertices are contracted until few are left, a region is grown there,
    and on the way back the separator is moved through every level, by the vertex whose move makes
    it lightest [2]_ [3]_.  States are compared by (excess over the limit, weight of the separator,
    difference of the sides), then the earlier one counts; moves by (weight, vertex).  So the answer
    is the same at any number of threads.

    Weights become integers: as they are where they are whole and their sum is less than 2^31,
    else ``rint(w * 2**s)`` with the largest s for which the sum is.

    Work some 20 looks at each entry for a try.  Memory for each thread: three times the graph.

    References
    ----------
    .. [1] B. Hendrickson, E. Rothberg. Improving the run time and quality of nested dissection
       ordering. SIAM J. Sci. Comput. 20(2), 1998. doi:10.1137/S1064827596300656
    .. [2] C. Ashcraft, J. W. H. Liu. A partition improvement algorithm for generalized nested
       dissection. Boeing BCSTECH-94-020, 1994.
    .. [3] G. Karypis, V. Kumar. A fast and high quality multilevel scheme for partitioning
       irregular graphs. SIAM J. Sci. Comput. 20(1), 1998. doi:10.1137/S1064827595287997

    Examples
    --------
    >>> import matchwood
    >>> A = matchwood.generators.path(7)
    >>> matchwood.vertex_separator(A).tolist()
    [0, 0, 0, 2, 1, 1, 1]
    >>> matchwood.vertex_separator(A, vertex_weights=[6, 1, 1, 1, 1, 1, 1]).tolist()
    [0, 2, 1, 1, 1, 1, 1]
    """
    caller = "vertex_separator"
    real(caller, "imbalance", imbalance, 0)
    tries = count(caller, "tries", tries, 1, MOST_TRIES)
    start_at = seed(caller, rng)
    call = calls.enter(A, caller, engine, threads)
    view = call.graph.undirected_pattern()
    weight = whole_weights(caller, vertex_weights, view.n)
    start = np.empty(0, np.int8)
    if labels is not None:
        given = integers(caller, "labels", labels, size=view.n, low=0, high=1)
        start = engines.moved(given, "cpu").astype(np.int8)
    finder = call.load(__name__)
    if view.n == 0:
        return np.empty(0, np.int8)
    if labels is not None:
        start, tries = _covered(view, start, call.engine), 1
    pieces = Pieces(
        view.indptr.astype(np.int64, copy=False), view.indices.astype(np.int32, copy=False),
        weight, np.array([0, view.n]), limits_of(weight.sum(keepdims=True), imbalance),
        np.array([start_at], np.uint64),
    )  # fmt: skip
    side = _best(pieces, *finder.separate(pieces, start, tries, threads))[0]
    outside = side[side < 2]
    return side if not outside.size or outside[0] == 0 else np.where(side == 2, side, 1 - side)


def separate_pieces(
    pieces: Pieces, *, tries: int, engine: str, threads: int | None = None
) -> tuple[Array, Array]:
    """A separator for every piece, for other problems; `threads` share the pieces.

    Returns the side of each vertex, and of each piece the lighter side's weight.
    """
    finder = engines.load(__name__, engine)
    return _best(pieces, *finder.separate(pieces, np.empty(0, np.int8), tries, threads))


def whole_weights(caller: str, weights: Any, n: int) -> Array:
    """Vertex weights as int64 whose sum has 31 bits; see `vertex_separator`."""
    if n > LARGEST_TOTAL:
        raise ValueError(f"{caller}: A must have at most {LARGEST_TOTAL} rows, got {n}")
    if weights is None:
        return np.ones(n, np.int64)
    given = engines.moved(numbers(caller, "vertex_weights", weights, size=n), "cpu")
    given = given.astype(np.float64)
    at = int(given.argmin()) if n else 0
    if n and given[at] < 0:
        raise ValueError(f"{caller}: vertex_weights must be at least 0, got {given[at]} at {at}")
    with np.errstate(over="ignore"):
        total = float(given.sum())
    if n and total == 0:
        raise ValueError(f"{caller}: vertex_weights must not all be 0")
    if not math.isfinite(total):
        raise ValueError(f"{caller}: the sum of vertex_weights must be finite")
    if total <= LARGEST_TOTAL and bool((given == np.floor(given)).all()):
        return given.astype(np.int64)
    if total < SMALL_TOTAL:
        given, total = np.ldexp(given, 1000), math.ldexp(total, 1000)
    # rounding adds up to half for each
    power = math.frexp((LARGEST_TOTAL - n) / total)[1] - 1
    return np.rint(np.ldexp(given, power)).astype(np.int64)


def limits_of(totals: Array, imbalance: float) -> Array:
    """What each side may weigh of pieces of these weights."""
    room = Fraction(float(min(imbalance, 1))).limit_denominator(NEAREST)
    half = (totals + 1) // 2
    limits: Array = np.minimum(half + half * room.numerator // room.denominator, totals)
    return limits


def _covered(view: Any, label: Array, engine: str) -> Array:
    """Sides after a smallest cover of the cut edges has left them."""
    row = np.repeat(np.arange(view.n), np.diff(view.indptr))
    cut = label[row] != label[view.indices]
    ends = row[cut]
    vertex, place = np.unique(ends, return_inverse=True)
    other = np.searchsorted(vertex, view.indices[cut])
    edges = np.stack([place, other], axis=1)[label[ends] == 0]
    cover = minimum_vertex_cover((vertex.size, edges), engine=engine)
    side = label.copy()
    side[vertex[cover.members]] = 2
    return side


def _best(pieces: Pieces, side: Array, costs: Array) -> tuple[Array, Array]:
    """The best try of each piece, and the weight of its lighter side."""
    sizes = np.diff(pieces.begins)
    which = np.arange(sizes.size)
    best = np.zeros(sizes.size, np.int64)
    for attempt in range(1, costs.shape[0]):
        less = np.zeros(sizes.size, bool)
        for now, then in zip(costs[attempt].T[::-1], costs[best, which].T[::-1], strict=True):
            less = (now < then) | ((now == then) & less)
        best[less] = attempt
    found = side[np.repeat(best, sizes), np.arange(pieces.weight.size)]
    for piece in np.flatnonzero(costs[best, which, 0]).tolist():
        _relieve(pieces, piece, found)
    weights = np.zeros((3, sizes.size), np.int64)
    np.add.at(weights, (found, np.repeat(which, sizes)), pieces.weight)
    return found, weights[:2].min(axis=0)


def _relieve(pieces: Pieces, piece: int, side: Array) -> None:
    """Move vertices of a side that is too heavy into the separator, the heaviest first."""
    begin, end = pieces.begins[piece], pieces.begins[piece + 1]
    weight, here = pieces.weight[begin:end], side[begin:end]
    for s in (0, 1):
        inside = np.flatnonzero(here == s)
        inside = inside[np.argsort(-weight[inside], kind="stable")]
        left = weight[inside].sum() - np.cumsum(weight[inside])
        surplus = weight[inside].sum() > pieces.limits[piece]
        here[inside[: np.argmax(left <= pieces.limits[piece]) + 1 if surplus else 0]] = 2
